#include "data/recording_writer.h"

#include <string.h>

#include "data/recording.h"
#include "stacksnap/trace.h"

/* Keys of id tables: no padding. */
struct ss_frame_key {
	uint64_t value;
	uint32_t module; /* handle */
	uint32_t flags;
	uint32_t area;	  /* string, or 0 */
	uint32_t process; /* handle, without a module */
	/* Of the call of a runtime; function and file are strings, or 0 */
	uint32_t kind;
	uint32_t function;
	uint32_t file;
	uint32_t line;
};

/* Followed by the fields of a wait, if it is known. */
struct ss_call_key {
	int64_t number;
	uint64_t argument;
};

/* The key of a stack is an array of 32-bit numbers. */
enum { SS_KEY_END, SS_KEY_REASON, SS_KEY_FRAMES };

/* Limit after which records are written even within a tick or a new segment: many long
   paths or deep stacks would exceed the maximum size of a chunk. */
enum { OUT_LARGE = 8 << 20 };

static void list_deinit(struct ss_defined_list *list)
{
	for (size_t i = 0; i < list->items.count; i++)
		free(list->items.items[i].record);
	ss_vector_free(&list->items);
	ss_vector_free(&list->unused);
}

void ss_definer_deinit(struct ss_definer *definer)
{
	list_deinit(&definer->processes);
	list_deinit(&definer->threads);
	list_deinit(&definer->modules);
	ss_vector_free(&definer->ended_threads);
	ss_idtable_deinit(&definer->module_ids);
	ss_idtable_deinit(&definer->strings);
	ss_idtable_deinit(&definer->frames);
	ss_idtable_deinit(&definer->stacks);
	ss_idtable_deinit(&definer->calls);
	ss_buffer_deinit(&definer->out);
	ss_buffer_deinit(&definer->payload);
	ss_buffer_deinit(&definer->key);
	ss_buffer_deinit(&definer->last);
}

/* Ends the current record. */
static void put_record(struct ss_definer *definer, enum ss_definition kind)
{
	struct ss_buffer *payload = &definer->payload;

	definer->out.failed |= payload->failed;
	ss_encode_uleb128(&definer->out, kind);
	ss_encode_uleb128(&definer->out, payload->size);
	ss_buffer_add(&definer->out, payload->bytes, payload->size);
	payload->size = 0;
	if (definer->out.size >= OUT_LARGE)
		definer->full(definer->full_data);
}

/* The number of a string. */
static uint32_t define_bytes(struct ss_definer *definer, const char *text, size_t size)
{
	bool added = false;
	uint32_t id = ss_idtable_add(&definer->strings, text, size, &added);

	if (id == SS_ID_NONE) {
		definer->out.failed = true;
		return 0;
	}
	if (added) {
		/* payload may contain the record that refers to the string. */
		ss_encode_uleb128(&definer->out, SS_DEFINE_STRING);
		ss_encode_uleb128(&definer->out, size);
		ss_buffer_add(&definer->out, text, size);
	}
	return id + 1;
}

/* The same; NULL: 0. */
static uint32_t define_string(struct ss_definer *definer, const char *text)
{
	return text ? define_bytes(definer, text, strlen(text)) : 0;
}

static struct ss_defined_list *list_of(struct ss_definer *definer,
				       enum ss_definition kind)
{
	if (kind == SS_DEFINE_PROCESS || kind == SS_DEFINE_PROCESS_END)
		return &definer->processes;
	if (kind == SS_DEFINE_THREAD || kind == SS_DEFINE_THREAD_END)
		return &definer->threads;
	return &definer->modules;
}

static uint64_t text_number(void *data, const char *text)
{
	return define_string(data, text);
}

/* A record with fields; struct members that are handles are numbers of the segment here. */
static void put_fields(struct ss_definer *definer, enum ss_definition kind,
		       const void *record)
{
	const struct ss_schema_writer writer = { .out = &definer->payload,
						 .text = text_number,
						 .data = definer };

	ss_schema_write(&writer, &ss_record_schemas[kind], record);
	put_record(definer, kind);
}

/* The number of a process in the segment. */
static uint32_t local_process(const struct ss_definer *definer, uint32_t process)
{
	return definer->processes.items.items[process].local;
}

