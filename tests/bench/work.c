/*
 * work FILE THREADS RUNNING: starts THREADS threads of which RUNNING run and the others are
 * blocked, for measuring the cost of a recorder. FILE becomes an array of 64-bit integers,
 * one for each running thread: the nanoseconds that it ran, which are the differences of
 * consecutive clock readings without gaps. (Counting loops would measure how fast the CPU
 * is, which depends on its hyperthread sibling.) Exits at the end of standard input.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { GAP_NS = 5000 };

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *compute(void *arg)
{
	_Atomic uint64_t *ran = arg;
	uint64_t last = now_ns();

	for (;;) {
		uint64_t now = now_ns();
		if (now - last < GAP_NS)
			atomic_store_explicit(ran, *ran + (now - last),
					      memory_order_relaxed);
		last = now;
	}
	return NULL;
}

static void *block(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 0;
	int running = argc > 3 ? atoi(argv[3]) : 0;
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	size_t size = (size_t)(running ? running : 1) * sizeof(uint64_t);
	pthread_attr_t attr;
	pthread_t thread;
	char byte;

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return 1;
	uint64_t *ran = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ran == MAP_FAILED || pthread_attr_init(&attr) ||
	    pthread_attr_setstacksize(&attr, 64 << 10))
		return 1;
	for (int i = 0; i < threads; i++) {
		void *(*routine)(void *) = i < running ? compute : block;
		if (pthread_create(&thread, &attr, routine, ran + (i < running ? i : 0)))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) < 0;
}
