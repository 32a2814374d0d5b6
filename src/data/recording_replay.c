/*
 * Makes a snapshot of a recording: the threads of a process at one tick.
 */
#include <stdlib.h>

#include "data/recording.h"
#include "data/snapshot_fields.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"

/*
 * Reads the events of a recorded trace. Hits and entries stand for the samples of the recording,
 * in their order; what ends a scope completes the event of its entry.
 */

static bool has_room(const struct ss_recording *recording)
{
	uint64_t most = SS_EVENTS + SS_EVENTS_PER_BYTE * recording->info.size;

	return recording->events.count < SS_MIN(most, (uint64_t)SS_EVENTS_MAX) &&
	       recording->event_args.count <= SS_EVENTS_MAX;
}

static bool read_begin(struct ss_recording *recording, const struct ss_scope *scope,
		       struct ss_recorded_event event, struct ss_cursor *c)
{
	event.probe = ss_locals_read(&scope->probes, c);
	event.args = (uint32_t)recording->event_args.count;
	if (c->failed || event.arg_count > SS_TRACE_ARGS)
		return false;
	if (!has_room(recording))
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	for (unsigned i = 0; i < event.arg_count; i++) {
		uint64_t *arg = ss_vector_push(&recording->event_args);
		if (!arg)
			return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
		*arg = ss_cursor_uleb128(c);
	}
	struct ss_recorded_event *slot = ss_vector_push(&recording->events);
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*slot = event;
	return !c->failed;
}

static bool read_end(struct ss_recording *recording, enum ss_trace_kind kind,
		     struct ss_cursor *c)
{
	uint64_t distance = ss_cursor_uleb128(c);
	uint64_t duration_ns = ss_cursor_uleb128(c);

	if (c->failed || distance == 0 || distance > recording->events.count)
		return false;
	struct ss_recorded_event *event =
		&recording->events.items[recording->events.count - distance];
	if (event->kind != SS_TRACE_ENTER)
		return false;
	event->kind = kind;
	event->duration_ns = duration_ns;
	return true;
}

static bool read_event(struct ss_recording *recording, const struct ss_scope *scope,
		       struct ss_cursor *c)
{
	uint64_t head = ss_cursor_uleb128(c);
	uint64_t kind = head & ((1U << SS_EVENT_KIND_BITS) - 1);
	uint64_t args = head >> SS_EVENT_KIND_BITS & ((1U << SS_EVENT_ARGS_BITS) - 1);
	uint64_t depth = head >> (SS_EVENT_KIND_BITS + SS_EVENT_ARGS_BITS);

	if (c->failed || kind > SS_TRACE_OPEN || depth > SS_EVENT_DEPTH_MAX)
		return false;
	if (kind >= SS_TRACE_EXIT)
		return read_end(recording, (enum ss_trace_kind)kind, c);
	return read_begin(recording, scope,
			  (struct ss_recorded_event){ .kind = kind & 15,
						      .arg_count = args & 15,
						      .depth = depth & 0xffffff },
			  c);
}

bool ss_events_read(struct ss_recording *recording, const struct ss_scope *scope,
		    struct ss_cursor *c)
{
	uint64_t first = ss_cursor_uleb128(c);

	if (c->failed ||
	    first - recording->info.first_sequence != recording->events.count)
		return false;
	while (c->at < c->end) {
		if (!read_event(recording, scope, c))
			return false;
	}
	return !c->failed;
}

const struct ss_recorded_event *ss_recording_event(const struct ss_recording *recording,
						   const struct ss_sample *sample)
{
	uint64_t index = sample->sequence - recording->info.first_sequence;

	return index < recording->events.count ? &recording->events.items[index] : NULL;
}

/*
 * Reads chunks of samples. Each tick is encoded as changes to the list of the tick before.
 */

struct ss_read_entry {
	uint32_t thread;
	uint32_t stack;
	uint32_t call; /* + 1; 0: none */
	char state;
};

void ss_decoder_deinit(struct ss_decoder *decoder)
{
	ss_vector_free(&decoder->list);
	ss_vector_free(&decoder->made);
	ss_vector_free(&decoder->ticks);
}

