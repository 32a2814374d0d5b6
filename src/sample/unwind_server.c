#include "sample/unwinder.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/intern.h"
#include "capture/stacks.h"
#include "diagnose/lock.h"
#include "elf/debugfile.h"
#include "elf/elffile.h"
#include "elf/image.h"
#include "data/capture.h"
#include "data/futex.h"
#include "data/session.h"
#include "data/snapshot.h"
#include "data/recording_format.h"
#include "data/recording_writer.h"
#include "symbolize/names.h"

/* Frames among which the function is that waits, and the size of the largest file whose symbols
   are read for that. */
enum { WAIT_FRAMES = 8, NAMED_MAX = 32 << 20 };

/* Names of threads are read when there is a new thread, but not more often than that in a second, and
   again after a while, which gets longer each time: a new thread may have no name yet, or its runtime
   changes what is read, and a program may rename its threads. */
#define NAMES_SOON_NS (100 * SS_NS_PER_MS)
#define NAMES_AGAIN_NS (5 * SS_NS_PER_SECOND)
enum { NAMES_IN_A_SECOND = 10, THREADS_MAX = 65536 };

/* Proofs that change so often are read one by one. */
enum { PROOFS_MAX = 4 };

/* Of a page_set. */
enum { PAGE = 4096, PAGES_MAX = SS_MEMORY_RANGES_BYTES / PAGE };

struct known_module {
	struct ss_module_impl *module; /* one reference, or NULL */
	bool skipped;
};

struct known_space {
	struct ss_capture *capture;  /* NULL: none */
	struct ss_gather_plan *plan; /* as it was sent, or NULL */
	struct ss_idtable named;     /* pid_t: threads whose names were read */
	uint64_t named_ns;	     /* CLOCK_MONOTONIC, when they were; 0: never */
	uint64_t again_ns;	     /* after that, again */
	uint64_t second_ns;	     /* the start of the second in which they were read */
	unsigned named_count;	     /* so many times */
};

/* Pages that are read all at once when the first of them is needed, which saves a message for
   each. */
struct page_set {
	struct ss_idtable pages;   /* uint64_t: addresses, of the current request */
	struct ss_idtable ahead;   /* those of the last request */
	uint32_t sizes[PAGES_MAX]; /* of the pages in ahead that were read */
	uint8_t *bytes;		   /* of PAGES_MAX pages; or NULL */
	bool is_read;
};

/* What runtimes read late. What proves that memory has not changed is read after everything that
   it is a proof for: once more if something else was read since. */
struct page_supply {
	struct page_set early;
	struct page_set proofs;
	unsigned proved; /* how often proofs were read in this request */
	uint32_t space;	 /* whose pages they are */
};

struct ss_unwind_server {
	const struct ss_arena *arena; /* the recorder's, as it was at the fork */
	const uint8_t *stacks;	      /* the same memory, mapped here; NULL: not yet */
	struct ss_session *session;
	SS_VECTOR(struct known_module) modules; /* by id */
	SS_VECTOR(struct known_space) spaces;	/* likewise */
	SS_VECTOR(int32_t) skipped; /* modules of the current space, by index */
	struct ss_unwound unwound;  /* the current answer */
	struct ss_idtable calls;    /* struct call_key: of its calls, by index */
	struct ss_buffer answer;    /* its encoding */
	struct page_supply supply;
	/* By stack of the current answer: the text of the function that waits on a futex;
	   SS_ID_NONE: not searched yet */
	SS_VECTOR(uint32_t) functions;
};

/* The call of a runtime. Strings are interned: equal ones are at the same address. */
struct call_key {
	const char *function;
	const char *file;
	uint32_t kind;
	uint32_t line;
};

/* The request being read. It comes from the recorder and is trusted. */
struct reader {
	struct ss_cursor at;
	const struct ss_worker_request *request;
	size_t file; /* the next one */
};

struct ss_unwind_server *ss_unwind_server_new(const struct ss_arena *arena)
{
	struct ss_unwind_server *server = calloc(1, sizeof(*server));

	if (server)
		server->arena = arena;
	return server;
}

