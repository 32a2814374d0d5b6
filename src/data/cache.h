/*
 * A directory with what symbolization found in the files of modules, one file for each of
 * them. This side may run with privileges: it knows which cache file belongs to which
 * module, and copies bytes, but never looks at them; the sandboxed child reads and checks
 * them.
 *
 * The name of a cache file says what its bytes are about: the user whose processes were
 * looked at, and the device, inode, size, times and build-id of the module. So a hostile
 * file that claims the build-id of another one has a cache file of its own; and if a
 * hostile file takes over the child, what that child hands back is used for processes of
 * the same user only, and only for files that were mapped in the process.
 *
 * The directory must belong to the effective user and be closed to others, and so must the
 * one that contains it, or there is no cache: root never uses the cache of another user.
 */
#ifndef SS_DATA_CACHE_H
#define SS_DATA_CACHE_H

#include "base/cleanup.h"
#include "data/pipeline.h"
#include "stacksnap.h"

struct ss_cache;

struct ss_cache_options {
	size_t size;	       /* sizeof(struct ss_cache_options) */
	const char *directory; /* NULL: stacksnap in $XDG_CACHE_HOME, or in ~/.cache */
	uint64_t max_bytes;    /* of all files; 0: 256 MiB. Then the oldest are removed */
};

/*
 * Opens a directory that keeps what ss_snapshot_symbolize() finds, for later processes:
 * for each file of a module, names, source lines and inlined calls of the addresses that
 * were looked up. A missing directory is created. Nothing is cached without this call.
 * Errors: DENIED (the directory, or the one that contains it, belongs to another user, or
 * others may write to it), SYSTEM, NO_MEMORY.
 */
struct ss_error *ss_cache_open(const struct ss_cache_options *options,
			       struct ss_cache **ret);
void ss_cache_close(struct ss_cache *cache);

/* Keeps what ss_session_save() wrote to the file fd, which is untrusted. What cannot be
   written is not kept. */
void ss_cache_store(struct ss_cache *cache, int fd);

SS_DEFINE_CLEANUP(struct ss_cache, ss_cache, ss_cache_close)

#endif
