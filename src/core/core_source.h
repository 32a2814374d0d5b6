/*
 * The bytes of a core file at any offset, also if the file is compressed.
 *
 * The contents of a compressed file are not stored: what is needed is announced and collected
 * in one pass, and the rest is discarded. So a core file of any size needs neither disk space
 * nor much memory. The beginning, where headers and notes are, needs no announcement before
 * the first pass.
 */
#ifndef SS_CORE_CORE_SOURCE_H
#define SS_CORE_CORE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct ss_core_source;

/* Owns fd, also after an error. Errors: UNSUPPORTED, NO_MEMORY. */
struct ss_error *ss_core_source_new(int fd, struct ss_core_source **ret);
void ss_core_source_free(struct ss_core_source *source);

bool ss_core_source_is_compressed(const struct ss_core_source *source);

/* The size of the core file; UINT64_MAX: not known yet, because no pass has come to the end
   of a compressed file. */
uint64_t ss_core_source_size(const struct ss_core_source *source);

/* Copies a prefix of the size bytes at offset. Returns its length, or a negative errno. */
ssize_t ss_core_source_read(struct ss_core_source *source, void *bytes, size_t size,
			    uint64_t offset);

/* Announces that size bytes at offset will be read. False without memory. */
bool ss_core_source_want(struct ss_core_source *source, uint64_t offset, uint64_t size);

/* Collects what was announced, up to max bytes. False without memory. */
bool ss_core_source_fetch(struct ss_core_source *source, uint64_t max);

SS_DEFINE_CLEANUP(struct ss_core_source, ss_core_source, ss_core_source_free)

#endif