/* Defines an object that has a handle, with the next number of its kind. */
static void definer_put(struct ss_definer *definer, enum ss_definition kind,
			struct ss_defined *d)
{
	d->local = list_of(definer, kind)->next_local++;
	if (kind == SS_DEFINE_THREAD)
		((struct ss_recorded_thread *)d->record)->process =
			local_process(definer, d->process);
	else if (kind == SS_DEFINE_MODULE)
		((struct ss_module_record *)d->record)->process =
			local_process(definer, d->process);
	put_fields(definer, kind, d->record);
}

static void put_end(struct ss_definer *definer, enum ss_definition kind,
		    const struct ss_defined *d)
{
	ss_encode_uleb128(&definer->payload, d->local);
	ss_encode_uleb128(&definer->payload, d->end_ns);
	put_record(definer, kind);
}

/* A slot for a new handle, or NULL. */
static struct ss_defined *new_slot(struct ss_defined_list *list, uint32_t *ret)
{
	if (list->unused.count > 0) {
		*ret = list->unused.items[--list->unused.count];
		return &list->items.items[*ret];
	}
	*ret = (uint32_t)list->items.count;
	return list->items.count < SS_ID_NONE ? ss_vector_push(&list->items) : NULL;
}

/* The handle of a new object. process is the handle of its process. SS_ID_NONE without memory. */
static uint32_t add(struct ss_writer *writer, enum ss_definition kind, uint32_t process,
		    const void *record)
{
	struct ss_definer *definer = &writer->definer;
	uint32_t handle = 0;
	void *copy = ss_schema_copy(&ss_record_schemas[kind], record, NULL, NULL, NULL);
	struct ss_defined *d = copy ? new_slot(list_of(definer, kind), &handle) : NULL;

	if (!d) {
		free(copy);
		definer->out.failed = true;
		return SS_ID_NONE;
	}
	*d = (struct ss_defined){ .state = SS_DEFINED_LIVE,
				  .process = process,
				  .record = copy };
	definer->defined_threads += kind == SS_DEFINE_THREAD;
	definer_put(definer, kind, d);
	return handle;
}

uint32_t ss_writer_add_process(struct ss_writer *writer, pid_t pid, uint64_t start_time,
			       const char *name, const char *executable,
			       uint64_t begin_ns)
{
	const struct ss_recorded_process process = { .pid = pid,
						     .name = name,
						     .executable = executable,
						     .begin_ns = begin_ns,
						     .start_time = start_time };

	return add(writer, SS_DEFINE_PROCESS, SS_ID_NONE, &process);
}

uint32_t ss_writer_add_thread(struct ss_writer *writer, uint32_t process, pid_t tid,
			      const char *name, uint64_t begin_ns)
{
	const struct ss_recorded_thread thread = { .tid = tid,
						   .name = name,
						   .begin_ns = begin_ns };

	return add(writer, SS_DEFINE_THREAD, process, &thread);
}

uint32_t ss_writer_add_module(struct ss_writer *writer, uint32_t process,
			      const struct ss_module *module, uint64_t bias,
			      uint64_t begin_ns)
{
	struct ss_module_record record = { .module = *module,
					   .bias = bias,
					   .begin_ns = begin_ns };

	if (module->build_id || !module->file.hash)
		record.module.file = (struct ss_file_identity){};
	return add(writer, SS_DEFINE_MODULE, process, &record);
}

uint32_t ss_writer_find_module(struct ss_writer *writer, uint32_t process,
			       const struct ss_module *module, uint64_t bias,
			       uint64_t begin_ns)
{
	struct ss_definer *definer = &writer->definer;
	const struct ss_module_record record = { .process = process, .module = *module };
	const struct ss_schema_writer key = { .out = &definer->key };
	bool added = false;

	ss_buffer_clear(&definer->key);
	ss_schema_write(&key, &ss_record_schemas[SS_DEFINE_MODULE], &record);
	uint32_t id = definer->key.failed ?
			      SS_ID_NONE :
			      ss_idtable_add(&definer->module_ids, definer->key.bytes,
					     definer->key.size, &added);
	return added ? ss_writer_add_module(writer, process, module, bias, begin_ns) : id;
}

/* Drops an object: its handle is used again. False: no memory. */
static bool defined_list_forget(struct ss_defined_list *list, uint32_t handle)
{
	struct ss_defined *d = &list->items.items[handle];
	uint32_t *slot = ss_vector_push(&list->unused);

	free(d->record);
	*d = (struct ss_defined){};
	if (slot)
		*slot = handle;
	return slot != NULL;
}

