/*
 * The sampler's knowledge of one thread and what to do next: a state machine that does
 * not access the process. Each event is one function; nothing else changes the state.
 *
 * The kernel counts how often it puts a thread on a CPU (the run count, the third figure
 * of schedstat). A thread that is blocked and whose run count has not changed has the
 * same stack as before.
 *
 *	ACTIVE      captured at each tick
 *	  -> IDLE        the capture found it blocked from beginning to end
 *	IDLE        not captured: its stack is known
 *	  -> ACTIVE      it has run
 *	  -> STOP_NEXT   to unwind its stack, a stop must provide a register
 *	STOP_NEXT   stopped at the next tick, if it is still blocked in the same call
 *	  -> RETURNING   it was stopped, and continues its call
 *	  -> ACTIVE      it has run
 *	RETURNING   the stop has put it on a CPU once more
 *	  -> IDLE        it is blocked again and has not run otherwise
 *	  -> ACTIVE      it has run
 *	GONE        it has ended; forgotten at the next tick
 */
#ifndef SS_SAMPLE_THREAD_STATE_H
#define SS_SAMPLE_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/tasks.h"
#include "data/capture.h"
#include "sample/area_check.h"

enum ss_thread_state {
	SS_THREAD_ACTIVE = 0,
	SS_THREAD_IDLE,
	SS_THREAD_STOP_NEXT,
	SS_THREAD_RETURNING,
	SS_THREAD_GONE,
};

struct ss_sampled_thread {
	pid_t tid;
	pid_t inner_tid; /* in its innermost pid namespace; 0: not known. For the owner of the list */
	uint32_t slot; /* unique among the current threads; small numbers */
	enum ss_thread_state state;
	bool due;	   /* must be captured in this tick */
	bool excluded;	   /* the filter rejects it */
	char kernel_state; /* R, S, D and so on, as of its last capture; '?': none yet */
	char name[SS_COMM_MAX];
	int schedstat_fd; /* -1: not kept open */
	/* stat and syscall, of a thread that has been captured that often */
	struct ss_kept_thread files;
	unsigned char captures; /* up to a limit */
	/* The call in which it slept (state S) at its last capture; -1: it did not. */
	long sleeping_call;
	unsigned reads; /* of its call since its state and name were read */
	/* ticks since it was last seen to have run, up to a limit */
	unsigned char quiet_ticks;
	uint64_t seen_count; /* the run count at the last read */
	uint64_t run_count;  /* as of its last capture */
	uint64_t run_ns;     /* on a CPU, as of this tick */
	uint64_t ready_ns;   /* runnable without a CPU, likewise */
	bool named;	     /* name was read since its first sample */
	uint64_t user_ticks; /* clock ticks in user space, when its state was last read */
	uint64_t system_ticks; /* likewise, in the kernel */
	uint64_t computed_ns;  /* run_ns when system_ticks changed */
	/* STOP_NEXT: stop it only at this run count. RETURNING: this run count means
	   that it has only resumed its call. */
	uint64_t expected_count;
	enum ss_task_filter filter;
	unsigned filter_ticks; /* captures since it was last read */
	/* The capture is a sample that the kernel took, see struct ss_sampler. */
	bool by_kernel;
	bool slept;	     /* of a thread of a runtime that sleeps by now */
	bool copied;	     /* likewise, what its calls are was copied with the sample */
	uint64_t sampled_ns; /* the time of that sample */
	/* The kernel's copy of its stack, or of its calls, was not enough: captures until it is tried
	   again. */
	unsigned deep;
	bool unreadable;	   /* a stop was not enough either */
	uint64_t clocked_ns;	   /* when it was last sampled on a CPU */
	uint64_t last_count;	   /* the run count when it was last due */
	uint64_t last_run_ns;	   /* on a CPU until then */
	bool brief;		   /* since then it has left each CPU after a moment */
	uint64_t last_ready_ns;	   /* waiting for one, likewise */
	bool prompt;		   /* since then it has got a CPU at once, each time */
	uint64_t switches;	   /* how often it has run since then */
	uint64_t after_stop_count; /* STOP_NEXT: expected after the stop; 0: not known */
	uint64_t
		first_ns; /* CLOCK_MONOTONIC, when it was first to be stopped; 0: never */
	uint64_t stopped_ns; /* since then, in all */
	struct ss_area_check areas;
};

/* A tick begins. */
void ss_thread_begin_tick(struct ss_sampled_thread *thread);

/* Its schedstat was read (count 0: the kernel does not count). Whether it has run since
   the last read. */
bool ss_thread_update(struct ss_sampled_thread *thread, uint64_t count, uint64_t run_ns);

/* It has ended. */
void ss_thread_end(struct ss_sampled_thread *thread);

enum ss_thread_action {
	SS_THREAD_CAPTURE, /* without a stop, if it is blocked */
	SS_THREAD_STOP,	   /* although it is blocked */
	SS_THREAD_SKIP,	   /* its stack is known: it is IDLE now */
};

/* A capture of a due thread begins. blocked: it can be read without a stop, at that run
   count. fragile: a stop would end its call. */
enum ss_thread_action ss_thread_begin_capture(struct ss_sampled_thread *thread,
					      bool blocked, bool fragile, uint64_t count);

/* It has stopped. blocked: it was stopped in its call. count: 0 is unknown. Allocates
   nothing. */
void ss_thread_stop(struct ss_sampled_thread *thread, bool blocked, uint64_t count);

/* The capture has ended. stopped: the thread was stopped for it. still: it was blocked
   all the time at that run count, or has no stack. */
void ss_thread_end_capture(struct ss_sampled_thread *thread, bool stopped, bool still,
			   uint64_t count);

/* The capture is used. needs_register: its stack ends because a register is missing. */
void ss_thread_accept(struct ss_sampled_thread *thread, bool stopped,
		      bool needs_register);

/* The capture cannot be used. retry: capture it again in this tick. */
void ss_thread_reject(struct ss_sampled_thread *thread, bool retry);

/* Whether it is known to have been blocked with this run count since its capture. */
bool ss_thread_is_unchanged(const struct ss_sampled_thread *thread, uint64_t count);

#endif
