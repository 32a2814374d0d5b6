/*
 * Which packages have the debug symbols of files, according to the database of dpkg, which
 * anybody may read.
 */
#ifndef SS_CLI_PACKAGE_H
#define SS_CLI_PACKAGE_H

#include <stddef.h>
#include <stdint.h>

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

/* Changes whenever a package is installed, upgraded or removed. 0: there is no database. */
uint64_t ss_packages_version(const char *database);

/* Answers all queries at once, since reading the database takes milliseconds. */
void ss_packages_find_debug(const char *path, struct ss_package_query *queries,
			    size_t count);

#endif