bool ss_samples_read_head(struct ss_cursor *cursor, struct ss_samples_head *ret)
{
	ret->first = ss_cursor_uleb128(cursor);
	ret->samples = ss_cursor_uleb128(cursor);
	ret->ticks = ss_cursor_uleb128(cursor);
	ret->begin_ns = ss_cursor_uleb128(cursor);
	ret->distance = ss_decode_zigzag(cursor);
	ret->length_ns = ss_cursor_uleb128(cursor);
	ret->missed = ss_cursor_uleb128(cursor);
	ret->stopped_ns = ss_cursor_uleb128(cursor);
	return !cursor->failed;
}

/* Opens a chunk of samples; raw must stay valid. False: corrupted. */
static bool decoder_begin(struct ss_decoder *decoder, const struct ss_buffer *raw,
			  const struct ss_segment *segment, uint64_t first_tick)
{
	struct ss_samples_head head;

	decoder->at = ss_buffer_cursor(raw);
	decoder->segment = segment;
	decoder->repeats = 0;
	decoder->ready_us = 0;
	decoder->next = 0;
	decoder->emitted = true;
	decoder->list.count = decoder->made.count = 0;
	if (!ss_samples_read_head(&decoder->at, &head))
		return false;
	decoder->samples_left = head.samples;
	decoder->ticks_left = head.ticks;
	decoder->distance = head.distance;
	/* The first tick adds one. */
	decoder->sample = (struct ss_sample){ .sequence = head.first,
					      .tick = first_tick - 1,
					      .monotonic_ns = head.begin_ns };
	return true;
}

/* The count of an operation. */
static uint64_t read_count(struct ss_cursor *cursor, unsigned bits)
{
	if (bits < SS_OP_COUNT_MORE)
		return (uint64_t)bits + 1;
	uint64_t more = ss_cursor_uleb128(cursor);
	return more > UINT32_MAX ? UINT64_MAX : more + SS_OP_COUNT_MORE + 1;
}

static void begin_tick(struct ss_decoder *decoder, unsigned flags)
{
	struct ss_sample *s = &decoder->sample;
	struct ss_listed_vector made = decoder->made;

	decoder->made = decoder->list;
	decoder->list = made;
	decoder->made.count = 0;
	decoder->next = 0;
	decoder->at.failed |= decoder->ticks_left == 0;
	decoder->ticks_left -= decoder->ticks_left > 0;
	s->tick++;
	decoder->ticks_read++;
	s->monotonic_ns += ss_cursor_uleb128(&decoder->at);
	if (flags & SS_TICK_WALL)
		decoder->distance = (int64_t)((uint64_t)decoder->distance +
					      (uint64_t)ss_decode_zigzag(&decoder->at));
	s->time_ns = s->monotonic_ns + (uint64_t)decoder->distance;
	if (decoder->emitted)
		s->missed = 0;
	decoder->emitted = false;
	uint64_t missed = flags & SS_TICK_MISSED ? ss_cursor_uleb128(&decoder->at) : 0;
	if (__builtin_add_overflow(s->missed, missed, &s->missed))
		s->missed = UINT64_MAX;
	s->stopped_ns = flags & SS_TICK_STOPPED ? ss_cursor_uleb128(&decoder->at) : 0;
}

/* Reads the fields of an entry that a sample changes. */
static void read_fields(struct ss_decoder *decoder, unsigned flags,
			struct ss_read_entry *entry, uint64_t *cpu_us)
{
	const struct ss_segment *segment = decoder->segment;
	struct ss_cursor *c = &decoder->at;
	uint32_t local;

	if (flags & SS_SAMPLE_NEW) {
		local = ss_cursor_index(c, segment->threads.items.count);
		entry->thread = c->failed ? 0 : segment->threads.items.items[local];
		/* A new entry has no earlier stack. */
		c->failed |= !(flags & SS_SAMPLE_STACK);
	}
	if (flags & SS_SAMPLE_STACK) {
		local = ss_cursor_index(c, segment->stacks.items.count);
		entry->stack = c->failed ? 0 : segment->stacks.items.items[local];
	}
	if (flags & SS_SAMPLE_STATE)
		entry->state = (char)(ss_cursor_byte(c) & 0x7f);
	*cpu_us = flags & SS_SAMPLE_CPU ? ss_cursor_uleb128(c) : 0;
	if (flags & SS_SAMPLE_CALL)
		entry->call = ss_cursor_index(c, segment->calls.count + 1);
}

