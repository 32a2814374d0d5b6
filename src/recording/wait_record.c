#include "recording/wait_record.h"

#include <string.h>

#include "model/snapshot.h"
#include "base/encode.h"

enum { LIST_MAX = SS_WAIT_RECORD_LIST_MAX };

enum type { UNSIGNED, SIGNED, TEXT };

/* A member of a struct. The host is little-endian: its first bytes are the low ones. */
struct field {
	uint8_t number;
	uint8_t type;
	uint8_t size;
	uint16_t offset;
	uint64_t max; /* 0: any value */
};

#define FIELD(number, type, structure, member, max)                                      \
	{                                                                                \
		(number), (type), (uint8_t)sizeof(((struct structure *)NULL)->member),   \
			(uint16_t)offsetof(struct structure, member), (max)              \
	}
#define WAIT(number, type, member, max) FIELD(number, type, ss_wait, member, max)
#define DESCRIPTOR(number, type, member, max)                                            \
	FIELD(number, type, ss_descriptor, member, max)

/* To add a field, use a number that is not used yet, and add it to
   stacksnap-recording(5). */
static const struct field wait_fields[] = {
	WAIT(1, UNSIGNED, kind, SS_WAIT_WORK),
	WAIT(2, TEXT, syscall, 0),
	WAIT(3, SIGNED, syscall_number, 0),
	WAIT(4, TEXT, function, 0),
	WAIT(5, UNSIGNED, timed, 1),
	WAIT(6, SIGNED, timeout_ns, 0),
	WAIT(7, SIGNED, left_ns, 0),
	WAIT(10, UNSIGNED, lock, SS_LOCK_TYPE_LAST),
	WAIT(11, UNSIGNED, address, 0),
	WAIT(12, TEXT, symbol, 0),
	WAIT(13, UNSIGNED, symbol_offset, 0),
	WAIT(14, UNSIGNED, access, SS_ACCESS_EXCLUSIVE),
	WAIT(15, UNSIGNED, readers, UINT32_MAX),
	WAIT(16, UNSIGNED, value, UINT32_MAX),
	WAIT(17, UNSIGNED, arrived, UINT32_MAX),
	WAIT(18, UNSIGNED, needed, UINT32_MAX),
	WAIT(19, UNSIGNED, futexes, UINT32_MAX),
	WAIT(20, UNSIGNED, owner_tid, INT32_MAX),
	WAIT(21, UNSIGNED, owner_pid, INT32_MAX),
	WAIT(22, TEXT, owner_name, 0),
	WAIT(23, TEXT, owner_process, 0),
	WAIT(24, UNSIGNED, owner_access, SS_ACCESS_EXCLUSIVE),
	WAIT(25, UNSIGNED, self_owned, 1),
	WAIT(26, UNSIGNED, owner_unknown, SS_OWNER_IN_PARENT),
	WAIT(27, UNSIGNED, owner_unknown_tid, INT32_MAX),
	WAIT(30, SIGNED, fd, INT32_MAX),
	WAIT(33, UNSIGNED, fds_incomplete, 1),
	WAIT(40, UNSIGNED, range, SS_RANGE_BYTES),
	WAIT(41, UNSIGNED, range_first, 0),
	WAIT(42, UNSIGNED, range_last, 0),
	WAIT(50, UNSIGNED, child_scope, SS_CHILD_VFORK),
	WAIT(51, UNSIGNED, child_id, INT32_MAX),
	WAIT(53, UNSIGNED, children_total, UINT32_MAX),
	WAIT(54, UNSIGNED, children_known, 1),
	WAIT(60, UNSIGNED, signals_known, 1),
	WAIT(61, UNSIGNED, signals, 0),
	WAIT(70, UNSIGNED, ipc, SS_IPC_SEND),
	WAIT(71, SIGNED, ipc_id, INT32_MAX),
	WAIT(72, UNSIGNED, semaphore, UINT16_MAX),
	WAIT(73, SIGNED, semaphore_change, INT16_MAX),
	WAIT(74, UNSIGNED, semaphore_operations, UINT32_MAX),
	WAIT(80, UNSIGNED, completions, UINT32_MAX),
	WAIT(81, TEXT, path, 0),
	WAIT(82, SIGNED, command, INT32_MAX),
	WAIT(83, UNSIGNED, fanotify, 1),
	WAIT(90, UNSIGNED, purpose, SS_PURPOSE_SERVICE),
	WAIT(91, TEXT, purpose_function, 0),
	WAIT(92, TEXT, purpose_words, 0),
};
enum { WAIT_DESCRIPTOR = 31, WAIT_FD = 32, WAIT_CHILD = 52 };

