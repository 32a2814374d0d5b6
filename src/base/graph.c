#include "base/graph.h"

#include <stdlib.h>

#include "base/cleanup.h"

static size_t next_of(const struct ss_graph *graph, size_t node)
{
	size_t next = graph->next[node];

	return next < graph->count ? next : SS_GRAPH_NONE;
}

static void mark_cycle(struct ss_graph *graph, size_t member)
{
	size_t lowest = member;
	size_t node = member;

	do {
		lowest = SS_MIN(lowest, node);
		node = graph->next[node];
	} while (node != member);
	do {
		graph->cyclic[node] = true;
		graph->end[node] = lowest;
		node = graph->next[node];
	} while (node != member);
}

/* Follows the chain from first through nodes that no earlier walk has visited. It stops
   at the end of the chain, at a node of an earlier walk, or at one of its own nodes. */
static void follow(struct ss_graph *graph, size_t first, size_t *walks)
{
	size_t node = first;
	size_t end;

	while (!walks[node]) {
		walks[node] = first + 1;
		if (next_of(graph, node) == SS_GRAPH_NONE) {
			graph->end[node] = node;
			break;
		}
		node = graph->next[node];
	}
	if (graph->end[node] == SS_GRAPH_NONE)
		mark_cycle(graph, node);
	end = graph->end[node];
	for (node = first; graph->end[node] == SS_GRAPH_NONE; node = graph->next[node])
		graph->end[node] = end;
}

bool ss_graph_init(struct ss_graph *graph, const size_t *next, size_t count)
{
	_cleanup_free_ size_t *walks = calloc(count + 1, sizeof(*walks));

	*graph = (struct ss_graph){ .count = count, .next = next };
	graph->end = calloc(count + 1, sizeof(*graph->end));
	graph->cyclic = calloc(count + 1, sizeof(*graph->cyclic));
	if (!walks || !graph->end || !graph->cyclic) {
		ss_graph_deinit(graph);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		graph->end[i] = SS_GRAPH_NONE;
	for (size_t i = 0; i < count; i++) {
		if (!walks[i])
			follow(graph, i, walks);
	}
	return true;
}

void ss_graph_deinit(struct ss_graph *graph)
{
	free(graph->end);
	free(graph->cyclic);
	*graph = (struct ss_graph){};
}

bool ss_graph_ends_in_cycle(const struct ss_graph *graph, size_t node)
{
	return graph->cyclic[graph->end[node]];
}

size_t ss_graph_list_cycle(const struct ss_graph *graph, size_t node, size_t *ret,
			   size_t max)
{
	size_t count = 0;
	size_t at = node;

	if (!graph->cyclic[node])
		return 0;
	do {
		if (count < max)
			ret[count] = at;
		count++;
		at = graph->next[at];
	} while (at != node);
	return count;
}
