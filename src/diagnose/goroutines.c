#include "diagnose/lock.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "data/pipeline.h"

enum {
	DEPTH = 16,	 /* frames that are searched for a function that waits */
	FRAMES_MAX = 64, /* frames that are searched for one that holds the lock */
	/* The holders of locks are searched for in so many goroutines, for so many stacks. */
	GOROUTINES_MAX = 20000,
	SEARCHES_MAX = 64,
};

/* Whether it is a method of Go's locks. */
static bool is_of_sync(const char *symbol)
{
	return symbol && (strncmp(symbol, "sync.", 5) == 0 ||
			  strncmp(symbol, "internal/sync.", 14) == 0);
}

/* What the stack of a goroutine that waits says. */
struct finding {
	bool searched;
	const char *function; /* NULL: it does not wait for a lock */
	const char *caller;   /* of that function; NULL: not known */
};

/* The function of a lock: the outermost one of Go's own, "sync.(*Mutex).Lock"; else the one
   that the table has. */
static struct finding find_function(const struct ss_stack *stack,
				    const struct ss_wait_table *table)
{
	struct finding found = { .searched = true };
	size_t count = SS_MIN(stack->count, (size_t)DEPTH);
	const struct ss_wait_entry *entry = NULL;
	size_t at = 0;

	for (; at < count && !entry; at++) {
		if (stack->frames[at].symbol)
			entry = ss_wait_table_find(table, stack->frames[at].symbol);
	}
	if (!entry || entry->purpose != SS_PURPOSE_LOCK)
		return found;
	while (at < count && is_of_sync(stack->frames[at].symbol))
		at++;
	found.function = stack->frames[at - 1].symbol;
	found.caller = at < stack->count ? stack->frames[at].symbol : NULL;
	return found;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether a stack has the function. */
static bool has_function(const struct ss_stack *stack, const char *function)
{
	return ss_any(SS_MIN(stack->count, (size_t)FRAMES_MAX), i,
		      is_same(stack->frames[i].symbol, function));
}

/* The only goroutine that is in the function that called the lock's, and that does not wait there: it
   probably has got the lock. 0: there is none, or there are several. */
static uint64_t find_holder(const struct ss_snapshot *snapshot,
			    const struct finding *findings, const struct ss_task *waiter)
{
	const char *caller = findings[waiter->stack_id].caller;
	uint64_t holder = 0;

	for (size_t i = 0; caller && i < snapshot->tasks[SS_TASK_GOROUTINE].count; i++) {
		const struct ss_task *goroutine =
			&snapshot->tasks[SS_TASK_GOROUTINE].items[i];
		const struct finding *found = &findings[goroutine->stack_id];
		const bool waits = goroutine->lock_function &&
				   is_same(found->caller, caller);
		if (waits || !is_same(goroutine->runtime, waiter->runtime) ||
		    !has_function(&snapshot->stacks.items[goroutine->stack_id], caller))
			continue;
		if (holder)
			return 0;
		holder = goroutine->id;
	}
	return holder;
}

/* Sets the holder for each stack with which goroutines wait. */
static void find_holders(struct ss_snapshot *snapshot, const struct finding *findings,
			 uint64_t *holders)
{
	size_t searches = 0;

	if (snapshot->tasks[SS_TASK_GOROUTINE].count > GOROUTINES_MAX)
		return;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_GOROUTINE].count; i++) {
		struct ss_task *goroutine = &snapshot->tasks[SS_TASK_GOROUTINE].items[i];
		uint64_t *holder = &holders[goroutine->stack_id];
		if (!goroutine->lock_function)
			continue;
		if (*holder == 0 && searches++ < SEARCHES_MAX)
			*holder = find_holder(snapshot, findings, goroutine) + 1;
		goroutine->holder = *holder ? *holder - 1 : 0;
	}
}