/* Rejects a second sample of a thread in a tick. */
static enum ss_chunk_result mark_thread(struct ss_decoder *decoder, uint32_t thread)
{
	while (thread >= decoder->ticks.count) {
		if (!ss_vector_push(&decoder->ticks))
			return SS_CHUNK_NO_MEMORY;
	}
	uint64_t *last = &decoder->ticks.items[thread];
	if (*last == decoder->ticks_read)
		return SS_CHUNK_DAMAGED;
	*last = decoder->ticks_read;
	return SS_CHUNK_OK;
}

static uint64_t to_ns(uint64_t us)
{
	return us > UINT64_MAX / 1000 ? UINT64_MAX : us * 1000;
}

/* Returns a sample and adds it to the list of the next tick. */
static enum ss_chunk_result emit(struct ss_decoder *decoder,
				 const struct ss_read_entry *entry, uint64_t cpu_us,
				 bool repeated, struct ss_sample *ret)
{
	struct ss_read_entry *slot;

	if (decoder->samples_left == 0 || decoder->made.count >= SS_THREADS_MAX)
		return SS_CHUNK_DAMAGED;
	enum ss_chunk_result marked = mark_thread(decoder, entry->thread);
	if (marked != SS_CHUNK_OK)
		return marked;
	slot = ss_vector_push(&decoder->made);
	if (!slot)
		return SS_CHUNK_NO_MEMORY;
	*slot = *entry;
	decoder->samples_left--;
	decoder->emitted = true;
	*ret = decoder->sample;
	decoder->sample.sequence++;
	ret->thread = entry->thread;
	ret->stack = entry->stack;
	ret->state = entry->state ? entry->state : '?';
	ret->repeated = repeated;
	ret->on_cpu_ns = to_ns(cpu_us);
	ret->ready_ns = to_ns(decoder->ready_us);
	decoder->ready_us = 0;
	ret->call = -1;
	ret->wait = NULL;
	if (entry->call) {
		const struct ss_recorded_call *call =
			&decoder->segment->calls.items[entry->call - 1];
		ret->call = call->number;
		ret->argument = call->argument;
		ret->wait = call->wait;
	}
	return SS_CHUNK_OK;
}

static enum ss_chunk_result emit_sample(struct ss_decoder *decoder, unsigned flags,
					struct ss_sample *ret)
{
	struct ss_read_entry entry = {};
	uint64_t cpu_us = 0;

	if (!(flags & SS_SAMPLE_NEW)) {
		if (decoder->next >= decoder->list.count)
			return SS_CHUNK_DAMAGED;
		entry = decoder->list.items[decoder->next++];
	}
	read_fields(decoder, flags, &entry, &cpu_us);
	if (decoder->at.failed)
		return SS_CHUNK_DAMAGED;
	return emit(decoder, &entry, cpu_us, false, ret);
}

static enum ss_chunk_result emit_repeated(struct ss_decoder *decoder,
					  struct ss_sample *ret)
{
	decoder->repeats--;
	return emit(decoder, &decoder->list.items[decoder->next++], 0, true, ret);
}

/* Reads the next operation. False: it does not fit the list. */
static bool read_run(struct ss_decoder *decoder, enum ss_operation op, unsigned bits)
{
	uint64_t count = read_count(&decoder->at, bits);

	if (decoder->at.failed || count > decoder->list.count - decoder->next)
		return false;
	if (op == SS_OP_REPEAT)
		decoder->repeats = count;
	else
		decoder->next += count;
	return true;
}

/* The next sample. SS_CHUNK_END: there is none. */
static enum ss_chunk_result decoder_next(struct ss_decoder *decoder,
					 struct ss_sample *ret)
{
	while (decoder->repeats == 0) {
		if (decoder->at.failed)
			return SS_CHUNK_DAMAGED;
		if (decoder->at.at == decoder->at.end)
			return decoder->samples_left ? SS_CHUNK_DAMAGED : SS_CHUNK_END;
		uint8_t byte = ss_cursor_byte(&decoder->at);
		unsigned bits = byte >> SS_OP_BITS;
		unsigned op = byte & ((1U << SS_OP_BITS) - 1);
		if (op == SS_OP_TICK)
			begin_tick(decoder, bits);
		else if (op == SS_OP_SAMPLE)
			return emit_sample(decoder, bits, ret);
		else if (op == SS_OP_READY)
			decoder->ready_us = ss_cursor_uleb128(&decoder->at);
		else if (op > SS_OP_SAMPLE || !read_run(decoder, op, bits))
			return SS_CHUNK_DAMAGED;
	}
	return emit_repeated(decoder, ret);
}

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

