/*
 * A capture from a core file: threads, their stacks and locks, areas and modules. All
 * threads stood still at one moment, as in a freeze of the whole process.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/search.h"
#include "base/vector.h"
#include "core/core_file.h"
#include "elf/debugfile.h"
#include "elf/elffile.h"
#include "data/call.h"
#include "data/capture.h"
#include "data/futex.h"
#include "data/gather.h"
#include "data/regions.h"
#include "data/session.h"
#include "core/core_capture.h"

/* A stack can be 8 MiB and more, but only its used part is copied. */
enum {
	STACK_MAX = 16 << 20,
	TOTAL_MAX = 256 << 20,
	HEADER_MAX = 64 << 10, /* of a module: segments and notes */
	VDSO_MAX = 64 << 10,
	ARGUMENTS_MAX = 16 << 20,
	HEAP_MAX = 128 << 20, /* kept of a compressed file */
	ALIGNMENT = 64,
	INTERRUPTED_STACKS =
		4, /* of full size; usually that of the thread that crashed */
	OVERFLOW_MAX = 1 << 20, /* the frame that overflowed a stack */
};

/* Every thread has stopped once, together with the others. */
enum { ONLY_ROUND = 1 };

struct builder {
	struct ss_core_file *core;
	struct ss_session *session;
	struct ss_core_options options;
	struct ss_capture *capture;
	size_t used; /* of the arena */
};

/* Areas and modules -------------------------------------------------------- */

/* The next mapping that ends after address. */
static const struct ss_core_mapping *find_mapping(const struct ss_core_file *core,
						  uint64_t address, size_t *at)
{
	while (*at < core->mappings.count && core->mappings.items[*at].end <= address)
		++*at;
	return *at < core->mappings.count ? &core->mappings.items[*at] : NULL;
}

static struct ss_maps_entry entry_of(const struct ss_core_file *core, uint64_t start,
				     uint64_t end, unsigned prot,
				     const struct ss_core_mapping *file)
{
	struct ss_maps_entry entry = { .start = start, .end = end, .prot = prot };

	if (file) {
		entry.offset = file->offset + (start - file->start);
		entry.name = file->path;
		entry.name_size = strlen(file->path);
		/* Equal paths are equal pointers: any number that tells files apart. */
		entry.inode = (uint64_t)(uintptr_t)file->path;
	} else if (core->vdso && start <= core->vdso && core->vdso < end) {
		entry.name = "[vdso]";
		entry.name_size = strlen(entry.name);
	}
	return entry;
}

/*
 * gcore(1) leaves out mappings whose bytes are not dumped. Code is among them, and what is
 * taken for code besides does no harm: the file's segments know better.
 */
static bool add_undumped(struct ss_regions *regions, const struct ss_core_file *core,
			 uint64_t start, uint64_t end, const struct ss_core_mapping *file)
{
	struct ss_maps_entry entry =
		entry_of(core, start, end, PROT_READ | PROT_EXEC, file);

	return ss_regions_add(regions, &entry);
}

/* Adds the parts of mapped files from *from up to `to` that have no segment. */
static bool add_gap(struct ss_regions *regions, const struct ss_core_file *core,
		    uint64_t from, uint64_t to, size_t *at)
{
	const struct ss_core_mapping *file;

	while (from < to && (file = find_mapping(core, from, at)) && file->start < to) {
		uint64_t start = SS_MAX(from, file->start);
		from = SS_MIN(to, file->end);
		if (!add_undumped(regions, core, start, from, file))
			return false;
	}
	return true;
}

/* Adds a segment, divided where a mapped file begins or ends. */
static bool add_segment(struct ss_regions *regions, const struct ss_core_file *core,
			const struct ss_core_segment *segment, size_t *at)
{
	uint64_t start = segment->start;

	while (start < segment->end) {
		const struct ss_core_mapping *file = find_mapping(core, start, at);
		uint64_t end = segment->end;
		if (file && file->start > start)
			end = SS_MIN(end, file->start);
		else if (file)
			end = SS_MIN(end, file->end);
		bool inside = file && file->start <= start;
		struct ss_maps_entry entry =
			entry_of(core, start, end, segment->prot, inside ? file : NULL);
		if (!ss_regions_add(regions, &entry))
			return false;
		start = end;
	}
	return true;
}

