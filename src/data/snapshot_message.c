#include "data/snapshot_fields.h"

#include <string.h>

#include "base/bytes.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/search.h"

enum {
	OTHERS_MAX = 4096,
	MEMORY_PER_BYTE = 64, /* an empty frame takes two bytes */
	MEMORY_MIN = 1 << 20,
};

/* 5,000 threads with 300 different frames each take some 220 MiB. */
#define MEMORY_MAX ((uint64_t)4 << 30)

/* Sending ------------------------------------------------------------------ */

struct sender {
	const struct ss_snapshot *snapshot;
	struct ss_idtable numbers; /* of texts, by address: they are interned */
	struct ss_buffer texts;
	struct ss_buffer body;
	bool failed;
};

static void sender_deinit(struct sender *sender)
{
	ss_idtable_deinit(&sender->numbers);
	ss_buffer_deinit(&sender->texts);
	ss_buffer_deinit(&sender->body);
}

static uint64_t number_of_text(void *data, const char *text)
{
	struct sender *sender = data;
	const uint64_t address = (uintptr_t)text;
	bool added = false;
	uint32_t id = ss_idtable_add(&sender->numbers, &address, sizeof(address), &added);

	if (id == SS_ID_NONE)
		sender->failed = true;
	else if (added)
		ss_encode_text(&sender->texts, text);
	return id;
}

static uint64_t number_of_element(void *data, unsigned table, const void *element)
{
	const struct sender *sender = data;

	(void)table; /* there is one that pointers refer to */
	return (uint64_t)((const struct ss_descriptor *)element -
			  sender->snapshot->descriptors);
}

/* The numbers of threads that belong to the snapshots of related processes. */
static bool number_threads(const struct ss_snapshot *snapshot,
			   const struct ss_thread_ref *refs, size_t count,
			   struct ss_thread_numbers *ret)
{
	struct ss_thread_number *numbers = calloc(count + 1, sizeof(*numbers));
	const struct ss_snapshot *other;

	ret->numbers = numbers;
	for (size_t i = 0; numbers && i < count; i++) {
		size_t process = 0;
		while ((other = ss_snapshot_related(snapshot, process)) &&
		       other != refs[i].snapshot)
			process++;
		if (!other)
			break;
		numbers[ret->count++] = (struct ss_thread_number){
			.process = (uint32_t)process,
			.thread = (uint32_t)(refs[i].thread -
					     other->tasks[SS_TASK_THREAD].items),
		};
	}
	return numbers != NULL;
}

static bool number_all(const struct ss_snapshot *snapshot,
		       struct ss_snapshot_fields *fields)
{
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_wait *wait =
			snapshot->tasks[SS_TASK_THREAD].items[i].wait;
		if (!wait || wait->chain_length == 0)
			continue;
		struct ss_thread_numbers *chain = ss_vector_push(&fields->chains);
		if (!chain ||
		    !number_threads(snapshot, wait->chain, wait->chain_length, chain))
			return false;
		chain->thread = i;
	}
	for (size_t i = 0; i < snapshot->cycles.count; i++) {
		const struct ss_cycle *from = &snapshot->cycles.items[i];
		struct ss_thread_numbers *cycle = ss_vector_push(&fields->cycles);
		if (!cycle ||
		    !number_threads(snapshot, from->members, from->count, cycle))
			return false;
	}
	return true;
}

static void numbers_deinit(struct ss_snapshot_fields *fields)
{
	for (size_t i = 0; i < fields->chains.count; i++)
		free(ss_drop_const(fields->chains.items[i].numbers));
	for (size_t i = 0; i < fields->cycles.count; i++)
		free(ss_drop_const(fields->cycles.items[i].numbers));
	ss_vector_free(&fields->chains);
	ss_vector_free(&fields->cycles);
	ss_vector_free(&fields->modules);
}

#define SHARE(fields, snapshot, member)                                                  \
	do {                                                                             \
		(fields)->member.items = (snapshot)->member.items;                       \
		(fields)->member.count = (snapshot)->member.count;                       \
	} while (0)

