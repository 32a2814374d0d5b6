/*
 * Names the frames of a snapshot and inserts frames of inlined functions. Each distinct
 * address is looked up once, however many frames share it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/vector.h"
#include "elf/debugfile.h"
#include "elf/image.h"
#include "data/heap.h"
#include "data/pipeline.h"
#include "data/session.h"
#include "data/snapshot.h"
#include "stacksnap.h"
#include "symbolize/names.h"
#include "symbolize/lines.h"
#include "symbolize/perfmap.h"

/*
 * The symbol, source line and inlined calls of each address that was looked up. An address
 * is looked up once, however many frames share it.
 */

/* The snapshot owns the strings. */
struct ss_address_info {
	const struct ss_module *module;
	uint64_t address; /* lookup_offset; without a module: address in the process */
	uint32_t process; /* without a module */
	const char *symbol;
	uint64_t start;
	bool absolute;	   /* start is an address of the process */
	uint64_t function; /* without a symbol: struct ss_frame */
	struct ss_location line;
	size_t first_inline; /* in the caller's list of inlined calls */
	size_t inline_count;
	bool call_known;
	const char *call; /* what the code before the address calls, or NULL */
};

/* Zeroed: an empty cache. */
struct ss_address_cache {
	SS_VECTOR(struct ss_address_info) items; /* in the order of additions */
	struct ss_hash table;			 /* of indexes into items */
};

struct query {
	const struct ss_address_cache *cache;
	const struct ss_module *module;
	uint32_t process;
	uint64_t address;
};

static void address_cache_deinit(struct ss_address_cache *cache)
{
	ss_hash_deinit(&cache->table);
	ss_vector_free(&cache->items);
}

static uint64_t hash_of(const struct ss_module *module, uint32_t process,
			uint64_t address)
{
	return address ^ (uintptr_t)module >> 4 ^ process;
}

static bool is_same(const void *context, uint32_t index)
{
	const struct query *query = context;
	const struct ss_address_info *info = &query->cache->items.items[index];

	return info->address == query->address && info->module == query->module &&
	       info->process == query->process;
}

/* Adds an address that the cache does not have. False without memory. */
static bool address_cache_add(struct ss_address_cache *cache,
			      const struct ss_address_info *info)
{
	uint64_t hash = hash_of(info->module, info->process, info->address);
	struct ss_address_info *kept =
		ss_hash_reserve(&cache->table) ? ss_vector_push(&cache->items) : NULL;

	if (!kept)
		return false;
	*kept = *info;
	ss_hash_insert(&cache->table, hash, (uint32_t)cache->items.count - 1);
	return true;
}

/* NULL: the cache does not have it. Valid until the next addition. */
static struct ss_address_info *address_cache_find(const struct ss_address_cache *cache,
						  const struct ss_module *module,
						  uint32_t process, uint64_t address)
{
	const struct query query = { cache, module, process, address };
	uint32_t index = ss_hash_find(&cache->table, hash_of(module, process, address),
				      is_same, &query);

	return index == SS_HASH_NONE ? NULL : &cache->items.items[index];
}

/*
 * ss_heap_symbolize(): names of C++ classes, by the symbols of their tables of virtual
 * functions or by their type information.
 */

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

struct inlined {
	const char *symbol;
	struct ss_location line;
};

/* Real names have up to 240 KB. A file can make names overlap and have any length, so the
   total of unusually long names is limited. */
#define TEXT_MAX ((size_t)1 << 20)
#define TEXT_USUAL ((size_t)4096)
#define LONG_TEXTS_MAX ((size_t)64 << 20)

/* Calls of other modules whose function is looked up: each searches tables of up to 3 MiB. */
enum { CALLS_MAX = 1024 };