static bool add_areas(struct builder *b)
{
	_cleanup_(ss_regions_cleanup) struct ss_regions *regions =
		ss_regions_begin(b->capture);
	uint64_t from = 0;
	size_t at = 0;

	if (!regions)
		return false;
	for (size_t i = 0; i < b->core->segments.count; i++) {
		const struct ss_core_segment *segment = &b->core->segments.items[i];
		if (!add_gap(regions, b->core, from, segment->start, &at) ||
		    !add_segment(regions, b->core, segment, &at))
			return false;
		from = segment->end;
	}
	return add_gap(regions, b->core, from, UINT64_MAX, &at) &&
	       ss_regions_end(regions);
}

/* What the core file has of the beginning of a module: its headers, and usually its
   build-id (coredump_filter bit 4). */
static size_t header_size(const struct ss_module_impl *module)
{
	bool vdso = strcmp(module->pub.path, "[vdso]") == 0;

	return (size_t)SS_MIN(module->pub.size, (uint64_t)(vdso ? VDSO_MAX : HEADER_MAX));
}

static bool read_header(const struct builder *b, struct ss_module_impl *module)
{
	size_t size = header_size(module);
	uint8_t *bytes = malloc(size ? size : 1);

	if (!bytes)
		return false;
	module->size = ss_core_file_read(b->core, module->pub.base, bytes, size);
	module->bytes = bytes;
	return true;
}

static bool is_elf(const struct ss_module_impl *module)
{
	return module->size >= SELFMAG && memcmp(module->bytes, ELFMAG, SELFMAG) == 0;
}

