#include "capture/sampled.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
	FILES_MAX =
		60000, /* kept open; what is beyond, or refused, is opened each time */
	RECORD_MAX = 256,
	QUIET = 8, /* ticks */
	BALANCE_TRIES = 2,
	BETWEEN_TRIES = 4,
	PAUSE_BITS = 6,
};

void ss_sampled_forget(struct ss_sampler *sampler, struct ss_sampled *thread)
{
	if (thread->schedstat_fd < 0)
		return;
	close_cleanup(&thread->schedstat_fd);
	sampler->open_files--;
}

/* Drops what had ended by the last tick. */
static void forget_gone(struct ss_sampler *sampler)
{
	size_t kept = 0;

	for (size_t i = 0; i < sampler->threads.count; i++) {
		struct ss_sampled *thread = &sampler->threads.items[i];
		thread->touched = false;
		if (thread->quiet < QUIET)
			thread->quiet++;
		if (thread->gone)
			ss_sampled_forget(sampler, thread);
		else
			sampler->threads.items[kept++] = *thread;
	}
	sampler->threads.count = kept;
}

static int open_schedstat(struct ss_sampler *sampler, pid_t tid)
{
	char path[64];

	if (sampler->open_files >= FILES_MAX)
		return -1;
	(void)snprintf(path, sizeof(path), "%d/schedstat", tid); /* always fits */
	int fd = openat(sampler->target->task_fd, path, O_RDONLY | O_CLOEXEC);
	sampler->open_files += fd >= 0;
	return fd;
}

/* Merges the sorted ids of a listing: new threads are added, what is missing is gone. */
static bool merge(struct ss_sampler *sampler, const pid_t *tids, size_t count)
{
	SS_VECTOR(struct ss_sampled) merged = {};
	size_t at = 0;

	if (!ss_vector_reserve(&merged, count + sampler->threads.count + 1))
		return false;
	for (size_t i = 0; i < count; i++) {
		for (; at < sampler->threads.count &&
		       sampler->threads.items[at].tid < tids[i];
		     at++) {
			merged.items[merged.count] = sampler->threads.items[at];
			merged.items[merged.count++].gone = true;
		}
		if (at < sampler->threads.count &&
		    sampler->threads.items[at].tid == tids[i])
			merged.items[merged.count++] = sampler->threads.items[at++];
		else
			merged.items[merged.count++] = (struct ss_sampled){
				.tid = tids[i],
				.schedstat_fd = open_schedstat(sampler, tids[i]),
				.state = '?',
			};
	}
	for (; at < sampler->threads.count; at++) {
		merged.items[merged.count] = sampler->threads.items[at];
		merged.items[merged.count++].gone = true;
	}
	ss_vector_free(&sampler->threads);
	memcpy(&sampler->threads, &merged, sizeof(merged));
	return true;
}

static bool list_threads(struct ss_sampler *sampler)
{
	struct ss_task_list *scan = &sampler->scan;

	do {
		scan->items.count = scan->sorted_count = 0;
		if (!ss_tasks_reserve(scan, ss_tasks_count_now(sampler->target) * 2 + 64))
			return false;
		(void)ss_tasks_scan(scan, sampler->target);
	} while (scan->unseen > 0);
	return merge(sampler, scan->sorted, scan->sorted_count);
}

static bool read_open(const struct ss_sampled *thread, struct ss_schedstat *ret)
{
	char bytes[RECORD_MAX];
	ssize_t n = pread(thread->schedstat_fd, bytes, sizeof(bytes) - 1, 0);

	if (n <= 0)
		return false;
	bytes[n] = '\0';
	return ss_schedstat_parse(bytes, (size_t)n, ret);
}

uint64_t ss_sampled_count(const struct ss_sampled *thread)
{
	struct ss_schedstat stat;

	return read_open(thread, &stat) ? stat.run_count : 0;
}

/* Its times on a CPU. False: it has ended. */
static bool read_schedstat(struct ss_sampler *sampler, const struct ss_sampled *thread,
			   struct ss_schedstat *ret)
{
	if (thread->schedstat_fd < 0)
		return ss_target_read_task(sampler->target, thread->tid, "schedstat",
					   &sampler->text) &&
		       ss_schedstat_parse(sampler->text.bytes, sampler->text.size, ret);
	return read_open(thread, ret);
}

bool ss_sampled_is_still(struct ss_sampler *sampler, const struct ss_sampled *thread)
{
	struct ss_schedstat stat;

	return thread->settled && thread->run_count != 0 &&
	       read_schedstat(sampler, thread, &stat) &&
	       stat.run_count == thread->run_count;
}