static void deinit_pages(struct page_set *set)
{
	ss_idtable_deinit(&set->pages);
	ss_idtable_deinit(&set->ahead);
	free(set->bytes);
}

static void forget_space(struct ss_unwind_server *server, uint32_t id)
{
	if (id >= server->spaces.count)
		return;
	ss_capture_free(server->spaces.items[id].capture);
	free(server->spaces.items[id].plan);
	ss_idtable_deinit(&server->spaces.items[id].named);
	server->spaces.items[id] = (struct known_space){};
}

void ss_unwind_server_free(struct ss_unwind_server *server)
{
	if (!server)
		return;
	for (size_t i = 0; i < server->modules.count; i++)
		ss_module_unref(server->modules.items[i].module);
	for (size_t i = 0; i < server->spaces.count; i++)
		forget_space(server, (uint32_t)i);
	ss_vector_free(&server->modules);
	ss_vector_free(&server->spaces);
	ss_vector_free(&server->skipped);
	ss_vector_free(&server->functions);
	ss_idtable_deinit(&server->calls);
	deinit_pages(&server->supply.early);
	deinit_pages(&server->supply.proofs);
	ss_buffer_deinit(&server->answer);
	ss_unwound_deinit(&server->unwound);
	ss_session_free(server->session);
	free(server); /* the process ends: nothing is unmapped */
}

static bool read_struct(struct reader *reader, void *ret, size_t size)
{
	const uint8_t *bytes = ss_cursor_take(&reader->at, size);

	if (bytes)
		memcpy(ret, bytes, size);
	return bytes != NULL;
}

static struct known_module *module_slot(struct ss_unwind_server *server, uint32_t id)
{
	while (server->modules.count <= id) {
		if (!ss_vector_push(&server->modules))
			return NULL;
	}
	return &server->modules.items[id];
}

static struct known_space *space_slot(struct ss_unwind_server *server, uint32_t id)
{
	while (server->spaces.count <= id) {
		if (!ss_vector_push(&server->spaces))
			return NULL;
	}
	return &server->spaces.items[id];
}

static bool add_mappings(struct reader *reader, struct ss_module_impl *module,
			 size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ss_mapping mapping;
		if (!read_struct(reader, &mapping, sizeof(mapping)) ||
		    !ss_module_add_mapping(module, &mapping))
			return false;
	}
	return true;
}

/* A copy of bytes that the recorder has at a pointer, which follow in the request. False: no memory. */
static bool read_bytes(struct reader *reader, const void *there, size_t size,
		       uint8_t **ret, size_t *ret_size)
{
	const uint8_t *bytes = there ? ss_cursor_take(&reader->at, size) : NULL;

	if (!there || size == 0)
		return true;
	*ret = malloc(size);
	if (!bytes || !*ret)
		return false;
	memcpy(*ret, bytes, size);
	*ret_size = size;
	return true;
}

/* Reads the rest of a module. False: no memory. */
static bool fill_module(struct reader *reader, const struct ss_module_impl *from,
			struct ss_module_impl *module)
{
	module->pub.size = from->pub.size;
	module->device = from->device;
	module->inode = from->inode;
	module->file_inode = from->file_inode;
	module->modified_ns = from->modified_ns;
	module->copied = from->copied;
	module->unverified = from->unverified;
	return add_mappings(reader, module, from->mapping_count) &&
	       (from->build_id_size == 0 ||
		ss_module_set_build_id(module, from->build_id, from->build_id_size)) &&
	       read_bytes(reader, from->header, from->header_size, &module->header,
			  &module->header_size) &&
	       read_bytes(reader, from->bytes, from->size, &module->bytes, &module->size);
}

static bool describe(struct ss_unwind_server *server, uint32_t id,
		     struct ss_module_impl *module)
{
	struct ss_unwound_module *found = ss_vector_push(&server->unwound.modules);

