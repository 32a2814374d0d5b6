#include "sample/thread_list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/search.h"

void ss_area_check_clear(struct ss_area_check *areas)
{
	areas->verified = 0;
	areas->leaf = 0;
	areas->incomplete = false;
}

void ss_area_check_run(struct ss_area_check *areas, uint64_t pc, uint64_t leaf,
		       ss_area_check_verify *verify, void *data)
{
	areas->verified = 0;
	areas->leaf = leaf && verify(data, pc) ? leaf : 0;
	for (unsigned i = 0; i < areas->count; i++) {
		if ((areas->leaf && areas->starts[i] == areas->leaf) ||
		    verify(data, areas->starts[i]))
			areas->verified |= 1u << i;
	}
}

bool ss_area_check_contains(const struct ss_area_check *areas, uint64_t start)
{
	if (areas->leaf && start == areas->leaf)
		return true;
	for (unsigned i = 0; i < areas->count; i++) {
		if (areas->starts[i] == start)
			return areas->verified >> i & 1;
	}
	return false;
}

static void add(struct ss_area_check *areas, uint64_t start)
{
	for (unsigned i = 0; i < areas->count; i++) {
		if (areas->starts[i] == start)
			return;
	}
	if (areas->count < SS_AREA_CHECK_MAX)
		areas->starts[areas->count++] = start;
}

void ss_area_check_remember(struct ss_area_check *areas, const uint64_t *starts,
			    size_t count)
{
	const struct ss_area_check before = *areas;

	areas->count = areas->verified = 0;
	for (size_t i = 0; i < count; i++)
		add(areas, starts[i]);
	for (unsigned i = 0; i < before.count; i++)
		add(areas, before.starts[i]);
}

enum { QUIET_MAX = UINT8_MAX };

void ss_thread_begin_tick(struct ss_sampled_thread *thread)
{
	thread->due = false;
	if (thread->quiet_ticks < QUIET_MAX)
		thread->quiet_ticks++;
}

bool ss_thread_update(struct ss_sampled_thread *thread, uint64_t count, uint64_t run_ns)
{
	bool ran = count != thread->seen_count || count == 0;

	if (thread->state == SS_THREAD_GONE)
		return false;
	thread->seen_count = count;
	thread->run_ns = run_ns;
	if (ran)
		thread->quiet_ticks = 0;
	if (ss_thread_is_unchanged(thread, count))
		return ran;
	if (thread->state == SS_THREAD_IDLE)
		thread->state = SS_THREAD_ACTIVE;
	thread->run_count = count;
	thread->due = true;
	return ran;
}

void ss_thread_end(struct ss_sampled_thread *thread)
{
	thread->state = SS_THREAD_GONE;
}

enum ss_thread_action ss_thread_begin_capture(struct ss_sampled_thread *thread,
					      bool blocked, bool fragile, uint64_t count)
{
	ss_area_check_clear(&thread->areas);
	if (thread->state == SS_THREAD_RETURNING) {
		bool back = blocked && count == thread->expected_count;
		thread->state = back ? SS_THREAD_IDLE : SS_THREAD_ACTIVE;
		if (!back)
			return SS_THREAD_CAPTURE;
		thread->run_count = count;
		thread->due = false;
		return SS_THREAD_SKIP;
	}
	if (thread->state == SS_THREAD_STOP_NEXT && blocked && !fragile &&
	    (count == thread->expected_count || count == thread->after_stop_count))
		return SS_THREAD_STOP;
	return SS_THREAD_CAPTURE;
}

void ss_thread_stop(struct ss_sampled_thread *thread, bool blocked, uint64_t count)
{
	/* The release puts it on a CPU once more. */
	if (thread->state == SS_THREAD_STOP_NEXT && blocked)
		thread->after_stop_count = count ? count + 1 : 0;
}

void ss_thread_end_capture(struct ss_sampled_thread *thread, bool stopped, bool still,
			   uint64_t count)
{
	if (thread->state == SS_THREAD_GONE ||
	    (thread->state == SS_THREAD_STOP_NEXT && stopped))
		return;
	thread->state = still ? SS_THREAD_IDLE : SS_THREAD_ACTIVE;
	if (still && count)
		thread->run_count = count;
}

