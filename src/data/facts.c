#include "data/facts.h"

#include <poll.h>
#include <string.h>

#include "base/search.h"
#include "data/call.h"

struct ss_facts *ss_facts_new(void)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = calloc(1, sizeof(*facts));

	if (!facts)
		return NULL;
	facts->references = 1;
	facts->strings = ss_intern_new();
	return facts->strings ? take_ptr(facts) : NULL;
}

struct ss_facts *ss_facts_copy(struct ss_facts *facts)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *copy = ss_facts_new();

	if (!copy || !ss_vector_reserve(&copy->threads, facts->threads.count) ||
	    !ss_vector_reserve(&copy->fds, facts->fds.count) ||
	    !ss_vector_reserve(&copy->children, facts->children.count))
		return NULL;
	copy->origin = ss_facts_ref(facts);
	for (size_t i = 0; i < facts->threads.count; i++)
		copy->threads.items[copy->threads.count++] = facts->threads.items[i];
	for (size_t i = 0; i < facts->fds.count; i++)
		copy->fds.items[copy->fds.count++] = facts->fds.items[i];
	for (size_t i = 0; i < facts->children.count; i++)
		copy->children.items[copy->children.count++] = facts->children.items[i];
	copy->children_known = facts->children_known;
	copy->pid = facts->pid;
	copy->of_another = facts->of_another;
	copy->observed = facts->observed;
	copy->time_ns = facts->time_ns;
	copy->monotonic_ns = facts->monotonic_ns;
	return take_ptr(copy);
}

struct ss_facts *ss_facts_ref(struct ss_facts *facts)
{
	if (facts)
		facts->references++;
	return facts;
}

void ss_facts_unref(struct ss_facts *facts)
{
	if (!facts || --facts->references > 0)
		return;
	for (size_t i = 0; i < facts->blocks.count; i++)
		free(facts->blocks.items[i]);
	ss_vector_free(&facts->blocks);
	ss_vector_free(&facts->threads);
	ss_vector_free(&facts->fds);
	ss_vector_free(&facts->children);
	ss_intern_free(facts->strings);
	ss_facts_unref(facts->origin);
	free(facts);
}

void *ss_facts_keep(struct ss_facts *facts, size_t size)
{
	void **slot = ss_vector_push(&facts->blocks);

	if (!slot)
		return NULL;
	*slot = calloc(1, size ? size : 1);
	return *slot;
}

const struct ss_thread_facts *ss_facts_find_thread(const struct ss_facts *facts,
						   pid_t tid)
{
	return facts ? ss_search(facts->threads.items, facts->threads.count, tid, tid) :
		       NULL;
}

const struct ss_fd_fact *ss_facts_find_fd(const struct ss_facts *facts, int fd)
{
	return facts ? ss_search(facts->fds.items, facts->fds.count, fd, fd) : NULL;
}

static enum ss_wait_kind kind_of(const struct ss_thread_facts *thread)
{
	const struct ss_call *call = ss_call_find(thread->call.id);

	return call ? call->kind : SS_WAIT_OTHER;
}

static bool next_of_poll(const struct ss_memory_fact *entries, size_t *at,
			 struct ss_watch *ret)
{
	struct pollfd entry;

	while (*at < entries->size / sizeof(entry)) {
		memcpy(&entry, entries->bytes + (*at)++ * sizeof(entry), sizeof(entry));
		if (entry.fd < 0)
			continue;
		*ret = (struct ss_watch){
			.fd = entry.fd,
			.input = entry.events &
				 (POLLIN | POLLPRI | POLLRDNORM | POLLRDHUP),
			.output = entry.events & (POLLOUT | POLLWRNORM),
		};
		return true;
	}
	return false;
}

/* The second to the fourth argument point to sets of descriptors below the first one. */
enum { SETS = 3 };

static size_t count_bits(const struct ss_thread_facts *thread)
{
	return (size_t)(thread->call.args[0] & INT32_MAX);
}

static bool has_bit(const struct ss_memory_fact *set, size_t bit)
{
	return bit / 8 < set->size && (set->bytes[bit / 8] >> (bit % 8) & 1);
}

static bool next_of_select(const struct ss_thread_facts *thread, size_t *at,
			   struct ss_watch *ret)
{
	const struct ss_memory_fact *sets = &thread->memory[1];
	size_t size = 0;

	for (size_t i = 0; i < SETS; i++)
		size = SS_MAX(size, sets[i].size);
	for (const size_t end = SS_MIN(count_bits(thread), size * 8); *at < end;) {
		const size_t bit = (*at)++;
		*ret = (struct ss_watch){ .fd = (int)bit,
					  .input = has_bit(&sets[0], bit),
					  .output = has_bit(&sets[1], bit) };
		if (ret->input || ret->output || has_bit(&sets[2], bit))
			return true;
	}
	return false;
}

bool ss_facts_next_watch(const struct ss_thread_facts *thread, size_t *at,
			 struct ss_watch *ret)
{
	switch (kind_of(thread)) {
	case SS_WAIT_POLL:
		return next_of_poll(&thread->memory[0], at, ret);
	case SS_WAIT_SELECT:
		return next_of_select(thread, at, ret);
	default:
		return false;
	}
}

bool ss_facts_has_all_watches(const struct ss_thread_facts *thread)
{
	bool all = true;

	if (kind_of(thread) == SS_WAIT_POLL)
		return thread->memory[0].size / sizeof(struct pollfd) >=
		       (thread->call.args[1] & UINT32_MAX);
	for (size_t i = 1; i <= SETS; i++)
		all &= !thread->call.args[i] ||
		       thread->memory[i].size * 8 >= count_bits(thread);
	return all;
}

/* Whether only the process itself has the other end. Others can open it if it has a name. */
static bool is_own_pipe(const struct ss_facts *facts, int fd, bool certain)
{
	const struct ss_fd_fact *pipe = ss_facts_find_fd(facts, fd);

	return pipe && pipe->kind == SS_FD_PIPE && pipe->name && pipe->name[0] != '/' &&
	       pipe->holder_count == 1 && pipe->holders[0].pid == facts->pid &&
	       !(certain && pipe->holders_truncated);
}

bool ss_facts_waits_for_own_pipes(const struct ss_facts *facts,
				  const struct ss_thread_facts *thread, bool certain)
{
	const struct ss_call *call = ss_call_find(thread->call.id);
	struct ss_watch watch;
	bool any = false;

	if (call && (call->kind == SS_WAIT_READ || call->kind == SS_WAIT_WRITE))
		return is_own_pipe(facts, (int)(uint32_t)thread->call.args[call->fd - 1],
				   certain);
	for (size_t at = 0; ss_facts_next_watch(thread, &at, &watch); any = true) {
		if (!is_own_pipe(facts, watch.fd, certain))
			return false;
	}
	return any && ss_facts_has_all_watches(thread);
}

const struct ss_thread_activity *ss_activity_find(const struct ss_activity *activity,
						  pid_t tid)
{
	return activity ? ss_search(activity->threads.items, activity->threads.count, tid,
				    tid) :
			  NULL;
}