	if (!found)
		return false;
	ss_module_identify(module);
	_cleanup_(ss_image_cleanup) struct ss_image *image = ss_image_new(module);
	found->id = id;
	found->bias =
		image ? ss_image_bias(image, module) :
			ss_module_guess_bias(module, module->fd >= 0 || module->bytes);
	found->build_id_size = (uint32_t)module->build_id_size;
	memcpy(found->build_id, module->build_id, module->build_id_size);
	ss_module_identify_file(module);
	found->file_size = module->pub.file.size;
	found->modified_ns = module->pub.file.modified_ns;
	found->file_inode = module->pub.file.inode;
	found->has_hash = module->pub.file.hash != NULL;
	memcpy(found->hash, module->file_hash, sizeof(found->hash));
	found->problem = ss_unwound_add_text(&server->unwound, module->pub.problem,
					     WIRE_PROBLEM_MAX);
	return true;
}

static bool read_module(struct ss_unwind_server *server, struct reader *reader,
			uint32_t id, volatile int32_t *module_at)
{
	struct known_module *slot = module_slot(server, id);
	struct wire_module wire;
	const struct ss_module *from = &wire.module.pub;

	if (!slot || !read_struct(reader, &wire, sizeof(wire)))
		return false;
	const uint8_t *bytes = ss_cursor_take(&reader->at, wire.path_size);
	_cleanup_free_ char *path = bytes ? strndup((const char *)bytes, wire.path_size) :
					    NULL;
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		path ? ss_module_new(path, from->base, from->base + from->size) : NULL;
	if (!module || !fill_module(reader, &wire.module, module))
		return false;
	if (wire.module.fd >= 0 && reader->file < reader->request->file_count)
		module->fd = reader->request->files[reader->file++];
	ss_module_unref(slot->module);
	*slot = (struct known_module){ .module = ss_module_ref(module),
				       .skipped = wire.skipped };
	*module_at = WIRE_MODULE_AT - (int32_t)id;
	return describe(server, id, module);
}

static bool read_modules(struct ss_unwind_server *server, struct reader *reader,
			 struct ss_capture *space, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t id;
		if (!read_struct(reader, &id, sizeof(id)) ||
		    id >= server->modules.count || !server->modules.items[id].module)
			return false;
		struct ss_module_impl **slot = ss_vector_push(&space->modules);
		if (!slot)
			return false;
		*slot = ss_module_ref(server->modules.items[id].module);
	}
	space->modules_identified = true; /* by describe() */
	return true;
}

/* Consecutive areas often have the same name. */
static bool name_areas(struct ss_capture *space, const char *names)
{
	uintptr_t last = UINTPTR_MAX;
	const char *name = NULL;

	for (size_t i = 0; i < space->areas.count; i++) {
		struct ss_area *area = &space->areas.items[i];
		uintptr_t offset = (uintptr_t)area->name;
		if (offset != last)
			name = ss_intern_string(space->strings, names + offset);
		last = offset;
		area->name = name;
		if (!name)
			return false;
	}
	return true;
}

static bool read_executable(struct reader *reader, struct ss_capture *space,
			    uint64_t size)
{
	const uint8_t *text = ss_cursor_take(&reader->at, size);

	if (text && size > 0)
		space->process.executable =
			ss_intern_bytes(space->strings, (const char *)text, (size_t)size);
	return text && (size == 0 || space->process.executable);
}

static bool read_space(struct ss_unwind_server *server, struct reader *reader,
		       uint32_t id)
{
	_cleanup_(ss_capture_cleanup) struct ss_capture *space = ss_capture_new();
	struct known_space *slot = space_slot(server, id);
	struct wire_space wire;

	if (!space || !slot || !read_struct(reader, &wire, sizeof(wire)) ||
	    !(space->arch = ss_arch_find((uint16_t)wire.elf_machine,
					 (uint8_t)wire.elf_class)) ||
	    !read_modules(server, reader, space, wire.module_count) ||
	    !read_executable(reader, space, wire.executable_size) ||
	    !ss_vector_reserve(&space->areas, wire.area_count + (size_t)1))
		return false;
	space->areas.count = wire.area_count;
	if (!read_struct(reader, space->areas.items,
			 wire.area_count * sizeof(*space->areas.items)))
		return false;
	const uint8_t *names = ss_cursor_take(&reader->at, wire.name_bytes);
	if (!names || !name_areas(space, (const char *)names))
		return false;
	ss_capture_free(slot->capture);
	slot->capture = take_ptr(space);
	return true;
}