void ss_thread_accept(struct ss_sampled_thread *thread, bool stopped, bool needs_register)
{
	thread->due = false;
	if (thread->state == SS_THREAD_STOP_NEXT) {
		bool returns = stopped && thread->after_stop_count != 0;
		thread->state = returns ? SS_THREAD_RETURNING : SS_THREAD_ACTIVE;
		thread->expected_count = thread->after_stop_count;
	} else if (thread->state == SS_THREAD_IDLE && needs_register && !stopped) {
		thread->state = SS_THREAD_STOP_NEXT;
		thread->expected_count = thread->run_count;
	}
	thread->after_stop_count = 0;
}

void ss_thread_reject(struct ss_sampled_thread *thread, bool retry)
{
	if (thread->state == SS_THREAD_GONE)
		return;
	thread->due = retry;
	/* After an accepted stop it would be skipped, being back in its call. */
	if (retry && thread->state != SS_THREAD_RETURNING)
		return;
	thread->state = SS_THREAD_ACTIVE;
	thread->after_stop_count = 0;
}

bool ss_thread_is_unchanged(const struct ss_sampled_thread *thread, uint64_t count)
{
	return thread->state == SS_THREAD_IDLE && count != 0 &&
	       count == thread->run_count;
}

enum {
	FILES_MAX =
		/* limit of schedstat files kept open; others are opened for each read
		   */
	60000,
	QUIET_TICKS =
		/* quiet ticks after which a thread is read only if the balance requires
		   it */
	8,
	CHECK_TICKS = 128, /* in which each quiet thread is read at least once */
	BALANCE_TRIES = 4,
	REST_TRIES = 4,
	PAUSE_BITS = 6, /* the longest pause: 2^6 ticks */
};

void ss_thread_list_init(struct ss_thread_list *list,
			 const struct ss_thread_source *source, void *data)
{
	*list = (struct ss_thread_list){ .source = source, .source_data = data };
}

static void drop(struct ss_thread_list *list, struct ss_sampled_thread *thread)
{
	free(thread->recorded);
	ss_kept_thread_close(&thread->files);
	if (thread->schedstat_fd < 0)
		return;
	close_cleanup(&thread->schedstat_fd);
	list->open_files--;
}

void ss_thread_list_deinit(struct ss_thread_list *list)
{
	for (size_t i = 0; i < list->items.count; i++)
		drop(list, &list->items.items[i]);
	ss_vector_free(&list->items);
	ss_vector_free(&list->active);
}

static bool is_quiet(const struct ss_sampled_thread *thread)
{
	return thread->quiet_ticks >= QUIET_TICKS && thread->state == SS_THREAD_IDLE;
}

/* There is room for all. */
static void find_active(struct ss_thread_list *list)
{
	list->active.count = 0;
	for (size_t i = 0; i < list->items.count; i++) {
		const struct ss_sampled_thread *thread = &list->items.items[i];
		if (!is_quiet(thread) || thread->due)
			list->active.items[list->active.count++] = (uint32_t)i;
	}
}

static size_t count_gone(const struct ss_thread_list *list)
{
	size_t gone = 0;

	for (size_t i = 0; i < list->active.count; i++)
		gone += ss_thread_list_active(list, i)->state == SS_THREAD_GONE;
	return gone;
}

/* Drops threads that had ended by the last tick. */
static void forget_gone(struct ss_thread_list *list)
{
	size_t kept = 0;

	if (count_gone(list) == 0)
		return;
	for (size_t i = 0; i < list->items.count; i++) {
		struct ss_sampled_thread *thread = &list->items.items[i];
		if (thread->state == SS_THREAD_GONE) {
			drop(list, thread);
			list->run_ns -= thread->run_ns;
			continue;
		}
		list->items.items[kept++] = *thread;
	}
	list->items.count = kept;
	find_active(list);
}

static void begin_tick(struct ss_thread_list *list)
{
	size_t kept = 0;

	forget_gone(list);
	for (size_t i = 0; i < list->active.count; i++) {
		struct ss_sampled_thread *thread = ss_thread_list_active(list, i);
		ss_thread_begin_tick(thread);
		if (!is_quiet(thread))
			list->active.items[kept++] = list->active.items[i];
	}
	list->active.count = kept;
}

static struct ss_sampled_thread new_thread(struct ss_thread_list *list, pid_t tid)
{
	struct ss_sampled_thread thread = {
		.tid = tid, .kernel_state = '?', .sleeping_call = -1, .schedstat_fd = -1
	};