static bool encode(struct sender *sender, struct ss_buffer *out)
{
	const struct ss_snapshot *snapshot = sender->snapshot;
	const struct ss_schema_writer writer = {
		.out = out,
		.text = number_of_text,
		.element = number_of_element,
		.data = sender,
	};
	__attribute__((cleanup(numbers_deinit))) struct ss_snapshot_fields fields = {
		.arch = snapshot->arch->name,
		.process = snapshot->process,
		.crash_regs = snapshot->crash_regs,
		.descriptors = { .items = snapshot->descriptors,
				 .count = snapshot->descriptor_count },
	};

	for (size_t i = 0; i < snapshot->modules.count; i++) {
		struct ss_module *module = ss_vector_push(&fields.modules);
		if (!module)
			return false;
		*module = snapshot->modules.items[i]->pub;
	}
	SHARE(&fields, snapshot, stacks);
	SHARE(&fields, snapshot, runtimes);
	SHARE(&fields, snapshot, deadlocks);
	SHARE(&fields, snapshot, blockers);
	SHARE(&fields, snapshot, application_locks);
	if (!snapshot->waits) {
		SHARE(&fields, snapshot, runtime_locks);
		SHARE(&fields, snapshot, references);
	}
	for (size_t i = 0; i < SS_TASK_KINDS; i++) {
		SHARE(&fields, snapshot, tasks[i]);
		fields.coverage[i] = snapshot->coverage[i];
	}
	if (!number_all(snapshot, &fields))
		return false;
	ss_schema_write(&writer, &ss_snapshot_schema, &fields);
	return !out->failed && !sender->failed;
}

static struct ss_error *send_part(int fd, const struct ss_buffer *part)
{
	int result = part->size ? ss_io_write_all(fd, part->bytes, part->size) : 0;

	return result < 0 ? ss_error_new_errno(-result, "cannot write the snapshot") :
			    NULL;
}

/* The number of texts and of snapshots, the texts, and each snapshot with its size. */
struct ss_error *ss_snapshot_send(const struct ss_snapshot *snapshot, int fd)
{
	_cleanup_(sender_deinit) struct sender sender = {};
	_cleanup_buffer_ struct ss_buffer head = {};
	size_t count = snapshot->others.count + 1;

	for (size_t i = 0; i < count; i++) {
		_cleanup_buffer_ struct ss_buffer body = {};
		sender.snapshot = ss_snapshot_related(snapshot, i);
		if (!encode(&sender, &body))
			return ss_error_no_memory();
		ss_encode_uleb128(&sender.body, body.size);
		ss_buffer_add(&sender.body, body.bytes, body.size);
	}
	ss_encode_uleb128(&head, sender.numbers.count);
	ss_encode_uleb128(&head, sender.texts.size);
	ss_encode_uleb128(&head, count);
	if (head.failed || sender.texts.failed || sender.body.failed)
		return ss_error_no_memory();
	struct ss_error *error = send_part(fd, &head);
	if (!error)
		error = send_part(fd, &sender.texts);
	if (!error)
		error = send_part(fd, &sender.body);
	return error;
}

/* Receiving ---------------------------------------------------------------- */

struct receiver {
	SS_VECTOR(const char *) texts;
	struct ss_intern *strings;   /* of the first snapshot */
	struct ss_snapshot *current; /* gets the memory */
	struct ss_snapshot_fields *fields;
	uint64_t *memory; /* that may still be allocated */
};

static void receiver_deinit(struct receiver *receiver)
{
	ss_vector_free(&receiver->texts);
}

static const char *refuse_text(void *data, const uint8_t *bytes, size_t size)
{
	(void)data;
	(void)bytes;
	(void)size;
	return NULL;
}

static const char *find_text(void *data, uint64_t number)
{
	const struct receiver *receiver = data;

	return number < receiver->texts.count ? receiver->texts.items[number] : NULL;
}

static void *allocate(void *data, size_t size, bool owned)
{
	struct receiver *receiver = data;

	if (size > *receiver->memory)
		return NULL;
	*receiver->memory -= size;
	return owned ? calloc(1, size) : ss_snapshot_alloc(receiver->current, 1, size);
}