static bool map_stacks(struct ss_unwind_server *server)
{
	if (server->stacks)
		return true;
	void *bytes = server->arena->bytes;
	if (server->arena->shared_fd >= 0)
		/* Shared mappings are forbidden. This one shows what the owner writes, since
		   nothing is written here. */
		bytes = mmap(NULL, server->arena->size, PROT_READ, MAP_PRIVATE,
			     server->arena->shared_fd, 0);
	if (bytes == MAP_FAILED)
		return false;
	server->stacks = bytes;
	return true;
}

/* Translates pointers into the arena, and clears all others. */
static void adopt_thread(const struct ss_unwind_server *server,
			 struct ss_capture_thread *thread)
{
	thread->reason = thread->wchan = thread->kernel_stack = NULL;
	thread->lock = (struct ss_lock_copy){};
	thread->live = NULL;
	thread->live_count = 0;
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		struct ss_stack_copy *copy = &thread->stacks[i];
		if (copy->bytes)
			copy->bytes =
				server->stacks + (copy->bytes - server->arena->bytes);
		if (copy->absent)
			copy->absent =
				server->stacks + (copy->absent - server->arena->bytes);
	}
}

static bool read_threads(struct ss_unwind_server *server, struct reader *reader,
			 struct ss_capture *space, size_t count)
{
	if (!ss_vector_reserve(&space->threads, count + 1) || !map_stacks(server))
		return false;
	space->threads.count = count;
	if (!read_struct(reader, space->threads.items,
			 count * sizeof(*space->threads.items)))
		return false;
	for (size_t i = 0; i < count; i++)
		adopt_thread(server, &space->threads.items[i]);
	return true;
}

/* Reads what was gathered in one turn. */
static bool read_turn(struct reader *reader, struct ss_gathered *turn)
{
	size_t count;

	if (!read_struct(reader, &count, sizeof(count)) ||
	    !ss_vector_reserve(&turn->blocks, count + 1))
		return false;
	struct ss_memory_block *blocks = turn->blocks.items;
	if (!read_struct(reader, blocks, count * sizeof(*blocks)))
		return false;
	/* They stay in the request until it is answered. */
	for (size_t i = 0; i < count; i++)
		blocks[i].bytes = ss_cursor_take(&reader->at, blocks[i].size);
	if (reader->at.failed)
		return false;
	turn->blocks.count = count;
	ss_gathered_sort(turn);
	return true;
}

static bool read_turns(struct reader *reader, struct ss_capture *space, size_t count)
{
	ss_capture_clear_turns(space);
	for (size_t i = 0; i < count; i++) {
		struct ss_gathered *turn = ss_vector_push(&space->turns);
		if (!turn)
			return false;
		*turn = (struct ss_gathered){};
		if (!read_turn(reader, turn))
			return false;
	}
	return true;
}

static bool find_skipped(struct ss_unwind_server *server, const struct ss_capture *space)
{
	bool any = false;

	server->skipped.count = 0;
	for (size_t i = 0; i < server->modules.count; i++)
		any |= server->modules.items[i].skipped;
	for (size_t i = 0; any && i < space->modules.count; i++) {
		for (size_t m = 0; m < server->modules.count; m++) {
			const struct known_module *known = &server->modules.items[m];
			if (!known->skipped || known->module != space->modules.items[i])
				continue;
			int32_t *slot = ss_vector_push(&server->skipped);
			if (!slot)
				return false;
			*slot = (int32_t)i;
		}
	}
	server->session->skip_modules = server->skipped.items;
	server->session->skip_count = server->skipped.count;
	return true;
}

