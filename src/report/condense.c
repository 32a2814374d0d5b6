#include "report/condense.h"

#include <string.h>

/* What is needed while it is made. */
struct condenser {
	struct ss_condensed *result;
	const struct ss_profile *original;
	bool *is_place;		    /* by function of the original */
	uint32_t *functions;	    /* of the result, by function of the original */
	uint32_t *nodes;	    /* of the result, by node of the original */
	struct ss_numbering places; /* of struct place: which are counted */
};

struct place {
	uint32_t node;
	uint32_t function; /* of the original */
};

static void condenser_deinit(struct condenser *c)
{
	free(c->is_place);
	free(c->functions);
	free(c->nodes);
	ss_numbering_deinit(&c->places);
}

void ss_condensed_free(struct ss_condensed *condensed)
{
	if (!condensed)
		return;
	ss_numbering_deinit(&condensed->profile.functions);
	ss_numbering_deinit(&condensed->profile.nodes);
	ss_vector_free(&condensed->profile.node_of);
	free(condensed->functions);
	free(condensed->nodes);
	free(condensed);
}

/* "libc.so.6" of "libc.so.6+0x10e0af", with or without a build-id behind it. NULL: it is
   not the name of a place. */
static const char *place_end(const char *name)
{
	const char *found = NULL;

	for (const char *at = strstr(name, "+0x"); at; at = strstr(at + 1, "+0x"))
		found = at;
	return found;
}

bool *ss_condensed_find_places(const struct ss_profile *profile)
{
	bool *places = calloc(profile->functions.count + 1, sizeof(*places));

	for (size_t i = 0; places && i < profile->frames.count; i++) {
		const struct ss_profile_frame *frame = ss_profile_frame_at(profile, i);
		const char *name = ss_profile_function_at(profile, frame->function)->name;
		places[frame->function] = !frame->named && place_end(name);
	}
	return places;
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
		if (c->is_place[i])
			key.name =
				ss_intern_bytes(result->profile.strings, key.name,
						(size_t)(place_end(key.name) - key.name));
		if (!key.name)
			return false;
		c->functions[i] = ss_numbering_get(&result->profile.functions, &key);
		if (c->functions[i] == SS_NUMBER_NOT)
			return false;
		if (c->is_place[i])
			count_place(&result->functions[c->functions[i]], i);
	}
	return true;
}

/* The node of the result; a place that is called by one of the same module is in its. */
static uint32_t translate_node(struct condenser *c, const struct ss_profile_node *node)
{
	struct ss_profile *to = &c->result->profile;
	const struct ss_profile_node key = {
		.parent = c->nodes[node->parent],
		.function = c->functions[node->function],
	};

	if (c->is_place[node->function] && key.parent != 0 &&
	    ss_profile_node_at(to, key.parent)->function == key.function)
		return key.parent;
	return ss_numbering_get(&to->nodes, &key);
}

static bool add_nodes(struct condenser *c)
{
	for (uint32_t i = 1; i < c->original->nodes.count; i++) {
		const struct ss_profile_node *node = ss_profile_node_at(c->original, i);
		struct place place = { translate_node(c, node), node->function };
		if (place.node == SS_NUMBER_NOT)
			return false;
		c->nodes[i] = place.node;
		if (!c->is_place[node->function])
			continue;
		size_t known = c->places.count;
		if (ss_numbering_get(&c->places, &place) == SS_NUMBER_NOT)
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
	const struct ss_profile_node root = { SS_NUMBER_NOT, SS_NUMBER_NOT };
	size_t functions = c->original->functions.count + 1;
	size_t nodes = c->original->nodes.count + 1;

	c->is_place = whole ? calloc(functions, sizeof(*c->is_place)) :
			      ss_condensed_find_places(c->original);
	c->functions = calloc(functions, sizeof(*c->functions));
	c->nodes = calloc(nodes, sizeof(*c->nodes));
	c->places.key_size = sizeof(struct place);
	c->result->functions = calloc(functions, sizeof(*c->result->functions));
	c->result->nodes = calloc(nodes, sizeof(*c->result->nodes));
	if (!c->is_place || !c->functions || !c->nodes || !c->result->functions ||
	    !c->result->nodes)
		return false;
	return ss_numbering_get(&c->result->profile.nodes, &root) == 0 &&
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
	result->profile.functions =
		(struct ss_numbering){ .key_size = original->functions.key_size };
	result->profile.nodes =
		(struct ss_numbering){ .key_size = original->nodes.key_size };
	memset(&result->profile.node_of, 0, sizeof(result->profile.node_of));
	return condense(&condenser, whole) ? take_ptr(result) : NULL;
}
