#include "report/profile_condense.h"

#include <string.h>

#include "report/profile.h"
#include "base/bytes.h"
#include "base/search.h"

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

void ss_weights_free(struct ss_weights *weights)
{
	if (!weights)
		return;
	free(weights->nodes);
	free(weights->functions);
	free(weights->first);
	free(weights->next);
	free(weights->recursive);
	free(weights);
}

static void link_children(struct ss_weights *w)
{
	size_t count = w->profile->nodes.count;

	memset(w->first, 0xff, count * sizeof(*w->first));
	memset(w->next, 0xff, count * sizeof(*w->next));
	for (size_t i = count - 1; i > 0; i--) {
		uint32_t parent = ss_profile_node_at(w->profile, i)->parent;
		w->next[i] = w->first[parent];
		w->first[parent] = (uint32_t)i;
	}
}

static bool counts(const struct ss_profile *profile, const struct ss_profile_run *run,
		   enum ss_samples samples)
{
	if (samples == SS_SAMPLES_ALL)
		return true;
	const struct ss_profile_node *node =
		ss_profile_node_at(profile, profile->node_of.items[run->call]);
	const bool ready = run->call != 0 &&
			   ss_profile_function_at(profile, node->function)->is_end ==
				   1 + (uint64_t)SS_END_RUNNABLE;
	return (run->state == 'R' && !ready) == (samples == SS_SAMPLES_ON_CPU);
}

static void weigh_nodes(struct ss_weights *w, enum ss_samples samples)
{
	const struct ss_profile *profile = w->profile;

	for (size_t t = 0; t < profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			const struct ss_profile_run *run = &thread->runs.items[r];
			if (counts(profile, run, samples))
				w->nodes[profile->node_of.items[run->call]].self +=
					ss_profile_weight(profile, run);
		}
	}
	for (size_t i = profile->nodes.count; i-- > 0;) {
		w->nodes[i].total += w->nodes[i].self;
		if (i > 0)
			w->nodes[ss_profile_node_at(profile, i)->parent].total +=
				w->nodes[i].total;
	}
	w->weight = w->nodes[0].total;
}

static void enter(struct ss_weights *w, uint32_t node, uint32_t *active)
{
	uint32_t function = ss_profile_node_at(w->profile, node)->function;

	w->functions[function].self += w->nodes[node].self;
	w->recursive[node] = active[function]++ > 0;
	if (!w->recursive[node])
		w->functions[function].total += w->nodes[node].total;
}

/* Visits all nodes, depth first; active counts the functions on the current path. */
static void weigh_functions(struct ss_weights *w, uint32_t *active)
{
	uint32_t node = w->first[0];

	while (node != SS_ID_NONE && node != 0) {
		enter(w, node, active);
		if (w->first[node] != SS_ID_NONE) {
			node = w->first[node];
			continue;
		}
		for (; node != 0; node = ss_profile_node_at(w->profile, node)->parent) {
			active[ss_profile_node_at(w->profile, node)->function]--;
			if (w->next[node] != SS_ID_NONE)
				break;
		}
		node = node ? w->next[node] : 0;
	}
}

struct ss_weights *ss_weights_new(const struct ss_profile *profile,
				  enum ss_samples samples)
{
	_cleanup_(ss_weights_cleanup) struct ss_weights *w = calloc(1, sizeof(*w));
	_cleanup_free_ uint32_t *active =
		calloc(profile->functions.count + 1, sizeof(*active));

	if (!w || !active)
		return NULL;
	w->profile = profile;
	w->nodes = calloc(profile->nodes.count, sizeof(*w->nodes));
	w->functions = calloc(profile->functions.count + 1, sizeof(*w->functions));
	w->first = calloc(profile->nodes.count, sizeof(*w->first));
	w->next = calloc(profile->nodes.count, sizeof(*w->next));
	w->recursive = calloc(profile->nodes.count, sizeof(*w->recursive));
	if (!w->nodes || !w->functions || !w->first || !w->next || !w->recursive)
		return NULL;
	link_children(w);
	weigh_nodes(w, samples);
	weigh_functions(w, active);
	return take_ptr(w);
}

struct ss_hottest {
	const struct ss_condensed *condensed;
	uint32_t *function_of; /* by node */
	uint64_t *counts;      /* by function */
	uint32_t *counted;     /* functions with a count */
	size_t counted_count;
};

void ss_hottest_free(struct ss_hottest *hottest)
{
	if (!hottest)
		return;
	free(hottest->function_of);
	free(hottest->counts);
	free(hottest->counted);
	free(hottest);
}

static bool is_c_library(const char *path)
{
	static const char *const begins[] = { "libc.so", "libc-", "libpthread", "ld-",
					      "libc.musl" };
	const char *base = ss_path_base(path);

	return ss_any(SS_ARRAY_SIZE(begins), i,
		      strncmp(base, begins[i], strlen(begins[i])) == 0);
}

/* How useful the name of a function is. Useless are the reason of an incomplete stack, and where
   a stack is from. */
static int worth(const struct ss_condensed *condensed, uint32_t function)
{
	const struct ss_profile *profile = &condensed->profile;
	const struct ss_profile_function *f = ss_profile_function_at(profile, function);

	if (f->is_origin)
		return 0;
	if (condensed->functions[function].count)
		return 2;
	if (f->module == SS_ID_NONE)
		return f->name[0] == '[' ? 0 : 3;
	return is_c_library(profile->modules.items[f->module].path) ? 1 : 3;
}

/* The innermost of the most useful functions. */
static void find_functions(struct ss_hottest *h)
{
	const struct ss_profile *profile = &h->condensed->profile;

	h->function_of[0] = SS_ID_NONE;
	for (size_t i = 1; i < profile->nodes.count; i++) {
		const struct ss_profile_node *node = ss_profile_node_at(profile, i);
		uint32_t above = h->function_of[node->parent];
		bool takes = above == SS_ID_NONE || worth(h->condensed, node->function) >=
							    worth(h->condensed, above);
		h->function_of[i] = takes ? node->function : above;
	}
}

struct ss_hottest *ss_hottest_new(const struct ss_condensed *condensed)
{
	_cleanup_(ss_hottest_cleanup) struct ss_hottest *h = calloc(1, sizeof(*h));
	size_t functions = condensed->profile.functions.count + 1;

	if (!h)
		return NULL;
	h->condensed = condensed;
	h->function_of = calloc(condensed->profile.nodes.count, sizeof(*h->function_of));
	h->counts = calloc(functions, sizeof(*h->counts));
	h->counted = calloc(functions, sizeof(*h->counted));
	if (!h->function_of || !h->counts || !h->counted)
		return NULL;
	find_functions(h);
	return take_ptr(h);
}

void ss_hottest_add(struct ss_hottest *h, const struct ss_profile_run *run)
{
	uint32_t node = h->condensed->profile.node_of.items[run->call];
	uint32_t function = h->function_of[node];

	if (function == SS_ID_NONE || !worth(h->condensed, function))
		return;
	if (!h->counts[function])
		h->counted[h->counted_count++] = function;
	h->counts[function] += run->count;
}

uint64_t ss_hottest_take(struct ss_hottest *h, uint32_t *ret)
{
	uint64_t most = 0;

	for (size_t i = 0; i < h->counted_count; i++) {
		uint32_t function = h->counted[i];
		if (h->counts[function] > most) {
			most = h->counts[function];
			*ret = function;
		}
		h->counts[function] = 0;
	}
	h->counted_count = 0;
	return most;
}
