/*
 * Stacks with the functions of runtimes, as the child of an earlier snapshot of a series has saved
 * them. The bytes depend on the build, so an input says how to change those of a snapshot that is
 * made here: a byte whether native frames stay, and changes of six bytes each: an offset of two
 * bytes, and what replaces the four bytes there. An offset behind the end is the size that is left.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "fuzz.h"
#include "data/capture.h"
#include "data/pipeline.h"
#include "data/session.h"
#include "data/snapshot_fields.h"

enum { MODULES = 2, THREADS = 3, TASKS = 3, FRAMES = 4 };

static void touch(const char *text)
{
	if (text)
		fuzz_touch(text, strlen(text));
}

static void check_stack(const struct ss_snapshot *snapshot, uint32_t id)
{
	FUZZ_REQUIRE(id < snapshot->stacks.count);
	const struct ss_stack *stack = &snapshot->stacks.items[id];
	for (size_t i = 0; i < stack->count; i++) {
		const struct ss_frame *frame = &stack->frames[i];
		FUZZ_REQUIRE(frame->kind == SS_FRAME_NATIVE || frame->symbol);
		FUZZ_REQUIRE(frame->module_index < MODULES);
		touch(frame->symbol);
		touch(frame->file);
		touch(frame->area);
	}
}

static void check(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		check_stack(snapshot, thread->stack_id);
		touch(thread->reason);
		touch(thread->native_reason);
	}
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_ASYNCIO].count; i++) {
		const struct ss_task *task = &snapshot->tasks[SS_TASK_ASYNCIO].items[i];
		check_stack(snapshot, task->stack_id);
		touch(task->name);
		touch(task->wait_reason);
		for (size_t k = 0; k < task->awaited_count; k++)
			FUZZ_REQUIRE(task->awaited[k] <
				     snapshot->tasks[SS_TASK_ASYNCIO].count);
	}
	for (size_t i = 0; i < snapshot->references.count; i++) {
		const struct ss_lock_reference *reference =
			&snapshot->references.items[i];
		FUZZ_REQUIRE(reference->thread < snapshot->tasks[SS_TASK_THREAD].count);
		const struct ss_task *thread =
			&snapshot->tasks[SS_TASK_THREAD].items[reference->thread];
		FUZZ_REQUIRE(reference->frame <= thread->frame_count);
		touch(reference->call_file);
	}
	for (size_t i = 0; i < snapshot->runtimes.count; i++) {
		touch(snapshot->runtimes.items[i].version);
		touch(snapshot->runtimes.items[i].problem);
	}
}

static struct ss_capture *make_capture(void)
{
	struct ss_capture *capture = ss_capture_new();

	FUZZ_REQUIRE(capture);
	capture->arch = ss_arch_find_name("x86_64");
	for (uint64_t i = 0; i < MODULES; i++) {
		struct ss_module_impl **slot = ss_vector_push(&capture->modules);
		FUZZ_REQUIRE(slot);
		*slot = ss_module_new("module", i << 20, (i + 1) << 20);
		FUZZ_REQUIRE(*slot);
	}
	for (int i = 0; i < THREADS; i++) {
		struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
		FUZZ_REQUIRE(thread);
		*thread = (struct ss_capture_thread){ .tid = i + 1, .state = 'S' };
	}
	return capture;
}

static struct ss_snapshot *unwind(const struct ss_capture *capture, bool native)
{
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .native = native };
	struct ss_session *session = NULL;
	struct ss_snapshot *snapshot = NULL;

	FUZZ_REQUIRE(!ss_session_new(NULL, &session));
	FUZZ_REQUIRE(!ss_capture_unwind(capture, session, &options, &snapshot));
	ss_session_free(session);
	return snapshot;
}

/* Adds what a runtime finds. */
static void fill(struct ss_snapshot *snapshot)
{
	const struct ss_frame frames[FRAMES] = {
		{ .pc = 0x1000,
		  .offset = 0x1000,
		  .module = &snapshot->modules.items[0]->pub },
		{ .module_index = -1,
		  .kind = SS_FRAME_PYTHON,
		  .source = SS_FROM_RUNTIME,
		  .symbol = "inner",
		  .file = "a.py",
		  .line = 3 },
		{ .pc = 0x2000, .module_index = -1, .area = "[jit]", .replaced = true },
		{ .pc = 0x3000, .module_index = -1, .omitted = 70000 },
	};
	struct ss_runtime_info *runtime = ss_vector_push(&snapshot->runtimes);
	struct ss_runtime_lock *lock = ss_vector_push(&snapshot->runtime_locks);

	FUZZ_REQUIRE(runtime && lock);
	*runtime = (struct ss_runtime_info){ .kind = SS_FRAME_PYTHON,
					     .version = "CPython 3.11.2" };
	*lock = (struct ss_runtime_lock){ .type = SS_LOCK_PYTHON_GIL,
					  .address = 0x5000,
					  .start = 0x5010,
					  .end = 0x5020,
					  .owner = 1 };
	for (size_t i = 0; i < THREADS; i++) {
		struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		struct ss_lock_reference *reference =
			ss_vector_push(&snapshot->references);
		FUZZ_REQUIRE(reference &&
			     ss_snapshot_add_stack(snapshot, frames, FRAMES - i,
						   SS_END_ROOT, &thread->stack_id));
		thread->frame_count = FRAMES - i;
		*reference =
			(struct ss_lock_reference){ .futex = 0x4000,
						    .thread = (uint32_t)i,
						    .frame = (uint32_t)(FRAMES - 1 - i),
						    .module_index = 1,
						    .call_file = "lock.c" };
	}
	for (size_t i = 0; i < TASKS; i++) {
		struct ss_task *task = ss_vector_push(&snapshot->tasks[SS_TASK_ASYNCIO]);
		size_t *awaited = ss_snapshot_alloc(snapshot, 1, sizeof(*awaited));
		FUZZ_REQUIRE(task && awaited);
		*awaited = (i + 1) % TASKS;
		*task = (struct ss_task){
			.name = "Task-1",
			.wait_reason = "Future",
			.awaited = awaited,
			.awaited_count = 1,
			.tid = 2,
			.stack_id = snapshot->tasks[SS_TASK_THREAD].items[i].stack_id
		};
	}
}

