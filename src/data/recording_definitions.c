/*
 * Reads the definitions of a segment and maps their numbers to numbers of the whole
 * recording. Each segment defines everything it refers to.
 */
#include <string.h>

#include "base/scan.h"
#include "data/recording.h"
#include "stacksnap/record.h"

/* A record with fields. */
struct record_reader {
	struct ss_recording *recording;
	const struct ss_scope *scope;
};

/* Texts of records are strings of the segment. */
static const char *no_text(void *data, const uint8_t *bytes, size_t size)
{
	(void)data, (void)bytes, (void)size;
	return NULL;
}

static const char *numbered_text(void *data, uint64_t number)
{
	const struct record_reader *reader = data;
	const struct ss_locals *strings = &reader->scope->strings;

	return number && number <= strings->items.count ?
		       reader->recording->texts
			       .items[strings->items.items[number - 1] - 1] :
		       NULL;
}

/* The tasks that a task waits for. */
static void *allocate_awaited(void *data, size_t size, bool owned)
{
	struct ss_recording *recording = ((struct record_reader *)data)->recording;

	(void)owned;
	recording->awaited += size / sizeof(size_t);
	if (recording->awaited > SS_AWAITED_MAX) {
		(void)ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
		return NULL;
	}
	return ss_recording_alloc(recording, size);
}

static uint64_t awaited_limit(void *data, unsigned table)
{
	(void)data, (void)table;
	return SS_TASKS_MAX;
}

/* Reads the fields of a record. */
static bool read_record(struct ss_recording *recording, const struct ss_scope *scope,
			enum ss_definition kind, const struct ss_cursor *cursor,
			void *record)
{
	struct record_reader data = { recording, scope };
	struct ss_schema_reader reader = { .cursor = *cursor,
					   .text = no_text,
					   .numbered = numbered_text,
					   .allocate = allocate_awaited,
					   .limit = awaited_limit,
					   .data = &data };

	ss_schema_read(&reader, &ss_record_schemas[kind], record);
	return !reader.cursor.failed;
}

/* Translates a number of the segment. False: there is none. */
static bool translate(const struct ss_locals *locals, uint32_t *number)
{
	if (*number >= locals->items.count)
		return false;
	*number = locals->items.items[*number];
	return true;
}

/*
 * Reads definitions that samples refer to: frames, stacks and system calls.
 */

/* The call of a runtime. Kinds of newer writers are kept; their name is unknown. */
static void read_call(const struct ss_scope *scope, struct ss_cursor *c,
		      struct ss_place_key *key)
{
	key->kind = ss_cursor_index(c, SS_FORMAT_KINDS_MAX);
	key->function = ss_scope_read_text(scope, c);
	key->file = ss_scope_read_text(scope, c);
	key->line = ss_cursor_index(c, UINT32_MAX);
}

static bool frame_read(struct ss_recording *recording, struct ss_scope *scope,
		       struct ss_cursor *c)
{
	struct ss_place_key key = { .module = SS_ID_NONE };
	uint32_t module = ss_cursor_index(c, scope->modules.items.count + 1);
	bool added = false;

	if (module && !c->failed)
		key.module = scope->modules.items.items[module - 1];
	key.value = ss_cursor_uleb128(c);
	key.flags = ss_cursor_index(c, SS_FRAME_FLAGS_END);
	bool call = ss_frame_flags_source(key.flags) == SS_FROM_RUNTIME;
	if (call)
		read_call(scope, c, &key);
	else if (!module)
		key.area = ss_scope_read_text(scope, c);
	if (!call && !module && c->at < c->end) /* older recordings have no process */
		key.process = ss_locals_read(&scope->processes, c) + 1;
	if (c->failed || ss_frame_flags_source(key.flags) > SS_FROM_RUNTIME ||
	    (call &&
	     (module || key.value || key.kind == SS_FRAME_NATIVE || !key.function)))
		return false;
	return ss_locals_add(recording, &scope->places, &scope->locals,
			     ss_recording_number(recording, &recording->place_ids, &key,
						 sizeof(key), SS_PLACES_MAX, &added));
}

