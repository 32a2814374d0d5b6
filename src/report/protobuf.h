/*
 * The four things of the protocol buffers encoding that a profile is made of: a field
 * that is a number, text, a list of numbers, or a message. (A compiler for the
 * description of messages, and its run time, would be more than all of this.)
 * https://protobuf.dev/programming-guides/encoding/
 */
#ifndef SS_REPORT_PROTOBUF_H
#define SS_REPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Grows; bytes[0..size) is what was put so far. */
struct ss_protobuf {
	uint8_t *bytes;
	size_t size;
	size_t capacity;
	bool broken; /* no memory: nothing more is put */
};

/* A number that is 0 is left out: it is what a reader takes for one that is not there. */
void ss_protobuf_number(struct ss_protobuf *message, unsigned field, uint64_t value);
void ss_protobuf_text(struct ss_protobuf *message, unsigned field, const char *text);
void ss_protobuf_numbers(struct ss_protobuf *message, unsigned field,
			 const uint64_t *values, size_t count);
void ss_protobuf_message(struct ss_protobuf *message, unsigned field,
			 const struct ss_protobuf *inner);

void ss_protobuf_deinit(struct ss_protobuf *message);

#define _cleanup_protobuf_ __attribute__((cleanup(ss_protobuf_deinit)))

#endif
