#include "diagnose/goroutine_lock.h"

#include <string.h>

#include "base/search.h"
#include "model/pipeline.h"

enum { DEPTH = 16 }; /* frames that are searched for a function that waits */

/* Whether it is a method of Go's locks. */
static bool is_of_sync(const char *symbol)
{
	return symbol && (strncmp(symbol, "sync.", 5) == 0 ||
			  strncmp(symbol, "internal/sync.", 14) == 0);
}

/* The function of a lock: the outermost one of Go's own, "sync.(*Mutex).Lock"; else the one
   that the table has. NULL: it does not wait for a lock. */
static const char *find_function(const struct ss_stack *stack,
				 const struct ss_wait_table *table)
{
	size_t count = SS_MIN(stack->count, (size_t)DEPTH);
	const struct ss_wait_entry *entry = NULL;
	size_t at = 0;

	for (; at < count && !entry; at++) {
		if (stack->frames[at].symbol)
			entry = ss_wait_table_find(table, stack->frames[at].symbol);
	}
	if (!entry || entry->purpose != SS_PURPOSE_LOCK)
		return NULL;
	while (at < count && is_of_sync(stack->frames[at].symbol))
		at++;
	return stack->frames[at - 1].symbol;
}

bool ss_goroutine_locks_find(struct ss_snapshot *snapshot,
			     const struct ss_wait_table *table)
{
	size_t stacks = snapshot->stacks.count;

	if (snapshot->goroutines.count == 0)
		return true;
	_cleanup_free_ const char **functions = calloc(stacks + 1, sizeof(const char *));
	_cleanup_free_ bool *searched = calloc(stacks + 1, sizeof(*searched));
	if (!functions || !searched)
		return false;
	for (size_t i = 0; i < snapshot->goroutines.count; i++) {
		struct ss_goroutine *goroutine = &snapshot->goroutines.items[i];
		uint32_t id = goroutine->stack_id;
		if (goroutine->status != SS_GOROUTINE_WAITING)
			continue;
		if (!searched[id])
			functions[id] = find_function(&snapshot->stacks.items[id], table);
		searched[id] = true;
		goroutine->lock_function = functions[id];
	}
	return true;
}

/* The same goroutine in another snapshot of the process; or NULL. */
static const struct ss_goroutine *find_goroutine(const struct ss_snapshot *snapshot,
						 const struct ss_goroutine *wanted)
{
	const struct ss_goroutine *items = snapshot->goroutines.items;
	const size_t count = snapshot->goroutines.count;
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
	for (size_t i = 0; i < a->count; i++) {
		if (a->frames[i].pc != b->frames[i].pc)
			return false;
	}
	return true;
}

void ss_snapshot_compare_goroutines(struct ss_snapshot *last,
				    const struct ss_snapshot *first)
{
	for (size_t i = 0; i < last->goroutines.count; i++) {
		struct ss_goroutine *goroutine = &last->goroutines.items[i];
		const struct ss_goroutine *before =
			goroutine->lock_function && !goroutine->changed ?
				find_goroutine(first, goroutine) :
				NULL;
		goroutine->blocked =
			before && !before->changed &&
			before->status == SS_GOROUTINE_WAITING &&
			goroutine->run_mark != 0 &&
			goroutine->run_mark == before->run_mark &&
			has_same_stack(&last->stacks.items[goroutine->stack_id],
				       &first->stacks.items[before->stack_id]);
	}
}
