/*
 * Stacks with the functions of runtimes, as the child of an earlier snapshot of a series has saved
 * them: the first byte says whether native frames stay, the rest is what it has written.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fuzz.h"
#include "model/capture.h"
#include "model/session.h"
#include "model/snapshot.h"

enum { MODULES = 64, THREADS = 8 };

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
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		const struct ss_thread *thread = &snapshot->threads.items[i];
		check_stack(snapshot, thread->stack_id);
		touch(thread->reason);
		touch(thread->native_reason);
	}
	for (size_t i = 0; i < snapshot->async_tasks.count; i++) {
		const struct ss_async_task *task = &snapshot->async_tasks.items[i];
		check_stack(snapshot, task->stack_id);
		touch(task->name);
		touch(task->awaited_type);
		for (size_t k = 0; k < task->awaited_count; k++)
			FUZZ_REQUIRE(task->awaited[k] < snapshot->async_tasks.count);
	}
	for (size_t i = 0; i < snapshot->references.count; i++) {
		const struct ss_lock_reference *reference =
			&snapshot->references.items[i];
		FUZZ_REQUIRE(reference->thread < snapshot->threads.count);
		const struct ss_thread *thread =
			&snapshot->threads.items[reference->thread];
		FUZZ_REQUIRE(reference->frame <= thread->frame_count);
		touch(reference->call_file);
	}
	for (size_t i = 0; i < snapshot->runtimes.count; i++) {
		touch(snapshot->runtimes.items[i].version);
		touch(snapshot->runtimes.items[i].problem);
	}
}

/* Ids of threads and numbers of modules are small in seeds. */
static struct ss_capture *make_capture(const uint8_t *data, size_t size)
{
	struct ss_capture *capture = ss_capture_new();

	FUZZ_REQUIRE(capture);
	capture->arch = ss_arch_find_name("x86_64");
	for (int i = 0; i < MODULES; i++) {
		struct ss_module_impl **slot = ss_vector_push(&capture->modules);
		FUZZ_REQUIRE(slot);
		*slot = ss_module_new("module", (uint64_t)i << 20,
				      (uint64_t)(i + 1) << 20);
		FUZZ_REQUIRE(*slot);
	}
	for (int i = 0; i < THREADS; i++) {
		struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
		FUZZ_REQUIRE(thread);
		*thread = (struct ss_capture_thread){ .tid = i + 1, .state = 'S' };
	}
	capture->saved = malloc(size + 1);
	FUZZ_REQUIRE(capture->saved);
	memcpy(capture->saved, data, size);
	capture->saved_size = size;
	return capture;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_session *session = NULL;
	struct ss_snapshot *snapshot = NULL;

	if (size < 1)
		return 0;
	struct ss_capture *capture = make_capture(data + 1, size - 1);
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .native = data[0] & 1 };
	FUZZ_REQUIRE(!ss_session_new(NULL, &session));
	FUZZ_REQUIRE(!ss_capture_unwind(capture, session, &options, &snapshot));
	check(snapshot);
	ss_snapshot_free(snapshot);
	ss_session_free(session);
	ss_capture_free(capture);
	return 0;
}
