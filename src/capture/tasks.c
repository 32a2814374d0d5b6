#include "capture/tasks.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/search.h"
#include "capture/result.h"

enum {
	DIRECTORY_BYTES = 32 * 1024, /* as readdir(3) has; a thousand threads at once */
	/* So many threads may appear during a freeze until one makes memory fault in, which takes a
	   tenth of the time to stop it. */
	SPARE = 8,
	KEPT_MAX =
		1024, /* descriptors; growing the table of more takes longer than it saves */
	SERIES_KEPT_MAX = 1 << 16, /* they are used for each capture of a series */
};

/* getdents64(2); glibc's readdir() allocates, which a freeze must not. */
struct dirent64_kernel {
	uint64_t inode;
	int64_t next;
	unsigned short size;
	unsigned char type;
	char name[];
};

#define TO(phase) (1U << SS_TASK_##phase)

/* The end of a thread, or of its capture. */
#define ENDS (TO(GONE) | TO(ZOMBIE) | TO(SLEPT))

static const unsigned next_phases[] = {
	/* A thread that is attached may be stopped by any signal. */
	[SS_TASK_SEEN] = TO(WATCHED) | TO(CHOSEN) | TO(STOPPED) | TO(WORKER) |
			 TO(DENIED) | TO(EXCLUDED) | ENDS,
	[SS_TASK_WATCHED] = TO(SEEN) | TO(STEADY) | TO(STOPPED) | TO(DENIED) | ENDS,
	[SS_TASK_STEADY] = TO(SEEN) | TO(WATCHED) | TO(STOPPED) | TO(GONE) | TO(SLEPT),
	[SS_TASK_CHOSEN] = TO(SEEN) | TO(SEIZED) | TO(REFUSED) | TO(GONE),
	[SS_TASK_SEIZED] = TO(SEEN) | TO(INTERRUPTED) | TO(STOPPED) | TO(GONE),
	[SS_TASK_INTERRUPTED] = TO(STOPPED) | ENDS,
	[SS_TASK_STOPPED] = TO(RELEASED),
	/* Again; or what it was before a stop that came too late. */
	[SS_TASK_RELEASED] = TO(SEEN) | TO(WATCHED) | TO(STEADY) | TO(INTERRUPTED) |
			     TO(WORKER) | TO(DENIED) | TO(EXCLUDED) | TO(SLEPT) |
			     TO(GONE),
	[SS_TASK_REFUSED] = TO(DENIED) | ENDS,
	/* What is known of a thread does not keep one that is attached from stopping. */
	[SS_TASK_SLEPT] = TO(STOPPED) | TO(GONE),
	[SS_TASK_GONE] = TO(STOPPED),
	[SS_TASK_WORKER] = TO(STOPPED) | TO(GONE) | TO(ZOMBIE),
	[SS_TASK_DENIED] = TO(STOPPED) | TO(GONE),
	[SS_TASK_EXCLUDED] = TO(STOPPED) | TO(GONE) | TO(SLEPT),
};

bool ss_task_may_enter(enum ss_task_phase from, enum ss_task_phase to)
{
	const unsigned next =
		(size_t)from < SS_ARRAY_SIZE(next_phases) ? next_phases[from] : 0;

	return from == to || next & 1U << to;
}

bool ss_tasks_reserve(struct ss_task_list *list, size_t count)
{
	if (!ss_vector_reserve(&list->items, count))
		return false;
	if (!ss_vector_reserve_bytes((void **)&list->sorted, &list->sorted_capacity,
				     list->items.capacity, sizeof(*list->sorted)))
		return false;
	/* Fault it in now, not during the freeze. */
	memset(list->items.items + list->items.count, 0,
	       SS_MIN(list->items.capacity - list->items.count, (size_t)SPARE) *
		       sizeof(*list->items.items));
	memset(list->sorted + list->sorted_count, 0,
	       SS_MIN(list->sorted_capacity - list->sorted_count, (size_t)SPARE) *
		       sizeof(*list->sorted));
	if (!list->directory)
		list->directory = malloc(DIRECTORY_BYTES);
	return list->directory != NULL;
}