static const char *copy_text(void *data, const char *text)
{
	struct replay *replay = data;

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
	const struct ss_recorded_thread *from = &recording->threads.items[sample->thread];
	struct ss_task *thread = ss_snapshot_add_task(replay->snapshot, SS_TASK_THREAD);

	if (!thread)
		return false;
	thread->id = (uint64_t)from->tid;
	thread->tid = from->tid;
	thread->name = copy_text(replay, from->name);
	thread->state = sample->state;
	thread->end = stack->end;
	thread->reason = copy_text(replay, stack->reason);
	thread->consistent = true;
	return add_stack(replay, stack, &thread->stack_id, &thread->frame_count);
}

/* The tasks of a kind in the snapshot, which refer to each other by their order. */
struct tasks {
	SS_VECTOR(const struct ss_recorded_task *) items;
};

/* Numbers in a file may be those of no task. */
static bool set_awaited(struct replay *replay, const struct tasks *tasks,
			const struct ss_recorded_task *from, struct ss_task *ret)
{
	const size_t count = from->task.awaited_count;

	ret->awaited_count = 0;
	if (count == 0)
		return true;
	size_t *awaited = ss_snapshot_alloc(replay->snapshot, count, sizeof(*awaited));

	ret->awaited = awaited;
	if (!awaited)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (from->task.awaited[i] < tasks->items.count)
			awaited[ret->awaited_count++] = from->task.awaited[i];
	}
	return true;
}

/* Many tasks have the stack of the one before. */
static bool add_task(struct replay *replay, const struct tasks *tasks, size_t index)
{
	const struct ss_recorded_task *from = tasks->items.items[index];
	const struct ss_recording *recording = replay->recording;
	const struct ss_recorded_stack *stack = &recording->stacks.items[from->stack];
	struct ss_task *slot = ss_snapshot_add_task(replay->snapshot, from->task.kind);

	if (!slot)
		return false;
	*slot = from->task;
	if (!ss_schema_copy_texts(&ss_recorded_task_schema, slot, copy_text, replay))
		return false;
	if (from->thread != UINT32_MAX)
		slot->tid = recording->threads.items[from->thread].tid;
	slot->end = stack->end;
	slot->reason = copy_text(replay, stack->reason);
	if (!set_awaited(replay, tasks, from, slot))
		return false;
	if (index > 0 && tasks->items.items[index - 1]->stack == from->stack) {
		slot->stack_id = slot[-1].stack_id;
		slot->frame_count = slot[-1].frame_count;
		return true;
	}
	return add_stack(replay, stack, &slot->stack_id, &slot->frame_count);
}

static void set_coverage(struct replay *replay, uint64_t tick, size_t process)
{
	const struct ss_recording *recording = replay->recording;

	for (size_t i = 0; i < recording->coverage.count; i++) {
		const struct ss_recorded_coverage *from = &recording->coverage.items[i];
		if (from->tick != tick || from->process != process)
			continue;
		struct ss_task_coverage *to = &replay->snapshot->coverage[from->kind];
		*to = from->coverage;
		to->problem = copy_text(replay, from->coverage.problem);
	}
}

static bool add_tasks(struct replay *replay, uint64_t tick, size_t process,
		      enum ss_task_kind kind)
{
	const struct ss_recording *recording = replay->recording;
	struct tasks tasks = {};
	bool ok = true;

	for (size_t i = 0; i < recording->tasks.count && ok; i++) {
		const struct ss_recorded_task *task = &recording->tasks.items[i];
		if (task->tick != tick || task->process != process ||
		    task->task.kind != kind)
			continue;
		const struct ss_recorded_task **slot = ss_vector_push(&tasks.items);
		ok = slot != NULL;
		if (slot)
			*slot = task;
	}
	for (size_t i = 0; i < tasks.items.count && ok; i++)
		ok = add_task(replay, &tasks, i);
	ss_vector_free(&tasks.items);
	return ok;
}