static const struct field descriptor_fields[] = {
	DESCRIPTOR(1, SIGNED, fd, INT32_MAX),
	DESCRIPTOR(2, UNSIGNED, kind, SS_FD_OTHER),
	DESCRIPTOR(3, TEXT, name, 0),
	DESCRIPTOR(4, UNSIGNED, flags, INT32_MAX),
	DESCRIPTOR(6, UNSIGNED, peers_searched, 1),
	DESCRIPTOR(7, UNSIGNED, peers_incomplete, 1),
	DESCRIPTOR(10, TEXT, protocol, 0),
	DESCRIPTOR(11, UNSIGNED, listening, 1),
	DESCRIPTOR(12, UNSIGNED, tcp_state, UINT8_MAX),
	DESCRIPTOR(15, TEXT, path, 0),
	DESCRIPTOR(16, TEXT, peer_path, 0),
	DESCRIPTOR(20, UNSIGNED, process_ended, 1),
	DESCRIPTOR(21, UNSIGNED, timer_known, 1),
	DESCRIPTOR(22, UNSIGNED, timer_left_ns, 0),
	DESCRIPTOR(23, UNSIGNED, timer_interval_ns, 0),
	DESCRIPTOR(24, UNSIGNED, signals, 0),
	DESCRIPTOR(25, UNSIGNED, inotify_watches, UINT32_MAX),
	DESCRIPTOR(27, UNSIGNED, watches_incomplete, 1),
};
enum {
	DESCRIPTOR_PEER = 5,
	DESCRIPTOR_LOCAL = 13,
	DESCRIPTOR_REMOTE = 14,
	DESCRIPTOR_WATCH = 26
};

static const struct field watched_fields[] = {
	FIELD(1, SIGNED, ss_watched_fd, fd, INT32_MAX),
	FIELD(2, UNSIGNED, ss_watched_fd, input, 1),
	FIELD(3, UNSIGNED, ss_watched_fd, output, 1),
};
enum { WATCHED_DESCRIPTOR = 4 };

static const struct field process_fields[] = {
	FIELD(1, UNSIGNED, ss_related_process, pid, INT32_MAX),
	FIELD(2, TEXT, ss_related_process, name, 0),
	FIELD(3, UNSIGNED, ss_related_process, state, INT8_MAX),
	FIELD(4, UNSIGNED, ss_related_process, same, 1),
};

static const struct field address_fields[] = {
	FIELD(1, UNSIGNED, ss_socket_address, port, UINT16_MAX),
};
enum { ADDRESS_BYTES = 2 };

static const struct ss_wait no_wait = { .syscall_number = -1,
					.fd = -1,
					.timeout_ns = -1,
					.left_ns = -1,
					.ipc_id = -1,
					.command = -1 };
static const struct ss_descriptor no_descriptor;
static const struct ss_watched_fd no_watched;
static const struct ss_related_process no_process;
static const struct ss_socket_address no_address;

/* Writing ------------------------------------------------------------------ */

/* The number of a field is followed by a bit: whether it is bytes, with their size first,
   or a number. */
static void put_number(struct ss_buffer *out, unsigned field, uint64_t value)
{
	ss_encode_uleb128(out, field << 1);
	ss_encode_uleb128(out, value);
}

static void put_bytes(struct ss_buffer *out, unsigned field, const void *bytes,
		      size_t size)
{
	ss_encode_uleb128(out, field << 1 | 1);
	ss_encode_uleb128(out, size);
	ss_buffer_add(out, bytes, size);
}

static void put_nested(struct ss_buffer *out, unsigned field,
		       const struct ss_buffer *nested)
{
	put_bytes(out, field, nested->bytes, nested->size);
	out->failed |= nested->failed;
}

static uint64_t load(const struct field *field, const void *structure)
{
	const char *at = (const char *)structure + field->offset;
	uint64_t value = 0;
	int32_t word;

	memcpy(&value, at, field->size);
	if (field->type != SIGNED || field->size == sizeof(value))
		return value;
	memcpy(&word, at, sizeof(word));
	return (uint64_t)(int64_t)word;
}

