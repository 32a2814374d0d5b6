#include "record/tracked.h"

#include "unwind/image.h"

static int compare_modules(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct ss_tracked *)a)->module;
	uintptr_t y = (uintptr_t)((const struct ss_tracked *)b)->module;

	return (x > y) - (x < y);
}

/* Asked for each module of each capture, and a process may have 60,000. */
static struct ss_tracked *find(const struct ss_tracked_list *list,
			       const struct ss_module_impl *module)
{
	const struct ss_tracked key = { .module = (struct ss_module_impl *)module };

	return list->sorted ? bsearch(&key, list->items.items, list->sorted, sizeof(key),
				      compare_modules) :
			      NULL;
}

const struct ss_tracked *ss_tracked_find(const struct ss_tracked_list *list,
					 const struct ss_module_impl *module)
{
	return find(list, module);
}

static void mark_seen(struct ss_tracked_list *list, const struct ss_capture *capture)
{
	for (size_t i = 0; i < list->items.count; i++)
		list->items.items[i].seen = false;
	for (size_t i = 0; capture && i < capture->modules.count; i++) {
		struct ss_tracked *found = find(list, capture->modules.items[i]);
		if (found)
			found->seen = true;
	}
}

static void tell_unloaded(struct ss_tracked_list *list, ss_tracked_watcher *watcher,
			  void *data)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->items.count; i++) {
		struct ss_tracked *tracked = &list->items.items[i];
		if (tracked->seen) {
			list->items.items[kept++] = *tracked;
			continue;
		}
		watcher(data, tracked, false);
		ss_module_unref(tracked->module);
	}
	list->items.count = list->sorted = kept;
}

bool ss_tracked_update(struct ss_tracked_list *list, const struct ss_capture *capture,
		       ss_tracked_watcher *watcher, void *data)
{
	mark_seen(list, capture);
	tell_unloaded(list, watcher, data);
	for (size_t i = 0; capture && i < capture->modules.count; i++) {
		struct ss_module_impl *module = capture->modules.items[i];
		if (find(list, module))
			continue;
		struct ss_tracked *tracked = ss_vector_push(&list->items);
		if (!tracked)
			return false;
		tracked->module = ss_module_ref(module);
		watcher(data, tracked, true);
	}
	if (list->items.count > list->sorted)
		qsort(list->items.items, list->items.count, sizeof(*list->items.items),
		      compare_modules);
	list->sorted = list->items.count;
	return true;
}

void ss_tracked_deinit(struct ss_tracked_list *list)
{
	for (size_t i = 0; i < list->items.count; i++)
		ss_module_unref(list->items.items[i].module);
	ss_vector_free(&list->items);
}

uint64_t ss_tracked_bias(struct ss_module_impl *module)
{
	_cleanup_(ss_image_cleanup) struct ss_image *image = ss_image_new(module);

	return image ? ss_image_bias(image, module) : module->pub.base;
}
