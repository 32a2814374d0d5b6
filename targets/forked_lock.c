/*
 * A process forks while another thread holds a mutex. The child needs the mutex, and waits
 * for ever: the thread exists in the parent only.
 *
 * forked_lock
 *
 * Thread holder of the parent holds stock and blocks in poll. The child prints
 * "child PID", and its only thread waits in
 *	the libc's frames of pthread_mutex_lock
 *	take_in_child
 *	main, ...
 * The parent prints "ready" when the child waits.
 */
#include "target.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER;

TARGET_FRAME static void hold(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&stock);
	target_arrive();
	target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void take_in_child(void)
{
	pthread_mutex_lock(&stock);
	TARGET_KEEP();
}

static long call_of(pid_t pid)
{
	char path[64];
	long number = -1;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	FILE *file = fopen(path, "r");
	if (!file)
		target_die("syscall");
	if (fscanf(file, "%ld", &number) != 1)
		number = -1;
	fclose(file);
	return number;
}

int main(void)
{
	pid_t child;

	target_init();
	target_start("holder", SYS_poll, hold, NULL);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		take_in_child();
		_exit(0);
	}
	while (call_of(child) != SYS_futex)
		sched_yield();
	printf("child %d\n", child);
	target_wait();
	return 0;
}
