#include "sample/module_set.h"

#include "base/search.h"

static int compare_modules(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct ss_module_entry *)a)->module;
	uintptr_t y = (uintptr_t)((const struct ss_module_entry *)b)->module;

	return (x > y) - (x < y);
}

/* Called for each module of each capture; a process may have 60,000. */
static struct ss_module_entry *find(const struct ss_module_set *set,
				    const struct ss_module_impl *module)
{
	size_t at =
		ss_lower_bound(set->sorted, i,
			       (uintptr_t)set->items.items[i].module < (uintptr_t)module);

	return at < set->sorted && set->items.items[at].module == module ?
		       &set->items.items[at] :
		       NULL;
}

const struct ss_module_entry *ss_module_set_find(const struct ss_module_set *set,
						 const struct ss_module_impl *module)
{
	return find(set, module);
}

static void mark_mapped(struct ss_module_set *set, const struct ss_capture *capture)
{
	for (size_t i = 0; i < set->items.count; i++)
		set->items.items[i].mapped = false;
	for (size_t i = 0; capture && i < capture->modules.count; i++) {
		struct ss_module_entry *found = find(set, capture->modules.items[i]);
		if (found)
			found->mapped = true;
	}
}

static void report_unloaded(struct ss_module_set *set, ss_module_change *change,
			    void *data)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->items.count; i++) {
		struct ss_module_entry *entry = &set->items.items[i];
		if (entry->mapped) {
			set->items.items[kept++] = *entry;
			continue;
		}
		change(data, entry, false);
		ss_module_unref(entry->module);
	}
	set->items.count = set->sorted = kept;
}

bool ss_module_set_update(struct ss_module_set *set, const struct ss_capture *capture,
			  ss_module_change *change, void *data)
{
	mark_mapped(set, capture);
	report_unloaded(set, change, data);
	for (size_t i = 0; capture && i < capture->modules.count; i++) {
		struct ss_module_impl *module = capture->modules.items[i];
		if (find(set, module))
			continue;
		struct ss_module_entry *entry = ss_vector_push(&set->items);
		if (!entry)
			return false;
		entry->module = ss_module_ref(module);
		change(data, entry, true);
	}
	if (set->items.count > set->sorted)
		qsort(set->items.items, set->items.count, sizeof(*set->items.items),
		      compare_modules);
	set->sorted = set->items.count;
	return true;
}

void ss_module_set_deinit(struct ss_module_set *set)
{
	for (size_t i = 0; i < set->items.count; i++)
		ss_module_unref(set->items.items[i].module);
	ss_vector_free(&set->items);
}