static void put_field(struct ss_buffer *out, const struct field *field,
		      const void *structure)
{
	uint64_t value = load(field, structure);
	const char *text;

	if (field->type == UNSIGNED) {
		put_number(out, field->number, value);
	} else if (field->type == SIGNED) {
		ss_encode_uleb128(out, (uint64_t)field->number << 1);
		ss_encode_zigzag(out, (int64_t)value);
	} else {
		memcpy(&text, (const char *)structure + field->offset, sizeof(text));
		put_bytes(out, field->number, text, strlen(text));
	}
}

/* Fields that differ from their default. */
static void put_fields(struct ss_buffer *out, const struct field *fields, size_t count,
		       const void *structure, const void *none)
{
	for (size_t i = 0; i < count; i++) {
		const struct field *field = &fields[i];
		if (memcmp((const char *)structure + field->offset,
			   (const char *)none + field->offset, field->size) != 0)
			put_field(out, field, structure);
	}
}

#define PUT_FIELDS(out, fields, structure, none)                                         \
	put_fields(out, fields, SS_ARRAY_SIZE(fields), structure, none)

static void put_processes(struct ss_buffer *out, unsigned number,
			  const struct ss_related_process *processes, size_t count)
{
	for (size_t i = 0; i < SS_MIN(count, (size_t)LIST_MAX); i++) {
		_cleanup_buffer_ struct ss_buffer nested = {};
		PUT_FIELDS(&nested, process_fields, &processes[i], &no_process);
		put_nested(out, number, &nested);
	}
}

static void put_address(struct ss_buffer *out, unsigned number,
			const struct ss_socket_address *address)
{
	_cleanup_buffer_ struct ss_buffer nested = {};

	if (address->size == 0)
		return;
	PUT_FIELDS(&nested, address_fields, address, &no_address);
	put_bytes(&nested, ADDRESS_BYTES, address->bytes, address->size);
	put_nested(out, number, &nested);
}

static void put_watched(struct ss_buffer *out, unsigned number,
			const struct ss_watched_fd *fds, size_t count);

/* Descriptors in an epoll set are written without their own sets. */
static void put_descriptor(struct ss_buffer *out, unsigned number,
			   const struct ss_descriptor *descriptor, bool nested_only)
{
	_cleanup_buffer_ struct ss_buffer nested = {};

	if (!descriptor)
		return;
	struct ss_descriptor copy = *descriptor;
	copy.watches_incomplete |= nested_only || copy.watch_count > LIST_MAX;
	PUT_FIELDS(&nested, descriptor_fields, &copy, &no_descriptor);
	put_processes(&nested, DESCRIPTOR_PEER, descriptor->peers,
		      descriptor->peer_count);
	put_address(&nested, DESCRIPTOR_LOCAL, &descriptor->local);
	put_address(&nested, DESCRIPTOR_REMOTE, &descriptor->remote);
	if (!nested_only)
		put_watched(&nested, DESCRIPTOR_WATCH, descriptor->watches,
			    descriptor->watch_count);
	put_nested(out, number, &nested);
}

static void put_watched(struct ss_buffer *out, unsigned number,
			const struct ss_watched_fd *fds, size_t count)
{
	for (size_t i = 0; i < SS_MIN(count, (size_t)LIST_MAX); i++) {
		_cleanup_buffer_ struct ss_buffer nested = {};
		PUT_FIELDS(&nested, watched_fields, &fds[i], &no_watched);
		put_descriptor(&nested, WATCHED_DESCRIPTOR, fds[i].what, true);
		put_nested(out, number, &nested);
	}
}

void ss_wait_record_write(struct ss_buffer *out, const struct ss_wait *wait)
{
	struct ss_wait copy = *wait;

	copy.fds_incomplete |= wait->fd_count > LIST_MAX;
	PUT_FIELDS(out, wait_fields, &copy, &no_wait);
	put_descriptor(out, WAIT_DESCRIPTOR, wait->descriptor, false);
	put_watched(out, WAIT_FD, wait->fds, wait->fd_count);
	put_processes(out, WAIT_CHILD, wait->children, wait->child_count);
}

/* Reading ------------------------------------------------------------------ */

struct reader {
	struct ss_recording *recording;
	struct ss_cursor cursor; /* of the current struct */
};

/* A list while it grows; its memory belongs to the recording. */
struct list {
	char *items;
	size_t count;
	size_t capacity;
	size_t size;  /* of an item */
	size_t block; /* index of its memory */
};

static bool fail(struct reader *r)
{
	r->cursor.failed = true;
	return false;
}

