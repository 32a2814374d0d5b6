/*
 * Writes the members of structs as their tables of fields say, and those that are derived
 * from several fields.
 */
#include "report/json.h"

#include <arpa/inet.h>
#include <string.h>

#include "data/names.h"
#include "report/wait_text.h"

static void write_signals(struct ss_json *json, const char *key, uint64_t signals)
{
	ss_json_open(json, key, '[');
	for (int number = 1; number <= 64; number++) {
		if (signals >> (number - 1) & 1)
			ss_json_signed(json, NULL, number);
	}
	ss_json_close(json, ']');
}

/* An array of lines, or null. */
static void write_lines(struct ss_json *json, const char *key, const char *text)
{
	_cleanup_free_ char *copy = text ? strdup(text) : NULL;
	char *rest = copy;

	if (!copy) {
		ss_json_null(json, key);
		return;
	}
	ss_json_open(json, key, '[');
	for (char *line; (line = strsep(&rest, "\n"));)
		ss_json_text(json, NULL, line);
	ss_json_close(json, ']');
}

/* Indexes of threads are shown as their ids. */
static void write_index(struct ss_json *json, const char *key,
			const struct ss_field *field, uint64_t index)
{
	if (field->table == SS_TABLE_THREADS)
		index = (uint64_t)ss_snapshot_task(json->snapshot, SS_TASK_THREAD, index)
				->tid;
	ss_json_unsigned(json, key, index);
}

static void write_indexes(struct ss_json *json, const char *key,
			  const struct ss_field *field, const void *structure)
{
	const size_t *indexes = ss_field_pointer(field, structure);

	ss_json_open(json, key, '[');
	for (size_t i = 0; i < ss_field_count(field, structure); i++)
		write_index(json, NULL, field, indexes[i]);
	ss_json_close(json, ']');
}

static void write_list(struct ss_json *json, const char *key,
		       const struct ss_field *field, const char *items, size_t count)
{
	ss_json_open(json, key, '[');
	for (size_t i = 0; i < count; i++)
		ss_json_struct(json, NULL, field->schema, items + i * field->schema->size,
			       0);
	ss_json_close(json, ']');
}

/* An address of 4 or 16 bytes. */
static void write_bytes(struct ss_json *json, const char *key,
			const struct ss_field *field, const char *structure)
{
	char text[INET6_ADDRSTRLEN] = "";
	unsigned length;

	memcpy(&length, structure + field->count, sizeof(length));
	ss_json_text(json, key,
		     inet_ntop(length == field->size ? AF_INET6 : AF_INET,
			       structure + field->offset, text, sizeof(text)));
}

static void write_number(struct ss_json *json, const char *key,
			 const struct ss_field *field, uint64_t value)
{
	const char letter[] = { (char)value, '\0' };

	if (field->names)
		ss_json_text(json, key, ss_names_at(field->names, value));
	else if (field->flags & SS_LETTER)
		ss_json_text(json, key, value == '?' ? NULL : letter);
	else if (field->flags & SS_HEX)
		ss_json_hex(json, key, value);
	else if (field->flags & SS_SIGNALS)
		write_signals(json, key, value);
	else if (field->size == 1 && field->max == 1)
		ss_json_bool(json, key, value != !!(field->flags & SS_INVERTED));
	else if (field->type == SS_FIELD_SIGNED)
		ss_json_signed(json, key, (int64_t)value);
	else
		write_index(json, key, field, value);
}

static void write_value(struct ss_json *json, const char *key,
			const struct ss_field *field, const char *structure)
{
	switch (field->type) {
	case SS_FIELD_TEXT:
		if (field->flags & SS_LINES)
			write_lines(json, key, ss_field_pointer(field, structure));
		else
			ss_json_text(json, key, ss_field_pointer(field, structure));
		break;
	case SS_FIELD_BYTES:
		write_bytes(json, key, field, structure);
		break;
	case SS_FIELD_STRUCT:
		ss_json_struct(json, key, field->schema, structure + field->offset, 0);
		break;
	case SS_FIELD_POINTER:
		ss_json_struct(json, key, field->schema,
			       ss_field_pointer(field, structure), 0);
		break;
	case SS_FIELD_ARRAY:
		write_list(json, key, field, structure + field->offset,
			   ss_field_count(field, structure));
		break;
	case SS_FIELD_LIST:
		write_list(json, key, field, ss_field_pointer(field, structure),
			   ss_field_count(field, structure));
		break;
	case SS_FIELD_INDEXES:
		write_indexes(json, key, field, structure);
		break;
	default:
		write_number(json, key, field, ss_field_number(field, structure));
		break;
	}
}

void ss_json_members(struct ss_json *json, const struct ss_schema *schema,
		     const void *structure, uint64_t cases)
{
	if (schema->cases)
		cases |= schema->cases(structure);
	for (size_t i = 0; i < schema->count; i++) {
		const struct ss_field *field = &schema->fields[i];
		const char *key = field->name ? field->name : field->member;
		bool absent = field->flags & (SS_NULLABLE | SS_OPTIONAL) &&
			      ss_field_is_default(schema, field, structure);

		if (field->flags & SS_HIDDEN || (field->only && !(field->only & cases)) ||
		    (absent && field->flags & SS_OPTIONAL))
			continue;
		if (absent || (field->known && !(field->known & cases)))
			ss_json_null(json, key);
		else
			write_value(json, key, field, structure);
	}
}

/* Derived members ---------------------------------------------------------- */

