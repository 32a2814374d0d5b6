#include <string.h>

#include "output/text_profile.h"

/* A level is two columns. A function that is all its caller does stays on the caller's
   level, so that a chain of calls is not indented. */
enum { LEVELS_MAX = 60 };

struct branch {
	uint32_t node; /* SS_ID_NONE: the omitted siblings, see rest */
	unsigned level;
	uint64_t rest; /* samples of the omitted siblings */
};

struct tree {
	const struct ss_condensed *condensed;
	const struct ss_weights *weights;
	const struct ss_format_options *options;
	FILE *out;
	SS_VECTOR(struct branch) pending; /* a stack: the last is written next */
};

static bool is_shown(const struct tree *tree, uint32_t node)
{
	uint64_t total = tree->weights->nodes[node].total;

	return total > 0 &&
	       100.0 * (double)total >=
		       tree->options->threshold * (double)tree->weights->profile->weight;
}

static void write_node(const struct tree *tree, const struct branch *branch)
{
	const struct ss_weights *weights = tree->weights;
	const struct ss_profile_node *node =
		ss_profile_node_at(weights->profile, branch->node);

	ss_text_profile_share(weights->nodes[branch->node].total,
			      weights->profile->weight, tree->out);
	(void)fprintf(tree->out, "  %*s", 2 * (int)branch->level, "");
	ss_text_profile_function(tree->condensed, node->function,
				 &tree->condensed->nodes[branch->node], tree->options,
				 tree->out);
	(void)fputc('\n', tree->out);
}

/* The heaviest last, since the last is written first. */
static int compare(const void *a, const void *b, void *data)
{
	const struct ss_weight *nodes = data;
	const struct branch *x = a;
	const struct branch *y = b;

	if (nodes[x->node].total != nodes[y->node].total)
		return nodes[x->node].total < nodes[y->node].total ? -1 : 1;
	return x->node < y->node ? 1 : -1;
}

/* The omitted siblings come last, if together they exceed the threshold. False without
   memory. */
static bool push_rest(struct tree *tree, uint64_t rest)
{
	uint64_t samples = tree->weights->profile->weight;
	struct branch *branch;

	if (!rest || 100.0 * (double)rest < tree->options->threshold * (double)samples)
		return true;
	branch = ss_vector_push(&tree->pending);
	if (branch)
		*branch = (struct branch){ .node = SS_ID_NONE, .rest = rest };
	return branch;
}

static uint64_t omitted_samples(const struct tree *tree, uint32_t parent)
{
	const struct ss_weights *w = tree->weights;
	uint64_t rest = 0;

	for (uint32_t child = w->first[parent]; child != SS_ID_NONE;
	     child = w->next[child])
		rest += is_shown(tree, child) ? 0 : w->nodes[child].total;
	return rest;
}

static bool push_shown(struct tree *tree, uint32_t parent)
{
	const struct ss_weights *w = tree->weights;

	for (uint32_t child = w->first[parent]; child != SS_ID_NONE;
	     child = w->next[child]) {
		if (!is_shown(tree, child))
			continue;
		struct branch *branch = ss_vector_push(&tree->pending);
		if (!branch)
			return false;
		branch->node = child;
	}
	return true;
}

static bool push_children(struct tree *tree, const struct branch *parent)
{
	const struct ss_weights *w = tree->weights;
	uint64_t rest = omitted_samples(tree, parent->node);
	size_t begin = tree->pending.count;

	if (!push_rest(tree, rest))
		return false;
	size_t first = tree->pending.count;
	if (!push_shown(tree, parent->node))
		return false;
	size_t count = tree->pending.count - first;
	bool straight = count == 1 && rest == 0 && w->nodes[parent->node].self == 0;
	unsigned level = straight || parent->node == 0 ?
				 parent->level :
				 SS_MIN(parent->level + 1, (unsigned)LEVELS_MAX);
	for (size_t i = begin; i < tree->pending.count; i++)
		tree->pending.items[i].level = level;
	if (count)
		qsort_r(tree->pending.items + first, count, sizeof(struct branch),
			compare, w->nodes);
	return true;
}

static void write_rest(const struct tree *tree, const struct branch *branch)
{
	ss_text_profile_share(branch->rest, tree->weights->profile->weight, tree->out);
	(void)fprintf(tree->out, "  %*s[below the threshold]\n", 2 * (int)branch->level,
		      "");
}

bool ss_text_profile_tree(const struct ss_condensed *condensed,
			  const struct ss_weights *weights,
			  const struct ss_format_options *options, FILE *out)
{
	struct tree tree = {
		.condensed = condensed, .weights = weights, .options = options, .out = out
	};
	struct branch branch = {};
	bool whole = push_children(&tree, &branch);

	while (whole && tree.pending.count) {
		branch = tree.pending.items[--tree.pending.count];
		if (branch.node == SS_ID_NONE) {
			write_rest(&tree, &branch);
			continue;
		}
		write_node(&tree, &branch);
		whole = push_children(&tree, &branch);
	}
	ss_vector_free(&tree.pending);
	return whole;
}
