#include "diagnose/process_cycle.h"

#include "base/cleanup.h"
#include "base/graph.h"
#include "diagnose/chain.h"

/* The nodes are the threads of all processes, process by process. */
struct search {
	struct ss_snapshot *snapshot;
	struct ss_thread_ref *members; /* by node */
	size_t *next;
	struct ss_graph graph;
};

static void search_deinit(struct search *search)
{
	free(search->members);
	free(search->next);
	ss_graph_deinit(&search->graph);
}

static size_t count_threads(const struct ss_snapshot *snapshot)
{
	const struct ss_snapshot *process;
	size_t count = 0;

	for (size_t i = 0; (process = ss_snapshot_related(snapshot, i)) != NULL; i++)
		count += process->threads.count;
	return count;
}

/* The node of the thread that another one waits for. */
static size_t node_of(const struct ss_snapshot *snapshot,
		      const struct ss_chain_link *link)
{
	const struct ss_snapshot *process;
	size_t before = 0;

	for (size_t i = 0; (process = ss_snapshot_related(snapshot, i)) != NULL; i++) {
		if (process == link->snapshot)
			return before + (size_t)(link->thread - process->threads.items);
		before += process->threads.count;
	}
	return SS_GRAPH_NONE;
}

/* Whether the thread waited for the same object all the time, without a time limit. */
static bool is_permanent(const struct ss_thread_ref *member)
{
	const struct ss_wait *wait = member->thread->wait;
	const struct ss_thread_facts *facts =
		ss_facts_find_thread(member->snapshot->facts, member->thread->tid);

	return wait && !wait->timed && facts && facts->unchanged;
}

static void link_threads(struct search *search)
{
	const struct ss_snapshot *process;
	size_t node = 0;

	for (size_t i = 0; (process = ss_snapshot_related(search->snapshot, i)) != NULL;
	     i++) {
		for (size_t t = 0; t < process->threads.count; t++, node++) {
			const struct ss_thread *thread = &process->threads.items[t];
			const struct ss_chain_link to = ss_chain_follow(process, thread);
			search->members[node] = (struct ss_thread_ref){ process, thread };
			search->next[node] =
				to.thread && !to.ambiguous &&
						is_permanent(&search->members[node]) ?
					node_of(search->snapshot, &to) :
					SS_GRAPH_NONE;
		}
	}
}

static bool add_cycle(struct search *search, size_t first)
{
	size_t count = ss_graph_list_cycle(&search->graph, first, NULL, 0);
	_cleanup_free_ size_t *nodes = calloc(count, sizeof(*nodes));
	struct ss_thread_ref *members =
		ss_snapshot_alloc(search->snapshot, count, sizeof(*members));
	struct ss_cycle *cycle =
		nodes && members ? ss_vector_push(&search->snapshot->cycles) : NULL;

	if (!cycle)
		return false;
	(void)ss_graph_list_cycle(&search->graph, first, nodes, count);
	for (size_t i = 0; i < count; i++)
		members[i] = search->members[nodes[i]];
	*cycle = (struct ss_cycle){ .members = members, .count = count };
	return true;
}

/* Whether a cycle spans several processes. A cycle within a process is a struct
   ss_deadlock. */
static bool is_across(const struct search *search, size_t first)
{
	const struct ss_snapshot *snapshot = search->members[first].snapshot;

	for (size_t at = search->next[first]; at != first; at = search->next[at]) {
		if (search->members[at].snapshot != snapshot)
			return true;
	}
	return false;
}

bool ss_process_cycle_find(struct ss_snapshot *snapshot)
{
	size_t count = count_threads(snapshot);
	__attribute__((cleanup(search_deinit))) struct search search = {
		.snapshot = snapshot,
		.members = calloc(count + 1, sizeof(struct ss_thread_ref)),
		.next = calloc(count + 1, sizeof(size_t)),
	};

	if (snapshot->others.count == 0)
		return true;
	if (!search.members || !search.next)
		return false;
	link_threads(&search);
	if (!ss_graph_init(&search.graph, search.next, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (search.graph.cyclic[i] && search.graph.end[i] == i &&
		    is_across(&search, i) && !add_cycle(&search, i))
			return false;
	}
	return true;
}
