#include "capture/tasks.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/search.h"
#include "capture/complete.h"
#include "capture/fragile.h"

enum {
	DIRECTORY_BYTES = 256 * 1024,
	KEPT_MAX =
		1024, /* descriptors; growing the table of more takes longer than it saves */
	RECORD_SIZE = 128, /* of schedstat: three numbers */
};

/* getdents64(2); glibc's readdir() allocates, which a freeze must not. */
struct dirent64_kernel {
	uint64_t inode;
	int64_t next;
	unsigned short size;
	unsigned char type;
	char name[];
};

bool ss_tasks_reserve(struct ss_task_list *list, size_t count)
{
	if (!ss_vector_reserve(&list->items, count))
		return false;
	if (!ss_vector_reserve_bytes((void **)&list->sorted, &list->sorted_capacity,
				     list->items.capacity, sizeof(*list->sorted)))
		return false;
	/* Fault it in now, not during the freeze. */
	memset(list->items.items + list->items.count, 0,
	       (list->items.capacity - list->items.count) * sizeof(*list->items.items));
	memset(list->sorted + list->sorted_count, 0,
	       (list->sorted_capacity - list->sorted_count) * sizeof(*list->sorted));
	if (!list->directory)
		list->directory = calloc(1, DIRECTORY_BYTES);
	return list->directory != NULL;
}

void ss_tasks_deinit(struct ss_task_list *list)
{
	ss_tasks_close_files(list);
	for (size_t i = 0; i < list->items.count; i++)
		free(list->items.items[i].live);
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

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a;
	pid_t y = *(const pid_t *)b;

	return (x > y) - (x < y);
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
		qsort(list->sorted, list->sorted_count, sizeof(pid_t), compare_tids);
}

