/*
 * Waits in recordings: what is written is read again, and nothing that is read can do
 * harm.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "data/recording.h"
#include "data/snapshot_fields.h"
#include "stacksnap/record.h"

enum { MANY = 100 };

static struct ss_recording *recording_new(void)
{
	struct ss_recording *recording = calloc(1, sizeof(*recording));

	assert_non_null(recording);
	recording->fd = -1;
	recording->strings = ss_intern_new();
	assert_non_null(recording->strings);
	return recording;
}

static bool read_bytes(const void *bytes, size_t size, struct ss_recording *recording,
		       struct ss_wait *ret)
{
	struct ss_cursor cursor = { .at = bytes, .end = (const uint8_t *)bytes + size };

	return ss_wait_record_read(recording, &cursor, ret);
}

static const struct ss_related_process processes[] = {
	{ .pid = 11, .name = "cat", .state = 'S' },
	{ .pid = 12, .state = '?', .same = true },
};

static const struct ss_descriptor socket_end = {
	.fd = 7,
	.kind = SS_FD_SOCKET,
	.name = "socket:[1]",
	.flags = 2,
	.peers = processes,
	.peer_count = 2,
	.peers_searched = true,
	.peers_incomplete = true,
	.protocol = "TCP",
	.tcp_state = 1,
	.local = { .bytes = { 127, 0, 0, 1 }, .size = 4, .port = 80 },
	.remote = { .bytes = { [15] = 1 }, .size = 16, .port = 65535 },
	.signals = UINT64_MAX,
};
static const struct ss_watched_fd fds[] = {
	{ .fd = 3, .input = true, .what = &socket_end },
	{ .fd = 4, .output = true },
};
static const struct ss_descriptor epoll = { .fd = 8,
					    .kind = SS_FD_EPOLL,
					    .name = "anon_inode:[eventpoll]",
					    .watches = fds,
					    .watch_count = 2 };
static const struct ss_wait full = {
	.kind = SS_WAIT_RWLOCK,
	.syscall = "futex",
	.syscall_number = 202,
	.function = "pthread_rwlock_rdlock",
	.timed = true,
	.timeout_ns = INT64_MAX,
	.left_ns = 0,
	.lock = SS_LOCK_RWLOCK,
	.address = UINT64_MAX,
	.symbol = "cache",
	.symbol_offset = 8,
	.access = SS_ACCESS_EXCLUSIVE,
	.readers = UINT32_MAX,
	.owner_tid = 5,
	.owner_pid = INT32_MAX,
	.owner_name = "a",
	.owner_process = "b",
	.owner_access = SS_ACCESS_SHARED,
	.self_owned = true,
	.owner_unknown = SS_OWNER_NOT_LISTED,
	.owner_unknown_tid = 6,
	.fd = 8,
	.descriptor = &epoll,
	.fds = fds,
	.fd_count = 2,
	.range = SS_RANGE_BYTES,
	.range_first = 1,
	.range_last = UINT64_MAX,
	.child_scope = SS_CHILD_VFORK,
	.child_id = 9,
	.children = processes,
	.child_count = 2,
	.children_total = 3,
	.children_known = true,
	.signals = 1,
	.ipc = SS_IPC_SEND,
	.ipc_id = 0,
	.semaphore = 65535,
	.semaphore_change = -32768,
	.semaphore_operations = 2,
	.completions = 4,
	.path = "/tmp",
	.command = 0,
};

TEST(test_round_trip)
{
	struct ss_recording *recording = recording_new();
	_cleanup_buffer_ struct ss_buffer once = {};
	_cleanup_buffer_ struct ss_buffer again = {};
	struct ss_wait wait;

	ss_wait_record_write(&once, &full);
	assert_false(once.failed);
	assert_true(read_bytes(once.bytes, once.size, recording, &wait));
	ss_wait_record_write(&again, &wait);
	assert_int_equal(once.size, again.size);
	assert_memory_equal(once.bytes, again.bytes, once.size);
	assert_string_equal(wait.symbol, "cache");
	assert_int_equal(wait.semaphore_change, -32768);
	assert_int_equal(wait.left_ns, 0);
	assert_string_equal(wait.children[0].name, "cat");
	assert_int_equal(wait.children[1].state, '?');
	assert_int_equal(wait.descriptor->watch_count, 2);
	assert_int_equal(wait.descriptor->watches[0].what->remote.port, 65535);
	assert_int_equal(wait.descriptor->watches[0].what->peer_count, 2);
	assert_true(wait.fds[1].output && !wait.fds[1].what);
	ss_recording_close(recording);
}

/* What does not apply takes no room, and is what it was. */
TEST(test_nothing)
{
	struct ss_recording *recording = recording_new();
	struct ss_wait wait;

	assert_true(read_bytes("", 0, recording, &wait));
	assert_int_equal(wait.fd, -1);
	assert_int_equal(wait.timeout_ns, -1);
	assert_int_equal(wait.ipc_id, -1);
	_cleanup_buffer_ struct ss_buffer out = {};
	ss_wait_record_write(&out, &wait);
	assert_int_equal(out.size, 0);
	ss_recording_close(recording);
}

