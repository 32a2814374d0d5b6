#include "data/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "stacksnap/record.h"

/* The first numbers of a segment. */
enum ss_segment_number {
	SS_SEGMENT_SEQUENCE,
	SS_SEGMENT_MONOTONIC_NS,
	SS_SEGMENT_TIME_NS,
	SS_SEGMENT_PERIOD_NS,
	SS_SEGMENT_KEEP_NS,
	SS_SEGMENT_NUMBERS,
};

SS_DEFINE_CLEANUP(struct ss_recording, ss_recording, ss_recording_close)

/* The state of the scan that opens a recording. */
struct scan {
	struct ss_recording *recording;
	struct ss_scope scope;
	uint64_t offset;
	/* sequence number that the next chunk of samples must begin with */
	uint64_t next_sample;
	bool begun;    /* a segment was read */
	bool finished; /* a summary was read, and nothing follows it */
};

bool ss_recording_is(int fd)
{
	uint8_t magic[SS_MAGIC_SIZE];

	return ss_io_pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       memcmp(magic, SS_FORMAT_MAGIC, sizeof(magic)) == 0;
}

/* Files that people take for recordings. */
static struct ss_error *explain_magic(const uint8_t *header, size_t size)
{
	static const struct {
		const char *magic;
		const char *text;
	} kinds[] = {
		{ "MDMP", "it is a minidump, not a recording: lldb, WinDbg and "
			  "minidump-stackwalk read it" },
		{ "\177ELF", "it is an ELF file, not a recording: stacksnap core reads "
			     "core files" },
		{ "PERFILE", "it is a recording of perf: perf report reads it" },
		{ "{",
		  "it is not a recording; it looks like JSON, which report writes but "
		  "does not read" },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(kinds); i++) {
		size_t length = strlen(kinds[i].magic);
		if (size >= length && memcmp(header, kinds[i].magic, length) == 0)
			return ss_error_new(SS_ERROR_INVALID, "%s", kinds[i].text);
	}
	return ss_error_new(SS_ERROR_INVALID, "it is not a recording");
}

static struct ss_error *check_file_header(const struct ss_recording *recording)
{
	uint8_t header[SS_FILE_HEADER_SIZE];
	size_t size = (size_t)SS_MIN((uint64_t)sizeof(header),
				     recording->end - recording->begin);
	ssize_t n = ss_io_pread(recording->fd, header, size, recording->begin);

	if (n == -ESPIPE)
		return ss_error_new(SS_ERROR_INVALID,
				    "it is a pipe: a recording must be a regular file");
	if (n < 0)
		return ss_error_new_errno((int)-n, "reading the recording");
	if (n == 0)
		return ss_error_new(SS_ERROR_INVALID, "the file is empty");
	if (memcmp(header, SS_FORMAT_MAGIC, SS_MIN((size_t)n, (size_t)SS_MAGIC_SIZE)) !=
	    0)
		return explain_magic(header, (size_t)n);
	if (n != sizeof(header))
		return ss_error_new(
			SS_ERROR_INVALID,
			"truncated within its header of %d bytes; it contains no samples",
			SS_FILE_HEADER_SIZE);
	if (ss_decode_fixed(header + 12, 4) != SS_FORMAT_ORDER)
		return ss_error_new(SS_ERROR_INVALID,
				    "the recording has a different byte order");
	unsigned version = (unsigned)ss_decode_fixed(header + 8, 2);
	if (version != SS_FORMAT_VERSION)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "the recording has format version %u; this "
				     "stacksnap reads version %d",
				     version, SS_FORMAT_VERSION),
			"read it with the stacksnap that made it, or a newer one");
	return NULL;
}

static const char *read_text(struct ss_recording *recording, struct ss_cursor *cursor)
{
	uint64_t size = ss_cursor_uleb128(cursor);
	const uint8_t *bytes = ss_cursor_take(cursor, size);
	uint32_t number = bytes && size ? ss_recording_text(recording, bytes, size) : 0;

	return number ? recording->texts.items[number - 1] : "";
}

/* Older recordings end before them. */
static bool read_labels(struct ss_recording *recording, struct ss_cursor *cursor)
{
	uint64_t count = cursor->at < cursor->end ? ss_cursor_uleb128(cursor) : 0;

	for (uint64_t i = 0;
	     i < SS_MIN(count, (uint64_t)SS_FORMAT_LABELS_MAX) && !cursor->failed; i++) {
		const char **slot = ss_vector_push(&recording->labels);
		if (!slot)
			return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
		*slot = read_text(recording, cursor);
	}
	recording->info.labels = recording->labels.items;
	recording->info.label_count = recording->labels.count;
	return !cursor->failed;
}

