#include "process/kept_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/search.h"

enum {
	RECORD_SIZE = 128, /* of schedstat: three numbers */
	STAT_SIZE = 2048,  /* of stat: about 50 numbers, and a name */
	CALL_SIZE = 512,   /* of syscall: nine numbers */
};

static void close_file(int *file)
{
	int fd = *file - 1;

	close_cleanup(&fd);
	*file = 0;
}

void ss_kept_thread_close(struct ss_kept_thread *thread)
{
	close_file(&thread->stat);
	close_file(&thread->schedstat);
	close_file(&thread->syscall);
}

static void close_threads(struct ss_kept_files *kept)
{
	for (size_t i = 0; i < kept->threads.count; i++)
		ss_kept_thread_close(&kept->threads.items[i]);
	kept->threads.count = 0;
}

void ss_kept_files_clear(struct ss_kept_files *kept)
{
	close_threads(kept);
	close_cleanup(&kept->maps_fd);
	kept->maps_fd = -1;
}

struct ss_kept_files *ss_kept_files_new(void)
{
	struct ss_kept_files *kept = calloc(1, sizeof(*kept));

	if (kept)
		kept->maps_fd = -1;
	return kept;
}

void ss_kept_files_free(struct ss_kept_files *kept)
{
	if (!kept)
		return;
	ss_kept_files_clear(kept);
	if (kept->scratch)
		(void)munmap(kept->scratch, kept->scratch_size); /* our mapping */
	ss_gather_free(kept->gather);
	ss_page_cache_free(kept->pages);
	ss_vector_free(&kept->threads);
	free(kept);
}

/* Its index, or the number of threads. */
static size_t find_thread(const struct ss_kept_files *kept, pid_t tid)
{
	size_t count = kept ? kept->threads.count : 0;
	size_t at = ss_lower_bound(count, i, kept->threads.items[i].tid < tid);

	return at < count && kept->threads.items[at].tid == tid ? at : count;
}

void ss_kept_files_take(struct ss_kept_files *kept, struct ss_kept_thread *thread)
{
	size_t at = find_thread(kept, thread->tid);

	if (!kept || at == kept->threads.count)
		return;
	*thread = kept->threads.items[at];
	kept->threads.items[at].stat = kept->threads.items[at].schedstat = 0;
}

bool ss_kept_files_read_stat(const struct ss_kept_files *kept, pid_t tid,
			     struct ss_stat *ret)
{
	size_t at = find_thread(kept, tid);

	return at < kept->threads.count &&
	       ss_kept_thread_read_stat(&kept->threads.items[at], ret);
}

uint64_t ss_kept_files_count_runs(const struct ss_kept_files *kept, pid_t tid)
{
	size_t at = find_thread(kept, tid);

	return kept && at < kept->threads.count ?
		       ss_kept_thread_count_runs(&kept->threads.items[at]) :
		       0;
}

uint64_t ss_kept_thread_count_runs(const struct ss_kept_thread *thread)
{
	char record[RECORD_SIZE];
	struct ss_schedstat stat;
	ssize_t n = thread->schedstat ?
			    pread(thread->schedstat - 1, record, sizeof(record), 0) :
			    -1;

	return n > 0 && ss_schedstat_parse(record, (size_t)n, &stat) ? stat.run_count : 0;
}

bool ss_kept_thread_read_stat(const struct ss_kept_thread *thread, struct ss_stat *ret)
{
	char record[STAT_SIZE];
	ssize_t n = thread->stat ? pread(thread->stat - 1, record, sizeof(record), 0) :
				   -1;

	return n > 0 && ss_stat_parse(record, (size_t)n, ret);
}

bool ss_kept_thread_read_syscall(const struct ss_kept_thread *thread,
				 struct ss_syscall_text *ret)
{
	char record[CALL_SIZE];
	ssize_t n = thread->syscall ?
			    pread(thread->syscall - 1, record, sizeof(record) - 1, 0) :
			    -1;

	if (n <= 0)
		return false;
	record[n] = '\0';
	return ss_syscall_parse(record, (size_t)n, ret);
}

static int compare_tids(const void *a, const void *b)
{
	const struct ss_kept_thread *x = a;
	const struct ss_kept_thread *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

void ss_kept_files_replace(struct ss_kept_files *kept, struct ss_kept_thread *threads,
			   size_t count)
{
	close_threads(kept);
	if (!ss_vector_reserve(&kept->threads, count)) {
		for (size_t i = 0; i < count; i++)
			ss_kept_thread_close(&threads[i]);
		return;
	}
	if (count == 0)
		return;
	memcpy(kept->threads.items, threads, count * sizeof(*threads));
	kept->threads.count = count;
	if (count > 1)
		qsort(kept->threads.items, count, sizeof(*threads), compare_tids);
}
