/*
 * A process with very many mappings.
 *
 * areas [COUNT]	maps COUNT pages, each as a mapping of its own (default: 30000)
 *
 * Thread "worker":	poll, target_block, worker_routine, target_thread_main,
 *			start_thread, clone3
 * The main thread:	read, target_wait, main, libc's start, _start
 */
#include "target.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

TARGET_FRAME static void worker_routine(void *arg)
{
	(void)arg;
	target_block();
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	size_t count = target_number(argc, argv, 1, 30000);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	target_init();
	char *areas =
		mmap(NULL, count * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (areas == MAP_FAILED)
		target_die("mmap");
	/* adjacent pages with different protection are separate mappings */
	for (size_t i = 0; i < count; i += 2)
		if (mprotect(areas + i * page, page, PROT_NONE) != 0)
			target_die("mprotect");
	target_start("worker", SYS_poll, worker_routine, NULL);
	target_wait();
	return 0;
}
