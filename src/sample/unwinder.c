#include "sample/unwinder.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/intern.h"
#include "data/recording_format.h"
#include "sandbox/sandbox.h"

enum {
	TIMEOUT_MS = 5000,   /* time limit of a request; less than that of the watchdog */
	FAILURES_MAX = 16,   /* successive failures after which it gives up */
	FILES_MAX = 1 << 16, /* limit of the child's open files */
	TEXT_MAX = 2048,     /* adds no sentence to a longer text */
	HOW_MAX = 128,
	/* What is read for the child in one request, at most; a check is a read. */
	READS_MAX = 1 << 14,
	READ_BYTES = 64 << 20,
};

/* Limits on the memory of the child: unwind tables, and images of modules without a
   file. */
static const uint64_t memory_most = (uint64_t)2 << 30;
static const uint64_t memory_images = (uint64_t)512 << 20;

static const char gave_up_reason[] = "the unwinding process failed too often";

static uint64_t memory_limit(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	long page_size = sysconf(_SC_PAGESIZE);
	uint64_t most = memory_most;

	if (pages > 0 && page_size > 0)
		most = SS_MIN(most, (uint64_t)pages * (uint64_t)page_size / 4);
	return memory_images + most;
}

struct ss_error *ss_unwinder_init(struct ss_unwinder *unwinder,
				  const struct ss_target *target,
				  const struct ss_arena *arena, unsigned max_frames,
				  bool (*meanwhile)(void *owner), void *owner)
{
	*unwinder = (struct ss_unwinder){ .max_frames = max_frames };
	unwinder->server = ss_unwind_server_new(arena);
	if (!unwinder->server)
		return ss_error_no_memory();
	struct ss_worker_options options = {
		.serve = ss_unwind_server_serve,
		.data = unwinder->server,
		.timeout_ms = TIMEOUT_MS,
		.meanwhile = meanwhile,
		.owner = owner,
		.confinement = { .memory = memory_limit(), .receives = FILES_MAX },
	};
	struct ss_error *unknown = ss_target_owner(target, &options.confinement.uid,
						   &options.confinement.gid);
	options.confinement.change_ids = !unknown;
	ss_error_free(unknown);
	return ss_worker_new(&options, &unwinder->worker);
}

void ss_unwinder_deinit(struct ss_unwinder *unwinder)
{
	ss_worker_free(unwinder->worker);
	ss_unwind_server_free(unwinder->server);
	for (size_t i = 0; i < unwinder->modules.count; i++) {
		ss_module_unref(unwinder->modules.items[i].module);
		free(unwinder->modules.items[i].problem);
	}
	ss_vector_free(&unwinder->modules);
	ss_vector_free(&unwinder->free_modules);
	ss_vector_free(&unwinder->spaces);
	ss_vector_free(&unwinder->files);
	ss_vector_free(&unwinder->pending);
	ss_unwound_deinit(&unwinder->unwound);
	ss_buffer_deinit(&unwinder->request);
	ss_buffer_deinit(&unwinder->losses.text);
	*unwinder = (struct ss_unwinder){};
}

bool ss_unwinder_gave_up(const struct ss_unwinder *unwinder)
{
	return unwinder->failures >= FAILURES_MAX;
}

bool ss_unwinder_is_down(const struct ss_unwinder *unwinder)
{
	return !ss_worker_is_running(unwinder->worker) && !ss_unwinder_gave_up(unwinder);
}

struct ss_error *ss_unwinder_start(struct ss_unwinder *unwinder)
{
	if (!ss_unwinder_is_down(unwinder))
		return NULL;
	unwinder->child++;
	struct ss_error *error = ss_worker_start(unwinder->worker);
	unwinder->failures += error != NULL;
	return error;
}

bool ss_unwinder_add_space(struct ss_unwinder *unwinder, struct ss_unwinder_space *space)
{
	uint32_t id = 0;

	*space = (struct ss_unwinder_space){};
	while (id < unwinder->spaces.count && unwinder->spaces.items[id])
		id++;
	bool *slot = id < unwinder->spaces.count ? &unwinder->spaces.items[id] :
						   ss_vector_push(&unwinder->spaces);
	if (!slot)
		return false;
	*slot = true;
	space->id = id;
	return true;
}