bool ss_goroutine_locks_find(struct ss_snapshot *snapshot,
			     const struct ss_wait_table *table)
{
	size_t stacks = snapshot->stacks.count;

	if (snapshot->tasks[SS_TASK_GOROUTINE].count == 0)
		return true;
	_cleanup_free_ struct finding *findings = calloc(stacks + 1, sizeof(*findings));
	_cleanup_free_ uint64_t *holders = calloc(stacks + 1, sizeof(*holders));
	if (!findings || !holders)
		return false;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_GOROUTINE].count; i++) {
		struct ss_task *goroutine = &snapshot->tasks[SS_TASK_GOROUTINE].items[i];
		uint32_t id = goroutine->stack_id;
		if (goroutine->status != SS_STATUS_WAITING)
			continue;
		if (!findings[id].searched)
			findings[id] = find_function(&snapshot->stacks.items[id], table);
		goroutine->lock_function = findings[id].function;
	}
	find_holders(snapshot, findings, holders);
	return true;
}

/* The same goroutine in another snapshot of the process; or NULL. */
static const struct ss_task *find_goroutine(const struct ss_snapshot *snapshot,
					    const struct ss_task *wanted)
{
	const struct ss_task *items = snapshot->tasks[SS_TASK_GOROUTINE].items;
	const size_t count = snapshot->tasks[SS_TASK_GOROUTINE].count;
	size_t at = ss_lower_bound(count, i, items[i].id < wanted->id);

	for (; at < count && items[at].id == wanted->id; at++) {
		if (items[at].runtime == wanted->runtime ||
		    (items[at].runtime && wanted->runtime &&
		     strcmp(items[at].runtime, wanted->runtime) == 0))
			return &items[at];
	}
	return NULL;
}

/* Inlined frames are compared as well: both snapshots have them. */
static bool has_same_stack(const struct ss_stack *a, const struct ss_stack *b)
{
	if (a->count != b->count)
		return false;
	return ss_all(a->count, i, a->frames[i].pc == b->frames[i].pc);
}

/* Whether a goroutine waited all the time between two snapshots. */
static bool has_waited(const struct ss_snapshot *last, const struct ss_task *goroutine,
		       const struct ss_snapshot *first, const struct ss_task *before)
{
	return !goroutine->changed && !before->changed &&
	       goroutine->status == SS_STATUS_WAITING &&
	       before->status == SS_STATUS_WAITING && goroutine->run_mark != 0 &&
	       goroutine->run_mark == before->run_mark &&
	       has_same_stack(&last->stacks.items[goroutine->stack_id],
			      &first->stacks.items[before->stack_id]);
}

/* Marks the stacks with which a goroutine waited that no longer does: others with the same
   stack probably wait for the same lock, which changes hands. */
static void find_left(const struct ss_snapshot *last, const struct ss_snapshot *first,
		      bool *left)
{
	for (size_t i = 0; i < first->tasks[SS_TASK_GOROUTINE].count; i++) {
		const struct ss_task *before = &first->tasks[SS_TASK_GOROUTINE].items[i];
		const struct ss_task *goroutine = find_goroutine(last, before);
		if (before->status == SS_STATUS_WAITING && !before->changed &&
		    !(goroutine && has_waited(last, goroutine, first, before)))
			left[before->stack_id] = true;
	}
}

bool ss_snapshot_compare_goroutines(struct ss_snapshot *last,
				    const struct ss_snapshot *first)
{
	_cleanup_free_ bool *left = calloc(first->stacks.count + 1, sizeof(*left));

	if (!left)
		return false;
	find_left(last, first, left);
	for (size_t i = 0; i < last->tasks[SS_TASK_GOROUTINE].count; i++) {
		struct ss_task *goroutine = &last->tasks[SS_TASK_GOROUTINE].items[i];
		const struct ss_task *before = goroutine->lock_function ?
						       find_goroutine(first, goroutine) :
						       NULL;
		goroutine->blocked = before &&
				     has_waited(last, goroutine, first, before) &&
				     !left[before->stack_id];
	}
	return true;
}
