#include "unwind/walk.h"

#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/search.h"
#include "data/pipeline.h"

/* Structs have no padding: it would be written, too. Strings are numbers, 0: NULL. */
struct header {
	uint32_t strings; /* each a uint32_t and so many bytes; they follow the header */
	uint32_t runtimes;
	uint32_t locks;
	uint32_t stacks;
	uint32_t threads;
	uint32_t tasks;
	uint64_t tasks_changed;
	uint64_t tasks_unread;
	uint32_t tasks_problem;
	uint32_t tasks_known;
};

struct saved_runtime {
	uint32_t kind;
	uint32_t version;
	uint32_t problem;
	uint32_t no_signal_code;
};

struct saved_lock {
	uint64_t address;
	uint64_t start;
	uint64_t end;
	uint32_t type;
	int32_t owner;
	uint32_t cyclic;
	int32_t waiter;
	int32_t process;
	uint32_t kind;
};

struct saved_stack {
	uint32_t end;
	uint32_t count; /* of frames, which follow */
};

enum { INLINED = 1, SIGNAL_FRAME = 2, REPLACED = 4 };

struct saved_frame {
	uint64_t pc;
	uint64_t offset;
	uint64_t symbol_offset;
	uint64_t lookup_offset;
	uint64_t area_offset;
	int32_t module;
	uint32_t symbol;
	uint32_t file;
	uint32_t line;
	uint32_t area;
	uint32_t omitted;
	uint32_t flags;
	uint16_t source;
	uint16_t kind;
};

struct saved_thread {
	uint64_t missing;
	int32_t tid;
	uint32_t end;
	uint32_t reason;
	uint32_t native_reason;
	uint32_t stack;
	uint32_t references; /* which follow */
	uint32_t name;
	uint64_t runtime_id;
	uint32_t priority;
	uint32_t daemon;
};

struct saved_reference {
	uint64_t futex;
	uint64_t call_offset;
	uint32_t frame;
	int32_t module;
	uint32_t call_file;
	uint32_t call_line;
	uint32_t in_code;
	uint16_t exact;
	uint16_t calls;
};

struct saved_task {
	uint64_t id;
	uint32_t name;
	uint32_t status;
	uint32_t wait_reason;
	uint32_t awaits_all;
	int32_t tid;
	uint32_t stack;
	uint32_t awaited; /* so many uint32_t follow */
	uint32_t object;
	uint32_t endless;
	uint32_t loop_empty;
	uint32_t greenlet;
};

/* Writing ------------------------------------------------------------------ */

struct writer {
	const struct ss_snapshot *snapshot;
	struct header header;
	struct ss_buffer strings;
	struct ss_buffer body;
	struct ss_idtable numbers; /* of strings, by address: they are interned */
	uint32_t *stacks;	   /* number of each stack; UINT32_MAX: not written */
	bool failed;
};

static void writer_deinit(struct writer *writer)
{
	ss_buffer_deinit(&writer->strings);
	ss_buffer_deinit(&writer->body);
	ss_idtable_deinit(&writer->numbers);
	free(writer->stacks);
}

static uint32_t number_of(struct writer *writer, const char *text)
{
	const uint64_t address = (uintptr_t)text;
	bool added = false;

	if (!text)
		return 0;
	const uint32_t id =
		ss_idtable_add(&writer->numbers, &address, sizeof(address), &added);
	if (id == SS_ID_NONE) {
		writer->failed = true;
		return 0;
	}
	if (added) {
		const uint32_t size = (uint32_t)strlen(text);
		ss_buffer_add(&writer->strings, &size, sizeof(size));
		ss_buffer_add(&writer->strings, text, size);
		writer->header.strings++;
	}
	return id + 1;
}