/* Adds a record to the next request. */
static void put_record(struct ss_unwinder *unwinder, enum wire_kind kind, uint32_t id)
{
	const struct wire_record record = { .kind = kind, .id = id };

	ss_buffer_add(&unwinder->request, &record, sizeof(record));
}

static bool knows(const struct ss_unwinder *unwinder, uint32_t sent)
{
	return sent && sent == unwinder->child && ss_worker_is_running(unwinder->worker);
}

void ss_unwinder_remove_space(struct ss_unwinder *unwinder,
			      struct ss_unwinder_space *space)
{
	if (knows(unwinder, space->sent))
		put_record(unwinder, WIRE_FORGET_SPACE, space->id);
	unwinder->spaces.items[space->id] = false;
	ss_vector_free(&space->modules);
}

uint32_t ss_unwinder_add_module(struct ss_unwinder *unwinder,
				struct ss_module_impl *module)
{
	struct ss_unwinder_module *slot = NULL;

	if (unwinder->free_modules.count > 0)
		slot = &unwinder->modules
				.items[unwinder->free_modules
					       .items[--unwinder->free_modules.count]];
	/* Makes room to free the id later. */
	else if (ss_vector_reserve(&unwinder->free_modules, unwinder->modules.count + 1))
		slot = ss_vector_push(&unwinder->modules);
	if (!slot)
		return SS_ID_NONE;
	*slot = (struct ss_unwinder_module){ .module = ss_module_ref(module) };
	return (uint32_t)(slot - unwinder->modules.items);
}

void ss_unwinder_remove_module(struct ss_unwinder *unwinder, uint32_t id)
{
	struct ss_unwinder_module *module = &unwinder->modules.items[id];

	if (knows(unwinder, module->sent))
		put_record(unwinder, WIRE_FORGET_MODULE, id);
	ss_module_unref(module->module);
	free(module->problem);
	*module = (struct ss_unwinder_module){};
	unwinder->free_modules.items[unwinder->free_modules.count++] = id;
}

/* Requests -------------------------------------------------------------- */

static bool put_module(struct ss_unwinder *unwinder, uint32_t id)
{
	struct ss_buffer *out = &unwinder->request;
	const struct ss_unwinder_module *known = &unwinder->modules.items[id];
	struct wire_module wire;
	struct ss_module_impl *module = &wire.module;

	memset(&wire, 0, sizeof(wire)); /* no padding is left uninitialized */
	memcpy(module, known->module, sizeof(*module));
	wire.path_size = (uint32_t)strlen(module->pub.path);
	wire.skipped = known->failures > 0;
	/* After one failure its unwind information is skipped, after two its file. */
	if (known->failures > 1) {
		module->fd = -1;
		module->bytes = module->header = NULL;
	}
	put_record(unwinder, WIRE_MODULE, id);
	ss_buffer_add(out, &wire, sizeof(wire));
	ss_buffer_add(out, module->pub.path, wire.path_size);
	ss_buffer_add(out, module->mappings,
		      module->mapping_count * sizeof(*module->mappings));
	if (module->header)
		ss_buffer_add(out, module->header, module->header_size);
	if (module->bytes)
		ss_buffer_add(out, module->bytes, module->size);
	uint32_t *slot = ss_vector_push(&unwinder->pending);
	int *file = module->fd >= 0 ? ss_vector_push(&unwinder->files) : NULL;
	if (!slot || (module->fd >= 0 && !file))
		return false;
	*slot = id;
	if (file)
		*file = module->fd;
	return !out->failed;
}