static bool store(struct reader *r, const struct field *field, uint64_t value,
		  void *structure)
{
	int64_t number = (int64_t)value;
	int64_t most = (int64_t)field->max;

	if (field->type == SIGNED && field->max && (number > most || number < -most - 1))
		return fail(r);
	if (field->type == UNSIGNED && field->max && value > field->max)
		return fail(r);
	memcpy((char *)structure + field->offset, &value, field->size);
	return true;
}

static bool store_text(struct reader *r, const struct field *field, const uint8_t *bytes,
		       size_t size, void *structure)
{
	uint32_t number = ss_recording_text(r->recording, bytes, size);

	if (!number)
		return fail(r);
	memcpy((char *)structure + field->offset, &r->recording->texts.items[number - 1],
	       sizeof(const char *));
	return true;
}

static const struct field *find_field(const struct field *fields, size_t count,
				      unsigned number)
{
	for (size_t i = 0; i < count; i++) {
		if (fields[i].number == number)
			return &fields[i];
	}
	return NULL;
}

/* Reads one field. With bytes that no field has, which may be a nested struct, they are
   returned in *ret_nested; its end is NULL otherwise. Returns the number of the field. */
static unsigned read_field(struct reader *r, const struct field *fields, size_t count,
			   void *structure, struct ss_cursor *ret_nested)
{
	uint64_t key = ss_cursor_uleb128(&r->cursor);
	unsigned number = (unsigned)SS_MIN(key >> 1, (uint64_t)UINT16_MAX);
	const struct field *field = find_field(fields, count, number);
	bool is_text = key & 1;

	*ret_nested = (struct ss_cursor){};
	if (field && (field->type == TEXT) != is_text) {
		(void)fail(r);
	} else if (is_text) {
		size_t size = ss_cursor_index(&r->cursor, ss_cursor_left(&r->cursor) + 1);
		const uint8_t *bytes = ss_cursor_take(&r->cursor, size);
		if (bytes && field)
			(void)store_text(r, field, bytes, size, structure);
		else if (bytes)
			*ret_nested =
				(struct ss_cursor){ .at = bytes, .end = bytes + size };
	} else if (field && field->type == SIGNED) {
		(void)store(r, field, (uint64_t)ss_decode_zigzag(&r->cursor), structure);
	} else {
		uint64_t value = ss_cursor_uleb128(&r->cursor);
		if (field)
			(void)store(r, field, value, structure);
	}
	return number;
}

#define READ_FIELD(r, fields, structure, nested)                                         \
	read_field(r, fields, SS_ARRAY_SIZE(fields), structure, nested)

static bool has_more(const struct reader *r)
{
	return !r->cursor.failed && ss_cursor_left(&r->cursor) > 0;
}

/* Zeroed memory that lives as long as the recording, as a new block. NULL: the cursor fails,
   and there is a reason to reject the chunk. */
static void *keep(struct reader *r, size_t size)
{
	struct ss_recording *recording = r->recording;

	if (recording->wait_bytes + size > SS_WAIT_RECORD_BYTES_MAX) {
		recording->waits_full = true;
		(void)ss_recording_refuse(recording, SS_CHUNK_TOO_LARGE);
		(void)fail(r);
		return NULL;
	}
	void **slot = ss_vector_push(&recording->wait_blocks);
	if (slot)
		*slot = calloc(1, size);
	if (!slot || !*slot) {
		(void)ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
		(void)fail(r);
		return NULL;
	}
	recording->wait_bytes += size;
	return *slot;
}

static bool list_grow(struct reader *r, struct list *list)
{
	struct ss_recording *recording = r->recording;
	size_t capacity = SS_MAX(list->capacity * 2, (size_t)1);
	size_t old_size = list->capacity * list->size;

	if (capacity > LIST_MAX)
		return fail(r);
	char *items = keep(r, capacity * list->size);
	if (!items)
		return false;
	if (list->items) {
		memcpy(items, list->items, old_size);
		free(list->items);
		recording->wait_blocks.items[list->block] = NULL;
		recording->wait_bytes -= old_size;
	}
	list->items = items;
	list->capacity = capacity;
	list->block = recording->wait_blocks.count - 1;
	return true;
}

/* Room for another item, zeroed, or NULL. */
static void *list_push(struct reader *r, struct list *list)
{
	if (list->count == list->capacity && !list_grow(r, list))
		return NULL;
	return list->items + list->count++ * list->size;
}

