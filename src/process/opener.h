/*
 * Opens files of the target in a child process. The server of a file system (FUSE, NFS)
 * may not respond, and then any call on its files may block for ever, close(2) and the end
 * of a process included. So the caller gets descriptors of local files only, and of
 * copies in memory of all others; a child that is blocked is abandoned.
 */
#ifndef SS_PROCESS_OPENER_H
#define SS_PROCESS_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { SS_OPENER_HEADER_MAX = 4096, SS_OPENER_KEEP_MAX = 8 };

/* What the child found. Zeroed, with both descriptors -1, before the child works. */
struct ss_opened {
	uint32_t item;
	uint32_t header_size;
	uint64_t image_size;
	bool copied; /* file is a copy in memory */
	bool unverified;
	struct stat status; /* of the file, not of its copy */
	char problem[96];
	uint8_t header[SS_OPENER_HEADER_MAX];
	int file;  /* -1: none */
	int image; /* a file in memory; -1: none */
};

struct ss_opener;

/* Runs in the child, in the order of the items. */
typedef void ss_opener_work(const struct ss_opener *opener, size_t item,
			    struct ss_opened *ret);
/* Runs in the caller. An O_PATH descriptor, if the file is on a disk: opening it waits for
   nothing, unless a program decides about that (fanotify(7)). It is opened in a thread, which costs
   less than the child, and by the child if that takes long. -1: the child has to. */
typedef int ss_opener_find(const struct ss_opener *opener, size_t item);
/* Runs in the caller, with the descriptors, which it may take. NULL: the child blocks on
   this item, and was abandoned. It may clear wanted for other items. */
typedef void ss_opener_take(const struct ss_opener *opener, size_t item,
			    struct ss_opened *opened);

struct ss_opener {
	ss_opener_work *work;
	ss_opener_find *find_on_disk; /* or NULL */
	ss_opener_take *take;
	void *data;
	bool *wanted; /* by item; all are false afterwards */
	size_t count;
	int keep[SS_OPENER_KEEP_MAX]; /* descriptors that work uses; or -1 */
	/* Set by ss_opener_run(): */
	int socket;	   /* in the child; -1: there is no child */
	size_t files_left; /* that the caller can hold, apart from a reserve */
};

/* Runs work for each wanted item; in the caller if no child can be created, or it dies. */
void ss_opener_run(struct ss_opener *opener);

/*
 * For work: turns an O_PATH descriptor into one for reading, if it is a regular file. That of
 * a file system that may not respond is copied, up to *left bytes. Sets file, copied and
 * status. 0, or an errno; EFBIG: it is too large to be copied.
 */
int ss_opener_open(const struct ss_opener *opener, int path_fd, uint64_t *left,
		   struct ss_opened *ret);

/* For work: puts bytes into a file in memory. Returns a descriptor; or -1 and errno. */
int ss_opener_put(const void *bytes, size_t size);

#endif
