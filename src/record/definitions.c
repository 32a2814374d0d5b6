/*
 * Reads the definitions of a recording's segment, and gives each thing that is defined
 * its number in the whole recording: segments repeat what goes on.
 */
#include <string.h>

#include "record/recording.h"

enum { PATH_BYTES_MAX = 1 << 16 };

void ss_scope_deinit(struct ss_scope *scope)
{
	ss_vector_free(&scope->strings.items);
	ss_vector_free(&scope->processes.items);
	ss_vector_free(&scope->modules.items);
	ss_vector_free(&scope->places.items);
	ss_bytes_free(&scope->key);
	ss_bytes_free(&scope->last);
}

static bool add_local(struct ss_recording *recording, struct ss_locals *locals,
		      uint32_t number)
{
	uint32_t *slot = number != SS_ID_NONE && recording->locals < SS_LOCALS_MAX ?
				 ss_vector_push(&locals->items) :
				 NULL;

	if (!slot)
		return false;
	recording->locals++;
	*slot = number;
	return true;
}

/* The recording's number for one of the segment's. */
static uint32_t read_local(struct ss_cursor *cursor, const struct ss_locals *locals)
{
	uint32_t local = ss_cursor_index(cursor, locals->items.count);

	return cursor->failed ? SS_ID_NONE : locals->items.items[local];
}

/* A text's number, 0 for none. */
static uint32_t read_text_number(struct ss_cursor *cursor, const struct ss_scope *scope)
{
	uint32_t local = ss_cursor_index(cursor, scope->strings.items.count + 1);

	return local && !cursor->failed ? scope->strings.items.items[local - 1] : 0;
}

static const char *text_of(const struct ss_recording *recording, uint32_t number)
{
	return number ? recording->texts.items[number - 1] : NULL;
}

uint32_t ss_recording_text(struct ss_recording *recording, const uint8_t *bytes,
			   size_t size)
{
	bool added = false;

	if (!bytes || size > PATH_BYTES_MAX || memchr(bytes, '\0', size) ||
	    recording->text_ids.key_count + size > SS_STRINGS_MAX)
		return 0;
	uint32_t id = ss_idtable_get(&recording->text_ids, bytes, size, &added);
	if (id == SS_ID_NONE || !added)
		return id == SS_ID_NONE ? 0 : id + 1;
	const char **slot = ss_vector_push(&recording->texts);
	if (!slot)
		return 0;
	*slot = ss_intern_bytes(recording->strings, (const char *)bytes, size);
	return *slot ? id + 1 : 0;
}

static bool read_string(struct ss_recording *recording, struct ss_scope *scope,
			struct ss_cursor *c)
{
	size_t size = (size_t)(c->end - c->at);
	uint32_t number = ss_recording_text(recording, ss_cursor_take(c, size), size);

	return number && add_local(recording, &scope->strings, number);
}

static bool read_process(struct ss_recording *recording, struct ss_scope *scope,
			 struct ss_cursor *c)
{
	struct {
		uint64_t pid;
		uint64_t start_time;
		uint64_t begin_ns;
	} key = { .pid = ss_cursor_index(c, INT32_MAX) };
	key.start_time = ss_cursor_number(c);
	uint32_t name = read_text_number(c, scope);
	uint32_t executable = read_text_number(c, scope);
	key.begin_ns = ss_cursor_number(c);
	bool added = false;
	uint32_t id = c->failed || recording->processes.count >= SS_PROCESSES_MAX ?
			      SS_ID_NONE :
			      ss_idtable_get(&recording->process_ids, &key, sizeof(key),
					     &added);
	struct ss_recorded_process *process =
		added ? ss_vector_push(&recording->processes) : NULL;
	if (added && !process)
		return false;
	if (process)
		*process = (struct ss_recorded_process){
			.pid = (pid_t)key.pid,
			.name = name ? text_of(recording, name) : "",
			.executable = text_of(recording, executable),
			.begin_ns = key.begin_ns,
		};
	return add_local(recording, &scope->processes, id);
}