/* One call of ss_snapshot_symbolize(). */
struct work {
	struct ss_snapshot *snapshot;
	struct ss_session *session;
	unsigned flags;
	uint32_t process;	  /* of the current stack: index of its perf map */
	struct ss_names **names;  /* by module index; NULL: not read yet */
	struct ss_image **images; /* the same, for code that calls other modules */
	struct ss_names_plan plan;
	struct ss_perfmaps perf_maps;
	struct ss_address_cache cache;
	SS_VECTOR(struct inlined) inlines;
	size_t demangle_budget;
	size_t long_texts_left; /* bytes */
	size_t calls_left;
};

static void work_deinit(struct work *work)
{
	for (size_t i = 0; work->names && i < work->snapshot->modules.count; i++) {
		if (work->names[i])
			ss_names_set_plan(work->names[i], NULL);
	}
	for (size_t i = 0; work->images && i < work->snapshot->modules.count; i++)
		ss_image_free(work->images[i]);
	free(work->names);
	free(work->images);
	ss_perfmaps_deinit(&work->perf_maps);
	address_cache_deinit(&work->cache);
	ss_vector_free(&work->inlines);
}

/* Whether a runtime has named the frame: it knows its code better than a perf map. */
static bool is_named(const struct ss_frame *frame)
{
	return frame->kind != SS_FRAME_NATIVE || (!frame->module && frame->symbol);
}

static bool add_address(struct ss_names_addresses *addresses, uint64_t address)
{
	uint64_t *slot = ss_vector_push(&addresses->list);

	if (slot)
		*slot = address;
	return slot != NULL;
}

/* To list the addresses of a module takes as long as to look at so many frames. */
enum { LISTED_FRAMES_MAX = 1 << 15 };

/* The addresses of frames, and those of locks. */
static bool list_addresses(void *data, const struct ss_module_impl *module,
			   struct ss_names_addresses *ret)
{
	const struct ss_snapshot *snapshot = ((const struct work *)data)->snapshot;
	size_t frames = 0;
	bool added = true;

	for (size_t i = 0; i < snapshot->stacks.count; i++)
		frames += snapshot->stacks.items[i].count;
	if (frames > LISTED_FRAMES_MAX)
		return false;
	for (size_t i = 0; i < snapshot->stacks.count; i++) {
		const struct ss_stack *stack = &snapshot->stacks.items[i];
		for (size_t k = 0; k < stack->count && added; k++) {
			const struct ss_frame *frame = &stack->frames[k];
			if (frame->module == &module->pub && !is_named(frame))
				added = add_address(ret, frame->lookup_offset);
		}
	}
	for (size_t i = 0; i < snapshot->places.count && added; i++) {
		const struct ss_lock_place *place = &snapshot->places.items[i];
		if (place->module_index >= 0 &&
		    snapshot->modules.items[place->module_index] == module)
			added = add_address(ret, place->offset);
	}
	for (size_t i = 0; i < snapshot->references.count && added; i++) {
		const struct ss_lock_reference *reference =
			&snapshot->references.items[i];
		if (reference->in_code &&
		    snapshot->modules.items[reference->module_index] == module)
			added = add_address(ret, reference->call_offset);
	}
	return added;
}

/* For modules of recordings, whose files are not open yet. */
static void set_missing(struct ss_module_impl *module, const struct ss_names *names)
{
	const char *why = ss_names_problem(names);

	if (module->pub.path[0] != '/')
		return;
	if (why)
		ss_module_set_problem(module, "%s", why);
	else if (module->build_id_size)
		ss_module_set_problem(module, "no file of this build was found");
	else
		ss_module_set_problem(module, "it has no build-id to identify its file");
}

/* The names of a frame's module, read on first use. NULL: none. */
static struct ss_names *names_of(struct work *work, const struct ss_frame *frame)
{
	/* A frame with a module has its index. */
	struct ss_module_impl *module =
		work->snapshot->modules.items[frame->module_index];
	struct ss_names *names = work->names[frame->module_index];