/* Gives the module the file, in place of what the core file has. */
static void take_file(struct ss_module_impl *module, struct ss_elf *elf)
{
	module->fd = fcntl(elf->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	ss_elf_free(elf);
}

static bool is_program(const struct builder *b, const struct ss_module_impl *module)
{
	return module->pub.base <= b->core->program_headers &&
	       b->core->program_headers - module->pub.base < module->pub.size;
}

static void open_file(const struct builder *b, struct ss_module_impl *module)
{
	const char *why =
		NULL; /* not used: without a build-id there is nothing to compare */
	struct ss_elf *elf = NULL;

	if (b->options.program && is_program(b, module)) {
		elf = ss_debugfile_open_module(b->session, module, b->options.program);
		if (!elf)
			ss_module_set_problem(
				module, "'%s' is not used: %s", b->options.program,
				module->build_id_size ? "it is not the same build" :
							"the core file has no build-id "
							"to compare");
	}
	if (!elf)
		elf = ss_debugfile_find_module(b->session, module, &why);
	if (!elf)
		elf = ss_debugfile_fetch_module(b->session, module);
	if (elf)
		take_file(module, elf);
	else if (module->build_id_size)
		ss_module_set_problem(module, "no file on this machine has its build-id");
	else if (is_elf(module))
		ss_module_set_problem(
			module, "it has no build-id, so its file cannot be identified");
	else
		ss_module_set_problem(module, "its build-id is not in the core file");
}

static bool open_modules(const struct builder *b)
{
	for (size_t i = 0; i < b->capture->modules.count; i++) {
		struct ss_module_impl *module = b->capture->modules.items[i];
		bool vdso = strcmp(module->pub.path, "[vdso]") == 0;
		ss_session_note(b->session, (int32_t)i);
		if (ss_session_skips(b->session, (int32_t)i))
			continue;
		if (!read_header(b, module))
			return false;
		ss_module_identify(module);
		if (!vdso)
			open_file(b, module);
	}
	b->capture->modules_identified = true;
	ss_session_note(b->session, -1);
	return true;
}

/* Threads ------------------------------------------------------------------ */

/* The segment of a stack. A stack that has overflowed ends above sp. */
static const struct ss_core_segment *find_stack(const struct ss_core_file *core,
						uint64_t sp)
{
	const struct ss_core_segment *segment = ss_core_file_find(core, sp);

	if (segment)
		return segment;
	size_t next = ss_lower_bound(core->segments.count, i,
				     core->segments.items[i].end <= sp);
	if (next == core->segments.count)
		return NULL;
	segment = &core->segments.items[next];
	return segment->start - sp <= OVERFLOW_MAX && (segment->prot & PROT_WRITE) ?
		       segment :
		       NULL;
}

/* The part of the stack of a thread that is copied. */
static struct ss_stack_copy plan_stack(const struct builder *b,
				       const struct ss_capture_thread *thread)
{
	const struct ss_arch *arch = b->core->arch;
	uint64_t sp = ss_regs_sp(arch, &thread->regs);
	const struct ss_core_segment *segment = find_stack(b->core, sp);
	uint64_t below = SS_MIN(sp, (uint64_t)arch->red_zone);

	if (!segment)
		return (struct ss_stack_copy){ .address = sp };
	uint64_t from = SS_MAX(sp - below, segment->start);
	uint64_t size = SS_MIN(segment->end - from, (uint64_t)b->options.max_stack);
	return (struct ss_stack_copy){ .address = from,
				       .size = (size_t)size,
				       .truncated = size < segment->end - from };
}

static size_t padded(size_t size)
{
	return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static bool allocate_arena(struct builder *b)
{
	uint64_t size = 0;

	for (size_t i = 0; i < b->core->threads.count; i++)
		size += padded(plan_stack(b, &b->core->threads.items[i]).size) +
			SS_LOCK_MAX;
	/* Stacks that handlers on alternate stacks interrupted are not known yet. */
	size += SS_MIN(b->core->threads.count, (size_t)INTERRUPTED_STACKS) *
		(uint64_t)b->options.max_stack;
	size = SS_MIN(size, (uint64_t)b->options.max_total) + SS_LOCK_MAX;
	/* Pages of it are used as far as stacks are in the file. */
	void *arena = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED)
		return false;
	b->capture->arena = arena;
	b->capture->arena_size = size;
	return true;
}

/* Copies size bytes at address to the arena. Returns how many were in the file, and there
   was room for. */
static size_t copy_bytes(struct builder *b, uint64_t address, size_t size,
			 const uint8_t **ret)
{
	uint8_t *bytes = b->capture->arena + b->used;
	size_t room = b->capture->arena_size - b->used;

	size = ss_core_file_read(b->core, address, bytes, SS_MIN(size, room));
	if (size)
		*ret = bytes;
	b->used = SS_MIN(b->used + padded(size), b->capture->arena_size);
	return size;
}

static void copy_stack(struct builder *b, const struct ss_capture_thread *from,
		       struct ss_capture_thread *thread)
{
	struct ss_stack_copy *stack = &thread->stacks[0];
	bool room = b->used < b->capture->arena_size;

	*stack = plan_stack(b, from);
	size_t planned = stack->size;
	stack->size = copy_bytes(b, stack->address, planned, &stack->bytes);
	stack->truncated |= stack->size < planned &&
			    (!room || b->used == b->capture->arena_size);
}

/* A handler on an alternate stack interrupted another one, which continues there. */
static bool plan_interrupted(const struct builder *b,
			     const struct ss_capture_thread *thread,
			     struct ss_stack_copy *ret)
{
	const struct ss_stack_copy *stack = &thread->stacks[0];
	struct ss_capture_thread interrupted = {};
	uint64_t sp;

	if (stack->size == 0 || !ss_arch_find_alternate(b->core->arch, stack->bytes,
							stack->size, stack->address, &sp))
		return false;
	ss_regs_set(&interrupted.regs, b->core->arch->sp, sp);
	*ret = plan_stack(b, &interrupted);
	return true;
}

static bool want_interrupted(const struct builder *b,
			     const struct ss_capture_thread *thread)
{
	struct ss_stack_copy stack;

	return !plan_interrupted(b, thread, &stack) ||
	       ss_core_file_want(b->core, stack.address, stack.size);
}

static void copy_interrupted(struct builder *b, struct ss_capture_thread *thread)
{
	struct ss_stack_copy *stack = &thread->stacks[1];

	if (plan_interrupted(b, thread, stack))
		stack->size = copy_bytes(b, stack->address, stack->size, &stack->bytes);
}

/* The words around the futex that a thread waits for. size is 0 without one. */
static struct ss_lock_copy plan_lock(const struct builder *b,
				     const struct ss_syscall *syscall)
{
	struct ss_futex futex;

	if (!ss_futex_parse(syscall, &futex))
		return (struct ss_lock_copy){};
	const struct ss_core_segment *segment = ss_core_file_find(b->core, futex.address);
	if (!segment)
		return (struct ss_lock_copy){};
	uint64_t before = SS_MIN(futex.address - segment->start, (uint64_t)SS_LOCK_REACH);
	return (struct ss_lock_copy){ .address = futex.address - before,
				      .size = (size_t)before + SS_LOCK_REACH,
				      .freeze_round = ONLY_ROUND };
}

static void copy_lock(struct builder *b, struct ss_capture_thread *thread)
{
	struct ss_lock_copy *lock = &thread->lock;

	*lock = plan_lock(b, &thread->syscall);
	lock->size = copy_bytes(b, lock->address, lock->size, &lock->bytes);
}

/* The core file has the name of the process only. */
static const char *name_of(const struct builder *b,
			   const struct ss_capture_thread *thread)
{
	return b->core->name && thread->tid == b->core->pid ? b->core->name : "";
}

static bool read_words(void *data, uint64_t address, void *bytes, size_t size)
{
	return ss_core_file_read(data, address, bytes, size) == size;
}

static bool add_thread(struct builder *b, const struct ss_capture_thread *from)
{
	struct ss_capture_thread *thread = ss_vector_push(&b->capture->threads);

	if (!thread)
		return false;
	*thread = *from;
	(void)strncpy(thread->name, name_of(b, from), sizeof(thread->name) - 1);
	copy_stack(b, from, thread);
	if (b->core->arch->unfold && thread->syscall.number >= 0)
		b->core->arch->unfold(&thread->syscall, read_words, b->core);
	if (!b->options.no_waits)
		copy_lock(b, thread);
	return want_interrupted(b, thread);
}

SS_DEFINE_COMPARE(compare_threads, struct ss_capture_thread, tid)

static bool is_selected(const struct builder *b, const struct ss_capture_thread *thread)
{
	return !b->options.filter ||
	       b->options.filter(b->options.filter_data, thread->tid, name_of(b, thread),
				 thread->state);
}

/* Whether all memory that the process could write can be kept: runtimes describe their functions
   there. */
static bool can_keep_heap(const struct ss_core_file *core)
{
	uint64_t left = HEAP_MAX;

	for (size_t i = 0; i < core->segments.count; i++) {
		const struct ss_core_segment *segment = &core->segments.items[i];
		if (!(segment->prot & PROT_WRITE))
			continue;
		if (segment->present > left)
			return false;
		left -= segment->present;
	}
	return true;
}

/* Bytes to keep of a compressed core file. */
static uint64_t fetch_max(const struct builder *b)
{
	return HEAP_MAX + b->options.max_total + (uint64_t)ARGUMENTS_MAX +
	       b->capture->modules.count * (uint64_t)HEADER_MAX;
}

static bool add_threads(struct builder *b)
{
	if (!allocate_arena(b))
		return false;
	for (size_t i = 0; i < b->core->threads.count; i++) {
		const struct ss_capture_thread *thread = &b->core->threads.items[i];
		const bool selected = is_selected(b, thread);
		b->capture->process.threads_left_out += !selected;
		if (selected && !add_thread(b, thread))
			return false;
	}
	if (!ss_core_file_fetch(b->core, fetch_max(b)))
		return false;
	for (size_t i = 0; i < b->capture->threads.count; i++) {
		struct ss_capture_thread *thread = &b->capture->threads.items[i];
		copy_interrupted(b, thread);
		b->capture->process.copied_bytes +=
			thread->stacks[0].size + thread->stacks[1].size;
	}
	qsort(b->capture->threads.items, b->capture->threads.count,
	      sizeof(*b->capture->threads.items), compare_threads);
	return true;
}

/* Waits -------------------------------------------------------------------- */

static void add_argument(const struct builder *b, struct ss_facts *facts,
			 uint64_t address, size_t size, size_t *left,
			 struct ss_memory_fact *ret)
{
	uint8_t *bytes = address && size && size <= *left ? ss_facts_keep(facts, size) :
							    NULL;

	if (!bytes)
		return;
	*left -= size;
	*ret = (struct ss_memory_fact){
		.address = address,
		.size = ss_core_file_read(b->core, address, bytes, size),
		.bytes = bytes,
	};
}

static bool add_facts(struct builder *b)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = ss_facts_new();
	size_t left = ARGUMENTS_MAX;

	if (!facts || !ss_capture_add_thread_facts(b->capture, facts))
		return false;
	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		const struct ss_call *call = ss_call_find(thread->call.id);
		for (size_t m = 0; call && m < SS_CALL_MEMORY && call->memory[m].arg;
		     m++) {
			int arg = call->memory[m].arg - 1;
			add_argument(b, facts, thread->call.args[arg],
				     ss_call_memory_size(&call->memory[m], &thread->call),
				     &left, &thread->memory[arg]);
		}
	}
	facts->pid = b->capture->process.pid;
	b->capture->facts = take_ptr(facts);
	return true;
}

