/*
 * Captures of a series: what a later one takes over from the one before. Threads that are read again.
 */
#include "capture_child.h"

#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/io.h"
#include "capture/tasks.h"
#include "process/target.h"
#include "data/gather.h"

static int orders[2]; /* a pipe to the child */

static pid_t start_listening(child_main *run)
{
	assert_int_equal(pipe(orders), 0);
	pid_t child = start(run);
	(void)close(orders[0]);
	return child;
}

static void stop_listening(pid_t child)
{
	stop(child);
	(void)close(orders[1]);
}

static struct ss_target *open_target(pid_t pid)
{
	struct ss_target *target = NULL;
	_cleanup_error_ struct ss_error *error = ss_target_open(pid, &target);

	if (error)
		fail_msg("%s", ss_error_message(error));
	return target;
}

static struct ss_capture *take_with(struct ss_target *target,
				    const struct ss_capture_options *options)
{
	struct ss_capture *capture = NULL;
	_cleanup_error_ struct ss_error *error =
		ss_capture_take(target, options, &capture);

	if (error)
		fail_msg("%s", ss_error_message(error));
	return capture;
}

static struct ss_capture *take_next(struct ss_target *target,
				    const struct ss_capture *previous,
				    const pid_t *stopped)
{
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = SS_MODE_AUTO,
						    .previous = previous,
						    .stop = stopped,
						    .stop_count = stopped ? 1 : 0 };

	return take_with(target, &options);
}

/* The beginning of a file in /proc of the child. */
static void read_file(pid_t pid, const char *name, char *ret, size_t size)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	assert_int_equal(ss_io_read_path(-1, path, 4096, &text), 0);
	(void)snprintf(ret, size, "%.*s", (int)text.size, (const char *)text.bytes);
}

static bool is_not_leader(void *data, pid_t tid, const char *name, char state)
{
	(void)name;
	(void)state;
	return tid != *(const pid_t *)data;
}

/* Until the call of a thread is known. */
static void wait_for_sleep(pid_t pid, const struct ss_capture *capture)
{
	char path[64];
	char text[16];

	for (size_t i = 0; i < capture->threads.count; i++) {
		(void)snprintf(path, sizeof(path), "task/%d/syscall",
			       capture->threads.items[i].tid);
		do {
			(void)sched_yield();
			read_file(pid, path, text, sizeof(text));
		} while (strncmp(text, "running", 7) == 0);
	}
}

/* That no thread has run is known only if none is left out. */
TEST(test_selection)
{
	pid_t child = start(sleepers);
	struct ss_target *target = open_target(child);
	struct ss_capture_options options = { .size = sizeof(options),
					      .mode = SS_MODE_AUTO };
	struct ss_capture *before = take_with(target, &options);

	wait_for_sleep(child, before);
	for (int selects = 0; selects < 2; selects++) {
		options.filter = selects ? is_not_leader : NULL;
		options.filter_data = &child;
		struct ss_capture *first = NULL;
		struct ss_capture *second = NULL;
		for (int i = 0; i < 3; i++) { /* its files stay open from the second on */
			ss_capture_free(first);
			first = take_ptr(second);
			options.previous = first ? first : before;
			second = take_with(target, &options);
		}
		assert_int_equal(second->threads.count, THREADS - selects);
		for (size_t i = 0; i < second->threads.count; i++)
			assert_true(second->threads.items[i].not_run);
		assert_int_equal(second->not_run, !selects);
		ss_capture_free(before);
		before = second;
		ss_capture_free(first);
	}
	ss_capture_free(before);
	ss_target_close(target);
	stop(child);
}

static struct ss_tracee read_again_in(const struct ss_target *target, pid_t tid,
				      enum ss_task_phase phase)
{
	const struct ss_capture_options options = { .mode = SS_MODE_AUTO };
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_tracee task = { .tid = tid, .state = 'D', .phase = phase };

	ss_task_read_again(&task, target, &options, &text);
	ss_kept_thread_close(&task.files);
	return task;
}

/* What is known of a thread that was in uninterruptible sleep before. */
static struct ss_tracee read_again(const struct ss_target *target, pid_t tid)
{
	return read_again_in(target, tid, SS_TASK_SEEN);
}

TEST(test_read_again)
{
	pid_t child = start(sleepers);
	struct ss_target *target = open_target(child);
	char text[256];

	do { /* it sleeps */
		(void)sched_yield();
		read_file(child, "syscall", text, sizeof(text));
	} while (strncmp(text, "running", 7) == 0);
	struct ss_tracee task = read_again(target, child);
	assert_int_equal(task.phase, SS_TASK_WATCHED);
	assert_int_equal(task.state, 'S');
	assert_false(task.runs);
	/* Its leader stays until it is waited for, and has an entry; another thread has none. */
	assert_int_equal(read_again(target, 1 << 29).phase, SS_TASK_GONE);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT), 0);
	task = read_again(target, child);
	assert_int_equal(task.phase, SS_TASK_ZOMBIE);
	/* Kernel workers end, too. */
	assert_int_equal(read_again_in(target, child, SS_TASK_WORKER).phase,
			 SS_TASK_ZOMBIE);
	assert_int_equal(read_again_in(target, 1 << 29, SS_TASK_WORKER).phase,
			 SS_TASK_GONE);
	ss_target_close(target);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Pages that a plan has read are kept for the next capture, unless its plan reads nodes again: these
   must come from the process. */
