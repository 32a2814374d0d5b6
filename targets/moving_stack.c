/*
 * A thread that computes, and whose stack pointer is moved every millisecond to memory that
 * was just mapped: reading it blocks on a userfaultfd(2) that nobody serves. The exit
 * status is 77 if the kernel does not permit userfaultfd.
 *
 * Thread "computes": spin; its stack cannot be read.
 * The main thread: read, target_wait, main, libc's start, _start.
 */
#include "target.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 128 << 10, KEPT = 64 };

static void *volatile stack; /* the stack pointer to use */
static int fd;

/* No signal may arrive here, since there is no stack. */
TARGET_FRAME static void spin(void)
{
	__asm__ volatile("1:	mov %0, %%rsp\n"
			 "	pause\n"
			 "	jmp 1b\n"
			 :
			 : "m"(stack)
			 : "memory");
}

TARGET_FRAME static void compute(void *arg)
{
	(void)arg;
	target_arrive();
	spin();
	TARGET_KEEP();
}

static bool move(void)
{
	static char *kept[KEPT];
	static unsigned next;
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register missing = {
		.range = { .start = (uintptr_t)memory, .len = SIZE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (memory == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &missing) != 0)
		return false;
	stack = memory + SIZE / 2;
	if (kept[next])
		munmap(kept[next], SIZE);
	kept[next] = memory;
	next = (next + 1) % KEPT;
	return true;
}

static void move_on(void *arg)
{
	const struct timespec period = { .tv_nsec = 1000000 };

	(void)arg;
	target_arrive();
	while (move())
		nanosleep(&period, NULL);
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API };

	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || !move())
		return 77;
	target_init();
	target_start("moves", -1, move_on, NULL);
	target_start("computes", -1, compute, NULL);
	target_wait();
	return 0;
}
