#include "data/recording_writer.h"

#include <string.h>
#include <zstd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/io.h"

/* Level 3 takes a few percent of a CPU for samples; higher levels gain little. */
enum { LEVEL = 3, PACK_MIN = 64 };

static uint64_t checksum(const void *header, const void *stored, size_t size)
{
	uint64_t sum = XXH3_64bits(header, SS_CHUNK_CHECKED);

	return XXH3_64bits_withSeed(stored, size, sum);
}

static void encode_header(uint8_t *header, enum ss_chunk_type type, size_t packed,
			  size_t raw)
{
	ss_encode_fixed(header, type, 4);
	ss_encode_fixed(header + 4, packed ? SS_COMPRESSION_ZSTD : SS_COMPRESSION_NONE,
			4);
	ss_encode_fixed(header + 8, packed ? packed : raw, 4);
	ss_encode_fixed(header + 12, raw, 4);
}

/* Compresses into the space after the header. 0: the result would not be smaller. */
static size_t pack(const struct ss_buffer *raw, struct ss_buffer *out)
{
	size_t size = raw->size < PACK_MIN ?
			      0 :
			      ZSTD_compress(out->bytes + SS_CHUNK_HEADER_SIZE,
					    out->capacity - SS_CHUNK_HEADER_SIZE,
					    raw->bytes, raw->size, LEVEL);

	return ZSTD_isError(size) || size >= raw->size ? 0 : size;
}

bool ss_chunk_pack(enum ss_chunk_type type, const struct ss_buffer *raw,
		   struct ss_buffer *out)
{
	ss_buffer_clear(out);
	if (raw->failed || raw->size > SS_CHUNK_RAW_MAX ||
	    !ss_buffer_reserve(out, SS_CHUNK_HEADER_SIZE + ZSTD_compressBound(raw->size)))
		return false;
	uint8_t *header = (uint8_t *)out->bytes;
	uint8_t *stored = header + SS_CHUNK_HEADER_SIZE;
	size_t packed = pack(raw, out);
	if (!packed && raw->size)
		memcpy(stored, raw->bytes, raw->size);
	size_t size = packed ? packed : raw->size;
	encode_header(header, type, packed, raw->size);
	ss_encode_fixed(header + SS_CHUNK_CHECKED, checksum(header, stored, size), 8);
	out->size = SS_CHUNK_HEADER_SIZE + size;
	out->bytes[out->size] = '\0';
	return true;
}

enum ss_chunk_result ss_chunk_read_header(int fd, uint64_t offset, uint64_t end,
					  struct ss_chunk_header *ret)
{
	uint8_t bytes[SS_CHUNK_HEADER_SIZE];
	uint64_t left = offset < end ? end - offset : 0;
	size_t size = (size_t)SS_MIN((uint64_t)sizeof(bytes), left);
	ssize_t n = size ? ss_io_pread(fd, bytes, size, offset) : 0;

	if (n == 0)
		return SS_CHUNK_END;
	if (n != sizeof(bytes))
		return SS_CHUNK_CUT;
	memcpy(ret->bytes, bytes, sizeof(ret->bytes));
	ret->type = (uint32_t)ss_decode_fixed(bytes, 4);
	ret->compression = (uint32_t)ss_decode_fixed(bytes + 4, 4);
	ret->stored = (uint32_t)ss_decode_fixed(bytes + 8, 4);
	ret->raw = (uint32_t)ss_decode_fixed(bytes + 12, 4);
	ret->checksum = ss_decode_fixed(bytes + 16, 8);
	if (ret->raw > SS_CHUNK_RAW_MAX || ret->stored > ret->raw)
		return SS_CHUNK_DAMAGED;
	return ret->stored > left - sizeof(bytes) ? SS_CHUNK_CUT : SS_CHUNK_OK;
}

static enum ss_chunk_result unpack(const struct ss_chunk_header *header,
				   const struct ss_buffer *stored, struct ss_buffer *raw)
{
	size_t size = header->raw;

	if (header->compression == SS_COMPRESSION_NONE && header->stored == size) {
		if (size)
			memcpy(raw->bytes, stored->bytes, size);
	} else if (header->compression != SS_COMPRESSION_ZSTD ||
		   ZSTD_decompress(raw->bytes, size, stored->bytes, header->stored) !=
			   size) {
		return SS_CHUNK_DAMAGED;
	}
	raw->size = size;
	return SS_CHUNK_OK;
}

