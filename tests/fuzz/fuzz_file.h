/*
 * A recording out of made-up bytes. They are the file behind the file's header; checksums
 * are made right, or little would ever be read.
 */
#ifndef SS_FUZZ_FILE_H
#define SS_FUZZ_FILE_H

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "fuzz.h"
#include "record/bytes.h"
#include "record/format.h"

enum { FUZZ_FILE_MAX = 1 << 16 };

/* Puts the checksum of each chunk right, as far as sizes lead through the file. */
static inline void fuzz_file_repair(uint8_t *bytes, size_t size)
{
	size_t at = SS_FILE_HEADER_SIZE;

	while (size - at >= SS_CHUNK_HEADER_SIZE) {
		size_t stored = ss_fixed_get(bytes + at + 8, 4);
		uint8_t *data = bytes + at + SS_CHUNK_HEADER_SIZE;
		if (stored > size - at - SS_CHUNK_HEADER_SIZE)
			return;
		uint64_t sum = XXH3_64bits_withSeed(
			data, stored, XXH3_64bits(bytes + at, SS_CHUNK_CHECKED));
		memcpy(bytes + at + SS_CHUNK_CHECKED, &sum, sizeof(sum));
		at += SS_CHUNK_HEADER_SIZE + stored;
	}
}

/* NULL: it is none. */
static inline struct ss_recording *fuzz_file_open(const uint8_t *data, size_t size)
{
	static uint8_t file[SS_FILE_HEADER_SIZE + FUZZ_FILE_MAX] = SS_FORMAT_MAGIC
		"\1\0\0\0\4\3\2\1";
	struct ss_recording *recording = NULL;

	if (size > FUZZ_FILE_MAX)
		return NULL;
	memcpy(file + SS_FILE_HEADER_SIZE, data, size);
	fuzz_file_repair(file, SS_FILE_HEADER_SIZE + size);
	int fd = memfd_create("recording", MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (write(fd, file, SS_FILE_HEADER_SIZE + size) < 0) {
		(void)close(fd); /* read-only from now on */
		return NULL;
	}
	ss_error_free(ss_recording_open_fd(fd, &recording));
	return recording;
}

#endif
