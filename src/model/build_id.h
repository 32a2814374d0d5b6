/*
 * The build-id of an ELF image, of a file or as it is mapped in memory. Follows the
 * gABI's note format; every length is checked, for the image may be anybody's.
 */
#ifndef SS_MODEL_BUILD_ID_H
#define SS_MODEL_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads size bytes at a position; the count read, or negative. */
typedef ssize_t ss_build_id_reader(void *data, uint64_t position, void *bytes,
				   size_t size);

enum ss_build_id_layout {
	SS_LAYOUT_FILE,	  /* positions are file offsets */
	SS_LAYOUT_MEMORY, /* positions count from the lowest mapped address */
};

/* Finds the build-id, at most capacity bytes of it. Its size; 0: there is none, or it
   is no 64-bit ELF image of this byte order. */
size_t ss_build_id_find(ss_build_id_reader *reader, void *data,
			enum ss_build_id_layout layout, uint8_t *ret, size_t capacity);

#endif
