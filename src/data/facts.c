#include "data/facts.h"

#include "base/search.h"

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
	size_t count = facts ? facts->threads.count : 0;
	size_t at = ss_lower_bound(count, i, facts->threads.items[i].tid < tid);

	return at < count && facts->threads.items[at].tid == tid ?
		       &facts->threads.items[at] :
		       NULL;
}

const struct ss_fd_fact *ss_facts_find_fd(const struct ss_facts *facts, int fd)
{
	size_t count = facts ? facts->fds.count : 0;
	size_t at = ss_lower_bound(count, i, facts->fds.items[i].fd < fd);

	return at < count && facts->fds.items[at].fd == fd ? &facts->fds.items[at] : NULL;
}

const struct ss_thread_activity *ss_activity_find(const struct ss_activity *activity,
						  pid_t tid)
{
	size_t low = ss_lower_bound(activity ? activity->threads.count : 0, i,
				    activity->threads.items[i].tid < tid);

	return activity && low < activity->threads.count &&
			       activity->threads.items[low].tid == tid ?
		       &activity->threads.items[low] :
		       NULL;
}
