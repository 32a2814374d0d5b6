#include "view_sample.h"

#include <stdlib.h>

#include "base/cleanup.h"

static char *render(const struct ss_snapshot *snapshot,
		    const struct ss_format_options *options)
{
	_cleanup_free_ char *text = sample_render(&ss_format_text, snapshot, options);
	const char *body = strstr(text, "\n\n"); /* the first line has the local time */

	assert_non_null(body);
	char *copy = strdup(body + 2);
	assert_non_null(copy);
	return copy;
}

/* The second line of what is written for a snapshot. */
static char *second_line(const struct ss_snapshot *snapshot)
{
	_cleanup_free_ char *text = sample_render(&ss_format_text, snapshot, NULL);
	char *begin = strchr(text, '\n');

	assert_non_null(begin);
	char *line = strndup(begin + 1, strcspn(begin + 1, "\n"));
	assert_non_null(line);
	return line;
}

static void assert_second_line(const struct ss_snapshot *snapshot, const char *expected)
{
	_cleanup_free_ char *line = second_line(snapshot);

	assert_string_equal(line, expected);
}

TEST(test_header)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	_cleanup_free_ char *text = NULL;

	snapshot->process.threads_unseen = 2;
	sample_add_thread(snapshot, 100, "shop", NULL, 0, SS_END_ROOT);
	text = sample_render(&ss_format_text, snapshot, NULL);
	assert_non_null(strstr(text, "shop, pid 100, /opt/shop/shop, "));
	assert_non_null(strstr(text, "\nincomplete: 2 more threads exist, but could "
				     "not be read\n"));
}

TEST(test_second_line_says_what_was_paused)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_process *process = &snapshot->process;

	process->stopped_ns = 410000;
	process->running_stopped_ns = 50000;
	process->threads_stopped = 1;
	process->consistent = true;
	sample_add_thread(snapshot, 100, "shop", NULL, 0, SS_END_ROOT);
	assert_second_line(snapshot, "1 thread; paused 0.41 ms, atomic");
	sample_add_thread(snapshot, 101, "a", NULL, 0, SS_END_ROOT);
	sample_add_thread(snapshot, 102, "b", NULL, 0, SS_END_ROOT);
	assert_second_line(snapshot,
			   "3 threads; paused 0.41 ms (1 of 3 threads), atomic");
	process->threads_stopped = 2;
	assert_second_line(snapshot, "3 threads; paused 0.41 ms (2 of 3 threads, running "
				     "ones at most 0.050 ms), atomic");
	process->threads_stopped = 3;
	process->running_stopped_ns = 0;
	assert_second_line(snapshot, "3 threads; paused 0.41 ms (all threads), atomic");
	process->mode = SS_MODE_LIVE;
	assert_second_line(snapshot, "3 threads; paused 0.41 ms (all threads), including "
				     "unwinding, atomic");
	process->mode = SS_MODE_AUTO;
	process->threads_stopped = 0;
	assert_second_line(snapshot, "3 threads; no thread was paused, atomic");
}

TEST(test_second_line_says_why_it_is_not_atomic)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame stack[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x10, "poll"),
	};
	struct ss_process *process = &snapshot->process;

	process->consistent = false;
	process->threads_stopped = 0;
	sample_add_thread(snapshot, 100, "shop", stack, 1, SS_END_ROOT);
	struct ss_task *thread =
		sample_add_thread(snapshot, 101, "a", stack, 1, SS_END_ROOT);
	assert_second_line(snapshot,
			   "2 threads; no thread was paused, not atomic: threads "
			   "were read one after another");
	process->threads_unseen = 1;
	assert_second_line(snapshot, "2 threads; no thread was paused, not atomic: some "
				     "threads were not captured");
	thread->consistent = false;
	assert_second_line(snapshot,
			   "2 threads; no thread was paused, not atomic: 1 thread "
			   "changed while being read");
	thread->consistent = true;
	process->threads_unseen = 0;
	process->threads_stopped = 2;
	process->stopped_ns = 21000000;
	process->running_stopped_ns = 0;
	assert_second_line(snapshot, "2 threads; paused 21.00 ms (all threads), not "
				     "atomic: threads were paused at different times");
}

