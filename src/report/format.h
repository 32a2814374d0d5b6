/*
 * An output format is one const struct ss_format: data goes in, bytes come out. A format
 * does not access the process, keeps no state between calls and does not print to stderr.
 *
 * To add a format:
 *   1. Write src/report/NAME.c with the functions and "const struct ss_format
 *      ss_format_NAME". A format that writes both snapshots and profiles shares its helpers
 *      between them.
 *   2. Declare it below and add it to the table in format.c. --help, the completions and
 *      the error messages are made from that table.
 *   3. Text that the target controls goes through ss_escape_write() or ss_json_text(), a
 *      frame is named by ss_label_new(), or already in the profile.
 *   4. Describe it in man/stacksnap.1, test it in tests/unit/test_NAME.c and, if it writes
 *      profiles, in tests/report/test_formats.py. tests/fuzz/fuzz_report.c picks up every
 *      format of a profile by itself.
 */
#ifndef SS_REPORT_FORMAT_H
#define SS_REPORT_FORMAT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "report/profile.h"
#include "stacksnap.h"
#include "data/heap.h"
#include "diagnose/progress.h"

/* What the format "rows" (one JSON object a line, see stacksnap-rows(5)) says besides the snapshot. */
struct ss_row_options {
	const char *batch;
	const char *boot_id;	   /* of this machine; "": not known */
	const char *const *labels; /* "KEY=VALUE" */
	size_t label_count;
};

/* The kinds of input of a format. */
enum ss_format_input {
	SS_FORMAT_SNAPSHOT, /* snap */
	SS_FORMAT_HANG,	    /* hang: a snapshot, and the progress of its threads */
	SS_FORMAT_PROFILE,  /* report: recordings, merged */
	SS_FORMAT_SERIES,   /* snap --interval: snapshots of one process, merged */
	SS_FORMAT_DIFF,	    /* diff: two snapshots */
	SS_FORMAT_HEAP,	    /* heap: two censuses of one process */
	SS_FORMAT_TOTALS,   /* trace: a profile of stacks with values */
};

enum ss_snapshots_kind {
	SS_SNAPSHOTS_SERIES,	/* of one process, in order of time */
	SS_SNAPSHOTS_ONE,	/* one snapshot */
	SS_SNAPSHOTS_PROCESSES, /* one of each of several processes, of which functions
				   are equal only in the same module */
};

/* At least one snapshot. */
struct ss_snapshots {
	const struct ss_snapshot *const *items;
	size_t count;
	enum ss_snapshots_kind kind;
	uint64_t period_ns;
	const char *const *command_lines; /* of processes; each may be NULL */
};

enum { SS_FORMAT_TASK_GROUPS = 20 }; /* by default */

struct ss_format_options {
	size_t size;   /* sizeof(struct ss_format_options) */
	bool raw;      /* module and offset instead of names */
	bool verbose;  /* text: no limits, nothing shortened */
	bool color;    /* text: use terminal colours */
	bool no_group; /* text of a snapshot: do not merge equal stacks */
	bool all;      /* text: idle threads, too */
	bool native;   /* text: all frames of interpreters and virtual machines */
	/* text: how many groups of the tasks of a runtime to show. 0: not those of several
	   snapshots, in JSON, too */
	size_t groups[SS_TASK_KINDS];
	size_t max_stack;    /* limit of the capture: bytes of each stack; 0: default */
	const char *problem; /* one line: what went wrong in the analysis; or NULL */
	/* recording: functions that wait, see ss_wait_table_added(); or NULL */
	const char *wait_functions;
	const char *advice; /* text: of ss_advice_new(), or NULL */
	bool environment;   /* minidump: with environment and command line */
	bool strict;	    /* text: as in ss_missing_count() */
	/* What the snapshot was made from, or NULL. */
	const struct ss_capture *capture;
	const struct ss_row_options *row_options; /* rows: or NULL */
	/* JSON of a snapshot: the frames of equal stacks once, and nothing more after so many
	   bytes. 0: everything. */
	uint64_t max_size;
	double threshold; /* text of a profile: omit calls below this percentage */
	unsigned rows;	  /* text of a profile: limit of each table */
};

/*
 * Writes one document. Errors: NO_MEMORY; the format "recording" also SYSTEM. Write errors
 * are left in ferror() of out, which the caller checks.
 */