TEST(test_plan_that_reads_again)
{
	struct ss_gather_plan plan = {
		.size = sizeof(plan),
		.step_count = 1,
		.max_nodes = 1,
		.max_bytes = 64,
		.max_reads = 2,
		.steps[0] = { .base = SS_GATHER_ADDRESS,
			      .address = (uint64_t)(uintptr_t)orders,
			      .size = sizeof(orders),
			      .max_nodes = 1,
			      .mask = UINT64_MAX },
	};
	struct ss_capture_options options = { .size = sizeof(options),
					      .mode = SS_MODE_AUTO,
					      .plan = &plan };

	orders[0] = orders[1] = -1; /* the child has the page */
	pid_t child = start(sleepers);
	struct ss_target *target = open_target(child);
	struct ss_capture *before = take_with(target, &options);

	for (unsigned i = 0; i < 4; i++) {
		const bool again = i % 2 == 1;
		plan.steps[0].check_size = again ? sizeof(orders) : 0;
		options.previous = before;
		struct ss_capture *capture = take_with(target, &options);
		assert_int_equal(capture->gathered.blocks.count, 1);
		assert_int_equal(!target->kept->pages, again);
		ss_capture_free(before);
		before = capture;
	}
	ss_capture_free(before);
	ss_target_close(target);
	stop(child);
}

/* One that replaces the first capture has its modules, and their files, but not its threads. */
TEST(test_modules_only)
{
	pid_t child = start(sleepers);
	struct ss_target *target = open_target(child);
	struct ss_capture *first = take_next(target, NULL, NULL);
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = SS_MODE_AUTO,
						    .modules = first };
	struct ss_capture *second = NULL;
	_cleanup_error_ struct ss_error *error =
		ss_capture_take(target, &options, &second);
	size_t open = 0;

	if (error)
		fail_msg("%s", ss_error_message(error));
	assert_int_equal(first->modules.count, second->modules.count);
	for (size_t i = 0; i < first->modules.count; i++) {
		if (first->modules.items[i] != second->modules.items[i])
			fail_msg("%s is not shared", second->modules.items[i]->path);
		open += first->modules.items[i]->fd >= 0;
	}
	assert_true(open > 0);
	assert_false(second->threads.items[0].not_run);
	ss_capture_free(first);
	ss_capture_free(second);
	ss_target_close(target);
	stop(child);
}

/* What could not be opened for an earlier capture may be opened now, but for a file that nobody
   permitted to open: that is not tried again soon. */
TEST(test_modules_not_opened)
{
	pid_t child = start(sleepers);
	struct ss_target *target = open_target(child);
	struct ss_capture *first = take_next(target, NULL, NULL);
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = SS_MODE_AUTO,
						    .modules = first };
	struct ss_capture *second = NULL;
	const struct ss_module_impl *refused = NULL;
	const char *problem = NULL;
	size_t others = 0;

	for (size_t i = 0; i < first->modules.count; i++) {
		struct ss_module_impl *module = first->modules.items[i];
		if (module->fd < 0)
			continue;
		(void)close(module->fd);
		module->fd = -1;
		ss_module_set_problem(module, "of the first capture");
		refused = refused ? refused : module;
	}
	assert_non_null(refused);
	target->unresponsive[0] = (struct ss_unresponsive){ .device = refused->device,
							    .inode = refused->inode,
							    .since_ns = ss_now_ns() };
	assert_null(ss_capture_take(target, &options, &second));
	for (size_t i = 0; i < second->modules.count; i++) {
		const struct ss_module_impl *module = second->modules.items[i];
		if (module == refused)
			problem = module->pub.problem;
		else if (module->fd >= 0 && module->pub.problem)
			fail_msg("%s: %s", module->path, module->pub.problem);
		others += module != refused && module->fd >= 0;
	}
	print_message("%s: %s, %zu opened\n", refused->path, problem, others);
	assert_true(refused->fd < 0);
	assert_non_null(refused->bytes);
	assert_non_null(strstr(problem, "fanotify"));
	assert_true(others > 0);
	ss_capture_free(first);
	ss_capture_free(second);
	ss_target_close(target);
	stop(child);
}

/* Until the main thread waits in read(2). */
static void wait_for_read(pid_t pid)
{
	char text[256];

	do {
		(void)sched_yield();
		read_file(pid, "syscall", text, sizeof(text));
	} while (strncmp(text, "0 ", 2) != 0);
}