static void end(struct ss_definer *definer, enum ss_definition kind, uint32_t handle,
		uint64_t time_ns)
{
	struct ss_defined *d = &list_of(definer, kind)->items.items[handle];

	d->state = SS_DEFINED_ENDED;
	d->end_ns = time_ns;
	put_end(definer, kind, d);
}

void ss_writer_end_thread(struct ss_writer *writer, uint32_t thread, uint64_t time_ns)
{
	struct ss_definer *definer = &writer->definer;
	uint32_t *slot = ss_vector_push(&definer->ended_threads);

	end(definer, SS_DEFINE_THREAD_END, thread, time_ns);
	definer->out.failed |= !slot;
	if (slot)
		*slot = thread;
}

void ss_writer_end_module(struct ss_writer *writer, uint32_t module, uint64_t time_ns)
{
	end(&writer->definer, SS_DEFINE_MODULE_END, module, time_ns);
}

void ss_writer_end_process(struct ss_writer *writer, uint32_t process, uint64_t time_ns)
{
	end(&writer->definer, SS_DEFINE_PROCESS_END, process, time_ns);
}

bool ss_definer_forget_threads(struct ss_definer *definer)
{
	bool ok = true;

	for (size_t i = 0; i < definer->ended_threads.count; i++)
		ok &= defined_list_forget(&definer->threads,
					  definer->ended_threads.items[i]);
	definer->ended_threads.count = 0;
	return ok;
}

void ss_writer_name_thread(struct ss_writer *writer, uint32_t thread, const char *name,
			   uint64_t time_ns)
{
	struct ss_definer *definer = &writer->definer;
	struct ss_defined *d = &definer->threads.items.items[thread];
	struct ss_recorded_thread renamed = *(const struct ss_recorded_thread *)d->record;

	if (renamed.name && strcmp(renamed.name, name) == 0)
		return;
	renamed.name = name;
	void *copy = ss_schema_copy(&ss_record_schemas[SS_DEFINE_THREAD], &renamed, NULL,
				    NULL, NULL);
	if (!copy) {
		definer->out.failed = true;
		return;
	}
	free(d->record);
	d->record = copy;
	uint32_t id = define_string(definer, ((struct ss_recorded_thread *)copy)->name);
	ss_encode_uleb128(&definer->payload, d->local);
	ss_encode_uleb128(&definer->payload, time_ns);
	ss_encode_uleb128(&definer->payload, id);
	put_record(definer, SS_DEFINE_THREAD_NAME);
}

static uint32_t define_frame(struct ss_definer *definer, const struct ss_frame_key *key)
{
	bool added = false;
	uint32_t id = ss_idtable_add(&definer->frames, key, sizeof(*key), &added);

	if (!added)
		return id;
	bool placed = key->module != SS_ID_NONE;
	bool call = key->kind != SS_FRAME_NATIVE;
	ss_encode_uleb128(&definer->payload,
			  placed ? definer->modules.items.items[key->module].local + 1 :
				   0);
	ss_encode_uleb128(&definer->payload, key->value);
	ss_encode_uleb128(&definer->payload, key->flags);
	if (call) {
		ss_encode_uleb128(&definer->payload, key->kind);
		ss_encode_uleb128(&definer->payload, key->function);
		ss_encode_uleb128(&definer->payload, key->file);
		ss_encode_uleb128(&definer->payload, key->line);
	} else if (!placed) {
		const struct ss_defined *processes = definer->processes.items.items;
		ss_encode_uleb128(&definer->payload, key->area);
		ss_encode_uleb128(&definer->payload, processes[key->process].local);
	}
	put_record(definer, SS_DEFINE_FRAME);
	return id;
}

static uint32_t word(const struct ss_buffer *key, size_t index)
{
	uint32_t value;

	memcpy(&value, key->bytes + index * sizeof(value), sizeof(value));
	return value;
}

static size_t word_count(const struct ss_buffer *key)
{
	return key->size / sizeof(uint32_t);
}

/* How many outermost frames are the same as in the last stack. */
static size_t count_shared(const struct ss_buffer *key, const struct ss_buffer *last)
{
	size_t a = word_count(key);
	size_t b = word_count(last);
	size_t shared = 0;

	while (a > SS_KEY_FRAMES && b > SS_KEY_FRAMES &&
	       word(key, --a) == word(last, --b))
		shared++;
	return shared;
}

