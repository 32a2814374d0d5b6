#include "data/recording_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "base/vector.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"

/*
 * The file of a recording, from which old segments may be dropped: the rest is copied to
 * a new file, which then replaces the old one. The name always refers to a complete
 * recording.
 */

enum { COPY_STEP = 1 << 20 };

static void ring_deinit(struct ss_ring *ring)
{
	close_cleanup(&ring->fd);
	close_cleanup(&ring->directory);
	close_cleanup(&ring->other);
	ring->fd = ring->directory = ring->other = -1;
	free(ring->name);
	ring->name = NULL;
	ss_vector_free(&ring->segments);
}

/* Appends complete chunks. On failure the file ends with the previous chunk. Errors:
   SYSTEM. */
static struct ss_error *ring_append(struct ss_ring *ring, const struct ss_buffer *bytes)
{
	if (ring->broken)
		return ss_error_new(SS_ERROR_SYSTEM,
				    "an earlier write to the recording failed");
	int error = ss_io_write_all(ring->fd, bytes->bytes, bytes->size);
	if (!error) {
		ring->size += bytes->size;
		return NULL;
	}
	ring->broken = true;
	/* Fails for a pipe. Readers stop after the last complete chunk anyway. */
	(void)!ftruncate(ring->fd, (off_t)ring->size);
	return ss_error_new_errno(-error, "writing the recording");
}

/* The number of segments that are too old. */
static size_t count_old(const struct ss_ring *ring, uint64_t monotonic_ns)
{
	size_t old = 0;

	/* A segment is too old if the next one began early enough. */
	while (old + 1 < ring->segments.count &&
	       ring->segments.items[old + 1].begin_ns + ring->keep_ns <= monotonic_ns)
		old++;
	return old;
}

/* Appends a part of the file to another one. 0, or a negative errno. */
static int copy_part(int from, uint64_t offset, uint64_t size, int to)
{
	_cleanup_free_ uint8_t *bytes = malloc(COPY_STEP);

	if (!bytes)
		return -ENOMEM;
	while (size > 0) {
		size_t step = (size_t)SS_MIN(size, (uint64_t)COPY_STEP);
		ssize_t n = ss_io_pread(from, bytes, step, offset);
		if (n != (ssize_t)step)
			return n < 0 ? (int)n : -EIO;
		int error = ss_io_write_all(to, bytes, step);
		if (error)
			return error;
		offset += step;
		size -= step;
	}
	return 0;
}

/* Replaces the file with one without the bytes between its header and offset. Returns a
   negative errno if nothing was changed. */
static int make_shorter(const struct ss_ring *ring, uint64_t offset)
{
	_cleanup_(ss_new_file_deinit) struct ss_new_file file;
	int error = ss_new_file_create(ring->directory, ring->name, &file);

	if (!error)
		error = copy_part(ring->fd, 0, SS_FILE_HEADER_SIZE, file.fd);
	if (!error)
		error = copy_part(ring->fd, offset, ring->size - offset, file.fd);
	if (!error)
		error = ss_new_file_publish(&file, true);
	return error ? error : take_fd(file.fd);
}

static void drop(struct ss_ring *ring, size_t old)
{
	uint64_t offset = ring->segments.items[old].offset;
	int fd = make_shorter(ring, offset);

	ring->undropped = fd < 0 ? -fd : 0;
	if (fd < 0)
		return;
	close_cleanup(&ring->fd);
	ring->fd = fd;
	uint64_t gone = offset - SS_FILE_HEADER_SIZE;
	ring->size -= gone;
	ring->segments.count -= old;
	memmove(ring->segments.items, ring->segments.items + old,
		ring->segments.count * sizeof(*ring->segments.items));
	for (size_t i = 0; i < ring->segments.count; i++)
		ring->segments.items[i].offset -= gone;
}

/* Continues in the other file. A reader of that file finds it truncated meanwhile. */
static void alternate(struct ss_ring *ring)
{
	int error = 0;

	if (ftruncate(ring->other, 0) != 0 || lseek(ring->other, 0, SEEK_SET) != 0)
		error = -errno;
	if (!error)
		error = copy_part(ring->fd, 0, SS_FILE_HEADER_SIZE, ring->other);
	ring->undropped = -error;
	if (error)
		return;
	int fd = ring->fd;
	ring->fd = ring->other;
	ring->other = fd;
	ring->size = SS_FILE_HEADER_SIZE;
}

