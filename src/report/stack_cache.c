#include "report/stack_cache.h"

#include <stdint.h>
#include <stdlib.h>

/* A stack of 100 frames is about 25 KB of JSON: room for 300 different ones. */
enum { BYTES_MAX = 8 << 20 };

struct entry {
	char *bytes; /* NULL: not cached */
	size_t size;
	size_t threads; /* with this stack */
	bool written;
};

struct ss_stack_cache {
	const struct ss_snapshot *snapshot;
	const struct ss_format_options *options;
	ss_stack_writer *write;
	struct entry *entries; /* by stack_id */
	size_t count;
	size_t bytes;
};

static size_t stack_count(const struct ss_snapshot *snapshot)
{
	size_t count = 0;

	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		size_t id = ss_snapshot_task(snapshot, SS_TASK_THREAD, i)->stack_id;
		count = SS_MAX(count, id + 1);
	}
	return count;
}

struct ss_stack_cache *ss_stack_cache_new(const struct ss_snapshot *snapshot,
					  const struct ss_format_options *options,
					  ss_stack_writer *write)
{
	_cleanup_(ss_stack_cache_cleanup) struct ss_stack_cache *cache =
		calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->snapshot = snapshot;
	cache->options = options;
	cache->write = write;
	size_t count = stack_count(snapshot);
	cache->entries = calloc(count + 1, sizeof(*cache->entries));
	if (!cache->entries)
		return NULL;
	cache->count = count;
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++)
		cache->entries[ss_snapshot_task(snapshot, SS_TASK_THREAD, i)->stack_id]
			.threads++;
	return take_ptr(cache);
}

void ss_stack_cache_free(struct ss_stack_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->count; i++)
		free(cache->entries[i].bytes);
	free(cache->entries);
	free(cache);
}

/* Without memory a stack is not cached. */
static void keep(struct ss_stack_cache *cache, struct entry *entry,
		 const struct ss_task *thread)
{
	char *bytes = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&bytes, &size);

	if (!memory)
		return;
	cache->write(cache->snapshot, thread, cache->options, memory);
	if (fclose(memory) != 0 || cache->bytes + size > BYTES_MAX) {
		free(bytes);
		entry->threads = 1; /* do not try again */
		return;
	}
	entry->bytes = bytes;
	entry->size = size;
	cache->bytes += size;
}

void ss_stack_cache_write(struct ss_stack_cache *cache, const struct ss_task *thread,
			  FILE *out)
{
	struct entry *entry = &cache->entries[thread->stack_id];

	entry->written = true;
	if (!entry->bytes && entry->threads > 1)
		keep(cache, entry, thread);
	if (entry->bytes)
		(void)fwrite_unlocked(entry->bytes, 1, entry->size, out);
	else
		cache->write(cache->snapshot, thread, cache->options, out);
}

bool ss_stack_cache_has_written(const struct ss_stack_cache *cache,
				const struct ss_task *thread)
{
	return cache->entries[thread->stack_id].written;
}