static void put_word(struct ss_buffer *key, uint32_t word)
{
	ss_buffer_add(key, &word, sizeof(word));
}

/*
 * The limit on the frames of all stacks, which are kept expanded: a few bytes of a file can
 * stand for a million of them. It grows with the size of the file.
 */
static uint64_t words_max(const struct ss_recording *recording)
{
	return SS_STACK_WORDS + SS_STACK_WORDS_PER_BYTE * recording->info.size;
}

/* Duplicate stacks cost time, too. */
static bool has_room(struct ss_recording *recording, size_t frames)
{
	uint64_t most = words_max(recording);
	uint64_t kept = recording->stack_ids.byte_count / sizeof(uint32_t) + frames;

	recording->words_read += SS_STACK_PLACES + frames;
	return kept <= SS_MIN(most, (uint64_t)SS_STACK_WORDS_MAX) &&
	       recording->words_read <= most * SS_STACK_WORDS_TIMES;
}

/* Reads the end, the reason and the shared frames, and leaves space for the listed
   ones. */
static bool begin_key(struct ss_scope *scope, uint32_t end, uint32_t reason, size_t count,
		      size_t shared)
{
	size_t last = scope->last.size / sizeof(uint32_t);

	scope->key.size = 0;
	put_word(&scope->key, end);
	put_word(&scope->key, reason);
	for (size_t i = 0; i < count; i++)
		put_word(&scope->key, 0);
	if (shared)
		ss_buffer_add(&scope->key,
			      scope->last.bytes + (last - shared) * sizeof(uint32_t),
			      shared * sizeof(uint32_t));
	return !scope->key.failed;
}

/*
 * Reads a stack, which is written outermost frame first and shares its first frames with
 * the stack before. The key has innermost frames first, so it is filled from its end.
 */
static bool stack_read(struct ss_recording *recording, struct ss_scope *scope,
		       struct ss_cursor *c)
{
	uint32_t end = ss_cursor_index(c, 256);
	uint32_t reason = ss_scope_read_text(scope, c);
	size_t last = scope->last.size / sizeof(uint32_t);
	size_t shared = ss_cursor_index(
		c, last >= SS_STACK_PLACES ? last - SS_STACK_PLACES + 1 : 1);
	size_t count = ss_cursor_index(c, (size_t)(c->end - c->at) + 1);
	bool added = false;

	if (c->failed || shared + count > SS_RECORD_FRAMES_MAX)
		return false;
	if (!has_room(recording, shared + count))
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	if (!begin_key(scope, end, reason, count, shared))
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	for (size_t i = count; i > 0; i--) {
		uint32_t place = ss_locals_read(&scope->places, c);
		memcpy(scope->key.bytes + (SS_STACK_PLACES + i - 1) * sizeof(place),
		       &place, sizeof(place));
	}
	if (c->failed)
		return false;
	uint32_t id = ss_recording_number(recording, &recording->stack_ids,
					  scope->key.bytes, scope->key.size, SS_ID_NONE,
					  &added);
	struct ss_buffer swapped = scope->last;
	scope->last = scope->key;
	scope->key = swapped;
	return ss_locals_add(recording, &scope->segment->stacks, &recording->locals, id);
}

static bool call_read(struct ss_recording *recording, struct ss_scope *scope,
		      struct ss_cursor *c)
{
	if (recording->locals >= SS_LOCALS_MAX ||
	    scope->segment->calls.count >= SS_CALLS_MAX)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	struct ss_recorded_call *call = ss_vector_push(&scope->segment->calls);
	if (!call)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	recording->locals++;
	call->number = ss_decode_zigzag(c);
	call->argument = ss_cursor_uleb128(c);
	call->wait = NULL;
	return !c->failed && ss_call_wait_read(recording, c, &call->wait);
}

/*
 * The perf maps in a recording, as files of the snapshot whose places are symbolized.
 */

