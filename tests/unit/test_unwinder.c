/*
 * The recorder's side of the unwinder: what it asks is answered by a real child, and an
 * answer in which any byte was changed is refused, or is data within its bounds.
 *
 * ctest: tries=1
 */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/intern.h"
#include "sample/unwinder.h"
#include "sandbox/sandbox.h"

enum { BASE = 0x700000000000, SIZE = 0x10000, MAX_FRAMES = 100, ARENA = 1 << 20 };

/* The child changes one byte of its answer. */
static struct {
	struct ss_unwind_server *server;
	size_t at;    /* SIZE_MAX: none */
	uint8_t bits; /* that change */
	size_t cut;   /* bytes that are left out at the end */
	bool share;   /* each stack has the frames of all */
	uint8_t *answer;
} mutation;

static void share_frames(const uint8_t **answer, size_t *answer_size)
{
	static struct ss_unwound unwound;
	static struct ss_buffer bytes;
	struct ss_cursor cursor = { .at = *answer, .end = *answer + *answer_size };

	assert_true(ss_unwound_decode(&unwound, &cursor));
	for (size_t i = 0; i < unwound.stacks.count; i++) {
		unwound.stacks.items[i].first = 0;
		unwound.stacks.items[i].count = (uint32_t)unwound.frames.count;
	}
	ss_buffer_clear(&bytes);
	ss_unwound_encode(&unwound, &bytes);
	*answer = (const uint8_t *)bytes.bytes;
	*answer_size = bytes.size;
}

static bool serve_mutated(void *data, const struct ss_worker_request *request,
			  volatile int32_t *module_at, const uint8_t **answer,
			  size_t *answer_size)
{
	(void)data;
	if (!ss_unwind_server_serve(mutation.server, request, module_at, answer,
				    answer_size))
		return false;
	if (mutation.share)
		share_frames(answer, answer_size);
	*answer_size -= mutation.cut < *answer_size ? mutation.cut : *answer_size;
	if (mutation.at >= *answer_size)
		return true;
	free(mutation.answer);
	mutation.answer = malloc(*answer_size);
	assert_non_null(mutation.answer);
	memcpy(mutation.answer, *answer, *answer_size);
	mutation.answer[mutation.at] ^= mutation.bits;
	*answer = mutation.answer;
	return true;
}

struct fixture {
	struct ss_arena arena;
	struct ss_unwinder unwinder;
	struct ss_unwinder_space space;
	struct ss_address_space from;
	struct ss_module_set tracked;
	struct ss_target *target;
};

static void track(struct fixture *fixture, const struct ss_capture *capture)
{
	struct ss_module_set *set = &fixture->tracked;

	assert_true(ss_module_set_update(set, capture));
	for (size_t i = 0; i < set->items.count; i++) {
		struct ss_module_entry *entry = &set->items.items[i];
		if (entry->state == SS_MODULE_LOADED)
			entry->id =
				ss_unwinder_add_module(&fixture->unwinder, entry->module);
		if (entry->state == SS_MODULE_UNLOADED)
			ss_unwinder_remove_module(&fixture->unwinder, entry->id);
	}
	ss_module_set_settle(set);
}

/* Two threads of a module, which is our own program; both stand in its first page. */
static void make_capture(struct fixture *fixture)
{
	const struct ss_mapping mapping = { .start = BASE,
					    .end = BASE + SIZE,
					    .prot = 5 };
	struct ss_capture *capture = ss_capture_new();

	assert_non_null(capture);
	struct ss_area *area = ss_vector_push(&capture->areas);
	struct ss_module_impl **module = ss_vector_push(&capture->modules);
	assert_true(area && module);
	*area = (struct ss_area){ .start = BASE,
				  .end = BASE + SIZE,
				  .prot = 5,
				  .name = ss_intern_string(capture->strings, "/module") };
	*module = ss_module_new("/module", BASE, BASE + SIZE);
	assert_non_null(*module);
	assert_true(ss_module_add_mapping(*module, &mapping));
	(*module)->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
		assert_non_null(thread);
		thread->tid = 10 + i;
		thread->syscall.number = -1;
		thread->end = SS_END_ROOT;
		ss_regs_set(&thread->regs, capture->arch->pc, BASE + 0x100);
		ss_regs_set(&thread->regs, capture->arch->sp, 0x1000);
		thread->stacks[0] = (struct ss_stack_copy){
			.address = 0x1000, .size = 4096, .bytes = fixture->arena.bytes
		};
	}
	fixture->from.capture = capture;
	fixture->from.version = 1;
}

