/*
 * A process with a thread that the kernel created: a worker of io_uring.
 *
 * kernel_worker
 *
 * Thread iou-wrk-PID has no user stack. The main thread reads standard input:
 *	the libc's frames of read, target_wait, main, ...
 */
#include "target.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *map_ring(int fd, size_t size, off_t offset)
{
	void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	if (ring == MAP_FAILED)
		target_die("mmap");
	return ring;
}

/* Reads from a pipe that nobody writes to, so that the kernel creates a worker thread. */
int main(void)
{
	static char byte;
	struct io_uring_params params = { 0 };
	int ends[2];
	int fd = (int)syscall(SYS_io_uring_setup, 4, &params);

	target_init();
	if (fd < 0) {
		puts("no io_uring");
		target_wait();
		return 0;
	}
	if (pipe2(ends, O_CLOEXEC) != 0)
		target_die("pipe2");
	uint8_t *ring = map_ring(fd, params.sq_off.array + 4 * sizeof(uint32_t),
				 IORING_OFF_SQ_RING);
	struct io_uring_sqe *entries =
		map_ring(fd, 4 * sizeof(*entries), IORING_OFF_SQES);
	entries[0] = (struct io_uring_sqe){ .opcode = IORING_OP_READ,
					    .flags = IOSQE_ASYNC,
					    .fd = ends[0],
					    .addr = (uintptr_t)&byte,
					    .len = 1 };
	((uint32_t *)(ring + params.sq_off.array))[0] = 0;
	__atomic_store_n((uint32_t *)(ring + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, fd, 1, 0, 0, NULL, 0) != 1)
		target_die("io_uring_enter");
	target_wait();
	return 0;
}
