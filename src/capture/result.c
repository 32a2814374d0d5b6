#include "capture/result.h"

#include <limits.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/search.h"

/* Why there is no stack to unwind. ROOT: there is one. */
static enum ss_end end_of(const struct ss_tracee *task)
{
	bool copied = task->stacks[0].size > 0;

	switch (task->phase) {
	case SS_TASK_SLEPT:
		return SS_END_NOT_STOPPED;
	case SS_TASK_ZOMBIE:
	case SS_TASK_WORKER:
		return SS_END_ROOT; /* complete: it has no stack */
	case SS_TASK_RELEASED:
		if (copied || task->live)
			return SS_END_ROOT;
		return task->reason ? SS_END_LIMIT : SS_END_UNREADABLE;
	case SS_TASK_REFUSED:
		return copied ? SS_END_ROOT : SS_END_TRACED;
	case SS_TASK_DENIED:
		return SS_END_DENIED;
	case SS_TASK_INTERRUPTED:
		if (copied)
			return SS_END_ROOT;
		return task->state == 'R' ? SS_END_RUNNABLE : SS_END_NOT_STOPPED;
	case SS_TASK_SEEN:
	case SS_TASK_WATCHED:
	case SS_TASK_STEADY:
		if (task->partial && !copied)
			return SS_END_UNREADABLE;
		if (copied)
			return SS_END_ROOT;
		return task->spared || task->moves_data ? SS_END_RUNNABLE :
							  SS_END_RUNNING;
	default:
		return SS_END_GONE;
	}
}

static const char *reason_of(const struct ss_tracee *task)
{
	if (task->phase == SS_TASK_SLEPT)
		return "it went to sleep before it stopped";
	if (task->reason)
		return task->reason;
	switch (task->phase) {
	case SS_TASK_ZOMBIE:
		return "has ended (pthread_exit); listed until all other threads have "
		       "ended";
	case SS_TASK_WORKER:
		return "kernel worker (io_uring, vhost): has no user-space stack";
	case SS_TASK_GONE:
		return "ended during the capture";
	case SS_TASK_RELEASED:
		return task->arch->attach->is_new(&task->kernel) ?
			       "new thread; has not run yet" :
			       NULL;
	default:
		return NULL;
	}
}

/* The kernel has preserved those that its interface does not use. A thread that has run since may
   have others than then, though its stack is the same: a loop around a system call keeps its index
   or its lock in one. The frame pointer belongs to the stack. */
static void add_registers(const struct ss_arch *arch, struct ss_capture_thread *thread,
			  const struct ss_capture_thread *before, bool not_run)
{
	uint64_t value;

	for (unsigned reg = 0; reg < SS_REG_MAX; reg++)
		if ((not_run || reg == arch->fp) && !ss_regs_has(&thread->regs, reg) &&
		    ss_regs_get(&before->regs, reg, &value))
			ss_regs_set(&thread->regs, reg, value);
	thread->thread_pointer = before->thread_pointer;
}

/* Of a thread, from what was copied of its stack. */
static bool read_copied(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct ss_capture_thread *thread = data;

	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &thread->stacks[i];
		if (!copy->bytes || address < copy->address ||
		    address - copy->address > copy->size ||
		    ss_stack_copy_present(copy, address - copy->address) < size)
			continue;
		memcpy(bytes, copy->bytes + (address - copy->address), size);
		return true;
	}
	return false;
}

static void fill_registers(struct ss_capture_thread *thread, const struct ss_tracee *task)
{
	if (task->partial) {
		thread->syscall.number = task->call.number;
		thread->syscall.id = ss_arch_syscall_id(task->arch, task->call.number);
		memcpy(thread->syscall.args, task->call.args, sizeof(task->call.args));
		ss_arch_regs_blocked(task->arch, task->call.pc, task->call.sp,
				     &thread->syscall, &thread->regs);
		if (task->in_call)
			task->arch->attach->regs(&task->kernel, &thread->regs);
		else if (task->before)
			add_registers(task->arch, thread, task->before, task->not_run);
	} else if (task->phase == SS_TASK_RELEASED) {
		task->arch->attach->regs(&task->kernel, &thread->regs);
		task->arch->attach->syscall(&task->kernel, &thread->syscall);
		if (task->arch->unfold)
			task->arch->unfold(&thread->syscall, read_copied, thread);
		thread->thread_pointer =
			task->arch->attach->thread_pointer(&task->kernel);
		thread->not_started = task->arch->attach->is_new(&task->kernel);
	} else {
		thread->syscall.number = -1;
	}
}

