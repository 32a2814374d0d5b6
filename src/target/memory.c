#include "target/memory.h"

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

/* One process_vm_readv over as many pieces as it takes. The bytes read or -errno. */
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

/* Spreads the bytes read over the pieces. The number of pieces that are complete. */
static size_t account(struct ss_piece *pieces, size_t count, size_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		size_t wanted = pieces[i].size - pieces[i].done;
		size_t got = SS_MIN(bytes, wanted);
		pieces[i].done += got;
		bytes -= got;
		if (got < wanted)
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

void ss_memory_read(const struct ss_memory *memory, struct ss_piece *pieces, size_t count)
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
		/* A short read ends in the piece that could not be read: pass over it. */
		size_t complete = account(pieces, batch, n > 0 ? (size_t)n : 0);
		complete += complete < batch;
		pieces += complete;
		count -= complete;
	}
}

void ss_memory_peek(pid_t tid, struct ss_piece *piece)
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

bool ss_memory_is_mapped(const struct ss_memory *memory, const struct ss_target *target,
			 int maps_fd)
{
	char byte;

	return lseek(maps_fd, 0, SEEK_SET) == 0 &&
	       read(maps_fd, &byte, sizeof(byte)) == sizeof(byte) &&
	       ss_target_program(target) == memory->program;
}