static void set_up(struct fixture *fixture)
{
	*fixture = (struct fixture){};
	assert_null(ss_target_open(getppid(), &fixture->target));
	assert_null(ss_arena_share(&fixture->arena, ARENA));
	assert_null(ss_unwinder_init(&fixture->unwinder, fixture->target, &fixture->arena,
				     MAX_FRAMES, NULL, NULL));
	assert_true(ss_unwinder_add_space(&fixture->unwinder, &fixture->space));
	make_capture(fixture);
	track(fixture, fixture->from.capture);
}

static void tear_down(struct fixture *fixture)
{
	track(fixture, NULL);
	ss_module_set_deinit(&fixture->tracked);
	ss_unwinder_remove_space(&fixture->unwinder, &fixture->space);
	ss_unwinder_deinit(&fixture->unwinder);
	ss_capture_free(fixture->from.capture);
	ss_arena_deinit(&fixture->arena);
	ss_target_close(fixture->target);
}

static enum ss_unwinder_result unwind(struct fixture *fixture,
				      const struct ss_unwound **ret)
{
	return ss_unwinder_unwind(&fixture->unwinder, &fixture->space, &fixture->from,
				  &fixture->tracked, fixture->from.capture, NULL, ret);
}

/* What the recorder relies on. */
static void assert_within_bounds(const struct ss_unwound *unwound)
{
	assert_int_equal(unwound->threads.count, 2);
	assert_true(unwound->stacks.count <= 2);
	for (size_t i = 0; i < unwound->threads.count; i++) {
		const struct ss_unwound_thread *thread = &unwound->threads.items[i];
		assert_true(thread->stack < unwound->stacks.count);
		assert_true(!thread->reason ||
			    strlen(ss_unwound_text(unwound, thread->reason)) <= 1024);
	}
	for (size_t i = 0; i < unwound->stacks.count; i++) {
		const struct ss_unwound_stack *stack = &unwound->stacks.items[i];
		assert_true(stack->count <= MAX_FRAMES);
		assert_true(stack->end <= SS_END_GUESSED);
		for (size_t f = 0; f < stack->count; f++) {
			const struct ss_unwound_frame *frame =
				&ss_unwound_frames(unwound, stack)[f];
			assert_true(frame->module == -1 || frame->module == 0);
			assert_true(frame->module == -1 || frame->pc - BASE <= SIZE);
		}
	}
}

TEST(test_unwinds)
{
	struct fixture fixture;
	const struct ss_unwound *unwound = NULL;

	set_up(&fixture);
	assert_true(ss_unwinder_is_down(&fixture.unwinder));
	assert_int_equal(unwind(&fixture, &unwound), SS_UNWINDER_FAILED);
	assert_null(ss_unwinder_start(&fixture.unwinder));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(unwind(&fixture, &unwound), SS_UNWINDER_OK);
		assert_within_bounds(unwound);
		const struct ss_unwound_stack *stack = &unwound->stacks.items[0];
		assert_true(stack->count > 0);
		assert_int_equal(ss_unwound_frames(unwound, stack)->pc, BASE + 0x100);
		assert_int_equal(ss_unwound_frames(unwound, stack)->module, 0);
	}
	const struct ss_unwinder_module *module = &fixture.unwinder.modules.items[0];
	assert_true(module->described);
	assert_int_equal(module->bias, BASE);
	assert_true(strlen(module->build_id) >= 8);
	tear_down(&fixture);
}

/* The address space has a module more, and then one less. */
TEST(test_modules_change)
{
	struct fixture fixture;
	const struct ss_unwound *unwound = NULL;

	set_up(&fixture);
	assert_null(ss_unwinder_start(&fixture.unwinder));
	assert_int_equal(unwind(&fixture, &unwound), SS_UNWINDER_OK);
	struct ss_capture *capture = fixture.from.capture;
	struct ss_module_impl **slot = ss_vector_push(&capture->modules);
	assert_non_null(slot);
	*slot = ss_module_new("/other", 0x400000, 0x401000);
	assert_non_null(*slot);
	fixture.from.version++;
	track(&fixture, capture);
	assert_int_equal(ss_unwinder_sync(&fixture.unwinder, &fixture.space,
					  &fixture.from, &fixture.tracked),
			 SS_UNWINDER_OK);
	assert_true(fixture.unwinder.modules.items[1].described);
	ss_module_unref(capture->modules.items[1]);
	capture->modules.count--;
	fixture.from.version++;
	track(&fixture, capture);
	assert_int_equal(unwind(&fixture, &unwound), SS_UNWINDER_OK);
	assert_int_equal(fixture.space.modules.count, 1);
	tear_down(&fixture);
}

