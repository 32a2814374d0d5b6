#include "view_sample.h"

#include "base/cleanup.h"
#include "output/diff.h"

enum { THREADS = 41 };

/* Threads of another process with the same stacks, in an order that step determines. Some are in
   functions that are inlined at the same places. */
static struct ss_snapshot *make(pid_t pid, size_t step)
{
	struct ss_snapshot *snapshot = sample_new();

	snapshot->process.pid = pid;
	for (size_t i = 0; i < THREADS; i++) {
		size_t k = i * step % THREADS;
		struct ss_frame frame = sample_frame(snapshot, SAMPLE_PROGRAM,
						     0x100 + k * 7 % THREADS, "work");
		frame.inlined = k % 3 == 0;
		sample_add_thread(snapshot, pid + (pid_t)i, "worker", &frame, 1,
				  SS_END_ROOT);
	}
	return snapshot;
}

/* Each thread finds one with an equal stack. */
static void test_matched_by_stack(void **state)
{
	(void)state;
	for (size_t step = 1; step < THREADS; step++) {
		_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *before = make(100, 1);
		_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *after =
			make(200, step);
		const struct ss_diff_input input = { .before.snapshot = before,
						     .after.snapshot = after };
		_cleanup_(ss_diff_cleanup) struct ss_diff *diff = ss_diff_new(&input);

		assert_non_null(diff);
		if (diff->counts[SS_UNCHANGED] != THREADS)
			fail_msg("step %zu: %zu of %d threads are unchanged", step,
				 diff->counts[SS_UNCHANGED], THREADS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matched_by_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