static bool has_no_stack(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_ZOMBIE || task->phase == SS_TASK_WORKER;
}

static void fill_thread(struct ss_capture_thread *thread, struct ss_tracee *task,
			const char *reason)
{
	*thread = (struct ss_capture_thread){
		.tid = task->tid,
		.state = task->state,
		.stopped_ns = task->stopped_ns,
		.end = end_of(task),
		.reason = reason,
		.wchan = task->wchan,
		.kernel_stack = task->kernel_stack,
		.consistent = task->phase == SS_TASK_RELEASED ||
			      task->phase == SS_TASK_SLEPT || task->consistent ||
			      has_no_stack(task),
		.fragile = task->fragile && task->partial,
		.run_count = task->partial && !task->in_call ? task->run_count : 0,
		.not_run = task->phase == SS_TASK_STEADY && task->before && task->not_run,
		.worker = task->phase == SS_TASK_WORKER,
		.turn = task->turn,
		.live = take_ptr(task->live),
		.live_count = task->live_count,
		.live_end = task->live_end,
	};
	memcpy(thread->name, task->comm, sizeof(thread->name));
	memcpy(thread->stacks, task->stacks, sizeof(thread->stacks));
	thread->lock = task->lock;
	fill_registers(thread, task);
}

static bool is_listed(const struct ss_tracee *task)
{
	/* A thread that ended before it was attached did not exist during the freeze. */
	return task->phase != SS_TASK_EXCLUDED && task->phase != SS_TASK_GONE;
}

SS_DEFINE_COMPARE(compare_threads, struct ss_capture_thread, tid)

struct ss_error *ss_result_fill_threads(struct ss_capture *capture,
					struct ss_task_list *tasks)
{
	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		if (!is_listed(task))
			continue;
		struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
		if (!thread)
			return ss_error_no_memory();
		const char *reason = reason_of(task);
		if (reason)
			reason = ss_intern_string(capture->strings, reason);
		fill_thread(thread, task, reason);
	}
	/* The freeze has reordered the tasks. */
	if (capture->threads.count > 1)
		qsort(capture->threads.items, capture->threads.count,
		      sizeof(*capture->threads.items), compare_threads);
	return NULL;
}

const char *ss_result_executable(struct ss_capture *capture,
				 const struct ss_target *target)
{
	char path[PATH_MAX];
	ssize_t n = readlinkat(target->proc_fd, "exe", path, sizeof(path));

	return n > 0 ? ss_capture_path(capture, path, (size_t)n) : NULL;
}

static const char *read_name(struct ss_capture *capture, const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat = {};

	/* The process may have executed another program since. */
	for (size_t i = 0; i < capture->threads.count; i++)
		if (capture->threads.items[i].tid == target->pid)
			memcpy(stat.comm, capture->threads.items[i].name,
			       sizeof(stat.comm));
	if (stat.comm[0] == '\0' &&
	    !ss_target_read_stat(target, target->pid, &text, &stat))
		stat.comm[0] = '\0';
	return ss_intern_string(capture->strings, stat.comm);
}

/* Reads thread ids in the pid namespace of the process, the signals that it handles, and
   whether it is in swap. In our own namespace the ids are the same. A thread that has ended since has none. */
