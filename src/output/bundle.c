#include "output/bundle.h"

#include <stdlib.h>

struct item {
	size_t number;
	struct ss_bundle_key key;
};

static int compare_keys(const struct ss_bundle_key *a, const struct ss_bundle_key *b)
{
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return (a->lock > b->lock) - (a->lock < b->lock);
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a;
	const struct item *y = b;

	int order = compare_keys(&x->key, &y->key);

	if (order)
		return order;
	return (x->number > y->number) - (x->number < y->number);
}

static int compare_bundles(const void *a, const void *b)
{
	const struct ss_bundle *x = a;
	const struct ss_bundle *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return (*x->items > *y->items) - (*x->items < *y->items);
}

struct ss_bundles *ss_bundles_new(const size_t *numbers, const struct ss_bundle_key *keys,
				  size_t count)
{
	_cleanup_free_ struct item *items = calloc(count + 1, sizeof(*items));
	_cleanup_(ss_bundles_cleanup) struct ss_bundles *bundles =
		calloc(1, sizeof(*bundles));

	if (!items || !bundles)
		return NULL;
	bundles->items = calloc(count + 1, sizeof(*bundles->items));
	bundles->order = calloc(count + 1, sizeof(*bundles->order));
	if (!bundles->items || !bundles->order)
		return NULL;
	for (size_t i = 0; i < count; i++)
		items[i] = (struct item){ numbers[i], keys[i] };
	qsort(items, count, sizeof(*items), compare_items);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || compare_keys(&items[i].key, &items[i - 1].key) != 0)
			bundles->items[bundles->count++].items = &bundles->order[i];
		bundles->items[bundles->count - 1].count++;
		bundles->order[i] = items[i].number;
	}
	qsort(bundles->items, bundles->count, sizeof(*bundles->items), compare_bundles);
	return take_ptr(bundles);
}

void ss_bundles_free(struct ss_bundles *bundles)
{
	if (!bundles)
		return;
	free(bundles->items);
	free(bundles->order);
	free(bundles);
}

struct ss_error *ss_bundles_write(const struct ss_bundles *bundles,
				  const struct ss_bundle_writer *writer)
{
	struct ss_error *error = NULL;
	size_t rest = 0;

	for (size_t i = 0; i < bundles->count && !error; i++) {
		const struct ss_bundle *bundle = &bundles->items[i];
		if (i >= writer->most)
			rest += bundle->count;
		else if (bundle->count == 1)
			writer->one(writer->data, bundle->items[0]);
		else
			error = writer->several(writer->data, bundle);
	}
	if (rest && !error)
		(void)fprintf(writer->out, "  ... and %zu more (-v lists them)\n", rest);
	return error;
}
