/*
 * The build-id of an ELF image, in a file or as it is mapped in memory. The image is
 * untrusted input. Notes: System V gABI, chapter 5.
 */
#ifndef SS_ELF_BUILD_ID_H
#define SS_ELF_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads size bytes at a position. Returns the number of bytes read, or less than 0. */
typedef ssize_t ss_build_id_reader(void *data, uint64_t position, void *bytes,
				   size_t size);

enum ss_build_id_layout {
	SS_LAYOUT_FILE,	  /* positions are file offsets */
	SS_LAYOUT_MEMORY, /* positions are relative to the lowest mapped address */
};

/* Copies at most capacity bytes of the build-id to ret and returns their number. 0: there
   is no build-id, or no 64-bit ELF image of this byte order. */
size_t ss_build_id_find(ss_build_id_reader *reader, void *data,
			enum ss_build_id_layout layout, uint8_t *ret, size_t capacity);

/* The same for the notes of a segment or section. */
size_t ss_build_id_in_notes(const uint8_t *bytes, size_t size, uint8_t *ret,
			    size_t capacity);

#endif