static void write_frame(struct writer *writer, const struct ss_frame *frame)
{
	const struct saved_frame saved = {
		.pc = frame->pc,
		.offset = frame->offset,
		.symbol_offset = frame->symbol_offset,
		.lookup_offset = frame->lookup_offset,
		.area_offset = frame->area_offset,
		.module = frame->module_index,
		.symbol = number_of(writer, frame->symbol),
		.file = number_of(writer, frame->file),
		.line = frame->line,
		.area = number_of(writer, frame->area),
		.omitted = frame->omitted,
		.flags = (uint32_t)((frame->inlined ? INLINED : 0) |
				    (frame->signal_frame ? SIGNAL_FRAME : 0) |
				    (frame->replaced ? REPLACED : 0)),
		.source = (uint16_t)frame->source,
		.kind = (uint16_t)frame->kind,
	};

	ss_buffer_add(&writer->body, &saved, sizeof(saved));
}

/* Writes a stack unless it was written. */
static void write_stack(struct writer *writer, uint32_t id)
{
	const struct ss_stack *stack = &writer->snapshot->stacks.items[id];
	const struct saved_stack saved = { .end = stack->end,
					   .count = (uint32_t)stack->count };

	if (writer->stacks[id] != UINT32_MAX)
		return;
	writer->stacks[id] = writer->header.stacks++;
	ss_buffer_add(&writer->body, &saved, sizeof(saved));
	for (size_t i = 0; i < stack->count; i++)
		write_frame(writer, &stack->frames[i]);
}

static void write_stacks(struct writer *writer)
{
	const struct ss_snapshot *snapshot = writer->snapshot;

	for (size_t i = 0; i < snapshot->stacks.count; i++)
		writer->stacks[i] = UINT32_MAX;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++)
		write_stack(writer, snapshot->tasks[SS_TASK_THREAD].items[i].stack_id);
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_ASYNCIO].count; i++)
		write_stack(writer, snapshot->tasks[SS_TASK_ASYNCIO].items[i].stack_id);
}

static void write_runtimes(struct writer *writer)
{
	const struct ss_snapshot *snapshot = writer->snapshot;

	for (size_t i = 0; i < snapshot->runtimes.count; i++) {
		const struct ss_runtime_info *info = &snapshot->runtimes.items[i];
		const struct saved_runtime saved = {
			.kind = info->kind,
			.version = number_of(writer, info->version),
			.problem = number_of(writer, info->problem),
			.no_signal_code = info->no_signal_code,
		};
		ss_buffer_add(&writer->body, &saved, sizeof(saved));
	}
	for (size_t i = 0; i < snapshot->runtime_locks.count; i++) {
		const struct ss_runtime_lock *lock = &snapshot->runtime_locks.items[i];
		const struct saved_lock saved = { .address = lock->address,
						  .start = lock->start,
						  .end = lock->end,
						  .type = lock->type,
						  .owner = lock->owner,
						  .cyclic = lock->cyclic,
						  .waiter = lock->waiter,
						  .process = lock->process,
						  .kind = lock->kind };
		ss_buffer_add(&writer->body, &saved, sizeof(saved));
	}
	writer->header.runtimes = (uint32_t)snapshot->runtimes.count;
	writer->header.locks = (uint32_t)snapshot->runtime_locks.count;
}

/* The references of a thread begin at an index; returns how many there are. */
static size_t count_references(const struct ss_snapshot *snapshot, size_t thread,
			       size_t first)
{
	size_t count = 0;

	while (first + count < snapshot->references.count &&
	       snapshot->references.items[first + count].thread == thread)
		count++;
	return count;
}

static void write_reference(struct writer *writer,
			    const struct ss_lock_reference *reference)
{
	const struct saved_reference saved = {
		.futex = reference->futex,
		.call_offset = reference->call_offset,
		.frame = reference->frame,
		.module = reference->module_index,
		.call_file = number_of(writer, reference->call_file),
		.call_line = reference->call_line,
		.in_code = reference->in_code,
		.exact = reference->exact,
		.calls = reference->calls,
	};

	ss_buffer_add(&writer->body, &saved, sizeof(saved));
}