/* The map of a process, created at the first call. NULL without memory. */
static struct ss_recorded_perf_map *map_of(struct ss_recording *recording,
					   uint32_t process)
{
	while (recording->perf_map_numbers.count <= process) {
		if (!ss_vector_push(&recording->perf_map_numbers))
			return NULL;
	}
	uint32_t *number = &recording->perf_map_numbers.items[process];
	if (*number)
		return &recording->perf_maps.items[*number - 1];
	struct ss_recorded_perf_map *map = ss_vector_push(&recording->perf_maps);
	if (map)
		*number = (uint32_t)recording->perf_maps.count;
	return map;
}

bool ss_perf_map_read(struct ss_recording *recording, const struct ss_scope *scope,
		      struct ss_cursor *cursor)
{
	size_t process = ss_cursor_index(cursor, scope->processes.items.count);
	uint64_t stable_size = ss_cursor_uleb128(cursor);
	uint64_t offset = ss_cursor_uleb128(cursor);

	if (cursor->failed)
		return false;
	size_t size = (size_t)(cursor->end - cursor->at);
	struct ss_recorded_perf_map *map =
		map_of(recording, scope->processes.items.items[process]);
	if (!map)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	if (map->full)
		return true;
	if (map->text.size == 0 || offset != map->first + map->text.size) {
		recording->perf_map_bytes -= map->text.size;
		ss_buffer_deinit(
			&map->text); /* perf_map_bytes does not count its capacity */
		map->stable_size = stable_size;
		map->first = offset;
	}
	/* Code beyond the limit has no names. */
	map->full = size > SS_PERF_MAPS_MAX - recording->perf_map_bytes;
	if (map->full)
		return true;
	ss_buffer_add(&map->text, ss_cursor_take(cursor, size), size);
	recording->perf_map_bytes += size;
	return !map->text.failed || ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
}

/* Blanks the rest of a line whose start is missing, which could be mistaken for a whole
   line. */
static void blank_rest_of_line(struct ss_recorded_perf_map *map)
{
	char *text = map->text.bytes;
	size_t count = map->first > 0 ? map->text.size : 0;

	for (size_t i = 0; i < count && text[i] != '\n'; i++)
		text[i] = '\n';
}

/* Makes a module of the part that was recorded. False without memory. */
static bool add_file(struct ss_recording *recording, struct ss_recorded_perf_map *map)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *file =
		ss_module_new("perf map", 0, 0);
	struct ss_perf_map_file *slot =
		file ? ss_vector_push(&recording->places->perf_maps) : NULL;

	if (!slot)
		return false;
	blank_rest_of_line(map);
	bool stable_size = map->stable_size > map->first;
	file->bytes = (uint8_t *)map->text.bytes;
	file->size = map->text.size;
	map->text = (struct ss_buffer){};
	slot->file = take_ptr(file);
	slot->stable_size = stable_size ? map->stable_size - map->first : 0;
	return true;
}

/* The map of a place's process; UINT32_MAX: none. */
static uint32_t find_map(const struct ss_recording *recording,
			 const struct ss_place_key *key)
{
	uint32_t process = key->process - 1;

	if (key->module != SS_ID_NONE)
		process = recording->modules.items[key->module].process;
	/* Stored as number + 1; 0, which becomes UINT32_MAX: no map. */
	return process < recording->perf_map_numbers.count ?
		       recording->perf_map_numbers.items[process] - 1 :
		       UINT32_MAX;
}

/* Adds the maps to the snapshot of places. False without memory. */
static bool complete_perf_maps(struct ss_recording *recording)
{
	size_t count = recording->place_ids.count;
	bool whole = true;

	if (recording->perf_maps.count == 0)
		return true;
	recording->perf_map_of = calloc(count + 1, sizeof(*recording->perf_map_of));
	for (uint32_t id = 0; recording->perf_map_of && id < count; id++) {
		struct ss_place_key key;
		size_t size;
		memcpy(&key, ss_idtable_key(&recording->place_ids, id, &size),
		       sizeof(key));
		recording->perf_map_of[id] = find_map(recording, &key);
	}
	for (size_t i = 0; i < recording->perf_maps.count && whole; i++)
		whole = add_file(recording, &recording->perf_maps.items[i]);
	recording->places->perf_map_of = recording->perf_map_of;
	return whole && recording->perf_map_of;
}