/* Begins a segment at the end of the file and drops segments that are too old. If that
   fails (the disk is full), they remain, and undropped has the errno. Errors:
   NO_MEMORY. */
static struct ss_error *ring_begin_segment(struct ss_ring *ring, uint64_t monotonic_ns)
{
	if (ring->other >= 0 && ring->size > SS_FILE_HEADER_SIZE)
		alternate(ring);
	if (ring->other >= 0 || !ring->name)
		return NULL;
	struct ss_segment_place *place = ss_vector_push(&ring->segments);
	if (!place)
		return ss_error_no_memory();
	*place = (struct ss_segment_place){ .offset = ring->size,
					    .begin_ns = monotonic_ns };
	size_t old = count_old(ring, monotonic_ns);
	if (old > 0)
		drop(ring, old);
	return NULL;
}

uint32_t ss_frame_record_flags(const struct ss_frame *frame)
{
	uint64_t offset = frame->module ? frame->offset : frame->area_offset;
	uint32_t flags = (uint32_t)frame->source << SS_FRAME_SOURCE_SHIFT;

	if (frame->signal_frame)
		flags |= SS_FRAME_SIGNAL;
	if (frame->lookup_offset != offset)
		flags |= SS_FRAME_CALL;
	if (frame->replaced)
		flags |= SS_FRAME_REPLACED;
	return flags;
}

enum ss_frame_kind ss_frame_record_kind(const struct ss_frame *frame)
{
	bool stub = frame->kind == SS_FRAME_NATIVE && !frame->module && frame->symbol;

	return stub ? SS_FRAME_JIT : frame->kind;
}

struct ss_frame_record ss_frame_record_make(const struct ss_frame *frame,
					    uint32_t process, const uint32_t *modules)
{
	bool placed = frame->module && frame->module_index >= 0;

	const enum ss_frame_kind kind = ss_frame_record_kind(frame);

	if (kind != SS_FRAME_NATIVE)
		return (struct ss_frame_record){
			.module = SS_ID_NONE,
			.flags = SS_FROM_RUNTIME << SS_FRAME_SOURCE_SHIFT,
			.kind = kind,
			.function = frame->symbol,
			.file = frame->file,
			.line = frame->line,
		};
	return (struct ss_frame_record){
		.module = placed ? modules[frame->module_index] : SS_ID_NONE,
		.flags = ss_frame_record_flags(frame),
		.value = placed ? frame->offset : frame->pc,
		.area = placed ? NULL : frame->area,
		.process = process,
	};
}

enum { SS_WRITER_MEMORY = 128 << 20 };

enum {
	CHUNK_AIM = 256 << 10, /* bytes of samples or definitions in a chunk, about */
	SLICES = 4,	       /* segments in keep_ns */
	PERF_MAP_PART = 1 << 20,
};

/* Maximum loss if the recorder is killed. */
static const uint64_t write_ns = 1000000000;

static struct ss_error *put_chunk(struct ss_writer *writer, enum ss_chunk_type type,
				  const struct ss_buffer *raw)
{
	if (!ss_chunk_pack(type, raw, &writer->packed))
		return ss_error_no_memory();
	return ring_append(&writer->ring, &writer->packed);
}

/* Writes definitions before the tick that refers to them. */
static void put_early(void *data)
{
	struct ss_writer *writer = data;

	if (!writer->late && !writer->definer.out.failed)
		writer->late =
			put_chunk(writer, SS_CHUNK_DEFINITIONS, &writer->definer.out);
	writer->definer.out.size = 0;
}

static struct ss_error *put_file_header(struct ss_writer *writer)
{
	_cleanup_buffer_ struct ss_buffer header = {};
	uint8_t fixed[8] = {};

	ss_encode_fixed(fixed, SS_FORMAT_VERSION, 2);
	ss_encode_fixed(fixed + 4, SS_FORMAT_ORDER, 4);
	ss_buffer_add(&header, SS_FORMAT_MAGIC, SS_MAGIC_SIZE);
	ss_buffer_add(&header, fixed, sizeof(fixed));
	return header.failed ? ss_error_no_memory() : ring_append(&writer->ring, &header);
}