static void write_threads(struct writer *writer)
{
	const struct ss_snapshot *snapshot = writer->snapshot;
	size_t at = 0;

	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		const size_t references = count_references(snapshot, i, at);
		const struct saved_thread saved = {
			.missing = thread->missing,
			.tid = thread->tid,
			.end = thread->end,
			.reason = number_of(writer, thread->reason),
			.native_reason = number_of(writer, thread->native_reason),
			.stack = writer->stacks[thread->stack_id],
			.references = (uint32_t)references,
			.name = number_of(writer, thread->name),
			.runtime_id = thread->runtime_id,
			.priority = thread->priority,
			.daemon = thread->daemon,
		};
		ss_buffer_add(&writer->body, &saved, sizeof(saved));
		for (size_t end = at + references; at < end; at++)
			write_reference(writer, &snapshot->references.items[at]);
	}
	writer->header.threads = (uint32_t)snapshot->tasks[SS_TASK_THREAD].count;
}

static void write_tasks(struct writer *writer)
{
	const struct ss_snapshot *snapshot = writer->snapshot;
	const struct ss_task_coverage *coverage = &snapshot->coverage[SS_TASK_ASYNCIO];

	for (size_t i = 0; i < snapshot->tasks[SS_TASK_ASYNCIO].count; i++) {
		const struct ss_task *task = &snapshot->tasks[SS_TASK_ASYNCIO].items[i];
		const struct saved_task saved = {
			.id = task->id,
			.name = number_of(writer, task->name),
			.status = task->status,
			.wait_reason = number_of(writer, task->wait_reason),
			.awaits_all = task->awaits_all,
			.tid = task->tid,
			.stack = writer->stacks[task->stack_id],
			.awaited = (uint32_t)task->awaited_count,
			.object = number_of(writer, task->object),
			.endless = task->endless,
			.loop_empty = task->loop_empty,
			.greenlet = task->greenlet,
		};
		ss_buffer_add(&writer->body, &saved, sizeof(saved));
		for (size_t k = 0; k < task->awaited_count; k++) {
			const uint32_t index = (uint32_t)task->awaited[k];
			ss_buffer_add(&writer->body, &index, sizeof(index));
		}
	}
	writer->header.tasks = (uint32_t)snapshot->tasks[SS_TASK_ASYNCIO].count;
	writer->header.tasks_changed = coverage->changed;
	writer->header.tasks_unread = coverage->unread;
	writer->header.tasks_known = coverage->known;
	writer->header.tasks_problem = number_of(writer, coverage->problem);
}

static struct ss_error *write_part(int fd, const void *bytes, size_t size)
{
	const int result = size ? ss_io_write_all(fd, bytes, size) : 0;

	return result < 0 ? ss_error_new_errno(-result, "cannot save stacks") : NULL;
}

struct ss_error *ss_snapshot_save_stacks(const struct ss_snapshot *snapshot, int fd)
{
	__attribute__((cleanup(writer_deinit))) struct writer writer = {
		.snapshot = snapshot,
		.stacks = calloc(snapshot->stacks.count + 1, sizeof(uint32_t)),
	};

	if (snapshot->runtimes.count == 0)
		return NULL;
	if (!writer.stacks)
		return ss_error_no_memory();
	write_runtimes(&writer);
	write_stacks(&writer);
	write_threads(&writer);
	write_tasks(&writer);
	if (writer.failed || writer.strings.failed || writer.body.failed)
		return ss_error_no_memory();
	struct ss_error *error = write_part(fd, &writer.header, sizeof(writer.header));
	if (!error)
		error = write_part(fd, writer.strings.bytes, writer.strings.size);
	if (!error)
		error = write_part(fd, writer.body.bytes, writer.body.size);
	return error;
}

/* Reading ------------------------------------------------------------------ */

struct ss_saved_stacks {
	struct ss_snapshot *snapshot;
	struct header header;
	struct ss_cursor at;
	const char **strings;
	uint32_t *stacks; /* stack_id of each */
	/* By frame that was saved: its index if some are dropped; of all stacks */
	SS_VECTOR(uint32_t) map;
	size_t *maps; /* of each stack: where its part of map begins */
	uint32_t *counts;
	SS_VECTOR(struct saved_thread) threads;
	SS_VECTOR(size_t) first; /* of each thread: its references */
	SS_VECTOR(struct saved_reference) references;
	bool no_memory; /* why something could not be read; otherwise it is not valid */
};