/* Returns the bytes of a snapshot. */
static uint8_t *save(size_t *ret_size)
{
	struct ss_capture *capture = make_capture();
	struct ss_snapshot *snapshot = unwind(capture, true);
	int fd = memfd_create("saved", MFD_CLOEXEC);
	bool any = false;

	fill(snapshot);
	FUZZ_REQUIRE(fd >= 0 && !ss_snapshot_send(snapshot, fd));
	FUZZ_REQUIRE(!ss_capture_add_stacks(capture, fd, &any) && any);
	(void)close(fd);
	uint8_t *bytes = malloc(capture->saved_size);
	FUZZ_REQUIRE(bytes);
	memcpy(bytes, capture->saved->bytes, capture->saved_size);
	*ret_size = capture->saved_size;
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
	return bytes;
}

static void change(struct ss_capture *capture, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at + 6 <= size; at += 6) {
		size_t offset = data[at] | (size_t)data[at + 1] << 8;
		if (offset + 4 <= capture->saved_size)
			memcpy(capture->saved->bytes + offset, data + at + 2, 4);
		else
			capture->saved_size =
				SS_MIN(data[at + 2] | (size_t)data[at + 3] << 8,
				       capture->saved_size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *bytes;
	static size_t bytes_size;

	if (size < 1)
		return 0;
	if (!bytes)
		bytes = save(&bytes_size);
	struct ss_capture *capture = make_capture();
	capture->saved = ss_stack_block_new(bytes_size);
	FUZZ_REQUIRE(capture->saved);
	memcpy(capture->saved->bytes, bytes, bytes_size);
	capture->saved_size = bytes_size;
	change(capture, data + 1, size - 1);
	struct ss_snapshot *snapshot = unwind(capture, data[0] & 1);
	check(snapshot);
	if (size == 1)
		FUZZ_REQUIRE(snapshot->tasks[SS_TASK_ASYNCIO].count == TASKS &&
			     snapshot->references.count == THREADS);
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
	return 0;
}
