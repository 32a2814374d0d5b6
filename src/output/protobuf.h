/*
 * The parts of the protocol buffers encoding that a profile needs: a field that is a
 * number, a string, a list of numbers, or a message. A message is a growing buffer; its
 * member failed is set if memory runs out. (protobuf-c would need a compiler and a run-time
 * library, both larger than this.)
 * https://protobuf.dev/programming-guides/encoding/
 */
#ifndef SS_OUTPUT_PROTOBUF_H
#define SS_OUTPUT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Omits the value 0, the default of a missing field. */
void ss_protobuf_number(struct ss_buffer *message, unsigned field, uint64_t value);
void ss_protobuf_text(struct ss_buffer *message, unsigned field, const char *text);
void ss_protobuf_numbers(struct ss_buffer *message, unsigned field,
			 const uint64_t *values, size_t count);
void ss_protobuf_message(struct ss_buffer *message, unsigned field,
			 const struct ss_buffer *inner);

#endif
