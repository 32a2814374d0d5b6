#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "data/names.h"
#include "data/snapshot.h"

static double seconds(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint32_t add(struct ss_snapshot *snapshot, const struct ss_frame *frames,
		    size_t count, enum ss_end end)
{
	uint32_t id = UINT32_MAX;

	assert_true(ss_snapshot_add_stack(snapshot, frames, count, end, &id));
	return id;
}

TEST(test_equal_stacks)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *s = ss_snapshot_new();
	struct ss_module modules[2] = {};
	struct ss_frame a[2] = { { .pc = 1, .module = &modules[0] }, { .pc = 2 } };

	assert_int_equal(add(s, a, 2, SS_END_ROOT), 0);
	assert_int_equal(add(s, a, 2, SS_END_ROOT), 0);
	assert_int_equal(add(s, a, 2, SS_END_LIMIT), 1);
	assert_int_equal(add(s, a, 1, SS_END_ROOT), 2);
	assert_int_equal(add(s, a, 0, SS_END_ROOT), 3);
	assert_int_equal(add(s, NULL, 0, SS_END_ROOT), 3);
	assert_int_equal(add(s, NULL, 0, SS_END_GONE), 4);
	/* The hash is of the pcs alone: these have the same one. */
	a[0].module = &modules[1];
	assert_int_equal(add(s, a, 2, SS_END_ROOT), 5);
	a[1].source = SS_FROM_CFI;
	assert_int_equal(add(s, a, 2, SS_END_ROOT), 6);
	a[1].signal_frame = true;
	assert_int_equal(add(s, a, 2, SS_END_ROOT), 7);
	assert_int_equal(add(s, a, 2, SS_END_ROOT), 7);
}

/* Thousands of stacks of the same frames in another order, each found again, and soon. */
TEST(test_permutations)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *s = ss_snapshot_new();
	enum { DEPTH = 64, COUNT = 20000 };
	struct ss_frame frames[DEPTH] = {};
	double begin = seconds();

	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < COUNT; i++) {
			for (uint64_t f = 0; f < DEPTH; f++)
				frames[f].pc = 0x1000 + f;
			/* Three exchanges, others for each i. */
			for (uint64_t n = i, k = 0; k < 3; k++, n /= DEPTH) {
				uint64_t pc = frames[k].pc;
				frames[k].pc = frames[k + n % (DEPTH - k)].pc;
				frames[k + n % (DEPTH - k)].pc = pc;
			}
			(void)add(s, frames, DEPTH, SS_END_ROOT);
		}
		assert_true(s->stacks.count > COUNT / 2 && s->stacks.count <= COUNT);
	}
	size_t once = s->stacks.count;
	(void)add(s, s->stacks.items[once / 2].frames, DEPTH, SS_END_ROOT);
	assert_int_equal(s->stacks.count, once);
	assert_true(seconds() - begin < 20);
}

TEST(test_recount)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *s = ss_snapshot_new();
	struct ss_frame frames[3] = { { .pc = 1 }, { .pc = 2 }, { .pc = 3 } };

	struct ss_task *thread = ss_vector_push(&s->tasks[SS_TASK_THREAD]);
	thread->stack_id = add(s, frames, 3, SS_END_ROOT);
	s->stacks.items[0].count = 2;
	ss_snapshot_recount(s);
	assert_int_equal(ss_snapshot_task(s, SS_TASK_THREAD, 0)->frame_count, 2);
	assert_int_equal(ss_snapshot_frame(s, thread, 1)->pc, 2);
	ss_snapshot_free(NULL);
}

TEST(test_end_names)
{
	for (int end = SS_END_ROOT; end <= SS_END_GUESSED; end++)
		assert_string_not_equal(ss_end_name((enum ss_end)end), "unknown");
	assert_string_equal(ss_end_name((enum ss_end)999), "unknown");
	assert_string_equal(ss_end_name((enum ss_end) - 1), "unknown");
}