void ss_tasks_deinit(struct ss_task_list *list)
{
	for (size_t i = 0; i < list->items.count; i++) {
		struct ss_tracee *task = &list->items.items[i];
		if (!task->borrowed)
			ss_kept_thread_close(&task->files);
		free(task->live);
	}
	ss_vector_free(&list->items);
	free(list->sorted);
	free(list->directory);
	*list = (struct ss_task_list){};
}

size_t ss_tasks_count_now(const struct ss_target *target)
{
	struct stat st;

	/* proc_task_getattr() adds the number of threads to the two of any directory. */
	if (fstat(target->task_fd, &st) != 0 || st.st_nlink < 2)
		return 0;
	return (size_t)st.st_nlink - 2;
}

static bool is_known(const struct ss_task_list *list, pid_t tid)
{
	size_t low = ss_lower_bound(list->sorted_count, i, list->sorted[i] < tid);

	return low < list->sorted_count && list->sorted[low] == tid;
}

static void sort_tids(struct ss_task_list *list)
{
	bool ascending = true;

	for (size_t i = list->sorted_count; i < list->items.count; i++) {
		pid_t tid = list->items.items[i].tid;
		ascending &= i == 0 || list->sorted[i - 1] < tid;
		list->sorted[i] = tid;
	}
	list->sorted_count = list->items.count;
	/* qsort() allocates for large arrays, but procfs lists threads in order */
	if (!ascending)
		qsort(list->sorted, list->sorted_count, sizeof(pid_t), ss_compare_pids);
}

static void add_tid(struct ss_task_list *list, pid_t tid)
{
	if (list->items.count == list->items.capacity ||
	    list->items.count == list->sorted_capacity) {
		list->unseen++;
		return;
	}
	struct ss_tracee *task = &list->items.items[list->items.count++];
	*task = (struct ss_tracee){
		.tid = tid, .files.tid = tid, .state = '?', .call.number = -1
	};
}

static void add_entries(struct ss_task_list *list, size_t size)
{
	for (size_t at = 0; at < size;) {
		const struct dirent64_kernel *entry =
			(const void *)(list->directory + at);
		pid_t tid = 0;
		for (const char *c = entry->name; *c >= '0' && *c <= '9'; c++)
			tid = tid * 10 +
			      (*c - '0'); /* written by the kernel: below 2^22 */
		if (tid > 0 && !is_known(list, tid))
			add_tid(list, tid);
		at += entry->size;
	}
}

size_t ss_tasks_scan(struct ss_task_list *list, const struct ss_target *target)
{
	size_t before = list->items.count;
	long size;

	list->unseen = 0;
	if (lseek(target->task_fd, 0, SEEK_SET) != 0)
		return 0;
	while ((size = syscall(SYS_getdents64, target->task_fd, list->directory,
			       DIRECTORY_BYTES)) > 0)
		add_entries(list, (size_t)size);
	sort_tids(list);
	for (size_t i = before; target->kept && i < list->items.count; i++) {
		struct ss_tracee *task = &list->items.items[i];
		ss_kept_files_take(target->kept, &task->files);
		task->known = task->files.stat != 0;
	}
	return list->items.count - before;
}

uint64_t ss_task_read_run_count(const struct ss_target *target, pid_t tid,
				struct ss_buffer *text)
{
	struct ss_schedstat stat;

	if (!ss_target_read_task(target, tid, "schedstat", text) ||
	    !ss_schedstat_parse(text->bytes, text->size, &stat))
		return 0;
	return stat.run_count;
}

static bool may_keep(const struct ss_target *target, int fd)
{
	return fd < (target->kept ? SERIES_KEPT_MAX : KEPT_MAX) && fd < target->keep_max;
}

/* Opens a file of a thread. Returns 0, or the descriptor + 1 if it may stay open. */
static int open_file(const struct ss_tracee *task, const struct ss_target *target,
		     const char *name)
{
	int fd = ss_target_open_task(target, task->tid, name);

	if (fd < 0 || may_keep(target, fd))
		return fd + 1;
	close_cleanup(&fd);
	return 0;
}