/* Writes outermost frames first: successive stacks share most of them. */
static void put_stack(struct ss_definer *definer)
{
	const struct ss_buffer *key = &definer->key;
	size_t shared = count_shared(key, &definer->last);
	size_t left = word_count(key) - shared;

	ss_encode_uleb128(&definer->payload, word(key, SS_KEY_END));
	ss_encode_uleb128(&definer->payload, word(key, SS_KEY_REASON));
	ss_encode_uleb128(&definer->payload, shared);
	ss_encode_uleb128(&definer->payload, left - SS_KEY_FRAMES);
	while (left > SS_KEY_FRAMES)
		ss_encode_uleb128(&definer->payload, word(key, --left));
	put_record(definer, SS_DEFINE_STACK);
	definer->defined_stacks++;
	definer->last.size = 0;
	ss_buffer_add(&definer->last, key->bytes, key->size);
	definer->last.failed = false; /* the next stack must share no frames */
}

/* The number of the stack with the current key. */
static uint32_t define_key(struct ss_definer *definer)
{
	bool added = false;
	uint32_t id = definer->key.failed ?
			      SS_ID_NONE :
			      ss_idtable_add(&definer->stacks, definer->key.bytes,
					     definer->key.size, &added);

	if (added)
		put_stack(definer);
	definer->out.failed |= id == SS_ID_NONE;
	return id;
}

static void begin_key(struct ss_definer *definer, uint32_t end, uint32_t reason)
{
	definer->key.size = 0;
	ss_buffer_add(&definer->key, &end, sizeof(end));
	ss_buffer_add(&definer->key, &reason, sizeof(reason));
}

static void add_to_key(struct ss_definer *definer, uint32_t frame)
{
	definer->key.failed |= frame == SS_ID_NONE;
	ss_buffer_add(&definer->key, &frame, sizeof(frame));
}

static struct ss_frame_key key_of(struct ss_definer *definer,
				  const struct ss_frame_record *frame)
{
	bool call = frame->kind != SS_FRAME_NATIVE;
	bool placed = frame->module != SS_ID_NONE;
	struct ss_frame_key key = { .module = SS_ID_NONE, .flags = frame->flags };

	if (call) {
		key.kind = frame->kind;
		key.function = define_string(definer, frame->function);
		key.file = define_string(definer, frame->file);
		key.line = frame->line;
		return key;
	}
	key.value = frame->value;
	key.module = frame->module;
	if (!placed) {
		key.area = define_string(definer, frame->area);
		key.process = frame->process;
	}
	return key;
}

static uint32_t define_stack(struct ss_definer *definer,
			     const struct ss_frame_record *frames, size_t count,
			     enum ss_end end, const char *reason)
{
	if (count > SS_RECORD_FRAMES_MAX) {
		count = SS_RECORD_FRAMES_MAX;
		end = SS_END_FRAMES;
	}
	begin_key(definer, (uint32_t)end, define_string(definer, reason));
	for (size_t i = 0; i < count; i++) {
		const struct ss_frame_key key = key_of(definer, &frames[i]);
		add_to_key(definer, define_frame(definer, &key));
	}
	return define_key(definer);
}

uint32_t ss_writer_stack(struct ss_writer *writer, const struct ss_frame_record *frames,
			 size_t count, enum ss_end end, const char *reason)
{
	return define_stack(&writer->definer, frames, count, end, reason);
}

/* The number of the call with that key, which may be of an earlier segment. */
static uint32_t definer_carry_call(struct ss_definer *definer, const void *key,
				   size_t size)
{
	struct ss_call_key call;
	bool added = false;
	uint32_t id = ss_idtable_add(&definer->calls, key, size, &added);

	definer->out.failed |= id == SS_ID_NONE;
	if (added) {
		memcpy(&call, key, sizeof(call));
		ss_encode_zigzag(&definer->payload, call.number);
		ss_encode_uleb128(&definer->payload, call.argument);
		ss_buffer_add(&definer->payload, (const char *)key + sizeof(call),
			      size - sizeof(call));
		put_record(definer, SS_DEFINE_CALL);
	}
	return id;
}