TEST(test_equal_stacks_are_merged)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame main_stack[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x10, "poll"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x20, "main"),
	};
	const struct ss_frame worker[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x30, "futex_wait"),
	};

	sample_add_thread(snapshot, 100, "shop", main_stack, 2, SS_END_ROOT);
	sample_add_thread(snapshot, 101, "worker-1", worker, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 102, "worker-2", worker, 1, SS_END_ROOT)->state = 'R';
	sample_add_thread(snapshot, 103, "worker-3", worker, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 105, "io", worker, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 106, "T-1 (run)", worker, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 107, "T-2 (get)", worker, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 108, "T-3 (run)", worker, 1, SS_END_ROOT);
	_cleanup_free_ char *text = render(snapshot, NULL);
	assert_string_equal(text, "7 threads, 1 running, 6 sleeping, paused 0.30 ms: T-2 "
				  "(get) 107; T-* (run) 106,108; io 105; worker-* "
				  "101-103\n"
				  "  #0  futex_wait+0x10 (libc.so.6)\n"
				  "\n"
				  "main thread, sleeping, paused 0.30 ms: shop 100\n"
				  "  #0  poll+0x10 (libc.so.6)\n"
				  "  #1  main+0x10 (shop)\n");
}

static void add_idle(struct ss_snapshot *snapshot, pid_t tid, uint64_t offset,
		     enum ss_end end)
{
	static const struct ss_wait wait = { .kind = SS_WAIT_SIGNAL };
	const struct ss_frame frame = sample_frame(snapshot, SAMPLE_LIBC, offset, "f");

	sample_add_thread(snapshot, tid, "w", &frame, 1, end)->wait = &wait;
}

TEST(test_idle_threads_are_one_line)
{
	static const char main_thread[] = "main thread, sleeping, paused 0.30 ms: w 100\n"
					  "  waits for a signal\n"
					  "  #0  f+0x10 (libc.so.6)\n";
	const struct ss_format_options all = { .size = sizeof(all), .all = true };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	char expected[200];

	add_idle(snapshot, 101, 1, SS_END_ROOT);
	add_idle(snapshot, 100, 2, SS_END_ROOT);
	_cleanup_free_ char *one = render(snapshot, NULL);
	assert_non_null(strstr(one, "\n1 thread, sleeping")); /* not worth it */
	add_idle(snapshot, 102, 3, SS_END_ROOT);
	_cleanup_free_ char *few = render(snapshot, NULL);
	assert_null(strstr(few, "idle"));
	add_idle(snapshot, 103, 1, SS_END_ROOT);
	add_idle(snapshot, 106, 5, SS_END_ROOT);
	_cleanup_free_ char *more = render(snapshot, NULL);
	(void)snprintf(expected, sizeof(expected), "%s%s", main_thread,
		       "\n4 idle threads in 3 groups; -a shows them\n");
	assert_string_equal(more, expected);
	add_idle(snapshot, 104, 4, SS_END_LIMIT);
	sample_add_thread(snapshot, 105, "r", NULL, 0, SS_END_ROOT)->state = 'R';
	_cleanup_free_ char *runs = render(snapshot, NULL);
	assert_string_equal(runs, "1 thread, running, paused 0.30 ms: r 105\n"
				  "\n"
				  "6 idle threads in 5 groups, 1 with an incomplete "
				  "stack; -a shows them\n");
	_cleanup_free_ char *whole = render(snapshot, &all);
	assert_null(strstr(whole, "idle"));
	assert_non_null(strstr(whole, "w 100\n"));
	assert_non_null(strstr(whole, "w 104\n"));
}

TEST(test_threads_of_an_interpreter)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame stack[] = { sample_frame(snapshot, SAMPLE_LIBC, 0x10,
						       "rb_vm_exec") };

	sample_add_thread(snapshot, 101, "a", stack, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 102, "b", stack, 1, SS_END_ROOT);
	_cleanup_free_ char *text = render(snapshot, NULL);
	assert_string_equal(text, "1 thread, sleeping, paused 0.30 ms: a 101\n"
				  "  #0  rb_vm_exec+0x10 (libc.so.6)\n"
				  "\n"
				  "1 thread, sleeping, paused 0.30 ms: b 102\n"
				  "  the same native frames; functions of the "
				  "interpreted program are not known\n");
}

