/*
 * The format of pprof: profile.proto of github.com/google/pprof, compressed with gzip.
 * Field numbers are those of that file.
 *
 * A mapping is one build of a module, in whichever processes it was loaded. Since their
 * addresses could collide, each module has an address range of its own; the offset in it
 * is the ELF virtual address.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "report/format.h"
#include "report/print.h"
#include "report/wait_text.h"
#include "stacksnap/record.h"

enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_TYPE,
};
enum { TYPE_KIND = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum {
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS,
	MAPPING_HAS_FILES,
	MAPPING_HAS_LINES,
	MAPPING_HAS_INLINES,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE, LINE_COLUMN };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };

enum { PIECE = 48 << 10, GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };

struct gzip {
	FILE *out;
	bool base64;
	z_stream stream;
	uint8_t piece[PIECE];
	uint8_t rest[3]; /* bytes that do not make a group of three yet */
	unsigned rest_count;
};

static void write_group(const struct gzip *gzip)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *b = gzip->rest;
	unsigned count = gzip->rest_count;
	const char text[] = {
		digits[b[0] >> 2],
		digits[(b[0] & 3) << 4 | b[1] >> 4],
		count > 1 ? digits[(b[1] & 15) << 2 | b[2] >> 6] : '=',
		count > 2 ? digits[b[2] & 63] : '=',
	};

	(void)fwrite_unlocked(text, 1, sizeof(text), gzip->out);
}

static void write_base64(struct gzip *gzip, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		gzip->rest[gzip->rest_count++] = bytes[i];
		if (gzip->rest_count == 3) {
			write_group(gzip);
			gzip->rest_count = 0;
		}
	}
}

static void end_base64(struct gzip *gzip)
{
	if (gzip->rest_count == 0)
		return;
	for (unsigned i = gzip->rest_count; i < 3; i++)
		gzip->rest[i] = 0;
	write_group(gzip);
}

/* Returns false after an internal error of zlib: a bug, or no memory. */
static bool pack(struct gzip *gzip, int flush)
{
	int result = Z_OK;

	do {
		gzip->stream.next_out = gzip->piece;
		gzip->stream.avail_out = sizeof(gzip->piece);
		result = deflate(&gzip->stream, flush);
		size_t size = sizeof(gzip->piece) - gzip->stream.avail_out;
		if (gzip->base64)
			write_base64(gzip, gzip->piece, size);
		else
			(void)fwrite_unlocked(gzip->piece, 1, size, gzip->out);
	} while (result == Z_OK && gzip->stream.avail_out == 0);
	return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
}

static ssize_t gzip_write(void *cookie, const char *bytes, size_t size)
{
	struct gzip *gzip = cookie;
	unsigned part = (unsigned)SS_MIN(size, (size_t)1 << 30);

	gzip->stream.next_in = (const Bytef *)bytes;
	gzip->stream.avail_in = part;
	return pack(gzip, Z_NO_FLUSH) ? (ssize_t)part : 0;
}

static int gzip_close(void *cookie)
{
	struct gzip *gzip = cookie;

	gzip->stream.avail_in = 0;
	bool whole = pack(gzip, Z_FINISH);
	if (gzip->base64)
		end_base64(gzip);
	(void)deflateEnd(&gzip->stream); /* only frees */
	free(gzip);
	return whole ? 0 : EOF;
}