/* Writes the areas and their names. */
static bool put_areas(struct ss_unwinder *unwinder, const struct ss_capture *capture,
		      size_t count_at)
{
	_cleanup_buffer_ struct ss_buffer names = {};
	const char *last = NULL;
	size_t offset = 0;

	for (size_t i = 0; i < capture->areas.count; i++) {
		struct ss_area area = capture->areas.items[i];
		if (area.name != last) {
			last = area.name;
			offset = names.size;
			ss_buffer_add(&names, last, strlen(last) + 1);
		}
		area.name = (const char *)(uintptr_t)offset;
		ss_buffer_add(&unwinder->request, &area, sizeof(area));
	}
	uint64_t size = names.size;
	ss_buffer_add(&unwinder->request, names.bytes ? names.bytes : "", size);
	if (names.failed || unwinder->request.failed)
		return false;
	memcpy(unwinder->request.bytes + count_at, &size, sizeof(size));
	return true;
}

static bool put_space(struct ss_unwinder *unwinder, const struct ss_unwinder_space *space,
		      const struct ss_capture *capture)
{
	const char *executable = capture->process.executable;
	const struct wire_space wire = {
		.module_count = (uint32_t)space->modules.count,
		.area_count = (uint32_t)capture->areas.count,
		.executable_size = executable ? strlen(executable) : 0,
		.elf_machine = capture->arch->elf_machine,
		.elf_class = capture->arch->elf_class,
	};

	put_record(unwinder, WIRE_SPACE, space->id);
	size_t at = unwinder->request.size + offsetof(struct wire_space, name_bytes);
	ss_buffer_add(&unwinder->request, &wire, sizeof(wire));
	ss_buffer_add(&unwinder->request, space->modules.items,
		      space->modules.count * sizeof(*space->modules.items));
	if (executable)
		ss_buffer_add(&unwinder->request, executable, wire.executable_size);
	return put_areas(unwinder, capture, at);
}

/* Writes what a turn has copied. */
static void put_turn(struct ss_buffer *out, const struct ss_gather_node *nodes,
		     size_t count)
{
	ss_buffer_add(out, &count, sizeof(count));
	for (size_t i = 0; i < count; i++) {
		const struct ss_memory_block block = { .address = nodes[i].address,
						       .size = nodes[i].size };
		ss_buffer_add(out, &block, sizeof(block));
	}
	for (size_t i = 0; i < count; i++) {
		if (nodes[i].size)
			ss_buffer_add(out, nodes[i].bytes, nodes[i].size);
	}
}

static bool put_threads(struct ss_unwinder *unwinder,
			const struct ss_unwinder_space *space,
			const struct ss_capture *capture,
			const struct ss_unwinder_runtimes *runtimes)
{
	struct wire_unwind wire;

	memset(&wire, 0, sizeof(wire)); /* no padding is left uninitialized */
	wire.max_frames = unwinder->max_frames;
	wire.thread_count = (uint32_t)capture->threads.count;
	wire.turn_count = runtimes ? (uint32_t)runtimes->gathers->used : 0;
	wire.runtimes = runtimes != NULL;

	put_record(unwinder, WIRE_UNWIND, space->id);
	ss_buffer_add(&unwinder->request, &wire, sizeof(wire));
	ss_buffer_add(&unwinder->request, capture->threads.items,
		      capture->threads.count * sizeof(*capture->threads.items));
	for (size_t i = 0; i < wire.turn_count; i++) {
		const struct ss_gathers *gathers = runtimes->gathers;
		const size_t first = gathers->first[i];
		put_turn(&unwinder->request, gathers->gather->nodes + first,
			 gathers->first[i + 1] - first);
	}
	return !unwinder->request.failed;
}

static bool list_modules(struct ss_unwinder_space *space,
			 const struct ss_capture *capture,
			 const struct ss_module_set *set)
{
	space->modules.count = 0;
	for (size_t i = 0; i < capture->modules.count; i++) {
		const struct ss_module_entry *found =
			ss_module_set_find(set, capture->modules.items[i]);
		uint32_t *slot = ss_vector_push(&space->modules);
		if (!slot)
			return false;
		*slot = found ? found->id : SS_ID_NONE;
	}
	return true;
}

