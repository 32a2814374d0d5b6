#include "data/recording_define.h"

#include <string.h>

#include "data/recording_wait_record.h"
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
	for (size_t i = 0; i < list->items.count; i++) {
		free(list->items.items[i].name);
		free(list->items.items[i].more);
		free(list->items.items[i].problem);
		free(list->items.items[i].hash);
	}
	ss_vector_free(&list->items);
	ss_vector_free(&list->unused);
}

void ss_definer_deinit(struct ss_definer *definer)
{
	list_deinit(&definer->processes);
	list_deinit(&definer->threads);
	list_deinit(&definer->modules);
	ss_vector_free(&definer->ended_threads);
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

/* The number of a string; 0: none. */
static uint32_t define_string(struct ss_definer *definer, const char *text)
{
	bool added = false;

	if (!text)
		return 0;
	uint32_t id = ss_idtable_add(&definer->strings, text, strlen(text), &added);
	if (id == SS_ID_NONE) {
		definer->out.failed = true;
		return 0;
	}
	if (added) {
		/* payload may contain the record that refers to the string. */
		ss_encode_uleb128(&definer->out, SS_DEFINE_STRING);
		ss_encode_text(&definer->out, text);
	}
	return id + 1;
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

static void put_process(struct ss_definer *definer, const struct ss_defined *d)
{
	uint32_t name = define_string(definer, d->name);
	uint32_t executable = define_string(definer, d->more);

	ss_encode_uleb128(&definer->payload, (uint64_t)d->id);
	ss_encode_uleb128(&definer->payload, d->numbers[0]);
	ss_encode_uleb128(&definer->payload, name);
	ss_encode_uleb128(&definer->payload, executable);
	ss_encode_uleb128(&definer->payload, d->begin_ns);
	put_record(definer, SS_DEFINE_PROCESS);
}

static uint32_t process_of(const struct ss_definer *definer, const struct ss_defined *d)
{
	return definer->processes.items.items[d->process].local;
}

static void put_thread(struct ss_definer *definer, const struct ss_defined *d)
{
	uint32_t name = define_string(definer, d->name);

	ss_encode_uleb128(&definer->payload, process_of(definer, d));
	ss_encode_uleb128(&definer->payload, (uint64_t)d->id);
	ss_encode_uleb128(&definer->payload, name);
	ss_encode_uleb128(&definer->payload, d->begin_ns);
	put_record(definer, SS_DEFINE_THREAD);
}

static void put_module(struct ss_definer *definer, const struct ss_defined *d)
{
	uint32_t path = define_string(definer, d->name);
	uint32_t build_id = define_string(definer, d->more);
	uint32_t problem = define_string(definer, d->problem);
	uint32_t hash = define_string(definer, d->hash);

	ss_encode_uleb128(&definer->payload, process_of(definer, d));
	ss_encode_uleb128(&definer->payload, path);
	ss_encode_uleb128(&definer->payload, build_id);
	ss_encode_uleb128(&definer->payload, d->numbers[0]);
	ss_encode_uleb128(&definer->payload, d->numbers[1]);
	ss_encode_uleb128(&definer->payload, d->numbers[2]);
	ss_encode_uleb128(&definer->payload, d->begin_ns);
	ss_encode_uleb128(&definer->payload, d->numbers[3]);
	ss_encode_uleb128(&definer->payload, problem);
	for (size_t i = 4; hash && i < SS_ARRAY_SIZE(d->numbers); i++)
		ss_encode_uleb128(&definer->payload, d->numbers[i]);
	if (hash)
		ss_encode_uleb128(&definer->payload, hash);
	put_record(definer, SS_DEFINE_MODULE);
}

/* Defines an object that has a handle, with the next number of its kind. */
static void definer_put(struct ss_definer *definer, enum ss_definition kind,
			struct ss_defined *d)
{
	d->local = list_of(definer, kind)->next_local++;
	if (kind == SS_DEFINE_PROCESS)
		put_process(definer, d);
	else if (kind == SS_DEFINE_THREAD)
		put_thread(definer, d);
	else
		put_module(definer, d);
}

static void put_end(struct ss_definer *definer, enum ss_definition kind,
		    const struct ss_defined *d)
{
	ss_encode_uleb128(&definer->payload, d->local);
	ss_encode_uleb128(&definer->payload, d->end_ns);
	put_record(definer, kind);
}

/* Copies a string, or NULL. False without memory. */
static bool copy_text(const char *text, char **ret)
{
	*ret = text ? strdup(text) : NULL;
	return *ret || !text;
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

uint32_t ss_definer_add(struct ss_definer *definer, enum ss_definition kind,
			const struct ss_defined *what,
			const struct ss_defined_texts *texts)
{
	uint32_t handle = 0;
	struct ss_defined *d = new_slot(list_of(definer, kind), &handle);

	if (!d) {
		definer->out.failed = true;
		return SS_ID_NONE;
	}
	*d = *what;
	d->state = SS_DEFINED_LIVE;
	bool copied = copy_text(texts->name, &d->name);
	copied = copy_text(texts->more, &d->more) && copied;
	copied = copy_text(texts->problem, &d->problem) && copied;
	copied = copy_text(texts->hash, &d->hash) && copied;
	definer->out.failed |= !copied;
	definer->defined_threads += kind == SS_DEFINE_THREAD;
	definer_put(definer, kind, d);
	return copied ? handle : SS_ID_NONE;
}

/* Drops an object: its handle is used again. False: no memory. */
static bool defined_list_forget(struct ss_defined_list *list, uint32_t handle)
{
	struct ss_defined *d = &list->items.items[handle];
	uint32_t *slot = ss_vector_push(&list->unused);

	free(d->name);
	free(d->more);
	free(d->problem);
	free(d->hash);
	*d = (struct ss_defined){};
	if (slot)
		*slot = handle;
	return slot != NULL;
}

void ss_definer_end(struct ss_definer *definer, enum ss_definition kind, uint32_t handle,
		    uint64_t time_ns)
{
	struct ss_defined *d = &list_of(definer, kind)->items.items[handle];

	d->state = SS_DEFINED_ENDED;
	d->end_ns = time_ns;
	put_end(definer, kind, d);
	if (kind != SS_DEFINE_THREAD_END)
		return;
	uint32_t *slot = ss_vector_push(&definer->ended_threads);
	definer->out.failed |= !slot;
	if (slot)
		*slot = handle;
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

void ss_definer_name(struct ss_definer *definer, uint32_t thread, const char *name,
		     uint64_t time_ns)
{
	struct ss_defined *d = &definer->threads.items.items[thread];
	char *copy = strdup(name);

	if (!copy) {
		definer->out.failed = true;
		return;
	}
	free(d->name);
	d->name = copy;
	uint32_t id = define_string(definer, name);
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

uint32_t ss_definer_stack(struct ss_definer *definer,
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

/* The same for a key of the calls of an earlier segment. */
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

uint32_t ss_definer_call(struct ss_definer *definer, long number, uint64_t argument,
			 const struct ss_wait *wait)
{
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

void ss_definer_wait(struct ss_definer *definer, const struct ss_written_wait *wait)
{
	const struct ss_defined *threads = definer->threads.items.items;
	uint64_t owner = 0;

	if (wait->owner != SS_ID_NONE)
		owner = (uint64_t)threads[wait->owner].local + 1;
	ss_encode_uleb128(&definer->payload, threads[wait->thread].local);
	ss_encode_uleb128(&definer->payload, owner);
	ss_encode_uleb128(&definer->payload, wait->flags);
	ss_wait_record_write(&definer->payload, wait->wait);
	put_record(definer, SS_DEFINE_WAIT);
}

static void put_numbers(struct ss_definer *definer, const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ss_encode_uleb128(&definer->payload, numbers[i]);
}

/* Its number in the segment. */
static uint64_t local_process(const struct ss_definer *definer, uint32_t process)
{
	return definer->processes.items.items[process].local;
}

/* Likewise + 1, or 0. */
static uint64_t local_thread(const struct ss_definer *definer, uint32_t thread)
{
	return thread == SS_ID_NONE ?
		       0 :
		       (uint64_t)definer->threads.items.items[thread].local + 1;
}

void ss_definer_coverage(struct ss_definer *definer,
			 const struct ss_written_coverage *written)
{
	const uint64_t numbers[] = {
		written->tick,
		local_process(definer, written->process),
		written->kind,
		written->coverage->changed,
		written->coverage->unread,
		define_string(definer, written->coverage->problem),
	};

	put_numbers(definer, numbers, SS_ARRAY_SIZE(numbers));
	put_record(definer, SS_DEFINE_TASK_COVERAGE);
}

void ss_definer_task(struct ss_definer *definer, const struct ss_written_task *written)
{
	const struct ss_task *task = written->task;
	const uint64_t numbers[] = {
		written->tick,
		local_process(definer, written->process),
		task->kind,
		(task->on_thread ? SS_TASK_ON_THREAD : 0) |
			(task->changed ? SS_TASK_CHANGED : 0) |
			(task->awaits_all ? SS_TASK_AWAITS_ALL : 0),
		task->id,
		define_string(definer, *task->name ? task->name : NULL),
		task->status,
		define_string(definer, task->wait_reason),
		task->waiting_ns,
		local_thread(definer, written->thread),
		written->stack,
		define_string(definer, task->runtime),
		task->in_cycle ? (uint64_t)task->cycle_next + 1 : 0,
		task->awaited_count,
	};

	put_numbers(definer, numbers, SS_ARRAY_SIZE(numbers));
	for (size_t i = 0; i < task->awaited_count; i++)
		ss_encode_uleb128(&definer->payload, task->awaited[i]);
	put_record(definer, SS_DEFINE_TASK);
}

uint32_t ss_definer_probe(struct ss_definer *definer,
			  const struct ss_written_probe *probe)
{
	const struct ss_defined *modules = definer->modules.items.items;
	uint32_t name = define_string(definer, probe->name);
	uint64_t module = 0;

	if (probe->module != SS_ID_NONE)
		module = (uint64_t)modules[probe->module].local + 1;
	ss_encode_uleb128(&definer->payload, module);
	ss_encode_uleb128(&definer->payload, probe->offset);
	ss_encode_uleb128(&definer->payload, name);
	ss_encode_uleb128(&definer->payload, probe->flags);
	put_record(definer, SS_DEFINE_PROBE);
	return definer->next_probe++;
}

void ss_definer_trace(struct ss_definer *definer, const struct ss_trace_summary *summary)
{
	const uint64_t numbers[] = {
		summary->hits,	  summary->read,     summary->lost,
		summary->skipped, summary->unpaired, summary->ended
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(numbers); i++)
		ss_encode_uleb128(&definer->payload, numbers[i]);
	put_record(definer, SS_DEFINE_TRACE);
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

/* Copies a string, which has no NUL in the table; or returns NULL. */
static char *old_string(const struct old *old, uint32_t id)
{
	size_t size;

	if (id == 0)
		return NULL;
	const char *text = ss_idtable_key(&old->strings, id - 1, &size);
	return strndup(text, size);
}

/* A stack of the old tables. */
struct carried {
	uint32_t end;
	char *reason;
	SS_VECTOR(struct ss_frame_record) frames;
	SS_VECTOR(char *) texts; /* to which frames point */
};

static void carried_clear(struct carried *carried)
{
	for (size_t i = 0; i < carried->texts.count; i++)
		free(carried->texts.items[i]);
	carried->texts.count = 0;
	carried->frames.count = 0;
	free(carried->reason);
	carried->reason = NULL;
}

/* Copies a string of the old tables. False without memory. */
static bool carried_text(struct carried *carried, const struct old *old, uint32_t id,
			 const char **ret)
{
	char **slot = id ? ss_vector_push(&carried->texts) : NULL;

	if (slot)
		*slot = old_string(old, id);
	*ret = slot ? *slot : NULL;
	return *ret || !id;
}

static bool carried_add(struct carried *carried, const struct old *old, uint32_t id)
{
	struct ss_frame_record *frame = ss_vector_push(&carried->frames);
	struct ss_frame_key key;
	size_t size;

	if (!frame)
		return false;
	memcpy(&key, ss_idtable_key(&old->frames, id, &size), sizeof(key));
	*frame = (struct ss_frame_record){ .module = key.module,
					   .flags = key.flags,
					   .value = key.value,
					   .process = key.process,
					   .kind = (enum ss_frame_kind)key.kind,
					   .line = key.line };
	return carried_text(carried, old, key.area, &frame->area) &&
	       carried_text(carried, old, key.function, &frame->function) &&
	       carried_text(carried, old, key.file, &frame->file);
}

static bool carried_read(struct carried *carried, const struct old *old, uint32_t id)
{
	size_t size;
	const uint32_t *key = ss_idtable_key(&old->stacks, id, &size);

	carried_clear(carried);
	carried->end = key[SS_KEY_END];
	carried->reason = old_string(old, key[SS_KEY_REASON]);
	for (size_t i = SS_KEY_FRAMES; i < size / sizeof(*key); i++) {
		if (!carried_add(carried, old, key[i]))
			return false;
	}
	return true;
}

/* Marks what has ended but is still on a stack. */
static bool mark_needed(struct ss_definer *definer, const struct old *old,
			struct carried *carried, const struct ss_sample_record *samples,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!carried_read(carried, old, samples[i].stack))
			return false;
		for (size_t f = 0; f < carried->frames.count; f++) {
			const struct ss_frame_record *frame = &carried->frames.items[f];
			if (frame->kind != SS_FRAME_NATIVE)
				continue;
			if (frame->module != SS_ID_NONE)
				definer->modules.items.items[frame->module].needed = true;
			else
				definer->processes.items.items[frame->process].needed =
					true;
		}
	}
	return true;
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
			ss_definer_end(definer, end_kind, i, d->end_ns);
	}
	return true;
}

static bool carry(struct ss_definer *definer, const struct old *old,
		  struct carried *carried, struct ss_sample_record *samples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ss_sample_record *s = &samples[i];
		if (!carried_read(carried, old, s->stack))
			return false;
		s->stack = ss_definer_stack(definer, carried->frames.items,
					    carried->frames.count,
					    (enum ss_end)carried->end, carried->reason);
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
	struct carried carried = {};
	bool ok = mark_needed(definer, &old, &carried, samples, count);

	mark_processes(definer);
	ok = ok &&
	     renew_list(definer, &definer->processes, SS_DEFINE_PROCESS,
			SS_DEFINE_PROCESS_END) &&
	     renew_list(definer, &definer->threads, SS_DEFINE_THREAD,
			SS_DEFINE_THREAD_END) &&
	     renew_list(definer, &definer->modules, SS_DEFINE_MODULE,
			SS_DEFINE_MODULE_END) &&
	     carry(definer, &old, &carried, samples, count);
	carried_clear(&carried);
	ss_vector_free(&carried.frames);
	ss_vector_free(&carried.texts);
	return ok && !definer->out.failed;
}
