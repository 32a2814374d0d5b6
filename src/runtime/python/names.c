#include "runtime/python/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "runtime/python/code.h"

enum { THREADS_MAX = 1 << 14 };

/* The dictionary threading._active. */
static bool find_active(const struct ss_python_layout *layout,
			const struct ss_memory *memory, uint64_t interpreter,
			uint64_t *ret)
{
	uint64_t modules;
	uint64_t module;

	return ss_memory_read_u64(memory, interpreter + layout->interp_modules,
				  &modules) &&
	       ss_python_dict_find(layout, memory, modules, "threading", &module) &&
	       ss_python_has_type(memory, module, "module") &&
	       ss_python_attribute(layout, memory, module, "_active", ret);
}

/* A thread that Python did not begin, and which has asked for its object: its name is "Dummy-1". */
static bool is_dummy(const struct ss_memory *memory, uint64_t thread)
{
	return ss_python_has_type(memory, thread, "_DummyThread");
}

/* An entry of the dictionary. *ret_name: at most SS_RUNTIME_NAME_MAX characters. */
static bool read_thread(const struct ss_python_layout *layout,
			const struct ss_memory *memory, const struct ss_python_item *item,
			struct ss_python_name *ret, char *ret_name)
{
	uint64_t name;
	uint64_t native;

	*ret = (struct ss_python_name){};
	if (!ss_python_integer(layout, memory, item->key, &ret->id) || ret->id == 0 ||
	    is_dummy(memory, item->value) ||
	    !ss_python_attribute(layout, memory, item->value, "_name", &name))
		return false;
	if (ss_python_attribute(layout, memory, item->value, "_native_id", &native) &&
	    !ss_python_integer(layout, memory, native, &ret->native))
		ret->native = 0; /* None */
	return ss_python_string_start(layout, memory, name, SS_RUNTIME_NAME_MAX,
				      ret_name);
}

static int compare(const void *a, const void *b)
{
	const struct ss_python_name *x = a;
	const struct ss_python_name *y = b;

	return SS_COMPARE(x->id, y->id);
}

/* Reads the names once. */
static bool read_names(const struct ss_runtime_process *process,
		       const struct ss_python_layout *layout,
		       const struct ss_memory *memory, uint64_t interpreter,
		       struct ss_python_names *ret)
{
	char text[4 * SS_RUNTIME_NAME_MAX + 1];
	struct ss_python_items items = {};
	struct ss_python_name name;
	uint64_t active;

	if (!find_active(layout, memory, interpreter, &active))
		return true;
	bool ok = ss_python_dict_items(layout, memory, active, THREADS_MAX, &items);
	for (size_t i = 0; ok && i < items.list.count; i++) {
		if (!read_thread(layout, memory, &items.list.items[i], &name, text))
			continue;
		name.name = ss_intern_string(process->strings, text);
		struct ss_python_name *slot = ss_vector_push(&ret->list);
		ok = slot && name.name;
		if (ok)
			*slot = name;
	}
	ss_vector_free(&items.list);
	if (ret->list.count > 1)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items),
		      compare);
	return ok;
}

bool ss_python_names_read(const struct ss_runtime_process *process,
			  const struct ss_python_layout *layout, uint64_t interpreter,
			  struct ss_python_names *ret)
{
	struct ss_python_names again = {};
	size_t kept = 0;
	bool ok = read_names(process, layout, process->memory, interpreter, ret) &&
		  (ret->list.count == 0 ||
		   read_names(process, layout, process->after, interpreter, &again));

	for (size_t i = 0; ok && i < ret->list.count; i++) {
		const struct ss_python_name *name = &ret->list.items[i];
		const struct ss_python_name *same =
			ss_python_names_find(&again, name->id, name->native);
		if (same && same->name == name->name && same->native == name->native)
			ret->list.items[kept++] = *name;
	}
	ret->list.count = kept;
	ss_vector_free(&again.list);
	return ok;
}

const struct ss_python_name *ss_python_names_find(const struct ss_python_names *names,
						  uint64_t id, uint64_t native)
{
	const struct ss_python_name *items = names->list.items;
	const size_t at = ss_lower_bound(names->list.count, i, items[i].id < id);

	return at < names->list.count && items[at].id == id &&
			       (!native || !items[at].native ||
				items[at].native == native) ?
		       &items[at] :
		       NULL;
}
