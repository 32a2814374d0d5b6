/*
 * The walk over handmade captures: code without CFI, as of a JIT compiler, at CODE, and
 * a stack of words at STACK.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include "data/capture.h"
#include "data/session.h"

#define CODE UINT64_C(0x10000)
#define STACK UINT64_C(0x7fff0000)

enum { WORDS = 512, FAR = 1 << 20 };

static uint64_t words[WORDS];
static struct ss_session *session;

static uint64_t at(size_t index)
{
	return STACK + index * 8;
}

static void add_area(struct ss_capture *capture, uint64_t start, unsigned prot)
{
	struct ss_area *area = ss_vector_push(&capture->areas);

	*area = (struct ss_area){ .start = start,
				  .end = start + FAR,
				  .prot = prot,
				  .module = -1,
				  .name = ss_intern_string(capture->strings, "//anon") };
}

/* One thread; the first count words of its stack were copied. */
static struct ss_capture *make(uint64_t pc, size_t sp, size_t count, bool cut)
{
	struct ss_capture *capture = ss_capture_new();

	add_area(capture, CODE, PROT_READ | PROT_EXEC);
	add_area(capture, STACK, PROT_READ | PROT_WRITE);
	struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
	*thread = (struct ss_capture_thread){ .tid = 7, .state = 'S' };
	thread->stacks[0] = (struct ss_stack_copy){ .address = STACK,
						    .size = count * 8,
						    .bytes = (const uint8_t *)words,
						    .truncated = cut };
	ss_arch_regs_blocked(&ss_arch_host, pc, at(sp), NULL, &thread->regs);
	return capture;
}

static void set_fp(struct ss_capture *capture, uint64_t fp)
{
	ss_regs_set(&capture->threads.items[0].regs, ss_arch_host.fp, fp);
}

/* Unwinds, frees the capture, and checks the end and the number of frames. */
static struct ss_snapshot *walk(struct ss_capture *capture, unsigned max_frames,
				enum ss_end end, size_t frames)
{
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .max_frames = max_frames };
	struct ss_snapshot *snapshot = NULL;

	assert_null(ss_capture_unwind(capture, session, &options, &snapshot));
	ss_capture_free(capture);
	const struct ss_task *thread = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0);
	assert_string_equal(ss_end_name(thread->end), ss_end_name(end));
	assert_int_equal(thread->frame_count, frames);
	return snapshot;
}

/* A chain of frame pointers: count frames of 4 words from index 2 on. */
static void make_chain(size_t count)
{
	memset(words, 0, sizeof(words));
	for (size_t i = 0; i < count; i++) {
		words[2 + i * 4] = i + 1 < count ? at(2 + (i + 1) * 4) : 0;
		words[3 + i * 4] = i + 1 < count ? CODE + 0x100 * (i + 1) : 0;
	}
}

static struct ss_capture *make_chain_capture(size_t copied, bool cut)
{
	struct ss_capture *capture = make(CODE + 8, 0, copied, cut);

	set_fp(capture, at(2));
	return capture;
}

TEST(test_frame_pointers)
{
	make_chain(50);
	struct ss_snapshot *s =
		walk(make_chain_capture(WORDS, false), 0, SS_END_ROOT, 50);
	const struct ss_frame *frame =
		ss_snapshot_frame(s, ss_snapshot_task(s, SS_TASK_THREAD, 0), 49);
	assert_int_equal(frame->pc, CODE + 0x100 * 49);
	assert_int_equal(frame->source, SS_FROM_FRAME_POINTER);
	assert_int_equal(frame->module_index, -1);
	assert_string_equal(frame->area, "[jit]");
	assert_int_equal(frame->area_offset, 0x100 * 49);
	ss_snapshot_free(s);
	ss_snapshot_free(walk(make_chain_capture(WORDS, false), 10, SS_END_FRAMES, 10));
}

TEST(test_truncated_and_unreadable)
{
	make_chain(50);
	ss_snapshot_free(walk(make_chain_capture(2 + 4 * 20, true), 0, SS_END_LIMIT, 21));
	/* Nothing was copied: there is at most the innermost frame. */
	struct ss_capture *capture = make(0xdead, 0, 0, false);
	struct ss_snapshot *snapshot = NULL;
	assert_null(ss_capture_unwind(capture, session, NULL, &snapshot));
	assert_true(ss_snapshot_task(snapshot, SS_TASK_THREAD, 0)->frame_count <= 1);
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
}