static int keep_file(const struct ss_target *target, pid_t tid, const char *name)
{
	_cleanup_close_ int fd = ss_target_open_task(target, tid, name);

	return fd >= 0 && ss_io_may_keep(2 * fd) ? take_fd(fd) + 1 : 0;
}

void ss_task_keep_files(const struct ss_target *target, pid_t tid,
			struct ss_kept_thread *ret)
{
	ret->stat = keep_file(target, tid, "stat");
	ret->syscall = ret->stat ? keep_file(target, tid, "syscall") : 0;
}

uint64_t ss_task_count_runs(struct ss_tracee *task, const struct ss_target *target,
			    struct ss_buffer *text)
{
	if (task->files.schedstat == 0)
		task->files.schedstat = open_file(task, target, "schedstat");
	return task->files.schedstat ? ss_kept_thread_count_runs(&task->files) :
				       ss_task_read_run_count(target, task->tid, text);
}

/* In a series, the file stays open. If it cannot be read any more, the thread has ended, and
   another one may have its id. */
bool ss_task_read_stat(struct ss_tracee *task, const struct ss_target *target,
		       struct ss_buffer *text, struct ss_stat *ret)
{
	if (ss_kept_thread_read_stat(&task->files, ret))
		return true;
	if (task->files.stat && task->borrowed)
		return false; /* another thread may have its id */
	if (!target->kept)
		return ss_target_read_stat(target, task->tid, text, ret);
	task->known = false;
	ss_kept_thread_close(&task->files);
	task->files.stat = open_file(task, target, "stat");
	return task->files.stat ? ss_kept_thread_read_stat(&task->files, ret) :
				  ss_target_read_stat(target, task->tid, text, ret);
}

char ss_task_state_of(const struct ss_tracee *task, const struct ss_target *target,
		      const struct ss_stat *stat)
{
	return stat->state == 't' && task->attached && !target->held ? 'T' : stat->state;
}

void ss_tasks_close_files(struct ss_task_list *list, const struct ss_target *target,
			  struct ss_kept_files **ret_counters)
{
	struct ss_kept_files *counters =
		ret_counters && !target->kept ? ss_kept_files_new() : NULL;
	struct ss_kept_files *kept = counters ? counters : target->kept;
	_cleanup_free_ struct ss_kept_thread *files =
		kept ? calloc(list->items.count + 1, sizeof(*files)) : NULL;
	size_t count = 0;

	for (size_t i = 0; i < list->items.count; i++) {
		struct ss_kept_thread *own = &list->items.items[i].files;
		if (files && own->schedstat && (own->stat || counters))
			files[count++] = *own;
		else if (!list->items.items[i].borrowed)
			ss_kept_thread_close(own);
		own->stat = own->schedstat = own->syscall = 0;
	}
	if (files)
		ss_kept_files_replace(kept, files, count);
	if (ret_counters)
		*ret_counters = counters;
}

static void read_call(struct ss_tracee *task, const struct ss_target *target,
		      struct ss_buffer *text)
{
	if (ss_kept_thread_read_syscall(&task->files, &task->call)) {
		ss_target_unfold(target, &task->call);
		return;
	}
	if (!ss_target_read_syscall(target, task->tid, text, &task->call))
		task->call =
			(struct ss_syscall_text){ .kind = SS_SYSCALL_NONE, .number = -1 };
}

void ss_task_read_filter(struct ss_tracee *task, const struct ss_target *target,
			 struct ss_buffer *text)
{
	struct ss_status status;

	if ((task->filter == SS_FILTER_UNKNOWN ||
	     task->filter == SS_FILTER_NONE_LATELY) &&
	    ss_target_read_status(target, task->tid, text, &status))
		task->filter = status.seccomp_filter ? SS_FILTER_PRESENT : SS_FILTER_NONE;
}

/*
 * After a stop the kernel makes a blocked call again, or makes restart_syscall(2), and
 * the filter decides anew: it may kill the process, or have a supervisor emulate the call
 * a second time (seccomp_unotify(2)).
 */
