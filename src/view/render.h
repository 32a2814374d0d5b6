/*
 * One output format is one struct ss_renderer: a snapshot goes in, bytes come
 * out. A renderer never asks the process anything and keeps nothing between
 * calls.
 */
#ifndef SS_VIEW_RENDER_H
#define SS_VIEW_RENDER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "stacksnap.h"

struct ss_render_options {
	size_t size;	     /* sizeof(struct ss_render_options) */
	bool raw;	     /* places instead of names */
	bool no_group;	     /* text: each thread apart, also where stacks are equal */
	bool verbose;	     /* text: nothing shortened */
	bool color;	     /* text: with terminal colours */
	size_t max_stack;    /* bytes that were copied of a stack at most */
	unsigned max_frames; /* that were unwound of a stack at most */
	const char *problem; /* what went wrong with all of it, a line; or NULL */
};

struct ss_renderer {
	const char *name;
	const char *summary;   /* for the help, one line */
	const char *separator; /* between two snapshots; NULL: nothing */
	bool single;   /* one snapshot a file, not for a terminal; needs no names */
	bool explains; /* says in words why a stack is not whole */
	/* Writes the snapshot. Errors: NO_MEMORY. That writing failed is left to
	   ferror() of out. */
	struct ss_error *(*render)(const struct ss_snapshot *snapshot,
				   const struct ss_render_options *options, FILE *out);
};

extern const struct ss_renderer ss_renderer_text;
extern const struct ss_renderer ss_renderer_json;
extern const struct ss_renderer ss_renderer_gdb;
extern const struct ss_renderer ss_renderer_eu;
extern const struct ss_renderer ss_renderer_folded;
extern const struct ss_renderer ss_renderer_recording;
extern const struct ss_renderer ss_renderer_dot;

/* The renderer at that place in the list, the default first; NULL at its end. */
const struct ss_renderer *ss_renderer_at(size_t index);

/* The renderer of that name, or NULL. */
const struct ss_renderer *ss_renderer_find(const char *name);

#endif
