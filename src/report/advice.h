/*
 * How to get what a snapshot for people does not show.
 */
#ifndef SS_REPORT_ADVICE_H
#define SS_REPORT_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "stacksnap.h"

/*
 * Which packages have the debug symbols of files, according to the database of dpkg, which
 * anybody may read.
 */

/* The file "status" has an entry for each package, and "info" a list of its files:
   NAME[:ARCHITECTURE].list */
#define SS_PACKAGE_DATABASE "/var/lib/dpkg"

struct ss_package_query {
	const char *path; /* of a file; or "", which has no package */
	/* Result, NULL before: the name of the package with the debug symbols of the file:
	   "libc6-dbg", "nginx-dbgsym". Whether it exists is not known. NULL: no package
	   contains the file, or no memory. The caller frees. */
	char *package;
};

/* Answers all queries at once, since reading the database takes milliseconds. */
void ss_packages_find_debug(const char *path, struct ss_package_query *queries,
			    size_t count);

/* How to get what a snapshot for people does not show. */

struct ss_advice_options {
	bool privileged; /* root would see no more */
	bool debuginfod; /* --debuginfod was given */
	bool packages;	 /* files are those of this machine's packages */
	/* Of ss_snapshot_symbolize(), to keep what was found; or NULL. */
	struct ss_session *session;
};

/* Returns missing names with their packages or build-ids, and what root would see, for
   ss_advice_write(). NULL: nothing is missing, or no memory. The caller frees. */
char *ss_advice_new(const struct ss_snapshot *snapshot,
		    const struct ss_advice_options *options);

/* Writes a line without its end, escaped: what is missing. The text may be that of several
   snapshots, one after the other: what they have in common is written once. */
void ss_advice_write(const char *items, FILE *out);

#endif