enum ss_chunk_result ss_chunk_read(int fd, uint64_t offset,
				   const struct ss_chunk_header *header,
				   struct ss_buffer *scratch, struct ss_buffer *raw)
{
	ss_buffer_clear(scratch);
	if (!ss_buffer_reserve(scratch, header->stored))
		return SS_CHUNK_NO_MEMORY;
	ssize_t n = ss_io_pread(fd, scratch->bytes, header->stored,
				offset + SS_CHUNK_HEADER_SIZE);
	if (n < 0 || (size_t)n != header->stored)
		return SS_CHUNK_CUT;
	/* Verified before any of its sizes is used for an allocation. */
	if (checksum(header->bytes, scratch->bytes, header->stored) != header->checksum)
		return SS_CHUNK_DAMAGED;
	if (!raw)
		return SS_CHUNK_OK;
	ss_buffer_clear(raw);
	if (!ss_buffer_reserve(raw, header->raw))
		return SS_CHUNK_NO_MEMORY;
	return unpack(header, scratch, raw);
}

/* A smaller difference is not a clock step. */
enum { SS_CLOCK_TOLERANCE_NS = 100 * 1000 };

void ss_ticks_deinit(struct ss_ticks *ticks)
{
	ss_buffer_deinit(&ticks->out);
	ss_vector_free(&ticks->list);
	ss_vector_free(&ticks->places);
}

void ss_ticks_reset(struct ss_ticks *ticks)
{
	for (size_t i = 0; i < ticks->list.count; i++)
		ticks->places.items[ticks->list.items[i].thread] = 0;
	ticks->first += ticks->count;
	ticks->count = ticks->tick_count = ticks->missed = ticks->stopped_ns = 0;
	ticks->list.count = 0;
	ticks->out.size = 0;
}

static void put_operation(struct ss_ticks *ticks, enum ss_operation op, unsigned bits)
{
	ss_buffer_add_byte(&ticks->out, (uint8_t)(bits << SS_OP_BITS | op));
}

/* Writes an operation with a count. */
static void put_run(struct ss_ticks *ticks, enum ss_operation op, size_t count)
{
	if (count == 0)
		return;
	if (count <= SS_OP_COUNT_MORE) {
		put_operation(ticks, op, (unsigned)count - 1);
		return;
	}
	put_operation(ticks, op, SS_OP_COUNT_MORE);
	ss_encode_uleb128(&ticks->out, count - 1 - SS_OP_COUNT_MORE);
}

static void begin_chunk(struct ss_ticks *ticks, const struct ss_tick_record *tick)
{
	ticks->begin_ns = ticks->monotonic_ns = tick->monotonic_ns;
	ticks->begin_distance = (int64_t)(tick->wall_ns - tick->monotonic_ns);
	ticks->distance = ticks->begin_distance;
}

void ss_ticks_put(const struct ss_ticks *ticks, struct ss_buffer *ret)
{
	ss_encode_uleb128(ret, ticks->first);
	ss_encode_uleb128(ret, ticks->count);
	ss_encode_uleb128(ret, ticks->tick_count);
	ss_encode_uleb128(ret, ticks->begin_ns);
	ss_encode_zigzag(ret, ticks->begin_distance);
	ss_encode_uleb128(ret, ticks->monotonic_ns - ticks->begin_ns);
	ss_encode_uleb128(ret, ticks->missed);
	ss_encode_uleb128(ret, ticks->stopped_ns);
	ss_buffer_add(ret, ticks->out.bytes, ticks->out.size);
	ret->failed |= ticks->out.failed;
}

static void put_tick(struct ss_ticks *ticks, const struct ss_tick_record *tick)
{
	int64_t distance = (int64_t)(tick->wall_ns - tick->monotonic_ns);
	int64_t step = (int64_t)((uint64_t)distance - (uint64_t)ticks->distance);

	/* The clocks are not read at the same time, and one is slewed. */
	if (step > -SS_CLOCK_TOLERANCE_NS && step < SS_CLOCK_TOLERANCE_NS)
		step = 0;
	unsigned flags = (step ? SS_TICK_WALL : 0) | (tick->missed ? SS_TICK_MISSED : 0) |
			 (tick->stopped_ns ? SS_TICK_STOPPED : 0);

	put_operation(ticks, SS_OP_TICK, flags);
	ss_encode_uleb128(&ticks->out, tick->monotonic_ns - ticks->monotonic_ns);
	if (step)
		ss_encode_zigzag(&ticks->out, step);
	if (tick->missed)
		ss_encode_uleb128(&ticks->out, tick->missed);
	if (tick->stopped_ns)
		ss_encode_uleb128(&ticks->out, tick->stopped_ns);
	ticks->monotonic_ns = tick->monotonic_ns;
	ticks->distance += step;
}