static void read_inner_ids(struct ss_capture *capture, const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;
	struct ss_process *process = &capture->process;

	if (!ss_target_read_status(target, target->pid, &text, &status))
		return;
	process->inner_pid = status.inner_id;
	process->handled_signals = status.handled_signals;
	capture->not_swapped = status.not_swapped;
	bool same = status.id_count == 1;
	for (size_t i = 0; i < capture->threads.count; i++) {
		struct ss_capture_thread *thread = &capture->threads.items[i];
		if (same)
			thread->inner_tid = thread->tid;
		else if (ss_target_read_status(target, thread->tid, &text, &status))
			thread->inner_tid = status.inner_id;
	}
}

/* Stopped with the others, or did not run during their stop. */
static bool is_atomic(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_RELEASED || has_no_stack(task) ||
	       task->phase == SS_TASK_STEADY;
}

static void sum_up(struct ss_capture *capture, const struct ss_task_list *tasks,
		   const struct ss_freeze *freeze)
{
	struct ss_process *process = &capture->process;

	process->consistent = freeze->rounds == 0;
	for (size_t i = 0; i < tasks->items.count; i++) {
		const struct ss_tracee *task = &tasks->items.items[i];
		if (task->runs)
			process->running_stopped_ns =
				SS_MAX(process->running_stopped_ns, task->stopped_ns);
		for (size_t s = 0; s < SS_STACK_COPIES; s++)
			process->copied_bytes += task->stacks[s].size;
		if (is_listed(task) && !is_atomic(task))
			process->consistent = false;
		process->threads_left_out += task->phase == SS_TASK_EXCLUDED;
	}
	process->stopped_ns = freeze->duration_ns;
	process->threads_stopped = freeze->stopped;
	process->threads_unseen = tasks->unseen;
	process->consistent &= tasks->unseen == 0;
}

/* Whether there is a thread to report. A zombie leader alone does not count. */
static bool has_any(const struct ss_task_list *tasks)
{
	bool zombie = false;
	bool excluded = false;

	for (size_t i = 0; i < tasks->items.count; i++) {
		const struct ss_tracee *task = &tasks->items.items[i];
		if (is_listed(task) && task->phase != SS_TASK_ZOMBIE)
			return true;
		zombie |= task->phase == SS_TASK_ZOMBIE;
		excluded |= task->phase == SS_TASK_EXCLUDED;
	}
	return zombie && excluded;
}

/* Returns NULL if the caller accepts a capture without threads. */
static struct ss_error *explain_nothing(const struct ss_target *target,
					const struct ss_task_list *tasks,
					const struct ss_capture_options *options)
{
	for (size_t i = 0; i < tasks->items.count; i++) {
		if (tasks->items.items[i].phase != SS_TASK_EXCLUDED)
			continue;
		return options->may_be_empty ?
			       NULL :
			       ss_error_new(SS_ERROR_INVALID,
					    "process %d has no such thread", target->pid);
	}
	return ss_target_missing(target);
}

static const char *read_host(struct ss_capture *capture)
{
	struct utsname names;

	return uname(&names) == 0 ? ss_intern_string(capture->strings, names.nodename) :
				    NULL;
}

struct ss_error *
ss_result_fill(struct ss_capture *capture, const struct ss_target *target,
	       struct ss_task_list *tasks, const struct ss_freeze *freeze,
	       const struct ss_capture_options *options, struct ss_arena *arena)
{
	struct ss_error *error = ss_result_fill_threads(capture, tasks);

	if (error)
		return error;
	if (!has_any(tasks))
		error = explain_nothing(target, tasks, options);
	if (error)
		return error;
	sum_up(capture, tasks, freeze);
	capture->process.pid = target->pid;
	capture->process.start_time = target->start_time;
	capture->process.crash = target->crash;
	capture->process.mode = tasks->dumping_core ? SS_MODE_NO_STOP : options->mode;
	capture->process.name = read_name(capture, target);
	capture->process.host = read_host(capture);
	if (!capture->process.executable)
		capture->process.executable = ss_result_executable(capture, target);
	read_inner_ids(capture, target);
	if (!target->kept || !options->previous ||
	    !ss_arena_hand_over(arena, capture, options->previous, target->kept))
		ss_arena_give(arena, capture);
	return NULL;
}
