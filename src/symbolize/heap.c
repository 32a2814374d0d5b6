/*
 * ss_heap_symbolize(): names of C++ classes, by the symbols of their tables of virtual
 * functions or by their type information.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "elf/image.h"
#include "model/heap.h"
#include "symbolize/demangle.h"
#include "symbolize/names_cache.h"

/* Classes that are named: those with the most bytes. */
enum { NAMED_MAX = 4096 };

/* What the demangler writes before the class. */
static const char table_prefix[] = "vtable for ";
static const char type_prefix[] = "typeinfo name for ";

/* The class of a mangled name, without the prefix that the demangled one must have. NULL: it is
   none. False without memory. */
static bool keep_class(struct ss_heap_impl *heap, const char *mangled, const char *prefix,
		       size_t *budget, const char **ret)
{
	_cleanup_free_ char *name = ss_name_demangle(mangled, budget);

	if (!name || strncmp(name, prefix, strlen(prefix)) != 0)
		return true;
	*ret = ss_intern_string(heap->strings, name + strlen(prefix));
	return *ret != NULL;
}

/* Where a module was loaded. */
struct place {
	bool known;
	uint64_t bias;
};

static uint64_t find_bias(struct ss_module_impl *module, struct place *place)
{
	_cleanup_(ss_image_cleanup) struct ss_image *image =
		place->known ? NULL : ss_image_new(module);

	if (image)
		place->bias = ss_image_bias(image, module);
	place->known = true;
	return place->bias;
}

static bool name_by_symbol(struct ss_heap_impl *heap, struct ss_session *session,
			   size_t index, struct place *places, size_t *budget)
{
	int32_t at = heap->origins.items[index].module;
	struct ss_heap_class *class = &heap->classes.items[index];
	struct ss_module_impl *module = heap->capture->modules.items[at];
	struct ss_names *names = ss_names_cache_find(session, module);
	struct ss_name found;

	if (!names)
		return true;
	ss_names_read(names, session, module, SS_NO_SOURCE | SS_NO_INLINES);
	uint64_t bias = find_bias(module, &places[at]);
	if (!ss_names_find_data(names, class->address - bias, &found))
		return true;
	return keep_class(heap, found.symbol, table_prefix, budget, &class->name);
}

static bool name_by_type(struct ss_heap_impl *heap, const struct ss_heap_origin *origin,
			 size_t *budget, const char **ret)
{
	_cleanup_free_ char *mangled = NULL;

	return asprintf(&mangled, "_ZTS%s", origin->type) >= 0 &&
	       keep_class(heap, mangled, type_prefix, budget, ret);
}

static bool name_class(struct ss_heap_impl *heap, struct ss_session *session,
		       size_t index, struct place *places, size_t *budget)
{
	const struct ss_heap_origin *origin = &heap->origins.items[index];
	const char **name = &heap->classes.items[index].name;

	ss_session_note(session, origin->module);
	if (!ss_session_skips(session, origin->module) &&
	    !name_by_symbol(heap, session, index, places, budget))
		return false;
	return *name || !origin->type || name_by_type(heap, origin, budget, name);
}

struct ss_error *ss_heap_symbolize(struct ss_heap *heap, struct ss_session *session)
{
	struct ss_heap_impl *impl = (struct ss_heap_impl *)heap;
	_cleanup_free_ struct place *places =
		calloc(impl->capture->modules.count + 1, sizeof(*places));
	size_t count = SS_MIN(impl->classes.count, (size_t)NAMED_MAX);
	size_t budget = SS_DEMANGLE_BUDGET;
	bool whole = places != NULL;

	ss_names_cache_trim(session);
	for (size_t i = 0; i < count && whole; i++)
		whole = name_class(impl, session, i, places, &budget);
	ss_session_note(session, -1);
	return whole ? NULL : ss_error_no_memory();
}