/* Reads the information about the machine from the first segment. */
static bool take_segment(struct ss_recording *recording, const uint64_t *numbers,
			 struct ss_cursor *cursor)
{
	struct ss_recording_info *info = &recording->info;

	if (recording->segments.count > 1)
		return true;
	info->first_sequence = numbers[SS_SEGMENT_SEQUENCE];
	info->begin_monotonic_ns = numbers[SS_SEGMENT_MONOTONIC_NS];
	info->begin_ns = info->end_ns = numbers[SS_SEGMENT_TIME_NS];
	info->period_ns = numbers[SS_SEGMENT_PERIOD_NS];
	info->keep_ns = numbers[SS_SEGMENT_KEEP_NS];
	info->machine = read_text(recording, cursor);
	info->host = read_text(recording, cursor);
	info->version = read_text(recording, cursor);
	uint64_t scope = cursor->at < cursor->end ? ss_cursor_uleb128(cursor) : 0;
	info->scope = scope <= SS_SCOPE_EVENTS ? (enum ss_recording_scope)scope :
						 SS_SCOPE_THREADS;
	const char *functions = cursor->at < cursor->end ? read_text(recording, cursor) :
							   "";
	info->wait_functions = *functions ? functions : NULL;
	info->boot_id = cursor->at < cursor->end ? read_text(recording, cursor) : "";
	return read_labels(recording, cursor);
}

/* Empties a scope. */
static void scope_deinit(struct ss_scope *scope)
{
	ss_vector_free(&scope->strings.items);
	ss_vector_free(&scope->processes.items);
	ss_vector_free(&scope->modules.items);
	ss_vector_free(&scope->places.items);
	ss_vector_free(&scope->probes.items);
	ss_buffer_deinit(&scope->key);
	ss_buffer_deinit(&scope->last);
	*scope = (struct ss_scope){};
}

static bool read_segment(struct scan *scan, struct ss_cursor *cursor)
{
	struct ss_recording *recording = scan->recording;
	uint64_t numbers[SS_SEGMENT_NUMBERS] = {};

	for (size_t i = 0; i < SS_ARRAY_SIZE(numbers); i++)
		numbers[i] = ss_cursor_uleb128(cursor);
	if (cursor->failed || (scan->begun && numbers[0] != scan->next_sample))
		return false;
	if (!ss_vector_push(&recording->segments))
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	bool taken = take_segment(recording, numbers, cursor);
	scan->next_sample = numbers[0];
	scan->begun = true;
	scope_deinit(&scan->scope);
	return taken && !cursor->failed;
}

static bool read_definitions(struct scan *scan, struct ss_cursor *cursor)
{
	struct ss_recording *recording = scan->recording;

	if (!scan->begun)
		return false;
	scan->scope.segment = &recording->segments.items[recording->segments.count - 1];
	return ss_definitions_read(recording, &scan->scope, cursor);
}

/* Reads only the head; ss_recording_next() reads the samples. */
static bool read_samples(struct scan *scan, const struct ss_chunk_header *header,
			 struct ss_cursor *cursor)
{
	struct ss_recording *recording = scan->recording;
	struct ss_recording_info *info = &recording->info;
	struct ss_samples_head head;

	if (recording->chunks.count >= SS_CHUNKS_MAX)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	if (!scan->begun || !ss_samples_read_head(cursor, &head) ||
	    head.first != scan->next_sample ||
	    __builtin_add_overflow(scan->next_sample, head.samples, &scan->next_sample) ||
	    __builtin_add_overflow(info->ticks, head.ticks, &info->ticks))
		return false;
	struct ss_sample_chunk *chunk = ss_vector_push(&recording->chunks);
	if (!chunk)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*chunk = (struct ss_sample_chunk){
		.offset = scan->offset,
		.header = *header,
		.segment = (uint32_t)recording->segments.count - 1,
		.first_tick = info->ticks - head.ticks,
	};
	info->samples += head.samples;
	info->missed += head.missed;
	info->stopped_ns += head.stopped_ns;
	info->end_ns = head.begin_ns + head.length_ns + (uint64_t)head.distance;
	return true;
}

