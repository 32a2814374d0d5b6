/*
 * All processes of a recording and what they share: the arena for stacks and the
 * unwinder.
 */
#ifndef SS_SAMPLE_RECORDER_PROCESSES_H
#define SS_SAMPLE_RECORDER_PROCESSES_H

#include "sample/recorder_process.h"
#include "sample/family.h"
#include "stacksnap/record.h"

struct ss_processes {
	SS_VECTOR(struct ss_recorder_process *) items;
	struct ss_family family;
	struct ss_arena arena; /* the unwinder's child sees it */
	struct ss_unwinder unwinder;
	struct ss_recorder_process_options options;
	struct ss_recorder_waits_budget waits_budget;
	bool children; /* they are recorded, too */
	/* See ss_processes_count_stops(); in processes that have ended */
	uint64_t ended_stops;
	uint64_t ended_not_stopped;
	bool left_out; /* so were some children, for want of descriptors */
	bool late;     /* a sampler was late in this tick */
	bool lost;     /* the unwinder failed in this tick */
	_Atomic uint64_t
		/* CLOCK_MONOTONIC when the current read of one of them began; 0: none
		   */
		busy_since;
};

/* recorder: max_frames, children and on_cpu. feed, reader: see struct ss_recorder_process_options. Errors:
   SYSTEM, NO_MEMORY; must be deinitialized even then. */
struct ss_error *ss_processes_init(struct ss_processes *processes,
				   struct ss_target *target, struct ss_writer *writer,
				   const struct ss_recorder_options *recorder,
				   const struct ss_capture_options *options,
				   struct ss_load_feed *feed,
				   struct ss_sample_reader *reader);
void ss_processes_deinit(struct ss_processes *processes);

/* Takes one tick of all processes. clocked: see ss_recorder_process_tick(). */
struct ss_error *ss_processes_tick(struct ss_processes *processes, uint64_t now_ns,
				   const struct ss_on_cpu_sample *clocked, size_t count,
				   struct ss_samples *samples,
				   struct ss_tick_record *written);

/* The same for a tick that consists of samples of the CPUs; count: 0 if there are none. */
struct ss_error *ss_processes_take(struct ss_processes *processes, uint64_t now_ns,
				   const struct ss_on_cpu_sample *sampled, size_t count,
				   struct ss_samples *samples);

/* Whether a process is recorded. data: the processes. */
bool ss_processes_have(void *data, pid_t pid);

/* Begins a new segment of the file. */
struct ss_error *ss_processes_roll(struct ss_processes *processes, uint64_t monotonic_ns,
				   uint64_t wall_ns);

/* At the end of the recording. Errors: those of ss_recorder_process_finish(). */
struct ss_error *ss_processes_finish(struct ss_processes *processes);

/* How often threads were stopped, and how often they were not because of the limit of stops. */
void ss_processes_count_stops(const struct ss_processes *processes, uint64_t *ret_stops,
			      uint64_t *ret_not_stopped);

#endif
