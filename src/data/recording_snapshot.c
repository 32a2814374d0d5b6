/*
 * Writes snapshots of a process as a recording: each is a tick.
 */
#include <string.h>
#include <sys/utsname.h>

#include "base/vector.h"
#include "data/snapshot.h"
#include "data/recording_format.h"
#include "data/recording.h"
#include "data/recording_writer.h"
#include "stacksnap/record.h"

struct written_thread {
	uint32_t handle;
	uint32_t tick; /* the last one it was in, + 1 */
	bool ended;
	const char *name; /* of a snapshot */
};

/* What was written, and the handles of the parts of the current snapshot. */
struct series {
	const struct ss_snapshot *snapshot; /* the current one */
	struct ss_writer *writer;
	uint32_t process;
	uint32_t tick;
	uint64_t time_ns; /* since the first snapshot */
	struct ss_idtable tids;
	SS_VECTOR(struct written_thread) threads; /* by number of their tid */
	SS_VECTOR(uint32_t) modules;		  /* handles */
	SS_VECTOR(uint32_t) stacks;
	SS_VECTOR(struct ss_sample_record) samples;
	SS_VECTOR(struct ss_frame_record) frames;
};

static void series_deinit(struct series *series)
{
	ss_writer_free(series->writer);
	ss_idtable_deinit(&series->tids);
	ss_vector_free(&series->threads);
	ss_vector_free(&series->modules);
	ss_vector_free(&series->stacks);
	ss_vector_free(&series->samples);
	ss_vector_free(&series->frames);
}

/* The load bias of each module, derived from its frames. The caller frees it; NULL without
   memory. */
static uint64_t *find_biases(const struct ss_snapshot *snapshot)
{
	size_t count = snapshot->modules.count;
	uint64_t *biases = calloc(count + 1, sizeof(*biases));

	if (!biases)
		return NULL;
	for (size_t i = 0; i < count; i++)
		biases[i] = snapshot->modules.items[i]->pub.base;
	for (size_t i = 0; i < snapshot->stacks.count; i++) {
		const struct ss_stack *stack = &snapshot->stacks.items[i];
		for (size_t f = 0; f < stack->count; f++) {
			const struct ss_frame *frame = &stack->frames[f];
			if (frame->module && frame->module_index >= 0)
				biases[frame->module_index] = frame->pc - frame->offset;
		}
	}
	return biases;
}

static bool add_modules(struct series *series)
{
	const struct ss_snapshot *snapshot = series->snapshot;
	_cleanup_free_ uint64_t *biases = find_biases(snapshot);

	series->modules.count = 0;
	for (size_t i = 0; biases && i < snapshot->modules.count; i++) {
		uint32_t *slot = ss_vector_push(&series->modules);
		if (!slot)
			return false;
		*slot = ss_writer_find_module(series->writer, series->process,
					      &snapshot->modules.items[i]->pub, biases[i],
					      series->time_ns);
		if (*slot == SS_ID_NONE)
			return false;
	}
	return biases != NULL;
}

/* The reason why each stack ends: that of the first thread with this stack. */
static const char **find_reasons(const struct ss_snapshot *snapshot)
{
	const char **reasons = calloc(snapshot->stacks.count + 1, sizeof(*reasons));

	for (size_t i = snapshot->tasks[SS_TASK_THREAD].count; reasons && i > 0; i--) {
		const struct ss_task *thread =
			&snapshot->tasks[SS_TASK_THREAD].items[i - 1];
		if (thread->reason)
			reasons[thread->stack_id] = thread->reason;
	}
	return reasons;
}

static bool add_stack(struct series *series, const struct ss_stack *stack,
		      const char *reason)
{
	uint32_t *slot = ss_vector_push(&series->stacks);

	series->frames.count = 0;
	for (size_t f = 0; slot && f < stack->count; f++) {
		struct ss_frame_record *frame;
		if (stack->frames[f].inlined || !ss_frame_is_valid(&stack->frames[f]))
			continue;
		frame = ss_vector_push(&series->frames);
		if (!frame)
			return false;
		*frame = ss_frame_record_make(&stack->frames[f], series->process,
					      series->modules.items);
	}
	if (slot)
		*slot = ss_writer_stack(series->writer, series->frames.items,
					series->frames.count, stack->end, reason);
	return slot != NULL;
}

static bool add_stacks(struct series *series)
{
	const struct ss_snapshot *snapshot = series->snapshot;
	_cleanup_free_ const char **reasons = find_reasons(snapshot);

	for (size_t i = 0; reasons && i < snapshot->stacks.count; i++) {
		if (!add_stack(series, &snapshot->stacks.items[i], reasons[i]))
			return false;
	}
	return reasons != NULL;
}

