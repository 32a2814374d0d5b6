/*
 * Reads the definitions of a segment and maps their numbers to numbers of the whole
 * recording. Each segment defines everything it refers to.
 */
#include <string.h>

#include "recording/format.h"
#include "recording/recording.h"

static const char *text_of(const struct ss_recording *recording, uint32_t number)
{
	return number ? recording->texts.items[number - 1] : NULL;
}

uint32_t ss_recording_text(struct ss_recording *recording, const uint8_t *bytes,
			   size_t size)
{
	bool added = false;

	if (!bytes || memchr(bytes, '\0', size))
		return 0;
	if (size > SS_FORMAT_TEXT_MAX ||
	    recording->text_ids.byte_count + size > SS_STRINGS_MAX) {
		(void)ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
		return 0;
	}
	uint32_t id = ss_recording_number(recording, &recording->text_ids, bytes, size,
					  SS_ID_NONE, &added);
	if (id == SS_ID_NONE || !added)
		return id == SS_ID_NONE ? 0 : id + 1;
	const char **slot = ss_vector_push(&recording->texts);
	const char *text =
		slot ? ss_intern_bytes(recording->strings, (const char *)bytes, size) :
		       NULL;
	if (!text) {
		(void)ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
		return 0;
	}
	*slot = text;
	return id + 1;
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
	struct {
		uint64_t pid;
		uint64_t start_time;
		uint64_t begin_ns;
	} key = { .pid = ss_cursor_index(c, INT32_MAX) };
	key.start_time = ss_cursor_uleb128(c);
	uint32_t name = ss_scope_read_text(scope, c);
	uint32_t executable = ss_scope_read_text(scope, c);
	key.begin_ns = ss_cursor_uleb128(c);
	bool added = false;
	if (c->failed)
		return false;
	uint32_t id = ss_recording_number(recording, &recording->process_ids, &key,
					  sizeof(key), SS_PROCESSES_MAX, &added);
	struct ss_recorded_process *process =
		added ? ss_vector_push(&recording->processes) : NULL;
	if (added && !process)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	if (process)
		*process = (struct ss_recorded_process){
			.pid = (pid_t)key.pid,
			.name = name ? text_of(recording, name) : "",
			.executable = text_of(recording, executable),
			.begin_ns = key.begin_ns,
		};
	return ss_locals_add(recording, &scope->processes, &scope->locals, id);
}

static bool read_thread(struct ss_recording *recording, struct ss_scope *scope,
			struct ss_cursor *c)
{
	struct {
		uint64_t begin_ns;
		uint32_t process;
		uint32_t tid;
	} key = { .process = ss_locals_read(&scope->processes, c) };
	key.tid = ss_cursor_index(c, INT32_MAX);
	uint32_t name = ss_scope_read_text(scope, c);
	key.begin_ns = ss_cursor_uleb128(c);
	bool added = false;
	if (c->failed)
		return false;
	uint32_t id = ss_recording_number(recording, &recording->thread_ids, &key,
					  sizeof(key), SS_THREADS_MAX, &added);
	if (id == SS_ID_NONE)
		return false;
	if (added && !ss_vector_push(&recording->threads))
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	struct ss_recorded_thread *thread = &recording->threads.items[id];
	thread->process = key.process;
	thread->tid = (pid_t)key.tid;
	thread->begin_ns = key.begin_ns;
	thread->name = name ? text_of(recording, name) : "";
	return ss_locals_add(recording, &scope->segment->threads, &recording->locals, id);
}