/* Writes what the child does not have. */
static bool put_news(struct ss_unwinder *unwinder, struct ss_unwinder_space *space,
		     const struct ss_address_space *from, const struct ss_module_set *set)
{
	bool known = knows(unwinder, space->sent);

	if (known && space->sent_version == from->version)
		return true;
	if (!list_modules(space, from->capture, set))
		return false;
	for (size_t i = 0; i < space->modules.count; i++) {
		uint32_t id = space->modules.items[i];
		if (id == SS_ID_NONE)
			return false;
		if (!knows(unwinder, unwinder->modules.items[id].sent) &&
		    !put_module(unwinder, id))
			return false;
	}
	return put_space(unwinder, space, from->capture);
}

/* Answers --------------------------------------------------------------- */

static void describe(struct ss_unwinder_module *module, uint64_t bias, const uint8_t *id,
		     size_t id_size)
{
	module->described = true;
	module->bias = bias;
	for (size_t i = 0; i < id_size; i++) /* has room */
		(void)sprintf(module->build_id + 2 * i, "%02x", id[i]);
	module->build_id[2 * id_size] = '\0';
}

static void identify_file(struct ss_unwinder_module *module,
			  const struct ss_unwound_module *found)
{
	ss_file_hash_text(found->hash, module->file_hash);
	module->file = (struct ss_file_identity){
		.size = found->file_size,
		.modified_ns = found->modified_ns,
		.inode = found->file_inode,
	};
}

/* Whether a text is in the answer, and not too long. */
static bool is_text(const struct ss_unwound *unwound, uint32_t offset, size_t max)
{
	return offset == 0 || (offset < unwound->texts.count &&
			       strnlen(unwound->texts.items + offset, max + 1) <= max);
}

static bool read_modules(struct ss_unwinder *unwinder)
{
	const struct ss_unwound *unwound = &unwinder->unwound;

	if (unwound->modules.count != unwinder->pending.count)
		return false;
	for (size_t i = 0; i < unwound->modules.count; i++) {
		const struct ss_unwound_module *found = &unwound->modules.items[i];
		if (found->id != unwinder->pending.items[i] ||
		    found->build_id_size > sizeof(found->build_id) ||
		    !is_text(unwound, found->problem, WIRE_PROBLEM_MAX))
			return false;
		/* A module that is defined in the recording does not change. */
		struct ss_unwinder_module *module = &unwinder->modules.items[found->id];
		if (module->described)
			continue;
		describe(module, found->bias, found->build_id, found->build_id_size);
		if (found->has_hash)
			identify_file(module, found);
		if (found->problem)
			module->problem =
				strdup(ss_unwound_text(unwound, found->problem));
	}
	return true;
}

/* A return address may equal the end of its module. */
static bool is_frame(const struct ss_unwound_frame *frame,
		     const struct ss_capture *capture, size_t calls)
{
	if (frame->flags == SS_FROM_RUNTIME << SS_FRAME_SOURCE_SHIFT)
		return frame->module == -1 && frame->pc < calls;
	if (frame->flags >= SS_FRAME_FLAGS_END ||
	    ss_frame_flags_source(frame->flags) > SS_FROM_INLINE || frame->module < -1 ||
	    frame->module >= (int64_t)capture->modules.count)
		return false;
	if (frame->module < 0)
		return true;
	const struct ss_module *module = &capture->modules.items[frame->module]->pub;
	return frame->pc - module->base <= module->size;
}

static bool is_stack(const struct ss_unwound *unwound,
		     const struct ss_unwound_stack *stack)
{
	return stack->end <= SS_END_GUESSED && stack->count <= SS_RECORD_FRAMES_MAX &&
	       stack->first <= unwound->frames.count &&
	       stack->count <= unwound->frames.count - stack->first;
}

static bool is_thread(const struct ss_unwound *unwound,
		      const struct ss_unwound_thread *thread)
{
	return thread->stack < unwound->stacks.count && thread->lacks_calls <= 1 &&
	       is_text(unwound, thread->reason, WIRE_REASON_MAX) &&
	       is_text(unwound, thread->function, WIRE_FUNCTION_MAX) &&
	       is_text(unwound, thread->name, WIRE_NAME_MAX);
}