/* The system call that a thread waits in. */
static uint32_t call_of(struct series *series, const struct ss_task *thread)
{
	const struct ss_thread_facts *facts =
		series->snapshot->facts ?
			ss_facts_find_thread(series->snapshot->facts, thread->tid) :
			NULL;

	const long call =
		facts ? ss_arch_recorded_number(series->snapshot->arch, &facts->call) :
			-1;
	if (call < 0 || thread->state == 'R')
		return SS_ID_NONE;
	return ss_writer_call(series->writer, call, facts->call.args[0], NULL);
}

/* The handle of a thread, which is written once. SS_ID_NONE without memory. */
static uint32_t thread_handle(struct series *series, const struct ss_task *thread)
{
	bool added = false;
	uint32_t id =
		ss_idtable_add(&series->tids, &thread->tid, sizeof(thread->tid), &added);

	if (id == SS_ID_NONE || (added && !ss_vector_push(&series->threads)))
		return SS_ID_NONE;
	struct written_thread *written = &series->threads.items[id];
	if (added || written->ended)
		written->handle = ss_writer_add_thread(series->writer, series->process,
						       thread->tid, thread->name,
						       series->time_ns);
	else if (strcmp(written->name, thread->name) != 0)
		ss_writer_name_thread(series->writer, written->handle, thread->name,
				      series->time_ns);
	written->name = thread->name;
	written->tick = series->tick + 1;
	written->ended = false;
	return written->handle;
}

static void end_threads(struct series *series)
{
	for (size_t i = 0; i < series->threads.count; i++) {
		struct written_thread *thread = &series->threads.items[i];
		if (thread->ended || thread->tick == series->tick + 1)
			continue;
		ss_writer_end_thread(series->writer, thread->handle, series->time_ns);
		thread->ended = true;
	}
}

static bool add_samples(struct series *series)
{
	const struct ss_snapshot *snapshot = series->snapshot;

	series->samples.count = 0;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		struct ss_sample_record *sample = ss_vector_push(&series->samples);
		if (!sample)
			return false;
		*sample = (struct ss_sample_record){
			.thread = thread_handle(series, thread),
			.stack = series->stacks.items[thread->stack_id],
			.call = call_of(series, thread),
			.state = thread->state,
		};
		if (sample->thread == SS_ID_NONE)
			return false;
	}
	end_threads(series);
	return true;
}

/* The thread of the same process that another one waits for, or SIZE_MAX. */
static size_t owner_of(const struct ss_snapshot *snapshot, size_t thread)
{
	const struct ss_wait *wait = snapshot->tasks[SS_TASK_THREAD].items[thread].wait;
	const struct ss_task *owner =
		wait && wait->owner_tid && !wait->owner_pid ?
			ss_snapshot_find_thread(snapshot, wait->owner_tid) :
			NULL;

	return owner ? (size_t)(owner - snapshot->tasks[SS_TASK_THREAD].items) : SIZE_MAX;
}

static bool is_in_cycle(const struct ss_snapshot *snapshot, size_t thread)
{
	for (size_t i = 0; i < snapshot->deadlocks.count; i++) {
		const struct ss_deadlock *deadlock = &snapshot->deadlocks.items[i];
		for (size_t j = 0; j < deadlock->count; j++) {
			if (deadlock->threads[j] == thread)
				return true;
		}
	}
	for (size_t i = 0; i < snapshot->cycles.count; i++) {
		const struct ss_cycle *cycle = &snapshot->cycles.items[i];
		for (size_t j = 0; j < cycle->count; j++) {
			if (cycle->members[j].thread ==
			    &snapshot->tasks[SS_TASK_THREAD].items[thread])
				return true;
		}
	}
	return false;
}

/* What the threads of the last snapshot wait for. */
static void add_waits(struct series *series)
{
	const struct ss_snapshot *snapshot = series->snapshot;

	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_wait *wait =
			snapshot->tasks[SS_TASK_THREAD].items[i].wait;
		size_t owner = owner_of(snapshot, i);
		if (!wait)
			continue;
		const struct ss_recorded_wait written = {
			.thread = series->samples.items[i].thread,
			.owner = owner == SIZE_MAX ? SS_ID_NONE :
						     series->samples.items[owner].thread,
			.in_cycle = is_in_cycle(snapshot, i),
			.wait = *wait,
		};
		ss_writer_wait(series->writer, &written);
	}
}

