/*
 * Cycles and the ends of chains, in graphs made by hand and, against a simple search, in
 * random graphs.
 */
#include "unit.h"

#include <stdlib.h>

#include "base/graph.h"

enum { MANY = 100000 };

#define NONE SS_GRAPH_NONE

TEST(test_chain)
{
	const size_t next[] = { 1, 2, NONE, 2, NONE };
	const size_t ends[] = { 2, 2, 2, 2, 4 };
	struct ss_graph graph;

	assert_true(ss_graph_init(&graph, next, 5));
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(graph.end[i], ends[i]);
		assert_false(graph.cyclic[i]);
		assert_int_equal(ss_graph_list_cycle(&graph, i, NULL, 0), 0);
	}
	ss_graph_deinit(&graph);
}

TEST(test_cycles)
{
	/* 1 -> 3 -> 2 -> 1 with a tail from 0 and 5; 4 waits for itself */
	const size_t next[] = { 3, 3, 1, 2, 4, 0 };
	const size_t ends[] = { 1, 1, 1, 1, 4, 1 };
	const bool cyclic[] = { false, true, true, true, true, false };
	struct ss_graph graph;
	size_t members[2] = {};

	assert_true(ss_graph_init(&graph, next, 6));
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(graph.end[i], ends[i]);
		assert_int_equal(graph.cyclic[i], cyclic[i]);
	}
	assert_int_equal(ss_graph_list_cycle(&graph, 1, members, 2), 3);
	assert_int_equal(members[0], 1);
	assert_int_equal(members[1], 3);
	assert_int_equal(ss_graph_list_cycle(&graph, 4, members, 2), 1);
	assert_int_equal(members[0], 4);
	ss_graph_deinit(&graph);
}

TEST(test_nothing)
{
	const size_t outside[] = { 7, 1000 };
	struct ss_graph graph;

	assert_true(ss_graph_init(&graph, NULL, 0));
	ss_graph_deinit(&graph);
	assert_true(ss_graph_init(&graph, outside, 2));
	assert_int_equal(graph.end[0], 0);
	assert_int_equal(graph.end[1], 1);
	ss_graph_deinit(&graph);
}

TEST(test_long_chain)
{
	size_t *next = calloc(MANY, sizeof(*next));
	struct ss_graph graph;

	assert_non_null(next);
	for (size_t i = 0; i < MANY; i++)
		next[i] = (i + 1) % MANY;
	assert_true(ss_graph_init(&graph, next, MANY));
	assert_int_equal(ss_graph_list_cycle(&graph, 5, NULL, 0), MANY);
	ss_graph_deinit(&graph);
	next[MANY - 1] = NONE;
	assert_true(ss_graph_init(&graph, next, MANY));
	assert_int_equal(graph.end[0], MANY - 1);
	ss_graph_deinit(&graph);
	free(next);
}

/* Whether the chain of node returns to it; otherwise its end. */
static bool search(const size_t *next, size_t count, size_t node, size_t *end)
{
	size_t at = node;

	for (size_t steps = 0; steps < count; steps++) {
		*end = at;
		at = next[at];
		if (at == node)
			return true;
		if (at == NONE)
			return false;
	}
	*end = NONE; /* runs into a cycle that node is not in */
	return false;
}

TEST(test_against_search)
{
	enum { NODES = 12 };
	unsigned random = 12345;

	for (int round = 0; round < 2000; round++) {
		size_t next[NODES];
		struct ss_graph graph;
		for (size_t i = 0; i < NODES; i++) {
			random = random * 1103515245 + 12345;
			size_t to = (random >> 16) % (NODES + 4);
			next[i] = to < NODES ? to : NONE;
		}
		assert_true(ss_graph_init(&graph, next, NODES));
		for (size_t i = 0; i < NODES; i++) {
			size_t end;
			bool cyclic = search(next, NODES, i, &end);
			assert_int_equal(graph.cyclic[i], cyclic);
			if (!cyclic && end != NONE)
				assert_int_equal(graph.end[i], end);
			else
				assert_true(graph.cyclic[graph.end[i]]);
		}
		ss_graph_deinit(&graph);
	}
}