static bool is_call(const struct ss_unwound *unwound, const struct ss_unwound_call *call)
{
	return call->kind != SS_FRAME_NATIVE && call->kind < SS_FORMAT_KINDS_MAX &&
	       call->line != UINT32_MAX && call->function &&
	       is_text(unwound, call->function, WIRE_TEXT_MAX) &&
	       *ss_unwound_text(unwound, call->function) &&
	       is_text(unwound, call->file, WIRE_TEXT_MAX);
}

/* Whether the tables of an answer fit each other and the capture. Stacks share no frames: the
   work on them is bounded by the size of the answer. */
static bool is_consistent(const struct ss_unwound *unwound,
			  const struct ss_capture *capture)
{
	size_t frames = 0;
	bool ok = unwound->threads.count == capture->threads.count &&
		  unwound->stacks.count <= capture->threads.count &&
		  unwound->plans.count <= 1;

	for (size_t i = 0; ok && i < unwound->stacks.count; i++) {
		frames += unwound->stacks.items[i].count;
		ok = is_stack(unwound, &unwound->stacks.items[i]) &&
		     frames <= unwound->frames.count;
	}
	for (size_t i = 0; ok && i < unwound->frames.count; i++)
		ok = is_frame(&unwound->frames.items[i], capture, unwound->calls.count);
	for (size_t i = 0; ok && i < unwound->threads.count; i++)
		ok = is_thread(unwound, &unwound->threads.items[i]);
	for (size_t i = 0; ok && i < unwound->calls.count; i++)
		ok = is_call(unwound, &unwound->calls.items[i]);
	return ok;
}

/* capture NULL: only modules are described. */
static bool read_answer(struct ss_unwinder *unwinder, struct ss_cursor *cursor,
			const struct ss_capture *capture)
{
	struct ss_unwound *unwound = &unwinder->unwound;

	return ss_unwound_decode(unwound, cursor) &&
	       (unwound->texts.count == 0 ||
		unwound->texts.items[unwound->texts.count - 1] == '\0') &&
	       read_modules(unwinder) && (!capture || is_consistent(unwound, capture));
}

/* Failures -------------------------------------------------------------- */

/* The module that the child was reading, or NULL. */
static struct ss_unwinder_module *find_cause(struct ss_unwinder *unwinder,
					     const struct ss_unwinder_space *space,
					     int32_t module_at)
{
	uint32_t id = SS_ID_NONE;

	if (module_at <= WIRE_MODULE_AT)
		id = (uint32_t)(WIRE_MODULE_AT - module_at);
	else if (module_at >= 0 && (size_t)module_at < space->modules.count)
		id = space->modules.items[module_at];
	return id < unwinder->modules.count && unwinder->modules.items[id].module ?
		       &unwinder->modules.items[id] :
		       NULL;
}

/* Adds a sentence, unless it repeats the last one or the text is long. */
static void add_text(struct ss_unwinder_losses *losses, const char *text)
{
	if (losses->text.size >= TEXT_MAX || strcmp(losses->last, text) == 0)
		return;
	(void)snprintf(losses->last, sizeof(losses->last), "%s", text); /* may be cut */
	ss_buffer_printf(&losses->text, "%s%s", losses->text.size ? "; " : "", text);
}

static void describe_failure(struct ss_unwinder *unwinder,
			     const struct ss_sandbox_failure *failure,
			     const struct ss_unwinder_module *cause)
{
	char how[HOW_MAX];
	char text[SS_UNWINDER_SENTENCE];

	ss_sandbox_failure_describe(failure, how, sizeof(how));
	(void)snprintf(text, sizeof(text), "the child process %s%s%.128s%s", how,
		       cause ? " of " : "",
		       cause ? ss_path_base(cause->module->pub.path) : "",
		       !cause ? "" :
		       cause->failures == 1 ?
				", whose unwind information is skipped from then on" :
				", whose file is skipped from then on");
	add_text(&unwinder->losses, text);
	if (ss_unwinder_gave_up(unwinder))
		add_text(&unwinder->losses, "from then on only the innermost frame of "
					    "each thread is recorded");
}

