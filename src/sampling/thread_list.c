#include "sampling/thread_list.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/search.h"

enum {
	FILES_MAX =
		/* limit of schedstat files kept open; others are opened for each read
		   */
	60000,
	QUIET_TICKS =
		/* quiet ticks after which a thread is read only if the balance requires
		   it */
	8,
	BALANCE_TRIES = 2,
	REST_TRIES = 4,
	PAUSE_BITS = 6, /* the longest pause: 2^6 ticks */
};

void ss_thread_list_init(struct ss_thread_list *list,
			 const struct ss_thread_source *source)
{
	*list = (struct ss_thread_list){ .source = source };
}

static void close_file(struct ss_thread_list *list, struct ss_sampled_thread *thread)
{
	if (thread->schedstat_fd < 0)
		return;
	close_cleanup(&thread->schedstat_fd);
	list->open_files--;
}

void ss_thread_list_deinit(struct ss_thread_list *list)
{
	for (size_t i = 0; i < list->items.count; i++)
		close_file(list, &list->items.items[i]);
	ss_vector_free(&list->items);
	ss_vector_free(&list->free_slots);
}

/* Drops threads that had ended by the last tick. There is room for their slots. */
static void forget_gone(struct ss_thread_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->items.count; i++) {
		struct ss_sampled_thread *thread = &list->items.items[i];
		if (thread->state == SS_THREAD_GONE) {
			close_file(list, thread);
			list->free_slots.items[list->free_slots.count++] = thread->slot;
			continue;
		}
		ss_thread_begin_tick(thread);
		list->items.items[kept++] = *thread;
	}
	list->items.count = kept;
}

static struct ss_sampled_thread new_thread(struct ss_thread_list *list, pid_t tid)
{
	struct ss_sampled_thread thread = { .tid = tid,
					    .kernel_state = '?',
					    .schedstat_fd = -1 };

	thread.slot = list->free_slots.count > 0 ?
			      list->free_slots.items[--list->free_slots.count] :
			      list->slot_count++;
	if (list->open_files < FILES_MAX)
		thread.schedstat_fd = list->source->open(list->source->data, tid);
	list->open_files += thread.schedstat_fd >= 0;
	return thread;
}

/* Merges a listing of ascending ids: adds new threads, and marks missing ones as gone. */
static bool merge(struct ss_thread_list *list, const pid_t *tids, size_t count)
{
	__typeof__(list->items) merged = {};
	size_t at = 0;

	/* With room for all slots in the free list. */
	if (!ss_vector_reserve(&list->free_slots, list->slot_count + count) ||
	    !ss_vector_reserve(&merged, count + list->items.count + 1))
		return false;
	for (size_t i = 0; i <= count; i++) {
		for (; at < list->items.count &&
		       (i == count || list->items.items[at].tid < tids[i]);
		     at++) {
			ss_thread_end(&list->items.items[at]);
			merged.items[merged.count++] = list->items.items[at];
		}
		if (i == count)
			break;
		bool known = at < list->items.count &&
			     list->items.items[at].tid == tids[i];
		merged.items[merged.count++] = known ? list->items.items[at++] :
						       new_thread(list, tids[i]);
	}
	ss_vector_free(&list->items);
	list->items = merged;
	return true;
}

static bool list_threads(struct ss_thread_list *list)
{
	const pid_t *tids = NULL;
	size_t count = 0;

	return list->source->list(list->source->data, &tids, &count) &&
	       merge(list, tids, count);
}

static bool read_thread(const struct ss_thread_list *list,
			const struct ss_sampled_thread *thread, struct ss_schedstat *ret)
{
	return list->source->read(list->source->data, thread->tid, thread->schedstat_fd,
				  ret);
}

uint64_t ss_thread_list_run_count(const struct ss_thread_list *list,
				  const struct ss_sampled_thread *thread)
{
	struct ss_schedstat stat;

	return thread->schedstat_fd >= 0 && read_thread(list, thread, &stat) ?
		       stat.run_count :
		       0;
}

bool ss_thread_list_is_unchanged(const struct ss_thread_list *list,
				 const struct ss_sampled_thread *thread)
{
	struct ss_schedstat stat;

	return thread->state == SS_THREAD_IDLE && read_thread(list, thread, &stat) &&
	       ss_thread_is_unchanged(thread, stat.run_count);
}

/* Whether it has run since the last read. */
static bool update_thread(struct ss_thread_list *list, struct ss_sampled_thread *thread)
{
	struct ss_schedstat stat;

	if (thread->state == SS_THREAD_GONE)
		return false;
	if (read_thread(list, thread, &stat)) {
		thread->ready_ns = stat.wait_ns;
		return ss_thread_update(thread, stat.run_count, stat.run_ns);
	}
	ss_thread_end(thread);
	return true;
}

static bool is_quiet(const struct ss_sampled_thread *thread)
{
	return thread->quiet_ticks >= QUIET_TICKS && thread->state == SS_THREAD_IDLE;
}

