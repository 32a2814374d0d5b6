/*
 * Stacks that a snapshot saves for its capture: the same come back, with and without native
 * frames, and bytes that anybody may have changed do no harm.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "data/capture.h"
#include "data/futex.h"
#include "data/pipeline.h"
#include "data/session.h"
#include "data/snapshot_fields.h"
#include "unwind/walk.h"

enum { TID = 7, OTHER = 9, WORDS = 8 };

static uint64_t words[WORDS];
static struct ss_session *session;

static struct ss_capture *make_capture(void)
{
	static const pid_t tids[] = { TID, OTHER };
	struct ss_capture *capture = ss_capture_new();

	for (size_t i = 0; i < SS_ARRAY_SIZE(tids); i++) {
		struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
		*thread = (struct ss_capture_thread){ .tid = tids[i], .state = 'S' };
		thread->stacks[0] =
			(struct ss_stack_copy){ .address = 0x7fff0000,
						.size = sizeof(words),
						.bytes = (const uint8_t *)words };
		ss_arch_regs_blocked(&ss_arch_host, 0x10000, 0x7fff0000, NULL,
				     &thread->regs);
	}
	return capture;
}

static struct ss_snapshot *unwind(const struct ss_capture *capture, bool native)
{
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .native = native };
	struct ss_snapshot *snapshot = NULL;
	struct ss_error *error = ss_capture_unwind(capture, session, &options, &snapshot);

	ss_error_free(error);
	return snapshot;
}

/* What a runtime would add: a loop that is replaced by two functions, a lock that the second one
   refers to, and two tasks. */
static struct ss_snapshot *make_snapshot(const struct ss_capture *capture)
{
	struct ss_snapshot *snapshot = unwind(capture, true);
	const struct ss_frame frames[] = {
		{ .pc = 0x1000, .module_index = -1, .area = "[jit]" },
		{ .module_index = -1,
		  .kind = SS_FRAME_PYTHON,
		  .source = SS_FROM_RUNTIME,
		  .symbol = "inner",
		  .file = "a.py",
		  .line = 3 },
		{ .module_index = -1,
		  .kind = SS_FRAME_PYTHON,
		  .source = SS_FROM_RUNTIME,
		  .symbol = "outer",
		  .file = "a.py",
		  .line = 5 },
		{ .pc = 0x2000, .module_index = -1, .replaced = true },
		{ .pc = 0x3000, .module_index = -1, .omitted = 70000 },
	};

	assert_non_null(snapshot);
	struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[0];
	assert_true(ss_snapshot_add_stack(snapshot, frames, SS_ARRAY_SIZE(frames),
					  SS_END_ROOT, &thread->stack_id));
	thread->end = SS_END_ROOT;
	snapshot->tasks[SS_TASK_THREAD].items[1].native_reason = "it ran";
	*ss_vector_push(&snapshot->references) = (struct ss_lock_reference){
		.futex = 0x4000, .frame = 4, .module_index = -1, .call_file = "lock.c"
	};
	*ss_vector_push(&snapshot->runtimes) =
		(struct ss_runtime_info){ .kind = SS_FRAME_PYTHON,
					  .version = "CPython 3.11.2" };
	*ss_vector_push(&snapshot->runtime_locks) =
		(struct ss_runtime_lock){ .type = SS_LOCK_PYTHON_GIL,
					  .address = 0x5000,
					  .start = 0x5010,
					  .end = 0x5020,
					  .owner = TID };
	size_t *awaited = ss_snapshot_alloc(snapshot, 1, sizeof(*awaited));
	*awaited = 1;
	for (int i = 0; i < 2; i++)
		*ss_vector_push(&snapshot->tasks[SS_TASK_ASYNCIO]) = (struct ss_task){
			.kind = SS_TASK_ASYNCIO,
			.id = i ? 0x7000 : 0x6000,
			.name = i ? "Task-2" : "Task-1",
			.wait_reason = i ? NULL : "Task",
			.awaited = awaited,
			.awaited_count = i ? 0 : 1,
			.status = i ? SS_STATUS_RUNNABLE : SS_STATUS_WAITING,
			.tid = TID,
			.stack_id = thread->stack_id,
		};
	snapshot->coverage[SS_TASK_ASYNCIO].changed = 3;
	snapshot->coverage[SS_TASK_ASYNCIO].known = true;
	return snapshot;
}

