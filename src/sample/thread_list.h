/*
 * The threads of a sampled process, and which of them have run since they were captured.
 * Reads as little as possible: threads that have been quiet for some ticks are not read
 * one by one as long as the CPU time of the process shows that none of them has run.
 *
 * The kernel updates the CPU time of a thread when it leaves its CPU, and at least at each
 * scheduler tick: a thread that is on a CPU for the first time since then shows none. So this
 * needs samples of the CPUs (ss_thread_list_expect()). Rarely it shows none for a short time on a
 * CPU, perhaps because the time of an interrupt, or that in which a host took the CPU away, is taken
 * from it (update_rq_clock_task()). So some of the quiet threads are read in each tick, and all of
 * them within CHECK_TICKS.
 */
#ifndef SS_SAMPLE_THREAD_LIST_H
#define SS_SAMPLE_THREAD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/procfs.h"
#include "base/vector.h"
#include "capture/tasks.h"
#include "data/capture.h"

/*
 * The memory areas of a thread's frames whose mapping has been verified. Modules are loaded
 * and unloaded while a process is sampled, so an address may belong to different modules
 * over time. Therefore mappings are verified while the thread is stopped or blocked. The
 * areas to verify are those of the thread's previous frames.
 */

enum { SS_AREA_CHECK_MAX = 8 };

struct ss_area_check {
	uint64_t starts[SS_AREA_CHECK_MAX]; /* of the areas of recent frames */
	unsigned count;
	unsigned verified; /* one bit for each area */
	uint64_t leaf;	 /* start of the area of the program counter if verified, or 0 */
	bool incomplete; /* an unverified area could be verified at another attempt */
};

/* Marks all areas as unverified. */
void ss_area_check_clear(struct ss_area_check *areas);

/* Whether the mapping at an address is that of the captured address space. */
typedef bool ss_area_check_verify(void *data, uint64_t address);

/* Verifies all areas and the one of the program counter, while the thread cannot run.
   leaf: start of the area of pc; 0: none. */
void ss_area_check_run(struct ss_area_check *areas, uint64_t pc, uint64_t leaf,
		       ss_area_check_verify *verify, void *data);

bool ss_area_check_contains(const struct ss_area_check *areas, uint64_t start);

/* Sets the areas to verify from now on, in descending priority. */
void ss_area_check_remember(struct ss_area_check *areas, const uint64_t *starts,
			    size_t count);

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

enum ss_thread_state {
	SS_THREAD_ACTIVE = 0,
	SS_THREAD_IDLE,
	SS_THREAD_STOP_NEXT,
	SS_THREAD_RETURNING,
	SS_THREAD_GONE,
};

/* Where its last capture comes from; all but the first: a sample that the kernel took, see
   struct ss_sampler. */
enum ss_thread_origin {
	SS_THREAD_READ,
	SS_THREAD_SAMPLED,
	SS_THREAD_COPIED, /* with what the calls of a runtime are */
	SS_THREAD_SLEPT,  /* of a thread of a runtime that sleeps by now */
};

struct ss_recorder_thread;