uint32_t ss_writer_call(struct ss_writer *writer, long number, uint64_t argument,
			const struct ss_wait *wait)
{
	struct ss_definer *definer = &writer->definer;
	const struct ss_call_key call = { .number = number, .argument = argument };
	struct ss_buffer *key = &definer->key;

	ss_buffer_clear(key);
	ss_buffer_add(key, &call, sizeof(call));
	if (wait)
		ss_wait_record_write(key, wait);
	definer->out.failed |= key->failed;
	return key->failed ? SS_ID_NONE :
			     definer_carry_call(definer, key->bytes, key->size);
}

/* The number of a thread in the segment; none: SS_ID_NONE. */
static uint32_t local_thread(const struct ss_definer *definer, uint32_t thread)
{
	return thread == SS_ID_NONE ? SS_ID_NONE :
				      definer->threads.items.items[thread].local;
}

void ss_writer_wait(struct ss_writer *writer, const struct ss_recorded_wait *wait)
{
	struct ss_definer *definer = &writer->definer;

	ss_encode_uleb128(&definer->payload, local_thread(definer, wait->thread));
	ss_encode_uleb128(&definer->payload, local_thread(definer, wait->owner) + 1);
	ss_encode_uleb128(&definer->payload, wait->in_cycle ? SS_WAIT_IN_CYCLE : 0);
	ss_wait_record_write(&definer->payload, &wait->wait);
	put_record(definer, SS_DEFINE_WAIT);
}

void ss_writer_coverage(struct ss_writer *writer,
			const struct ss_recorded_coverage *coverage)
{
	struct ss_recorded_coverage record = *coverage;

	record.process = local_process(&writer->definer, coverage->process);
	put_fields(&writer->definer, SS_DEFINE_TASK_COVERAGE, &record);
}

void ss_writer_task(struct ss_writer *writer, const struct ss_recorded_task *task)
{
	struct ss_recorded_task record = *task;

	record.process = local_process(&writer->definer, task->process);
	record.thread = local_thread(&writer->definer, task->thread);
	record.kind = task->task.kind;
	if (!*record.task.name)
		record.task.name = NULL;
	put_fields(&writer->definer, SS_DEFINE_TASK, &record);
}

uint32_t ss_writer_probe(struct ss_writer *writer, const struct ss_recorded_probe *probe)
{
	struct ss_definer *definer = &writer->definer;
	struct ss_recorded_probe record = *probe;

	if (probe->module != SS_ID_NONE)
		record.module = definer->modules.items.items[probe->module].local;
	put_fields(definer, SS_DEFINE_PROBE, &record);
	return definer->next_probe++;
}

void ss_writer_trace(struct ss_writer *writer, const struct ss_trace_summary *summary)
{
	put_fields(&writer->definer, SS_DEFINE_TRACE, summary);
}

size_t ss_definer_memory(const struct ss_definer *definer)
{
	return ss_idtable_memory(&definer->strings) +
	       ss_idtable_memory(&definer->frames) + ss_idtable_memory(&definer->stacks) +
	       ss_idtable_memory(&definer->calls) +
	       (definer->threads.items.count + definer->modules.items.count) *
		       sizeof(struct ss_defined);
}

/*
 * Begins a new segment of a recording. Objects that still exist are defined again with
 * new numbers; the rest is dropped. This bounds the memory of a recorder and allows old
 * segments to be dropped from the file.
 */

/* The tables of the previous segment. */
struct old {
	struct ss_idtable strings;
	struct ss_idtable frames;
	struct ss_idtable stacks;
	struct ss_idtable calls;
};

static void old_deinit(struct old *old)
{
	ss_idtable_deinit(&old->strings);
	ss_idtable_deinit(&old->frames);
	ss_idtable_deinit(&old->stacks);
	ss_idtable_deinit(&old->calls);
}

static struct old take_tables(struct ss_definer *definer)
{
	struct old old = { .strings = definer->strings,
			   .frames = definer->frames,
			   .stacks = definer->stacks,
			   .calls = definer->calls };

	definer->strings = (struct ss_idtable){ .hash = old.strings.hash };
	definer->frames = (struct ss_idtable){ .hash = old.frames.hash };
	definer->stacks = (struct ss_idtable){ .hash = old.stacks.hash };
	definer->calls = (struct ss_idtable){ .hash = old.calls.hash };
	definer->last.size = 0;
	definer->next_probe = 0;
	return old;
}

static struct ss_frame_key old_frame(const struct old *old, uint32_t id)
{
	struct ss_frame_key key;

	memcpy(&key, ss_idtable_key(&old->frames, id, NULL), sizeof(key));
	return key;
}