bool ss_task_is_untouchable(const struct ss_tracee *task)
{
	/* One that runs may enter a wait until it stops, which ends by restart_syscall(2). */
	return task->filter == SS_FILTER_PRESENT &&
	       (task->call.kind == SS_SYSCALL_BLOCKED ||
		!ss_arch_host.attach->avoid_restart_syscall);
}

/* Whether a stop would be noticed. look: at the file, too. */
static bool is_fragile(const struct ss_tracee *task, const struct ss_target *target,
		       bool look)
{
	/* The signal that has stopped a thread has also interrupted its call. */
	return (task->state != 'T' &&
		ss_fragile_blocked(target, task->tid, &task->call, look)) ||
	       ss_task_is_untouchable(task);
}

void ss_task_check_fragile(struct ss_tracee *task, const struct ss_target *target,
			   struct ss_buffer *text)
{
	ss_task_read_filter(task, target, text);
	task->fragile = is_fragile(task, target, true);
}

/* A thread that a signal has stopped stands still anyway: its registers are read at once. */
static bool may_watch(const struct ss_capture_options *options,
		      const struct ss_tracee *task)
{
	size_t low = ss_lower_bound(options->stop_count, i, options->stop[i] < task->tid);

	if (options->mode == SS_MODE_NO_STOP)
		return true;
	return options->mode == SS_MODE_AUTO && task->state != 'T' &&
	       !(low < options->stop_count && options->stop[low] == task->tid);
}

/* What the previous capture of a series has of this thread; NULL: nothing. */
static const struct ss_capture_thread *
find_before(const struct ss_tracee *task, const struct ss_capture_options *options)
{
	const struct ss_capture *previous = options->previous;
	const struct ss_capture_thread *before =
		previous && previous->arch == task->arch ?
			ss_capture_find_thread(previous, task->tid) :
			NULL;

	return before && before->syscall.number >= 0 ? before : NULL;
}

/* Whether more than pc and sp is known, which needs a stop. */
static bool has_registers(const struct ss_arch *arch,
			  const struct ss_capture_thread *thread)
{
	return ss_regs_has(&thread->regs, arch->fp);
}

static void set_call(const struct ss_arch *arch, struct ss_syscall_text *call,
		     const struct ss_capture_thread *thread)
{
	*call = (struct ss_syscall_text){
		.kind = SS_SYSCALL_BLOCKED,
		.number = thread->syscall.number,
		.sp = ss_regs_sp(arch, &thread->regs),
		.pc = ss_regs_pc(arch, &thread->regs),
	};
	memcpy(call->args, thread->syscall.args, sizeof(call->args));
}

/*
 * Takes over what the previous capture of a series has of a blocked thread. If it has not run
 * since, that is its call and all registers. If it was stopped then, it has run because of that,
 * but nothing of it has changed if it is in the same place of the program with the same stack;
 * this is verified when its stack is copied. False: it has to be read.
 */
static bool take_over(struct ss_tracee *task, const struct ss_target *target,
		      const struct ss_capture_options *options, struct ss_buffer *text)
{
	const struct ss_capture_thread *before = find_before(task, options);
	bool watchable = may_watch(options, task);

	if (!before || (!watchable && !has_registers(task->arch, before)) ||
	    (options->mode != SS_MODE_AUTO && options->mode != SS_MODE_NO_STOP))
		return false;
	uint64_t count = ss_task_count_runs(task, target, text);
	task->not_run = task->known && count != 0 && before->consistent &&
			before->run_count == count;
	if (!task->not_run && watchable)
		return false;
	if (task->not_run)
		set_call(task->arch, &task->call, before);
	else
		read_call(task, target, text);
	if (count == 0 || task->call.kind != SS_SYSCALL_BLOCKED ||
	    task->call.sp != ss_regs_sp(task->arch, &before->regs) ||
	    task->call.pc != ss_regs_pc(task->arch, &before->regs))
		return false;
	task->run_count = count;
	task->before = before;
	task->fragile = before->fragile || is_fragile(task, target, false);
	ss_task_enter(task, SS_TASK_WATCHED);
	task->runs = false;
	return true;
}

