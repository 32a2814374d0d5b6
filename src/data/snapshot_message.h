/*
 * A snapshot as bytes, from the confined process that made it to its parent. The bytes are
 * untrusted, and of the same build of the library.
 */
#ifndef SS_DATA_SNAPSHOT_MESSAGE_H
#define SS_DATA_SNAPSHOT_MESSAGE_H

#include "base/error.h"
#include "data/snapshot.h"

/* Writes a snapshot, with those of related processes, to a file. Errors: SYSTEM, NO_MEMORY,
   INVALID (too large). */
struct ss_error *ss_snapshot_send(const struct ss_snapshot *snapshot, int fd);

/*
 * Reads the next snapshot from bytes at *at, which is moved beyond it. *memory is how much may be
 * allocated for it and those that follow; see ss_snapshot_memory(). It has what the public
 * accessors return; it cannot be symbolized or diagnosed any more. Every index is valid, every
 * text that is never NULL is there, threads of deadlocks wait. Errors: INVALID, NO_MEMORY.
 */
struct ss_error *ss_snapshot_receive(const uint8_t *bytes, size_t size, size_t *at,
				     uint64_t *memory, struct ss_snapshot **ret);

/* The memory that the snapshots in so many bytes may take: at most 4 GiB. */
uint64_t ss_snapshot_memory(size_t size);

#endif