/* Reads the figures of a thread. Whether it has run since they were read last. */
static bool ask(struct ss_sampler *sampler, struct ss_sampled *thread)
{
	struct ss_schedstat stat;

	if (thread->gone)
		return false;
	if (!read_schedstat(sampler, thread, &stat)) {
		thread->gone = true;
		return true;
	}
	bool ran = stat.run_count != thread->counted || stat.run_count == 0;
	thread->run_ns = stat.run_ns;
	thread->counted = stat.run_count;
	if (ran)
		thread->quiet = 0;
	if (!thread->settled || stat.run_count != thread->run_count ||
	    stat.run_count == 0) {
		thread->touched = true;
		thread->settled = false;
		thread->run_count = stat.run_count;
	}
	return ran;
}

/* Asks those that ran a short while ago, or all. How many others have run. */
static size_t ask_threads(struct ss_sampler *sampler, bool all)
{
	size_t others = 0;

	for (size_t i = 0; i < sampler->threads.count; i++) {
		struct ss_sampled *thread = &sampler->threads.items[i];
		bool lively = thread->quiet < QUIET || !thread->settled;
		if (lively || all)
			others += ask(sampler, thread) && !lively;
	}
	return others;
}

/* Whether the list of threads is up to date. */
static bool is_listed(const struct ss_sampler *sampler)
{
	size_t alive = 0;

	for (size_t i = 0; i < sampler->threads.count; i++)
		alive += !sampler->threads.items[i].gone;
	return alive == ss_tasks_count_now(sampler->target);
}

static bool count_runs(const struct ss_sampler *sampler, uint64_t *ret)
{
	return ss_taskstats_count_runs(&sampler->balance.stats, sampler->target->pid,
				       ret);
}

/* What the kernel counts beyond what is known of the threads. */
static uint64_t rest_of(const struct ss_sampler *sampler, uint64_t runs)
{
	for (size_t i = 0; i < sampler->threads.count; i++)
		runs -= sampler->threads.items[i].counted;
	return runs;
}

/* Whether the lively threads are all that have run; if so, they have been asked. */
static bool ask_lively(struct ss_sampler *sampler)
{
	uint64_t runs;

	for (int i = 0; i < BALANCE_TRIES; i++) {
		(void)ask_threads(sampler, false);
		if (!is_listed(sampler) || !count_runs(sampler, &runs))
			return false;
		if (rest_of(sampler, runs) == sampler->balance.rest)
			return true;
	}
	return false;
}

/* It pays only where most threads are quiet in most ticks. */
static void put_off(struct ss_balance *balance)
{
	balance->pause = 1u << SS_MIN(balance->failed, (unsigned)PAUSE_BITS);
	balance->failed++;
}

/* Asks the lively threads at a moment at which none of the process began to run. */
static bool ask_in_between(struct ss_sampler *sampler, uint64_t *runs)
{
	uint64_t after;

	if (!count_runs(sampler, runs))
		return false;
	for (int i = 0; i < BETWEEN_TRIES; i++) {
		(void)ask_threads(sampler, false);
		if (!count_runs(sampler, &after))
			return false;
		if (after == *runs)
			return true;
		*runs = after;
	}
	return false;
}

/*
 * After all have been asked: what the rest is. Others may have run since they were asked;
 * if they are asked once more and none has, what is known of them was right.
 */
static void find_rest(struct ss_sampler *sampler)
{
	struct ss_balance *balance = &sampler->balance;
	uint64_t runs;

	if (balance->known || balance->stats.fd < 0)
		return;
	if (ask_in_between(sampler, &runs)) {
		balance->rest = rest_of(sampler, runs);
		balance->known = ask_threads(sampler, true) == 0 && is_listed(sampler);
	}
	if (!balance->known)
		put_off(balance);
}

/* Which threads have run since they were looked at last, or are running. False: the list
   of threads is out of date. */
static bool find_lively(struct ss_sampler *sampler)
{
	struct ss_balance *balance = &sampler->balance;

	if (balance->pause > 0) {
		balance->pause--;
	} else if (balance->known) {
		if (ask_lively(sampler)) {
			balance->failed = 0;
			return true;
		}
		put_off(balance);
	}
	(void)ask_threads(sampler, true);
	if (!is_listed(sampler)) {
		balance->known = false;
		return false;
	}
	if (balance->pause == 0)
		find_rest(sampler);
	return is_listed(sampler);
}

struct ss_sampled *ss_sampled_find(struct ss_sampler *sampler, pid_t tid)
{
	size_t low = 0;
	size_t high = sampler->threads.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (sampler->threads.items[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sampler->threads.count && sampler->threads.items[low].tid == tid ?
		       &sampler->threads.items[low] :
		       NULL;
}

bool ss_sampled_refresh(struct ss_sampler *sampler)
{
	forget_gone(sampler);
	if (find_lively(sampler))
		return true;
	if (!list_threads(sampler))
		return false;
	(void)find_lively(sampler); /* what comes now is for the next tick */
	return true;
}
