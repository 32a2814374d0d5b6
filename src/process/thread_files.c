#include "process/target.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/search.h"
#include "data/capture.h"
#include "data/gather.h"
#include "process/process_memory.h"

/* stat and syscall are far smaller; the line Groups can make status long. */
enum {
	RECORD_MAX = 8 * 1024,
	STATUS_MAX = 32 * 1024, /* with a thousand groups before CoreDumping */
	PATH_SIZE = 64,
};

/* Of open files. */
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

/* Reads the file of a thread. False: it is not kept, or the thread has ended. */
static bool read_kept_stat(const struct ss_kept_files *kept, pid_t tid,
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

/* Opens a file, but only few calls have arguments in memory. */
static bool read_words(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct ss_target *target = data;
	_cleanup_close_ int pagemap =
		openat(target->proc_fd, "pagemap", O_RDONLY | O_CLOEXEC);
	const struct ss_process_memory memory = { .tid = target->live,
						  .mem_fd = -1,
						  .pagemap_fd = pagemap };
	struct ss_piece piece = { .address = address, .bytes = bytes, .size = size };

	ss_process_memory_read_present(&memory, &piece, 1);
	return piece.done == size;
}

void ss_target_unfold(const struct ss_target *target, struct ss_syscall_text *text)
{
	struct ss_syscall call = { .number = text->number };

	if (!target->arch->unfold || text->kind != SS_SYSCALL_BLOCKED)
		return;
	memcpy(call.args, text->args, sizeof(call.args));
	target->arch->unfold(&call, read_words, ss_drop_const(target));
	text->number = call.number;
	memcpy(text->args, call.args, sizeof(text->args));
}

bool ss_target_read_syscall(const struct ss_target *target, pid_t tid,
			    struct ss_buffer *text, struct ss_syscall_text *ret)
{
	if (!ss_target_read_task(target, tid, "syscall", text) ||
	    !ss_syscall_parse(text->bytes, text->size, ret))
		return false;
	ss_target_unfold(target, ret);
	return true;
}

SS_DEFINE_COMPARE(compare_tids, struct ss_kept_thread, tid)

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

/* Files that are opened for a read ------------------------------------------ */

/* Writes "TID/name". A freeze does not format. */
static void make_path(char path[PATH_SIZE], pid_t tid, const char *name)
{
	char digits[16];
	size_t count = 0;

	for (unsigned left = (unsigned)tid; left > 0 || count == 0; left /= 10)
		digits[count++] = (char)('0' + left % 10);
	while (count > 0)
		*path++ = digits[--count];
	*path++ = '/';
	memcpy(path, name, strlen(name) + 1);
}

bool ss_target_read_task(const struct ss_target *target, pid_t tid, const char *name,
			 struct ss_buffer *text)
{
	char path[PATH_SIZE];

	make_path(path, tid, name);
	return ss_io_read_record(target->task_fd, path, RECORD_MAX, text) == 0;
}

bool ss_target_read_stat(const struct ss_target *target, pid_t tid,
			 struct ss_buffer *text, struct ss_stat *ret)
{
	if (target->kept && read_kept_stat(target->kept, tid, ret))
		return true;
	return ss_target_read_task(target, tid, "stat", text) &&
	       ss_stat_parse(text->bytes, text->size, ret);
}

bool ss_target_read_status(const struct ss_target *target, pid_t tid,
			   struct ss_buffer *text, struct ss_status *ret)
{
	return ss_target_read_task(target, tid, "status", text) &&
	       ss_status_parse(text->bytes, text->size, ret);
}

char ss_target_peek_state(const struct ss_target *target, pid_t tid)
{
	char path[PATH_SIZE];
	char text[STAT_SIZE];
	struct ss_stat stat;

	make_path(path, tid, "stat");
	_cleanup_close_ int fd = openat(target->task_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	return n > 0 && ss_stat_parse(text, (size_t)n, &stat) ? stat.state : '\0';
}

int ss_target_open_task(const struct ss_target *target, pid_t tid, const char *name)
{
	char path[PATH_SIZE];

	make_path(path, tid, name);
	return openat(target->task_fd, path, O_RDONLY | O_CLOEXEC);
}

bool ss_target_dumps_core(int status_fd)
{
	char text[STATUS_MAX];
	ssize_t n = status_fd < 0 ? -1 : pread(status_fd, text, sizeof(text), 0);

	return n > 0 && ss_status_dumps_core(text, (size_t)n);
}