FILE *ss_gzip_open(FILE *out, bool base64)
{
	const cookie_io_functions_t functions = { .write = gzip_write,
						  .close = gzip_close };
	_cleanup_free_ struct gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return NULL;
	gzip->out = out;
	gzip->base64 = base64;
	if (deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
			 MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	FILE *file = fopencookie(gzip, "w", functions);
	if (!file) {
		(void)deflateEnd(&gzip->stream); /* only frees */
		return NULL;
	}
	(void)take_ptr(gzip);
	return file;
}

/*
 * The parts of the protocol buffers encoding that a profile needs: a field that is a
 * number, a string, a list of numbers, or a message. A message is a growing buffer; its
 * member failed is set if memory runs out. (protobuf-c would need a compiler and a run-time
 * library, both larger than this.)
 * https://protobuf.dev/programming-guides/encoding/
 */
enum { WIRE_VARINT = 0, WIRE_BYTES = 2, VARINT_MAX = 10 };

static size_t varint(uint64_t value, uint8_t ret[VARINT_MAX])
{
	size_t size = 0;

	while (value >= 0x80) {
		ret[size++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	ret[size++] = (uint8_t)value;
	return size;
}

static void add_varint(struct ss_buffer *message, uint64_t value)
{
	uint8_t bytes[VARINT_MAX];

	ss_buffer_add(message, bytes, varint(value, bytes));
}

static void add_head(struct ss_buffer *message, unsigned field, size_t size)
{
	add_varint(message, (uint64_t)field << 3 | WIRE_BYTES);
	add_varint(message, size);
}

/* Omits the value 0, the default of a missing field. */
static void protobuf_number(struct ss_buffer *message, unsigned field, uint64_t value)
{
	if (!value)
		return;
	add_varint(message, (uint64_t)field << 3 | WIRE_VARINT);
	add_varint(message, value);
}

static void protobuf_text(struct ss_buffer *message, unsigned field, const char *text)
{
	add_head(message, field, strlen(text));
	ss_buffer_add(message, text, strlen(text));
}

static void protobuf_numbers(struct ss_buffer *message, unsigned field,
			     const uint64_t *values, size_t count)
{
	uint8_t bytes[VARINT_MAX];
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += varint(values[i], bytes);
	add_head(message, field, size);
	for (size_t i = 0; i < count; i++)
		add_varint(message, values[i]);
}

static void protobuf_message(struct ss_buffer *message, unsigned field,
			     const struct ss_buffer *inner)
{
	if (inner->failed)
		message->failed = true;
	add_head(message, field, inner->size);
	ss_buffer_add(message, inner->bytes, inner->size);
}

enum { RANGE_BITS = 40 };

struct key {
	uint32_t thread;
	uint32_t call;
	uint32_t wait;	 /* of the profile, or SS_ID_NONE */
	uint32_t known;	 /* the thread's wait is that of these samples */
	uint32_t detail; /* of the profile: index + 1; 0: not known */
	uint32_t state;
};

struct values {
	uint64_t samples;
	uint64_t wall_ns;
	uint64_t cpu_ns;
	uint64_t duration_ns; /* of scopes */
};

struct pprof {
	const struct ss_profile *profile;
	bool has_samples; /* of a recording that is no trace */
	bool has_events;
	struct ss_buffer out;
	struct ss_buffer strings; /* encoded fields of the string table */
	struct ss_idtable texts;  /* of const char *, interned */
	struct ss_intern *valid;  /* the strings, as valid UTF-8 */
	struct ss_idtable keys;	  /* of struct key */
	SS_VECTOR(struct values) values;
	SS_VECTOR(uint32_t) location_of; /* by frame: id, from 1; 0: none yet */
	uint32_t locations;
	SS_VECTOR(uint64_t) path;
};

static void pprof_deinit(struct pprof *p)
{
	ss_buffer_deinit(&p->out);
	ss_buffer_deinit(&p->strings);
	ss_idtable_deinit(&p->texts);
	ss_idtable_deinit(&p->keys);
	ss_intern_free(p->valid);
	ss_vector_free(&p->values);
	ss_vector_free(&p->location_of);
	ss_vector_free(&p->path);
}

/* The index of a string in the string table. The format requires "" to be 0. */
static uint64_t text(struct pprof *p, const char *bytes)
{
	_cleanup_free_ char *valid = ss_escape_is_valid(bytes) ? NULL :
								 ss_escape_invalid(bytes);
	const char *kept = ss_intern_string(p->valid, valid ? valid : bytes);
	size_t before = p->texts.count;
	uint32_t number = kept ? ss_idtable_add(&p->texts, &kept, sizeof(kept), NULL) :
				 SS_ID_NONE;

	if (number == SS_ID_NONE) {
		p->strings.failed = true;
		return 0;
	}
	if (p->texts.count > before)
		protobuf_text(&p->strings, PROFILE_STRING, kept);
	return number;
}

static void put_type(struct pprof *p, unsigned field, const struct ss_profile_unit *of)
{
	_cleanup_buffer_ struct ss_buffer type = {};

	protobuf_number(&type, TYPE_KIND, text(p, of->kind));
	protobuf_number(&type, TYPE_UNIT, text(p, of->unit));
	protobuf_message(&p->out, field, &type);
}

static uint64_t range_start(uint64_t module)
{
	return (module + 1) << RANGE_BITS;
}

static void put_mappings(struct pprof *p)
{
	for (size_t i = 0; i < p->profile->modules.count; i++) {
		const struct ss_module *module = &p->profile->modules.items[i];
		_cleanup_buffer_ struct ss_buffer mapping = {};
		protobuf_number(&mapping, MAPPING_ID, i + 1);
		protobuf_number(&mapping, MAPPING_START, range_start(i));
		protobuf_number(&mapping, MAPPING_LIMIT, range_start(i + 1));
		protobuf_number(&mapping, MAPPING_FILE, text(p, module->path));
		if (module->build_id)
			protobuf_number(&mapping, MAPPING_BUILD_ID,
					text(p, module->build_id));
		protobuf_number(&mapping, MAPPING_HAS_FUNCTIONS, !module->problem);
		protobuf_number(&mapping, MAPPING_HAS_FILES, !module->problem);
		protobuf_number(&mapping, MAPPING_HAS_LINES, !module->problem);
		protobuf_number(&mapping, MAPPING_HAS_INLINES, !module->problem);
		protobuf_message(&p->out, PROFILE_MAPPING, &mapping);
	}
}

/* A function has one file in this format: that of its first frame with a file. */
static void put_functions(struct pprof *p)
{
	const struct ss_profile *profile = p->profile;
	_cleanup_free_ const char **files =
		calloc(profile->functions.count + 1, sizeof(*files));

	for (size_t i = 0; files && i < profile->frames.count; i++) {
		const struct ss_profile_frame *frame = ss_profile_frame_at(profile, i);
		if (!files[frame->function])
			files[frame->function] = frame->file;
	}
	for (size_t i = 0; i < profile->functions.count; i++) {
		_cleanup_buffer_ struct ss_buffer function = {};
		uint64_t name = text(p, ss_profile_function_at(profile, i)->name);
		protobuf_number(&function, FUNCTION_ID, i + 1);
		protobuf_number(&function, FUNCTION_NAME, name);
		protobuf_number(&function, FUNCTION_SYSTEM_NAME, name);
		if (files && files[i])
			protobuf_number(&function, FUNCTION_FILE, text(p, files[i]));
		protobuf_message(&p->out, PROFILE_FUNCTION, &function);
	}
}

static void put_line(struct ss_buffer *location, const struct ss_profile_frame *frame)
{
	_cleanup_buffer_ struct ss_buffer line = {};

	protobuf_number(&line, LINE_FUNCTION, frame->function + 1);
	protobuf_number(&line, LINE_LINE, frame->line);
	protobuf_message(location, LOCATION_LINE, &line);
}

/* Adds the location of an address: count inlined calls, innermost first, from call
   outwards, and the frame outer that contains them. Returns its id. */
static uint32_t put_location(struct pprof *p, uint32_t call, size_t count,
			     const struct ss_profile_frame *outer)
{
	_cleanup_buffer_ struct ss_buffer location = {};
	uint64_t module = ss_profile_function_at(p->profile, outer->function)->module;

	protobuf_number(&location, LOCATION_ID, ++p->locations);
	for (size_t i = 0; i < count; i++) {
		const struct ss_profile_call *c = ss_profile_call_at(p->profile, call);
		put_line(&location, ss_profile_frame_at(p->profile, c->frame));
		call = c->parent;
	}
	put_line(&location, outer);
	if (module != SS_ID_NONE) {
		const uint64_t mask = ((uint64_t)1 << RANGE_BITS) - 1;
		protobuf_number(&location, LOCATION_MAPPING, module + 1);
		protobuf_number(&location, LOCATION_ADDRESS,
				range_start(module) + (outer->offset & mask));
	} else {
		protobuf_number(&location, LOCATION_ADDRESS, outer->offset);
	}
	protobuf_message(&p->out, PROFILE_LOCATION, &location);
	return p->locations;
}

/* Fills p->path with the locations of a stack, innermost first. False without memory. */
static bool find_locations(struct pprof *p, uint32_t call)
{
	uint32_t begin = call;
	size_t count = 0;

	p->path.count = 0;
	while (call != 0) {
		const struct ss_profile_call *c = ss_profile_call_at(p->profile, call);
		const struct ss_profile_frame *frame =
			ss_profile_frame_at(p->profile, c->frame);
		call = c->parent;
		if (frame->inlined && call != 0) {
			count++;
			continue;
		}
		uint32_t *location = &p->location_of.items[c->frame];
		if (!*location)
			*location = put_location(p, begin, count, frame);
		uint64_t *slot = ss_vector_push(&p->path);
		if (!slot)
			return false;
		*slot = *location;
		begin = call;
		count = 0;
	}
	return true;
}

static void put_label(struct pprof *p, struct ss_buffer *sample, const char *key,
		      const char *value, uint64_t number)
{
	_cleanup_buffer_ struct ss_buffer label = {};

	protobuf_number(&label, LABEL_KEY, text(p, key));
	if (value)
		protobuf_number(&label, LABEL_TEXT, text(p, value));
	else
		protobuf_number(&label, LABEL_NUMBER, number);
	protobuf_message(sample, SAMPLE_LABEL, &label);
}

/* What the thread waited for, with the object and its owner if they are known. */
static void put_wait(struct pprof *p, struct ss_buffer *sample, const struct key *key)
{
	const struct ss_profile_thread *thread = &p->profile->threads.items[key->thread];
	const struct ss_profile_process *process =
		&p->profile->processes.items[thread->process];
	const struct ss_wait *wait = key->detail ?
					     p->profile->details.items[key->detail - 1] :
				     key->known ? thread->wait :
						  NULL;
	_cleanup_free_ char *text = wait ? ss_wait_text_new(wait) : NULL;
	_cleanup_free_ char *object =
		wait ? ss_wait_key_new(
			       wait, process->pid,
			       ss_profile_recording_of(p->profile, thread)->boot_id) :
		       NULL;
	_cleanup_free_ char *owner = NULL;
	const char *call =
		key->wait == SS_ID_NONE ? NULL : p->profile->waits.items[key->wait].name;

	if (text || call)
		put_label(p, sample, "wait", text ? text : call, 0);
	if (object)
		put_label(p, sample, "wait_key", object, 0);
	if (!wait || (!wait->owner_tid && !wait->owner_pid))
		return;
	const char *name = wait->owner_tid ? wait->owner_name : wait->owner_process;
	if (asprintf(&owner, "%s %d", name ? name : "",
		     wait->owner_tid ? wait->owner_tid : wait->owner_pid) < 0) {
		p->out.failed = true;
		owner = NULL;
	} else {
		put_label(p, sample, "owner", *owner == ' ' ? owner + 1 : owner, 0);
	}
}

static void put_origin(struct pprof *p, struct ss_buffer *sample,
		       const struct ss_profile_recording *recording)
{
	if (recording->host && *recording->host)
		put_label(p, sample, "host", recording->host, 0);
	for (size_t i = 0; i < recording->label_count; i++) {
		const char *label = recording->labels[i];
		size_t size = strcspn(label, "=");
		_cleanup_free_ char *key = strndup(label, size);
		if (!key)
			p->out.failed = true;
		else if (label[size])
			put_label(p, sample, key, label + size + 1, 0);
	}
}

static bool put_sample(struct pprof *p, const struct key *key, const struct values *v)
{
	const struct ss_profile_thread *thread = &p->profile->threads.items[key->thread];
	const struct ss_profile_process *process =
		&p->profile->processes.items[thread->process];
	uint64_t numbers[4];
	size_t count = 0;
	const char state[] = { (char)key->state, '\0' };
	_cleanup_buffer_ struct ss_buffer sample = {};

	if (!find_locations(p, key->call))
		return false;
	numbers[count++] = v->samples;
	if (p->has_samples) {
		numbers[count++] = v->wall_ns;
		numbers[count++] = v->cpu_ns;
	}
	if (p->has_events)
		numbers[count++] = v->duration_ns;
	protobuf_numbers(&sample, SAMPLE_LOCATIONS, p->path.items, p->path.count);
	protobuf_numbers(&sample, SAMPLE_VALUES, numbers, count);
	put_label(p, &sample, "thread", thread->name, 0);
	if (thread->kind == SS_TASK_GOROUTINE)
		put_label(p, &sample, "goroutine", NULL, thread->id);
	else if (thread->task)
		put_label(p, &sample, "task", thread->task, 0);
	else
		put_label(p, &sample, "tid", NULL, (uint64_t)thread->tid);
	put_label(p, &sample, "process", process->name, 0);
	put_label(p, &sample, "pid", NULL, (uint64_t)process->pid);
	put_label(p, &sample, "state", state, 0);
	put_wait(p, &sample, key);
	put_origin(p, &sample, ss_profile_recording_of(p->profile, thread));
	protobuf_message(&p->out, PROFILE_SAMPLE, &sample);
	return true;
}

static bool add_run(struct pprof *p, uint32_t thread, const struct ss_profile_run *run)
{
	const struct ss_profile_recording *recording =
		ss_profile_recording_of(p->profile, &p->profile->threads.items[thread]);
	const struct ss_profile_thread *of = &p->profile->threads.items[thread];
	bool last = run == &of->runs.items[of->runs.count - 1];
	const struct key key = { thread,      run->call,
				 run->wait,   last && of->wait && run->state != 'R',
				 run->detail, (unsigned char)run->state };
	uint32_t number = ss_idtable_add(&p->keys, &key, sizeof(key), NULL);

	if (number == SS_ID_NONE ||
	    (number == p->values.count && !ss_vector_push(&p->values)))
		return false;
	struct values *values = &p->values.items[number];
	values->samples += run->count;
	values->wall_ns += run->count * recording->period_ns;
	values->cpu_ns += run->cpu_ns;
	if (run->event)
		values->duration_ns += p->profile->events.items[run->event - 1].self_ns;
	return true;
}

static bool put_total(struct pprof *p, const struct ss_profile_total *total)
{
	_cleanup_buffer_ struct ss_buffer sample = {};

	if (!find_locations(p, total->call))
		return false;
	protobuf_numbers(&sample, SAMPLE_LOCATIONS, p->path.items, p->path.count);
	protobuf_numbers(&sample, SAMPLE_VALUES, total->values, p->profile->unit_count);
	protobuf_message(&p->out, PROFILE_SAMPLE, &sample);
	return true;
}

static bool put_samples(struct pprof *p)
{
	const struct ss_profile *profile = p->profile;

	for (uint32_t t = 0; t < profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			if (!add_run(p, t, &thread->runs.items[r]))
				return false;
		}
	}
	for (size_t i = 0; i < p->values.count; i++) {
		if (!put_sample(p, ss_idtable_key(&p->keys, (uint32_t)i, NULL),
				&p->values.items[i]))
			return false;
	}
	for (size_t i = 0; i < profile->totals.count; i++) {
		if (!put_total(p, &profile->totals.items[i]))
			return false;
	}
	return true;
}

/* What the values of a sample count. Returns how many there are. */
static size_t find_units(const struct pprof *p,
			 struct ss_profile_unit ret[SS_PROFILE_UNITS_MAX])
{
	size_t count = 0;

	if (p->profile->unit_count) {
		memcpy(ret, p->profile->units, sizeof(p->profile->units));
		return p->profile->unit_count;
	}
	ret[count++] = (struct ss_profile_unit){ "samples", "count" };
	if (p->has_samples) {
		ret[count++] = (struct ss_profile_unit){ "wall", "nanoseconds" };
		ret[count++] = (struct ss_profile_unit){ "cpu", "nanoseconds" };
	}
	if (p->has_events)
		ret[count++] = (struct ss_profile_unit){ "duration", "nanoseconds" };
	return count;
}

static bool put_profile(struct pprof *p)
{
	static const struct ss_profile_unit wall = { "wall", "nanoseconds" };
	const struct ss_profile *profile = p->profile;
	struct ss_profile_unit units[SS_PROFILE_UNITS_MAX];
	const size_t count = find_units(p, units);
	const struct ss_profile_unit *shown =
		&units[profile->by_time ? count - 1 : profile->shown_unit];
	const struct ss_profile_unit *period = profile->unit_count ? shown : &wall;

	(void)text(p, "");
	for (size_t i = 0; i < count; i++)
		put_type(p, PROFILE_SAMPLE_TYPE, &units[i]);
	put_mappings(p);
	if (!put_samples(p))
		return false;
	put_functions(p);
	protobuf_number(&p->out, PROFILE_TIME, profile->start_ns);
	protobuf_number(&p->out, PROFILE_DURATION,
			profile->unit_count ? profile->elapsed_ns :
					      ss_profile_duration(profile));
	put_type(p, PROFILE_PERIOD_TYPE, period);
	protobuf_number(&p->out, PROFILE_PERIOD,
			profile->recordings.count ?
				profile->recordings.items[0].period_ns :
				profile->period);
	for (size_t i = 0; i < profile->notes.count; i++)
		protobuf_number(&p->out, PROFILE_COMMENT,
				text(p, profile->notes.items[i]));
	protobuf_number(&p->out, PROFILE_DEFAULT_TYPE, text(p, shown->kind));
	return !p->out.failed && !p->strings.failed;
}

static bool reserve(struct pprof *p)
{
	p->valid = ss_intern_new();
	for (size_t i = 0; p->valid && i < p->profile->frames.count; i++) {
		if (!ss_vector_push(&p->location_of))
			return false;
	}
	return p->valid;
}

static struct ss_error *write_profile(const struct ss_profile *profile,
				      const struct ss_format_options *options, FILE *out)
{
	__attribute__((cleanup(pprof_deinit))) struct pprof p = {
		.profile = profile,
	};
	FILE *compressed;

	(void)options;
	p.has_samples = profile->recordings.count == 0 || !ss_profile_is_trace(profile);
	for (size_t i = 0; i < profile->recordings.count; i++)
		p.has_events |= profile->recordings.items[i].scope == SS_SCOPE_EVENTS;
	if (!reserve(&p) || !put_profile(&p))
		return ss_error_no_memory();
	compressed = ss_gzip_open(out, false);
	if (!compressed)
		return ss_error_no_memory();
	(void)fwrite(p.out.bytes, 1, p.out.size, compressed);
	(void)fwrite(p.strings.bytes, 1, p.strings.size, compressed);
	return fclose(compressed) == 0 ? NULL : ss_error_no_memory();
}

const struct ss_format ss_format_pprof = {
	.name = "pprof",
	.description = "for pprof: a protocol buffer, gzip-compressed",
	.binary = true,
	.totals = true,
	.write_profile = write_profile,
};
