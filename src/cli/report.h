/*
 * Recordings: the files that a command reads, and what "stacksnap report" makes of them.
 */
#ifndef SS_CLI_REPORT_H
#define SS_CLI_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"
#include "cli/options.h"
#include "cli/targets.h"
#include "cli/arguments.h"
#include "diagnose/wait_table.h"
#include "interpret/interpret.h"

/*
 * The recordings that a command reads: files, directories and standard input. Contents are not
 * looked at here, except for the first bytes.
 */

/* A file with one or more recordings. */
struct ss_report_file {
	char *path;	 /* owned; for messages */
	int fd;		 /* owned; -1: it is in the copy */
	uint64_t offset; /* in the copy */
	uint64_t size;
	unsigned set; /* number of the argument that led to it */
};

/* A zeroed struct has none. */
struct ss_report_files {
	SS_VECTOR(struct ss_report_file) items;
	bool has_copy;
	/* A file without a name: standard input, and files for which there are no more
	   descriptors */
	int copy;
	int copy_writer; /* the sandbox keeps no file that can be written to */
	uint64_t copy_size;
	unsigned set; /* of files that are opened next */
	bool missing; /* a file could not be opened; a warning said so */
};

void ss_report_files_deinit(struct ss_report_files *files);

/*
 * Opens a recording without reading it. "-" is standard input. Of a directory and those below,
 * opens the files that begin like a recording, in the order of their names, without following
 * links; possibly none. Errors: INVALID (neither), NO_PROCESS, SYSTEM, DENIED, NO_MEMORY.
 */
struct ss_error *ss_report_files_open(struct ss_report_files *files, const char *path);

/* Adds a recording that is open for reading; fd is owned, also after an error. name is for
   messages. Errors: INVALID (fd is -1, or not a regular file), NO_MEMORY. */
struct ss_error *ss_report_files_add(struct ss_report_files *files, int fd,
				     const char *name);

/* A new descriptor of the file; -1, with errno. */
int ss_report_files_duplicate(const struct ss_report_files *files,
			      const struct ss_report_file *file);

/* The options of "stacksnap report". */

struct ss_report_arguments {
	struct ss_common_options common;
	struct ss_time_argument from;
	struct ss_time_argument to;
	struct ss_selection selection; /* threads and states */
	SS_VECTOR(regex_t) modules;    /* empty: all */
	struct ss_symbol_options symbols;
	struct ss_wait_table *waits; /* owned; functions that wait, or NULL */
	unsigned threshold_percent;
	unsigned rows;
	bool by_time; /* --weight=time */
	struct ss_row_arguments labels;
	bool by_host;
	const char *by_label;	       /* key, "": all; or NULL */
	bool diff;		       /* of two arguments */
	bool native;		       /* show the native frames of interpreters, too */
	SS_VECTOR(const char *) files; /* in argv */
};

void ss_report_arguments_init(struct ss_report_arguments *arguments);
void ss_report_arguments_deinit(struct ss_report_arguments *arguments);

/*
 * From recordings to what "stacksnap report" prints: reading, symbolization, merging and
 * output, in the sandbox.
 */

struct ss_report_analysis {
	const struct ss_report_arguments *arguments;
	struct ss_report_files files;
	struct ss_file_requests requests;
	struct ss_output *output; /* not owned; NULL: the one that the arguments name */
};

void ss_report_analysis_deinit(struct ss_report_analysis *analysis);

/* Writes the report to the output and, to standard error, what is
   missing; *ret is an enum ss_exit_status. Errors: INVALID (the output exists), SYSTEM, DENIED,
   NO_MEMORY. */
struct ss_error *ss_report_analysis_run(struct ss_report_analysis *analysis, int *ret);

#endif