static void read_process(struct reader *parent, struct ss_cursor nested,
			 struct list *list)
{
	struct reader r = { parent->recording, nested };
	struct ss_related_process *process = list_push(parent, list);
	struct ss_cursor rest;

	if (!process)
		return;
	process->state = '?';
	while (has_more(&r))
		(void)READ_FIELD(&r, process_fields, process, &rest);
	if (!process->state)
		process->state = '?'; /* as if it were omitted */
	parent->cursor.failed |= r.cursor.failed;
}

static void read_address(struct reader *parent, struct ss_cursor nested,
			 struct ss_socket_address *ret)
{
	struct reader r = { parent->recording, nested };
	struct ss_cursor bytes;

	while (has_more(&r)) {
		if (READ_FIELD(&r, address_fields, ret, &bytes) != ADDRESS_BYTES ||
		    !bytes.end)
			continue;
		size_t size = ss_cursor_left(&bytes);
		if (size != 4 && size != 16) {
			(void)fail(&r);
			break;
		}
		memcpy(ret->bytes, bytes.at, size);
		ret->size = (unsigned)size;
	}
	parent->cursor.failed |= r.cursor.failed;
}

static void read_watched(struct reader *parent, struct ss_cursor nested,
			 struct list *list);

static const struct ss_descriptor *
read_descriptor(struct reader *parent, struct ss_cursor nested, bool nested_only)
{
	struct reader r = { parent->recording, nested };
	struct ss_descriptor *descriptor = keep(parent, sizeof(*descriptor));
	struct list peers = { .size = sizeof(struct ss_related_process) };
	struct list watches = { .size = sizeof(struct ss_watched_fd) };
	struct ss_cursor rest;

	while (descriptor && has_more(&r)) {
		unsigned number = READ_FIELD(&r, descriptor_fields, descriptor, &rest);
		if (!rest.end)
			continue;
		if (number == DESCRIPTOR_PEER)
			read_process(&r, rest, &peers);
		else if (number == DESCRIPTOR_LOCAL)
			read_address(&r, rest, &descriptor->local);
		else if (number == DESCRIPTOR_REMOTE)
			read_address(&r, rest, &descriptor->remote);
		else if (number == DESCRIPTOR_WATCH && !nested_only)
			read_watched(&r, rest, &watches);
	}
	parent->cursor.failed |= r.cursor.failed;
	if (!descriptor)
		return NULL;
	descriptor->peers = (const struct ss_related_process *)(void *)peers.items;
	descriptor->peer_count = peers.count;
	descriptor->watches = (const struct ss_watched_fd *)(void *)watches.items;
	descriptor->watch_count = watches.count;
	return descriptor;
}

static void read_watched(struct reader *parent, struct ss_cursor nested,
			 struct list *list)
{
	struct reader r = { parent->recording, nested };
	struct ss_watched_fd *watched = list_push(parent, list);
	struct ss_cursor rest;

	while (watched && has_more(&r)) {
		unsigned number = READ_FIELD(&r, watched_fields, watched, &rest);
		if (rest.end && number == WATCHED_DESCRIPTOR)
			watched->what = read_descriptor(&r, rest, true);
	}
	parent->cursor.failed |= r.cursor.failed;
}

bool ss_wait_record_read(struct ss_recording *recording, struct ss_cursor *cursor,
			 struct ss_wait *ret)
{
	struct reader r = { recording, *cursor };
	struct list fds = { .size = sizeof(struct ss_watched_fd) };
	struct list children = { .size = sizeof(struct ss_related_process) };
	struct ss_cursor rest;

	*ret = no_wait;
	while (has_more(&r)) {
		unsigned number = READ_FIELD(&r, wait_fields, ret, &rest);
		if (!rest.end)
			continue;
		if (number == WAIT_DESCRIPTOR)
			ret->descriptor = read_descriptor(&r, rest, false);
		else if (number == WAIT_FD)
			read_watched(&r, rest, &fds);
		else if (number == WAIT_CHILD)
			read_process(&r, rest, &children);
	}
	ret->fds = (const struct ss_watched_fd *)(void *)fds.items;
	ret->fd_count = fds.count;
	ret->children = (const struct ss_related_process *)(void *)children.items;
	ret->child_count = children.count;
	ret->children_total = SS_MAX(ret->children_total, children.count);
	*cursor = r.cursor;
	return !cursor->failed;
}