/* The index of a call. False: no memory. */
static bool add_call(struct ss_unwind_server *server, const struct ss_frame *frame,
		     uint64_t *ret)
{
	struct ss_unwound *unwound = &server->unwound;
	const struct call_key key = { .function = frame->symbol,
				      .file = frame->file,
				      .kind = ss_frame_record_kind(frame),
				      .line = frame->line };
	bool added = false;
	const uint32_t index = ss_idtable_add(&server->calls, &key, sizeof(key), &added);
	struct ss_unwound_call *call = added ? ss_vector_push(&unwound->calls) : NULL;

	*ret = index;
	if (call)
		*call = (struct ss_unwound_call){
			.kind = key.kind,
			.line = key.line,
			.function =
				ss_unwound_add_text(unwound, key.function, WIRE_TEXT_MAX),
			.file = ss_unwound_add_text(unwound, key.file, WIRE_TEXT_MAX),
		};
	return index != SS_ID_NONE && (call || !added);
}

static bool add_frame(struct ss_unwind_server *server, const struct ss_frame *frame)
{
	struct ss_unwound_frame *added = ss_vector_push(&server->unwound.frames);

	if (!added)
		return false;
	if (ss_frame_record_kind(frame) != SS_FRAME_NATIVE) {
		added->module = -1;
		added->flags = SS_FROM_RUNTIME << SS_FRAME_SOURCE_SHIFT;
		return add_call(server, frame, &added->pc);
	}
	added->pc = frame->pc;
	added->module = frame->module ? frame->module_index : -1;
	added->flags = ss_frame_record_flags(frame);
	return true;
}

static bool add_stack(struct ss_unwind_server *server, const struct ss_stack *stack)
{
	struct ss_unwound_stack *added = ss_vector_push(&server->unwound.stacks);

	if (!added)
		return false;
	*added = (struct ss_unwound_stack){
		.first = (uint32_t)server->unwound.frames.count,
		.count = (uint32_t)stack->count,
		.end = stack->end,
	};
	for (size_t i = 0; i < stack->count; i++) {
		if (!add_frame(server, &stack->frames[i]))
			return false;
	}
	return true;
}

/* The linkage name of the function of a frame. NULL: not known, or its file is very large: reading
   its symbols would delay the tick. */
static const char *name_of(struct ss_unwind_server *server,
			   const struct ss_capture *space, const struct ss_frame *frame)
{
	const unsigned flags = SS_NO_INLINES | SS_NO_SOURCE;
	struct ss_session *session = server->session;
	struct ss_name name;
	struct stat st;

	if (!frame->module || ss_session_skips(session, frame->module_index))
		return NULL;
	const struct ss_module_impl *module = space->modules.items[frame->module_index];
	if (module->fd >= 0 && (fstat(module->fd, &st) != 0 || st.st_size > NAMED_MAX))
		return NULL;
	struct ss_names *names = ss_names_cache_find(session, module);
	if (!names)
		return NULL;
	ss_session_note(session, frame->module_index);
	ss_names_read(names, session, module, flags);
	ss_names_find(names, frame->lookup_offset, flags, &name);
	ss_session_note(session, -1);
	return name.symbol;
}

/* The function that waits on a futex; if it is not a known one, the innermost one that has a name.
   The caller frees it; or NULL. */
static char *find_wait_function(struct ss_unwind_server *server,
				const struct ss_capture *space,
				const struct ss_stack *stack)
{
	size_t budget = WIRE_FUNCTION_MAX * (size_t)64;
	_cleanup_free_ char *first = NULL;

	for (size_t i = 0; i < SS_MIN(stack->count, (size_t)WAIT_FRAMES); i++) {
		const struct ss_frame *frame = &stack->frames[i];
		if (frame->signal_frame)
			break;
		if (ss_frame_record_kind(frame) != SS_FRAME_NATIVE)
			continue;
		const char *symbol = name_of(server, space, frame);
		if (!symbol)
			continue;
		char *plain = ss_name_demangle(symbol, &budget);
		if (!plain)
			plain = strdup(symbol);
		if (!plain || ss_wait_function_class(plain) != SS_CLASS_UNKNOWN)
			return plain;
		if (first)
			free(plain);
		else
			first = plain;
	}
	return take_ptr(first);
}

