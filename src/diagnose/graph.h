/*
 * The wait-for graph as plain numbers: every node waits for one other node at most, so
 * each chain ends in a node that waits for nobody, or in a cycle.
 */
#ifndef SS_DIAGNOSE_GRAPH_H
#define SS_DIAGNOSE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_GRAPH_NONE SIZE_MAX

struct ss_graph {
	size_t count;	    /* of nodes */
	const size_t *next; /* for whom each node waits, or NONE; the caller's */
	size_t *end;	    /* where its chain ends; in a cycle: its lowest member */
	bool *cyclic;	    /* whether the node is a member of a cycle */
};

/* Fills in end and cyclic in linear time. A next that is no node counts as NONE. False
   without memory, and then nothing has to be freed. */
bool ss_graph_solve(struct ss_graph *graph, const size_t *next, size_t count);
void ss_graph_deinit(struct ss_graph *graph);

/* The members of the cycle that node is in, each followed by the one that it waits for,
   beginning with node. Writes as many as fit in max; returns how many there are. */
size_t ss_graph_walk_cycle(const struct ss_graph *graph, size_t node, size_t *ret,
			   size_t max);

#endif
