/*
 * What runs next to the screen of "stacksnap top".
 */
#ifndef SS_CLI_TOP_JOBS_H
#define SS_CLI_TOP_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "base/child.h"
#include "base/error.h"
#include "cli/interpret.h"
#include "report/text.h"

/*
 * A terminal as a screen: the alternate buffer, keys as they are pressed, no cursor. What it
 * was like before is restored by ss_terminal_leave().
 */

struct ss_terminal {
	struct termios saved;
	bool entered;
	unsigned lines;
	unsigned columns;
};

enum ss_key {
	SS_KEY_NONE = 0, /* nothing was pressed */
	/* Others are the characters themselves. */
	SS_KEY_UP = 0x100,
	SS_KEY_DOWN,
	SS_KEY_PAGE_UP,
	SS_KEY_PAGE_DOWN,
	SS_KEY_HOME,
	SS_KEY_UNKNOWN,
	SS_KEY_END_OF_INPUT,
};

/* Saves the state of the terminal. Errors: INVALID (standard input or output is none, or one
   that cannot move its cursor). */
struct ss_error *ss_terminal_init(struct ss_terminal *terminal);

void ss_terminal_enter(struct ss_terminal *terminal);
/* Does nothing if it was not entered. Safe in a signal handler. */
void ss_terminal_leave(struct ss_terminal *terminal);

/* Reads how large it is. */
void ss_terminal_measure(struct ss_terminal *terminal);

/* The next key that was pressed. Does not wait. */
int ss_terminal_key(void);

/* Shows lines of text, and below them status in the last line of the screen. */
void ss_terminal_draw(const struct ss_terminal *terminal, const char *text,
		      const char *status, bool color);

/*
 * What runs next to the screen of "stacksnap top": the recorder, the analysis of waits,
 * full snapshots into files, and what restores the terminal; and what makes a screen. Each runs in a
 * child process.
 */

enum { SS_TOP_FILES = 2 };

/* Standard output and standard error of the child are the files of the job. */
struct ss_top_job {
	struct ss_child child;
	int out;      /* in memory; -1: none */
	int messages; /* the same; untrusted names in them are escaped */
	uint64_t begin_ns;
};

#define SS_TOP_NO_JOB                                                                    \
	{                                                                                \
		.child = SS_NO_CHILD, .out = -1, .messages = -1                          \
	}

/* Starts a job that does not run. The child ends with this program; mask: its signals.
   Errors: SYSTEM. */
struct ss_error *ss_top_job_start(struct ss_top_job *job, const sigset_t *mask,
				  ss_child_function *work, void *data);

/* Whether a job that ran has ended. Does not wait. */
bool ss_top_job_poll(struct ss_top_job *job);

/* Ends the job, if it runs, and closes its files. */
void ss_top_job_end(struct ss_top_job *job);

struct ss_top_recording {
	pid_t pid;
	int files[SS_TOP_FILES]; /* empty, in memory */
	uint64_t period_ns;
	uint64_t keep_ns;
};

/* Exit statuses of the recorder, besides enum ss_exit_status. */
enum { SS_TOP_TARGET_ENDED = 10 };

/* Samples into the files until SIGTERM or SIGINT; data is a struct ss_top_recording. */
int ss_top_record(void *data, int channel);

struct ss_top_guard {
	pid_t parent;
	struct ss_terminal terminal; /* as of before it was entered */
	int fd;			     /* of the terminal */
};

/* Restores the terminal if the parent is killed; data is a struct ss_top_guard. All signals must
   be blocked: SIGTTOU, too, since its process group is not in the foreground any more when it
   writes. (The other jobs cannot do it: they come and go.) */
int ss_top_guard_terminal(void *data, int channel);

struct ss_top_waits {
	pid_t pid;
	bool idle; /* also waits of threads without work */
	bool list; /* threads as snap shows them, in place of waits */
};

/* Writes what threads wait for, without stopping any; data is a struct ss_top_waits. */
int ss_top_find_waits(void *data, int channel);

struct ss_top_snapshot {
	pid_t pid;
	const char *path;
};

/* Writes a full snapshot to a file; data is a struct ss_top_snapshot. */
int ss_top_take_snapshot(void *data, int channel);

/* The rate at which the recorder samples, by what the samples cost. */
enum { SS_TOP_RATE = 99, SS_TOP_RATE_MIN = 5 };

/* Zeroed, there is no limit. */
struct ss_top_rate {
	uint64_t limit; /* samples per second; 0: none */
	unsigned cheap; /* measurements in succession that would allow for more */
};

/* Sets the limit by a measurement: CPU time of the recorder in wall_ns at the given rate. Returns
   whether the rate must be lower at once. */
bool ss_top_rate_limit(struct ss_top_rate *rate, uint64_t now, uint64_t cpu_ns,
		       uint64_t wall_ns);

/* From the recordings of the last seconds to the text of a screen, in the sandbox. */
struct ss_top_analysis {
	int files[SS_TOP_FILES]; /* opened for reading only; may grow meanwhile */
	uint64_t window_ns;	 /* samples that are older do not count */
	struct ss_top_view view;
	struct ss_file_requests requests;
	struct ss_interpret_options options; /* set by ss_top_analysis_init() */
	uint64_t threads;		     /* result: how many there are; untrusted */
};

/* target: as whose owner the sandbox runs. */
void ss_top_analysis_init(struct ss_top_analysis *analysis,
			  const struct ss_target *target);

/* *ret: the text, escaped, for free(); NULL if there are no samples yet. Errors: SYSTEM (the
   analysis failed), NO_MEMORY. */
struct ss_error *ss_top_analysis_run(struct ss_top_analysis *analysis, char **ret);
void ss_top_analysis_deinit(struct ss_top_analysis *analysis);

#endif
