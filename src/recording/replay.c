/*
 * Makes a snapshot of a recording: the threads of a process at one tick.
 */
#include <stdlib.h>
#include <string.h>

#include "base/graph.h"
#include "recording/recording.h"

/* Reads one tick without moving the position of ss_recording_next(). */
struct replay {
	struct ss_recording *recording;
	struct ss_snapshot *snapshot;
	struct ss_decoder decoder;
	struct ss_buffer raw;
	SS_VECTOR(struct ss_frame) frames;
};

static void replay_deinit(struct replay *replay)
{
	ss_decoder_deinit(&replay->decoder);
	ss_buffer_deinit(&replay->raw);
	ss_vector_free(&replay->frames);
}

static const char *copy_text(struct replay *replay, const char *text)
{
	return text ? ss_intern_string(replay->snapshot->strings, text) : NULL;
}

/* The chunk that contains a tick, or NULL. */
static const struct ss_sample_chunk *find_chunk(const struct ss_recording *recording,
						uint64_t tick)
{
	const struct ss_sample_chunk *found = NULL;

	for (size_t i = 0; i < recording->chunks.count; i++) {
		if (recording->chunks.items[i].first_tick <= tick)
			found = &recording->chunks.items[i];
	}
	return tick < recording->info.ticks ? found : NULL;
}

/* Copies the frames of a place: the snapshot may outlive the recording. Native frames for
   which calls of a runtime stand are left out. */
static bool add_place(struct replay *replay, uint32_t place)
{
	size_t count;
	const struct ss_frame *frames =
		ss_recording_place(replay->recording, place, &count);

	for (size_t i = 0; i < count && !frames[count - 1].replaced; i++) {
		struct ss_frame *frame = ss_vector_push(&replay->frames);
		if (!frame)
			return false;
		*frame = frames[i];
		frame->symbol = copy_text(replay, frames[i].symbol);
		frame->file = copy_text(replay, frames[i].file);
		frame->area = copy_text(replay, frames[i].area);
	}
	return true;
}

/* Adds a stack of the recording. */
static bool add_stack(struct replay *replay, const struct ss_recorded_stack *stack,
		      uint32_t *ret_id, size_t *ret_count)
{
	replay->frames.count = 0;
	for (size_t i = 0; i < stack->count; i++) {
		if (!add_place(replay, stack->places[i]))
			return false;
	}
	*ret_count = replay->frames.count;
	return ss_snapshot_add_stack(replay->snapshot, replay->frames.items,
				     replay->frames.count, stack->end, ret_id);
}

static bool add_thread(struct replay *replay, const struct ss_sample *sample)
{
	const struct ss_recording *recording = replay->recording;
	const struct ss_recorded_stack *stack = &recording->stacks.items[sample->stack];
	struct ss_thread *thread = ss_vector_push(&replay->snapshot->threads);

	if (!thread)
		return false;
	*thread = (struct ss_thread){
		.tid = recording->threads.items[sample->thread].tid,
		.name = copy_text(replay, recording->threads.items[sample->thread].name),
		.state = sample->state,
		.end = stack->end,
		.reason = copy_text(replay, stack->reason),
		.consistent = true,
	};
	return add_stack(replay, stack, &thread->stack_id, &thread->frame_count);
}

/* Many goroutines have the stack of the one before. */
static bool add_goroutine(struct replay *replay, const struct ss_recorded_goroutine *from,
			  const struct ss_recorded_goroutine *before)
{
	const struct ss_recording *recording = replay->recording;
	const struct ss_recorded_stack *stack = &recording->stacks.items[from->stack];
	struct ss_goroutine *slot = ss_vector_push(&replay->snapshot->goroutines);

	if (!slot)
		return false;
	*slot = (struct ss_goroutine){
		.id = from->id,
		.status = from->status,
		.wait_reason = copy_text(replay, from->wait_reason),
		.waiting_ns = from->waiting_ns,
		.tid = from->thread == UINT32_MAX ?
			       0 :
			       recording->threads.items[from->thread].tid,
		.on_thread = from->on_thread,
		.changed = from->changed,
		.end = stack->end,
		.reason = copy_text(replay, stack->reason),
		.runtime = copy_text(replay, from->runtime),
	};
	if (before && before->stack == from->stack) {
		slot->stack_id = slot[-1].stack_id;
		slot->frame_count = slot[-1].frame_count;
		return true;
	}
	return add_stack(replay, stack, &slot->stack_id, &slot->frame_count);
}

static bool add_goroutines(struct replay *replay, uint64_t tick, size_t process)
{
	const struct ss_recorded_goroutine *before = NULL;

	for (size_t i = 0; i < replay->recording->goroutines.count; i++) {
		const struct ss_recorded_goroutine *goroutine =
			&replay->recording->goroutines.items[i];
		if (goroutine->tick != tick || goroutine->process != process)
			continue;
		if (!add_goroutine(replay, goroutine, before))
			return false;
		before = goroutine;
	}
	return true;
}

/* The tasks of the snapshot, which refer to each other by their order. */
struct tasks {
	SS_VECTOR(const struct ss_kept_task *) items;
};

/* Numbers in a file may be those of no task. */
static bool set_awaited(struct replay *replay, const struct tasks *tasks,
			const struct ss_kept_task *from, struct ss_async_task *ret)
{
	size_t *awaited = ss_snapshot_alloc(replay->snapshot, from->awaited_count + 1,
					    sizeof(*awaited));

	if (!awaited)
		return false;
	for (size_t i = 0; i < from->awaited_count; i++) {
		const uint32_t number = replay->recording->awaited.items[from->first + i];
		if (number < tasks->items.count)
			awaited[ret->awaited_count++] = number;
	}
	ret->awaited = awaited;
	return true;
}