void ss_perf_maps_free(struct ss_recording *recording)
{
	for (size_t i = 0; i < recording->perf_maps.count; i++)
		ss_buffer_deinit(&recording->perf_maps.items[i].text);
	ss_vector_free(&recording->perf_maps);
	ss_vector_free(&recording->perf_map_numbers);
	free(recording->perf_map_of);
}

/*
 * Reads the tasks of runtimes in recorded snapshots.
 */

static bool task_coverage_read(struct ss_recording *recording, struct ss_scope *scope,
			       struct ss_cursor *cursor)
{
	struct ss_recorded_coverage read = {};

	if (!read_record(recording, scope, SS_DEFINE_TASK_COVERAGE, cursor, &read) ||
	    !translate(&scope->processes, &read.process) || read.kind == SS_TASK_THREAD)
		return false;
	if (recording->coverage.count >= SS_TASK_COVERAGE_MAX)
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	struct ss_recorded_coverage *slot = ss_vector_push(&recording->coverage);
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*slot = read;
	return true;
}

static bool task_read(struct ss_recording *recording, struct ss_scope *scope,
		      struct ss_cursor *cursor)
{
	const uint64_t most = SS_TASKS + SS_TASKS_PER_BYTE * recording->info.size;
	struct ss_recorded_task task = {};

	if (!read_record(recording, scope, SS_DEFINE_TASK, cursor, &task) ||
	    !translate(&scope->processes, &task.process) ||
	    !translate(&scope->segment->stacks, &task.stack) ||
	    (task.thread != UINT32_MAX &&
	     !translate(&scope->segment->threads, &task.thread)) ||
	    task.kind == SS_TASK_THREAD)
		return false;
	task.task.kind = task.kind;
	task.task.on_thread &= task.thread != UINT32_MAX;
	if (recording->tasks.count >= SS_MIN(most, (uint64_t)SS_TASKS_MAX))
		return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
	struct ss_recorded_task *slot = ss_vector_push(&recording->tasks);
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*slot = task;
	return true;
}

static const char *text_of(const struct ss_recording *recording, uint32_t number)
{
	return number ? recording->texts.items[number - 1] : NULL;
}

static bool read_string(struct ss_recording *recording, struct ss_scope *scope,
			struct ss_cursor *c)
{
	size_t size = (size_t)(c->end - c->at);
	uint32_t number = ss_recording_text(recording, ss_cursor_take(c, size), size);

	return number &&
	       ss_locals_add(recording, &scope->strings, &scope->locals, number);
}

static bool read_process(struct ss_recording *recording, struct ss_scope *scope,
			 struct ss_cursor *c)
{
	struct ss_recorded_process process = {};
	bool added = false;

	if (!read_record(recording, scope, SS_DEFINE_PROCESS, c, &process))
		return false;
	const struct {
		uint64_t pid;
		uint64_t start_time;
		uint64_t begin_ns;
	} key = { (uint64_t)process.pid, process.start_time, process.begin_ns };
	uint32_t id = ss_recording_number(recording, &recording->process_ids, &key,
					  sizeof(key), SS_PROCESSES_MAX, &added);
	struct ss_recorded_process *slot = added ? ss_vector_push(&recording->processes) :
						   NULL;
	if (added && !slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	if (slot)
		*slot = process;
	return ss_locals_add(recording, &scope->processes, &scope->locals, id);
}

static bool read_thread(struct ss_recording *recording, struct ss_scope *scope,
			struct ss_cursor *c)
{
	struct ss_recorded_thread thread = {};
	bool added = false;

