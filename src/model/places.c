/*
 * A snapshot of places that come from elsewhere: each is the stack of a thread, with one frame.
 */
#include <string.h>

#include "base/error.h"
#include "model/snapshot.h"

enum { PLACES_MAX = 4 << 20, MODULES_MAX = 64 << 10 };

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the size in bytes; 0: text is no build-id. */
static size_t parse_build_id(const char *text, uint8_t ret[static SS_BUILD_ID_MAX])
{
	size_t size = strlen(text) / 2;

	if (strlen(text) % 2 || size == 0 || size > SS_BUILD_ID_MAX)
		return 0;
	for (size_t i = 0; i < size; i++) {
		int high = digit(text[2 * i]);
		int low = digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return 0;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return size;
}

static bool is_module(const struct ss_module *module, const struct ss_place *place)
{
	return strcmp(module->build_id, place->build_id) == 0 &&
	       strcmp(module->path, place->path ? place->path : "") == 0;
}

/* Finds or adds the module of a place; last is that of the place before. */
static struct ss_error *find_module(struct ss_snapshot *snapshot,
				    const struct ss_place *place, size_t last,
				    size_t *ret)
{
	uint8_t id[SS_BUILD_ID_MAX];
	size_t size = parse_build_id(place->build_id, id);

	if (last < snapshot->modules.count &&
	    is_module(&snapshot->modules.items[last]->pub, place)) {
		*ret = last;
		return NULL;
	}
	for (size_t i = 0; i < snapshot->modules.count; i++) {
		if (is_module(&snapshot->modules.items[i]->pub, place)) {
			*ret = i;
			return NULL;
		}
	}
	if (size == 0)
		return ss_error_new(SS_ERROR_INVALID, "'%s' is not a build-id",
				    place->build_id);
	if (snapshot->modules.count >= MODULES_MAX)
		return ss_error_new(SS_ERROR_INVALID, "there are more than %d modules",
				    MODULES_MAX);
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new(place->path ? place->path : "", 0, UINT64_MAX);
	struct ss_module_impl **slot =
		module && ss_module_set_build_id(module, id, size) ?
			ss_vector_push(&snapshot->modules) :
			NULL;
	if (!slot)
		return ss_error_no_memory();
	*slot = take_ptr(module);
	*ret = snapshot->modules.count - 1;
	return NULL;
}

static bool add(struct ss_snapshot *snapshot, const struct ss_place *place, size_t module)
{
	struct ss_thread *thread = ss_vector_push(&snapshot->threads);
	struct ss_stack *stack = thread ? ss_vector_push(&snapshot->stacks) : NULL;
	struct ss_frame *frame = stack ? calloc(1, sizeof(*frame)) : NULL;

	if (!frame) {
		snapshot->stacks.count -= stack != NULL;
		return false;
	}
	*frame = (struct ss_frame){
		.pc = place->offset,
		.module = &snapshot->modules.items[module]->pub,
		.module_index = (int32_t)module,
		.offset = place->offset,
		.lookup_offset = place->offset,
	};
	*stack = (struct ss_stack){ .frames = frame, .count = 1 };
	*thread = (struct ss_thread){
		.name = "",
		.state = '?',
		.frame_count = 1,
		.stack_id = (uint32_t)snapshot->stacks.count - 1,
	};
	return true;
}

struct ss_error *ss_snapshot_new_places(const struct ss_place *places, size_t count,
					struct ss_snapshot **ret)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = ss_snapshot_new();
	size_t module = 0;

	if (!snapshot)
		return ss_error_no_memory();
	if (count > PLACES_MAX)
		return ss_error_new(SS_ERROR_INVALID, "there are more than %d places",
				    PLACES_MAX);
	for (size_t i = 0; i < count; i++) {
		struct ss_error *error =
			find_module(snapshot, &places[i], module, &module);
		if (error)
			return error;
		if (!add(snapshot, &places[i], module))
			return ss_error_no_memory();
	}
	*ret = take_ptr(snapshot);
	return NULL;
}
