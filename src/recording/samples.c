/*
 * Reads chunks of samples. Each tick is encoded as changes to the list of the tick before.
 */
#include "recording/recording.h"

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

bool ss_decoder_begin(struct ss_decoder *decoder, const struct ss_buffer *raw,
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

enum ss_chunk_result ss_decoder_next(struct ss_decoder *decoder, struct ss_sample *ret)
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