void ss_saved_stacks_free(struct ss_saved_stacks *saved)
{
	if (!saved)
		return;
	free(saved->strings);
	free(saved->stacks);
	free(saved->maps);
	free(saved->counts);
	ss_vector_free(&saved->map);
	ss_vector_free(&saved->threads);
	ss_vector_free(&saved->first);
	ss_vector_free(&saved->references);
	free(saved);
}

static bool fail_memory(struct ss_saved_stacks *saved)
{
	saved->no_memory = true;
	return false;
}

/* False: the bytes end. */
static bool take(struct ss_cursor *cursor, void *ret, size_t size)
{
	const uint8_t *bytes = ss_cursor_take(cursor, size);

	if (bytes)
		memcpy(ret, bytes, size);
	return bytes != NULL;
}

/* The string of a number. False: there is none of that number. */
static bool find_string(const struct ss_saved_stacks *saved, uint32_t number,
			const char **ret)
{
	if (number > saved->header.strings)
		return false;
	*ret = number ? saved->strings[number - 1] : NULL;
	return true;
}

/* An array of an element for each of count, which are not more than bytes. NULL: no memory,
   or there are. */
static void *allocate(struct ss_saved_stacks *saved, uint32_t count, size_t size)
{
	if (count > ss_cursor_left(&saved->at))
		return NULL;
	void *elements = calloc((size_t)count + 1, size);
	if (!elements)
		(void)fail_memory(saved);
	return elements;
}

static bool read_strings(struct ss_saved_stacks *saved)
{
	saved->strings = allocate(saved, saved->header.strings, sizeof(*saved->strings));
	for (uint32_t i = 0; saved->strings && i < saved->header.strings; i++) {
		uint32_t size;
		if (!take(&saved->at, &size, sizeof(size)))
			return false;
		const uint8_t *bytes = ss_cursor_take(&saved->at, size);
		if (!bytes || memchr(bytes, '\0', size))
			return false;
		saved->strings[i] = ss_intern_bytes(saved->snapshot->strings,
						    (const char *)bytes, size);
		if (!saved->strings[i])
			return fail_memory(saved);
	}
	return saved->strings != NULL;
}

static bool is_module(const struct ss_saved_stacks *saved, int32_t index)
{
	return index >= -1 && index < (int64_t)saved->snapshot->modules.count;
}

static bool convert_frame(const struct ss_saved_stacks *saved,
			  const struct saved_frame *from, struct ss_frame *ret)
{
	*ret = (struct ss_frame){
		.pc = from->pc,
		.module_index = from->module,
		.offset = from->offset,
		.symbol_offset = from->symbol_offset,
		.line = from->line,
		.inlined = from->flags & INLINED,
		.signal_frame = from->flags & SIGNAL_FRAME,
		.source = (enum ss_frame_source)from->source,
		.lookup_offset = from->lookup_offset,
		.area_offset = from->area_offset,
		.kind = (enum ss_frame_kind)from->kind,
		.replaced = from->flags & REPLACED,
		.omitted = from->omitted,
	};
	if (!is_module(saved, from->module) || from->source > SS_FROM_RUNTIME ||
	    from->kind > SS_FRAME_JIT ||
	    !find_string(saved, from->symbol, &ret->symbol) ||
	    !find_string(saved, from->file, &ret->file) ||
	    !find_string(saved, from->area, &ret->area))
		return false;
	if (from->module >= 0)
		ret->module = &saved->snapshot->modules.items[from->module]->pub;
	return ret->kind == SS_FRAME_NATIVE || (ret->symbol && from->module < 0);
}