bool ss_task_has_same_stack(const struct ss_tracee *task)
{
	const struct ss_stack_copy *then = &task->before->stacks[SS_STACK_SP];
	const struct ss_stack_copy *now = &task->stacks[SS_STACK_SP];

	if (!then->bytes || !now->bytes || task->call.sp < then->address ||
	    task->call.sp < now->address)
		return false;
	size_t from_then = (size_t)SS_MIN(task->call.sp - then->address, then->size);
	size_t from_now = (size_t)SS_MIN(task->call.sp - now->address, now->size);
	size_t size = SS_MIN(ss_stack_copy_present(then, from_then),
			     ss_stack_copy_present(now, from_now));
	/* The C library keeps the description of a thread above its stack, where the kernel writes the
	   processor at which the thread returns to user space (rseq(2)). */
	const uint64_t end = task->before->thread_pointer - ss_arch_host.pthread_below;
	if (task->before->thread_pointer && end > task->call.sp)
		size = (size_t)SS_MIN((uint64_t)size, end - task->call.sp);
	return size > 0 &&
	       memcmp(then->bytes + from_then, now->bytes + from_now, size) == 0;
}

/* The count is read first: once the call shows that the thread is blocked, it cannot run
   without a change of the count. */
static void read_blocked(struct ss_tracee *task, const struct ss_target *target,
			 const struct ss_capture_options *options, struct ss_buffer *text)
{
	bool watchable = may_watch(options, task);

	if (take_over(task, target, options, text))
		return;
	if (!watchable) {
		read_call(task, target, text);
		ss_task_check_fragile(task, target, text);
	}
	bool watch = watchable || task->fragile;
	if (watch) {
		task->run_count = task->counted ? task->counted :
						  ss_task_count_runs(task, target, text);
		read_call(task, target, text);
		task->fragile = is_fragile(task, target, !watchable);
	}
	/* A thread in a system call has a program counter. */
	if (task->call.kind == SS_SYSCALL_BLOCKED && task->call.sp == 0 &&
	    task->call.pc == 0)
		ss_task_enter(task, SS_TASK_WORKER);
	if (watch && task->run_count != 0 && task->call.sp != 0)
		ss_task_enter(task, SS_TASK_WATCHED);
	/* It woke up meanwhile. */
	task->runs = task->call.kind == SS_SYSCALL_RUNNING;
}

/* Its state, unless it sleeps in the call in which it slept before. */
static void read_state_again(struct ss_tracee *task, const struct ss_target *target,
			     long before, struct ss_buffer *text)
{
	struct ss_stat stat;

	if (task->state == 'S' && task->call.kind == SS_SYSCALL_BLOCKED &&
	    task->call.number == before)
		return;
	if (!ss_task_read_stat(task, target, text, &stat)) {
		ss_task_enter(task, SS_TASK_GONE);
		return;
	}
	task->state = ss_task_state_of(task, target, &stat);
	task->processor = stat.processor;
	if (stat.state == 'Z' || stat.state == 'X')
		ss_task_enter(task,
			      task->tid == target->pid ? SS_TASK_ZOMBIE : SS_TASK_GONE);
}

void ss_task_read_again(struct ss_tracee *task, const struct ss_target *target,
			const struct ss_capture_options *options, struct ss_buffer *text)
{
	const bool fragile = task->fragile;
	const long before = task->call.kind == SS_SYSCALL_BLOCKED ? task->call.number :
								    -1;

	task->arch = target->arch;
	if (ss_task_is_watched(task))
		ss_task_enter(task, SS_TASK_SEEN);
	task->in_call = task->fragile = false;
	task->before = NULL;
	task->call.kind = SS_SYSCALL_RUNNING;
	read_blocked(task, target, options, text);
	read_state_again(task, target, before, text);
	if (!ss_task_is_unstopped(task))
		return;
	/* Then it may be in the same call, see capture/observe.h. */
	task->fragile |= fragile && task->runs;
	if (task->runs && !ss_task_is_slow(task))
		task->state = 'R';
	else if (ss_task_is_watched(task) && task->state == 'R')
		task->state = 'S';
}