static struct ss_error *put_segment(struct ss_writer *writer, uint64_t monotonic_ns,
				    uint64_t wall_ns)
{
	_cleanup_buffer_ struct ss_buffer raw = {};

	writer->segment_ns = monotonic_ns;
	writer->perf_maps = 0;
	ss_encode_uleb128(&raw, writer->ticks.first);
	ss_encode_uleb128(&raw, monotonic_ns);
	ss_encode_uleb128(&raw, wall_ns);
	ss_encode_uleb128(&raw, writer->period_ns);
	ss_encode_uleb128(&raw, writer->ring.keep_ns);
	ss_encode_text(&raw, writer->machine);
	ss_encode_text(&raw, writer->host);
	ss_encode_text(&raw, ss_version());
	ss_encode_uleb128(&raw, writer->scope);
	ss_buffer_add(&raw, writer->about.bytes, writer->about.size);
	struct ss_error *error = ring_begin_segment(&writer->ring, monotonic_ns);
	return error ? error : put_chunk(writer, SS_CHUNK_SEGMENT, &raw);
}

/* As many lines as a reader accepts. */
static char *copy_wait_functions(const char *text)
{
	size_t size = text ? strlen(text) : 0;

	size = SS_MIN(size, (size_t)SS_FORMAT_TEXT_MAX);
	while (size > 0 && text[size - 1] != '\n')
		size--;
	return strndup(text ? text : "", size);
}

/* As many as a reader accepts. */
static void encode_about(struct ss_buffer *out, const struct ss_recording_about *about)
{
	static const struct ss_recording_about nothing;
	const struct ss_recording_about *a = about ? about : &nothing;
	_cleanup_free_ char *functions = copy_wait_functions(a->wait_functions);
	size_t labels = SS_MIN(a->label_count, (size_t)SS_FORMAT_LABELS_MAX);

	out->failed |= !functions;
	ss_encode_text(out, functions ? functions : "");
	ss_encode_text(out, a->boot_id ? a->boot_id : "");
	ss_encode_uleb128(out, labels);
	for (size_t i = 0; i < labels; i++) {
		size_t size = strnlen(a->labels[i], SS_FORMAT_LABEL_MAX);
		ss_encode_uleb128(out, size);
		ss_buffer_add(out, a->labels[i], size);
	}
}

static bool copy_options(struct ss_writer *writer,
			 const struct ss_writer_options *options)
{
	writer->write_ns = options->write_ns ? options->write_ns : write_ns;
	writer->period_ns = options->period_ns;
	writer->scope = options->scope;
	writer->memory_max = options->memory_max ? options->memory_max : SS_WRITER_MEMORY;
	writer->machine = strdup(options->machine ? options->machine : "");
	writer->host = strdup(options->host ? options->host : "");
	encode_about(&writer->about, options->about);
	writer->definer.full = put_early;
	writer->definer.full_data = writer;
	writer->definer.strings.hash = options->hash;
	writer->definer.frames.hash = options->hash;
	writer->definer.stacks.hash = options->hash;
	writer->definer.calls.hash = options->hash;
	writer->flushed_ns = options->monotonic_ns;
	writer->ring.keep_ns = options->keep_ns;
	if (options->keep_ns && options->name)
		writer->ring.name = strdup(options->name);
	/* Without a directory nothing is dropped. */
	if (writer->ring.name)
		writer->ring.directory =
			open(options->directory ? options->directory : ".",
			     O_PATH | O_DIRECTORY | O_CLOEXEC);
	return writer->machine && writer->host && !writer->about.failed &&
	       (!options->keep_ns || !options->name || writer->ring.name);
}

struct ss_error *ss_writer_new(int fd, const struct ss_writer_options *options,
			       struct ss_writer **ret)
{
	_cleanup_(ss_writer_cleanup) struct ss_writer *writer =
		calloc(1, sizeof(*writer));

	if (!writer) {
		close_cleanup(&fd);
		return ss_error_no_memory();
	}
	writer->ring = (struct ss_ring){
		.fd = fd,
		.directory = -1,
		.other = options->other ? options->other : -1,
	};
	if (!copy_options(writer, options))
		return ss_error_no_memory();
	struct ss_error *error = put_file_header(writer);
	if (!error)
		error = put_segment(writer, options->monotonic_ns, options->wall_ns);
	if (error)
		return error;
	*ret = take_ptr(writer);
	return NULL;
}

