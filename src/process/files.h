/*
 * The bytes of modules: their files, opened so that a hostile target cannot redirect us
 * to other files; or target memory if there is no file. Runs after the release, in a child
 * with our privileges that is abandoned if it blocks (struct ss_opener): it opens and
 * copies, and parses nothing (see ss_module_identify()). Files of a local disk need no child.
 */
#ifndef SS_PROCESS_FILES_H
#define SS_PROCESS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "data/capture.h"
#include "process/process_memory.h"
#include "process/target.h"

/* Sets fd or bytes of the modules that copied stacks, registers or frames refer to, and
   the build-id if the kernel provides it. pub.problem says why there is no file.
   maps_fd: /proc/PID/maps of the captured memory, to check whether the process still
   has it. previous: the previous capture of a series, or NULL. False: there was nothing to
   open. */
bool ss_files_open(struct ss_capture *capture, const struct ss_capture *previous,
		   struct ss_target *target, const struct ss_process_memory *memory,
		   int maps_fd);

/* Does the same for the wanted modules, unless they are open already. */
bool ss_files_open_modules(struct ss_module_impl *const *modules, const bool *wanted,
			   size_t count, struct ss_target *target,
			   const struct ss_process_memory *memory, int maps_fd);

/*
 * The mapping at one address of a process, without reading all of its maps.
 */

struct ss_mapped {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* in the file */
	uint64_t inode;	 /* 0: of no file */
	uint64_t device; /* as ss_maps_parse() gives it */
};

/* maps_fd: /proc/PID/maps, open for reading. Returns 0 or an errno: ENOENT if nothing is
   mapped there, ESRCH if that memory is gone (the process ended, or called execve()),
   ENOTTY before Linux 6.11. */
int ss_mapped_query(int maps_fd, uint64_t address, struct ss_mapped *ret);

/* The kernel's limit for build-ids. */
enum { SS_MAPPED_BUILD_ID_MAX = 20 };

/* Stores the build-id of the file with this device and inode that is mapped at address; the
   kernel reads it. Returns its size; 0 if it has none, if another file is mapped there by now, or
   before Linux 6.11. */
size_t ss_mapped_build_id(int maps_fd, uint64_t address, uint64_t device, uint64_t inode,
			  uint8_t ret[SS_MAPPED_BUILD_ID_MAX]);

/*
 * The perf map of a target: /tmp/perf-PID.map, in which a JIT compiler lists its
 * functions (Linux, tools/perf/Documentation/jit-interface.txt). This finds, opens and
 * checks the file; symbolize/ reads it.
 */

/* The perf map of the target, with one reference: a regular file below its root that is
   not a link, belongs to the user of the target or root, and is not older than the
   process. NULL if there is none, or no memory. Not to be called during a freeze. */
struct ss_module_impl *ss_perfmap_of(const struct ss_target *target);

/* Sets capture->perf_map if the capture refers to code outside of files and the target
   has a perf map. Runs after the release. */
void ss_perfmap_open(struct ss_capture *capture, const struct ss_target *target);

/*
 * The modules that a capture refers to. Every return address is in a copied stack or
 * register, so modules without a pointer to them need not be opened.
 */

/* Sets referenced[i] if there is a pointer to capture->modules.items[i]. If the previous capture
   of a series has the same modules, threads that have the same stack in it are left out.
   previous: or NULL */
void ss_references_mark(const struct ss_capture *capture,
			const struct ss_capture *previous, bool *referenced);

/* Whether a word points to code outside of files. */
bool ss_references_find_jit(const struct ss_capture *capture);

/*
 * Opens files of the target in a child process. The server of a file system (FUSE, NFS)
 * may not respond, and then any call on its files may block for ever, close(2) and the end
 * of a process included. So the caller gets descriptors of local files only, and of
 * copies in memory of all others; a child that is blocked is abandoned.
 */

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
   this item, and was abandoned; or see child_only. It may clear wanted for other items. */
typedef void ss_opener_take(const struct ss_opener *opener, size_t item,
			    struct ss_opened *opened);

struct ss_opener {
	ss_opener_work *work;
	ss_opener_find *find_on_disk; /* or NULL */
	ss_opener_take *take;
	void *data;
	bool *wanted; /* by item; all are false afterwards */
	size_t count;
	bool child_only; /* work never runs in the caller: take gets NULL instead */
	int keep[SS_OPENER_KEEP_MAX]; /* descriptors that work uses; or -1 */
	/* Set by ss_opener_run(): */
	int socket;	   /* in the child; -1: there is no child */
	size_t files_left; /* that the caller can hold, apart from a reserve */
};

/* Runs work for each wanted item; if no child can be created, or it dies, in the caller, unless
   child_only. */
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