/* Nothing of a process that is about to end needs to be spared. The state of a thread that
   its tracer has stopped already is found by its registers. */
static void read_held(struct ss_tracee *task)
{
	task->filter = SS_FILTER_NONE;
	if (task->state == 't')
		task->state = '?';
}

void ss_task_read(struct ss_tracee *task, const struct ss_target *target,
		  const struct ss_capture_options *options, struct ss_buffer *text)
{
	struct ss_stat stat;

	task->arch = target->arch;
	if (ss_task_is_watched(task))
		ss_task_enter(task, SS_TASK_SEEN);
	task->in_call = task->fragile = false;
	task->before = NULL;
	task->call.kind = SS_SYSCALL_RUNNING;
	/* To complete a capture, most threads need not be read at all. */
	if (options->filter == ss_complete_accepts &&
	    !ss_complete_accepts(options->filter_data, task->tid, "", '?')) {
		ss_task_enter(task, SS_TASK_EXCLUDED);
		return;
	}
	if (!ss_task_read_stat(task, target, text, &stat)) {
		ss_task_enter(task, SS_TASK_GONE);
		return;
	}
	task->state = ss_task_state_of(task, target, &stat);
	task->processor = stat.processor;
	task->user_ticks = stat.user_ticks;
	task->system_ticks = stat.system_ticks;
	memcpy(task->comm, stat.comm, sizeof(task->comm));
	task->runs = stat.state == 'R';
	if (stat.state == 'Z' || stat.state == 'X')
		ss_task_enter(task,
			      task->tid == target->pid ? SS_TASK_ZOMBIE : SS_TASK_GONE);
	else if (options->filter && !options->filter(options->filter_data, task->tid,
						     task->comm, task->state))
		ss_task_enter(task, SS_TASK_EXCLUDED);
	else if (stat.worker)
		ss_task_enter(task, SS_TASK_WORKER);
	else if (target->held)
		read_held(task);
	else if (task->runs && options->mode != SS_MODE_NO_STOP &&
		 task->filter == SS_FILTER_UNKNOWN)
		ss_task_read_filter(task, target, text);
	else if (!task->runs)
		read_blocked(task, target, options, text);
}

/* The call that a thread is in now. One that was stopped in a call is back in it when it has got
   a CPU, for which it waits here. */
static bool read_settled_call(const struct ss_still *still,
			      const struct ss_capture_thread *thread,
			      struct ss_syscall_text *ret)
{
	for (;;) {
		if (!ss_target_read_syscall(still->target, thread->tid, still->text, ret))
			return false;
		if (ret->kind != SS_SYSCALL_RUNNING)
			return true;
		if (thread->syscall.number < 0 || *still->waits_left == 0)
			return false;
		--*still->waits_left;
		ss_sleep_ns(SS_NS_PER_MS);
	}
}

static bool is_same(const struct ss_still *still, const struct ss_capture_thread *thread)
{
	const struct ss_stack_copy *copy = &thread->stacks[SS_STACK_SP];
	uint64_t sp = ss_regs_sp(still->capture->arch, &thread->regs);
	size_t at = (size_t)SS_MIN(sp - copy->address, (uint64_t)copy->size);
	size_t size = ss_stack_copy_present(copy, at);
	_cleanup_free_ uint8_t *now = malloc(size + 1);
	struct ss_piece piece = { .address = sp, .bytes = now, .size = size };
	struct ss_syscall_text call;

	if (!now || size == 0 || !read_settled_call(still, thread, &call) ||
	    call.sp != sp)
		return false;
	ss_process_memory_read_present(still->memory, &piece, 1);
	return piece.done == size && memcmp(now, copy->bytes + at, size) == 0;
}

bool ss_still_check(const struct ss_still *still, const struct ss_capture_thread *thread)
{
	if (thread->stopped_ns > 0)
		return is_same(still, thread);
	return thread->consistent && thread->run_count != 0 &&
	       ss_task_read_run_count(still->target, thread->tid, still->text) ==
		       thread->run_count;
}