static void save(const struct ss_snapshot *snapshot, struct ss_capture *capture)
{
	int fd = memfd_create("saved", MFD_CLOEXEC);
	bool any = false;

	assert_null(ss_snapshot_send(snapshot, fd));
	assert_null(ss_capture_add_stacks(capture, fd, &any));
	assert_true(any);
	(void)close(fd);
}

static struct ss_capture *make_saved(void)
{
	struct ss_capture *capture = make_capture();
	struct ss_snapshot *snapshot = make_snapshot(capture);

	save(snapshot, capture);
	ss_snapshot_free(snapshot);
	return capture;
}

TEST(test_same)
{
	struct ss_capture *capture = make_saved();
	struct ss_snapshot *snapshot = unwind(capture, true);
	const struct ss_task *thread = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0);

	assert_int_equal(thread->frame_count, 5);
	assert_int_equal(thread->end, SS_END_ROOT);
	const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, 1);
	assert_string_equal(frame->symbol, "inner");
	assert_string_equal(frame->file, "a.py");
	assert_int_equal(frame->line, 3);
	assert_int_equal(frame->kind, SS_FRAME_PYTHON);
	assert_string_equal(ss_snapshot_frame(snapshot, thread, 0)->area, "[jit]");
	assert_true(ss_snapshot_frame(snapshot, thread, 3)->replaced);
	assert_int_equal(ss_snapshot_frame(snapshot, thread, 3)->omitted, 0);
	assert_int_equal(ss_snapshot_frame(snapshot, thread, 4)->omitted, 70000);
	assert_string_equal(ss_snapshot_task(snapshot, SS_TASK_THREAD, 1)->native_reason,
			    "it ran");
	assert_int_equal(snapshot->references.count, 1);
	assert_int_equal(snapshot->references.items[0].frame, 4);
	assert_string_equal(snapshot->references.items[0].call_file, "lock.c");
	assert_string_equal(ss_snapshot_runtime(snapshot, 0)->version, "CPython 3.11.2");
	assert_int_equal(snapshot->runtime_locks.items[0].owner, TID);
	assert_int_equal(snapshot->runtime_locks.items[0].end, 0x5020);
	assert_int_equal(ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO), 2);
	const struct ss_task *task = ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, 0);
	assert_string_equal(task->name, "Task-1");
	assert_int_equal(task->awaited[0], 1);
	assert_int_equal(task->id, 0x6000);
	assert_int_equal(task->frame_count, 5);
	assert_int_equal(snapshot->coverage[SS_TASK_ASYNCIO].changed, 3);
	assert_true(ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO)->known);
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
}

/* The frame that functions stand for is dropped, and the lock refers to the next one. */
TEST(test_not_native)
{
	struct ss_capture *capture = make_saved();
	struct ss_snapshot *snapshot = unwind(capture, false);
	const struct ss_task *thread = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0);

	assert_int_equal(thread->frame_count, 4);
	assert_int_equal(ss_snapshot_frame(snapshot, thread, 3)->pc, 0x3000);
	assert_int_equal(snapshot->references.items[0].frame, 3);
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
}

/* Saves a lock of a type, and returns the type that was read. */
static enum ss_lock_type save_lock(enum ss_lock_type type)
{
	struct ss_capture *capture = make_capture();
	struct ss_snapshot *snapshot = make_snapshot(capture);

	snapshot->runtime_locks.items[0].type = type;
	save(snapshot, capture);
	ss_snapshot_free(snapshot);
	snapshot = unwind(capture, true);
	assert_non_null(snapshot);
	if (snapshot->runtime_locks.count != 1)
		fail_msg("a lock of type %s is refused", ss_lock_type_name(type));
	const enum ss_lock_type read = snapshot->runtime_locks.items[0].type;
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
	return read;
}

TEST(test_lock_types)
{
	int type = SS_LOCK_NONE + 1;

	for (; strcmp(ss_lock_type_name((enum ss_lock_type)type), "unknown") != 0; type++)
		assert_int_equal(save_lock((enum ss_lock_type)type), type);
	assert_int_equal(type, SS_LOCK_TYPE_LAST + 1);
}

