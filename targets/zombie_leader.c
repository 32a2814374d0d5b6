/*
 * A process whose main thread has called pthread_exit() while others run: the thread group
 * leader is a zombie, and /proc/PID/maps is empty.
 *
 * Thread "worker":	poll, target_block, worker_routine, target_thread_main,
 *			start_thread, clone3
 * Thread "last":	read, target_wait, last_routine, target_thread_main,
 *			start_thread, clone3
 * The main thread: state Z, no stack. At the end of standard input the exit status is 6.
 */
#include "target.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

TARGET_FRAME static void worker_routine(void *arg)
{
	(void)arg;
	target_block();
	TARGET_KEEP();
}

static char leader_state(void)
{
	char text[512];
	FILE *file = fopen("/proc/thread-self/../../stat", "re");

	if (!file)
		target_die("stat");
	size_t length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	char *end = strrchr(text, ')');
	return end ? end[2] : '?';
}

TARGET_FRAME static void last_routine(void *arg)
{
	(void)arg;
	while (leader_state() != 'Z')
		sched_yield();
	target_wait();
	TARGET_KEEP();
	_exit(6);
}

int main(void)
{
	target_init();
	target_start("worker", SYS_poll, worker_routine, NULL);
	target_begin("last", -1, last_routine, NULL);
	pthread_exit(NULL);
}
