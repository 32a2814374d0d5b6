/*
 * Writes JSON piece by piece, so that memory does not grow with the document. The
 * output is ASCII only, without control characters that a terminal could interpret.
 *
 *	struct ss_json json = { .out = out };
 *
 *	ss_json_open(&json, NULL, '{');
 *	ss_json_text(&json, "name", thread->name);
 *	ss_json_open(&json, "frames", '[');
 *	ss_json_unsigned(&json, NULL, 7);
 *	ss_json_close(&json, ']');
 *	ss_json_close(&json, '}');
 *
 * key is NULL for the elements of an array. Keys are written as they are. Write errors are
 * left in ferror() of out. There is no library for this: jansson builds the whole document
 * in memory.
 */
#ifndef SS_OUTPUT_JSON_H
#define SS_OUTPUT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ss_json {
	FILE *out;
	bool has_previous; /* the next value follows another one */
	bool on_new_line;  /* the next value begins a line */
	/* For writers that shorten long documents: bytes, 0: no limit; and what was left out. */
	uint64_t max_size;
	uint64_t left_out;
};

/* Begins an object ('{') or array ('['), and ends it ('}' or ']'). */
void ss_json_open(struct ss_json *json, const char *key, char bracket);
void ss_json_close(struct ss_json *json, char bracket);

/* Begins a new line for the next value, for tools that work on lines. */
void ss_json_new_line(struct ss_json *json);

/* text may contain any bytes: an invalid byte becomes the four characters \xNN. NULL: null. */
void ss_json_text(struct ss_json *json, const char *key, const char *text);
void ss_json_signed(struct ss_json *json, const char *key, int64_t value);
void ss_json_unsigned(struct ss_json *json, const char *key, uint64_t value);
void ss_json_bool(struct ss_json *json, const char *key, bool value);
void ss_json_null(struct ss_json *json, const char *key);

/* A string such as "0x7f00": numbers of JSON are exact only up to 2^53. */
void ss_json_hex(struct ss_json *json, const char *key, uint64_t value);

/* The value if it is known, else null. */
void ss_json_signed_if(struct ss_json *json, const char *key, bool known, int64_t value);
void ss_json_hex_if(struct ss_json *json, const char *key, bool known, uint64_t value);

#endif