/* The same of a stack, which many threads may have, as a text of the answer. */
static uint32_t wait_function(struct ss_unwind_server *server,
			      const struct ss_capture *space,
			      const struct ss_snapshot *snapshot, uint32_t stack)
{
	uint32_t *known = &server->functions.items[stack];

	if (*known == SS_ID_NONE) {
		_cleanup_free_ char *name =
			find_wait_function(server, space, &snapshot->stacks.items[stack]);
		*known = ss_unwound_add_text(&server->unwound, name, WIRE_FUNCTION_MAX);
	}
	return *known;
}

/* Room for the functions of so many stacks. False: no memory. */
static bool reset_functions(struct ss_unwind_server *server, size_t count)
{
	if (!ss_vector_reserve(&server->functions, count + 1))
		return false;
	for (size_t i = 0; i < count; i++)
		server->functions.items[i] = SS_ID_NONE;
	return true;
}

/* index: of the thread in the capture and in the snapshot. */
static bool add_thread(struct ss_unwind_server *server, const struct ss_capture *space,
		       const struct ss_snapshot *snapshot, size_t index)
{
	const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[index];
	const struct ss_capture_thread *captured = &space->threads.items[index];
	struct ss_unwound *unwound = &server->unwound;
	struct ss_unwound_thread *added = ss_vector_push(&unwound->threads);
	struct ss_futex futex;

	if (!added)
		return false;
	added->stack = thread->stack_id;
	added->lacks_calls = thread->native_reason != NULL;
	added->reason = ss_unwound_add_text(
		unwound, thread->reason ? thread->reason : thread->native_reason,
		WIRE_REASON_MAX);
	if (thread->name != thread->comm)
		added->name = ss_unwound_add_text(unwound, thread->name, WIRE_NAME_MAX);
	if (captured->state != 'R' && captured->syscall.number >= 0 &&
	    ss_futex_parse(&captured->syscall, &futex))
		added->function =
			wait_function(server, space, snapshot, thread->stack_id);
	return true;
}

/* Adds the plan for the next captures, unless the recorder has it. False: no memory. */
static bool add_plan(struct ss_unwind_server *server, struct known_space *space,
		     const struct ss_gather_plan *plan)
{
	if (plan->step_count == 0 ||
	    (space->plan && memcmp(space->plan, plan, sizeof(*plan)) == 0))
		return true;
	struct ss_gather_plan *added = ss_vector_push(&server->unwound.plans);
	if (!space->plan)
		space->plan = malloc(sizeof(*plan));
	if (!space->plan || !added)
		return false;
	memcpy(space->plan, plan, sizeof(*plan));
	memcpy(added, plan, sizeof(*plan));
	return true;
}

/* Adds the stacks of all threads. False: no memory. */
static bool add_all(struct ss_unwind_server *server, struct known_space *space,
		    const struct ss_snapshot *snapshot)
{
	bool ok = reset_functions(server, snapshot->stacks.count);

	for (size_t i = 0; ok && i < snapshot->stacks.count; i++)
		ok = add_stack(server, &snapshot->stacks.items[i]);
	for (size_t i = 0; ok && i < snapshot->tasks[SS_TASK_THREAD].count; i++)
		ok = add_thread(server, space->capture, snapshot, i);
	return ok && add_plan(server, space, &snapshot->runtime_plan);
}

/* Reads the pages that the last request has read. */
static void read_ahead(struct page_set *set)
{
	struct ss_memory_range ranges[PAGES_MAX];

	set->is_read = true;
	if (!set->bytes)
		set->bytes = malloc((size_t)PAGES_MAX * PAGE);
	if (!set->bytes)
		return;
	for (uint32_t i = 0; i < set->ahead.count; i++) {
		ranges[i] =
			(struct ss_memory_range){ .bytes = set->bytes + i * (size_t)PAGE,
						  .size = PAGE };
		memcpy(&ranges[i].address, ss_idtable_key(&set->ahead, i, NULL),
		       sizeof(ranges[i].address));
	}
	ss_worker_read_ranges(ranges, set->ahead.count);
	for (uint32_t i = 0; i < set->ahead.count; i++)
		set->sizes[i] = (uint32_t)ranges[i].done;
}

