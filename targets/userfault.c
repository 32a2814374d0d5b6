/*
 * Threads whose stacks have missing pages: reading them blocks on a userfaultfd(2) that
 * nobody serves. The exit status is 77 if the kernel does not permit userfaultfd.
 *
 * Thread "worker": poll, target_block, worker_routine, target_thread_main, start_thread,
 * clone3; the missing pages are between the frames of target_block and worker_routine.
 * Nobody has touched them, so the stack can be read without them.
 * Thread "evicted": poll, target_block, evicted_routine, caller_routine,
 * target_thread_main, start_thread, clone3; the page with the frame of evicted_routine
 * was dropped.
 * The main thread: read, target_wait, main, libc's start, _start.
 */
#include "target.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GAP = 64 << 10 };

enum { PAGE = 4096 };

static void *inside; /* the stack of worker */
static char *frame;  /* of evicted_routine */

TARGET_FRAME static void worker_routine(void *arg)
{
	volatile char gap[GAP];

	(void)arg;
	inside = (void *)&gap[GAP / 2];
	target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void evicted_routine(void)
{
	volatile char gap[2 * PAGE];

	gap[0] = 0;
	(void)gap[0];
	frame = __builtin_frame_address(0);
	target_block();
	TARGET_KEEP();
}

/* Keeps the page of that frame apart from the pages of the C library. */
TARGET_FRAME static void caller_routine(void *arg)
{
	volatile char gap[2 * PAGE];

	(void)arg;
	gap[0] = 0;
	(void)gap[0];
	evicted_routine();
	TARGET_KEEP();
}

/* The mapping that contains an address. */
static struct uffdio_range find_mapping(const void *address)
{
	struct uffdio_range range = { 0 };
	unsigned long start;
	unsigned long end;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	if (!maps)
		target_die("/proc/self/maps");
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 &&
		    (uintptr_t)address >= start && (uintptr_t)address < end)
			range = (struct uffdio_range){ .start = start,
						       .len = end - start };
	fclose(maps);
	return range;
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0)
		return 77;
	target_init();
	target_start("worker", SYS_poll, worker_routine, NULL);
	struct uffdio_register missing = { .range = find_mapping(inside),
					   .mode = UFFDIO_REGISTER_MODE_MISSING };
	if (ioctl(fd, UFFDIO_REGISTER, &missing) != 0)
		return 77;
	target_start("evicted", SYS_poll, caller_routine, NULL);
	/* The frame address is below the return address. */
	char *page =
		(char *)((uintptr_t)(frame + sizeof(void *)) & ~(uintptr_t)(PAGE - 1));
	missing.range = find_mapping(page);
	if (madvise(page, PAGE, MADV_DONTNEED) != 0 ||
	    ioctl(fd, UFFDIO_REGISTER, &missing) != 0)
		return 77;
	target_wait();
	return 0;
}