/* Reads the threads that are not quiet, or all. Returns how many quiet ones have run. */
static size_t update_threads(struct ss_thread_list *list, bool all)
{
	size_t count = 0;

	for (size_t i = 0; i < list->items.count; i++) {
		struct ss_sampled_thread *thread = &list->items.items[i];
		bool quiet = is_quiet(thread);
		if (!quiet || all)
			count += update_thread(list, thread) && quiet;
	}
	return count;
}

static bool is_complete(const struct ss_thread_list *list)
{
	size_t alive = 0;

	for (size_t i = 0; i < list->items.count; i++)
		alive += list->items.items[i].state != SS_THREAD_GONE;
	return alive == list->source->count(list->source->data);
}

static bool sum_runs(const struct ss_thread_list *list, uint64_t *ret)
{
	return list->source->sum_runs(list->source->data, ret);
}

static uint64_t rest_of(const struct ss_thread_list *list, uint64_t runs)
{
	for (size_t i = 0; i < list->items.count; i++)
		runs -= list->items.items[i].seen_count;
	return runs;
}

/* Reads the threads that are not quiet. True: no others have run. */
static bool update_by_balance(struct ss_thread_list *list)
{
	uint64_t runs;

	for (int i = 0; i < BALANCE_TRIES; i++) {
		(void)update_threads(list, false);
		if (!is_complete(list) || !sum_runs(list, &runs))
			return false;
		if (rest_of(list, runs) == list->balance.rest)
			return true;
	}
	return false;
}

/* The balance pays only where most threads are quiet in most ticks. */
static void put_off(struct ss_run_balance *balance)
{
	balance->pause_ticks = 1u << SS_MIN(balance->failures, (unsigned)PAUSE_BITS);
	balance->failures++;
}

/* Reads the threads that are not quiet, until none starts to run during the read. */
static bool update_between_sums(struct ss_thread_list *list, uint64_t *runs)
{
	uint64_t after;

	if (!sum_runs(list, runs))
		return false;
	for (int i = 0; i < REST_TRIES; i++) {
		(void)update_threads(list, false);
		if (!sum_runs(list, &after))
			return false;
		if (after == *runs)
			return true;
		*runs = after;
	}
	return false;
}

/*
 * After all threads were read, determines the balance. Quiet threads may have run since;
 * if a second read shows that none has, their counts were consistent.
 */
static void find_rest(struct ss_thread_list *list)
{
	struct ss_run_balance *balance = &list->balance;
	uint64_t runs;

	if (balance->known)
		return;
	if (update_between_sums(list, &runs)) {
		balance->rest = rest_of(list, runs);
		balance->known = update_threads(list, true) == 0 && is_complete(list);
	}
	if (!balance->known)
		put_off(balance);
}

static bool are_most_quiet(const struct ss_thread_list *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->items.count; i++)
		count += is_quiet(&list->items.items[i]);
	return count > list->items.count / 2;
}

/* Finds out which threads have run. False: the list is not complete. */
static bool update(struct ss_thread_list *list)
{
	struct ss_run_balance *balance = &list->balance;

	if (balance->pause_ticks > 0) {
		balance->pause_ticks--;
	} else if (balance->known) {
		if (update_by_balance(list)) {
			balance->failures = 0;
			return true;
		}
		put_off(balance);
	}
	(void)update_threads(list, true);
	if (!is_complete(list)) {
		balance->known = false;
		return false;
	}
	if (balance->pause_ticks == 0 && are_most_quiet(list))
		find_rest(list);
	return is_complete(list);
}

struct ss_sampled_thread *ss_thread_list_find(const struct ss_thread_list *list,
					      pid_t tid)
{
	size_t at = ss_lower_bound(list->items.count, i, list->items.items[i].tid < tid);

	return at < list->items.count && list->items.items[at].tid == tid ?
		       &list->items.items[at] :
		       NULL;
}

bool ss_thread_list_refresh(struct ss_thread_list *list)
{
	forget_gone(list);
	if (update(list))
		return true;
	if (!list_threads(list))
		return false;
	(void)update(list); /* new threads are found at the next tick */
	return true;
}

void ss_thread_list_begin(struct ss_thread_list *list, bool sweep)
{
	forget_gone(list);
	if (sweep)
		(void)update_threads(list, true);
}

/* Inserts a thread; NULL: no memory. */
static struct ss_sampled_thread *insert(struct ss_thread_list *list, pid_t tid)
{
	size_t at = ss_lower_bound(list->items.count, i, list->items.items[i].tid < tid);

	/* With room for its slot in the free list. */
	if (!ss_vector_reserve(&list->free_slots, list->slot_count + 1) ||
	    !ss_vector_push(&list->items))
		return NULL;
	struct ss_sampled_thread *slot = &list->items.items[at];
	memmove(slot + 1, slot, (list->items.count - 1 - at) * sizeof(*slot));
	*slot = new_thread(list, tid);
	return slot;
}

struct ss_sampled_thread *ss_thread_list_take(struct ss_thread_list *list, pid_t tid)
{
	struct ss_sampled_thread *thread = ss_thread_list_find(list, tid);

	if (!thread)
		thread = insert(list, tid);
	if (thread)
		(void)update_thread(list, thread);
	return thread;
}