/* A table may lack names between others; the value 0 may have none. */
TEST(test_values_without_names)
{
	static const char *const table[] = { [1] = "one", [3] = "three" };
	const struct ss_names names = { .names = table, .count = SS_ARRAY_SIZE(table) };

	assert_null(ss_names_at(&names, 0));
	assert_string_equal(ss_names_at(&names, 1), "one");
	assert_string_equal(ss_names_at(&names, 2), "unknown");
	assert_string_equal(ss_names_at(&names, 3), "three");
	assert_string_equal(ss_names_at(&names, 4), "unknown");
}

/* A module's bytes: to their end and not beyond. */
TEST(test_module_read)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *m =
		ss_module_new("/x", 0x1000, 0x2000);
	char bytes[8];

	assert_int_equal(ss_module_read(m, 0, bytes, 8), -ENODATA);
	m->bytes = (uint8_t *)strdup("abcd");
	m->size = 4;
	assert_int_equal(ss_module_read(m, 1, bytes, 8), 3);
	assert_int_equal(ss_module_read(m, 4, bytes, 8), 0);
	assert_int_equal(ss_module_read(m, UINT64_MAX, bytes, 8), 0);
	assert_true(ss_module_set_build_id(m, (uint8_t[100]){ 0xab }, 100));
	assert_int_equal(strlen(m->pub.build_id), 2 * SS_BUILD_ID_MAX);
	assert_memory_equal(m->pub.build_id, "ab00", 4);
	ss_module_set_problem(m, "first %d", 1);
	ss_module_set_problem(m, "second");
	assert_string_equal(m->pub.problem, "first 1");
}

static bool is_odd(void *data, pid_t tid, const char *name, char state)
{
	size_t *calls = data;

	++*calls;
	return tid % 2 || strcmp(name, "kernel's") == 0 || state == 'D';
}

/* The threads that are not selected are behind the others; what refers to threads follows. */
TEST(test_select)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *s = ss_snapshot_new();
	size_t members[] = { 0, 3 };
	size_t calls = 0;

	for (pid_t tid = 10; tid < 15; tid++)
		*ss_vector_push(&s->tasks[SS_TASK_THREAD]) =
			(struct ss_task){ .tid = tid,
					  .name = "shown",
					  .comm = tid == 14 ? "kernel's" : "shown",
					  .state = 'S' };
	*ss_vector_push(&s->deadlocks) =
		(struct ss_deadlock){ .threads = members, .count = 2 };
	*ss_vector_push(&s->blockers) = (struct ss_blocker){ .thread = 2 };
	struct ss_thread_ref refs[] = { { s, &s->tasks[SS_TASK_THREAD].items[1] } };
	*ss_vector_push(&s->cycles) = (struct ss_cycle){ .members = refs, .count = 1 };
	assert_true(ss_snapshot_select(s, is_odd, &calls));
	assert_int_equal(calls,
			 6); /* the name of the kernel, too, if it is another one */
	assert_int_equal(ss_snapshot_task_count(s, SS_TASK_THREAD), 3);
	assert_int_equal(s->not_shown, 2);
	static const pid_t order[] = { 11, 13, 14, 10, 12 };
	for (size_t i = 0; i < SS_ARRAY_SIZE(order); i++) {
		assert_int_equal(ss_snapshot_task(s, SS_TASK_THREAD, i)->tid, order[i]);
		assert_ptr_equal(ss_snapshot_find_thread(s, order[i]),
				 ss_snapshot_task(s, SS_TASK_THREAD, i));
	}
	assert_null(ss_snapshot_find_thread(s, 15));
	assert_int_equal(members[0], 3);
	assert_int_equal(members[1], 1);
	assert_int_equal(s->blockers.items[0].thread, 4);
	assert_ptr_equal(refs[0].thread, ss_snapshot_task(s, SS_TASK_THREAD, 0));
}