static const void *find_element(void *data, unsigned table, uint64_t number)
{
	const struct receiver *receiver = data;

	return table == SS_TABLE_DESCRIPTORS &&
			       number < receiver->fields->descriptors.capacity ?
		       &receiver->fields->descriptors.items[number] :
		       NULL;
}

/* Of a vector that is being read: its capacity is what it will have. */
static uint64_t count_table(void *data, unsigned table)
{
	const struct ss_snapshot_fields *fields = ((const struct receiver *)data)->fields;

	switch (table) {
	case SS_TABLE_MODULES:
		return fields->modules.capacity;
	case SS_TABLE_STACKS:
		return fields->stacks.capacity;
	case SS_TABLE_THREADS:
		return fields->tasks[SS_TASK_THREAD].capacity;
	case SS_TABLE_ASYNCIO:
		return fields->tasks[SS_TASK_ASYNCIO].capacity;
	default:
		return 0;
	}
}

#define TAKE(snapshot, fields, member)                                                   \
	do {                                                                             \
		(snapshot)->member.items = (fields)->member.items;                       \
		(snapshot)->member.count = (fields)->member.count;                       \
		(snapshot)->member.capacity = (fields)->member.capacity;                 \
	} while (0)

/* Also what an invalid message has allocated. */
static void take_fields(struct ss_snapshot *snapshot,
			const struct ss_snapshot_fields *fields)
{
	TAKE(snapshot, fields, stacks);
	TAKE(snapshot, fields, runtimes);
	TAKE(snapshot, fields, deadlocks);
	TAKE(snapshot, fields, blockers);
	TAKE(snapshot, fields, application_locks);
	TAKE(snapshot, fields, runtime_locks);
	TAKE(snapshot, fields, references);
	for (size_t i = 0; i < SS_TASK_KINDS; i++) {
		TAKE(snapshot, fields, tasks[i]);
		snapshot->coverage[i] = fields->coverage[i];
		for (size_t k = 0; k < snapshot->tasks[i].count; k++)
			snapshot->tasks[i].items[k].kind = (enum ss_task_kind)i;
	}
	snapshot->descriptors = fields->descriptors.items;
	snapshot->descriptor_count = fields->descriptors.count;
	snapshot->process = fields->process;
	snapshot->crash_regs = fields->crash_regs;
}

static bool add_module(struct ss_snapshot *snapshot, const struct ss_module *from)
{
	struct ss_module_impl **slot = ss_vector_push(&snapshot->modules);
	struct ss_module_impl *module =
		slot ? ss_module_new(from->path, from->base, from->base + from->size) :
		       NULL;

	if (!module) {
		snapshot->modules.count -= slot != NULL;
		return false;
	}
	*slot = module;
	module->pub.deleted = from->deleted;
	module->pub.by_file = from->by_file;
	module->pub.file = from->file; /* its text is in strings */
	if (from->build_id)
		module->pub.build_id = module->build_id_text = strdup(from->build_id);
	if (from->problem)
		module->pub.problem = module->problem = strdup(from->problem);
	return !(from->build_id && !module->build_id_text) &&
	       !(from->problem && !module->problem);
}

static void link_frames(struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->stacks.count; i++) {
		const struct ss_stack *stack = &snapshot->stacks.items[i];
		for (size_t j = 0; j < stack->count; j++) {
			struct ss_frame *frame = &stack->frames[j];
			if (frame->module_index >= 0)
				frame->module =
					&snapshot->modules.items[frame->module_index]
						 ->pub;
		}
	}
}

/* The frames of an owner that a wait refers to; those that it does not have are dropped. */
static void check_owner_frames(const struct ss_snapshot *snapshot, struct ss_wait *wait)
{
	const struct ss_task *owner = ss_snapshot_find_thread(snapshot, wait->owner_tid);

	for (size_t i = 0; i < wait->owner_frame_count; i++) {
		if (!owner || wait->owner_frames[i].frame >= owner->frame_count)
			wait->owner_frame_count = i;
	}
}