	if (list->open_files < FILES_MAX)
		thread.schedstat_fd = list->source->open(list->source_data, tid);
	list->open_files += thread.schedstat_fd >= 0;
	return thread;
}

static bool read_thread(const struct ss_thread_list *list,
			const struct ss_sampled_thread *thread, struct ss_schedstat *ret)
{
	return list->source->read(list->source_data, thread->tid, thread->schedstat_fd,
				  ret);
}

/*
 * Whether a thread that is not in a listing has ended. If threads end while it is made, it may also
 * lack others (next_tid() and first_tid() of fs/proc/base.c).
 */
static bool has_ended(const struct ss_thread_list *list,
		      const struct ss_sampled_thread *thread)
{
	struct ss_schedstat stat;

	return !read_thread(list, thread, &stat);
}

/* Merges a listing of ascending ids: adds new threads, and marks those as gone that have ended. */
static bool merge(struct ss_thread_list *list, const pid_t *tids, size_t count)
{
	__typeof__(list->items) merged = {};
	size_t at = 0;

	if (!ss_vector_reserve(&list->active, count + list->items.count) ||
	    !ss_vector_reserve(&merged, count + list->items.count + 1))
		return false;
	for (size_t i = 0; i <= count; i++) {
		for (; at < list->items.count &&
		       (i == count || list->items.items[at].tid < tids[i]);
		     at++) {
			if (has_ended(list, &list->items.items[at]))
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
	find_active(list);
	return true;
}

static bool list_threads(struct ss_thread_list *list)
{
	const pid_t *tids = NULL;
	size_t count = 0;

	return list->source->list(list->source_data, &tids, &count) &&
	       merge(list, tids, count);
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
		list->run_ns += stat.run_ns - thread->run_ns;
		return ss_thread_update(thread, stat.run_count, stat.run_ns);
	}
	ss_thread_end(thread);
	return true;
}

static void update_active(struct ss_thread_list *list)
{
	for (size_t i = 0; i < list->active.count; i++)
		(void)update_thread(list, ss_thread_list_active(list, i));
}

/* Reads all threads. Returns how many quiet ones have run. */
static size_t update_all(struct ss_thread_list *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->items.count; i++) {
		struct ss_sampled_thread *thread = &list->items.items[i];
		bool quiet = is_quiet(thread);
		count += update_thread(list, thread) && quiet;
	}
	find_active(list);
	return count;
}

static size_t place_of(const struct ss_thread_list *list, pid_t tid)
{
	return ss_lower_bound(list->items.count, i, list->items.items[i].tid < tid);
}

/* Adds a thread to the active ones, unless it is one of them. There is room. */
static void activate(struct ss_thread_list *list, size_t index)
{
	uint32_t *items = list->active.items;
	size_t at = ss_lower_bound(list->active.count, i, items[i] < index);

	if (at < list->active.count && items[at] == index)
		return;
	memmove(items + at + 1, items + at, (list->active.count - at) * sizeof(*items));
	items[at] = (uint32_t)index;
	list->active.count++;
}

/* Reads some of the quiet threads. */
static void check_quiet(struct ss_thread_list *list)
{
	size_t quiet = list->items.count - list->active.count;
	size_t left = (quiet + CHECK_TICKS - 1) / CHECK_TICKS;

	for (size_t i = 0; i < list->items.count && left > 0; i++) {
		if (++list->checked >= list->items.count)
			list->checked = 0;
		struct ss_sampled_thread *thread = &list->items.items[list->checked];
		if (!is_quiet(thread))
			continue;
		left--;
		if (update_thread(list, thread))
			activate(list, list->checked);
	}
}

static bool is_complete(const struct ss_thread_list *list)
{
	return list->items.count - count_gone(list) ==
	       list->source->count(list->source_data);
}

/* What the process has run more than its threads as they were read. */
static bool read_rest(const struct ss_thread_list *list, uint64_t *ret)
{
	uint64_t run_ns;

	if (!list->source->cpu_time(list->source_data, &run_ns))
		return false;
	*ret = run_ns - list->run_ns;
	return true;
}

/*
 * Reads the threads that are not quiet. True: no others have run. The time of the process is read
 * last: if a thread runs meanwhile, it has more than that of its threads.
 */