/* Reads a stack; without native, without the frames that others replace. */
static bool read_stack(struct ss_saved_stacks *saved, uint32_t number, bool native)
{
	struct saved_stack stack;
	struct saved_frame from;
	size_t count = 0;

	if (!take(&saved->at, &stack, sizeof(stack)) || stack.end > SS_END_GUESSED ||
	    stack.count > ss_cursor_left(&saved->at) / sizeof(from))
		return false;
	_cleanup_free_ struct ss_frame *frames =
		calloc((size_t)stack.count + 1, sizeof(*frames));
	saved->maps[number] = saved->map.count;
	saved->counts[number] = stack.count;
	if (!frames || !ss_vector_reserve(&saved->map, saved->map.count + stack.count))
		return fail_memory(saved);
	for (uint32_t i = 0; i < stack.count; i++) {
		if (!take(&saved->at, &from, sizeof(from)) ||
		    !convert_frame(saved, &from, &frames[count]))
			return false;
		saved->map.items[saved->map.count++] = (uint32_t)count;
		count += native || !frames[count].replaced;
	}
	return ss_snapshot_add_stack(saved->snapshot, frames, count,
				     (enum ss_end)stack.end, &saved->stacks[number]) ||
	       fail_memory(saved);
}

static bool read_stacks(struct ss_saved_stacks *saved, bool native)
{
	const uint32_t count = saved->header.stacks;

	saved->stacks = allocate(saved, count, sizeof(*saved->stacks));
	saved->maps = allocate(saved, count, sizeof(*saved->maps));
	saved->counts = allocate(saved, count, sizeof(*saved->counts));
	if (!saved->stacks || !saved->maps || !saved->counts)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (!read_stack(saved, i, native))
			return false;
	}
	return true;
}

static bool read_reference(struct ss_saved_stacks *saved, uint32_t stack)
{
	struct saved_reference *slot = ss_vector_push(&saved->references);
	const char *file;

	if (!slot)
		return fail_memory(saved);
	if (!take(&saved->at, slot, sizeof(*slot)) ||
	    slot->frame >= saved->counts[stack] || !is_module(saved, slot->module) ||
	    (slot->in_code && slot->module < 0) ||
	    !find_string(saved, slot->call_file, &file))
		return false;
	slot->frame = saved->map.items[saved->maps[stack] + slot->frame];
	return true;
}

/* Threads are sorted by tid. */
static bool read_threads(struct ss_saved_stacks *saved)
{
	int32_t last = 0;
	const char *text;

	for (uint32_t i = 0; i < saved->header.threads; i++) {
		struct saved_thread *thread = ss_vector_push(&saved->threads);
		size_t *first = ss_vector_push(&saved->first);
		if (!thread || !first)
			return fail_memory(saved);
		if (!take(&saved->at, thread, sizeof(*thread)) || thread->tid <= last ||
		    thread->end > SS_END_GUESSED ||
		    thread->stack >= saved->header.stacks ||
		    !find_string(saved, thread->reason, &text) ||
		    !find_string(saved, thread->native_reason, &text) ||
		    !find_string(saved, thread->name, &text) || !text)
			return false;
		*first = saved->references.count;
		for (uint32_t k = 0; k < thread->references; k++) {
			if (!read_reference(saved, thread->stack))
				return false;
		}
		last = thread->tid;
	}
	return true;
}

static bool read_runtimes(struct ss_saved_stacks *saved)
{
	struct saved_runtime runtime;

	for (uint32_t i = 0; i < saved->header.runtimes; i++) {
		struct ss_runtime_info *slot = ss_vector_push(&saved->snapshot->runtimes);
		if (!slot)
			return fail_memory(saved);
		if (!take(&saved->at, &runtime, sizeof(runtime)) ||
		    runtime.kind > SS_FRAME_JIT || runtime.no_signal_code > 1 ||
		    !find_string(saved, runtime.version, &slot->version) ||
		    !find_string(saved, runtime.problem, &slot->problem))
			return false;
		slot->kind = (enum ss_frame_kind)runtime.kind;
		slot->no_signal_code = runtime.no_signal_code;
	}
	return true;
}

