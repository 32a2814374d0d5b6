#include "model/facts.h"

struct ss_facts *ss_facts_new(void)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = calloc(1, sizeof(*facts));

	if (!facts)
		return NULL;
	facts->references = 1;
	facts->strings = ss_intern_new();
	return facts->strings ? take_ptr(facts) : NULL;
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

static int compare_tid(const void *key, const void *item)
{
	pid_t tid = *(const pid_t *)key;
	const struct ss_thread_facts *thread = item;

	return (tid > thread->tid) - (tid < thread->tid);
}

const struct ss_thread_facts *ss_facts_find_thread(const struct ss_facts *facts,
						   pid_t tid)
{
	if (!facts || facts->threads.count == 0)
		return NULL;
	return bsearch(&tid, facts->threads.items, facts->threads.count,
		       sizeof(*facts->threads.items), compare_tid);
}

static int compare_fd(const void *key, const void *item)
{
	int fd = *(const int *)key;
	const struct ss_fd_fact *fact = item;

	return (fd > fact->fd) - (fd < fact->fd);
}

const struct ss_fd_fact *ss_facts_find_fd(const struct ss_facts *facts, int fd)
{
	if (!facts || facts->fds.count == 0)
		return NULL;
	return bsearch(&fd, facts->fds.items, facts->fds.count, sizeof(*facts->fds.items),
		       compare_fd);
}