TEST(test_ids_of_another_pid_namespace)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame stack[] = { sample_frame(snapshot, SAMPLE_LIBC, 0x10,
						       "f") };
	static const struct {
		pid_t tid;
		pid_t inner_tid;
	} threads[] = { { 100, 1 },  { 101, 8 },  { 102, 9 }, { 103, 10 },
			{ 104, 12 }, { 105, 13 }, { 106, 0 }, { 107, 107 } };

	snapshot->process.inner_pid = 1;
	for (size_t i = 0; i < SS_ARRAY_SIZE(threads); i++)
		sample_add_thread(snapshot, threads[i].tid, "shop", stack, 1, SS_END_ROOT)
			->inner_tid = threads[i].inner_tid;
	_cleanup_free_ char *whole = sample_render(&ss_format_text, snapshot, NULL);
	assert_non_null(strstr(whole, "shop, pid 100[1 in its pid namespace], /opt"));
	_cleanup_free_ char *text = render(snapshot, NULL);
	assert_string_equal(text,
			    "main thread and 7 more threads, sleeping, paused 0.30 ms: "
			    "shop 100[1],101-103[8-10],104,105[12,13],106,107\n"
			    "  #0  f+0x10 (libc.so.6)\n");
}

TEST(test_frozen)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	snapshot->process.frozen = "/shop.slice/a\033b";
	sample_add_thread(snapshot, 100, "shop", NULL, 0, SS_END_ROOT);
	_cleanup_free_ char *whole = sample_render(&ss_format_text, snapshot, NULL);
	assert_non_null(strstr(whole, "\nfrozen by the cgroup /shop.slice/a\\x1bb: no "
				      "thread runs until it is thawed\n\n"));
}

static bool names_blocker(const struct ss_snapshot *snapshot, bool verbose)
{
	const struct ss_format_options options = { .size = sizeof(options),
						   .all = true,
						   .verbose = verbose };
	_cleanup_free_ char *text = render(snapshot, &options);

	return strstr(text, "through 1 lock, for thread 100 ");
}

/* Threads that take turns in accepting connections are no claim. A thread that waits for another event with the lock
   held is one, and so is one for which a thread outside of the pool waits. */
TEST(test_accepting_in_turn)
{
	static const struct ss_wait lock = { .kind = SS_WAIT_MUTEX,
					     .address = 0x10,
					     .owner_tid = 100 };
	struct ss_wait accepts = { .kind = SS_WAIT_ACCEPT };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_blocker *blocker = ss_vector_push(&snapshot->blockers);

	sample_add_waiting(snapshot, 100, 1, "take_request", &accepts);
	sample_add_waiting(snapshot, 101, 2, "take_request", &lock);
	sample_add_waiting(snapshot, 102, 3, "take_request", &lock);
	*blocker = (struct ss_blocker){ .waiting = 2, .locks = 1 };
	assert_false(names_blocker(snapshot, false));
	assert_true(names_blocker(snapshot, true));
	accepts.kind = SS_WAIT_CONDVAR;
	assert_true(names_blocker(snapshot, false));
	accepts.kind = SS_WAIT_ACCEPT;
	sample_add_waiting(snapshot, 103, 4, "end_request", &lock);
	blocker->waiting = 3;
	assert_true(names_blocker(snapshot, false));
}

TEST(test_no_group_keeps_threads_apart)
{
	const struct ss_format_options options = { .size = sizeof(options),
						   .no_group = true };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame stack[] = { sample_frame(snapshot, SAMPLE_LIBC, 0x10,
						       "f") };

	sample_add_thread(snapshot, 100, "shop", stack, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 101, "shop", stack, 1, SS_END_ROOT);
	_cleanup_free_ char *text = render(snapshot, &options);
	assert_string_equal(text, "main thread, sleeping, paused 0.30 ms: shop 100\n"
				  "  #0  f+0x10 (libc.so.6)\n"
				  "\n"
				  "1 thread, sleeping, paused 0.30 ms: shop 101\n"
				  "  #0  f+0x10 (libc.so.6)\n");
}

