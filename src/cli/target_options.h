/*
 * The processes that a command works on: PID[/TID,TID...] or NAME as arguments, and the
 * options -p, --name, --tree, --cgroup, --pid-file and --at.
 */
#ifndef SS_CLI_TARGET_OPTIONS_H
#define SS_CLI_TARGET_OPTIONS_H

#include <argp.h>
#include <regex.h>

#include "cli/target_argument.h"

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

/* The parser of -p, --name and the arguments that the command does not take itself; its input
   is a struct ss_target_options. */
extern const struct argp ss_target_argp;

/* The parser of the options that select several processes, likewise. */
extern const struct argp ss_targets_argp;

/* Adds an argument. Exits with EX_USAGE if it is invalid. */
void ss_target_options_add(const struct argp_state *state,
			   struct ss_target_options *options, const char *text);

/* How many arguments and options select processes. */
size_t ss_target_options_count(const struct ss_target_options *options);

/* Exits with EX_USAGE if there are none. */
void ss_target_options_require(const struct argp_state *state,
			       const struct ss_target_options *options);

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

#endif