static bool update_by_balance(struct ss_thread_list *list)
{
	uint64_t before = list->balance.rest_ns;
	uint64_t rest;

	check_quiet(list);
	for (int i = 0; i < BALANCE_TRIES; i++) {
		update_active(list);
		if (!is_complete(list) || !read_rest(list, &rest))
			return false;
		if (rest == list->balance.rest_ns)
			return true;
		if (rest == before) /* one of the others has run, and does not any more */
			return false;
		before = rest;
	}
	return false;
}

/* Determining it pays only if it is the same for some time. */
static void put_off(struct ss_time_balance *balance)
{
	balance->pause_ticks = 1u << SS_MIN(balance->failures, (unsigned)PAUSE_BITS);
	balance->failures++;
}

/* Reads the threads that are not quiet, until none of them runs meanwhile. */
static bool update_until_equal(struct ss_thread_list *list, uint64_t *rest)
{
	uint64_t before = 0;

	for (int i = 0; i < REST_TRIES; i++) {
		update_active(list);
		if (!read_rest(list, rest))
			return false;
		if (i > 0 && *rest == before)
			return true;
		before = *rest;
	}
	return false;
}

/*
 * After all threads were read, determines the balance. Quiet threads may have run since;
 * if a second read shows that none has, their times were consistent.
 */
static void find_rest(struct ss_thread_list *list)
{
	struct ss_time_balance *balance = &list->balance;
	uint64_t rest;

	balance->known = update_until_equal(list, &rest) && update_all(list) == 0 &&
			 is_complete(list);
	if (balance->known)
		balance->rest_ns = rest;
	put_off(balance);
}

/* Whether the balance is to be determined: if it has failed twice in a row, it may have changed,
   because the process has begun or ceased to use timers of its CPU time. */
static bool wants_rest(const struct ss_thread_list *list)
{
	return list->sampled && (!list->balance.known || list->balance.misses >= 2) &&
	       list->active.count < list->items.count / 2;
}

/* Finds out which threads have run. False: the list is not complete. */
static bool update(struct ss_thread_list *list)
{
	struct ss_time_balance *balance = &list->balance;

	if (balance->known && update_by_balance(list)) {
		balance->misses = balance->failures = balance->pause_ticks = 0;
		return true;
	}
	balance->misses++;
	(void)update_all(list);
	if (!is_complete(list)) {
		balance->known = false;
		return false;
	}
	if (balance->pause_ticks > 0)
		balance->pause_ticks--;
	else if (wants_rest(list))
		find_rest(list);
	return is_complete(list);
}

struct ss_sampled_thread *ss_thread_list_find(const struct ss_thread_list *list,
					      pid_t tid)
{
	size_t at = place_of(list, tid);

	return at < list->items.count && list->items.items[at].tid == tid ?
		       &list->items.items[at] :
		       NULL;
}

void ss_thread_list_expect(struct ss_thread_list *list, pid_t tid)
{
	struct ss_sampled_thread *thread = ss_thread_list_find(list, tid);

	if (!thread)
		return;
	thread->quiet_ticks = 0;
	activate(list, (size_t)(thread - list->items.items));
}

bool ss_thread_list_refresh(struct ss_thread_list *list)
{
	begin_tick(list);
	if (update(list))
		return true;
	if (!list_threads(list))
		return false;
	(void)update(list); /* new threads are found at the next tick */
	return true;
}

void ss_thread_list_begin(struct ss_thread_list *list, bool sweep)
{
	begin_tick(list);
	if (sweep)
		(void)update_all(list);
}

/* Inserts a thread; NULL: no memory. */
static struct ss_sampled_thread *insert(struct ss_thread_list *list, pid_t tid)
{
	size_t at = place_of(list, tid);

	if (!ss_vector_reserve(&list->active, list->items.count + 1) ||
	    !ss_vector_push(&list->items))
		return NULL;
	struct ss_sampled_thread *slot = &list->items.items[at];
	memmove(slot + 1, slot, (list->items.count - 1 - at) * sizeof(*slot));
	*slot = new_thread(list, tid);
	find_active(list);
	return slot;
}

struct ss_sampled_thread *ss_thread_list_take(struct ss_thread_list *list, pid_t tid)
{
	struct ss_sampled_thread *thread = ss_thread_list_find(list, tid);

	if (!thread)
		thread = insert(list, tid);
	if (thread && update_thread(list, thread))
		activate(list, (size_t)(thread - list->items.items));
	return thread;
}