static bool add_threads(struct replay *replay, uint64_t tick, size_t process)
{
	const struct ss_recording *recording = replay->recording;
	struct ss_process *about = &replay->snapshot->process;
	struct ss_sample sample;

	while (decoder_next(&replay->decoder, &sample) == SS_CHUNK_OK &&
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

/* What threads wait for, which is recorded for the last tick. */
static bool add_waits(struct replay *replay, size_t process)
{
	const struct ss_recording *recording = replay->recording;
	struct ss_snapshot *snapshot = replay->snapshot;

	for (size_t i = 0; i < recording->waits.count; i++) {
		const struct ss_recorded_wait *from = &recording->waits.items[i];
		const struct ss_recorded_thread *waiter =
			&recording->threads.items[from->thread];
		struct ss_task *thread = waiter->process == process ?
						 ss_drop_const(ss_snapshot_find_thread(
							 snapshot, waiter->tid)) :
						 NULL;
		void **block = thread ? ss_vector_push(&snapshot->blocks) : NULL;
		if (!thread)
			continue;
		if (block)
			*block = ss_schema_copy(&ss_recorded_wait_schema, &from->wait,
						copy_text, replay, NULL);
		if (!block || !*block)
			return false;
		thread->wait = *block;
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
	    !decoder_begin(&replay.decoder, &replay.raw,
			   &recording->segments.items[chunk->segment], chunk->first_tick))
		return ss_error_new(SS_ERROR_INVALID,
				    "the recording can no longer be read");
	describe(&replay, &recording->processes.items[process]);
	if (!add_modules(&replay) || !add_threads(&replay, tick, process) ||
	    !add_tasks(&replay, tick, process, SS_TASK_GOROUTINE) ||
	    !add_tasks(&replay, tick, process, SS_TASK_ASYNCIO) ||
	    !ss_snapshot_check_task_cycles(snapshot) ||
	    (tick + 1 == recording->info.ticks && !add_waits(&replay, process)))
		return ss_error_no_memory();
	set_coverage(&replay, tick, process);
	*ret = take_ptr(snapshot);
	return NULL;
}

void ss_recording_rewind(struct ss_recording *recording)
{
	recording->next_chunk = 0;
	ss_decoder_deinit(&recording->decoder);
	recording->decoder = (struct ss_decoder){};
}

/* Opens a chunk of samples. */
static enum ss_chunk_result begin_chunk(struct ss_recording *recording,
					const struct ss_sample_chunk *chunk,
					struct ss_buffer *raw, struct ss_decoder *decoder)
{
	enum ss_chunk_result result = ss_chunk_read(
		recording->fd, chunk->offset, &chunk->header, &recording->scratch, raw);

	if (result == SS_CHUNK_OK &&
	    !decoder_begin(decoder, raw, &recording->segments.items[chunk->segment],
			   chunk->first_tick))
		return SS_CHUNK_DAMAGED;
	return result;
}

static void add_owner(const struct ss_recording *recording, struct ss_sample *sample)
{
	const struct ss_recorded_thread *thread =
		&recording->threads.items[sample->thread];

	sample->process = thread->process;
	sample->tid = thread->tid;
	sample->pid = recording->processes.items[thread->process].pid;
}

bool ss_recording_next(struct ss_recording *recording, struct ss_sample *ret)
{
	enum ss_chunk_result result = SS_CHUNK_END;

	for (;;) {
		if (recording->decoder.segment)
			result = decoder_next(&recording->decoder, ret);
		if (result == SS_CHUNK_OK) {
			add_owner(recording, ret);
			return true;
		}
		if (result != SS_CHUNK_END ||
		    recording->next_chunk >= recording->chunks.count)
			break;
		result = begin_chunk(recording,
				     &recording->chunks.items[recording->next_chunk++],
				     &recording->raw, &recording->decoder);
		if (result != SS_CHUNK_OK)
			break;
	}
	if (result != SS_CHUNK_END && !recording->info.problem)
		recording->info.problem = "its samples can no longer be read";
	recording->decoder.segment = NULL;
	return false;
}
