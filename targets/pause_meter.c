/*
 * A thread that spins and records every gap in its own execution, and blocked threads.
 *
 * pause_meter [THREADS [DEPTH [MAPFILE]]]	(default: 10 10, no MAPFILE)
 *
 * Thread "meter":	measure, thread_routine, target_thread_main, start_thread, clone3;
 *			mostly with clock_gettime and the vDSO above measure
 * Threads "blocked-I":	poll, target_block, DEPTH times descend, block_routine,
 *			target_thread_main, start_thread, clone3
 * pause_meter.h describes MAPFILE.
 */
#include "target.h"
#include "pause_meter.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void record(struct pause_meter *meter, uint64_t gap)
{
	if (gap > meter->max_gap_ns)
		meter->max_gap_ns = gap;
	if (gap >= meter->threshold_ns) {
		meter->gaps_over++;
		meter->gaps_over_ns += gap;
	}
	if (gap)
		meter->histogram[63 - __builtin_clzll(gap)]++;
	meter->samples++;
}

static void reset(struct pause_meter *meter)
{
	meter->max_gap_ns = 0;
	meter->gaps_over = 0;
	meter->gaps_over_ns = 0;
	meter->samples = 0;
	for (int i = 0; i < PAUSE_METER_BUCKETS; i++)
		meter->histogram[i] = 0;
	__atomic_store_n(&meter->reset_done, meter->reset_wanted, __ATOMIC_RELEASE);
}

TARGET_FRAME static void measure(struct pause_meter *meter)
{
	uint64_t last = now_ns();

	target_arrive();
	while (meter->running) {
		uint64_t now = now_ns();

		if (meter->reset_wanted != meter->reset_done)
			reset(meter);
		else
			record(meter, now - last);
		meter->now_ns = now;
		last = now;
		__asm__ volatile("" ::: "memory");
	}
}

TARGET_FRAME static void thread_routine(void *arg)
{
	struct pause_meter *meter = arg;

	meter->tid = gettid();
	meter->pid = getpid();
	meter->version = PAUSE_METER_VERSION;
	meter->threshold_ns = PAUSE_METER_THRESHOLD_NS;
	meter->running = 1;
	memcpy(meter->magic, PAUSE_METER_MAGIC, sizeof(meter->magic));
	measure(meter);
	TARGET_KEEP();
}

TARGET_FRAME static void descend(unsigned left)
{
	if (left <= 1)
		target_block();
	else
		descend(left - 1);
	TARGET_KEEP();
}

TARGET_FRAME static void block_routine(void *arg)
{
	unsigned depth = *(unsigned *)arg;

	if (depth)
		descend(depth);
	else
		target_block();
	TARGET_KEEP();
}

static struct pause_meter *map(const char *path)
{
	int flags = path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (path && (fd < 0 || ftruncate(fd, sizeof(struct pause_meter)) < 0))
		target_die(path);
	void *memory = mmap(NULL, sizeof(struct pause_meter), PROT_READ | PROT_WRITE,
			    flags | MAP_POPULATE, fd, 0);
	if (memory == MAP_FAILED)
		target_die("mmap");
	if (fd >= 0)
		close(fd);
	memset(memory, 0, sizeof(struct pause_meter));
	return memory;
}

int main(int argc, char **argv)
{
	unsigned count = target_number(argc, argv, 1, 10);
	unsigned depth = target_number(argc, argv, 2, 10);
	struct pause_meter *meter = map(argc > 3 ? argv[3] : NULL);
	char name[32];

	target_init();
	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "blocked-%u", i);
		target_start(name, SYS_poll, block_routine, &depth);
	}
	target_start("meter", -1, thread_routine, meter);
	target_wait();
	meter->running = 0;
	return 0;
}