/* Drops the request: everything must be sent again to another child. */
static void note_failure(struct ss_unwinder *unwinder,
			 const struct ss_unwinder_space *space,
			 const struct ss_sandbox_failure *failure)
{
	struct ss_unwinder_module *cause = find_cause(unwinder, space, failure->module);

	ss_buffer_clear(&unwinder->request);
	unwinder->losses.ticks++;
	if (failure->cause == SS_SANDBOX_NO_CHILD)
		return;
	unwinder->failures++;
	if (cause)
		cause->failures++;
	describe_failure(unwinder, failure, cause);
}

static void mark_sent(struct ss_unwinder *unwinder, struct ss_unwinder_space *space,
		      uint64_t version)
{
	for (size_t i = 0; i < unwinder->pending.count; i++)
		unwinder->modules.items[unwinder->pending.items[i]].sent =
			unwinder->child;
	space->sent = unwinder->child;
	space->sent_version = version;
}

static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct ss_unwinder_runtimes *runtimes = data;
	struct ss_piece piece = { .address = address, .bytes = bytes, .size = size };

	ss_process_memory_read_present(runtimes->memory, &piece, 1);
	return piece.done;
}

static void read_ranges(void *data, struct ss_memory_range *ranges, size_t count)
{
	const struct ss_unwinder_runtimes *runtimes = data;
	struct ss_piece pieces[SS_MEMORY_RANGES_MAX];

	for (size_t i = 0; i < count; i++)
		pieces[i] = (struct ss_piece){ .address = ranges[i].address,
					       .bytes = ranges[i].bytes,
					       .size = ranges[i].size };
	ss_process_memory_read_present(runtimes->memory, pieces, count);
	for (size_t i = 0; i < count; i++)
		ranges[i].done = pieces[i].done;
}

static bool check_thread(void *data, pid_t tid)
{
	const struct ss_unwinder_runtimes *runtimes = data;

	const struct ss_sampled_thread *thread =
		runtimes->threads ? ss_thread_list_find(runtimes->threads, tid) : NULL;

	return thread && ss_thread_list_is_unchanged(runtimes->threads, thread);
}

static enum ss_unwinder_result request_stacks(struct ss_unwinder *unwinder,
					      struct ss_unwinder_space *space,
					      uint64_t version,
					      const struct ss_capture *capture,
					      const struct ss_unwinder_runtimes *runtimes)
{
	const struct ss_worker_memory memory = {
		.read = read_memory,
		.read_ranges = read_ranges,
		.check = check_thread,
		.data = ss_drop_const(runtimes),
		.max_reads = READS_MAX,
		.max_bytes = READ_BYTES,
	};
	const struct ss_worker_request request = {
		.bytes = (const uint8_t *)unwinder->request.bytes,
		.size = unwinder->request.size,
		.files = unwinder->files.items,
		.file_count = unwinder->files.count,
	};
	struct ss_sandbox_failure failure;
	struct ss_cursor cursor = {};
	const uint8_t *answer;
	size_t size;

	bool ok = ss_worker_call(unwinder->worker, &request, runtimes ? &memory : NULL,
				 &answer, &size, &failure);
	if (ok) {
		cursor = (struct ss_cursor){ .at = answer, .end = answer + size };
		ok = read_answer(unwinder, &cursor, capture);
		if (unwinder->unwound.no_memory)
			return SS_UNWINDER_NO_MEMORY;
		if (!ok)
			ss_worker_reject(unwinder->worker, &failure);
	}
	if (!ok) {
		note_failure(unwinder, space, &failure);
		return SS_UNWINDER_FAILED;
	}
	unwinder->failures = 0;
	ss_buffer_clear(&unwinder->request);
	mark_sent(unwinder, space, version);
	return SS_UNWINDER_OK;
}