/* What other code relies on, and tables do not say. */
static bool is_consistent(const struct ss_snapshot *snapshot)
{
	size_t tasks = 0;

	for (size_t i = 0; i < SS_TASK_KINDS; i++)
		tasks += snapshot->tasks[i].count;
	if (snapshot->stacks.count == 0 && tasks > 0)
		return false;
	for (size_t i = 0; i < snapshot->deadlocks.count; i++) {
		const struct ss_deadlock *deadlock = &snapshot->deadlocks.items[i];
		if (deadlock->count == 0)
			return false;
		for (size_t j = 0; j < deadlock->count; j++) {
			if (!snapshot->tasks[SS_TASK_THREAD]
				     .items[deadlock->threads[j]]
				     .wait)
				return false;
		}
	}
	return ss_all(snapshot->blockers.count, i,
		      snapshot->blockers.items[i].thread <
			      snapshot->tasks[SS_TASK_THREAD].count);
}

static struct ss_error *invalid(void)
{
	return ss_error_new(SS_ERROR_INVALID, "the analysis returned corrupted data");
}

static struct ss_error *decode(struct receiver *receiver, const uint8_t *bytes,
			       size_t size, struct ss_snapshot_fields *fields)
{
	struct ss_snapshot *snapshot = receiver->current;
	struct ss_schema_reader reader = {
		.cursor = { .at = bytes, .end = bytes + size },
		.text = refuse_text,
		.numbered = find_text,
		.allocate = allocate,
		.element = find_element,
		.limit = count_table,
		.data = receiver,
	};
	bool memory = true;

	receiver->fields = fields;
	ss_schema_read(&reader, &ss_snapshot_schema, fields);
	take_fields(snapshot, fields);
	snapshot->arch = fields->arch ? ss_arch_find_name(fields->arch) : NULL;
	for (size_t i = 0; !reader.cursor.failed && memory && i < fields->modules.count;
	     i++)
		memory = add_module(snapshot, &fields->modules.items[i]);
	if (!memory || !ss_snapshot_check_task_cycles(snapshot))
		return ss_error_no_memory();
	if (reader.cursor.failed || !snapshot->arch || !is_consistent(snapshot))
		return invalid();
	link_frames(snapshot);
	ss_snapshot_recount(snapshot);
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		if (snapshot->tasks[SS_TASK_THREAD].items[i].wait)
			check_owner_frames(
				snapshot,
				ss_drop_const(
					snapshot->tasks[SS_TASK_THREAD].items[i].wait));
	}
	return NULL;
}

/* The threads of related processes that numbers stand for. NULL: invalid. */
static const struct ss_thread_ref *find_threads(struct ss_snapshot *snapshot,
						const struct ss_thread_numbers *from)
{
	struct ss_thread_ref *refs =
		ss_snapshot_alloc(snapshot, from->count, sizeof(*refs));

	for (size_t i = 0; refs && i < from->count; i++) {
		const struct ss_snapshot *other =
			ss_snapshot_related(snapshot, from->numbers[i].process);
		if (!other ||
		    from->numbers[i].thread >= other->tasks[SS_TASK_THREAD].count)
			return NULL;
		refs[i].snapshot = other;
		refs[i].thread =
			&other->tasks[SS_TASK_THREAD].items[from->numbers[i].thread];
	}
	return refs;
}

static bool link_threads(struct ss_snapshot *snapshot,
			 const struct ss_snapshot_fields *fields)
{
	for (size_t i = 0; i < fields->chains.count; i++) {
		const struct ss_thread_numbers *chain = &fields->chains.items[i];
		const struct ss_thread_ref *refs = find_threads(snapshot, chain);
		if (!refs || chain->thread >= snapshot->tasks[SS_TASK_THREAD].count)
			return false;
		struct ss_wait *wait = ss_drop_const(
			snapshot->tasks[SS_TASK_THREAD].items[chain->thread].wait);
		if (!wait)
			return false;
		wait->chain = refs;
		wait->chain_length = chain->count;
	}
	for (size_t i = 0; i < fields->cycles.count; i++) {
		const struct ss_thread_numbers *from = &fields->cycles.items[i];
		const struct ss_thread_ref *refs = find_threads(snapshot, from);
		struct ss_cycle *cycle =
			refs && from->count ? ss_vector_push(&snapshot->cycles) : NULL;
		if (!cycle)
			return false;
		*cycle = (struct ss_cycle){ .members = refs, .count = from->count };
		for (size_t j = 0; j < from->count; j++) {
			if (!refs[j].thread->wait)
				return false;
		}
	}
	return true;
}