/* A page that was read ahead, and its size; 0: it was not. The next request reads it ahead. */
static size_t find_page(struct page_set *set, uint64_t address, const uint8_t **ret)
{
	uint32_t index = SS_ID_NONE;

	if (set->bytes)
		index = ss_idtable_find(&set->ahead, &address, sizeof(address));
	/* Without memory it is read alone the next time. */
	if (set->pages.count < PAGES_MAX)
		(void)ss_idtable_add(&set->pages, &address, sizeof(address), NULL);
	if (index == SS_ID_NONE)
		return 0;
	*ret = set->bytes + (size_t)index * PAGE;
	return set->sizes[index];
}

/* Reads a proof, which may lie in several pages. */
static size_t read_proof(struct page_supply *supply, uint64_t address, uint8_t *bytes,
			 size_t size)
{
	size_t done = 0;

	if (!supply->proofs.is_read && supply->proved++ < PROOFS_MAX)
		read_ahead(&supply->proofs);
	while (done < size) {
		const uint64_t at = address + done;
		const size_t offset = at % PAGE;
		const uint8_t *page = NULL;
		size_t n = find_page(&supply->proofs, at - offset, &page);
		if (!supply->proofs.is_read || n <= offset)
			return done;
		n = SS_MIN(n - offset, size - done);
		memcpy(bytes + done, page + offset, n);
		done += n;
	}
	return done;
}

static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	if (size < PAGE && read_proof(data, address, bytes, size) == size)
		return size;
	return ss_worker_read(address, bytes, size);
}

static void read_ranges(void *data, struct ss_memory_range *ranges, size_t count)
{
	(void)data;
	ss_worker_read_ranges(ranges, count);
}

static bool check_thread(void *data, pid_t tid)
{
	(void)data;
	return ss_worker_check(tid);
}

static size_t read_early(void *data, uint64_t address, void *bytes, size_t size)
{
	struct page_supply *supply = data;
	const uint8_t *page = NULL;

	if (size == PAGE && !supply->early.is_read) {
		read_ahead(&supply->early);
		supply->proofs.is_read = false;
	}
	size_t n = size == PAGE ? find_page(&supply->early, address, &page) : 0;
	if (n == 0) {
		supply->proofs.is_read = false;
		return ss_worker_read(address, bytes, size);
	}
	memcpy(bytes, page, n);
	return n;
}

/* What this request has read, the next one reads ahead. */
static void end_pages(struct page_set *set)
{
	ss_idtable_deinit(&set->ahead);
	set->ahead = set->pages;
	set->pages = (struct ss_idtable){};
	set->is_read = false;
}

static void end_supply(struct page_supply *supply)
{
	end_pages(&supply->early);
	end_pages(&supply->proofs);
	supply->proved = 0;
}

static bool has_new_thread(const struct known_space *space)
{
	const struct ss_capture *capture = space->capture;

	for (size_t i = 0; i < capture->threads.count; i++) {
		const pid_t tid = capture->threads.items[i].tid;
		if (ss_idtable_find(&space->named, &tid, sizeof(tid)) == SS_ID_NONE)
			return true;
	}
	return false;
}

/* Whether names of threads are read with this capture. */
static bool wants_names(struct known_space *space)
{
	const struct ss_capture *capture = space->capture;
	const uint64_t now_ns = ss_now_ns();

	if (now_ns - space->second_ns >= SS_NS_PER_SECOND) {
		space->second_ns = now_ns;
		space->named_count = 0;
	}
	const bool again = now_ns - space->named_ns >= space->again_ns;
	if (space->named_count >= NAMES_IN_A_SECOND || (!again && !has_new_thread(space)))
		return false;
	space->again_ns = again && space->again_ns ?
				  SS_MIN(2 * space->again_ns, NAMES_AGAIN_NS) :
				  NAMES_SOON_NS;
	space->named_ns = now_ns;
	space->named_count++;
	if (space->named.count >= THREADS_MAX) {
		ss_idtable_deinit(&space->named);
		space->named = (struct ss_idtable){};
	}
	for (size_t i = 0; i < capture->threads.count; i++) {
		const pid_t tid = capture->threads.items[i].tid;
		/* Without memory they are read again. */
		(void)ss_idtable_add(&space->named, &tid, sizeof(tid), NULL);
	}
	return true;
}

