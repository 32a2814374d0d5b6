#include "profile/chains.h"

#include "base/graph.h"

/* The first edge of a thread counts. */
static void set_edges(const struct ss_profile *profile, struct ss_chain *chains,
		      size_t *next)
{
	for (size_t i = 0; i < profile->threads.count; i++) {
		chains[i] = (struct ss_chain){ .edge = SS_ID_NONE,
					       .next = SS_ID_NONE,
					       .cycle = SS_ID_NONE };
		next[i] = SS_GRAPH_NONE;
	}
	for (uint32_t i = 0; i < profile->edges.count; i++) {
		const struct ss_profile_edge *edge = &profile->edges.items[i];
		struct ss_chain *chain = &chains[edge->thread];
		if (chain->edge != SS_ID_NONE)
			continue;
		chain->edge = i;
		chain->next = edge->owner;
		if (edge->owner != SS_ID_NONE)
			next[edge->thread] = edge->owner;
	}
}

static void set_cycles(const struct ss_profile *profile, struct ss_chain *chains,
		       const struct ss_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++) {
		if (graph->cyclic[i] && !profile->edges.items[chains[i].edge].in_cycle)
			chains[graph->end[i]].unproven = true;
	}
	for (size_t i = 0; i < graph->count; i++) {
		struct ss_chain *first = &chains[graph->end[i]];
		if (!ss_graph_ends_in_cycle(graph, i) || first->unproven)
			continue;
		chains[i].cycle = (uint32_t)graph->end[i];
		chains[i].member = graph->cyclic[i];
		first->size += graph->cyclic[i];
		first->behind += !graph->cyclic[i];
	}
}

struct ss_chain *ss_chains_new(const struct ss_profile *profile)
{
	size_t count = profile->threads.count;
	_cleanup_free_ struct ss_chain *chains = calloc(count + 1, sizeof(*chains));
	_cleanup_free_ size_t *next = calloc(count + 1, sizeof(*next));
	struct ss_graph graph;

	if (!chains || !next)
		return NULL;
	set_edges(profile, chains, next);
	if (!ss_graph_init(&graph, next, count))
		return NULL;
	set_cycles(profile, chains, &graph);
	ss_graph_deinit(&graph);
	return take_ptr(chains);
}
