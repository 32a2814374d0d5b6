/*
 * The library's interpretation of captures (ss_interpret()) with the options of the command
 * line, and how its result is written.
 */
#ifndef SS_CLI_INTERPRET_H
#define SS_CLI_INTERPRET_H

#include <signal.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/targets.h"
#include "cli/failure.h"
#include "report/format.h"
#include "interpret/interpret.h"

/* What a command interprets. Zeroed but for what is set by the caller. */
struct ss_reading {
	const struct ss_options *options;
	const struct ss_selection_run *run; /* or NULL: all threads */
	/* The threads that the selected ones wait for are captured, too, but not shown */
	bool owners;
	struct ss_output *output;
	bool color;
	bool separate;	       /* another document precedes it */
	const sigset_t *until; /* a signal of these ends it; or NULL */
	struct ss_file_requests requests;
	struct ss_row_source rows;
	struct ss_phases phases;
	uint64_t max_output; /* bytes; 0: no limit */
	uint64_t period_ns;  /* of several captures that a confined format writes */
	const struct ss_format *format; /* in place of that of options; or NULL */
	bool privileged;		/* set: root would see no more */
	bool refused;			/* set: threads were only listed */
};

void ss_reading_deinit(struct ss_reading *reading);

/* The options of the command line, for the library. The reading must outlive *ret. */
void ss_reading_configure(struct ss_reading *reading, struct ss_interpret_options *ret);

/* Options to capture the selected threads of a process (NULL: all). The reading, the selection and
   *capture, which it sets, must outlive them. A refusal, if threads are only listed, is printed. */
struct ss_process_source_options ss_reading_source(struct ss_reading *reading,
						   struct ss_selection_run *selection,
						   struct ss_capture_options *capture);

/* Captures a process. If the selection of threads matches none, that is the error, even after
   another failure. list: as a last resort, threads are listed. */
struct ss_error *ss_reading_capture(struct ss_reading *reading,
				    struct ss_selection_run *selection, bool list,
				    struct ss_process_source **ret);

/* The same for the first of several captures, whose stacks are completed. */
struct ss_error *ss_reading_begin_series(struct ss_reading *reading,
					 struct ss_selection_run *selection,
					 struct ss_interpret_options *options,
					 struct ss_process_source **ret);

/* Interprets; prints messages of the confined process. */
struct ss_error *ss_reading_interpret(const struct ss_reading *reading,
				      struct ss_source *source,
				      const struct ss_interpret_options *options,
				      struct ss_interpretation **ret);

/* What a format gets besides the data. */
struct ss_format_options
ss_reading_format_options(const struct ss_reading *reading,
			  const struct ss_interpretation *result);

/* Writes to standard error what is missing in snapshots of one process, and with --verbose the
   times of phases (or NULL). Returns whether anything is. */
bool ss_reading_report(const struct ss_reading *reading,
		       const struct ss_snapshot *const *snapshots, size_t count,
		       const char *problem, const struct ss_phases *phases);

/* A stream to write a document to, whose control characters are escaped. */
struct ss_error *ss_reading_open(FILE **ret);
/* Closes it, and copies the document to the output. Returns error if there is one. */
struct ss_error *ss_reading_close(const struct ss_reading *reading, FILE *out,
				  struct ss_error *error);

/* Copies what the confined process has written to the output. */
struct ss_error *ss_reading_copy(const struct ss_reading *reading,
				 const struct ss_interpretation *result);

/* Interprets the one capture of a source, writes it in the format of the options and, to standard
   error, what is missing; *ret says whether anything is. Errors: NO_PROCESS (no threads),
   SYSTEM (the output cannot be written), INTERRUPTED, NO_MEMORY. */
struct ss_error *ss_reading_show(struct ss_reading *reading, struct ss_source *source,
				 const struct ss_interpret_options *options, bool *ret);

/* The same for a live process: ss_snapshot_take() with the options of the command line. */
struct ss_error *ss_reading_snapshot(struct ss_reading *reading,
				     struct ss_selection_run *selection, bool *ret);

/* If error says that a process may not be observed, and the format has snapshots, lists its threads, as
   ss_reading_snapshot() does. Returns error. */
struct ss_error *ss_reading_list(struct ss_reading *reading, pid_t pid,
				 struct ss_error *error);

/* How to get what is missing in a snapshot, for text: see ss_advice_new(). NULL: nothing is. privileged:
   the caller of the sandbox is root. */
char *ss_reading_advice(const struct ss_options *options, bool privileged,
			const struct ss_snapshot *snapshot, struct ss_session *session);

/*
 * A series of snapshots of one process: --interval, --count and --each. All are captured
 * first, and then analyzed together, so that the maps, files and names of modules are
 * read once.
 */

struct ss_series_options {
	struct ss_common_options *common; /* set by the command */
	uint64_t period_ns;		  /* 0: a single snapshot */
	size_t count; /* 0: until a signal, or the end of the process */
	bool each;    /* print the snapshots apart */
};

/* The input is a struct ss_series_options. */
extern const struct ss_option_group ss_series_group;

struct ss_series_job {
	const struct ss_options *options;
	const struct ss_series_options *series;
	const struct ss_selection_run *run; /* as it is before the first snapshot */
	struct ss_debuginfod *debuginfod;   /* or NULL */
	struct ss_output *output;
};

/* Captures until the count is reached, the process ends, or SIGINT, SIGTERM or SIGHUP
   arrives, and prints what there is; *ret says whether anything is missing. Errors: those
   of ss_snap_job_take(); SYSTEM, NO_MEMORY. */
struct ss_error *ss_series_run(const struct ss_series_job *series, bool *ret);

/*
 * Work on something else than captures, such as recordings, which is confined in the same way:
 * ss_interpret_work() with these options, to which the command adds limits. symbols: NULL, if
 * no names are looked up; files: NULL, if none are needed.
 */
struct ss_interpret_options ss_work_options(const struct ss_symbol_options *symbols,
					    struct ss_file_requests *files, void *data);

struct ss_error *ss_work_run(const struct ss_interpret_options *options,
			     ss_sandbox_work *work, struct ss_sandbox_result **ret);

/* Copies what the work has written to output (unless that is NULL), and its messages to standard
   error. Errors: SYSTEM (the output cannot be written), NO_MEMORY. */
struct ss_error *ss_work_copy(const struct ss_sandbox_result *result,
			      const struct ss_common_options *common, bool color,
			      struct ss_output *output);

/* For the work: the output of an attempt as a stream. Errors: NO_MEMORY. */
struct ss_error *ss_stream_open(int fd, FILE **ret);
/* Returns error if there is one. Errors: SYSTEM (writing failed). */
struct ss_error *ss_stream_close(FILE *out, struct ss_error *error);

/* NULL: it is not wanted. Errors: see ss_debuginfod_new(). */
struct ss_error *ss_debuginfod_open(const struct ss_symbol_options *symbols,
				    struct ss_debuginfod **ret);

#endif