TEST(test_long_lists)
{
	struct ss_recording *recording = recording_new();
	_cleanup_buffer_ struct ss_buffer out = {};
	struct ss_watched_fd many[MANY] = {};
	struct ss_wait wait = full;

	for (int i = 0; i < MANY; i++)
		many[i].fd = i;
	wait.fds = many;
	wait.fd_count = MANY;
	ss_wait_record_write(&out, &wait);
	assert_true(read_bytes(out.bytes, out.size, recording, &wait));
	assert_int_equal(wait.fd_count, 64);
	assert_true(wait.fds_incomplete);
	for (int i = 0; i < 64; i++)
		assert_int_equal(wait.fds[i].fd, i);
	ss_recording_close(recording);
}

/* number(field << 1 | is_bytes) and what follows it */
static bool read_field(unsigned field, bool is_bytes, uint64_t value, const char *bytes)
{
	struct ss_recording *recording = recording_new();
	_cleanup_buffer_ struct ss_buffer out = {};
	struct ss_wait wait;

	ss_encode_uleb128(&out, (uint64_t)field << 1 | is_bytes);
	ss_encode_uleb128(&out, value);
	ss_buffer_add(&out, bytes, strlen(bytes));
	bool ok = read_bytes(out.bytes, out.size, recording, &wait);
	ss_recording_close(recording);
	return ok;
}

/* The copy has the same fields, also those of nested structs. */
TEST(test_copy)
{
	_cleanup_buffer_ struct ss_buffer one = {};
	_cleanup_buffer_ struct ss_buffer other = {};
	size_t bytes = 0;
	struct ss_wait *copy =
		ss_schema_copy(&ss_recorded_wait_schema, &full, NULL, NULL, &bytes);

	assert_non_null(copy);
	assert_in_range(bytes, sizeof(*copy), 64 << 10);
	assert_ptr_not_equal(copy->descriptor, full.descriptor);
	assert_ptr_not_equal(copy->syscall, full.syscall);
	ss_wait_record_write(&one, &full);
	ss_wait_record_write(&other, copy);
	assert_int_equal(one.size, other.size);
	assert_memory_equal(one.bytes, other.bytes, one.size);
	free(copy);
}

TEST(test_wrong_fields)
{
	assert_true(read_field(1, false, SS_WAIT_WORK, ""));
	assert_false(read_field(1, false, SS_WAIT_WORK + 1, "")); /* no such kind */
	assert_false(read_field(1, true, 1, "a"));		  /* a text */
	assert_true(read_field(2, true, 4, "read"));
	assert_false(read_field(2, true, 5, "read")); /* beyond the end */
	assert_false(read_field(2, false, 5, ""));    /* a number */
	assert_false(read_field(14, false, 3, ""));   /* an access */
	assert_false(read_field(20, false, UINT64_C(1) << 31, ""));
	assert_true(read_field(9999, false, 5, "")); /* of a later version */
	assert_true(read_field(9999, true, 4, "data"));
	assert_true(read_field(UINT32_MAX, true, 4, "data"));
}

