/*
 * The accessors of an open recording: its tables, its samples in order, and the frames of
 * its places, with names once it is symbolized.
 */
#include <string.h>

#include "recording/recording.h"

static const char *text_of(const struct ss_recording *recording, uint32_t number)
{
	return number ? recording->texts.items[number - 1] : NULL;
}

static bool complete_place(struct ss_recording *recording, uint32_t id)
{
	struct ss_stack *stack = ss_vector_push(&recording->places->stacks);
	struct ss_frame *frame = stack ? calloc(1, sizeof(*frame)) : NULL;
	struct ss_place_key key;
	size_t size;

	if (!frame) {
		recording->places->stacks.count -= stack != NULL;
		return false;
	}
	memcpy(&key, ss_idtable_key(&recording->place_ids, id, &size), sizeof(key));
	*stack = (struct ss_stack){ .frames = frame, .count = 1 };
	*frame = (struct ss_frame){
		.pc = key.value,
		.module_index = -1,
		.signal_frame = key.flags & SS_FRAME_SIGNAL,
		.replaced = key.flags & SS_FRAME_REPLACED,
		.source = (enum ss_frame_source)ss_frame_flags_source(key.flags),
		.kind = (enum ss_frame_kind)key.kind,
		.symbol = text_of(recording, key.function),
		.file = text_of(recording, key.file),
		.line = key.line,
	};
	frame->area = text_of(recording, key.area);
	frame->lookup_offset = key.flags & SS_FRAME_CALL ? (uint64_t)-1 : 0;
	if (key.module == SS_ID_NONE)
		return true;
	const struct ss_recorded_module *module = &recording->modules.items[key.module];
	frame->module = module->module;
	frame->module_index = (int32_t)key.module;
	frame->pc = key.value + module->bias;
	frame->offset = key.value;
	frame->lookup_offset = key.value - (key.flags & SS_FRAME_CALL ? 1 : 0);
	return true;
}

/* Keys of stacks no longer move. */
static bool complete_stacks(struct ss_recording *recording)
{
	if (!ss_vector_reserve(&recording->stacks, recording->stack_ids.count + 1))
		return false;
	for (uint32_t id = 0; id < recording->stack_ids.count; id++) {
		size_t size;
		const uint32_t *key = ss_idtable_key(&recording->stack_ids, id, &size);
		uint32_t reason = key[SS_STACK_REASON];
		recording->stacks.items[recording->stacks.count++] =
			(struct ss_recorded_stack){
				.places = key + SS_STACK_PLACES,
				.count = size / sizeof(*key) - SS_STACK_PLACES,
				.end = (enum ss_end)key[SS_STACK_END],
				.reason = text_of(recording, reason),
			};
	}
	return true;
}

struct ss_error *ss_recording_complete(struct ss_recording *recording)
{
	for (uint32_t id = 0; id < recording->place_ids.count; id++) {
		if (!complete_place(recording, id))
			return ss_error_no_memory();
	}
	return complete_stacks(recording) && ss_perf_maps_complete(recording) ?
		       NULL :
		       ss_error_no_memory();
}

const struct ss_recording_info *ss_recording_info(const struct ss_recording *recording)
{
	return &recording->info;
}

size_t ss_recording_process_count(const struct ss_recording *recording)
{
	return recording->processes.count;
}

const struct ss_recorded_process *
ss_recording_process(const struct ss_recording *recording, size_t index)
{
	return &recording->processes.items[index];
}

size_t ss_recording_thread_count(const struct ss_recording *recording)
{
	return recording->threads.count;
}

const struct ss_recorded_thread *ss_recording_thread(const struct ss_recording *recording,
						     size_t index)
{
	return &recording->threads.items[index];
}

size_t ss_recording_module_count(const struct ss_recording *recording)
{
	return recording->modules.count;
}

const struct ss_recorded_module *ss_recording_module(const struct ss_recording *recording,
						     size_t index)
{
	return &recording->modules.items[index];
}

size_t ss_recording_stack_count(const struct ss_recording *recording)
{
	return recording->stacks.count;
}

const struct ss_recorded_stack *ss_recording_stack(const struct ss_recording *recording,
						   size_t index)
{
	return &recording->stacks.items[index];
}

size_t ss_recording_place_count(const struct ss_recording *recording)
{
	return recording->places->stacks.count;
}

const struct ss_frame *ss_recording_place(const struct ss_recording *recording,
					  size_t index, size_t *count)
{
	*count = recording->places->stacks.items[index].count;
	return recording->places->stacks.items[index].frames;
}

struct ss_error *ss_recording_symbolize(struct ss_recording *recording,
					struct ss_session *session, unsigned flags)
{
	if (!recording || !session)
		return ss_error_new(SS_ERROR_INVALID, "no recording or no session");
	if (recording->symbolized)
		return ss_error_new(SS_ERROR_INVALID,
				    "the recording has already been symbolized");
	recording->symbolized = true;
	return ss_snapshot_symbolize(recording->places, session, flags);
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
	    !ss_decoder_begin(decoder, raw, &recording->segments.items[chunk->segment],
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
			result = ss_decoder_next(&recording->decoder, ret);
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