typedef struct ss_error *ss_format_write_snapshot(const struct ss_snapshot *snapshot,
						  const struct ss_format_options *options,
						  FILE *out);
/* progress compares snapshot, the last one, with those before it. */
typedef struct ss_error *ss_format_write_hang(const struct ss_snapshot *snapshot,
					      const struct ss_progress *progress,
					      const struct ss_format_options *options,
					      FILE *out);
typedef struct ss_error *ss_format_write_profile(const struct ss_profile *profile,
						 const struct ss_format_options *options,
						 FILE *out);

typedef struct ss_error *
ss_format_write_snapshots(const struct ss_snapshots *snapshots,
			  const struct ss_format_options *options, FILE *out);

struct ss_diff_input; /* report/diff.h */
typedef struct ss_error *ss_format_write_diff(const struct ss_diff_input *input,
					      const struct ss_format_options *options,
					      FILE *out);

/* Two censuses of a heap, one after the other. */
struct ss_heap_input {
	const struct ss_heap *before;
	const struct ss_heap *heap; /* the second one, which is shown */
	uint64_t read_ns;	    /* how long that took */
	unsigned sizes;		    /* rows to show, 0: all */
	unsigned classes;
};
typedef struct ss_error *ss_format_write_heap(const struct ss_heap_input *input,
					      const struct ss_format_options *options,
					      FILE *out);

struct ss_format {
	const char *name;
	const char *description; /* one line for --help */
	const char *separator;	 /* between two snapshots; NULL: nothing */
	bool binary;		 /* never written to a terminal */
	bool single;		 /* one snapshot per file */
	bool unsymbolized;	 /* snapshots need no names of functions */
	bool native;		 /* of native frames only: none may be left out */
	bool confined;		 /* needs the capture, or files of its modules */
	bool explains;		 /* contains the reasons why something is missing */
	bool merges_processes;	 /* with write_snapshots; else one after the other */
	/* NULL if the format does not support this input. */
	ss_format_write_snapshot *write_snapshot;
	ss_format_write_hang *write_hang;
	ss_format_write_profile *write_profile;
	/* Two sets of recordings: see struct ss_profile_recording. */
	ss_format_write_profile *write_profile_diff;
	bool unfolded; /* of profiles: as in ss_load_options */
	bool totals;   /* with write_profile: also stacks with values */
	/* Formats with write_profile alone get a series as a recording. */
	ss_format_write_snapshots *write_snapshots;
	ss_format_write_diff *write_diff;
	ss_format_write_heap *write_heap;
};

extern const struct ss_format ss_format_text;
extern const struct ss_format ss_format_json;
extern const struct ss_format ss_format_brief;
extern const struct ss_format ss_format_folded;
extern const struct ss_format ss_format_gdb;
extern const struct ss_format ss_format_eu;
extern const struct ss_format ss_format_dot;
extern const struct ss_format ss_format_recording;
extern const struct ss_format ss_format_minidump;
extern const struct ss_format ss_format_satyr;
extern const struct ss_format ss_format_apport;
extern const struct ss_format ss_format_rows;
extern const struct ss_format ss_format_html;
extern const struct ss_format ss_format_speedscope;
extern const struct ss_format ss_format_pprof;
extern const struct ss_format ss_format_perf;

/* The formats that write this input, the default first; NULL after the last one. */
const struct ss_format *ss_format_at(enum ss_format_input input, size_t index);

/* The format of that name, or NULL if there is none that writes this input. */
const struct ss_format *ss_format_find(enum ss_format_input input, const char *name);

/* Writes the names, with separator between them. */
void ss_format_write_names(enum ss_format_input input, const char *separator, FILE *out);

/* Writes "Formats:" and one line for each format, for --help. */
void ss_format_write_help(enum ss_format_input input, FILE *out);

/* Writes the row of a process that could not be captured. host may be NULL. */
void ss_rows_write_failure(const struct ss_row_options *options, const char *host,
			   pid_t pid, uint64_t time_ns, const char *problem, FILE *out);

/* Writes the row of table "frames" for the thread with that index, which has the calls at one
   place, of a symbolized snapshot. False, and nothing is written, without a name. */
bool ss_rows_write_names(const struct ss_snapshot *snapshot, size_t index, const char *id,
			 FILE *out);

#endif
