#include "process/own_thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	END_NS = 20 * 1000, /* time a thread needs to end */
	END_NAPS = 50 * 1000,
};

/* A thread that is started, as it sees itself. */
struct running {
	const struct ss_own_thread *thread;
	pid_t tid;
	uint32_t alive; /* the kernel clears it at the end of a clone */
};

static void *run(void *data)
{
	struct running *running = data;

	running->tid = gettid();
	return running->thread->routine(running->thread->data);
}

static int run_clone(void *data)
{
	(void)run(data);
	(void)syscall(SYS_exit, 0); /* of the thread only */
	return 0;
}

static void call_started(const struct ss_own_thread *thread)
{
	if (thread->started)
		thread->started(thread->data);
}

static int run_pthread(struct running *running)
{
	pthread_attr_t attr;
	pthread_t pthread;
	int errnum = pthread_attr_init(&attr);

	if (errnum)
		return errnum;
	/* Cannot fail: the size is valid. */
	(void)pthread_attr_setstacksize(&attr, running->thread->stack_size);
	errnum = pthread_create(&pthread, &attr, run, running);
	(void)pthread_attr_destroy(&attr);
	if (errnum)
		return errnum;
	call_started(running->thread);
	(void)pthread_join(pthread, NULL); /* cannot fail: it is joinable */
	return 0;
}

/*
 * Where a seccomp filter refuses clone3(2) with EPERM, as those of old container runtimes
 * do, glibc gives up. clone(2) makes a thread that shares the thread-local storage of the
 * caller, which does nothing but wait here.
 */
static int run_without_pthread(struct running *running)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			  CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |
			  CLONE_CHILD_CLEARTID;
	size_t size = running->thread->stack_size;
	uint8_t *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	int errnum = stack == MAP_FAILED ? errno : 0;
	if (!errnum && clone(run_clone, stack + size, flags, running, &running->alive,
			     NULL, &running->alive) < 0)
		errnum = errno;
	call_started(running->thread);
	while (!errnum) {
		uint32_t alive = __atomic_load_n(&running->alive, __ATOMIC_ACQUIRE);
		if (!alive)
			break;
		(void)syscall(SYS_futex, &running->alive, FUTEX_WAIT, alive, NULL);
	}
	if (stack != MAP_FAILED)
		(void)munmap(stack, size); /* the thread has left it */
	return errnum;
}

int ss_own_thread_run(const struct ss_own_thread *thread)
{
	struct running running = { .thread = thread };
	int errnum = run_pthread(&running);

	if (errnum && run_without_pthread(&running) != 0)
		return errnum;
	/* The kernel ends the thread slightly later, and releases its tracees only then.
	   Limited: another thread of this process may get the same id. */
	for (int i = 0; i < END_NAPS && tgkill(getpid(), running.tid, 0) == 0; i++)
		ss_sleep_ns(END_NS);
	return 0;
}