	ss_session_note(work->session, frame->module_index);
	if (names)
		return names;
	if (!ss_session_skips(work->session, frame->module_index))
		names = ss_names_cache_find(work->session, module);
	if (names) {
		ss_names_set_plan(names, &work->plan);
		ss_names_read(names, work->session, module, work->flags);
	}
	if (names && !ss_names_found(names))
		set_missing(module, names);
	else if (names && module->fd < 0 && !module->bytes)
		module->pub.by_file = module->pub.file.hash != NULL;
	work->names[frame->module_index] = names;
	return names;
}

/* Keeps the first size bytes of a text, and how many follow. */
static const char *keep_start(struct work *work, const char *text, size_t size)
{
	_cleanup_free_ char *start = NULL;

	while (size && ((unsigned char)text[size] & 0xc0) == 0x80)
		size--; /* not within a UTF-8 sequence */
	if (asprintf(&start, "%.*s...(%zu more)", (int)size, text, strlen(text) - size) <
	    0)
		return NULL;
	return ss_intern_string(work->snapshot->strings, start);
}

/* The snapshot's copy of a text, truncated if it is too long. NULL without memory. */
static const char *keep_text(struct work *work, const char *text)
{
	size_t size = strlen(text);
	size_t max = TEXT_MAX;

	if (size > TEXT_USUAL && SS_MIN(size, TEXT_MAX) > work->long_texts_left)
		max = TEXT_USUAL;
	if (size > TEXT_USUAL && max == TEXT_MAX)
		work->long_texts_left -= SS_MIN(size, TEXT_MAX);
	return size > max ? keep_start(work, text, max) :
			    ss_intern_bytes(work->snapshot->strings, text, size);
}

/* names: of its module; or NULL */
static char *demangle(struct work *work, struct ss_names *names, const char *name)
{
	char *result = ss_name_demangle(name, &work->demangle_budget);

	if (result || !names)
		return result;
	const enum ss_name_compiler compiler = ss_name_find_compiler(name);
	if (compiler == SS_COMPILER_OTHER || !ss_names_is_of(names, compiler))
		return NULL;
	return ss_name_demangle_of(compiler, name, &work->demangle_budget);
}

/* Demangles a name unless flags forbid it. False without memory. */
static bool keep_name(struct work *work, struct ss_names *names, const char *name,
		      const char **ret)
{
	const bool mangled = work->flags & SS_NO_DEMANGLE;
	_cleanup_free_ char *demangled = mangled ? NULL : demangle(work, names, name);

	*ret = keep_text(work, demangled ? demangled : name);
	return *ret != NULL;
}

/* Keeps the name of a module's symbol without its version. False without memory; name may
   be NULL. */
static bool keep_symbol(struct work *work, struct ss_names *names, const char *name,
			const char **ret)
{
	size_t size = name ? ss_name_plain_size(name) : 0;

	if (!name)
		return true;
	if (!name[size])
		return keep_name(work, names, name, ret);
	_cleanup_free_ char *plain = strndup(name, size);
	return plain && keep_name(work, names, plain, ret);
}

static bool keep_line(struct work *work, struct ss_location line, struct ss_location *ret)
{
	if (work->flags & SS_NO_SOURCE)
		return true;
	*ret = line;
	if (line.file)
		ret->file = keep_text(work, line.file);
	return !line.file || ret->file;
}

/* The line of the address belongs to the innermost call. Each outer function is at its
   call site of the next inner one. */
static bool keep_info(struct work *work, struct ss_names *names,
		      const struct ss_name *name, struct ss_address_info *info)
{
	struct ss_location line = name->line;

	info->first_inline = work->inlines.count;
	for (size_t i = 0; i < name->inline_count; i++) {
		struct inlined *inlined = ss_vector_push(&work->inlines);
		if (!inlined ||
		    !keep_symbol(work, names, name->inlines[i].name, &inlined->symbol) ||
		    !keep_line(work, line, &inlined->line))
			return false;
		info->inline_count++;
		line = name->inlines[i].call;
	}
	info->start = name->start;
	/* A JIT compiler may call a function "load@scope". */
	bool kept = info->absolute ?
			    keep_name(work, NULL, name->symbol, &info->symbol) :
			    keep_symbol(work, names, name->symbol, &info->symbol);
	return kept && keep_line(work, line, &info->line);
}

