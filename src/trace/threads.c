#include "trace/stacks.h"

#include <stdio.h>

#include "base/io.h"

enum { TEXT_MAX = 256 };

void ss_trace_threads_deinit(struct ss_trace_threads *threads)
{
	for (size_t i = 0; i < threads->items.count; i++)
		ss_vector_free(&threads->items.items[i].scopes);
	ss_vector_free(&threads->items);
	ss_vector_free(&threads->unused);
	ss_hash_deinit(&threads->index);
}

struct key {
	const struct ss_trace_threads *threads;
	pid_t tid;
};

static bool is_same(const void *context, uint32_t index)
{
	const struct key *key = context;

	return key->threads->items.items[index].tid == key->tid;
}

/* Of slots that were reused, the table keeps old hashes: it is made anew when these have become
   many. */
static bool add_to_index(struct ss_trace_threads *threads, uint32_t index)
{
	if (threads->index.count > 4 * threads->items.count + 1024) {
		ss_hash_deinit(&threads->index);
		threads->index = (struct ss_hash){};
		for (uint32_t i = 0; i < threads->items.count; i++) {
			pid_t tid = threads->items.items[i].tid;
			if (i == index || !tid)
				continue;
			if (!ss_hash_reserve(&threads->index))
				return false;
			ss_hash_insert(&threads->index, (uint64_t)tid, i);
		}
	}
	if (!ss_hash_reserve(&threads->index))
		return false;
	ss_hash_insert(&threads->index, (uint64_t)threads->items.items[index].tid, index);
	return true;
}

static uint32_t find(const struct ss_trace_threads *threads, pid_t tid)
{
	const struct key key = { threads, tid };

	return ss_hash_find(&threads->index, (uint64_t)tid, is_same, &key);
}

struct ss_trace_thread *ss_trace_threads_get(struct ss_trace_threads *threads, pid_t pid,
					     pid_t tid)
{
	uint32_t index = find(threads, tid);
	/* The record of its start may be lost. */
	uint32_t leader = index == SS_HASH_NONE ? find(threads, pid) : SS_HASH_NONE;

	if (index != SS_HASH_NONE)
		return &threads->items.items[index];
	if (threads->unused.count) {
		index = threads->unused.items[--threads->unused.count];
	} else {
		index = (uint32_t)threads->items.count;
		if (!ss_vector_push(&threads->items))
			return NULL;
	}
	if (leader != SS_HASH_NONE)
		threads->items.items[index].other_program =
			threads->items.items[leader].other_program;
	threads->items.items[index].pid = pid;
	threads->items.items[index].tid = tid;
	return add_to_index(threads, index) ? &threads->items.items[index] : NULL;
}

void ss_trace_threads_remove(struct ss_trace_threads *threads,
			     struct ss_trace_thread *thread)
{
	uint32_t *slot = ss_vector_push(&threads->unused);

	ss_vector_free(&thread->scopes);
	*thread = (struct ss_trace_thread){};
	if (slot) /* without memory the slot stays unused */
		*slot = (uint32_t)(thread - threads->items.items);
}

void ss_trace_thread_set_name(struct ss_trace_thread *thread, const char *name)
{
	thread->named = true;
	(void)snprintf(thread->name, sizeof(thread->name), "%s", name); /* it fits */
}

void ss_trace_thread_find_name(struct ss_trace_thread *thread,
			       const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	char path[64];

	if (thread->named)
		return;
	(void)snprintf(path, sizeof(path), "%d/task/%d/comm", (int)thread->pid,
		       (int)thread->tid); /* it fits */
	if (ss_io_read_path(target->procfs_fd, path, TEXT_MAX, &text) < 0 || !text.size) {
		ss_trace_thread_set_name(thread, "?");
		return;
	}
	if (text.bytes[text.size - 1] == '\n')
		ss_buffer_truncate(&text, text.size - 1);
	ss_trace_thread_set_name(thread, text.bytes);
}
