#include "profile/hottest.h"

#include <string.h>

#include "profile/label.h"

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
	const char *base = ss_label_base(path);

	for (size_t i = 0; i < SS_ARRAY_SIZE(begins); i++) {
		if (strncmp(base, begins[i], strlen(begins[i])) == 0)
			return true;
	}
	return false;
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
