#include "diagnose/deadlock.h"

#include "diagnose/graph.h"
#include "model/futex.h"

/* A chain that ends at a thread, on its way to a blocker: one for each waiting thread. */
struct link {
	size_t end;
	uint64_t lock;
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

/* Whether the owner stood still while the lock was read that the thread waits for: at the
   capture (see struct ss_lock_copy), or in later looks at both of them. */
static bool stood_still(const struct ss_thread_facts *thread,
			const struct ss_thread_facts *owner)
{
	if (!thread || !owner)
		return false;
	if (thread->stood_still && owner->stood_still)
		return true;
	if (thread->moment == 0)
		return false;
	return owner->moment == thread->moment ||
	       (thread->moment % 2 && owner->moment == thread->moment + 1);
}

/*
 * An owner that waits for nobody may have run on since: that it holds the lock was true
 * when the lock was read. A longer chain needs one moment for all of it.
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
		    !stood_still(search->facts[i], search->facts[owner]))
			search->next[i] = SS_GRAPH_NONE;
	}
}

static bool is_timed(const struct search *search, size_t thread)
{
	struct ss_futex futex;

	return search->facts[thread] &&
	       ss_futex_parse(&search->facts[thread]->call, &futex) && futex.timed;
}

static bool add_deadlock(struct search *search, size_t first)
{
	struct ss_snapshot *snapshot = search->snapshot;
	size_t count = ss_graph_walk_cycle(&search->graph, first, NULL, 0);
	size_t *members = calloc(count, sizeof(*members));
	struct ss_deadlock *deadlock = members ? ss_vector_push(&snapshot->deadlocks) :
						 NULL;

	if (!deadlock) {
		free(members);
		return false;
	}
	(void)ss_graph_walk_cycle(&search->graph, first, members, count);
	deadlock->threads = members;
	deadlock->count = count;
	for (size_t i = 0; i < count; i++)
		deadlock->timed |= is_timed(search, members[i]);
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

/* Links of one end, sorted by lock. A thread that is only joined blocks nobody: to wait
   for the end of others is what a main thread does. */
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
	return ss_graph_solve(&search.graph, search.next, count) &&
	       add_deadlocks(&search) && add_blockers(&search);
}