/* A frame pointer that leads back, or to itself, is not followed forever. */
TEST(test_loops)
{
	make_chain(10);
	words[2 + 9 * 4] = at(2);
	words[3 + 9 * 4] = CODE + 0x40;
	struct ss_snapshot *snapshot = NULL;
	struct ss_capture *capture = make_chain_capture(WORDS, false);
	assert_null(ss_capture_unwind(capture, session, NULL, &snapshot));
	assert_true(ss_snapshot_task(snapshot, SS_TASK_THREAD, 0)->frame_count < 40);
	assert_true(ss_snapshot_task(snapshot, SS_TASK_THREAD, 0)->end != SS_END_ROOT);
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
}

/* A call through a bad pointer: sp points to the return address. */
TEST(test_bad_pointer)
{
	make_chain(3);
	words[0] = CODE + 0x80;
	struct ss_capture *capture = make(0x3, 0, WORDS, false);
	set_fp(capture, at(2));
	struct ss_snapshot *s = walk(capture, 0, SS_END_ROOT, 4);
	const struct ss_frame *frame =
		ss_snapshot_frame(s, ss_snapshot_task(s, SS_TASK_THREAD, 0), 1);
	assert_int_equal(frame->pc, CODE + 0x80);
	assert_int_equal(frame->source, SS_FROM_RETURN_ADDRESS);
	ss_snapshot_free(s);
}

/* Neither CFI nor a frame pointer: a limited number of heuristic frames. */
TEST(test_guesses_end)
{
	for (size_t i = 0; i < WORDS; i++)
		words[i] = CODE + i;
	struct ss_snapshot *snapshot = NULL;
	struct ss_capture *capture = make(CODE, 0, WORDS, false);
	assert_null(ss_capture_unwind(capture, session, NULL, &snapshot));
	assert_int_equal(ss_snapshot_task(snapshot, SS_TASK_THREAD, 0)->end,
			 SS_END_NO_UNWIND_INFO);
	assert_true(ss_snapshot_task(snapshot, SS_TASK_THREAD, 0)->frame_count < 32);
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
}

/* A thread that has not run yet: words above its stack look like return addresses. */
TEST(test_not_started)
{
	for (size_t i = 0; i < WORDS; i++)
		words[i] = CODE + i;
	struct ss_capture *capture = make(CODE, 0, WORDS, false);
	capture->threads.items[0].not_started = true;
	ss_snapshot_free(walk(capture, 0, SS_END_ROOT, 1));
}

/* Many threads with two different stacks, and one that has none. */
TEST(test_equal_stacks_share)
{
	struct ss_snapshot *s = NULL;

	make_chain(20);
	struct ss_capture *capture = make_chain_capture(WORDS, false);
	for (int i = 0; i < 100; i++) {
		struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
		*thread = capture->threads.items[0];
		if (i % 2)
			ss_regs_set(&thread->regs, ss_arch_host.pc, CODE + 0x999);
		if (i == 99)
			thread->end = SS_END_GONE;
	}
	assert_null(ss_capture_unwind(capture, session, NULL, &s));
	ss_capture_free(capture);
	assert_int_equal(ss_snapshot_task_count(s, SS_TASK_THREAD), 101);
	assert_int_equal(ss_snapshot_task(s, SS_TASK_THREAD, 0)->stack_id,
			 ss_snapshot_task(s, SS_TASK_THREAD, 99)->stack_id);
	assert_int_not_equal(ss_snapshot_task(s, SS_TASK_THREAD, 0)->stack_id,
			     ss_snapshot_task(s, SS_TASK_THREAD, 98)->stack_id);
	assert_int_equal(ss_snapshot_task(s, SS_TASK_THREAD, 100)->frame_count, 0);
	assert_int_equal(ss_snapshot_task(s, SS_TASK_THREAD, 100)->end, SS_END_GONE);
	ss_snapshot_free(s);
}

static int make_session(void **state)
{
	/* Members that a smaller struct lacks are not read. */
	const struct ss_session_options options = { .size = sizeof(options.size),
						    .debug_dir = (const char *)1,
						    .sysroot = (const char *)1 };

	(void)state;
	assert_null(ss_session_new(&options, &session));
	assert_string_equal(session->debug_dir, "/usr/lib/debug");
	assert_int_equal(session->sysroot, -1);
	return 0;
}

static int free_session(void **state)
{
	(void)state;
	ss_session_free(session);
	ss_session_free(NULL);
	return 0;
}

TEST_GROUP(make_session, free_session)