static bool read_summary(struct scan *scan, struct ss_cursor *cursor)
{
	struct ss_recording_info *info = &scan->recording->info;
	uint64_t numbers[8];

	for (size_t i = 0; i < SS_ARRAY_SIZE(numbers); i++)
		numbers[i] = ss_cursor_uleb128(cursor);
	if (cursor->failed || !scan->begun)
		return false;
	/* The totals include dropped segments, of which nothing else is known. */
	if (!info->keep_ns)
		info->missed = numbers[2];
	info->stopped_ns = numbers[3];
	info->stopped_max_ns = numbers[4];
	info->thread_stops = numbers[5];
	if (numbers[7] <= SS_RECORDING_SNAPSHOT)
		info->end = (enum ss_recording_end)numbers[7];
	if (ss_cursor_left(cursor) > 0) { /* older recordings end here */
		info->lost = ss_cursor_uleb128(cursor);
		info->loss = read_text(scan->recording, cursor);
		info->loss = *info->loss ? info->loss : NULL;
	}
	scan->finished = !cursor->failed;
	return scan->finished;
}

static bool is_known(uint32_t type)
{
	return type == SS_CHUNK_SEGMENT || type == SS_CHUNK_DEFINITIONS ||
	       type == SS_CHUNK_SAMPLES || type == SS_CHUNK_SUMMARY ||
	       type == SS_CHUNK_PERF_MAP || type == SS_CHUNK_EVENTS;
}

/* Unpacking takes time, also if nothing of it is kept. */
static bool has_room(struct scan *scan, const struct ss_chunk_header *header)
{
	uint64_t most = ((uint64_t)SS_RAW_MIB << 20) +
			SS_RAW_PER_BYTE *
				(scan->offset - scan->recording->begin + header->stored);

	scan->recording->raw_read += header->raw;
	return scan->recording->raw_read <= most;
}

static bool read_chunk(struct scan *scan, const struct ss_chunk_header *header)
{
	const struct ss_buffer *raw = &scan->recording->raw;
	struct ss_cursor cursor = ss_buffer_cursor(raw);

	scan->finished = false;
	scan->recording->refusal = SS_CHUNK_DAMAGED;
	switch (header->type) {
	case SS_CHUNK_SEGMENT:
		return read_segment(scan, &cursor);
	case SS_CHUNK_DEFINITIONS:
		return read_definitions(scan, &cursor);
	case SS_CHUNK_SAMPLES:
		return read_samples(scan, header, &cursor);
	case SS_CHUNK_SUMMARY:
		return read_summary(scan, &cursor);
	case SS_CHUNK_PERF_MAP:
		return ss_perf_map_read(scan->recording, &scan->scope, &cursor);
	case SS_CHUNK_EVENTS:
		return scan->begun &&
		       ss_events_read(scan->recording, &scan->scope, &cursor);
	default:
		return true; /* of a newer version */
	}
}

/* Scans one chunk. OK: another one may follow. */
static enum ss_chunk_result scan_chunk(struct scan *scan)
{
	struct ss_recording *recording = scan->recording;
	struct ss_chunk_header header;
	enum ss_chunk_result result = ss_chunk_read_header(recording->fd, scan->offset,
							   recording->end, &header);

	bool known = result == SS_CHUNK_OK && is_known(header.type);
	if (known && !has_room(scan, &header))
		result = SS_CHUNK_TOO_LARGE;
	if (result == SS_CHUNK_OK)
		result = ss_chunk_read(recording->fd, scan->offset, &header,
				       &recording->scratch,
				       known ? &recording->raw : NULL);
	if (result == SS_CHUNK_OK && !read_chunk(scan, &header))
		result = recording->refusal;
	if (result == SS_CHUNK_OK)
		scan->offset += SS_CHUNK_HEADER_SIZE + (uint64_t)header.stored;
	recording->info.size = scan->offset - recording->begin;
	return result;
}

static const char *problem_of(enum ss_chunk_result result, bool finished)
{
	switch (result) {
	case SS_CHUNK_END:
		return finished ? NULL :
				  "no end marker: the recorder is still running, or was "
				  "killed, or the disk was full";
	case SS_CHUNK_CUT:
		return "truncated: the last chunk is incomplete";
	case SS_CHUNK_NO_MEMORY:
		return "not enough memory to read the rest";
	case SS_CHUNK_TOO_LARGE:
		return "exceeds the size limits of this reader; the rest is skipped";
	default:
		return "corrupted; the rest cannot be read";
	}
}