	if (!read_record(recording, scope, SS_DEFINE_THREAD, c, &thread) ||
	    !translate(&scope->processes, &thread.process))
		return false;
	const struct {
		uint64_t begin_ns;
		uint32_t process;
		uint32_t tid;
	} key = { thread.begin_ns, thread.process, (uint32_t)thread.tid };
	uint32_t id = ss_recording_number(recording, &recording->thread_ids, &key,
					  sizeof(key), SS_THREADS_MAX, &added);
	if (id == SS_ID_NONE)
		return false;
	if (added && !ss_vector_push(&recording->threads))
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	thread.end_ns = recording->threads.items[id].end_ns;
	recording->threads.items[id] = thread; /* its last name */
	return ss_locals_add(recording, &scope->segment->threads, &recording->locals, id);
}

/* False: it is corrupted, or there is no memory. */
static bool set_build_id(struct ss_module_impl *module, const char *text)
{
	uint8_t id[SS_BUILD_ID_MAX];
	size_t size = 0;

	if (!text || !*text)
		return true;
	return ss_scan_bytes(text, id, sizeof(id), &size) &&
	       ss_module_set_build_id(module, id, size);
}

/* False: it is corrupted. */
static bool set_file(struct ss_module_impl *module, const struct ss_file_identity *file)
{
	uint8_t hash[SS_FILE_HASH_SIZE];
	size_t size = 0;

	if (!file->hash || module->build_id_size)
		return true;
	if (!ss_scan_bytes(file->hash, hash, sizeof(hash), &size) || size != sizeof(hash))
		return false;
	ss_module_set_file(module, file, hash);
	return true;
}

static bool add_module(struct ss_recording *recording,
		       const struct ss_module_record *record)
{
	const struct ss_module *from = &record->module;
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new(from->path, from->base, from->base + from->size);

	if (!module)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	if (!set_build_id(module, from->build_id) || !set_file(module, &from->file))
		return false;
	module->pub.deleted = from->deleted;
	/* The recorder's problem explains why the file cannot be looked for. Otherwise this
	   reader has its own, or none. */
	if (from->problem && !module->build_id_size && !module->pub.file.hash)
		ss_module_set_problem(module, "%s", from->problem);
	struct ss_recorded_module *recorded = ss_vector_push(&recording->modules);
	struct ss_module_impl **slot =
		recorded ? ss_vector_push(&recording->places->modules) : NULL;
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*recorded = (struct ss_recorded_module){ .process = record->process,
						 .module = &module->pub,
						 .bias = record->bias,
						 .begin_ns = record->begin_ns };
	*slot = take_ptr(module);
	return true;
}

static bool read_module(struct ss_recording *recording, struct ss_scope *scope,
			struct ss_cursor *c)
{
	struct ss_module_record record = {};
	const struct ss_module *module = &record.module;
	bool added = false;

	if (!read_record(recording, scope, SS_DEFINE_MODULE, c, &record) ||
	    !translate(&scope->processes, &record.process) ||
	    module->size > UINT64_MAX - module->base)
		return false;
	const struct {
		uint64_t base;
		uint64_t size;
		uint64_t bias;
		uint64_t begin_ns;
		const char *path; /* interned, as the next one */
		const char *build_id;
		uint64_t process;
	} key = { module->base, module->size,	  record.bias,	 record.begin_ns,
		  module->path, module->build_id, record.process };
	uint32_t id = ss_recording_number(recording, &recording->module_ids, &key,
					  sizeof(key), SS_MODULES_MAX, &added);
	if (added && !add_module(recording, &record))
		return false;
	return ss_locals_add(recording, &scope->modules, &scope->locals, id);
}

static bool read_thread_end(struct ss_recording *recording, struct ss_scope *scope,
			    struct ss_cursor *c)
{
	uint32_t thread = ss_locals_read(&scope->segment->threads, c);
	uint64_t time_ns = ss_cursor_uleb128(c);

	if (!c->failed)
		recording->threads.items[thread].end_ns = time_ns;
	return !c->failed;
}

static bool read_module_end(struct ss_recording *recording, struct ss_scope *scope,
			    struct ss_cursor *c)
{
	uint32_t module = ss_locals_read(&scope->modules, c);
	uint64_t time_ns = ss_cursor_uleb128(c);

	if (!c->failed)
		recording->modules.items[module].end_ns = time_ns;
	return !c->failed;
}

static bool read_process_end(struct ss_recording *recording, struct ss_scope *scope,
			     struct ss_cursor *c)
{
	uint32_t process = ss_locals_read(&scope->processes, c);
	uint64_t time_ns = ss_cursor_uleb128(c);