/* The address in the process by which a frame is looked up. */
static uint64_t absolute_lookup(const struct ss_frame *frame)
{
	uint64_t offset = frame->module ? frame->offset : frame->area_offset;

	return frame->pc - (offset - frame->lookup_offset);
}

static uint64_t lookup_key(const struct ss_frame *frame)
{
	return frame->module ? frame->lookup_offset : absolute_lookup(frame);
}

/* Addresses in a module do not depend on the process. */
static uint32_t process_of(const struct work *work, const struct ss_module *module)
{
	return module ? 0 : work->process;
}

/* Looks up an address that is not in the cache. False without memory. */
static bool add_info(struct work *work, const struct ss_frame *frame)
{
	struct ss_address_info info = { .module = frame->module,
					.address = lookup_key(frame),
					.process = process_of(work, frame->module) };
	struct ss_names *names = frame->module ? names_of(work, frame) : NULL;
	struct ss_name name = {};
	struct ss_symbol symbol;

	if (names)
		ss_names_find(names, frame->lookup_offset, work->flags, &name);
	if (!name.symbol && ss_perfmaps_find(&work->perf_maps, work->process,
					     absolute_lookup(frame), &symbol)) {
		name.symbol = symbol.name;
		name.start = symbol.start;
		info.absolute = true;
	}
	if (names && !name.symbol &&
	    !ss_names_find_start(names, frame->lookup_offset, &info.function))
		info.function = 0;
	return keep_info(work, names, &name, &info) &&
	       address_cache_add(&work->cache, &info);
}

/* NULL: not in the cache. */
static struct ss_address_info *find_info(const struct work *work,
					 const struct ss_frame *frame)
{
	return address_cache_find(&work->cache, frame->module,
				  process_of(work, frame->module), lookup_key(frame));
}

/* From the cache, or looked up. NULL: no memory. */
static const struct ss_address_info *get_info(struct work *work,
					      const struct ss_frame *frame)
{
	const struct ss_address_info *info = find_info(work, frame);

	if (info || !add_info(work, frame))
		return info;
	return find_info(work, frame);
}

/* Writes the inlined calls of a frame and the frame itself. Returns the number of frames. */
static size_t write_frames(const struct work *work, const struct ss_frame *frame,
			   const struct ss_address_info *info, struct ss_frame *ret)
{
	for (size_t i = 0; i < info->inline_count; i++) {
		const struct inlined *inlined =
			&work->inlines.items[info->first_inline + i];
		ret[i] = *frame;
		ret[i].symbol = inlined->symbol;
		ret[i].symbol_offset = 0;
		ret[i].file = inlined->line.file;
		ret[i].line = inlined->line.line;
		ret[i].column = inlined->line.column;
		ret[i].inlined = true;
		ret[i].signal_frame = false;
		ret[i].source = SS_FROM_INLINE;
		ret[i].omitted = i == 0 ? frame->omitted : 0;
	}
	struct ss_frame *outer = &ret[info->inline_count];
	*outer = *frame;
	outer->omitted = info->inline_count ? 0 : frame->omitted;
	outer->symbol = info->symbol;
	outer->function = info->function;
	uint64_t place = info->absolute ? frame->pc : frame->offset;
	outer->symbol_offset = info->symbol ? place - info->start : 0;
	outer->file = info->line.file;
	outer->line = info->line.line;
	outer->column = info->line.column;
	return info->inline_count + 1;
}

/* The image of a frame's module, or NULL. */
static struct ss_image *image_of(struct work *work, const struct ss_frame *frame)
{
	struct ss_image **image = &work->images[frame->module_index];

	if (!*image && !ss_session_skips(work->session, frame->module_index)) {
		ss_session_note(work->session, frame->module_index);
		*image = ss_image_new(work->snapshot->modules.items[frame->module_index]);
	}
	return *image;
}

/* Through which slot the call before a return address leaves its module: itself, or in the
   procedure linkage table. */