static void write_descriptor_text(struct ss_json *json, const char *key,
				  const struct ss_descriptor *descriptor)
{
	_cleanup_free_ char *text = ss_wait_text_new_descriptor(descriptor);

	ss_json_text(json, key, text);
}

static void derive_descriptor(struct ss_json *json, const void *structure)
{
	const struct ss_descriptor *d = structure;

	write_descriptor_text(json, "text", d);
	ss_json_bool(json, "peers_complete", d->peers_searched && !d->peers_incomplete);
}

static void write_range(struct ss_json *json, const struct ss_wait *wait)
{
	if (wait->range == SS_RANGE_BYTES) {
		ss_json_open(json, "range", '[');
		ss_json_unsigned(json, NULL, wait->range_first);
		ss_json_signed_if(json, NULL, wait->range_last != UINT64_MAX,
				  (int64_t)wait->range_last);
		ss_json_close(json, ']');
	} else {
		ss_json_null(json, "range");
	}
	ss_json_bool(json, "range_relative", wait->range == SS_RANGE_PART);
}

void ss_json_wait_text(struct ss_json *json, const char *key, const struct ss_wait *wait)
{
	_cleanup_free_ char *text = wait ? ss_wait_text_new(wait) : NULL;

	ss_json_text(json, key, text);
}

/* Threads of a cycle or chain through several processes. */
static void write_thread_refs(struct ss_json *json, const char *key,
			      const struct ss_thread_ref *refs, size_t count)
{
	ss_json_open(json, key, '[');
	for (size_t i = 0; i < count; i++) {
		const struct ss_process *process = ss_snapshot_process(refs[i].snapshot);
		const struct ss_task *thread = refs[i].thread;
		const char state[] = { thread->state, '\0' };
		ss_json_open(json, NULL, '{');
		ss_json_signed(json, "pid", process->pid);
		ss_json_text(json, "process", process->name);
		ss_json_signed(json, "tid", thread->tid);
		ss_json_text(json, "name", thread->name);
		ss_json_text(json, "state", thread->state == '?' ? NULL : state);
		ss_json_wait_text(json, "wait", thread->wait);
		ss_json_text(json, "wait_kind",
			     thread->wait ? ss_wait_kind_name(thread->wait->kind) : NULL);
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
}

static void derive_wait(struct ss_json *json, const void *structure)
{
	const struct ss_wait *wait = structure;
	_cleanup_free_ char *text = ss_wait_text_new(wait);
	_cleanup_free_ char *reason = ss_wait_text_new_owner_unknown(wait);
	_cleanup_free_ char *beyond = ss_wait_text_new_chain(wait);

	ss_json_text(json, "text", text);
	ss_json_text(json, "owner_reason", reason);
	write_descriptor_text(json, "object", wait->descriptor);
	if (wait->kind == SS_WAIT_FUTEX)
		ss_json_unsigned(json, "futexes", wait->futexes ? wait->futexes : 1);
	if (wait->kind == SS_WAIT_FILE_LOCK)
		write_range(json, wait);
	ss_json_text(json, "beyond", beyond);
	write_thread_refs(json, "chain", wait->chain, wait->chain_length);
}

static const struct {
	const struct ss_schema *schema;
	void (*write)(struct ss_json *json, const void *structure);
} derived[] = {
	{ &ss_wait_schema, derive_wait },
	{ &ss_descriptor_schema, derive_descriptor },
	{ &ss_watched_descriptor_schema, derive_descriptor },
};

void ss_json_struct(struct ss_json *json, const char *key, const struct ss_schema *schema,
		    const void *structure, uint64_t cases)
{
	if (!structure) {
		ss_json_null(json, key);
		return;
	}
	ss_json_open(json, key, '{');
	ss_json_members(json, schema, structure, cases);
	for (size_t i = 0; i < SS_ARRAY_SIZE(derived); i++) {
		if (derived[i].schema == schema)
			derived[i].write(json, structure);
	}
	ss_json_close(json, '}');
}

void ss_json_wait(struct ss_json *json, const char *key, const struct ss_wait *wait)
{
	ss_json_struct(json, key, &ss_wait_schema, wait, 0);
}

void ss_json_deadlocks(struct ss_json *json, const struct ss_snapshot *snapshot)
{
	json->snapshot = snapshot;
	ss_json_open(json, "deadlocks", '[');
	for (size_t i = 0; i < ss_snapshot_deadlock_count(snapshot); i++)
		ss_json_struct(json, NULL, &ss_deadlock_schema,
			       ss_snapshot_deadlock(snapshot, i), 0);
	ss_json_close(json, ']');
	ss_json_open(json, "cycles", '[');
	for (size_t i = 0; i < ss_snapshot_cycle_count(snapshot); i++) {
		const struct ss_cycle *cycle = ss_snapshot_cycle(snapshot, i);
		ss_json_open(json, NULL, '{');
		write_thread_refs(json, "members", cycle->members, cycle->count);
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
	ss_json_open(json, "blockers", '[');
	for (size_t i = 0; i < ss_snapshot_blocker_count(snapshot); i++)
		ss_json_struct(json, NULL, &ss_blocker_schema,
			       ss_snapshot_blocker(snapshot, i), 0);
	ss_json_close(json, ']');
	ss_json_open(json, "application_locks", '[');
	for (size_t i = 0; i < ss_snapshot_application_lock_count(snapshot); i++)
		ss_json_struct(json, NULL, &ss_application_lock_schema,
			       ss_snapshot_application_lock(snapshot, i), 0);
	ss_json_close(json, ']');
}
