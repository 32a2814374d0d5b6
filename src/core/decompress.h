/*
 * A compressed file as a stream of bytes: zstd, xz, lz4 (its frame format) and gzip, also
 * several of them one after the other. The file is untrusted: what it decompresses to can
 * be endless, so the caller decides when to stop.
 */
#ifndef SS_CORE_DECOMPRESS_H
#define SS_CORE_DECOMPRESS_H

#include <stddef.h>

#include "base/error.h"

struct ss_decompressor;

/* *ret is NULL if the bytes of fd are not compressed. fd stays the caller's and must live as
   long. Errors: UNSUPPORTED (built without that format), NO_MEMORY. */
struct ss_error *ss_decompressor_new(int fd, struct ss_decompressor **ret);
void ss_decompressor_free(struct ss_decompressor *d);

/* The next bytes, at most size. 0: the end, also of a truncated or damaged file. */
size_t ss_decompressor_read(struct ss_decompressor *d, void *bytes, size_t size);

/* Begins again. False without memory. */
bool ss_decompressor_rewind(struct ss_decompressor *d);

SS_DEFINE_CLEANUP(struct ss_decompressor, ss_decompressor, ss_decompressor_free)

#endif