/* A pass through a compressed file ----------------------------------------- */

static bool want_thread(const struct builder *b, const struct ss_capture_thread *thread)
{
	const struct ss_syscall *syscall = &thread->syscall;
	struct ss_stack_copy stack = plan_stack(b, thread);
	struct ss_lock_copy lock = plan_lock(b, syscall);
	const struct ss_call *call = syscall->number < 0 ? NULL :
							   ss_call_find(syscall->id);
	bool ok = ss_core_file_want(b->core, stack.address, stack.size);

	if (b->options.no_waits)
		return ok;
	ok = ok && ss_core_file_want(b->core, lock.address, lock.size);
	for (size_t m = 0; ok && call && m < SS_CALL_MEMORY && call->memory[m].arg; m++)
		ok = ss_core_file_want(b->core, syscall->args[call->memory[m].arg - 1],
				       ss_call_memory_size(&call->memory[m], syscall));
	return ok;
}

/* Reads what is needed of modules and threads in the order of the file. */
static bool fetch_memory(const struct builder *b)
{
	bool ok = true;

	for (size_t i = 0; ok && i < b->capture->modules.count; i++) {
		const struct ss_module_impl *module = b->capture->modules.items[i];
		ok = ss_core_file_want(b->core, module->pub.base, header_size(module));
	}
	for (size_t i = 0; ok && i < b->core->threads.count; i++) {
		const struct ss_capture_thread *thread = &b->core->threads.items[i];
		ok = !is_selected(b, thread) || want_thread(b, thread);
	}
	bool heap = can_keep_heap(b->core);
	for (size_t i = 0; ok && heap && i < b->core->segments.count; i++) {
		const struct ss_core_segment *segment = &b->core->segments.items[i];
		ok = !(segment->prot & PROT_WRITE) ||
		     ss_core_file_want(b->core, segment->start, segment->present);
	}
	return ok && ss_core_file_fetch(b->core, fetch_max(b));
}