void ss_writer_free(struct ss_writer *writer)
{
	if (!writer)
		return;
	ring_deinit(&writer->ring);
	ss_definer_deinit(&writer->definer);
	ss_ticks_deinit(&writer->ticks);
	ss_buffer_deinit(&writer->packed);
	ss_buffer_deinit(&writer->events);
	ss_error_free(writer->late);
	free(writer->machine);
	free(writer->host);
	ss_buffer_deinit(&writer->about);
	free(writer);
}

static struct ss_error *put_ticks(struct ss_writer *writer)
{
	_cleanup_buffer_ struct ss_buffer raw = {};

	ss_ticks_put(&writer->ticks, &raw);
	return put_chunk(writer, SS_CHUNK_SAMPLES, &raw);
}

static struct ss_error *put_events(struct ss_writer *writer)
{
	_cleanup_buffer_ struct ss_buffer raw = {};

	ss_encode_uleb128(&raw, writer->first_event);
	ss_buffer_add(&raw, writer->events.bytes, writer->events.size);
	raw.failed |= writer->events.failed;
	writer->events.size = 0;
	return put_chunk(writer, SS_CHUNK_EVENTS, &raw);
}

/* Writes definitions, then the samples that refer to them, and their events. */
static struct ss_error *flush(struct ss_writer *writer)
{
	struct ss_error *error = take_ptr(writer->late);

	if (error)
		return error;
	writer->flushed_ns = writer->ticks.monotonic_ns;
	if (writer->definer.out.failed)
		return ss_error_no_memory();
	if (writer->definer.out.size)
		error = put_chunk(writer, SS_CHUNK_DEFINITIONS, &writer->definer.out);
	writer->definer.out.size = 0;
	if (!error && writer->ticks.out.size)
		error = put_ticks(writer);
	if (!error && writer->events.size)
		error = put_events(writer);
	ss_ticks_reset(&writer->ticks);
	if (!error && !ss_definer_forget_threads(&writer->definer))
		error = ss_error_no_memory();
	return error;
}

static uint32_t local_thread(const void *data, uint32_t handle)
{
	const struct ss_writer *writer = data;

	return writer->definer.threads.items.items[handle].local;
}

struct ss_error *ss_writer_tick(struct ss_writer *writer,
				const struct ss_tick_record *tick,
				const struct ss_sample_record *samples, size_t count)
{
	if (writer->definer.out.failed ||
	    !ss_ticks_add(&writer->ticks, tick, samples, count, local_thread, writer))
		return ss_error_no_memory();
	writer->tick_count++;
	writer->missed += tick->missed;
	writer->stopped_ns += tick->stopped_ns;
	writer->stopped_max_ns = SS_MAX(writer->stopped_max_ns, tick->stopped_max_ns);
	if (writer->ticks.out.size >= CHUNK_AIM || writer->events.size >= CHUNK_AIM ||
	    writer->definer.out.size >= CHUNK_AIM ||
	    tick->monotonic_ns >= writer->flushed_ns + writer->write_ns)
		return flush(writer);
	return NULL;
}

static void put_event(struct ss_writer *writer, const struct ss_trace_event *event)
{
	struct ss_buffer *out = &writer->events;
	uint64_t depth = SS_MIN(event->depth, (unsigned)SS_EVENT_DEPTH_MAX);
	unsigned args = SS_MIN(event->arg_count, (unsigned)SS_TRACE_ARGS);

	if (out->size == 0)
		writer->first_event = ss_writer_samples(writer);
	ss_encode_uleb128(out,
			  event->kind | args << SS_EVENT_KIND_BITS |
				  depth << (SS_EVENT_KIND_BITS + SS_EVENT_ARGS_BITS));
	if (event->kind < SS_TRACE_EXIT) {
		ss_encode_uleb128(out, event->probe);
		for (unsigned i = 0; i < args; i++)
			ss_encode_uleb128(out, event->args[i]);
	} else {
		ss_encode_uleb128(out, ss_writer_samples(writer) - event->entry);
		ss_encode_uleb128(out, event->duration_ns);
	}
}

struct ss_error *ss_writer_event(struct ss_writer *writer,
				 const struct ss_trace_event *event,
				 const struct ss_sample_record *sample)
{
	const struct ss_tick_record tick = { .monotonic_ns = event->monotonic_ns,
					     .wall_ns = event->time_ns };

	put_event(writer, event);
	if (event->kind < SS_TRACE_EXIT)
		return ss_writer_tick(writer, &tick, sample, 1);
	return writer->events.size >= CHUNK_AIM ? flush(writer) : NULL;
}

