#include "sample/thread_source.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

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
	*ret = (uint64_t)ts.tv_sec * SS_NS_PER_SECOND + (uint64_t)ts.tv_nsec;
	return true;
}

void ss_target_threads_init(struct ss_target_threads *threads,
			    const struct ss_target *target)
{
	*threads = (struct ss_target_threads){
		.target = target,
		.source = { .data = threads,
			    .list = list,
			    .count = count,
			    .open = open_schedstat,
			    .read = read_schedstat,
			    .cpu_time = read_cpu_time },
	};
	/* Otherwise each thread is read. */
	threads->has_clock = clock_getcpuclockid(target->pid, &threads->clock) == 0;
}

void ss_target_threads_deinit(struct ss_target_threads *threads)
{
	ss_tasks_deinit(&threads->scan);
	ss_buffer_deinit(&threads->text);
}
