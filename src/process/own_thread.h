/*
 * Runs a function in a thread of its own, to which ptrace(2) or a namespace is bound, and
 * waits until the kernel has ended the thread.
 */
#ifndef SS_PROCESS_OWN_THREAD_H
#define SS_PROCESS_OWN_THREAD_H

#include <stddef.h>
#include <sys/types.h>

typedef void *ss_own_thread_routine(void *data);

/* A thread that is started. */
struct ss_own_thread {
	ss_own_thread_routine *routine;
	void *data;
	size_t stack_size;
	/* Called once in the caller, when the thread has been started or cannot be; or NULL. */
	void (*started)(void *data);
};

/*
 * Starts the thread and waits for its end: the kernel has released what it traced. Its
 * signal mask is that of the caller, who should block all signals. 0, or an errno: the
 * thread was not started.
 */
int ss_own_thread_run(const struct ss_own_thread *thread);

#endif
