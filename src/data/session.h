/*
 * A session: options for many captures, and one slot for each room that keeps state
 * between them. Each room defines the contents of its slot.
 */
#ifndef SS_DATA_SESSION_H
#define SS_DATA_SESSION_H

#include <stdbool.h>

#include "base/vector.h"
#include "data/pipeline.h"
#include "stacksnap.h"

/* A second of work. A hundred times the largest programs of Go. */
#define SS_SESSION_FILE_BYTES ((uint64_t)4 << 30)

struct ss_session_slot {
	void *data;
	void (*free)(void *data);
	/* Writes to a file what a cache is to keep; or NULL. See ss_session_save(). */
	void (*save)(void *data, int fd);
};

/* Precedes each item that ss_session_save() writes. */
struct ss_saved_item {
	uint32_t cache_id; /* of the module */
	uint32_t size;	   /* bytes that follow */
};

/* Words of a stack that unwinding has read. */
struct ss_words_read {
	SS_VECTOR(uint64_t) addresses; /* words of the first copy of the stack */
	bool others; /* it has read other memory, or memory that was not copied */
	bool failed; /* no memory */
};

/*
 * Called for a file that is not on this machine: the debug file of a build (debug), or the
 * module itself. build_id is in lower-case hexadecimal. Returns a file descriptor open for
 * reading, which the library then owns, or -1. A file of another build is not used.
 */
typedef int ss_file_finder(void *data, const char *build_id, bool debug);

/*
 * Called for a file that this process may not open: errno is EACCES, or EPERM in a sandbox that
 * may open none. in_sysroot: path is below the sysroot. Returns a file descriptor open for
 * reading, which the library then owns, or -1. A process with more rights should ask another
 * sandboxed child, which has read nothing else, whether ss_file_matches(): then it gives away
 * no file that was not known before.
 */
typedef int ss_file_opener(void *data, const char *path, bool in_sysroot,
			   const char *proof);

/* Where a session gets files that it cannot open itself. */
struct ss_session_files {
	ss_file_finder *find; /* or NULL */
	ss_file_opener *open; /* NULL: such files are not read */
	void *data;
};

struct ss_session {
	char *debug_dir; /* never NULL (default: "/usr/lib/debug") */
	int sysroot;	 /* an open directory, or -1 */
	/* For a caller that interprets in a child process: the session stores here the index of
	   the module (for ss_snapshot_module()) that it is about to read. In shared memory it
	   tells the parent which module was fatal. Large debug sections are then mapped, not
	   read: if their file is truncated meanwhile, SIGBUS kills the child. Or NULL. Not owned,
	   as the next one. */
	volatile int32_t *module_at;
	const int32_t *skip_modules; /* indexes of modules that are not read */
	size_t skip_count;
	struct ss_session_files files;
	struct ss_words_read *words; /* set by unwinding; NULL: not wanted */
	uint64_t file_bytes; /* of files without a build-id that may still be hashed */
	struct ss_session_slot unwind;
	struct ss_session_slot symbolize;
	struct ss_session_slot runtime;
	struct ss_session_slot module_symbols;
	struct ss_session_slot python_codes;
};

/* Call this before reading bytes of a module (-1: no module). */
static inline void ss_session_note(const struct ss_session *session, int32_t module)
{
	if (session->module_at)
		*session->module_at = module;
}

/* Writes to an empty file what the session found and a cache should keep: for each module
   a struct ss_saved_item, which is followed by bytes. Write errors cut the file off. */
void ss_session_save(struct ss_session *session, int fd);

/* Whether the bytes of the module must not be read. */
bool ss_session_skips(const struct ss_session *session, int32_t module);

#endif