static void put_sample(struct ss_ticks *ticks, const struct ss_sample_record *s,
		       const struct ss_listed *before, uint32_t local)
{
	bool new_one = before == NULL;
	bool state = new_one || before->state != s->state;
	bool stack = new_one || before->stack != s->stack;
	bool call = new_one ? s->call != SS_ID_NONE : before->call != s->call;

	if (s->ready_us) {
		put_operation(ticks, SS_OP_READY, 0);
		ss_encode_uleb128(&ticks->out, s->ready_us);
	}
	put_operation(ticks, SS_OP_SAMPLE,
		      (new_one ? SS_SAMPLE_NEW : 0) | (stack ? SS_SAMPLE_STACK : 0) |
			      (state ? SS_SAMPLE_STATE : 0) |
			      (s->cpu_us ? SS_SAMPLE_CPU : 0) |
			      (call ? SS_SAMPLE_CALL : 0));
	if (new_one)
		ss_encode_uleb128(&ticks->out, local);
	if (stack)
		ss_encode_uleb128(&ticks->out, s->stack);
	if (state)
		ss_buffer_add_byte(&ticks->out, (uint8_t)s->state);
	if (s->cpu_us)
		ss_encode_uleb128(&ticks->out, s->cpu_us);
	if (call)
		ss_encode_uleb128(&ticks->out,
				  s->call == SS_ID_NONE ? 0 : (uint64_t)s->call + 1);
}

static bool is_same(const struct ss_listed *before, const struct ss_sample_record *s)
{
	return before->stack == s->stack && before->call == s->call &&
	       before->state == s->state && s->cpu_us == 0 && s->ready_us == 0;
}

/* The index of a thread in the list; SIZE_MAX: it is not in it. */
static size_t place_of(const struct ss_ticks *ticks, uint32_t thread)
{
	if (thread >= ticks->places.count || ticks->places.items[thread] == 0)
		return SIZE_MAX;
	return ticks->places.items[thread] - 1;
}

static void put_samples(struct ss_ticks *ticks, const struct ss_sample_record *samples,
			size_t count, ss_local_thread *local, const void *data)
{
	size_t repeats = 0;
	size_t next = 0; /* in the list */

	for (size_t i = 0; i < count; i++) {
		const struct ss_sample_record *s = &samples[i];
		size_t place = place_of(ticks, s->thread);
		bool known = place != SIZE_MAX && place >= next;
		if (known && place == next && is_same(&ticks->list.items[place], s)) {
			repeats++;
			next++;
			continue;
		}
		put_run(ticks, SS_OP_REPEAT, repeats);
		repeats = 0;
		if (known) {
			put_run(ticks, SS_OP_SKIP, place - next);
			next = place + 1;
		}
		put_sample(ticks, s, known ? &ticks->list.items[place] : NULL,
			   local(data, s->thread));
	}
	put_run(ticks, SS_OP_REPEAT, repeats);
}

/* Makes the samples the list for the next tick. */
static bool take_list(struct ss_ticks *ticks, const struct ss_sample_record *samples,
		      size_t count)
{
	for (size_t i = 0; i < ticks->list.count; i++)
		ticks->places.items[ticks->list.items[i].thread] = 0;
	ticks->list.count = 0;
	if (!ss_vector_reserve(&ticks->list, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct ss_sample_record *s = &samples[i];
		while (ticks->places.count <= s->thread)
			if (!ss_vector_push(&ticks->places))
				return false;
		ticks->list.items[ticks->list.count++] =
			(struct ss_listed){ .thread = s->thread,
					    .stack = s->stack,
					    .call = s->call,
					    .state = s->state };
		ticks->places.items[s->thread] = (uint32_t)ticks->list.count;
	}
	return true;
}

bool ss_ticks_add(struct ss_ticks *ticks, const struct ss_tick_record *tick,
		  const struct ss_sample_record *samples, size_t count,
		  ss_local_thread *local, const void *data)
{
	if (ticks->out.size == 0)
		begin_chunk(ticks, tick);
	put_tick(ticks, tick);
	put_samples(ticks, samples, count, local, data);
	ticks->count += count;
	ticks->tick_count++;
	ticks->missed += tick->missed;
	ticks->stopped_ns += tick->stopped_ns;
	return take_list(ticks, samples, count) && !ticks->out.failed;
}
