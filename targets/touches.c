/*
 * Touches new memory in turns, when a line comes from standard input:
 *
 * touches CYCLES THREADS
 *
 * CYCLES times, touch_first and then touch_second map 64 pages, touch each, and unmap them; main
 * calls both. Then THREADS threads, one after the other, touch 60 pages each in touch_some.
 *
 * Prints "done" afterwards, and waits.
 */
#include "target.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 64, PAGES_OF_THREAD = 60 };

static inline void touch(size_t pages, char value)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	for (size_t i = 0; i < pages; i++)
		memory[i * page] = value;
	munmap((void *)memory, pages * page);
}

TARGET_FRAME static void touch_first(void)
{
	touch(PAGES, 1);
	TARGET_KEEP();
}

TARGET_FRAME static void touch_second(void)
{
	touch(PAGES, 2);
	TARGET_KEEP();
}

static void *touch_some(void *arg)
{
	touch(PAGES_OF_THREAD, 3);
	TARGET_KEEP();
	return arg;
}

int main(int argc, char **argv)
{
	unsigned long cycles = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	unsigned long threads = argc > 2 ? strtoul(argv[2], NULL, 10) : 10;
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 0;
	for (unsigned long i = 0; i < cycles; i++) {
		touch_first();
		touch_second();
	}
	for (unsigned long i = 0; i < threads; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, touch_some, NULL) == 0)
			pthread_join(thread, NULL);
	}
	puts("done");
	fflush(stdout);
	target_wait();
	return 0;
}