bool ss_writer_wants_roll(const struct ss_writer *writer, uint64_t monotonic_ns)
{
	uint64_t keep_ns = writer->ring.keep_ns;

	return ss_definer_memory(&writer->definer) > writer->memory_max ||
	       (keep_ns && monotonic_ns >= writer->segment_ns + keep_ns / SLICES);
}

struct ss_error *ss_writer_roll(struct ss_writer *writer, uint64_t monotonic_ns,
				uint64_t wall_ns, struct ss_sample_record *samples,
				size_t count)
{
	struct ss_error *error = flush(writer);

	if (!error)
		error = put_segment(writer, monotonic_ns, wall_ns);
	if (!error && !ss_definer_renew(&writer->definer, samples, count))
		error = ss_error_no_memory();
	return error ? error : take_ptr(writer->late);
}

/* Writes the part of the map at offset, and subtracts its size from *size. */
static struct ss_error *put_perf_map(struct ss_writer *writer, uint32_t process,
				     const struct ss_perf_map_file *map, uint64_t offset,
				     uint64_t *size)
{
	_cleanup_buffer_ struct ss_buffer raw = {};
	_cleanup_free_ uint8_t *text = malloc(PERF_MAP_PART);
	ssize_t n = text ? ss_module_read(map->file, offset, text,
					  SS_MIN(*size, (uint64_t)PERF_MAP_PART)) :
			   -1;

	if (!text)
		return ss_error_no_memory();
	if (n <= 0) { /* it was truncated, or is no longer readable */
		*size = 0;
		return NULL;
	}
	ss_encode_uleb128(&raw, writer->definer.processes.items.items[process].local);
	ss_encode_uleb128(&raw, SS_MIN(map->stable_size, (uint64_t)INT64_MAX));
	ss_encode_uleb128(&raw, offset);
	ss_buffer_add(&raw, text, (size_t)n);
	*size -= (uint64_t)n;
	return put_chunk(writer, SS_CHUNK_PERF_MAP, &raw);
}

struct ss_error *ss_writer_perf_map(struct ss_writer *writer, uint32_t process,
				    const struct ss_perf_map_file *map)
{
	struct ss_error *error = flush(writer); /* its process must be defined before */
	struct stat st;

	if (error || fstat(map->file->fd, &st) != 0 || st.st_size <= 0)
		return error;
	uint64_t size = SS_MIN((uint64_t)st.st_size, (uint64_t)SS_PERF_MAP_MAX);
	size = SS_MIN(size, SS_PERF_MAPS_MAX - writer->perf_maps);
	writer->perf_maps += size;
	for (uint64_t end = (uint64_t)st.st_size; size > 0 && !error;)
		error = put_perf_map(writer, process, map, end - size, &size);
	return error;
}

struct ss_error *ss_writer_finish(struct ss_writer *writer, struct ss_summary *summary)
{
	_cleanup_buffer_ struct ss_buffer raw = {};
	struct ss_error *error = flush(writer);

	if (error)
		return error;
	summary->samples = ss_writer_samples(writer);
	summary->ticks = writer->tick_count;
	summary->missed = writer->missed;
	summary->stopped_ns = writer->stopped_ns;
	summary->stopped_max_ns = writer->stopped_max_ns;
	summary->threads = writer->definer.defined_threads;
	summary->stacks = writer->definer.defined_stacks;
	const uint64_t numbers[] = {
		summary->samples,     summary->ticks,	       summary->missed,
		summary->stopped_ns,  summary->stopped_max_ns, summary->thread_stops,
		summary->duration_ns, summary->reason,	       summary->lost,
	};
	for (size_t i = 0; i < SS_ARRAY_SIZE(numbers); i++)
		ss_encode_uleb128(&raw, numbers[i]);
	ss_encode_text(&raw, summary->loss);
	return put_chunk(writer, SS_CHUNK_SUMMARY, &raw);
}

uint64_t ss_writer_samples(const struct ss_writer *writer)
{
	return writer->ticks.first + writer->ticks.count;
}

size_t ss_writer_memory(const struct ss_writer *writer)
{
	return ss_definer_memory(&writer->definer) + writer->packed.capacity +
	       writer->definer.out.capacity + writer->ticks.out.capacity;
}