static bool read_thread(struct ss_recording *recording, struct ss_scope *scope,
			struct ss_cursor *c)
{
	struct {
		uint64_t begin_ns;
		uint32_t process;
		uint32_t tid;
	} key = { .process = read_local(c, &scope->processes) };
	key.tid = ss_cursor_index(c, INT32_MAX);
	uint32_t name = read_text_number(c, scope);
	key.begin_ns = ss_cursor_number(c);
	bool added = false;
	uint32_t id =
		c->failed || recording->threads.count >= SS_THREADS_MAX ?
			SS_ID_NONE :
			ss_idtable_get(&recording->thread_ids, &key, sizeof(key), &added);
	if (id == SS_ID_NONE || (added && !ss_vector_push(&recording->threads)))
		return false;
	struct ss_recorded_thread *thread = &recording->threads.items[id];
	thread->process = key.process;
	thread->tid = (pid_t)key.tid;
	thread->begin_ns = key.begin_ns;
	thread->name = name ? text_of(recording, name) : "";
	return add_local(recording, &scope->segment->threads, id);
}

/* A module as it was recorded, without a reference to a file. */
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

/* False: it is none, or there is no memory. */
static bool set_build_id(struct ss_module_impl *module, const char *text)
{
	uint8_t id[SS_BUILD_ID_MAX];
	size_t size = text ? strlen(text) : 0;

	if (size == 0)
		return true;
	if (size % 2 || size / 2 > sizeof(id))
		return false;
	for (size_t i = 0; i < size / 2; i++) {
		int high = hex_digit(text[2 * i]);
		int low = hex_digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		id[i] = (uint8_t)(high << 4 | low);
	}
	return ss_module_set_build_id(module, id, size / 2);
}

static bool add_module(struct ss_recording *recording, const struct module_fields *fields,
		       uint64_t flags)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new(fields->path ? text_of(recording, fields->path) : "",
			      fields->base, fields->base + fields->size);

	if (!module || !set_build_id(module, text_of(recording, fields->build_id)))
		return false;
	module->pub.deleted = flags & SS_MODULE_DELETED;
	struct ss_recorded_module *recorded = ss_vector_push(&recording->modules);
	struct ss_module_impl **slot =
		recorded ? ss_vector_push(&recording->places->modules) : NULL;
	if (!slot)
		return false;
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
	struct module_fields key = { .process = read_local(c, &scope->processes) };
	bool added = false;

	key.path = read_text_number(c, scope);
	key.build_id = read_text_number(c, scope);
	key.base = ss_cursor_number(c);
	key.size = ss_cursor_number(c);
	key.bias = ss_cursor_number(c);
	key.begin_ns = ss_cursor_number(c);
	uint64_t flags = ss_cursor_number(c);
	uint32_t problem = read_text_number(c, scope);
	(void)problem; /* of the recorder's reading; ours is another */
	if (c->failed || key.size > UINT64_MAX - key.base ||
	    recording->modules.count >= SS_MODULES_MAX)
		return false;
	uint32_t id = ss_idtable_get(&recording->module_ids, &key, sizeof(key), &added);
	if (added && !add_module(recording, &key, flags))
		return false;
	return add_local(recording, &scope->modules, id);
}

static bool read_frame(struct ss_recording *recording, struct ss_scope *scope,
		       struct ss_cursor *c)
{
	struct ss_place_key key = { .module = SS_ID_NONE };
	uint32_t module = ss_cursor_index(c, scope->modules.items.count + 1);
	bool added = false;

	if (module && !c->failed)
		key.module = scope->modules.items.items[module - 1];
	key.value = ss_cursor_number(c);
	key.flags = ss_cursor_index(c, (SS_FROM_INLINE + 1) << SS_FRAME_SOURCE_SHIFT);
	if (!module)
		key.area = read_text_number(c, scope);
	if (!module && c->at < c->end) /* there was none once */
		key.process = read_local(c, &scope->processes) + 1;
	if (c->failed || recording->place_ids.count >= SS_PLACES_MAX)
		return false;
	return add_local(
		recording, &scope->places,
		ss_idtable_get(&recording->place_ids, &key, sizeof(key), &added));
}

static void put_word(struct ss_bytes *key, uint32_t word)
{
	ss_bytes_put(key, &word, sizeof(word));
}

/*
 * A stack as it is written: outermost first, of which the first ones are those of the
 * stack before. Its key has them innermost first, so it is put together from its end.
 */
static bool read_stack(struct ss_recording *recording, struct ss_scope *scope,
		       struct ss_cursor *c)
{
	uint32_t end = ss_cursor_index(c, 256);
	uint32_t reason = read_text_number(c, scope);
	size_t last = scope->last.count / sizeof(uint32_t);
	size_t shared = ss_cursor_index(
		c, last >= SS_STACK_PLACES ? last - SS_STACK_PLACES + 1 : 1);
	size_t count = ss_cursor_index(c, (size_t)(c->end - c->at) + 1);
	bool added = false;