static void add_tid(struct ss_task_list *list, pid_t tid)
{
	if (list->items.count == list->items.capacity ||
	    list->items.count == list->sorted_capacity) {
		list->unseen++;
		return;
	}
	struct ss_task *task = &list->items.items[list->items.count++];
	*task = (struct ss_task){ .tid = tid, .state = '?', .call.number = -1 };
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

/* Half of the descriptors are left for everything else. */
static bool may_keep(int fd)
{
	struct rlimit limit;

	return fd < KEPT_MAX && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       (rlim_t)fd < limit.rlim_cur / 2;
}

uint64_t ss_task_count_runs(struct ss_task *task, const struct ss_target *target,
			    struct ss_buffer *text)
{
	struct ss_schedstat stat;

	if (task->schedstat == 0) {
		int fd = ss_target_open_task(target, task->tid, "schedstat");
		if (fd >= 0 && !may_keep(fd))
			close_cleanup(&fd);
		else if (fd >= 0)
			task->schedstat = fd + 1;
	}
	if (task->schedstat == 0)
		return ss_task_read_run_count(target, task->tid, text);
	char record[RECORD_SIZE];
	ssize_t n = pread(task->schedstat - 1, record, sizeof(record), 0);
	return n > 0 && ss_schedstat_parse(record, (size_t)n, &stat) ? stat.run_count : 0;
}

void ss_tasks_close_files(struct ss_task_list *list)
{
	for (size_t i = 0; i < list->items.count; i++) {
		struct ss_task *task = &list->items.items[i];
		int fd = task->borrowed ? -1 : task->schedstat - 1;
		close_cleanup(&fd);
		task->schedstat = 0;
	}
}

static void read_call(struct ss_task *task, const struct ss_target *target,
		      struct ss_buffer *text)
{
	if (!ss_target_read_task(target, task->tid, "syscall", text) ||
	    !ss_syscall_parse(text->bytes, text->size, &task->call))
		task->call =
			(struct ss_syscall_text){ .kind = SS_SYSCALL_NONE, .number = -1 };
}

void ss_task_read_filter(struct ss_task *task, const struct ss_target *target,
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
bool ss_task_is_untouchable(const struct ss_task *task)
{
	return task->filter == SS_FILTER_PRESENT && task->call.kind == SS_SYSCALL_BLOCKED;
}

/* Whether a stop would be noticed. look: at the file, too. */
static bool is_fragile(const struct ss_task *task, const struct ss_target *target,
		       bool look)
{
	return ss_fragile_blocked(target, task->tid, &task->call, look) ||
	       ss_task_is_untouchable(task);
}

void ss_task_check_fragile(struct ss_task *task, const struct ss_target *target,
			   struct ss_buffer *text)
{
	ss_task_read_filter(task, target, text);
	task->fragile = is_fragile(task, target, true);
}

/* The count is read first: once the call shows that the thread is blocked, it cannot run
   without a change of the count. */
static void read_blocked(struct ss_task *task, const struct ss_target *target,
			 bool watchable, struct ss_buffer *text)
{
	if (!watchable) {
		read_call(task, target, text);
		ss_task_check_fragile(task, target, text);
	}
	bool watch = watchable || task->fragile;
	if (watch) {
		task->run_count = ss_task_count_runs(task, target, text);
		read_call(task, target, text);
		task->fragile = is_fragile(task, target, !watchable);
	}
	/* A thread in a system call has a program counter. */
	if (task->call.kind == SS_SYSCALL_BLOCKED && task->call.sp == 0 &&
	    task->call.pc == 0)
		task->phase = SS_TASK_WORKER;
	task->watched = watch && task->run_count != 0 && task->call.sp != 0;
	/* It woke up meanwhile. */
	task->runs = task->call.kind == SS_SYSCALL_RUNNING;
}

/* Nothing of a process that is about to end needs to be spared. The state of a thread that
   its tracer has stopped already is found by its registers. */
static void read_held(struct ss_task *task)
{
	task->filter = SS_FILTER_NONE;
	if (task->state == 't')
		task->state = '?';
}

static bool may_watch(const struct ss_capture_options *options, pid_t tid)
{
	size_t low = ss_lower_bound(options->stop_count, i, options->stop[i] < tid);

	if (options->mode == SS_MODE_NO_STOP)
		return true;
	return options->mode == SS_MODE_AUTO &&
	       !(low < options->stop_count && options->stop[low] == tid);
}

void ss_task_read(struct ss_task *task, const struct ss_target *target,
		  const struct ss_capture_options *options, struct ss_buffer *text)
{
	struct ss_stat stat;

	task->watched = task->steady = task->in_call = task->fragile = false;
	task->call.kind = SS_SYSCALL_RUNNING;
	/* To complete a capture, most threads need not be read at all. */
	if (options->filter == ss_complete_accepts &&
	    !ss_complete_accepts(options->filter_data, task->tid, "", '?')) {
		task->phase = SS_TASK_EXCLUDED;
		return;
	}
	if (!ss_target_read_stat(target, task->tid, text, &stat)) {
		task->phase = SS_TASK_GONE;
		return;
	}
	task->state = stat.state;
	task->processor = stat.processor;
	task->user_ticks = stat.user_ticks;
	task->system_ticks = stat.system_ticks;
	memcpy(task->comm, stat.comm, sizeof(task->comm));
	task->runs = stat.state == 'R';
	task->slow = stat.state == 'D';
	if (stat.state == 'Z' || stat.state == 'X')
		task->phase = task->tid == target->pid ? SS_TASK_ZOMBIE : SS_TASK_GONE;
	else if (options->filter && !options->filter(options->filter_data, task->tid,
						     task->comm, task->state))
		task->phase = SS_TASK_EXCLUDED;
	else if (stat.worker)
		task->phase = SS_TASK_WORKER;
	else if (target->held)
		read_held(task);
	else if (task->runs && options->mode != SS_MODE_NO_STOP &&
		 task->filter == SS_FILTER_UNKNOWN)
		ss_task_read_filter(task, target, text);
	else if (!task->runs)
		read_blocked(task, target, may_watch(options, task->tid), text);
}
