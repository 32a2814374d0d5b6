/*
 * What the writers of pprof's format share: fields, messages and compression.
 */
#ifndef SS_REPORT_PPROF_H
#define SS_REPORT_PPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"

enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_TYPE,
};
enum { TYPE_KIND = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum {
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS,
	MAPPING_HAS_FILES,
	MAPPING_HAS_LINES,
	MAPPING_HAS_INLINES,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE, LINE_COLUMN };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

/*
 * A stream that compresses with gzip (RFC 1952), optionally encodes the result as base64
 * (RFC 4648), and writes it to another stream.
 */

/* Close the stream with fclose(), before out. Returns NULL without memory. Write errors of
   out are left in ferror(out). */
FILE *ss_gzip_open(FILE *out, bool base64);

/*
 * The parts of the protocol buffers encoding that a profile needs: a field that is a
 * number, a string, a list of numbers, or a message. A message is a growing buffer; its
 * member failed is set if memory runs out. (protobuf-c would need a compiler and a run-time
 * library, both larger than this.)
 * https://protobuf.dev/programming-guides/encoding/
 */

/* Omits the value 0, the default of a missing field. */
void ss_protobuf_number(struct ss_buffer *message, unsigned field, uint64_t value);
void ss_protobuf_text(struct ss_buffer *message, unsigned field, const char *text);
void ss_protobuf_numbers(struct ss_buffer *message, unsigned field,
			 const uint64_t *values, size_t count);
void ss_protobuf_message(struct ss_buffer *message, unsigned field,
			 const struct ss_buffer *inner);

#endif