/* The whole ---------------------------------------------------------------- */

static bool set_process(struct builder *b)
{
	const struct ss_core_file *core = b->core;
	struct ss_process *process = &b->capture->process;
	pid_t pid = core->pid ? core->pid : core->crash.tid;

	process->mode = SS_MODE_CORE;
	process->pid = process->inner_pid = pid;
	process->consistent = true;
	process->crash = core->crash;
	process->name =
		ss_intern_string(b->capture->strings, core->name ? core->name : "");
	for (size_t i = 0; i < core->mappings.count; i++) {
		const struct ss_core_mapping *mapping = &core->mappings.items[i];
		if (mapping->start <= core->program_headers &&
		    core->program_headers < mapping->end)
			process->executable =
				ss_intern_string(b->capture->strings, mapping->path);
	}
	return process->name != NULL;
}

static void set_options(struct builder *b, const struct ss_core_options *options)
{
	if (options)
		memcpy(&b->options, options, SS_MIN(options->size, sizeof(b->options)));
	if (!b->options.max_stack)
		b->options.max_stack = STACK_MAX;
	if (!b->options.max_total)
		b->options.max_total = TOTAL_MAX;
}

/* Memory that the capture reads from the file on demand. */
struct core_memory {
	struct ss_memory memory; /* first: see data/memory.h */
	struct ss_core_file *core;
};

