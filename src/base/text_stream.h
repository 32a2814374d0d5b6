/*
 * A stream that collects text in memory.
 */
#ifndef SS_BASE_TEXT_STREAM_H
#define SS_BASE_TEXT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* It must stay where it is while it is open. */
struct ss_text_stream {
	FILE *out;
	char *text;
	size_t size; /* of the text, once it is closed */
};

/* False without memory. */
static inline bool ss_text_stream_open(struct ss_text_stream *stream)
{
	stream->text = NULL;
	stream->size = 0;
	stream->out = open_memstream(&stream->text, &stream->size);
	return stream->out != NULL;
}

/* Closes the stream. Returns the text, for free(); NULL without memory. */
static inline char *ss_text_stream_close(struct ss_text_stream *stream)
{
	if (fclose(stream->out) == 0)
		return stream->text;
	free(stream->text);
	return NULL;
}

#endif
