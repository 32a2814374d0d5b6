#include "sample/sampler.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/procfs.h"

enum { RECORD_MAX = 256 };

static bool list(void *data, const pid_t **ret, size_t *ret_count)
{
	struct ss_target_threads *threads = data;
	struct ss_task_list *scan = &threads->scan;

	do {
		scan->items.count = scan->sorted_count = 0;
		if (!ss_tasks_reserve(scan, ss_tasks_count_now(threads->target) * 2 + 64))
			return false;
		(void)ss_tasks_scan(scan, threads->target);
	} while (scan->unseen > 0);
	*ret = scan->sorted;
	*ret_count = scan->sorted_count;
	return true;
}

static size_t count(void *data)
{
	const struct ss_target_threads *threads = data;

	return ss_tasks_count_now(threads->target);
}

static int open_schedstat(void *data, pid_t tid)
{
	const struct ss_target_threads *threads = data;
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/schedstat", tid); /* fits */
	_cleanup_close_ int fd =
		openat(threads->target->task_fd, path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && ss_io_may_keep(fd) ? take_fd(fd) : -1;
}

static bool read_open(int fd, struct ss_schedstat *ret)
{
	char bytes[RECORD_MAX];
	ssize_t n = pread(fd, bytes, sizeof(bytes) - 1, 0);

	if (n <= 0)
		return false;
	bytes[n] = '\0';
	return ss_schedstat_parse(bytes, (size_t)n, ret);
}

static bool read_schedstat(void *data, pid_t tid, int fd, struct ss_schedstat *ret)
{
	struct ss_target_threads *threads = data;

	if (fd >= 0)
		return read_open(fd, ret);
	return ss_target_read_task(threads->target, tid, "schedstat", &threads->text) &&
	       ss_schedstat_parse(threads->text.bytes, threads->text.size, ret);
}

/*
 * Of threads that run, it has what the scheduler has added up last. It needs no right, and takes no
 * lock that the target uses, unless a thread ends meanwhile: then the kernel adds once more with the
 * lock that a thread needs to end (thread_group_cputime() of kernel/sched/cputime.c).
 */
static bool read_cpu_time(void *data, uint64_t *ret)
{
	const struct ss_target_threads *threads = data;
	struct timespec ts;

	if (!threads->has_clock || clock_gettime(threads->clock, &ts) != 0)
		return false;
	*ret = ss_timespec_ns(&ts);
	return true;
}

void ss_target_threads_init(struct ss_target_threads *threads,
			    const struct ss_target *target)
{
	*threads = (struct ss_target_threads){ .target = target };
	/* Otherwise each thread is read. */
	threads->has_clock = clock_getcpuclockid(target->pid, &threads->clock) == 0;
}

void ss_target_threads_deinit(struct ss_target_threads *threads)
{
	ss_tasks_deinit(&threads->scan);
	ss_buffer_deinit(&threads->text);
}

static struct ss_error *open_child(pid_t pid, struct ss_target **ret)
{
	struct ss_target *target = NULL;
	struct ss_error *error = ss_target_open(pid, &target);

	if (target && geteuid() != 0 && ss_target_will_execute(target))
		ss_target_close(target); /* a later search finds it again */
	else if (target)
		*ret = target;
	return error;
}

static bool set_scheduler(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	/* Without CAP_SYS_NICE this fails, and stops are longer. */
	return sched_setscheduler(0, policy, &param) == 0;
}

static bool is_to_be_stopped(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_CHOSEN ||
	       (task->phase == SS_TASK_SEEN && !task->limited && !task->moves_data);
}

static bool stop(struct ss_freeze *freeze, struct ss_look *look, ss_freeze_copier *copy,
		 void *data)
{
	const struct ss_task_list *tasks = freeze->tasks;
	bool any = false;

	ss_freeze_choose_again(freeze, false);
	for (size_t i = 0; i < tasks->items.count && !any; i++)
		any = is_to_be_stopped(&tasks->items.items[i]);
	if (!any || tasks->dumping_core)
		return false;
	ss_freeze_prepare(freeze);
	bool waits = !set_scheduler(SCHED_FIFO, 1);
	ss_look_at_running(look, freeze->tasks);
	ss_freeze_choose_running(freeze);
	ss_freeze_each(freeze, copy, data);
	ss_freeze_finish(freeze);
	(void)set_scheduler(SCHED_OTHER, 0); /* always allowed */
	return waits;
}

static uint64_t read_waited_ns(void)
{
	char text[128];
	struct ss_schedstat stat;
	_cleanup_close_ int fd =
		open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return n > 0 && ss_schedstat_parse(text, (size_t)n, &stat) ? stat.wait_ns : 0;
}

static bool read_name(const struct ss_target *target, pid_t tid, struct ss_buffer *text,
		      char *ret, size_t size)
{
	if (!ss_target_read_task(target, tid, "comm", text) || text->size == 0)
		return false;
	size_t length = SS_MIN(text->size - 1, size - 1); /* without the newline */
	memcpy(ret, text->bytes, length);
	ret[length] = '\0';
	return true;
}

const struct ss_process_access ss_process_access = {
	.open_child = open_child,
	.list_children = ss_target_list_children,
	.threads = { .list = list,
		     .count = count,
		     .open = open_schedstat,
		     .read = read_schedstat,
		     .cpu_time = read_cpu_time },
	.update = ss_address_space_update,
	.update_if_due = ss_address_space_update_if_due,
	.check = ss_address_space_query,
	.read = ss_task_read,
	.keep_files = ss_task_keep_files,
	.read_run_count = ss_task_read_run_count,
	.check_fragile = ss_task_check_fragile,
	.stop = stop,
	.read_waited_ns = read_waited_ns,
	.find_call = ss_look_find_call,
	.moves_data = ss_fragile_running,
	.read_name = read_name,
	.release_late = ss_freeze_release_late,
	.copy = ss_arena_copy,
	.copy_watched = ss_observe_copy,
	.check_watched = ss_observe_check,
	.read_again = ss_task_read_again,
	.observe = ss_observe_tasks,
};