/* A capture that was completed has stacks in its complement, with which they are freed. */
TEST(test_completed_stacks)
{
	pid_t child = start(sleepers);
	struct ss_target *target = open_target(child);
	char call[256];

	do { /* each sleeps */
		(void)sched_yield();
		read_file(child, "syscall", call, sizeof(call));
	} while (strncmp(call, "running", 7) == 0);
	struct ss_capture *first = take_next(target, NULL, NULL);
	struct ss_capture *second = take_next(target, first, NULL);
	struct ss_capture_thread *thread = &second->threads.items[0];
	struct ss_stack_copy *stack = &thread->stacks[SS_STACK_SP];
	assert_non_null(thread->block);
	assert_true(stack->size > 0);
	/* as ss_capture_complete() does */
	struct ss_capture *complement = ss_capture_new();
	assert_non_null(complement);
	complement->arena_size = stack->size;
	complement->arena = mmap(NULL, stack->size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(complement->arena, MAP_FAILED);
	memcpy(complement->arena, stack->bytes, stack->size);
	stack->bytes = complement->arena;
	second->complement = complement;
	struct ss_capture *third = take_next(target, second, NULL);
	assert_ptr_not_equal(third->threads.items[0].stacks[SS_STACK_SP].bytes,
			     stack->bytes);
	ss_capture_free(first);
	ss_capture_free(second);
	ss_capture_free(third);
	ss_target_close(target);
	stop(child);
}

static int share_memory(void *data)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)alarm(60);
	say_ready(*(const int *)data);
	(void)sleep_for_ever(data);
	return 0;
}

/* Executes another program, while another process keeps its address space. */
static void share_and_execute(int ready)
{
	static _Alignas(16) char stack[1 << 16];
	char byte;

	if (clone(share_memory, stack + sizeof(stack), CLONE_VM | SIGCHLD, &ready) < 0)
		_exit(1);
	if (read(orders[0], &byte, 1) == 1)
		(void)execl("/bin/sleep", "sleep", "1000", NULL);
	_exit(1);
}

static bool has_area(const struct ss_capture *capture, const char *name)
{
	for (size_t i = 0; i < capture->areas.count; i++) {
		const char *found = capture->areas.items[i].name;
		size_t length = found ? strlen(found) : 0;
		if (length >= strlen(name) &&
		    strcmp(found + length - strlen(name), name) == 0)
			return true;
	}
	return false;
}

TEST(test_shared_and_executed)
{
	pid_t child = start_listening(share_and_execute);
	struct ss_target *target = open_target(child);
	char name[64];

	wait_for_read(child);
	struct ss_capture *first = take_next(target, NULL, NULL);
	struct ss_capture *second = take_next(target, first, NULL);
	struct ss_capture *third = take_next(target, second, NULL);
	assert_true(has_area(third, "unit_series_capture"));
	assert_int_equal(write(orders[1], "!", 1), 1);
	do {
		(void)sched_yield();
		read_file(child, "comm", name, sizeof(name));
	} while (strcmp(name, "sleep\n") != 0);
	struct ss_capture *last = take_next(target, third, NULL);
	for (size_t i = 0; i < last->areas.count; i++)
		print_message("%s\n", last->areas.items[i].name);
	assert_true(has_area(last, "/sleep") || has_area(last, "/coreutils"));
	assert_false(has_area(last, "unit_series_capture"));
	ss_capture_free(first);
	ss_capture_free(second);
	ss_capture_free(third);
	ss_capture_free(last);
	ss_target_close(target);
	stop_listening(child);
}

/* Reads in a loop that counts in r12, which is in no memory. */
static void count_reads(int ready)
{
	static char byte;

	say_ready(ready);
#ifdef __x86_64__
	__asm__ volatile("xor %%r12d, %%r12d\n"
			 "1: xor %%eax, %%eax\n"
			 "mov %0, %%edi\n"
			 "mov %1, %%rsi\n"
			 "mov $1, %%edx\n"
			 "syscall\n"
			 "inc %%r12\n"
			 "jmp 1b\n"
			 :
			 : "m"(orders[0]), "r"(&byte)
			 : "rax", "rdi", "rsi", "rdx", "rcx", "r11", "r12", "memory");
#else
	_exit(1);
#endif
}

/* Registers that are not on its stack are those of before only if a thread has not run. */
TEST(test_registers)
{
	enum { R12 = 12, RBP = 6 };
	uint64_t value = 0;

#ifndef __x86_64__
	skip();
#endif
	pid_t child = start_listening(count_reads);
	struct ss_target *target = open_target(child);
	wait_for_read(child);
	struct ss_capture *first = take_next(target, NULL, &child);
	assert_true(ss_regs_get(&first->threads.items[0].regs, R12, &value));
	assert_int_equal(value, 0);
	assert_int_equal(write(orders[1], "!", 1), 1);
	int left = 1;
	while (left > 0) {
		(void)sched_yield();
		assert_int_equal(ioctl(orders[1], FIONREAD, &left), 0);
	}
	wait_for_read(child);
	struct ss_capture *second = take_next(target, first, &child);
	const struct ss_capture_thread *thread = &second->threads.items[0];
	print_message("stopped for %llu ns\n", (unsigned long long)thread->stopped_ns);
	if (ss_regs_get(&thread->regs, R12, &value))
		assert_int_equal(value, 1);
	assert_true(ss_regs_get(&thread->regs, RBP, &value));
	ss_capture_free(first);
	ss_capture_free(second);
	ss_target_close(target);
	stop_listening(child);
}
