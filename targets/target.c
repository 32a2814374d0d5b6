#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct target_thread {
	pthread_t handle;
	char name[16];
	long number;
	void (*routine)(void *);
	void *arg;
	_Atomic pid_t tid;
	atomic_bool arrived;
};

static __thread struct target_thread *self;

void target_die(const char *what)
{
	perror(what);
	_exit(99);
}

void target_init(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* fails without Yama, which does not need it */
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

TARGET_FRAME static void *target_thread_main(void *arg)
{
	self = arg;
	(void)prctl(PR_SET_NAME, self->name);
	atomic_store(&self->tid, gettid());
	self->routine(self->arg);
	TARGET_KEEP();
	return NULL;
}

struct target_thread *target_begin(const char *name, long number, void (*routine)(void *),
				   void *arg)
{
	struct target_thread *thread = calloc(1, sizeof(*thread));
	pthread_attr_t attr;

	if (!thread)
		target_die("calloc");
	strncpy(thread->name, name, sizeof(thread->name) - 1);
	thread->number = number;
	thread->routine = routine;
	thread->arg = arg;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, sizeof(void *) == 4 ? 1 << 20 : 64 << 20);
	errno = pthread_create(&thread->handle, &attr, target_thread_main, thread);
	if (errno)
		target_die("pthread_create");
	pthread_attr_destroy(&attr);
	return thread;
}

/* The number of the system call that a thread sleeps in; -1: it is running. */
static long syscall_number(pid_t tid)
{
	char path[64], text[128];
	long number = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length > 0) {
		text[length] = '\0';
		if (sscanf(text, "%ld", &number) != 1)
			number = -1;
	}
	return number;
}

bool target_sleeps(struct target_thread *thread)
{
	if (!atomic_load(&thread->arrived))
		return false;
	if (thread->number < 0)
		return true;
	long number = syscall_number(thread->tid);
#ifdef __i386__
	/* The C library chooses among several calls. */
	return number >= 0;
#endif
	/* an interrupted relative sleep continues as this call */
	return number == thread->number || number == SYS_restart_syscall;
}

void target_await(struct target_thread *thread)
{
	while (!target_sleeps(thread))
		sched_yield();
}

void target_await_syscall(struct target_thread *thread, long number)
{
	thread->number = number;
	target_await(thread);
}

struct target_thread *target_start(const char *name, long number, void (*routine)(void *),
				   void *arg)
{
	struct target_thread *thread = target_begin(name, number, routine, arg);

	target_await(thread);
	return thread;
}

pid_t target_tid(const struct target_thread *thread)
{
	return atomic_load(&thread->tid);
}

void target_signal(struct target_thread *thread, int number)
{
	pthread_kill(thread->handle, number);
}

void target_arrive(void)
{
	if (self)
		atomic_store(&self->arrived, true);
}

TARGET_FRAME void target_block(void)
{
	target_arrive();
	for (;;)
		poll(NULL, 0, -1);
}

TARGET_FRAME void target_wait(void)
{
	char byte;

	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR)
		errno = 0;
}

unsigned target_number(int argc, char **argv, int index, unsigned otherwise)
{
	return index < argc ? (unsigned)strtoul(argv[index], NULL, 0) : otherwise;
}
