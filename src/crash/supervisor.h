/*
 * A command and its descendants, traced so that their crashes are seen.
 */
#ifndef SS_CRASH_SUPERVISOR_H
#define SS_CRASH_SUPERVISOR_H

#include "stacksnap.h"

/*
 * A command and all processes that it starts, traced (ptrace(2)) from their beginning, so that
 * a signal that is about to end one of them is seen while its threads and memory still exist.
 * Nothing else about them changes: signals, stops of job control, system calls that a signal
 * would not have interrupted. They run on untraced when the supervisor is freed, or dies.
 *
 * Left alone, together with what they start: programs that would lose the rights of their
 * file (set-user-ID), and debuggers. Another debugger cannot attach to a traced process.
 *
 * All calls are made by one thread, which blocks SIGCHLD and waits for that signal
 * (sigtimedwait(2)); it is the only one that waits for children of the program.
 */
struct ss_supervisor;

/* child: a new child process of the caller, which will execute a program. Without
   ss_supervisor_trace() only its end is seen. Errors: NO_MEMORY. */
struct ss_error *ss_supervisor_new(pid_t child, struct ss_supervisor **ret);

/* Traces the child from now on: call it before it executes the program. Errors: DENIED,
   SYSTEM. */
struct ss_error *ss_supervisor_trace(struct ss_supervisor *supervisor);

/* Frees the supervisor; the processes continue untraced. */
void ss_supervisor_free(struct ss_supervisor *supervisor);

enum ss_supervisor_event_kind {
	SS_SUPERVISOR_CRASH,	 /* a signal is about to end pid, which is held */
	SS_SUPERVISOR_STOPPED,	 /* signal has stopped the command (job control) */
	SS_SUPERVISOR_CONTINUED, /* the command runs again */
	SS_SUPERVISOR_ENDED,	 /* a child of the caller, or a traced process or thread:
				status as of waitpid(2) */
};

struct ss_supervisor_event {
	enum ss_supervisor_event_kind kind;
	pid_t pid;
	int signal;
	int status;
};

/* Handles what has happened, up to the next event. False: nothing more has happened. */
bool ss_supervisor_next(struct ss_supervisor *supervisor,
			struct ss_supervisor_event *ret);

/*
 * Stops all threads of a traced process as they stop by themselves or in a capture, until
 * ss_supervisor_release(). A process that crashed is held already. ret: to capture it, in this
 * thread; its threads stay stopped afterwards, so that ss_capture_gather() and
 * ss_capture_extend() find the memory of the capture, also in a child process of the caller.
 * Errors: those of ss_target_open().
 */
struct ss_error *ss_supervisor_hold(struct ss_supervisor *supervisor, pid_t pid,
				    struct ss_target **ret);
/* Lets it continue, or end. */
void ss_supervisor_release(struct ss_supervisor *supervisor, pid_t pid);

struct ss_supervised {
	pid_t pid;
	bool traced;
};

/* The command and the processes that it has started, as far as they are traced or their
   parents are alive. The caller frees *ret. Errors: NO_MEMORY, SYSTEM. */
struct ss_error *ss_supervisor_list(const struct ss_supervisor *supervisor,
				    struct ss_supervised **ret, size_t *ret_count);

/* Sends a signal to one of these processes. */
void ss_supervisor_signal(const struct ss_supervisor *supervisor, pid_t pid, int signal);

/* Whether the command has got this signal of this sender in the last second, or has it
   pending. */
bool ss_supervisor_has_received(const struct ss_supervisor *supervisor, int signal,
				pid_t sender);

#endif