static void use_mutated_worker(struct fixture *fixture)
{
	const struct ss_worker_options options = {
		.serve = serve_mutated,
		.timeout_ms = 10000,
		.confinement = { .receives = 16 },
	};

	ss_worker_free(fixture->unwinder.worker);
	mutation.server = fixture->unwinder.server;
	assert_null(ss_worker_new(&options, &fixture->unwinder.worker));
}

/* Asks a new child. */
static enum ss_unwinder_result ask_mutated(struct fixture *fixture)
{
	const struct ss_unwound *unwound = NULL;
	struct ss_sandbox_failure failure;

	fixture->unwinder.failures = 0;
	if (ss_worker_is_running(fixture->unwinder.worker))
		ss_worker_reject(fixture->unwinder.worker, &failure);
	assert_null(ss_unwinder_start(&fixture->unwinder));
	enum ss_unwinder_result result = unwind(fixture, &unwound);
	if (result == SS_UNWINDER_OK)
		assert_within_bounds(unwound);
	assert_int_equal(ss_worker_is_running(fixture->unwinder.worker),
			 result == SS_UNWINDER_OK);
	return result;
}

TEST(test_corrupted_answers)
{
	static const uint8_t bits[] = { 0x01, 0x80, 0xff };
	enum { ANSWER = 7 * 8 + 128 + 12 + 2 * 16 + 64 }; /* and a few frames */
	struct fixture fixture;
	size_t refused = 0;

	set_up(&fixture);
	use_mutated_worker(&fixture);
	/* Each answer is of a new child, which takes long: one change to a byte, and all with
	   STACKSNAP_TRIES. */
	const size_t changes = getenv("STACKSNAP_TRIES") ? sizeof(bits) : 1;
	for (mutation.at = 0; mutation.at < ANSWER; mutation.at++) {
		for (size_t b = 0; b < changes; b++) {
			mutation.bits = bits[(mutation.at + b) % sizeof(bits)];
			refused += ask_mutated(&fixture) == SS_UNWINDER_FAILED;
		}
	}
	assert_true(refused > 20);
	mutation.at = SIZE_MAX;
	for (mutation.cut = 1; mutation.cut < ANSWER;
	     mutation.cut += changes == 1 ? 7 : 1)
		assert_int_equal(ask_mutated(&fixture), SS_UNWINDER_FAILED);
	mutation.cut = 0;
	assert_int_equal(ask_mutated(&fixture), SS_UNWINDER_OK);
	tear_down(&fixture);
}

/* The work on the stacks of an answer is bounded by its size. */
TEST(test_stacks_share_no_frames)
{
	struct fixture fixture;
	const struct ss_unwound *unwound = NULL;

	set_up(&fixture);
	/* Threads with equal registers may have one stack. */
	ss_regs_set(&fixture.from.capture->threads.items[1].regs,
		    fixture.from.capture->arch->pc, BASE + 0x200);
	use_mutated_worker(&fixture);
	mutation.at = SIZE_MAX;
	assert_null(ss_unwinder_start(&fixture.unwinder));
	assert_int_equal(unwind(&fixture, &unwound), SS_UNWINDER_OK);
	assert_int_equal(unwound->stacks.count, 2);
	mutation.share = true;
	assert_int_equal(ask_mutated(&fixture), SS_UNWINDER_FAILED);
	mutation.share = false;
	assert_int_equal(ask_mutated(&fixture), SS_UNWINDER_OK);
	tear_down(&fixture);
}

/* Nobody is asked any more: each thread has the frame where it stands. */
TEST(test_gives_up)
{
	struct fixture fixture;
	const struct ss_unwound *unwound = NULL;
	unsigned tries = 0;

	set_up(&fixture);
	use_mutated_worker(&fixture);
	mutation.at = 0;
	mutation.bits = 0xff;
	while (!ss_unwinder_gave_up(&fixture.unwinder) && tries++ < 100) {
		assert_null(ss_unwinder_start(&fixture.unwinder));
		assert_int_equal(unwind(&fixture, &unwound), SS_UNWINDER_FAILED);
	}
	assert_true(tries > 3 && tries < 100);
	assert_false(ss_unwinder_is_down(&fixture.unwinder));
	assert_int_equal(unwind(&fixture, &unwound), SS_UNWINDER_OK);
	assert_within_bounds(unwound);
	assert_int_equal(unwound->stacks.items[0].count, 1);
	assert_int_equal(unwound->stacks.items[0].end, SS_END_FRAMES);
	assert_int_equal(unwound->frames.items[0].module, 0);
	assert_true(fixture.unwinder.losses.ticks == tries);
	assert_non_null(
		strstr(fixture.unwinder.losses.text.bytes, "only the innermost frame"));
	tear_down(&fixture);
}