static bool find_slot(struct ss_image *image, uint64_t pc, uint64_t *ret)
{
	enum { CALL_MAX = 8, STUB_MAX = 16 };
	const struct ss_arch *arch = image->arch;
	uint8_t call[CALL_MAX];
	uint8_t stub[STUB_MAX];
	uint64_t target;

	if (!arch->called_slot || !arch->jump_slot || pc < sizeof(call) ||
	    ss_image_read(image, pc - sizeof(call), call, sizeof(call)) != sizeof(call))
		return false;
	if (arch->called_slot(call, sizeof(call), pc, ret))
		return true;
	if (!arch->call_target(call, sizeof(call), pc, &target))
		return false;
	size_t size = ss_image_read(image, target, stub, sizeof(stub));
	return arch->jump_slot(stub, size, target, ret);
}

/* The function of another module that a frame has called; *ret may be NULL. False without memory. */
static bool find_call(struct work *work, const struct ss_frame *frame, const char **ret)
{
	enum { NAME_MAX_SIZE = 512 };
	char name[NAME_MAX_SIZE];
	uint64_t slot;

	*ret = NULL;
	if (work->calls_left == 0)
		return true;
	work->calls_left--;
	struct ss_image *image = image_of(work, frame);
	return !image || !find_slot(image, frame->offset, &slot) ||
	       !ss_image_find_import(image, slot, name, sizeof(name)) ||
	       keep_symbol(work, names_of(work, frame), name, ret);
}

/*
 * Frames without a name, as in stripped libraries, get that of the exported function that their
 * caller called. False without memory.
 */
static bool name_calls(struct work *work, struct ss_stack *stack)
{
	for (size_t i = 0; i + 1 < stack->count; i++) {
		struct ss_frame *frame = &stack->frames[i];
		const struct ss_frame *caller = &stack->frames[i + 1];
		if (frame->symbol || frame->kind != SS_FRAME_NATIVE || !frame->module ||
		    caller->kind != SS_FRAME_NATIVE || !caller->module ||
		    caller->module == frame->module || caller->signal_frame)
			continue;
		struct ss_address_info *info = find_info(work, caller);
		if (!info)
			continue;
		if (!info->call_known && !find_call(work, caller, &info->call))
			return false;
		info->call_known = true;
		frame->called = info->call;
	}
	return true;
}

static bool count_frames(struct work *work, const struct ss_stack *stack, size_t *ret)
{
	size_t count = stack->count;

	for (size_t i = 0; i < stack->count; i++) {
		if (is_named(&stack->frames[i]))
			continue;
		const struct ss_address_info *info = get_info(work, &stack->frames[i]);
		if (!info)
			return false;
		count += info->inline_count;
	}
	*ret = count;
	return true;
}

/* Counts first, because a growing array would need twice the memory for deep stacks. */
static bool symbolize_stack(struct work *work, struct ss_stack *stack)
{
	struct ss_frame *frames;
	size_t count = 0;
	size_t at = 0;

	if (!count_frames(work, stack, &count))
		return false;
	frames = calloc(count ? count : 1, sizeof(*frames));
	if (!frames)
		return false;
	for (size_t i = 0; i < stack->count; i++) {
		const struct ss_frame *frame = &stack->frames[i];
		if (is_named(frame)) {
			frames[at++] = *frame;
			continue;
		}
		/* count_frames() has put all of them into the cache. */
		at += write_frames(work, frame, find_info(work, frame), &frames[at]);
	}
	free(stack->frames);
	stack->frames = frames;
	stack->count = count;
	return name_calls(work, stack);
}

/* Names the variable that contains a lock. False without memory. */
static bool symbolize_place(struct work *work, struct ss_lock_place *place)
{
	struct ss_snapshot *snapshot = work->snapshot;
	struct ss_name name;

	if (place->module_index < 0)
		return true;
	const struct ss_frame frame = {
		.module = &snapshot->modules.items[place->module_index]->pub,
		.module_index = place->module_index,
	};
	struct ss_names *names = names_of(work, &frame);
	if (!names || !ss_names_find_data(names, place->offset, &name))
		return true;
	place->symbol_address = place->address - (place->offset - name.start);
	return keep_symbol(work, names, name.symbol, &place->symbol);
}

