/*
 * The processes and threads that a command works on.
 */
#ifndef SS_CLI_TARGETS_H
#define SS_CLI_TARGETS_H

#include <regex.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/vector.h"
#include "cli/command.h"
#include "stacksnap.h"

/* One target argument of the command line: PID, or PID/TID,TID... */

struct ss_target_argument {
	pid_t pid;
	SS_VECTOR(pid_t) tids; /* empty: all threads. Owned. */
};

/* Parses text. On failure *ret is unchanged. Errors: INVALID,
   NO_MEMORY. */
struct ss_error *ss_target_argument_parse(const char *text,
					  struct ss_target_argument *ret);
void ss_target_argument_deinit(struct ss_target_argument *argument);

/*
 * The processes that a command works on: PID[/TID,TID...] or NAME as arguments, and the
 * options -p, --name, --tree, --cgroup, --pid-file and --at.
 */

/* A process given by name. */
struct ss_target_name {
	const char *text; /* in argv */
	bool is_pattern;
	regex_t pattern; /* if is_pattern */
};

struct ss_target_options {
	bool single;	   /* set by the command: it works on one process */
	bool no_threads;   /* likewise: it works on all threads of a process */
	bool tree;	   /* with the processes that they have started */
	uint64_t at_ns;	   /* CLOCK_REALTIME: when to begin; 0: at once */
	size_t unresolved; /* patterns, cgroups and files that select no process */
	SS_VECTOR(struct ss_target_argument) targets;
	SS_VECTOR(struct ss_target_name) names;
	SS_VECTOR(const char *) cgroups;   /* paths, in argv */
	SS_VECTOR(const char *) pid_files; /* likewise */
};

/* -p, --name and the arguments that the command does not take itself; the input is a struct
   ss_target_options. */
extern const struct ss_option_group ss_target_group;

/* The options that select several processes, with the same input. */
extern const struct ss_option_group ss_targets_group;

/* Adds an argument. Exits with EX_USAGE if it is invalid. */
void ss_target_options_add(struct ss_target_options *options, const char *text);

/* How many arguments and options select processes. */
size_t ss_target_options_count(const struct ss_target_options *options);

/* Exits with EX_USAGE if there are none. */
void ss_target_options_require(const struct ss_target_options *options);

/* Finds the processes that are not given by pid, and adds them to the targets, each once.
   Prints a message for each argument that selects none, or several where one is expected.
   False: nothing is to be done. */
bool ss_target_options_resolve(struct ss_target_options *options);

/* Waits until the time of --at. */
void ss_target_options_wait(const struct ss_target_options *options);

/* Reads a pid from a file. Errors: NO_PROCESS (the file is missing or empty), INVALID,
   SYSTEM, NO_MEMORY. */
struct ss_error *ss_target_options_read_pid(const char *path, pid_t *ret);

/* For a command that works on one process, once it is resolved: its pid; 0: none is given. */
pid_t ss_target_options_pid(const struct ss_target_options *options);

void ss_target_options_deinit(struct ss_target_options *options);

/* Selects threads by id, by name and by state. */

/* The options -t and --state, for all targets. */
struct ss_selection {
	SS_VECTOR(pid_t) tids;
	SS_VECTOR(regex_t) patterns;
	const char *states; /* letters, in argv; NULL: any */
};

/* The input is a struct ss_selection. */
extern const struct ss_option_group ss_selection_group;

void ss_selection_deinit(struct ss_selection *selection);

/* The selection applied to one target. */
struct ss_selection_run {
	const struct ss_selection *selection;
	const struct ss_target_argument *argument;
	size_t seen;  /* calls of the filter */
	size_t named; /* calls for a thread that is selected by id or name, or all are */
};

/* Whether there is any restriction. */
bool ss_selection_run_is_active(const struct ss_selection_run *run);

/* Whether threads are selected by their names. */
bool ss_selection_run_has_names(const struct ss_selection_run *run);

/* Whether "none" is an answer: which threads are in these states? */
bool ss_selection_run_may_be_empty(const struct ss_selection_run *run);

/* Whether there were threads, but none of the ids and names that were selected. */
bool ss_selection_run_is_empty(const struct ss_selection_run *run);

/* A ss_thread_filter; data is a struct ss_selection_run. */
bool ss_selection_run_filter(void *data, pid_t tid, const char *name, char state);

/* Reports thread ids that are not in the snapshot. Returns their number. */
size_t ss_selection_run_report(const struct ss_selection_run *run,
			       const struct ss_snapshot *snapshot);

#endif
