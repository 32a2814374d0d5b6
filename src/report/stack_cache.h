/*
 * For formats that do not group threads: caches the text of stacks that several threads
 * share, up to a limit.
 */
#ifndef SS_REPORT_STACK_CACHE_H
#define SS_REPORT_STACK_CACHE_H

#include <stdio.h>

#include "base/cleanup.h"
#include "report/format.h"

struct ss_stack_cache;

/* Writes the frames of a thread; the same bytes for all threads with this stack_id. */
typedef void ss_stack_writer(const struct ss_snapshot *snapshot,
			     const struct ss_task *thread,
			     const struct ss_format_options *options, FILE *out);

/* The snapshot and options must outlive the cache. Returns NULL without memory. */
struct ss_stack_cache *ss_stack_cache_new(const struct ss_snapshot *snapshot,
					  const struct ss_format_options *options,
					  ss_stack_writer *write);
void ss_stack_cache_free(struct ss_stack_cache *cache);

/* Writes the frames of a thread, from the cache if possible. */
void ss_stack_cache_write(struct ss_stack_cache *cache, const struct ss_task *thread,
			  FILE *out);

/* Whether the frames of this thread, or equal ones, were written. */
bool ss_stack_cache_has_written(const struct ss_stack_cache *cache,
				const struct ss_task *thread);

SS_DEFINE_CLEANUP(struct ss_stack_cache, ss_stack_cache, ss_stack_cache_free)

#endif