/* The handle of a thread that was sampled, or SS_ID_NONE. */
static uint32_t sampled_thread(const struct series *series, pid_t tid)
{
	const struct ss_snapshot *snapshot = series->snapshot;
	const struct ss_task *thread = tid ? ss_snapshot_find_thread(snapshot, tid) :
					     NULL;

	return thread ? series->samples
				.items[thread - snapshot->tasks[SS_TASK_THREAD].items]
				.thread :
			SS_ID_NONE;
}

static void add_tasks(struct series *series, enum ss_task_kind kind)
{
	const struct ss_snapshot *snapshot = series->snapshot;
	const struct ss_recorded_coverage coverage = {
		.tick = series->tick,
		.process = series->process,
		.kind = kind,
		.coverage = snapshot->coverage[kind],
	};

	if (!snapshot->coverage[kind].known)
		return;
	ss_writer_coverage(series->writer, &coverage);
	for (size_t i = 0; i < snapshot->tasks[kind].count; i++) {
		const struct ss_task *task = &snapshot->tasks[kind].items[i];
		const struct ss_recorded_task written = {
			.tick = series->tick,
			.process = series->process,
			.thread = sampled_thread(series, task->tid),
			.stack = series->stacks.items[task->stack_id],
			.task = *task,
		};
		ss_writer_task(series->writer, &written);
	}
}

static struct ss_error *write_tick(struct series *series)
{
	const struct ss_process *process = &series->snapshot->process;
	const struct ss_tick_record tick = { .monotonic_ns = series->time_ns,
					     .wall_ns = process->time_ns,
					     .stopped_ns = process->stopped_ns,
					     .stopped_max_ns = process->stopped_ns };

	series->stacks.count = 0;
	if (!add_modules(series) || !add_stacks(series) || !add_samples(series))
		return ss_error_no_memory();
	for (enum ss_task_kind kind = SS_TASK_GOROUTINE; kind < SS_TASK_KINDS; kind++)
		add_tasks(series, kind);
	return ss_writer_tick(series->writer, &tick, series->samples.items,
			      series->samples.count);
}

static struct ss_error *
write_all(struct series *series, const struct ss_snapshot *const *snapshots, size_t count)
{
	const struct ss_process *first = &snapshots[0]->process;
	struct ss_summary summary = { .reason = count > 1 ? SS_RECORDING_STOPPED :
							    SS_RECORDING_SNAPSHOT };
	struct ss_error *error = NULL;

	series->process = ss_writer_add_process(series->writer, first->pid, 0,
						first->name, first->executable, 0);
	if (series->process == SS_ID_NONE)
		return ss_error_no_memory();
	for (size_t i = 0; i < count && !error; i++) {
		const struct ss_process *process = &snapshots[i]->process;
		series->snapshot = snapshots[i];
		series->tick = (uint32_t)i;
		/* The clock may have been set back. */
		if (process->time_ns > first->time_ns + series->time_ns)
			series->time_ns = process->time_ns - first->time_ns;
		summary.thread_stops += process->threads_stopped;
		error = write_tick(series);
	}
	summary.duration_ns = series->time_ns;
	if (!error)
		add_waits(series);
	if (!error && series->snapshot->perf_maps.count > 0)
		error = ss_writer_perf_map(series->writer, series->process,
					   &series->snapshot->perf_maps.items[0]);
	return error ? error : ss_writer_finish(series->writer, &summary);
}

struct ss_error *ss_snapshots_record(const struct ss_snapshot *const *snapshots,
				     size_t count, uint64_t period_ns,
				     const struct ss_recording_about *about, int fd)
{
	_cleanup_close_ int file = fd;
	__attribute__((cleanup(series_deinit))) struct series series = {};
	struct utsname system = {};

	if (count == 0)
		return ss_error_new(SS_ERROR_INVALID, "there is no snapshot to record");
	(void)uname(&system); /* or unknown */
	const struct ss_writer_options options = {
		.wall_ns = snapshots[0]->process.time_ns,
		.period_ns = count > 1 ? period_ns : 0,
		.machine = system.machine,
		.host = system.nodename,
		.about = about,
	};
	struct ss_error *error = ss_writer_new(take_fd(file), &options, &series.writer);
	return error ? error : write_all(&series, snapshots, count);
}

struct ss_error *ss_snapshot_record(const struct ss_snapshot *snapshot,
				    const struct ss_recording_about *about, int fd)
{
	return ss_snapshots_record(&snapshot, 1, 0, about, fd);
}