TEST(test_every_kind_of_frame)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_frame stack[] = {
		sample_frame(snapshot, SAMPLE_NOWHERE, 0x0, NULL),
		sample_frame(snapshot, SAMPLE_NOWHERE, 0x7f10, NULL),
		sample_frame(snapshot, SAMPLE_NOWHERE, 0x7f20, "java.lang.Run"),
		sample_frame(snapshot, SAMPLE_LIBC, 0x10, "__restore_rt"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x20, NULL),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x30, "inner"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x30, "outer\033"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x40, "maybe"),
	};

	stack[1].area = "[jit]";
	stack[1].area_offset = 0x10;
	stack[2].area = "[heap]";
	stack[3].signal_frame = true;
	stack[5].inlined = true;
	stack[5].file = "../src/./shop.c";
	stack[5].line = 7;
	stack[6].file = "/home/of/somebody/who/builds/in/a/deep/place/src/shop.c";
	stack[7].source = SS_FROM_RETURN_ADDRESS;
	sample_add_thread(snapshot, 100, "shop", stack, 8, SS_END_LIMIT);
	_cleanup_free_ char *text = render(snapshot, NULL);
	assert_string_equal(strchr(text, '\n') + 1,
			    "  #0  [unmapped]+0x0\n"
			    "  #1  [jit]+0x10\n"
			    "  #2  java.lang.Run+0x10 ([heap])\n"
			    "  #3  <signal handler called> (libc.so.6)\n"
			    "  #4  shop+0x20\n"
			    "  #5  inner at src/./shop.c:7 [inlined]\n"
			    "  #6  outer\\x1b+0x10 at src/shop.c (shop)\n"
			    "  #7  maybe+0x10 [heuristic] (shop)\n"
			    "  -- truncated: the rest of the stack was not copied "
			    "[limit]; --max-stack=2048 "
			    "copies more\n"
			    "  -- not certain: [heuristic] frames are guesses, and "
			    "frames may be missing\n");
}

TEST(test_raw)
{
	const struct ss_format_options options = { .size = sizeof(options), .raw = true };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame stack[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x11, NULL),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x21, NULL),
	};

	sample_add_thread(snapshot, 100, "shop", stack, 2, SS_END_ROOT);
	_cleanup_free_ char *text = render(snapshot, &options);
	assert_string_equal(strchr(text, '\n') + 1, "  #0  libc.so.6+0x10 [abcd]\n"
						    "  #1  shop+0x20 [no build-id]\n");
}

/* leaf, then 50,000 times a and b in turn, then main */
static struct ss_task *add_recursion(struct ss_snapshot *snapshot, size_t turns)
{
	size_t count = 2 * turns + 2;
	_cleanup_free_ struct ss_frame *stack = calloc(count, sizeof(*stack));

	assert_non_null(stack);
	stack[0] = sample_frame(snapshot, SAMPLE_PROGRAM, 0x10, "leaf");
	for (size_t i = 1; i + 1 < count; i++)
		stack[i] = i % 2 ? sample_frame(snapshot, SAMPLE_PROGRAM, 0x20, "a") :
				   sample_frame(snapshot, SAMPLE_PROGRAM, 0x30, "b");
	stack[count - 1] = sample_frame(snapshot, SAMPLE_PROGRAM, 0x40, "main");
	return sample_add_thread(snapshot, 100, "shop", stack, count, SS_END_ROOT);
}

TEST(test_recursion_is_collapsed)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	add_recursion(snapshot, 25000);
	_cleanup_free_ char *text = render(snapshot, NULL);
	assert_string_equal(
		strchr(text, '\n') + 1,
		"  #0     leaf+0x10 (shop)\n"
		"  #1     a+0x10 (shop)\n"
		"  #2     b+0x10 (shop)\n"
		"     ... the same 2 frames 24,999 more times (-v shows all)\n"
		"  #50001 main+0x10 (shop)\n");
}

TEST(test_verbose_collapses_nothing)
{
	const struct ss_format_options options = { .size = sizeof(options),
						   .verbose = true };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	add_recursion(snapshot, 500);
	_cleanup_free_ char *text = render(snapshot, &options);
	assert_null(strstr(text, "the same"));
	assert_non_null(
		strstr(text, "  #1000 b+0x10 (shop)\n  #1001 main+0x10 (shop)\n"));
}

