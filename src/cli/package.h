/*
 * Which package has the debug symbols of a file, according to the database of dpkg, which
 * anybody may read.
 */
#ifndef SS_CLI_PACKAGE_H
#define SS_CLI_PACKAGE_H

/* Of the package that contains a file there is a list NAME[:ARCHITECTURE].list here. */
#define SS_PACKAGE_DATABASE "/var/lib/dpkg/info"

/* Returns the name of the package with the debug symbols of the file at path: "libc6-dbg",
   "nginx-dbgsym". Whether it exists is not known. NULL: no package contains the file, or no
   memory. The caller frees. */
char *ss_package_find_debug(const char *database, const char *path);

#endif