static struct ss_error *receive_texts(struct receiver *receiver, struct ss_cursor *cursor,
				      uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		size_t size = ss_cursor_index(cursor, ss_cursor_left(cursor) + 1);
		const uint8_t *bytes = ss_cursor_take(cursor, size);
		const char **slot = bytes && !memchr(bytes, '\0', size) ?
					    ss_vector_push(&receiver->texts) :
					    NULL;
		if (!slot)
			return invalid();
		*slot = ss_intern_bytes(receiver->strings, (const char *)bytes, size);
		if (!*slot)
			return ss_error_no_memory();
	}
	return NULL;
}

static void fields_deinit(struct ss_snapshot_fields *fields)
{
	ss_vector_free(&fields->modules);
	ss_vector_free(&fields->chains);
	ss_vector_free(&fields->cycles);
}

/* Reads the snapshots of one message; those of related processes are added to the first. */
static struct ss_error *receive_all(struct receiver *receiver, struct ss_cursor *cursor,
				    size_t count, struct ss_snapshot *first,
				    struct ss_snapshot_fields *fields)
{
	struct ss_error *error = NULL;

	for (size_t i = 0; i < count && !error; i++) {
		size_t size = ss_cursor_index(cursor, ss_cursor_left(cursor) + 1);
		const uint8_t *bytes = ss_cursor_take(cursor, size);
		if (!bytes)
			return invalid();
		receiver->current = first;
		if (i > 0) {
			struct ss_snapshot **slot = ss_vector_push(&first->others);
			struct ss_snapshot *other = slot ? ss_snapshot_new() : NULL;
			if (slot)
				*slot = other;
			if (!other)
				return ss_error_no_memory();
			other->first = first;
			receiver->current = other;
		}
		error = decode(receiver, bytes, size, &fields[i]);
	}
	for (size_t i = 0; i < count && !error; i++) {
		if (!link_threads(i ? first->others.items[i - 1] : first, &fields[i]))
			error = invalid();
	}
	return error;
}

uint64_t ss_snapshot_memory(size_t size)
{
	return SS_MIN((uint64_t)size * MEMORY_PER_BYTE + MEMORY_MIN, MEMORY_MAX);
}

struct ss_error *ss_snapshot_receive(const uint8_t *bytes, size_t size, size_t *at,
				     uint64_t *memory, struct ss_snapshot **ret)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *first = ss_snapshot_new();
	_cleanup_(receiver_deinit) struct receiver receiver = {};
	struct ss_cursor cursor = { .at = bytes + *at, .end = bytes + size };
	uint64_t text_count = ss_cursor_uleb128(&cursor);
	size_t text_size = ss_cursor_index(&cursor, ss_cursor_left(&cursor) + 1);
	size_t count = ss_cursor_index(&cursor, OTHERS_MAX);
	struct ss_cursor texts = { .at = ss_cursor_take(&cursor, text_size) };
	struct ss_snapshot_fields *fields;
	struct ss_error *error;

	if (!first)
		return ss_error_no_memory();
	if (cursor.failed || count == 0)
		return invalid();
	texts.end = texts.at + text_size;
	receiver.strings = first->strings;
	receiver.memory = memory;
	error = receive_texts(&receiver, &texts, text_count);
	if (error)
		return error;
	fields = calloc(count, sizeof(*fields));
	error = fields ? receive_all(&receiver, &cursor, count, first, fields) :
			 ss_error_no_memory();
	for (size_t i = 0; fields && i < count; i++)
		fields_deinit(&fields[i]);
	free(fields);
	if (error)
		return error;
	*at = (size_t)(cursor.at - bytes);
	*ret = take_ptr(first);
	return NULL;
}
