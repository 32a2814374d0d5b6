/*
 * Shared by all targets: threads that report when they have reached their final
 * position, the "ready" line, and the wait for the end of standard input. A target is a
 * small program to attach to. It must not depend on stacksnap, and must not sleep for
 * synchronisation.
 *
 * A thread of target_start() has the stack
 *	ROUTINE's frames, target_thread_main, start_thread, clone3
 * and the main thread of a target that is ready has the stack
 *	read, target_wait, main, __libc_start_call_main, __libc_start_main, _start
 */
#ifndef TARGET_H
#define TARGET_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>

/* Newer processors have only the calls that replace these, which their C libraries use. */
#ifndef SYS_poll
#define SYS_poll SYS_ppoll
#define SYS_pause SYS_ppoll
#define SYS_epoll_wait SYS_epoll_pwait
#define SYS_vfork SYS_clone
#endif
/* i386 has one call for all of these. */
#ifndef SYS_accept
#define SYS_accept SYS_socketcall
#define SYS_semtimedop SYS_ipc
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A function that keeps its own frame: neither inlined, cloned nor analysed. */
#if defined(__clang__)
#define TARGET_FRAME __attribute__((noinline))
#else
#define TARGET_FRAME __attribute__((noinline, noclone, noipa))
#endif

/* After a call: keeps it from becoming a jump. */
#define TARGET_KEEP() __asm__ volatile("" ::: "memory")

struct target_thread;

/* First call of main: makes stdout unbuffered and allows any tracer (Yama). */
void target_init(void);

/*
 * Starts a thread named name that runs routine(arg) and returns when the thread has
 * called target_arrive() and then sleeps in the system call number (or, with number <
 * 0, when it has arrived). Ends the program on failure.
 */
struct target_thread *target_start(const char *name, long number, void (*routine)(void *),
				   void *arg);

/* Like target_start(), but does not wait; target_await() does. */
struct target_thread *target_begin(const char *name, long number, void (*routine)(void *),
				   void *arg);
void target_await(struct target_thread *thread);

/* Whether it has arrived and sleeps in its system call. */
bool target_sleeps(struct target_thread *thread);

/* Returns when the thread sleeps in a system call other than the one it was started
   with. */
void target_await_syscall(struct target_thread *thread, long number);

pid_t target_tid(const struct target_thread *thread);

/* Sends a signal to that thread alone. */
void target_signal(struct target_thread *thread, int number);

/* Called by a thread that is about to make the call in which it stays. */
void target_arrive(void);

/* Sleeps in poll forever; its frame is the caller of the libc's. */
void target_block(void);

/* Prints "ready" and returns when stdin is closed. */
void target_wait(void);

/* Ends the program with the text of errno. */
__attribute__((noreturn)) void target_die(const char *what);

/* argv[index] as a number, or otherwise if it is missing. */
unsigned target_number(int argc, char **argv, int index, unsigned otherwise);

#ifdef __cplusplus
}
#endif

#endif