static bool add_task(struct replay *replay, const struct tasks *tasks,
		     const struct ss_kept_task *from)
{
	const struct ss_recording *recording = replay->recording;
	const struct ss_recorded_stack *stack = &recording->stacks.items[from->pub.stack];
	struct ss_async_task *slot = ss_vector_push(&replay->snapshot->async_tasks);

	if (!slot)
		return false;
	*slot = (struct ss_async_task){
		.name = copy_text(replay, from->pub.name),
		.status = from->pub.status,
		.awaited_type = copy_text(replay, from->pub.awaited_type),
		.awaits_all = from->pub.awaits_all,
		.tid = from->pub.thread == UINT32_MAX ?
			       0 :
			       recording->threads.items[from->pub.thread].tid,
		.address = from->pub.address,
	};
	return slot->name && set_awaited(replay, tasks, from, slot) &&
	       add_stack(replay, stack, &slot->stack_id, &slot->frame_count);
}

/* What is no cycle in a file is none. */
static bool set_cycles(struct replay *replay, const struct tasks *tasks)
{
	const size_t count = tasks->items.count;
	_cleanup_free_ size_t *next = calloc(count + 1, sizeof(*next));
	struct ss_graph graph;

	if (!next)
		return false;
	for (size_t i = 0; i < count; i++)
		next[i] = tasks->items.items[i]->cycle_next ?
				  tasks->items.items[i]->cycle_next - 1 :
				  SS_GRAPH_NONE;
	if (!ss_graph_init(&graph, next, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		struct ss_async_task *task = &replay->snapshot->async_tasks.items[i];
		task->in_cycle = graph.cyclic[i];
		task->cycle_next = graph.cyclic[i] ? next[i] : 0;
	}
	ss_graph_deinit(&graph);
	return true;
}

static bool add_tasks(struct replay *replay, uint64_t tick, size_t process)
{
	const struct ss_recording *recording = replay->recording;
	struct ss_snapshot *snapshot = replay->snapshot;
	struct tasks tasks = {};
	bool ok = true;

	for (size_t i = 0; i < recording->task_lists.count; i++) {
		const struct ss_async_task_list *list = &recording->task_lists.items[i];
		if (list->tick != tick || list->process != process)
			continue;
		snapshot->async_tasks_known = true;
		snapshot->async_tasks_changed = list->changed;
		snapshot->async_tasks_unread = list->unread;
		snapshot->async_tasks_problem = copy_text(replay, list->problem);
	}
	for (size_t i = 0; i < recording->tasks.count && ok; i++) {
		const struct ss_kept_task *task = &recording->tasks.items[i];
		if (task->pub.tick != tick || task->pub.process != process)
			continue;
		const struct ss_kept_task **slot = ss_vector_push(&tasks.items);
		ok = slot != NULL;
		if (slot)
			*slot = task;
	}
	for (size_t i = 0; i < tasks.items.count && ok; i++)
		ok = add_task(replay, &tasks, tasks.items.items[i]);
	ok = ok && set_cycles(replay, &tasks);
	ss_vector_free(&tasks.items);
	return ok;
}

static bool add_threads(struct replay *replay, uint64_t tick, size_t process)
{
	const struct ss_recording *recording = replay->recording;
	struct ss_process *about = &replay->snapshot->process;
	struct ss_sample sample;

	while (ss_decoder_next(&replay->decoder, &sample) == SS_CHUNK_OK &&
	       sample.tick <= tick) {
		if (sample.tick < tick ||
		    recording->threads.items[sample.thread].process != process)
			continue;
		about->time_ns = sample.time_ns;
		about->stopped_ns = sample.stopped_ns;
		if (!add_thread(replay, &sample))
			return false;
	}
	return true;
}

/* Adds all modules: frames refer to them by their number in the recording. */
static bool add_modules(struct replay *replay)
{
	const struct ss_snapshot *places = replay->recording->places;

	for (size_t i = 0; i < places->modules.count; i++) {
		struct ss_module_impl **slot = ss_vector_push(&replay->snapshot->modules);
		if (!slot)
			return false;
		*slot = ss_module_ref(places->modules.items[i]);
	}
	return true;
}

static void describe(struct replay *replay, const struct ss_recorded_process *process)
{
	struct ss_process *about = &replay->snapshot->process;

	about->pid = process->pid;
	about->name = copy_text(replay, process->name);
	about->executable = copy_text(replay, process->executable);
	about->mode = SS_MODE_STOP;
}

struct ss_error *ss_recording_snapshot(struct ss_recording *recording, uint64_t tick,
				       size_t process, struct ss_snapshot **ret)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = ss_snapshot_new();
	__attribute__((cleanup(replay_deinit))) struct replay replay = {
		.recording = recording, .snapshot = snapshot
	};
	const struct ss_sample_chunk *chunk = find_chunk(recording, tick);

	if (!snapshot)
		return ss_error_no_memory();
	if (!chunk || process >= recording->processes.count)
		return ss_error_new(SS_ERROR_INVALID,
				    "there is no such tick or process in the recording");
	if (ss_chunk_read(recording->fd, chunk->offset, &chunk->header,
			  &recording->scratch, &replay.raw) != SS_CHUNK_OK ||
	    !ss_decoder_begin(&replay.decoder, &replay.raw,
			      &recording->segments.items[chunk->segment],
			      chunk->first_tick))
		return ss_error_new(SS_ERROR_INVALID,
				    "the recording can no longer be read");
	describe(&replay, &recording->processes.items[process]);
	if (!add_modules(&replay) || !add_threads(&replay, tick, process) ||
	    !add_goroutines(&replay, tick, process) || !add_tasks(&replay, tick, process))
		return ss_error_no_memory();
	*ret = take_ptr(snapshot);
	return NULL;
}