static void scan_file(struct ss_recording *recording)
{
	struct scan scan = { .recording = recording,
			     .offset = recording->begin + SS_FILE_HEADER_SIZE };
	enum ss_chunk_result result;

	do
		result = scan_chunk(&scan);
	while (result == SS_CHUNK_OK);
	scope_deinit(&scan.scope);
	recording->info.problem = problem_of(result, scan.finished);
	if (recording->info.problem)
		recording->info.end = SS_RECORDING_CUT;
}

struct ss_error *ss_recording_open_part(int fd, const struct ss_recording_part *part,
					struct ss_recording **ret)
{
	_cleanup_(ss_recording_cleanup) struct ss_recording *recording =
		calloc(1, sizeof(*recording));

	if (!recording) {
		close_cleanup(&fd);
		return ss_error_no_memory();
	}
	recording->fd = fd;
	recording->begin = part->offset;
	if (__builtin_add_overflow(part->offset, part->size, &recording->end))
		recording->end = UINT64_MAX;
	struct ss_error *error = check_file_header(recording);
	if (error)
		return error;
	recording->info = (struct ss_recording_info){
		.machine = "", .host = "", .version = "", .boot_id = ""
	};
	recording->strings = ss_intern_new();
	recording->places = ss_snapshot_new();
	if (!recording->strings || !recording->places)
		return ss_error_no_memory();
	scan_file(recording);
	error = ss_recording_complete(recording);
	if (!error)
		*ret = take_ptr(recording);
	return error;
}

struct ss_error *ss_recording_open_fd(int fd, struct ss_recording **ret)
{
	const struct ss_recording_part whole = { .size = UINT64_MAX };

	return ss_recording_open_part(fd, &whole, ret);
}

struct ss_error *ss_recording_open(const char *path, struct ss_recording **ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int errnum = errno;
	struct stat status;

	if (fd < 0)
		return ss_error_new_errno(errnum, "cannot open '%s'", path);
	if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode))
		return ss_error_new(SS_ERROR_INVALID, "'%s' is a directory", path);
	_cleanup_error_ struct ss_error *error = ss_recording_open_fd(take_fd(fd), ret);
	if (!error)
		return NULL;
	struct ss_error *named = ss_error_new(ss_error_code(error), "'%s': %s", path,
					      ss_error_message(error));
	const char *remedy = ss_error_remedy(error);
	return remedy ? ss_error_with_remedy(named, "%s", remedy) : named;
}

static void free_tables(struct ss_recording *recording)
{
	ss_idtable_deinit(&recording->text_ids);
	ss_idtable_deinit(&recording->process_ids);
	ss_idtable_deinit(&recording->thread_ids);
	ss_idtable_deinit(&recording->module_ids);
	ss_idtable_deinit(&recording->place_ids);
	ss_idtable_deinit(&recording->stack_ids);
	ss_vector_free(&recording->texts);
	ss_vector_free(&recording->labels);
	ss_vector_free(&recording->processes);
	ss_vector_free(&recording->threads);
	ss_vector_free(&recording->waits);
	ss_vector_free(&recording->coverage);
	ss_vector_free(&recording->tasks);
	for (size_t i = 0; i < recording->blocks.count; i++)
		free(recording->blocks.items[i]);
	ss_vector_free(&recording->blocks);
	ss_vector_free(&recording->call_waits);
	ss_idtable_deinit(&recording->call_wait_ids);
	ss_vector_free(&recording->modules);
	ss_vector_free(&recording->stacks);
	ss_vector_free(&recording->chunks);
	ss_idtable_deinit(&recording->probe_ids);
	ss_vector_free(&recording->probes);
	ss_vector_free(&recording->events);
	ss_vector_free(&recording->event_args);
}

void ss_recording_close(struct ss_recording *recording)
{
	if (!recording)
		return;
	close_cleanup(&recording->fd);
	free_tables(recording);
	for (size_t i = 0; i < recording->segments.count; i++) {
		struct ss_segment *segment = &recording->segments.items[i];
		ss_vector_free(&segment->threads.items);
		ss_vector_free(&segment->stacks.items);
		ss_vector_free(&segment->calls);
	}
	ss_vector_free(&recording->segments);
	ss_snapshot_free(recording->places);
	ss_perf_maps_free(recording);
	ss_intern_free(recording->strings);
	ss_decoder_deinit(&recording->decoder);
	ss_buffer_deinit(&recording->scratch);
	ss_buffer_deinit(&recording->raw);
	free(recording);
}