static size_t read_whole(const struct ss_memory *memory, uint64_t address, void *bytes,
			 size_t size)
{
	const struct core_memory *self = (const struct core_memory *)memory;

	return ss_core_file_read(self->core, address, bytes, size);
}

static void free_whole(struct ss_memory *memory)
{
	struct core_memory *self = (struct core_memory *)memory;

	ss_core_file_free(self->core);
	free(self);
}

static const char *find_problem(const struct ss_core_file *core)
{
	if (core->truncated)
		return "the core file is truncated";
	return ss_core_source_is_compressed(core->source) && !can_keep_heap(core) ?
		       "the core file is compressed and large: decompress it first" :
		       NULL;
}

static bool keep_core(struct ss_capture *capture, struct ss_core_file **core)
{
	struct core_memory *whole = calloc(1, sizeof(*whole));

	if (!whole)
		return false;
	*whole = (struct core_memory){ .memory.read = read_whole,
				       .core = take_ptr(*core) };
	capture->whole = &whole->memory;
	capture->free_whole = free_whole;
	return true;
}

struct plan_source {
	struct ss_gather_source source; /* must be first: callbacks cast it back */
	const struct builder *builder;
};

static void read_piece(const struct builder *b, struct ss_piece *piece)
{
	size_t n;

	piece->done =
		ss_core_file_read(b->core, piece->address, piece->bytes, piece->size);
	while (piece->done < piece->size && b->options.read &&
	       (n = b->options.read(b->options.read_data, piece->address + piece->done,
				    (uint8_t *)piece->bytes + piece->done,
				    piece->size - piece->done)) > 0)
		piece->done += n;
}

static void read_for_plan(const struct ss_gather_source *source, struct ss_piece *pieces,
			  size_t count)
{
	const struct plan_source *self = (const struct plan_source *)source;

	for (size_t i = 0; i < count; i++)
		read_piece(self->builder, &pieces[i]);
}

/* Copies what the caller plans. */
static struct ss_error *gather(const struct builder *b)
{
	const struct plan_source source = { .source.read = read_for_plan, .builder = b };
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = NULL;
	struct ss_gather_plan plan;

	if (!b->options.planner ||
	    !b->options.planner(b->options.planner_data, b->capture, &plan))
		return NULL;
	struct ss_error *error = ss_gather_new(&plan, false, &gather);
	if (error)
		return error;
	ss_gather_run(gather, &source.source);
	b->capture->gathered.late = true;
	return ss_gather_give(gather, &b->capture->gathered);
}

struct ss_error *ss_capture_read_core(int fd, struct ss_session *session,
				      const struct ss_core_options *options,
				      struct ss_capture **ret)
{
	_cleanup_(ss_core_file_cleanup) struct ss_core_file *core = NULL;
	_cleanup_(ss_capture_cleanup) struct ss_capture *capture = ss_capture_new();
	struct builder b = { .session = session, .capture = capture };
	struct ss_error *error = ss_core_file_open(fd, &core);

	if (error)
		return error;
	if (!capture)
		return ss_error_no_memory();
	b.core = core;
	capture->arch = core->arch;
	set_options(&b, options);
	if (!set_process(&b) || !add_areas(&b) || !fetch_memory(&b) ||
	    !open_modules(&b) || !add_threads(&b) ||
	    (!b.options.no_waits && !add_facts(&b)) || !keep_core(capture, &core))
		return ss_error_no_memory();
	capture->process.core_truncated = b.core->truncated;
	capture->whole_problem = find_problem(b.core);
	error = gather(&b);
	if (error)
		return error;
	*ret = take_ptr(capture);
	return NULL;
}
