#include "profile/weights.h"

#include <string.h>

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

static void add_nodes(struct ss_weights *w)
{
	const struct ss_profile *profile = w->profile;

	for (size_t t = 0; t < profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			const struct ss_profile_run *run = &thread->runs.items[r];
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
static void add_functions(struct ss_weights *w, uint32_t *active)
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

struct ss_weights *ss_weights_new(const struct ss_profile *profile)
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
	add_nodes(w);
	add_functions(w, active);
	return take_ptr(w);
}
