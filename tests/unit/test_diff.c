#include "view_sample.h"

#include "base/cleanup.h"
#include "report/diff.h"

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
TEST(test_matched_by_stack)
{
	for (size_t step = 1; step < THREADS; step++) {
		_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *before = make(100, 1);
		_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *after =
			make(200, step);
		const struct ss_diff_input input = { .before.snapshot = before,
						     .after.snapshot = after };
		_cleanup_(ss_diff_cleanup) struct ss_diff *diff =
			ss_diff_new(&input, SS_TASK_THREAD, NULL);

		assert_non_null(diff);
		if (diff->counts[SS_UNCHANGED] != THREADS)
			fail_msg("step %zu: %zu of %d threads are unchanged", step,
				 diff->counts[SS_UNCHANGED], THREADS);
	}
}

static struct ss_snapshot *make_functions(const char *symbol, const char *file,
					  uint32_t line, enum ss_frame_kind kind)
{
	struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame frames[] = {
		sample_function(kind, symbol, file, line),
		sample_function(SS_FRAME_PYTHON, "main", "a.py", 50),
	};

	snapshot->process.pid = 100;
	sample_add_thread(snapshot, 100, "worker", frames, SS_ARRAY_SIZE(frames),
			  SS_END_ROOT);
	return snapshot;
}

/* Functions of runtimes have no module and no offset: their file and line tell the place. */
TEST(test_functions_of_runtimes)
{
	static const struct {
		const char *symbol;
		const char *file;
		uint32_t line;
		enum ss_frame_kind kind;
		enum ss_change change;
	} cases[] = {
		{ "work", "a.py", 10, SS_FRAME_PYTHON, SS_UNCHANGED },
		{ "work", "a.py", 30, SS_FRAME_PYTHON, SS_MOVED },
		{ "work", "b.py", 10, SS_FRAME_PYTHON, SS_MOVED },
		{ "other", "a.py", 10, SS_FRAME_PYTHON, SS_MOVED },
		{ "work", "a.py", 10, SS_FRAME_JAVASCRIPT, SS_MOVED },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *before =
			make_functions("work", "a.py", 10, SS_FRAME_PYTHON);
		_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *after = make_functions(
			cases[i].symbol, cases[i].file, cases[i].line, cases[i].kind);
		const struct ss_diff_input input = { .before.snapshot = before,
						     .after.snapshot = after };
		_cleanup_(ss_diff_cleanup) struct ss_diff *diff =
			ss_diff_new(&input, SS_TASK_THREAD, NULL);

		assert_non_null(diff);
		if (diff->counts[cases[i].change] != 1)
			fail_msg("case %zu: %zu unchanged, %zu moved", i,
				 diff->counts[SS_UNCHANGED], diff->counts[SS_MOVED]);
	}
}