static bool read_locks(struct ss_saved_stacks *saved)
{
	struct saved_lock lock;

	for (uint32_t i = 0; i < saved->header.locks; i++) {
		struct ss_runtime_lock *slot =
			ss_vector_push(&saved->snapshot->runtime_locks);
		if (!slot)
			return fail_memory(saved);
		if (!take(&saved->at, &lock, sizeof(lock)) ||
		    lock.type > SS_LOCK_TYPE_LAST || lock.owner < 0 || lock.cyclic > 1 ||
		    lock.waiter < 0 || lock.process < 0 || lock.kind > SS_FRAME_JIT)
			return false;
		*slot = (struct ss_runtime_lock){ .kind = (enum ss_frame_kind)lock.kind,
						  .type = (enum ss_lock_type)lock.type,
						  .address = lock.address,
						  .start = lock.start,
						  .end = lock.end,
						  .owner = lock.owner,
						  .cyclic = lock.cyclic == 1,
						  .waiter = lock.waiter,
						  .process = lock.process };
	}
	return true;
}

static bool read_awaited(struct ss_saved_stacks *saved, uint32_t count,
			 struct ss_task *task)
{
	if (count > ss_cursor_left(&saved->at) / sizeof(uint32_t))
		return false;
	size_t *awaited = ss_snapshot_alloc(saved->snapshot, count, sizeof(*awaited));
	if (!awaited)
		return fail_memory(saved);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t index;
		if (!take(&saved->at, &index, sizeof(index)) ||
		    index >= saved->header.tasks)
			return false;
		awaited[i] = index;
	}
	task->awaited = awaited;
	task->awaited_count = count;
	return true;
}

static bool read_task(struct ss_saved_stacks *saved, struct ss_task *task)
{
	struct saved_task from;

	if (!take(&saved->at, &from, sizeof(from)) || from.status > SS_STATUS_COPYSTACK ||
	    from.stack >= saved->header.stacks || from.tid < 0 ||
	    !find_string(saved, from.name, &task->name) ||
	    !find_string(saved, from.wait_reason, &task->wait_reason) || !task->name ||
	    !find_string(saved, from.object, &task->object) ||
	    from.endless > SS_ENDLESS_NIL_CHANNEL)
		return false;
	task->id = from.id;
	task->status = (enum ss_task_status)from.status;
	task->awaits_all = from.awaits_all;
	task->endless = (enum ss_endless)from.endless;
	task->loop_empty = from.loop_empty;
	task->greenlet = from.greenlet;
	task->tid = from.tid;
	task->stack_id = saved->stacks[from.stack];
	task->frame_count = saved->snapshot->stacks.items[task->stack_id].count;
	return read_awaited(saved, from.awaited, task);
}

static bool read_tasks(struct ss_saved_stacks *saved)
{
	struct ss_snapshot *snapshot = saved->snapshot;
	struct ss_task_coverage *coverage = &snapshot->coverage[SS_TASK_ASYNCIO];

	for (uint32_t i = 0; i < saved->header.tasks; i++) {
		struct ss_task *task = ss_snapshot_add_task(snapshot, SS_TASK_ASYNCIO);
		if (!task)
			return fail_memory(saved);
		if (!read_task(saved, task))
			return false;
	}
	*coverage = (struct ss_task_coverage){ .known = saved->header.tasks_known,
					       .changed = saved->header.tasks_changed,
					       .unread = saved->header.tasks_unread };
	return find_string(saved, saved->header.tasks_problem, &coverage->problem);
}

static bool read_all(struct ss_saved_stacks *saved, bool native)
{
	return take(&saved->at, &saved->header, sizeof(saved->header)) &&
	       read_strings(saved) && read_runtimes(saved) && read_locks(saved) &&
	       read_stacks(saved, native) && read_threads(saved) && read_tasks(saved);
}

static bool open_block(const struct ss_stack_block *block, size_t size,
		       struct ss_snapshot *snapshot, bool native,
		       struct ss_saved_stacks **ret)
{
	_cleanup_(ss_saved_stacks_cleanup) struct ss_saved_stacks *saved = NULL;