/* Without a child --------------------------------------------------------- */

static void describe_unread(struct ss_unwinder_module *module)
{
	const struct ss_module_impl *impl = module->module;

	if (!module->described)
		describe(module, ss_module_guess_bias(impl, false), impl->build_id,
			 impl->build_id_size);
}

static enum ss_unwinder_result sync_alone(struct ss_unwinder *unwinder,
					  struct ss_unwinder_space *space,
					  const struct ss_address_space *from,
					  const struct ss_module_set *set)
{
	if (!list_modules(space, from->capture, set))
		return SS_UNWINDER_NO_MEMORY;
	for (size_t i = 0; i < space->modules.count; i++)
		describe_unread(&unwinder->modules.items[space->modules.items[i]]);
	return SS_UNWINDER_OK;
}

/* Makes stacks of one frame. */
static bool place_alone(struct ss_unwound *unwound, const struct ss_capture *capture)
{
	size_t count = capture->threads.count;

	ss_unwound_clear(unwound);
	const uint32_t reason =
		ss_unwound_add_text(unwound, gave_up_reason, sizeof(gave_up_reason));
	if (unwound->no_memory || !ss_vector_reserve(&unwound->stacks, count) ||
	    !ss_vector_reserve(&unwound->threads, count) ||
	    !ss_vector_reserve(&unwound->frames, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		uint64_t pc = ss_regs_pc(capture->arch, &thread->regs);
		const struct ss_area *area = ss_capture_find_area(capture, pc);
		bool known = thread->regs.valid != 0;
		unwound->frames.items[i] =
			(struct ss_unwound_frame){ .pc = pc,
						   .module = area ? area->module : -1 };
		unwound->stacks.items[i] = (struct ss_unwound_stack){
			.first = (uint32_t)i,
			.count = known,
			.end = known ? SS_END_FRAMES : thread->end,
		};
		unwound->threads.items[i] =
			(struct ss_unwound_thread){ .stack = (uint32_t)i,
						    .reason = known ? reason : 0 };
	}
	unwound->stacks.count = unwound->threads.count = unwound->frames.count = count;
	return true;
}

enum ss_unwinder_result ss_unwinder_sync(struct ss_unwinder *unwinder,
					 struct ss_unwinder_space *space,
					 const struct ss_address_space *from,
					 const struct ss_module_set *set)
{
	if (ss_unwinder_gave_up(unwinder))
		return sync_alone(unwinder, space, from, set);
	size_t before = unwinder->request.size;
	unwinder->pending.count = unwinder->files.count = 0;
	if (!put_news(unwinder, space, from, set))
		return SS_UNWINDER_NO_MEMORY;
	if (unwinder->pending.count > 0)
		return request_stacks(unwinder, space, from->version, NULL, NULL);
	ss_buffer_truncate(&unwinder->request, before); /* can wait for a capture */
	return SS_UNWINDER_OK;
}

enum ss_unwinder_result ss_unwinder_unwind(struct ss_unwinder *unwinder,
					   struct ss_unwinder_space *space,
					   const struct ss_address_space *from,
					   const struct ss_module_set *set,
					   const struct ss_capture *capture,
					   const struct ss_unwinder_runtimes *runtimes,
					   const struct ss_unwound **ret)
{
	*ret = &unwinder->unwound;
	if (ss_unwinder_gave_up(unwinder)) {
		enum ss_unwinder_result result = sync_alone(unwinder, space, from, set);
		return result == SS_UNWINDER_OK &&
				       !place_alone(&unwinder->unwound, capture) ?
			       SS_UNWINDER_NO_MEMORY :
			       result;
	}
	unwinder->pending.count = unwinder->files.count = 0;
	if (!put_news(unwinder, space, from, set) ||
	    !put_threads(unwinder, space, capture, runtimes))
		return SS_UNWINDER_NO_MEMORY;
	return request_stacks(unwinder, space, from->version, capture, runtimes);
}
