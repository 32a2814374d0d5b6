/*
 * Writes a snapshot as a recording of one tick.
 */
#include <sys/utsname.h>

#include "base/vector.h"
#include "model/snapshot.h"
#include "recording/format.h"
#include "recording/frame_record.h"

/* The handles of the parts of a snapshot. */
struct single {
	const struct ss_snapshot *snapshot;
	struct ss_writer *writer;
	uint32_t process;
	SS_VECTOR(uint32_t) modules; /* handles */
	SS_VECTOR(uint32_t) stacks;
	SS_VECTOR(struct ss_sample_record) samples;
	SS_VECTOR(struct ss_frame_record) frames;
};

static void single_deinit(struct single *single)
{
	ss_writer_free(single->writer);
	ss_vector_free(&single->modules);
	ss_vector_free(&single->stacks);
	ss_vector_free(&single->samples);
	ss_vector_free(&single->frames);
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

static bool add_modules(struct single *single)
{
	const struct ss_snapshot *snapshot = single->snapshot;
	_cleanup_free_ uint64_t *biases = find_biases(snapshot);

	for (size_t i = 0; biases && i < snapshot->modules.count; i++) {
		uint32_t *slot = ss_vector_push(&single->modules);
		if (!slot)
			return false;
		*slot = ss_writer_add_module(single->writer, single->process,
					     &snapshot->modules.items[i]->pub, biases[i],
					     0);
		if (*slot == SS_ID_NONE)
			return false;
	}
	return biases != NULL;
}

/* The reason why each stack ends: that of the first thread with this stack. */
static const char **find_reasons(const struct ss_snapshot *snapshot)
{
	const char **reasons = calloc(snapshot->stacks.count + 1, sizeof(*reasons));

	for (size_t i = snapshot->threads.count; reasons && i > 0; i--) {
		const struct ss_thread *thread = &snapshot->threads.items[i - 1];
		if (thread->reason)
			reasons[thread->stack_id] = thread->reason;
	}
	return reasons;
}

static bool add_stack(struct single *single, const struct ss_stack *stack,
		      const char *reason)
{
	uint32_t *slot = ss_vector_push(&single->stacks);

	single->frames.count = 0;
	for (size_t f = 0; slot && f < stack->count; f++) {
		struct ss_frame_record *frame;
		if (stack->frames[f].inlined)
			continue;
		frame = ss_vector_push(&single->frames);
		if (!frame)
			return false;
		*frame = ss_frame_record_make(&stack->frames[f], single->process,
					      single->modules.items);
	}
	if (slot)
		*slot = ss_writer_stack(single->writer, single->frames.items,
					single->frames.count, stack->end, reason);
	return slot != NULL;
}

static bool add_stacks(struct single *single)
{
	const struct ss_snapshot *snapshot = single->snapshot;
	_cleanup_free_ const char **reasons = find_reasons(snapshot);

	for (size_t i = 0; reasons && i < snapshot->stacks.count; i++) {
		if (!add_stack(single, &snapshot->stacks.items[i], reasons[i]))
			return false;
	}
	return reasons != NULL;
}

static bool add_samples(struct single *single)
{
	const struct ss_snapshot *snapshot = single->snapshot;

	for (size_t i = 0; i < snapshot->threads.count; i++) {
		const struct ss_thread *thread = &snapshot->threads.items[i];
		struct ss_sample_record *sample = ss_vector_push(&single->samples);
		if (!sample)
			return false;
		*sample = (struct ss_sample_record){
			.thread = ss_writer_add_thread(single->writer, single->process,
						       thread->tid, thread->name, 0),
			.stack = single->stacks.items[thread->stack_id],
			.call = SS_ID_NONE,
			.state = thread->state,
		};
		if (sample->thread == SS_ID_NONE)
			return false;
	}
	return true;
}

/* The thread of the same process that another one waits for, or SIZE_MAX. */
static size_t owner_of(const struct ss_snapshot *snapshot, size_t thread)
{
	const struct ss_wait *wait = snapshot->threads.items[thread].wait;
	const struct ss_thread *owner =
		wait && wait->owner_tid && !wait->owner_pid ?
			ss_snapshot_find_thread(snapshot, wait->owner_tid) :
			NULL;

	return owner ? (size_t)(owner - snapshot->threads.items) : SIZE_MAX;
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
	return false;
}

/* The wait-for graph: threads that others wait for, and their own waits. */
static bool add_waits(struct single *single)
{
	const struct ss_snapshot *snapshot = single->snapshot;
	_cleanup_free_ bool *owns = calloc(snapshot->threads.count + 1, sizeof(*owns));

	for (size_t i = 0; owns && i < snapshot->threads.count; i++) {
		size_t owner = owner_of(snapshot, i);
		if (owner != SIZE_MAX)
			owns[owner] = true;
	}
	for (size_t i = 0; owns && i < snapshot->threads.count; i++) {
		const struct ss_wait *wait = snapshot->threads.items[i].wait;
		size_t owner = owner_of(snapshot, i);
		if (!wait || (owner == SIZE_MAX && !owns[i]))
			continue;
		const struct ss_written_wait written = {
			.thread = single->samples.items[i].thread,
			.owner = owner == SIZE_MAX ? SS_ID_NONE :
						     single->samples.items[owner].thread,
			.flags = is_in_cycle(snapshot, i) ? SS_WAIT_IN_CYCLE : 0,
			.wait = wait,
		};
		ss_writer_wait(single->writer, &written);
	}
	return owns != NULL;
}

static struct ss_error *write_all(struct single *single)
{
	const struct ss_process *process = &single->snapshot->process;
	const struct ss_tick_record tick = { .wall_ns = process->time_ns,
					     .stopped_ns = process->stopped_ns,
					     .stopped_max_ns = process->stopped_ns };
	struct ss_summary summary = { .reason = SS_RECORDING_SNAPSHOT,
				      .thread_stops = process->threads_stopped };

	single->process = ss_writer_add_process(single->writer, process->pid, 0,
						process->name, process->executable, 0);
	if (single->process == SS_ID_NONE || !add_modules(single) ||
	    !add_stacks(single) || !add_samples(single) || !add_waits(single))
		return ss_error_no_memory();
	struct ss_error *error = ss_writer_tick(
		single->writer, &tick, single->samples.items, single->samples.count);
	if (!error && single->snapshot->perf_maps.count > 0)
		error = ss_writer_perf_map(single->writer, single->process,
					   &single->snapshot->perf_maps.items[0]);
	return error ? error : ss_writer_finish(single->writer, &summary);
}

struct ss_error *ss_snapshot_record(const struct ss_snapshot *snapshot, int fd)
{
	__attribute__((
		cleanup(single_deinit))) struct single single = { .snapshot = snapshot };
	struct utsname system = {};

	(void)uname(&system); /* or unknown */
	const struct ss_writer_options options = {
		.wall_ns = snapshot->process.time_ns,
		.machine = system.machine,
		.host = system.nodename,
	};
	struct ss_error *error = ss_writer_new(fd, &options, &single.writer);
	return error ? error : write_all(&single);
}
