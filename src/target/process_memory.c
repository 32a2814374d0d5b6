#include "target/process_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "target/target.h"

/* UIO_MAXIOV; more are refused with EINVAL. */
enum { PIECES_MAX = 1024 };

/* Of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). */
enum { PAGE_SHIFT = 12, PAGE_SIZE = 1 << PAGE_SHIFT, ENTRIES_MAX = 64 };
static const uint64_t page_is_known = UINT64_C(3) << 62; /* present, or in swap */

/* Calls process_vm_readv once. Returns the number of bytes, or -errno. */
static ssize_t read_batch(pid_t tid, struct ss_piece *pieces, size_t count)
{
	struct iovec local[PIECES_MAX];
	struct iovec remote[PIECES_MAX];

	for (size_t i = 0; i < count; i++) {
		struct ss_piece *p = &pieces[i];
		local[i].iov_base = (char *)p->bytes + p->done;
		local[i].iov_len = p->size - p->done;
		remote[i].iov_base = (void *)(uintptr_t)(p->address + p->done);
		remote[i].iov_len = p->size - p->done;
	}
	ssize_t n = process_vm_readv(tid, local, count, remote, count, 0);
	return n < 0 ? -errno : n;
}

/* Assigns the bytes read to the pieces. Returns how many pieces are complete. */
static size_t account(struct ss_piece *pieces, size_t count, size_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		size_t left = pieces[i].size - pieces[i].done;
		size_t got = SS_MIN(bytes, left);
		pieces[i].done += got;
		bytes -= got;
		if (got < left)
			return i;
	}
	return count;
}

static void read_by_file(int mem_fd, struct ss_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count && mem_fd >= 0; i++) {
		ssize_t n = ss_io_pread(mem_fd, pieces[i].bytes, pieces[i].size,
					pieces[i].address);
		pieces[i].done = n > 0 ? (size_t)n : 0;
	}
}

void ss_process_memory_read(const struct ss_process_memory *memory,
			    struct ss_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++)
		pieces[i].done = 0;
	while (count > 0) {
		size_t batch = SS_MIN(count, (size_t)PIECES_MAX);
		ssize_t n = read_batch(memory->tid, pieces, batch);
		if (n < 0 && n != -EFAULT) {
			read_by_file(memory->mem_fd, pieces, count);
			return;
		}
		/* A short read ends at an unreadable piece: skip it. */
		size_t complete = account(pieces, batch, n > 0 ? (size_t)n : 0);
		complete += complete < batch;
		pieces += complete;
		count -= complete;
	}
}

/*
 * The length of the prefix whose pages are alike: all of them present, or none.
 * A page that is not may wait when it is read; one that is does not.
 */
static size_t measure_run(int pagemap_fd, uint64_t address, size_t size, bool *present)
{
	uint64_t entries[ENTRIES_MAX];
	uint64_t page = address >> PAGE_SHIFT;
	uint64_t end = address + size;

	*present = true; /* if it is unknown */
	for (uint64_t at = page; at << PAGE_SHIFT < end;) {
		size_t count =
			SS_MIN((size_t)((end - (at << PAGE_SHIFT) + PAGE_SIZE - 1) >>
					PAGE_SHIFT),
			       (size_t)ENTRIES_MAX);
		ssize_t n = pread(pagemap_fd, entries, count * sizeof(entries[0]),
				  (off_t)(at * sizeof(entries[0])));
		if (n < (ssize_t)sizeof(entries[0]))
			break;
		for (size_t i = 0; i < (size_t)n / sizeof(entries[0]); i++, at++) {
			bool known = (entries[i] & page_is_known) != 0;
			if (at == page)
				*present = known;
			else if (known != *present)
				return SS_MIN(size,
					      (size_t)((at << PAGE_SHIFT) - address));
		}
	}
	return size;
}

/* A piece with pages that are not present. */
static void read_runs(const struct ss_process_memory *memory, struct ss_piece *piece)
{
	bool present;

	for (piece->done = 0; piece->done < piece->size;) {
		struct ss_piece run = { .address = piece->address + piece->done,
					.bytes = (char *)piece->bytes + piece->done };
		run.size = measure_run(memory->pagemap_fd, run.address,
				       piece->size - piece->done, &present);
		if (present) {
			ss_process_memory_read(memory, &run, 1);
		} else if (piece->sparse) {
			memset(run.bytes, 0, run.size);
			run.done = run.size;
		}
		piece->done += run.done;
		piece->waits = !present && !piece->sparse;
		if (run.done < run.size)
			return;
	}
}

/* The number of the page that has all bytes; UINT64_MAX: there are several. Threads often
   wait for locks in the same page. */
static uint64_t page_of(const struct ss_piece *piece)
{
	uint64_t page = piece->address >> PAGE_SHIFT;

	return piece->size && (piece->address + piece->size - 1) >> PAGE_SHIFT == page ?
		       page :
		       UINT64_MAX;
}

void ss_process_memory_read_present(const struct ss_process_memory *memory,
				    struct ss_piece *pieces, size_t count)
{
	uint64_t known = UINT64_MAX; /* a page that is present */
	size_t first = 0;	     /* of those that are read together */

	for (size_t i = 0; i < count && memory->pagemap_fd >= 0; i++) {
		uint64_t page = page_of(&pieces[i]);
		bool present;
		if (page == known && page != UINT64_MAX) {
			pieces[i].waits = false;
			continue;
		}
		size_t run = measure_run(memory->pagemap_fd, pieces[i].address,
					 pieces[i].size, &present);
		pieces[i].waits = false;
		if (present && page != UINT64_MAX)
			known = page;
		if (pieces[i].unmapped || (present && run == pieces[i].size))
			continue;
		ss_process_memory_read(memory, &pieces[first], i - first);
		read_runs(memory, &pieces[i]);
		first = i + 1;
	}
	ss_process_memory_read(memory, &pieces[first], count - first);
}

void ss_process_memory_peek(pid_t tid, struct ss_piece *piece)
{
	piece->done = 0;
	while (piece->done < piece->size) {
		errno = 0;
		long word = ptrace(PTRACE_PEEKDATA, tid, piece->address + piece->done, 0);
		if (errno != 0)
			return;
		size_t n = SS_MIN(piece->size - piece->done, sizeof(word));
		memcpy((char *)piece->bytes + piece->done, &word, n);
		piece->done += n;
	}
}

bool ss_process_memory_is_mapped(const struct ss_process_memory *memory,
				 const struct ss_target *target, int maps_fd)
{
	char byte;

	return lseek(maps_fd, 0, SEEK_SET) == 0 &&
	       read(maps_fd, &byte, sizeof(byte)) == sizeof(byte) &&
	       ss_target_program(target) == memory->program;
}
