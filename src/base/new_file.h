/*
 * A file that appears under its name when it is complete, or not at all: it has no name until
 * then (O_TMPFILE), so nothing is left of it if the program is killed. Some file systems (NFS,
 * FUSE) have no such files. There it has another name meanwhile, "NAME.1234abcd.part".
 */
#ifndef SS_BASE_NEW_FILE_H
#define SS_BASE_NEW_FILE_H

#include <stdbool.h>

enum { SS_NEW_FILE_NAME_ROOM = 128 };

struct ss_new_file {
	int fd;				       /* open for reading and writing, or -1 */
	int directory;			       /* the caller's, also name */
	const char *name;		       /* without a slash */
	char temporary[SS_NEW_FILE_NAME_ROOM]; /* its name until then; "": none */
};

/* Creates a file that only its owner can access. Its fd is -1 on failure. 0, or a negative
   errno. */
int ss_new_file_create(int directory, const char *name, struct ss_new_file *ret);

/*
 * Gives it its name. replace: in the place of a file with that name, otherwise -EEXIST if
 * there is one; not for a link to the same file, which another process may have published.
 * 0, or a negative errno.
 */
int ss_new_file_publish(struct ss_new_file *file, bool replace);

/* Whether a file with that name is one that was not complete when its writer was killed, or
   is still being written. */
bool ss_new_file_is_temporary(const char *name);

/* Closes fd. Removes the file unless it was published. */
void ss_new_file_deinit(struct ss_new_file *file);

#endif
