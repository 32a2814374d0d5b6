#include "diagnose/deadlock.h"

#include "base/graph.h"

/* The chain of a waiting thread: its last thread and its first lock. */
struct link {
	size_t end;
	uint64_t lock; /* 0: the first wait is a join */
};

struct search {
	struct ss_snapshot *snapshot;
	const struct ss_thread_facts **facts; /* by thread; NULL: none */
	size_t *next;			      /* the graph */
	struct ss_graph graph;
};

static void search_deinit(struct search *search)
{
	free(search->facts);
	free(search->next);
	ss_graph_deinit(&search->graph);
}

static size_t find_thread(const struct ss_snapshot *snapshot, pid_t tid)
{
	const struct ss_thread *thread = ss_snapshot_find_thread(snapshot, tid);

	return thread ? (size_t)(thread - snapshot->threads.items) : SS_GRAPH_NONE;
}

static size_t owner_of(const struct ss_snapshot *snapshot, size_t thread)
{
	const struct ss_wait *wait = snapshot->threads.items[thread].wait;

	return wait && wait->owner_tid && !wait->owner_pid ?
		       find_thread(snapshot, wait->owner_tid) :
		       SS_GRAPH_NONE;
}

/* Whether the owner did not run while the thread's lock was read: in the capture (see
   struct ss_lock_copy), or in later checks of both. */
static bool was_read_atomically(const struct ss_thread_facts *thread,
				const struct ss_thread_facts *owner)
{
	if (!thread || !owner)
		return false;
	if (thread->unchanged && owner->unchanged)
		return true;
	if (thread->freeze_round == 0)
		return false;
	return owner->freeze_round == thread->freeze_round ||
	       (thread->freeze_round % 2 &&
		owner->freeze_round == thread->freeze_round + 1);
}

/*
 * The owner held the lock when the lock was read, even if it has run since. But if the
 * owner waits itself, both threads must have been stopped together: otherwise the two
 * waits may never have existed at the same time.
 */
static void link_threads(struct search *search)
{
	struct ss_snapshot *snapshot = search->snapshot;

	for (size_t i = 0; i < snapshot->threads.count; i++) {
		search->facts[i] = ss_facts_find_thread(snapshot->facts,
							snapshot->threads.items[i].tid);
		search->next[i] = owner_of(snapshot, i);
	}
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		size_t owner = search->next[i];
		if (owner != SS_GRAPH_NONE &&
		    owner_of(snapshot, owner) != SS_GRAPH_NONE &&
		    !was_read_atomically(search->facts[i], search->facts[owner]))
			search->next[i] = SS_GRAPH_NONE;
	}
}

static bool add_deadlock(struct search *search, size_t first)
{
	struct ss_snapshot *snapshot = search->snapshot;
	size_t count = ss_graph_list_cycle(&search->graph, first, NULL, 0);
	size_t *members = ss_snapshot_alloc(snapshot, count, sizeof(*members));
	struct ss_deadlock *deadlock = members ? ss_vector_push(&snapshot->deadlocks) :
						 NULL;

	if (!deadlock)
		return false;
	(void)ss_graph_list_cycle(&search->graph, first, members, count);
	deadlock->threads = members;
	deadlock->count = count;
	for (size_t i = 0; i < count; i++)
		deadlock->timed |= snapshot->threads.items[members[i]].wait->timed;
	for (size_t i = 0; i < search->graph.count; i++)
		deadlock->behind += search->graph.end[i] == first &&
				    !search->graph.cyclic[i];
	return true;
}

static bool add_deadlocks(struct search *search)
{
	for (size_t i = 0; i < search->graph.count; i++) {
		if (search->graph.cyclic[i] && search->graph.end[i] == i &&
		    !add_deadlock(search, i))
			return false;
	}
	return true;
}

static int compare_links(const void *a, const void *b)
{
	const struct link *x = a;
	const struct link *y = b;

	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return (x->lock > y->lock) - (x->lock < y->lock);
}

static int compare_blockers(const void *a, const void *b)
{
	const struct ss_blocker *x = a;
	const struct ss_blocker *y = b;

	if (x->waiting != y->waiting)
		return x->waiting > y->waiting ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

/* Adds the thread at the end of these chains, which are sorted by lock. A thread that
   is only joined is not a blocker: main threads usually join others. */
static bool add_blocker(struct ss_snapshot *snapshot, const struct link *links,
			size_t count)
{
	struct ss_blocker blocker = { .thread = links[0].end, .waiting = count };

	for (size_t i = 0; i < count; i++)
		blocker.locks += links[i].lock &&
				 (i == 0 || links[i - 1].lock != links[i].lock);
	if (blocker.locks == 0)
		return true;
	struct ss_blocker *slot = ss_vector_push(&snapshot->blockers);
	if (slot)
		*slot = blocker;
	return slot != NULL;
}

static bool add_blockers(struct search *search)
{
	struct ss_snapshot *snapshot = search->snapshot;
	_cleanup_free_ struct link *links =
		calloc(search->graph.count + 1, sizeof(*links));
	size_t count = 0;

	if (!links)
		return false;
	for (size_t i = 0; i < search->graph.count; i++) {
		size_t end = search->graph.end[i];
		if (end == i || search->graph.cyclic[end])
			continue;
		const struct ss_wait *wait = snapshot->threads.items[i].wait;
		bool joins = wait->kind == SS_WAIT_JOIN;
		links[count++] =
			(struct link){ .end = end, .lock = joins ? 0 : wait->address };
	}
	if (count > 1)
		qsort(links, count, sizeof(*links), compare_links);
	for (size_t i = 0, run; i < count; i += run) {
		for (run = 1; i + run < count && links[i + run].end == links[i].end;)
			run++;
		if (!add_blocker(snapshot, &links[i], run))
			return false;
	}
	if (snapshot->blockers.count > 1)
		qsort(snapshot->blockers.items, snapshot->blockers.count,
		      sizeof(*snapshot->blockers.items), compare_blockers);
	return true;
}

bool ss_deadlock_find(struct ss_snapshot *snapshot)
{
	size_t count = snapshot->threads.count;
	__attribute__((cleanup(search_deinit))) struct search search = {
		.snapshot = snapshot,
		.facts = calloc(count + 1, sizeof(const struct ss_thread_facts *)),
		.next = calloc(count + 1, sizeof(size_t)),
	};

	if (!search.facts || !search.next)
		return false;
	link_threads(&search);
	return ss_graph_init(&search.graph, search.next, count) &&
	       add_deadlocks(&search) && add_blockers(&search);
}
