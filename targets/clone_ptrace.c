/*
 * A thread that creates child processes with CLONE_PTRACE, one after the other, and waits
 * for each. If the thread is traced at that moment, the kernel makes its tracer the tracer
 * of the child as well, and stops the child (clone(2)).
 *
 * clone_ptrace [CHILDREN]	(default: 3000)
 *
 * Thread "parent":	clone or wait4, create_children, target_thread_main, start_thread, clone3
 * At the end of stdin it waits for the last child and prints "children CHILDREN".
 */
#include "target.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned children;
static sem_t ended;

TARGET_FRAME static void create_children(void *arg)
{
	(void)arg;
	target_arrive();
	for (unsigned i = 0; i < children; i++) {
		long child = syscall(SYS_clone, CLONE_PTRACE | SIGCHLD, 0, 0, 0, 0);
		if (child < 0)
			target_die("clone");
		if (child == 0)
			syscall(SYS_exit, 0);
		if (waitpid((pid_t)child, NULL, 0) != child)
			target_die("waitpid");
	}
	sem_post(&ended);
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	target_init();
	children = target_number(argc, argv, 1, 3000);
	sem_init(&ended, 0, 0);
	target_begin("parent", -1, create_children, NULL);
	target_wait();
	while (sem_wait(&ended) < 0)
		;
	printf("children %u\n", children);
	return 0;
}
