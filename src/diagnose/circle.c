#include "diagnose/circle.h"

#include "base/cleanup.h"
#include "diagnose/graph.h"
#include "diagnose/party.h"
#include "model/futex.h"

/* The threads of all processes, one behind the other. */
struct search {
	struct ss_snapshot *snapshot;
	struct ss_circle_member *members; /* by node */
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
	const struct ss_snapshot *party;
	size_t count = 0;

	for (size_t i = 0; (party = ss_snapshot_party(snapshot, i)) != NULL; i++)
		count += party->threads.count;
	return count;
}

/* The number of a thread's node: those of its process lie together. */
static size_t node_of(const struct ss_snapshot *snapshot,
		      const struct ss_destination *destination)
{
	const struct ss_snapshot *party;
	size_t before = 0;

	for (size_t i = 0; (party = ss_snapshot_party(snapshot, i)) != NULL; i++) {
		if (party == destination->snapshot)
			return before +
			       (size_t)(destination->thread - party->threads.items);
		before += party->threads.count;
	}
	return SS_GRAPH_NONE;
}

/* Whether it waited all the time for the same, and will wait for ever. */
static bool stays(const struct ss_circle_member *member)
{
	const struct ss_wait *wait = member->thread->wait;
	const struct ss_thread_facts *facts =
		ss_facts_find_thread(member->snapshot->facts, member->thread->tid);
	struct ss_futex futex;

	if (!wait || !facts || !facts->stood_still)
		return false;
	if (ss_futex_parse(&facts->call, &futex) && futex.timed)
		return false;
	return wait->timeout_ns < 0 && wait->left_ns < 0;
}

static void link_threads(struct search *search)
{
	const struct ss_snapshot *party;
	size_t node = 0;

	for (size_t i = 0; (party = ss_snapshot_party(search->snapshot, i)) != NULL;
	     i++) {
		for (size_t t = 0; t < party->threads.count; t++, node++) {
			const struct ss_thread *thread = &party->threads.items[t];
			const struct ss_destination to = ss_party_follow(party, thread);
			search->members[node] =
				(struct ss_circle_member){ party, thread };
			search->next[node] =
				to.thread && !to.unsure && stays(&search->members[node]) ?
					node_of(search->snapshot, &to) :
					SS_GRAPH_NONE;
		}
	}
}

static bool add_circle(struct search *search, size_t first)
{
	size_t count = ss_graph_walk_cycle(&search->graph, first, NULL, 0);
	_cleanup_free_ size_t *nodes = calloc(count, sizeof(*nodes));
	struct ss_circle_member *members = calloc(count, sizeof(*members));
	struct ss_circle *circle =
		nodes && members ? ss_vector_push(&search->snapshot->circles) : NULL;

	if (!circle) {
		free(members);
		return false;
	}
	(void)ss_graph_walk_cycle(&search->graph, first, nodes, count);
	for (size_t i = 0; i < count; i++)
		members[i] = search->members[nodes[i]];
	*circle = (struct ss_circle){ .members = members, .count = count };
	return true;
}

/* What stays within one process is a deadlock of its own. */
static bool is_across(const struct search *search, size_t first)
{
	const struct ss_snapshot *snapshot = search->members[first].snapshot;

	for (size_t at = search->next[first]; at != first; at = search->next[at]) {
		if (search->members[at].snapshot != snapshot)
			return true;
	}
	return false;
}

bool ss_circle_find(struct ss_snapshot *snapshot)
{
	size_t count = count_threads(snapshot);
	__attribute__((cleanup(search_deinit))) struct search search = {
		.snapshot = snapshot,
		.members = calloc(count + 1, sizeof(struct ss_circle_member)),
		.next = calloc(count + 1, sizeof(size_t)),
	};

	if (snapshot->others.count == 0)
		return true;
	if (!search.members || !search.next)
		return false;
	link_threads(&search);
	if (!ss_graph_solve(&search.graph, search.next, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (search.graph.cyclic[i] && search.graph.end[i] == i &&
		    is_across(&search, i) && !add_circle(&search, i))
			return false;
	}
	return true;
}