struct ss_sampled_thread {
	pid_t tid;
	pid_t inner_tid; /* in its innermost pid namespace; 0: not known. For the owner of the list */
	enum ss_thread_state state;
	bool due;	   /* must be captured in this tick */
	bool excluded;	   /* the filter rejects it */
	char kernel_state; /* R, S, D and so on, as of its last capture; '?': none yet */
	char name[SS_COMM_MAX]; /* "": not read yet */
	int schedstat_fd;	/* -1: not kept open */
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
	uint64_t user_ticks; /* clock ticks in user space, when its state was last read */
	uint64_t system_ticks; /* likewise, in the kernel */
	uint64_t computed_ns;  /* run_ns when system_ticks changed */
	/* STOP_NEXT: stop it only at this run count. RETURNING: this run count means
	   that it has only resumed its call. */
	uint64_t expected_count;
	enum ss_task_filter filter;
	unsigned filter_ticks; /* captures since it was last read */
	enum ss_thread_origin origin;
	uint64_t sampled_ns; /* the time of a sample by the kernel */
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
	/* CLOCK_MONOTONIC, when it was last in a call that moves data; 0: never seen in one */
	uint64_t moved_data_ns;
	struct ss_area_check areas;
	/* What the recording has of it, for the owner of the list; freed with the thread. NULL: not
	   in it. */
	struct ss_recorder_thread *recorded;
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

/* Reads the threads of a process: a part of struct ss_process_access. */
struct ss_thread_source {
	/* The ids of all threads, ascending; valid until the next call. False: no
	   memory. */
	bool (*list)(void *data, const pid_t **ret, size_t *ret_count);
	/* How many threads there are; 0: the process has ended. */
	size_t (*count)(void *data);
	/* Opens the schedstat of a thread; -1: it is opened for each read. */
	int (*open)(void *data, pid_t tid);
	/* Reads it. False: the thread has ended. With an open file it allocates
	   nothing. */
	bool (*read)(void *data, pid_t tid, int fd, struct ss_schedstat *ret);
	/* The CPU time of all current and former threads, which is the sum of the first fields
	   of their schedstat. False: unknown. */
	bool (*cpu_time)(void *data, uint64_t *ret);
};

/*
 * The CPU time of the process minus that of the threads in the list. It stays the same from
 * tick to tick as long as no thread ends and no thread has run other than those that were
 * read.
 */
struct ss_time_balance {
	bool known;
	uint64_t rest_ns; /* that difference */
	unsigned misses;  /* in a row: ticks in which other threads seem to have run */
	unsigned
		failures; /* how often it was determined since the last tick in which none has */
	unsigned pause_ticks; /* before it is determined again */
};

struct ss_thread_list {
	const struct ss_thread_source *source;
	void *source_data;
	SS_VECTOR(struct ss_sampled_thread) items; /* ascending by tid */
	/* Indices of threads, ascending: all but those that are quiet, which are neither due
	   nor gone. */
	SS_VECTOR(uint32_t) active;
	unsigned open_files;
	uint64_t run_ns; /* of all in items, as they were read */
	size_t checked;	 /* index of the quiet thread to be read next */
	/* What is on a CPU at a tick is known, see above. Set by the owner. */
	bool sampled;
	struct ss_time_balance balance;
};

/* The i-th of the active threads. */
static inline struct ss_sampled_thread *
ss_thread_list_active(const struct ss_thread_list *list, size_t i)
{
	return &list->items.items[list->active.items[i]];
}

/* The source and its data are borrowed. */
void ss_thread_list_init(struct ss_thread_list *list,
			 const struct ss_thread_source *source, void *data);
void ss_thread_list_deinit(struct ss_thread_list *list);

/* A thread is known to be on a CPU at the next tick: it will be read. */
void ss_thread_list_expect(struct ss_thread_list *list, pid_t tid);

/* Begins a tick: drops ended threads, adds new ones, and determines which threads are
   due. False without memory. */
bool ss_thread_list_refresh(struct ss_thread_list *list);

/* Finds a thread by its id; NULL if there is none. */
struct ss_sampled_thread *ss_thread_list_find(const struct ss_thread_list *list,
					      pid_t tid);

/*
 * For a thread that is known to have run, without a refresh: finds or adds it, and reads
 * its counters. A thread that has ended since stays in the list until the next tick
 * begins. NULL: no memory.
 */
struct ss_sampled_thread *ss_thread_list_take(struct ss_thread_list *list, pid_t tid);

/* Begins a tick in which threads are only taken: drops those that had ended by the last
   one. sweep: finds out which others have ended. */
void ss_thread_list_begin(struct ss_thread_list *list, bool sweep);

/* Whether a thread that was blocked at its last capture has not run since. */
bool ss_thread_list_is_unchanged(const struct ss_thread_list *list,
				 const struct ss_sampled_thread *thread);

/* The run count of a stopped thread; 0: unknown. Allocates nothing. */
uint64_t ss_thread_list_run_count(const struct ss_thread_list *list,
				  const struct ss_sampled_thread *thread);

#endif