/* Whether a snapshot has what was saved. Otherwise nothing of it, but native frames. */
static bool is_read(const struct ss_capture *capture, bool native)
{
	struct ss_snapshot *snapshot = unwind(capture, native);

	assert_non_null(snapshot);
	assert_int_equal(snapshot->tasks[SS_TASK_THREAD].count, 2);
	const bool read = snapshot->runtimes.count == 1;
	if (!read) {
		assert_int_equal(
			ss_snapshot_task(snapshot, SS_TASK_THREAD, 0)->frame_count, 1);
		assert_int_equal(snapshot->runtimes.count, 0);
		assert_int_equal(snapshot->runtime_locks.count, 0);
		assert_int_equal(snapshot->references.count, 0);
		assert_int_equal(snapshot->tasks[SS_TASK_ASYNCIO].count, 0);
	}
	ss_snapshot_free(snapshot);
	return read;
}

/* What was saved without a runtime is unwound again. */
TEST(test_no_runtime)
{
	struct ss_capture *capture = make_capture();
	struct ss_snapshot *snapshot = make_snapshot(capture);

	snapshot->runtimes.count = 0;
	save(snapshot, capture);
	assert_false(is_read(capture, true));
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
}

/* A capture of a series: whether its threads, and others that it leaves out, have not run since the
   one before. */
static struct ss_capture *make_later(bool not_run, bool others_not_run)
{
	struct ss_capture *capture = make_capture();

	for (size_t i = 0; i < capture->threads.count; i++)
		capture->threads.items[i].not_run = not_run;
	capture->not_run = not_run && others_not_run;
	return capture;
}

/* Of what is taken over as of before, nothing of the runtimes counts: each capture has its own. */
TEST(test_earlier)
{
	struct ss_capture *previous = make_saved();
	struct ss_capture *capture = make_later(false, false);
	struct ss_snapshot *snapshot = unwind(capture, true);
	struct ss_saved_stacks *saved = NULL;

	ss_capture_keep_stacks(capture, previous);
	assert_true(ss_saved_stacks_open(capture, snapshot, true, true, &saved));
	assert_non_null(saved);
	assert_int_equal(snapshot->runtimes.count, 0);
	assert_int_equal(snapshot->tasks[SS_TASK_ASYNCIO].count, 0);
	assert_int_equal(snapshot->coverage[SS_TASK_ASYNCIO].changed, 0);
	assert_int_equal(snapshot->coverage[SS_TASK_ASYNCIO].unread, 0);
	assert_false(snapshot->coverage[SS_TASK_ASYNCIO].known);
	assert_null(snapshot->coverage[SS_TASK_ASYNCIO].problem);
	ss_saved_stacks_free(saved);
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
	ss_capture_free(previous);
}

static size_t read_nothing(void *data, uint64_t address, void *bytes, size_t size)
{
	(void)data;
	(void)address;
	(void)bytes;
	(void)size;
	return 0;
}

static bool has_not_moved(void *data, pid_t tid)
{
	(void)data;
	(void)tid;
	return true;
}

/* How many frames the threads have in a capture of a series that was unwound with what the
   previous one has saved. */
static void count_frames(const struct ss_capture *previous, struct ss_capture *capture,
			 size_t *ret_first, size_t *ret_second)
{
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .read = read_nothing,
						   .check = has_not_moved,
						   .native = true };
	struct ss_snapshot *snapshot = NULL;

	ss_capture_keep_stacks(capture, previous);
	assert_false(ss_capture_has_stacks(capture));
	assert_null(ss_capture_unwind(capture, session, &options, &snapshot));
	*ret_first = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0)->frame_count;
	*ret_second = ss_snapshot_task(snapshot, SS_TASK_THREAD, 1)->frame_count;
	ss_snapshot_free(snapshot);
}

/* The stack of a thread that has not run is taken over; not that of one that owns a lock for
   which another thread may wait only now. */
