/*
 * Threads at a known stack depth in each of five kinds of wait.
 *
 * threads [PER_KIND [DEPTH]]	(default: 2 5)
 *
 * Thread KIND-INDEX, for each KIND in the table below:
 *	the libc's frames of the call	poll | clock_nanosleep, nanosleep |
 *					..., pthread_cond_wait | syscall | read
 *	wait_in_KIND
 *	descend_even, descend_odd, ...	DEPTH frames; the innermost is descend_even
 *	thread_routine
 *	target_thread_main, start_thread, clone3
 * The main thread: read, target_wait, main, libc's start, _start.
 *
 * Also built as threads_static, threads_static_pie, threads_nopie, threads_stripped,
 * threads_debuglink (symbols in another file), threads_minidebug (symbols in
 * .gnu_debugdata) and threads_nocfi (frame pointers, no unwind tables).
 */
#include "target.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static uint32_t futex_word;
static int pipe_ends[2];

TARGET_FRAME static void wait_in_poll(void)
{
	target_arrive();
	poll(NULL, 0, -1);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_nanosleep(void)
{
	struct timespec week = { .tv_sec = 7 * 24 * 3600 };

	target_arrive();
	nanosleep(&week, NULL);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_cond(void)
{
	pthread_mutex_lock(&mutex);
	target_arrive();
	for (;;)
		pthread_cond_wait(&cond, &mutex);
}

TARGET_FRAME static void wait_in_futex(void)
{
	target_arrive();
	syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_read(void)
{
	char byte;

	target_arrive();
	if (read(pipe_ends[0], &byte, 1) < 0)
		target_die("read");
	TARGET_KEEP();
}

struct place {
	const char *name;
	void (*wait)(void);
	long number;
	unsigned depth;
};

static void descend_even(const struct place *place, unsigned left);

TARGET_FRAME static void descend_odd(const struct place *place, unsigned left)
{
	descend_even(place, left - 1);
	TARGET_KEEP();
}

TARGET_FRAME static void descend_even(const struct place *place, unsigned left)
{
	if (left == 0)
		place->wait();
	else
		descend_odd(place, left - 1);
	TARGET_KEEP();
}

/* left: the number of frames inside the next one; if it is even, the innermost frame
   is descend_even. */
TARGET_FRAME static void thread_routine(void *arg)
{
	const struct place *place = arg;

	if (place->depth == 0)
		place->wait();
	else if (place->depth % 2)
		descend_even(place, place->depth - 1);
	else
		descend_odd(place, place->depth - 1);
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	static struct place places[] = {
		{ "poll", wait_in_poll, SYS_poll, 0 },
		{ "nanosleep", wait_in_nanosleep, SYS_clock_nanosleep, 0 },
		{ "cond", wait_in_cond, SYS_futex, 0 },
		{ "futex", wait_in_futex, SYS_futex, 0 },
		{ "read", wait_in_read, SYS_read, 0 },
	};
	unsigned per_kind = target_number(argc, argv, 1, 2);
	unsigned depth = target_number(argc, argv, 2, 5);
	char name[32];

	target_init();
	if (pipe(pipe_ends) < 0)
		target_die("pipe");
	for (size_t kind = 0; kind < sizeof(places) / sizeof(places[0]); kind++) {
		places[kind].depth = depth;
		for (unsigned i = 0; i < per_kind; i++) {
			snprintf(name, sizeof(name), "%s-%u", places[kind].name, i);
			target_start(name, places[kind].number, thread_routine,
				     &places[kind]);
		}
	}
	target_wait();
	return 0;
}
