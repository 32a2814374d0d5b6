/*
 * Formats that are never grouped print equal stacks again and again. This keeps
 * the bytes of a stack that more than one thread has, within a bound.
 */
#ifndef SS_VIEW_STACK_CACHE_H
#define SS_VIEW_STACK_CACHE_H

#include <stdio.h>

#include "base/cleanup.h"
#include "view/render.h"

struct ss_stack_cache;

/* Writes the frames of one thread, and nothing that differs between threads of
   equal stack_id. */
typedef void ss_stack_writer(const struct ss_snapshot *snapshot,
			     const struct ss_thread *thread,
			     const struct ss_render_options *options, FILE *out);

/* The snapshot and options must outlive the cache. NULL without memory. */
struct ss_stack_cache *ss_stack_cache_new(const struct ss_snapshot *snapshot,
					  const struct ss_render_options *options,
					  ss_stack_writer *write);
void ss_stack_cache_free(struct ss_stack_cache *cache);

/* Writes the frames of thread; from memory where they were written before. */
void ss_stack_cache_write(struct ss_stack_cache *cache, const struct ss_thread *thread,
			  FILE *out);

SS_DEFINE_CLEANUP(struct ss_stack_cache, ss_stack_cache, ss_stack_cache_free)

#endif
