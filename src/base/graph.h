/*
 * The wait-for graph as plain numbers. A node waits for at most one other node, so each
 * chain ends in a node that waits for nobody, or in a cycle. Nodes are threads, of one
 * process or of several; the caller maps them to numbers.
 */
#ifndef SS_BASE_GRAPH_H
#define SS_BASE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_GRAPH_NONE SIZE_MAX

struct ss_graph {
	size_t count;	    /* of nodes */
	const size_t *next; /* the node each node waits for, or NONE; the caller's */
	size_t *end;	    /* where its chain ends; in a cycle: its lowest member */
	bool *cyclic;	    /* whether the node is a member of a cycle */
};

/* Computes end and cyclic in linear time. A next that is out of range counts as NONE.
   Returns false without memory; nothing has to be freed then. */
bool ss_graph_init(struct ss_graph *graph, const size_t *next, size_t count);
void ss_graph_deinit(struct ss_graph *graph);

/* Whether the chain of a node, which may be a member itself, ends in a cycle. */
bool ss_graph_ends_in_cycle(const struct ss_graph *graph, size_t node);

/* Lists the members of the cycle of node, each followed by the one it waits for,
   beginning with node. Writes at most max of them; returns how many there are, which is
   0 if node is in no cycle. */
size_t ss_graph_list_cycle(const struct ss_graph *graph, size_t node, size_t *ret,
			   size_t max);

#endif