/* Marks what has ended but is still on a stack. */
static void mark_needed(struct ss_definer *definer, const struct old *old,
			const struct ss_sample_record *samples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t size = 0;
		const uint32_t *words =
			ss_idtable_key(&old->stacks, samples[i].stack, &size);
		for (size_t w = SS_KEY_FRAMES; w < size / sizeof(*words); w++) {
			const struct ss_frame_key frame = old_frame(old, words[w]);
			if (frame.kind != SS_FRAME_NATIVE)
				continue;
			if (frame.module != SS_ID_NONE)
				definer->modules.items.items[frame.module].needed = true;
			else
				definer->processes.items.items[frame.process].needed =
					true;
		}
	}
}

static bool renew_list(struct ss_definer *definer, struct ss_defined_list *list,
		       enum ss_definition kind, enum ss_definition end_kind)
{
	list->next_local = 0;
	for (uint32_t i = 0; i < list->items.count; i++) {
		struct ss_defined *d = &list->items.items[i];
		bool ended = d->state == SS_DEFINED_ENDED;
		if (d->state == SS_DEFINED_FREE)
			continue;
		if (ended && !d->needed) {
			if (!defined_list_forget(list, i))
				return false;
			continue;
		}
		d->needed = false;
		definer_put(definer, kind, d);
		if (ended)
			put_end(definer, end_kind, d);
	}
	return true;
}

/* Defines a string of the old tables again. */
static uint32_t carry_string(struct ss_definer *definer, const struct old *old,
			     uint32_t number)
{
	size_t size = 0;
	const char *text = number ? ss_idtable_key(&old->strings, number - 1, &size) :
				    NULL;

	return text ? define_bytes(definer, text, size) : 0;
}

static uint32_t carry_frame(struct ss_definer *definer, const struct old *old,
			    uint32_t id)
{
	struct ss_frame_key key = old_frame(old, id);

	key.area = carry_string(definer, old, key.area);
	key.function = carry_string(definer, old, key.function);
	key.file = carry_string(definer, old, key.file);
	return define_frame(definer, &key);
}

static uint32_t carry_stack(struct ss_definer *definer, const struct old *old,
			    uint32_t id)
{
	size_t size = 0;
	const uint32_t *words = ss_idtable_key(&old->stacks, id, &size);

	begin_key(definer, words[SS_KEY_END],
		  carry_string(definer, old, words[SS_KEY_REASON]));
	for (size_t i = SS_KEY_FRAMES; i < size / sizeof(*words); i++)
		add_to_key(definer, carry_frame(definer, old, words[i]));
	return define_key(definer);
}

static bool carry(struct ss_definer *definer, const struct old *old,
		  struct ss_sample_record *samples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ss_sample_record *s = &samples[i];
		s->stack = carry_stack(definer, old, s->stack);
		if (s->call == SS_ID_NONE)
			continue;
		size_t size = 0;
		const void *call = ss_idtable_key(&old->calls, s->call, &size);
		s->call = definer_carry_call(definer, call, size);
	}
	return !definer->out.failed;
}

/* Marks processes that have ended and still have threads or modules. */
static void mark_processes(struct ss_definer *definer)
{
	const struct ss_defined_list *lists[] = { &definer->threads, &definer->modules };

	for (size_t l = 0; l < SS_ARRAY_SIZE(lists); l++) {
		for (size_t i = 0; i < lists[l]->items.count; i++) {
			const struct ss_defined *d = &lists[l]->items.items[i];
			if (d->state == SS_DEFINED_LIVE || d->needed)
				definer->processes.items.items[d->process].needed = true;
		}
	}
}

bool ss_definer_renew(struct ss_definer *definer, struct ss_sample_record *samples,
		      size_t count)
{
	_cleanup_(old_deinit) struct old old = take_tables(definer);

	mark_needed(definer, &old, samples, count);
	mark_processes(definer);
	return renew_list(definer, &definer->processes, SS_DEFINE_PROCESS,
			  SS_DEFINE_PROCESS_END) &&
	       renew_list(definer, &definer->threads, SS_DEFINE_THREAD,
			  SS_DEFINE_THREAD_END) &&
	       renew_list(definer, &definer->modules, SS_DEFINE_MODULE,
			  SS_DEFINE_MODULE_END) &&
	       carry(definer, &old, samples, count);
}
