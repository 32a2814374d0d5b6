#include "profile/condense.h"

#include <string.h>

/* State of the construction. */
struct condenser {
	struct ss_condensed *result;
	const struct ss_profile *original;
	bool whole;
	uint32_t *functions;	  /* of the result, by function of the original */
	uint32_t *nodes;	  /* of the result, by node of the original */
	struct ss_idtable places; /* of struct place: already counted */
};

struct place {
	uint32_t node;
	uint32_t function; /* of the original */
};

static void condenser_deinit(struct condenser *c)
{
	free(c->functions);
	free(c->nodes);
	ss_idtable_deinit(&c->places);
}

void ss_condensed_free(struct ss_condensed *condensed)
{
	if (!condensed)
		return;
	ss_idtable_deinit(&condensed->profile.functions);
	ss_idtable_deinit(&condensed->profile.nodes);
	ss_vector_free(&condensed->profile.node_of);
	free(condensed->functions);
	free(condensed->nodes);
	free(condensed);
}

/* Whether a function of the original is an address without symbol, and to be merged. */
static bool is_place(const struct condenser *c, uint64_t function)
{
	const struct ss_profile_function *f =
		ss_profile_function_at(c->original, function);

	return !c->whole && f->place && !f->has_start;
}

static void count_place(struct ss_places *places, uint32_t function)
{
	if (places->count++ == 0)
		places->first = function;
}

static bool add_functions(struct condenser *c)
{
	struct ss_condensed *result = c->result;

	for (uint32_t i = 0; i < c->original->functions.count; i++) {
		struct ss_profile_function key = *ss_profile_function_at(c->original, i);
		if (is_place(c, i))
			key.name = key.place;
		c->functions[i] = ss_idtable_add(&result->profile.functions, &key,
						 sizeof(key), NULL);
		if (c->functions[i] == SS_ID_NONE)
			return false;
		if (is_place(c, i))
			count_place(&result->functions[c->functions[i]], i);
	}
	return true;
}

/* Returns the node of the result. A place that is called by one of the same module belongs
   to the node of its caller. */
static uint32_t translate_node(struct condenser *c, const struct ss_profile_node *node)
{
	struct ss_profile *to = &c->result->profile;
	const struct ss_profile_node key = {
		.parent = c->nodes[node->parent],
		.function = c->functions[node->function],
	};

	if (is_place(c, node->function) && key.parent != 0 &&
	    ss_profile_node_at(to, key.parent)->function == key.function)
		return key.parent;
	return ss_idtable_add(&to->nodes, &key, sizeof(key), NULL);
}

static bool add_nodes(struct condenser *c)
{
	for (uint32_t i = 1; i < c->original->nodes.count; i++) {
		const struct ss_profile_node *node = ss_profile_node_at(c->original, i);
		struct place place = { translate_node(c, node), node->function };
		if (place.node == SS_ID_NONE)
			return false;
		c->nodes[i] = place.node;
		if (!is_place(c, node->function))
			continue;
		size_t known = c->places.count;
		if (ss_idtable_add(&c->places, &place, sizeof(place), NULL) == SS_ID_NONE)
			return false;
		if (c->places.count > known)
			count_place(&c->result->nodes[place.node], node->function);
	}
	return true;
}

static bool add_calls(struct condenser *c)
{
	for (size_t i = 0; i < c->original->node_of.count; i++) {
		uint32_t *slot = ss_vector_push(&c->result->profile.node_of);
		if (!slot)
			return false;
		*slot = c->nodes[c->original->node_of.items[i]];
	}
	return true;
}

static bool condense(struct condenser *c, bool whole)
{
	const struct ss_profile_node root = { SS_ID_NONE, SS_ID_NONE };
	size_t functions = c->original->functions.count + 1;
	size_t nodes = c->original->nodes.count + 1;

	c->whole = whole;
	c->functions = calloc(functions, sizeof(*c->functions));
	c->nodes = calloc(nodes, sizeof(*c->nodes));
	c->result->functions = calloc(functions, sizeof(*c->result->functions));
	c->result->nodes = calloc(nodes, sizeof(*c->result->nodes));
	if (!c->functions || !c->nodes || !c->result->functions || !c->result->nodes)
		return false;
	return ss_idtable_add(&c->result->profile.nodes, &root, sizeof(root), NULL) ==
		       0 &&
	       add_functions(c) && add_nodes(c) && add_calls(c);
}

struct ss_condensed *ss_condensed_new(const struct ss_profile *original, bool whole)
{
	_cleanup_(ss_condensed_cleanup) struct ss_condensed *result =
		calloc(1, sizeof(*result));
	__attribute__((cleanup(condenser_deinit))) struct condenser condenser = {
		.result = result, .original = original
	};

	if (!result)
		return NULL;
	result->original = original;
	result->profile = *original;
	result->profile.functions = (struct ss_idtable){};
	result->profile.nodes = (struct ss_idtable){};
	memset(&result->profile.node_of, 0, sizeof(result->profile.node_of));
	return condense(&condenser, whole) ? take_ptr(result) : NULL;
}