/*
 * Finds the recordings in a file that has several, one after the other.
 */

/* A read of a search: most often the next recording is not far. */
enum { SEARCH_MIN = 4 << 10, SEARCH_MAX = 1 << 20 };

/* A search through a file. */
struct parts {
	int fd;
	uint64_t end; /* of the file */
	struct ss_buffer scratch;
	struct ss_buffer raw;
};

static void parts_deinit(struct parts *parts)
{
	ss_buffer_deinit(&parts->scratch);
	ss_buffer_deinit(&parts->raw);
}

static bool begins_at(const struct parts *parts, uint64_t offset)
{
	uint8_t header[SS_FILE_HEADER_SIZE];

	return ss_io_pread(parts->fd, header, sizeof(header), offset) == sizeof(header) &&
	       memcmp(header, SS_FORMAT_MAGIC, SS_MAGIC_SIZE) == 0 &&
	       ss_decode_fixed(header + 12, 4) == SS_FORMAT_ORDER;
}

/* Where the next recording begins, or the end of the file. */
static uint64_t search(struct parts *parts, uint64_t offset)
{
	for (size_t size = SEARCH_MIN; ss_buffer_reserve(&parts->scratch, size);
	     size = SS_MIN(2 * size, (size_t)SEARCH_MAX)) {
		const char *bytes = parts->scratch.bytes;
		ssize_t n = ss_io_pread(parts->fd, parts->scratch.bytes, size, offset);
		const char *found = bytes;
		if (n < 0)
			break;
		while ((found = memmem(found, (size_t)n - (size_t)(found - bytes),
				       SS_FORMAT_MAGIC, SS_MAGIC_SIZE))) {
			uint64_t at = offset + (size_t)(found - bytes);
			if (begins_at(parts, at))
				return at;
			found++;
		}
		if ((size_t)n < size)
			break;
		offset += size - SS_MAGIC_SIZE + 1;
	}
	return parts->end;
}

static uint64_t begin_time(const struct parts *parts)
{
	struct ss_cursor cursor = ss_buffer_cursor(&parts->raw);
	uint64_t numbers[SS_SEGMENT_NUMBERS] = {};

	for (size_t i = 0; i < SS_ARRAY_SIZE(numbers); i++)
		numbers[i] = ss_cursor_uleb128(&cursor);
	return cursor.failed ? 0 : numbers[SS_SEGMENT_TIME_NS];
}

/* Only the first chunk is unpacked; of the others the checksum is verified, so that a damaged
   length cannot lead into the next recording. */
static enum ss_chunk_result find_end(struct parts *parts, struct ss_recording_part *part)
{
	uint64_t at = part->offset + SS_FILE_HEADER_SIZE;
	bool first = true;

	while (at < parts->end && !begins_at(parts, at)) {
		struct ss_chunk_header header;
		enum ss_chunk_result result =
			ss_chunk_read_header(parts->fd, at, parts->end, &header);
		bool is_segment = first && header.type == SS_CHUNK_SEGMENT;
		if (result == SS_CHUNK_OK)
			result = ss_chunk_read(parts->fd, at, &header, &parts->scratch,
					       is_segment ? &parts->raw : NULL);
		if (result == SS_CHUNK_NO_MEMORY)
			return result;
		if (result != SS_CHUNK_OK) {
			at = search(parts, at);
			break;
		}
		if (is_segment)
			part->begin_ns = begin_time(parts);
		first = false;
		at += SS_CHUNK_HEADER_SIZE + (uint64_t)header.stored;
	}
	part->size = at - part->offset;
	return SS_CHUNK_OK;
}

struct ss_error *ss_recording_find_part(int fd, uint64_t offset,
					struct ss_recording_part *ret)
{
	__attribute__((cleanup(parts_deinit))) struct parts parts = { .fd = fd };
	struct ss_recording_part part = { .offset = offset };
	struct stat status;

	if (fstat(fd, &status) == 0 && status.st_size > 0)
		parts.end = (uint64_t)status.st_size;
	part.size = parts.end > offset ? parts.end - offset : 0;
	if (begins_at(&parts, offset) && find_end(&parts, &part) == SS_CHUNK_NO_MEMORY)
		return ss_error_no_memory();
	*ret = part;
	return NULL;
}