/* The source line of a call that passed the address of a lock. False without memory. */
static bool symbolize_call(struct work *work, struct ss_lock_reference *reference)
{
	const struct ss_frame frame = {
		.module = &work->snapshot->modules.items[reference->module_index]->pub,
		.module_index = reference->module_index,
		.lookup_offset = reference->call_offset,
	};
	const struct ss_address_info *info = get_info(work, &frame);

	if (!info)
		return false;
	reference->call_file = info->line.file;
	reference->call_line = info->line.line;
	return true;
}

void ss_snapshot_identify_files(struct ss_snapshot *snapshot, struct ss_session *session)
{
	for (size_t i = 0; i < snapshot->modules.count; i++) {
		if (ss_session_skips(session, (int32_t)i))
			continue;
		ss_session_note(session, (int32_t)i);
		ss_module_identify_file(snapshot->modules.items[i]);
	}
	ss_session_note(session, -1);
}

struct ss_error *ss_snapshot_symbolize(struct ss_snapshot *snapshot,
				       struct ss_session *session, unsigned flags)
{
	const unsigned known = SS_NO_INLINES | SS_NO_SOURCE | SS_NO_DEMANGLE;
	__attribute__((cleanup(work_deinit))) struct work work = {
		.snapshot = snapshot,
		.session = session,
		.flags = flags,
		.demangle_budget = SS_DEMANGLE_BUDGET,
		.long_texts_left = LONG_TEXTS_MAX,
		.calls_left = CALLS_MAX,
	};
	bool whole = true;

	if (!snapshot || !session)
		return ss_error_new(SS_ERROR_INVALID, "no snapshot or no session");
	if (flags & ~known)
		return ss_error_new(SS_ERROR_INVALID, "unknown flags 0x%x",
				    flags & ~known);
	work.plan = (struct ss_names_plan){ .list = list_addresses, .data = &work };
	ss_names_cache_trim(session);
	work.names = calloc(snapshot->modules.count + 1, sizeof(struct ss_names *));
	work.images = calloc(snapshot->modules.count + 1, sizeof(struct ss_image *));
	if (!work.names || !work.images || !ss_perfmaps_init(&work.perf_maps, snapshot))
		return ss_error_no_memory();
	for (size_t i = 0; i < snapshot->stacks.count && whole; i++) {
		work.process = snapshot->perf_map_of ? snapshot->perf_map_of[i] : 0;
		whole = symbolize_stack(&work, &snapshot->stacks.items[i]);
	}
	for (size_t i = 0; i < snapshot->places.count && whole; i++)
		whole = symbolize_place(&work, &snapshot->places.items[i]);
	for (size_t i = 0; i < snapshot->references.count && whole; i++) {
		if (snapshot->references.items[i].in_code)
			whole = symbolize_call(&work, &snapshot->references.items[i]);
	}
	ss_snapshot_recount(snapshot);
	return whole ? NULL : ss_error_no_memory();
}

static struct ss_names *find_names(struct ss_session *session,
				   const struct ss_snapshot *snapshot, size_t module)
{
	return module < snapshot->modules.count ?
		       ss_names_cache_find(session, snapshot->modules.items[module]) :
		       NULL;
}

bool ss_session_find_note(struct ss_session *session, const struct ss_snapshot *snapshot,
			  size_t module, uint64_t key, const char **ret)
{
	struct ss_names *names = find_names(session, snapshot, module);

	return names && ss_names_find_note(names, key, ret);
}

void ss_session_add_note(struct ss_session *session, const struct ss_snapshot *snapshot,
			 size_t module, uint64_t key, const char *text)
{
	struct ss_names *names = find_names(session, snapshot, module);

	if (names)
		ss_names_add_note(names, key, text);
}