/* A module without a file. */
struct module_fields {
	uint64_t base;
	uint64_t size;
	uint64_t bias;
	uint64_t begin_ns;
	uint32_t process;
	uint32_t path;
	uint32_t build_id;
	uint32_t zero;
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes of an even number of hexadecimal digits, at most capacity bytes. */
static bool read_hex(const char *text, uint8_t *ret, size_t capacity, size_t *ret_size)
{
	size_t size = strlen(text);

	if (size % 2 || size / 2 > capacity)
		return false;
	for (size_t i = 0; i < size / 2; i++) {
		int high = hex_digit(text[2 * i]);
		int low = hex_digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	*ret_size = size / 2;
	return true;
}

/* False: it is corrupted, or there is no memory. */
static bool set_build_id(struct ss_module_impl *module, const char *text)
{
	uint8_t id[SS_BUILD_ID_MAX];
	size_t size = 0;

	if (!text || !*text)
		return true;
	return read_hex(text, id, sizeof(id), &size) &&
	       ss_module_set_build_id(module, id, size);
}

/* Fields that do not distinguish modules. */
struct module_details {
	uint64_t flags;
	uint32_t problem;
	uint32_t hash; /* of file; 0: it was not identified */
	struct ss_file_identity file;
};

static bool set_file(struct ss_module_impl *module, const char *text,
		     const struct ss_file_identity *file)
{
	uint8_t hash[SS_FILE_HASH_SIZE];
	size_t size = 0;

	if (!text || module->build_id_size)
		return true;
	if (!read_hex(text, hash, sizeof(hash), &size) || size != sizeof(hash))
		return false;
	ss_module_set_file(module, file, hash);
	return true;
}

static bool add_module(struct ss_recording *recording, const struct module_fields *fields,
		       const struct module_details *details)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new(fields->path ? text_of(recording, fields->path) : "",
			      fields->base, fields->base + fields->size);

	if (!module)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	if (!set_build_id(module, text_of(recording, fields->build_id)))
		return false;
	if (!set_file(module, text_of(recording, details->hash), &details->file))
		return false;
	module->pub.deleted = details->flags & SS_MODULE_DELETED;
	/* The recorder's problem explains why the file cannot be looked for. Otherwise this
	   reader has its own, or none. */
	if (details->problem && !module->build_id_size && !module->pub.file.hash)
		ss_module_set_problem(module, "%s", text_of(recording, details->problem));
	struct ss_recorded_module *recorded = ss_vector_push(&recording->modules);
	struct ss_module_impl **slot =
		recorded ? ss_vector_push(&recording->places->modules) : NULL;
	if (!slot)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	*recorded = (struct ss_recorded_module){ .process = fields->process,
						 .module = &module->pub,
						 .bias = fields->bias,
						 .begin_ns = fields->begin_ns };
	*slot = take_ptr(module);
	return true;
}

static bool read_module(struct ss_recording *recording, struct ss_scope *scope,
			struct ss_cursor *c)
{
	struct module_fields key = { .process = ss_locals_read(&scope->processes, c) };
	struct module_details details = {};
	bool added = false;

	key.path = ss_scope_read_text(scope, c);
	key.build_id = ss_scope_read_text(scope, c);
	key.base = ss_cursor_uleb128(c);
	key.size = ss_cursor_uleb128(c);
	key.bias = ss_cursor_uleb128(c);
	key.begin_ns = ss_cursor_uleb128(c);
	details.flags = ss_cursor_uleb128(c);
	details.problem = ss_scope_read_text(scope, c);
	if (!c->failed && c->at < c->end) { /* there is no build-id */
		details.file.size = ss_cursor_uleb128(c);
		details.file.modified_ns = ss_cursor_uleb128(c);
		details.file.inode = ss_cursor_uleb128(c);
		details.hash = ss_scope_read_text(scope, c);
	}
	if (c->failed || key.size > UINT64_MAX - key.base)
		return false;
	uint32_t id = ss_recording_number(recording, &recording->module_ids, &key,
					  sizeof(key), SS_MODULES_MAX, &added);
	if (added && !add_module(recording, &key, &details))
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

typedef bool definition_reader(struct ss_recording *recording, struct ss_scope *scope,
			       struct ss_cursor *c);

static definition_reader *const readers[] = {
	[SS_DEFINE_STRING] = read_string,
	[SS_DEFINE_PROCESS] = read_process,
	[SS_DEFINE_THREAD] = read_thread,
	[SS_DEFINE_MODULE] = read_module,
	[SS_DEFINE_FRAME] = ss_frame_read,
	[SS_DEFINE_STACK] = ss_stack_read,
	[SS_DEFINE_CALL] = ss_call_read,
	[SS_DEFINE_THREAD_END] = read_thread_end,
	[SS_DEFINE_MODULE_END] = read_module_end,
	[SS_DEFINE_THREAD_NAME] = read_thread_name,
	[SS_DEFINE_PROCESS_END] = read_process_end,
	[SS_DEFINE_WAIT] = ss_waits_read,
	[SS_DEFINE_PROBE] = ss_probe_read,
	[SS_DEFINE_TRACE] = ss_trace_totals_read,
	[SS_DEFINE_GOROUTINE] = ss_goroutine_read,
	[SS_DEFINE_TASKS] = ss_async_tasks_read,
	[SS_DEFINE_TASK] = ss_async_task_read,
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
