/*
 * Allocates known amounts of memory at known places, when a line comes from standard input:
 *
 * grows SMALL LARGE CHURN	(MiB)
 *
 * leak_small:	SMALL MiB in allocations of 1,000 bytes, in thread "small"; all are kept
 * leak_large:	LARGE MiB in allocations of 3 MiB, in thread "large"; all are kept
 * churn:	CHURN MiB in mappings of 4 MiB, in the main thread, each removed before the next one
 *
 * Each fills what it has allocated, without transparent huge pages. Prints "done" afterwards, and
 * waits. The caller is small_routine or large_routine, and main for churn.
 */
#include "target.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SMALL_BYTES = 1000, LARGE_BYTES = 3 << 20, CHURN_BYTES = 4 << 20, MIB = 1 << 20 };

static void *volatile kept;

TARGET_FRAME static void leak_small(size_t bytes)
{
	for (size_t sum = 0; sum < bytes; sum += SMALL_BYTES) {
		char *memory = malloc(SMALL_BYTES);
		if (!memory)
			abort();
		for (size_t i = 0; i < SMALL_BYTES; i++)
			((volatile char *)memory)[i] = 1;
		kept = memory;
	}
	TARGET_KEEP();
}

TARGET_FRAME static void leak_large(size_t bytes)
{
	for (size_t sum = 0; sum < bytes; sum += LARGE_BYTES) {
		char *memory = malloc(LARGE_BYTES);
		if (!memory)
			abort();
		for (size_t i = 0; i < LARGE_BYTES; i += 64)
			((volatile char *)memory)[i] = 1;
		kept = memory;
	}
	TARGET_KEEP();
}

TARGET_FRAME static void churn(size_t bytes)
{
	for (size_t sum = 0; sum < bytes; sum += CHURN_BYTES) {
		char *memory = mmap(NULL, CHURN_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			abort();
		for (size_t i = 0; i < CHURN_BYTES; i += 64)
			((volatile char *)memory)[i] = 1;
		munmap(memory, CHURN_BYTES);
	}
	TARGET_KEEP();
}

static size_t sizes[2];

static void *small_routine(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "small");
	leak_small(sizes[0]);
	TARGET_KEEP();
	return NULL;
}

static void *large_routine(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "large");
	leak_large(sizes[1]);
	TARGET_KEEP();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	char line[16];

	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* or has none */
	sizes[0] = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) * MIB;
	sizes[1] = (argc > 2 ? strtoul(argv[2], NULL, 10) : 64) * MIB;
	size_t churned = (argc > 3 ? strtoul(argv[3], NULL, 10) : 64) * MIB;
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 0;
	pthread_create(&threads[0], NULL, small_routine, NULL);
	pthread_create(&threads[1], NULL, large_routine, NULL);
	churn(churned);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	puts("done");
	fflush(stdout);
	target_wait();
	return 0;
}
