/*
 * The recordings that a command reads: files, directories and standard input. Contents are not
 * looked at here, except for the first bytes.
 */
#ifndef SS_CLI_REPORT_FILES_H
#define SS_CLI_REPORT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"

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

#endif