/* Any bytes are read to an end or refused. */
TEST(test_damaged)
{
	_cleanup_buffer_ struct ss_buffer out = {};
	unsigned random = 1;

	ss_wait_record_write(&out, &full);
	for (size_t size = 0; size < out.size; size++) {
		struct ss_recording *recording = recording_new();
		struct ss_wait wait;
		(void)read_bytes(out.bytes, size, recording, &wait);
		ss_recording_close(recording);
	}
	for (int round = 0; round < 4000; round++) {
		struct ss_recording *recording = recording_new();
		_cleanup_free_ uint8_t *bytes = malloc(out.size);
		struct ss_wait wait;
		assert_non_null(bytes);
		memcpy(bytes, out.bytes, out.size);
		for (int change = 0; change < 4; change++) {
			random = random * 1103515245 + 12345;
			bytes[(random >> 8) % out.size] = (uint8_t)(random >> 20);
		}
		if (read_bytes(bytes, out.size, recording, &wait))
			assert_true(wait.kind <= SS_WAIT_WORK &&
				    wait.access <= SS_ACCESS_EXCLUSIVE &&
				    wait.child_scope <= SS_CHILD_VFORK);
		ss_recording_close(recording);
	}
}

/* Reads the wait of a call. What it is: *ret, NULL if it is left out. */
static bool read_call(const struct ss_buffer *out, struct ss_recording *recording,
		      const struct ss_wait **ret)
{
	struct ss_cursor cursor = { .at = (const uint8_t *)out->bytes,
				    .end = (const uint8_t *)out->bytes + out->size };

	*ret = NULL;
	return ss_call_wait_read(recording, &cursor, ret);
}

/* Reads different waits until one is left out, and checks that the rest can be read. */
static void fill(struct ss_recording *recording, size_t padding, uint64_t max)
{
	_cleanup_free_ char *zeros = calloc(1, padding + 1);
	const struct ss_wait *first = NULL;
	const struct ss_wait *wait = NULL;
	uint64_t i;

	assert_non_null(zeros);
	for (i = 0; i <= max; i++) {
		_cleanup_buffer_ struct ss_buffer out = {};
		struct ss_wait another = full;
		another.address = i;
		ss_wait_record_write(&out, &another);
		if (padding) { /* a field of a later version */
			ss_encode_uleb128(&out, 9999 << 1 | 1);
			ss_encode_uleb128(&out, padding);
			ss_buffer_add(&out, zeros, padding);
		}
		assert_true(read_call(&out, recording, &wait));
		assert_true(recording->wait_bytes <= SS_WAIT_RECORD_BYTES_MAX);
		first = i == 0 ? wait : first;
		if (!wait)
			break;
		assert_int_equal(wait->address, i);
	}
	assert_non_null(first);
	assert_in_range(i, 1, max);
	assert_int_equal(recording->info.waits_left_out, 1);
	assert_int_equal(recording->refusal, SS_CHUNK_DAMAGED);
}

/* Beyond the limits calls are read without their waits, and the known waits are found. */
TEST(test_limits)
{
	const size_t paddings[] = { 0, 1 << 20 };
	const struct ss_wait *wait;

	for (size_t i = 0; i < SS_ARRAY_SIZE(paddings); i++) {
		struct ss_recording *recording = recording_new();
		recording->refusal = SS_CHUNK_DAMAGED;
		fill(recording, paddings[i], SS_CALL_WAITS_MAX);
		if (paddings[i] == 0) {
			_cleanup_buffer_ struct ss_buffer out = {};
			struct ss_wait known = full;
			known.address = 0;
			ss_wait_record_write(&out, &known);
			assert_true(read_call(&out, recording, &wait));
			assert_non_null(wait);
		}
		ss_recording_close(recording);
	}
}

/* One that needs more than is left, and one that is damaged. */
TEST(test_refused)
{
	struct ss_recording *recording = recording_new();
	_cleanup_buffer_ struct ss_buffer out = {};
	const struct ss_wait *call_wait;
	struct ss_wait wait;

	recording->refusal = SS_CHUNK_DAMAGED;
	ss_wait_record_write(&out, &full);
	out.size--;
	assert_false(read_call(&out, recording, &call_wait));
	assert_int_equal(recording->refusal, SS_CHUNK_DAMAGED);
	out.size++;
	recording->wait_bytes = SS_WAIT_RECORD_BYTES_MAX - out.size - sizeof(wait) - 8;
	assert_true(read_call(&out, recording, &call_wait));
	assert_null(call_wait);
	assert_int_equal(recording->info.waits_left_out, 1);
	assert_int_equal(recording->refusal, SS_CHUNK_DAMAGED);
	assert_false(read_bytes(out.bytes, out.size, recording, &wait));
	assert_int_equal(recording->refusal, SS_CHUNK_TOO_LARGE);
	ss_recording_close(recording);
}