static bool unwind(struct ss_unwind_server *server, struct reader *reader, uint32_t id,
		   volatile int32_t *module_at)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	struct wire_unwind wire;

	if (!read_struct(reader, &wire, sizeof(wire)) || id >= server->spaces.count ||
	    !server->spaces.items[id].capture)
		return false;
	struct known_space *known = &server->spaces.items[id];
	struct ss_capture *space = known->capture;
	if (!read_threads(server, reader, space, wire.thread_count) ||
	    !read_turns(reader, space, wire.turn_count) || !find_skipped(server, space))
		return false;
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .max_frames = wire.max_frames,
						   .read = read_memory,
						   .check = check_thread,
						   .read_early = read_early,
						   .read_ranges = read_ranges,
						   .read_data = &server->supply,
						   .native = true,
						   .no_runtimes = !wire.runtimes,
						   .no_names = !wire.runtimes ||
							       !wants_names(known) };
	ss_names_cache_trim(server->session);
	server->session->module_at = module_at;
	if (server->supply.space != id) {
		ss_idtable_deinit(&server->supply.early.ahead);
		ss_idtable_deinit(&server->supply.proofs.ahead);
	}
	server->supply.space = id;
	struct ss_error *error =
		ss_capture_unwind(space, server->session, &options, &snapshot);
	end_supply(&server->supply);
	if (error) {
		ss_error_free(error);
		return false;
	}
	const bool ok = add_all(server, known, snapshot);
	ss_capture_clear_turns(space);
	return ok;
}

static void forget_module(struct ss_unwind_server *server, uint32_t id)
{
	struct known_module *slot = module_slot(server, id);

	if (!slot)
		return;
	ss_module_unref(slot->module);
	*slot = (struct known_module){};
}

/* Reads all records. False: no memory. */
static bool serve(struct ss_unwind_server *server, struct reader *reader,
		  volatile int32_t *module_at)
{
	while (reader->at.at < reader->at.end) {
		struct wire_record record;
		bool ok = read_struct(reader, &record, sizeof(record));
		if (!ok)
			return false;
		switch (record.kind) {
		case WIRE_MODULE:
			ok = read_module(server, reader, record.id, module_at);
			break;
		case WIRE_SPACE:
			ok = read_space(server, reader, record.id);
			break;
		case WIRE_FORGET_MODULE:
			forget_module(server, record.id);
			break;
		case WIRE_FORGET_SPACE:
			forget_space(server, record.id);
			break;
		case WIRE_UNWIND: /* the last one */
			return unwind(server, reader, record.id, module_at);
		default:
			return false;
		}
		if (!ok)
			return false;
	}
	return true;
}

bool ss_unwind_server_serve(void *data, const struct ss_worker_request *request,
			    volatile int32_t *module_at, const uint8_t **answer,
			    size_t *answer_size)
{
	struct ss_unwind_server *server = data;
	struct reader reader = { .at = { .at = request->bytes,
					 .end = request->bytes + request->size },
				 .request = request };

	if (!server->session) {
		struct ss_error *error = ss_session_new(NULL, &server->session);
		ss_error_free(error);
		if (!server->session)
			return false;
	}
	ss_buffer_clear(&server->answer);
	ss_unwound_clear(&server->unwound);
	ss_idtable_deinit(&server->calls);
	server->calls = (struct ss_idtable){};
	if (!serve(server, &reader, module_at) || server->unwound.no_memory)
		return false;
	ss_unwound_encode(&server->unwound, &server->answer);
	if (server->answer.failed)
		return false;
	*answer = (const uint8_t *)server->answer.bytes;
	*answer_size = server->answer.size;
	return true;
}