	if (c->failed || shared + count > SS_RECORD_FRAMES_MAX ||
	    recording->stack_ids.key_count / sizeof(uint32_t) + shared + count >
		    SS_STACK_WORDS_MAX)
		return false;
	scope->key.count = 0;
	put_word(&scope->key, end);
	put_word(&scope->key, reason);
	for (size_t i = 0; i < count; i++)
		put_word(&scope->key, 0);
	if (shared)
		ss_bytes_put(&scope->key,
			     scope->last.items + (last - shared) * sizeof(uint32_t),
			     shared * sizeof(uint32_t));
	if (scope->key.failed)
		return false;
	for (size_t i = count; i > 0; i--) {
		uint32_t place = read_local(c, &scope->places);
		memcpy(scope->key.items + (SS_STACK_PLACES + i - 1) * sizeof(place),
		       &place, sizeof(place));
	}
	if (c->failed)
		return false;
	uint32_t id = ss_idtable_get(&recording->stack_ids, scope->key.items,
				     scope->key.count, &added);
	struct ss_bytes swapped = scope->last;
	scope->last = scope->key;
	scope->key = swapped;
	return add_local(recording, &scope->segment->stacks, id);
}

static bool read_call(struct ss_recording *recording, struct ss_scope *scope,
		      struct ss_cursor *c)
{
	struct ss_recorded_call *call = recording->locals < SS_LOCALS_MAX &&
							scope->segment->calls.count <
								SS_CALLS_MAX ?
						ss_vector_push(&scope->segment->calls) :
						NULL;

	if (!call)
		return false;
	recording->locals++;
	call->number = ss_cursor_signed(c);
	call->argument = ss_cursor_number(c);
	return !c->failed;
}

static bool read_thread_end(struct ss_recording *recording, struct ss_scope *scope,
			    struct ss_cursor *c)
{
	uint32_t thread = read_local(c, &scope->segment->threads);
	uint64_t time_ns = ss_cursor_number(c);

	if (!c->failed)
		recording->threads.items[thread].end_ns = time_ns;
	return !c->failed;
}

static bool read_module_end(struct ss_recording *recording, struct ss_scope *scope,
			    struct ss_cursor *c)
{
	uint32_t module = read_local(c, &scope->modules);
	uint64_t time_ns = ss_cursor_number(c);

	if (!c->failed)
		recording->modules.items[module].end_ns = time_ns;
	return !c->failed;
}

static bool read_process_end(struct ss_recording *recording, struct ss_scope *scope,
			     struct ss_cursor *c)
{
	uint32_t process = read_local(c, &scope->processes);
	uint64_t time_ns = ss_cursor_number(c);

	if (!c->failed)
		recording->processes.items[process].end_ns = time_ns;
	return !c->failed;
}

static bool read_thread_name(struct ss_recording *recording, struct ss_scope *scope,
			     struct ss_cursor *c)
{
	uint32_t thread = read_local(c, &scope->segment->threads);
	(void)ss_cursor_number(c); /* since when: nobody has asked so far */
	uint32_t name = read_text_number(c, scope);

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
	[SS_DEFINE_FRAME] = read_frame,
	[SS_DEFINE_STACK] = read_stack,
	[SS_DEFINE_CALL] = read_call,
	[SS_DEFINE_THREAD_END] = read_thread_end,
	[SS_DEFINE_MODULE_END] = read_module_end,
	[SS_DEFINE_THREAD_NAME] = read_thread_name,
	[SS_DEFINE_PROCESS_END] = read_process_end,
	[SS_DEFINE_WAIT] = ss_waits_read,
};

bool ss_definitions_read(struct ss_recording *recording, struct ss_scope *scope,
			 struct ss_cursor *cursor)
{
	while (cursor->at < cursor->end) {
		uint64_t kind = ss_cursor_number(cursor);
		uint64_t size = ss_cursor_number(cursor);
		const uint8_t *payload = ss_cursor_take(cursor, size);
		if (!payload)
			return false;
		struct ss_cursor c = { .at = payload, .end = payload + size };
		/* Kinds that are not known, and fields beyond ours, are newer. */
		if (kind < SS_ARRAY_SIZE(readers) && readers[kind] &&
		    !readers[kind](recording, scope, &c))
			return false;
	}
	return !cursor->failed;
}