	if (!c->failed)
		recording->processes.items[process].end_ns = time_ns;
	return !c->failed;
}

static bool read_thread_name(struct ss_recording *recording, struct ss_scope *scope,
			     struct ss_cursor *c)
{
	uint32_t thread = ss_locals_read(&scope->segment->threads, c);
	(void)ss_cursor_uleb128(c); /* the time of the change: unused */
	uint32_t name = ss_scope_read_text(scope, c);

	if (!c->failed && name)
		recording->threads.items[thread].name = text_of(recording, name);
	return !c->failed;
}

static bool read_probe(struct ss_recording *recording, struct ss_scope *scope,
		       struct ss_cursor *c)
{
	struct ss_recorded_probe probe = {};
	bool added = false;

	if (!read_record(recording, scope, SS_DEFINE_PROBE, c, &probe) ||
	    (probe.module != UINT32_MAX && !translate(&scope->modules, &probe.module)))
		return false;
	const struct {
		uint64_t offset;
		const char *name; /* interned */
		uint32_t module;
		bool flags[4];
	} key = { probe.offset,
		  probe.name,
		  probe.module,
		  { probe.usdt, probe.line, probe.scope } };
	uint32_t id = ss_recording_number(recording, &recording->probe_ids, &key,
					  sizeof(key), SS_PROBES_MAX, &added);
	struct ss_recorded_probe *slot = added ? ss_vector_push(&recording->probes) :
						 NULL;
	if (added && !slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	if (slot)
		*slot = probe;
	return ss_locals_add(recording, &scope->probes, &scope->locals, id);
}

static bool read_trace(struct ss_recording *recording, struct ss_scope *scope,
		       struct ss_cursor *c)
{
	recording->has_trace =
		read_record(recording, scope, SS_DEFINE_TRACE, c, &recording->trace);
	return recording->has_trace;
}

typedef bool definition_reader(struct ss_recording *recording, struct ss_scope *scope,
			       struct ss_cursor *c);

static definition_reader *const readers[] = {
	[SS_DEFINE_STRING] = read_string,
	[SS_DEFINE_PROCESS] = read_process,
	[SS_DEFINE_THREAD] = read_thread,
	[SS_DEFINE_MODULE] = read_module,
	[SS_DEFINE_FRAME] = frame_read,
	[SS_DEFINE_STACK] = stack_read,
	[SS_DEFINE_CALL] = call_read,
	[SS_DEFINE_THREAD_END] = read_thread_end,
	[SS_DEFINE_MODULE_END] = read_module_end,
	[SS_DEFINE_THREAD_NAME] = read_thread_name,
	[SS_DEFINE_PROCESS_END] = read_process_end,
	[SS_DEFINE_WAIT] = ss_waits_read,
	[SS_DEFINE_PROBE] = read_probe,
	[SS_DEFINE_TRACE] = read_trace,
	[SS_DEFINE_TASK_COVERAGE] = task_coverage_read,
	[SS_DEFINE_TASK] = task_read,
};

/* Equal records take almost no space in a file. */
static bool count_record(struct ss_recording *recording)
{
	return ++recording->records_read <=
	       SS_RECORDS + SS_RECORDS_PER_BYTE * recording->info.size;
}

bool ss_definitions_read(struct ss_recording *recording, struct ss_scope *scope,
			 struct ss_cursor *cursor)
{
	while (cursor->at < cursor->end) {
		if (!count_record(recording))
			return ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
		uint64_t kind = ss_cursor_uleb128(cursor);
		uint64_t size = ss_cursor_uleb128(cursor);
		const uint8_t *payload = ss_cursor_take(cursor, size);
		if (!payload)
			return false;
		struct ss_cursor c = { .at = payload, .end = payload + size };
		/* Unknown kinds and additional fields come from a newer version. */
		if (kind < SS_ARRAY_SIZE(readers) && readers[kind] &&
		    !readers[kind](recording, scope, &c))
			return false;
	}
	return !cursor->failed;
}

/*
 * The accessors of an open recording: its tables, its samples in order, and the frames of
 * its places, with names once it is symbolized.
 */

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
	return complete_stacks(recording) && complete_perf_maps(recording) ?
		       NULL :
		       ss_error_no_memory();
}
