/*
 * Looks at the threads of a process again and again. A thread that is blocked and has not
 * been put on a CPU since the last look is not touched; one that is blocked and has run
 * is read without a stop; only what runs is stopped, and each of these threads only for
 * as long as it takes to copy its own stack. What stays blocked and needs a register that
 * cannot be read without a stop is stopped once, too, if that is asked for.
 *
 * Threads are not kept attached between two looks: each signal that such a thread gets
 * would stop it until we wake up and pass the signal on, no debugger could attach, and
 * attaching anew costs what runs about a microsecond.
 *
 * All calls of one sampler come from one thread. If a thread of the target did not stop
 * in time, or ended while it was attached (late), this thread must end: the kernel
 * releases it then, and tells the parent of a process that has ended.
 */
#ifndef SS_CAPTURE_SAMPLER_H
#define SS_CAPTURE_SAMPLER_H

#include "capture/freeze.h"
#include "capture/stacks.h"
#include "capture/world.h"
#include "target/taskstats.h"

enum { SS_SAMPLER_NOTES = 4, SS_SAMPLER_PLACES = 8 };

/* A thread of the process. */
struct ss_sampled {
	pid_t tid;
	bool touched; /* it was looked at in this tick */
	bool gone;    /* it has ended since; forgotten with the next tick */
	bool settled; /* blocked, and read whole: as long as it does not run it stays so
		       */
	bool unwanted;
	int schedstat_fd;    /* -1: not kept open */
	unsigned char quiet; /* for so many ticks it has not run */
	uint64_t counted;    /* how often it was put on a CPU, as read last */
	uint64_t run_count;  /* as of its last look */
	uint64_t run_ns;     /* on a CPU, as of this tick */
	/* Areas that its frames lay in lately, by their starts. While it stood still, or
	   was known to be blocked, the kernel was asked whether they are what they are
	   taken for: proved has a bit of each that is, leaf is that of its pc. */
	uint64_t places[SS_SAMPLER_PLACES];
	unsigned place_count;
	unsigned proved;
	uint64_t leaf; /* 0: not proved */
	/* It is to be stopped although it is blocked, if its run_count is still this one (0:
	   no); what that will be once it is blocked again after the stop; and the same when
	   what the stop found was noted: it need not be looked at again, then. */
	uint64_t stop_at;
	uint64_t way_back;
	uint64_t gone_back;
	bool unplaced; /* what its frames lie in is not certain */
	/* The caller's: zero for a new thread. */
	uint32_t notes[SS_SAMPLER_NOTES];
	uint64_t counted_ns;
	char told[SS_COMM_MAX]; /* the name */
	char state;
	char name[SS_COMM_MAX];
};

/*
 * What all threads together were put on a CPU, less what is known of each, is the same as
 * long as none ends. If it is, no other thread has run than those that were asked.
 */
struct ss_balance {
	struct ss_taskstats stats;
	bool known;
	uint64_t rest;	 /* what it comes to */
	unsigned pause;	 /* ticks before it is tried again */
	unsigned failed; /* in a row */
};

struct ss_sampler {
	struct ss_target *target; /* borrowed */
	struct ss_capture_options options;
	struct ss_world world;
	SS_VECTOR(struct ss_sampled) threads; /* in the order of tids */
	struct ss_balance balance;
	struct ss_task_list scan;
	struct ss_task_list tasks; /* those that are touched */
	struct ss_arena arena;
	struct ss_text text;
	unsigned open_files; /* of threads */
	bool late;
	bool took_sigchld;
	uint64_t thread_stops;
};

/* What one tick found. */
struct ss_tick {
	enum ss_world_change change; /* of the modules, since the last tick */
	struct ss_capture *capture;  /* of the threads touched; NULL: none. The sampler's,
					until the next call */
	uint64_t stopped_ns;	     /* all threads together */
	uint64_t stopped_max_ns;     /* the longest */
};

/* options are copied, their mode is set to AUTO. */
void ss_sampler_init(struct ss_sampler *sampler, struct ss_target *target,
		     const struct ss_capture_options *options);
void ss_sampler_deinit(struct ss_sampler *sampler);

/* Errors: NO_MEMORY, DENIED, TRACED, SYSTEM. That the process has ended is a change. What
   is mapped may have changed unnoticed: what the capture says of an area is proved for
   the threads that ss_sampler_proved() says, else ss_world_holds() must be asked. */
struct ss_error *ss_sampler_tick(struct ss_sampler *sampler, struct ss_tick *ret);

bool ss_sampler_proved(const struct ss_sampled *thread, const struct ss_area *area);

/* Which areas are to be proved from now on, the most important first. */
void ss_sampler_remember(struct ss_sampled *thread, const uint64_t *starts, size_t count);

/* With the least of the answers: reads all that is mapped, if need be.
 *again: what was captured cannot be placed. */
struct ss_error *ss_sampler_confirm(struct ss_sampler *sampler,
				    enum ss_world_answer answer, struct ss_tick *tick,
				    bool *again);

/* Looks at the same threads once more. */
struct ss_error *ss_sampler_again(struct ss_sampler *sampler, struct ss_tick *tick);

#endif