TEST(test_no_thread_is_omitted_silently)
{
	const struct ss_format_options verbose = { .size = sizeof(verbose),
						   .verbose = true };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	for (pid_t tid = 200; tid < 300; tid += 2)
		sample_add_thread(snapshot, tid, "w", NULL, 0, SS_END_RUNNING);
	_cleanup_free_ char *text = render(snapshot, NULL);
	assert_non_null(strstr(text, ": w 200,202,204,206,208,210,212,214,216,218,220,222"
				     " and 38 more (-v lists them)\n"));
	_cleanup_free_ char *all = render(snapshot, &verbose);
	assert_non_null(strstr(all, ",296,298\n"));
}

TEST(test_long_symbols_are_truncated)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	char symbol[1001];

	memset(symbol, 'x', 1000);
	symbol[1000] = '\0';
	const struct ss_frame stack[] = { sample_frame(snapshot, SAMPLE_LIBC, 1,
						       symbol) };
	sample_add_thread(snapshot, 100, "shop", stack, 1, SS_END_ROOT);
	_cleanup_free_ char *text = render(snapshot, NULL);
	assert_non_null(strstr(text, "xx...(840 more)+0x10"));
}

/* The remaining time is shown for one thread; it does not keep equal waits apart. */
TEST(test_time_limits_of_a_group)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_wait waits[3];

	for (int i = 0; i < 3; i++) {
		const struct ss_frame stack[] = { sample_frame(snapshot, SAMPLE_LIBC, 1,
							       "cond_timedwait") };
		waits[i] = (struct ss_wait){ .kind = SS_WAIT_CONDVAR,
					     .lock = SS_LOCK_CONDVAR,
					     .address = i < 2 ? 0x10 : 0x20,
					     .fd = -1,
					     .timed = true,
					     .timeout_ns = -1,
					     .left_ns = (i + 1) * INT64_C(1000000000) };
		sample_add_thread(snapshot, 100 + i, "pool", stack, 1, SS_END_ROOT)
			->wait = &waits[i];
	}
	_cleanup_free_ char *text = render(snapshot, NULL);
	assert_non_null(strstr(text, "  2 wait for condition variable at 0x10, with "
				     "a time limit\n"));
	assert_non_null(strstr(text, "  1 waits for condition variable at 0x20, 3 s "
				     "left\n"));
	waits[1].left_ns = waits[0].left_ns;
	_cleanup_free_ char *equal = render(snapshot, NULL);
	assert_non_null(
		strstr(equal, "  2 wait for condition variable at 0x10, 1 s left\n"));
}

/* A stop would not find the register of a thread that was stopped. */
TEST(test_missing_register)
{
	static const struct {
		enum ss_mode mode;
		uint64_t stopped_ns;
		const char *remedy; /* or NULL */
	} cases[] = {
		{ SS_MODE_AUTO, 0, "see \"Interrupted system calls\"" },
		{ SS_MODE_STOP, 0, "see \"Interrupted system calls\"" },
		{ SS_MODE_STOP, 1000, NULL },
		{ SS_MODE_AUTO, 1000, NULL },
		{ SS_MODE_NO_STOP, 0, "--mode=auto" },
		{ SS_MODE_CORE, 0, NULL },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot =
			sample_new();
		const struct ss_frame stack[] = {
			sample_frame(snapshot, SAMPLE_LIBC, 0x10, "poll"),
		};
		snapshot->process.mode = cases[i].mode;
		sample_add_thread(snapshot, 100, "shop", stack, 1, SS_END_REGISTER)
			->stopped_ns = cases[i].stopped_ns;
		_cleanup_free_ char *text =
			sample_render(&ss_format_text, snapshot, NULL);
		const char *end = strstr(text, "required register is unknown [register]");
		assert_non_null(end);
		end += strlen("required register is unknown [register]");
		if (cases[i].remedy)
			assert_non_null(strstr(end, cases[i].remedy));
		else
			assert_int_equal(*end, '\n');
	}
}