	*ret = NULL;
	if (!block || size == 0)
		return true;
	saved = calloc(1, sizeof(*saved));
	if (!saved)
		return false;
	saved->snapshot = snapshot;
	saved->at = (struct ss_cursor){ .at = block->bytes, .end = block->bytes + size };
	if (read_all(saved, native)) {
		*ret = take_ptr(saved);
		return true;
	}
	return !saved->no_memory;
}

/* Stacks and strings may stay: nothing refers to them. */
static void clear_runtimes(struct ss_snapshot *snapshot)
{
	snapshot->runtimes.count = 0;
	snapshot->runtime_locks.count = 0;
	snapshot->tasks[SS_TASK_ASYNCIO].count = 0;
	snapshot->coverage[SS_TASK_ASYNCIO] = (struct ss_task_coverage){};
}

bool ss_saved_stacks_open(const struct ss_capture *capture, struct ss_snapshot *snapshot,
			  bool native, struct ss_saved_stacks **ret)
{
	bool ok = open_block(capture->saved, capture->saved_size, snapshot, native, ret);

	if (!*ret)
		clear_runtimes(snapshot);
	return ok;
}

bool ss_saved_stacks_open_earlier(const struct ss_capture *capture,
				  struct ss_snapshot *snapshot,
				  struct ss_saved_stacks **ret)
{
	bool ok =
		open_block(capture->earlier, capture->earlier_size, snapshot, true, ret);

	clear_runtimes(snapshot);
	return ok;
}

static size_t find_saved(const struct ss_saved_stacks *saved, pid_t tid)
{
	const struct saved_thread *items = saved->threads.items;
	const size_t count = saved->threads.count;
	const size_t at = ss_lower_bound(count, i, items[i].tid < tid);

	return at < count && items[at].tid == tid ? at : SIZE_MAX;
}

bool ss_saved_stacks_has_whole(const struct ss_saved_stacks *saved, pid_t tid)
{
	const size_t at = find_saved(saved, tid);

	if (at == SIZE_MAX)
		return false;
	const struct saved_thread *thread = &saved->threads.items[at];
	return thread->native_reason == 0 && thread->missing == 0 &&
	       ss_end_is_outermost(thread->end);
}

bool ss_saved_stacks_apply(struct ss_saved_stacks *saved, struct ss_task *thread,
			   bool *found)
{
	struct ss_snapshot *snapshot = saved->snapshot;
	const size_t at = find_saved(saved, thread->tid);

	*found = at != SIZE_MAX;
	if (!*found)
		return true;
	const struct saved_thread *from = &saved->threads.items[at];
	thread->end = (enum ss_end)from->end;
	thread->missing = from->missing;
	thread->stack_id = saved->stacks[from->stack];
	thread->frame_count = snapshot->stacks.items[thread->stack_id].count;
	(void)find_string(saved, from->reason, &thread->reason); /* they were checked */
	(void)find_string(saved, from->native_reason, &thread->native_reason);
	(void)find_string(saved, from->name, &thread->name);
	thread->runtime_id = from->runtime_id;
	thread->priority = (uint8_t)from->priority;
	thread->daemon = from->daemon != 0;
	for (uint32_t i = 0; i < from->references; i++) {
		const struct saved_reference *reference =
			&saved->references.items[saved->first.items[at] + i];
		struct ss_lock_reference *slot = ss_vector_push(&snapshot->references);
		if (!slot)
			return false;
		*slot = (struct ss_lock_reference){
			.futex = reference->futex,
			.thread = (uint32_t)(thread -
					     snapshot->tasks[SS_TASK_THREAD].items),
			.frame = reference->frame,
			.in_code = reference->in_code,
			.exact = reference->exact,
			.calls = (uint8_t)reference->calls,
			.module_index = reference->module,
			.call_offset = reference->call_offset,
			.call_line = reference->call_line,
		};
		(void)find_string(saved, reference->call_file, &slot->call_file);
	}
	return true;
}