TEST(test_taken_over)
{
	enum { LOCK = 0x4000 };
	static const uint32_t mutex[] = { 2, 0, TID, 1 };
	struct ss_capture *previous = make_saved();
	struct ss_capture *capture = make_later(false, false);
	size_t first;
	size_t second;

	capture->threads.items[0].not_run = true;
	count_frames(previous, capture, &first, &second);
	assert_int_equal(first, 5);
	assert_int_equal(second, 1);
	ss_capture_free(capture);

	capture = make_later(true, false); /* the other one lacks frames of a runtime */
	count_frames(previous, capture, &first, &second);
	assert_int_equal(first, 5);
	assert_int_equal(second, 1);
	ss_capture_free(capture);

	capture = make_later(false, false);
	capture->threads.items[0].not_run = true;
	capture->threads.items[1].syscall = (struct ss_syscall){
		.id = SS_SYS_FUTEX, .args = { LOCK, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2 }
	};
	capture->threads.items[1].lock = (struct ss_lock_copy){
		.address = LOCK, .size = sizeof(mutex), .bytes = (const uint8_t *)mutex
	};
	count_frames(previous, capture, &first, &second);
	assert_int_equal(first, 1);
	assert_int_equal(second, 1);
	ss_capture_free(capture);
	ss_capture_free(previous);
}

/* A lock in code without a module that has the code. */
TEST(test_code_without_module)
{
	struct ss_capture *capture = make_capture();
	struct ss_snapshot *snapshot = make_snapshot(capture);

	snapshot->references.items[0].in_code = true;
	save(snapshot, capture);
	assert_false(is_read(capture, true));
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
}

/* Each byte with other values, and each length. What is not valid is no lack of memory. */
TEST(test_hostile)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct ss_capture *capture = make_saved();
	const size_t size = capture->saved_size;
	size_t refused = 0;

	for (size_t i = 0; i < size; i++) {
		const uint8_t before = capture->saved->bytes[i];
		for (size_t k = 0; k < SS_ARRAY_SIZE(values); k++) {
			capture->saved->bytes[i] = values[k];
			refused += !is_read(capture, k % 2);
		}
		capture->saved->bytes[i] = before;
	}
	for (capture->saved_size = 1; capture->saved_size < size; capture->saved_size++)
		assert_false(is_read(capture, true));
	assert_true(refused > size / 10);
	ss_capture_free(capture);
}

/* A capture of a series in which no thread has run has the stacks of the one before. */
TEST(test_kept)
{
	struct ss_capture *previous = make_saved();
	struct ss_capture *capture = make_later(false, true);

	ss_capture_keep_stacks(capture, previous);
	assert_false(ss_capture_has_stacks(capture)); /* its threads have run */
	assert_non_null(capture->earlier);
	ss_capture_free(capture);
	/* A thread that the capture leaves out has changed its tasks. */
	capture = make_later(true, false);
	ss_capture_keep_stacks(capture, previous);
	assert_false(ss_capture_has_stacks(capture));
	assert_non_null(capture->earlier);
	ss_capture_free(capture);
	capture = make_later(true, true);
	ss_capture_keep_stacks(capture, previous);
	assert_true(ss_capture_has_stacks(capture));
	assert_true(is_read(capture, true));
	/* Those that are found later replace them. */
	struct ss_snapshot *snapshot = make_snapshot(capture);
	save(snapshot, capture);
	assert_ptr_not_equal(capture->saved, previous->saved);
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
	/* Another thread */
	capture = make_later(true, true);
	capture->threads.items[capture->threads.count - 1].tid++;
	ss_capture_keep_stacks(capture, previous);
	assert_false(ss_capture_has_stacks(capture));
	assert_false(ss_capture_has_new_files(capture));
	ss_capture_free(capture);
	/* Another module */
	capture = make_later(true, true);
	*ss_vector_push(&capture->modules) = ss_module_new("plugin.so", 0x1000, 0x2000);
	ss_capture_keep_stacks(capture, previous);
	assert_false(ss_capture_has_stacks(capture));
	assert_true(ss_capture_has_new_files(capture));
	ss_capture_free(previous);
	ss_capture_free(capture);
}

static int make_session(void **state)
{
	(void)state;
	return ss_session_new(NULL, &session) ? -1 : 0;
}

static int free_session(void **state)
{
	(void)state;
	ss_session_free(session);
	return 0;
}

TEST_GROUP(make_session, free_session)
