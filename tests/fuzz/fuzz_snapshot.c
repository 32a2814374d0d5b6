/*
 * A snapshot as the confined process sends it, and what is printed of it. An input is a message;
 * if it begins with 'M', it says how to change one that is made here: three bytes each, an offset
 * of two bytes and what replaces the byte there. An offset behind the end is the size that is left.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "data/snapshot_fields.h"
#include "fuzz.h"
#include "data/snapshot.h"
#include "report/format.h"

enum { MESSAGE_MAX = 1 << 16 };

static const struct ss_format *const formats[] = {
	&ss_format_text, &ss_format_json, &ss_format_folded, &ss_format_gdb,
	&ss_format_eu,	 &ss_format_dot,  &ss_format_rows,
};

/* A thread that waits for the next one, in a circle, with a descriptor. */
static void add_thread(struct ss_snapshot *snapshot, size_t index, struct ss_wait *wait)
{
	const struct ss_frame frames[] = {
		{ .pc = 0x1010, .module_index = 0, .symbol = "wait", .offset = 0x10 },
		{ .pc = 0x1020,
		  .module_index = -1,
		  .symbol = "main",
		  .file = "main.py",
		  .line = 7,
		  .kind = SS_FRAME_PYTHON,
		  .source = SS_FROM_RUNTIME },
	};
	struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);

	FUZZ_REQUIRE(thread);
	*thread = (struct ss_task){ .tid = 100 + (pid_t)index,
				    .name = "worker",
				    .state = 'S',
				    .wait = wait,
				    .frame_count = 2 };
	FUZZ_REQUIRE(ss_snapshot_add_stack(snapshot, frames, 2, SS_END_ROOT,
					   &thread->stack_id));
	*wait = (struct ss_wait){ .kind = index ? SS_WAIT_EPOLL : SS_WAIT_MUTEX,
				  .syscall = "futex",
				  .syscall_number = 202,
				  .lock = SS_LOCK_MUTEX,
				  .owner_tid = 101,
				  .owner_frames = { { .frame = 1, .file = "main.c" } },
				  .owner_frame_count = 1,
				  .fd = 5,
				  .descriptor = &snapshot->descriptors[index],
				  .timeout_ns = -1,
				  .left_ns = -1,
				  .ipc_id = -1,
				  .command = -1 };
}

static struct ss_snapshot *make(void)
{
	static const struct ss_related_process peer = { .pid = 9,
							.name = "peer",
							.state = 'S' };
	static const size_t cycle[] = { 0, 1 };
	struct ss_snapshot *snapshot = ss_snapshot_new();
	struct ss_module_impl *module = ss_module_new("/lib/a.so", 0x1000, 0x2000);

	FUZZ_REQUIRE(snapshot && module);
	struct ss_module_impl **slot = ss_vector_push(&snapshot->modules);
	struct ss_deadlock *deadlock = ss_vector_push(&snapshot->deadlocks);
	struct ss_task *goroutine = ss_vector_push(&snapshot->tasks[SS_TASK_GOROUTINE]);
	struct ss_task *task = ss_vector_push(&snapshot->tasks[SS_TASK_ASYNCIO]);
	FUZZ_REQUIRE(slot && deadlock && goroutine && task);
	*slot = module;
	snapshot->process =
		(struct ss_process){ .pid = 100, .name = "shop", .mode = SS_MODE_AUTO };
	snapshot->descriptors = calloc(2, sizeof(*snapshot->descriptors));
	snapshot->waits = calloc(2, sizeof(*snapshot->waits));
	struct ss_watched_fd *watches = ss_snapshot_alloc(snapshot, 2, sizeof(*watches));
	FUZZ_REQUIRE(snapshot->descriptors && snapshot->waits && watches);
	snapshot->descriptor_count = 2;
	watches[0] =
		(struct ss_watched_fd){ 5, true, false, &snapshot->descriptors[0], 2 };
	snapshot->descriptors[0] =
		(struct ss_descriptor){ .fd = 5,
					.kind = SS_FD_SOCKET,
					.name = "socket:[1]",
					.protocol = "TCP",
					.peers = &peer,
					.peer_count = 1,
					.local = { .size = 4, .port = 80 } };
	snapshot->descriptors[1] = (struct ss_descriptor){ .fd = 6,
							   .kind = SS_FD_EPOLL,
							   .name = "anon",
							   .watches = watches,
							   .watch_count = 1 };
	for (size_t i = 0; i < 2; i++)
		add_thread(snapshot, i, &snapshot->waits[i]);
	*deadlock = (struct ss_deadlock){ .threads = cycle, .count = 2 };
	*goroutine = (struct ss_task){ .id = 1, .wait_reason = "select" };
	*task = (struct ss_task){ .name = "Task-1",
				  .awaited = &cycle[0],
				  .awaited_count = 1 };
	ss_snapshot_recount(snapshot);
	return snapshot;
}

/* A message that is made once; returns its size. */
static size_t get_message(const uint8_t **ret)
{
	static uint8_t bytes[MESSAGE_MAX];
	static size_t size;

	if (!size) {
		struct ss_snapshot *snapshot = make();
		int fd = memfd_create("message", MFD_CLOEXEC);
		FUZZ_REQUIRE(fd >= 0);
		FUZZ_REQUIRE(!ss_snapshot_send(snapshot, fd));
		ssize_t result = pread(fd, bytes, sizeof(bytes), 0);
		FUZZ_REQUIRE(result > 0);
		size = (size_t)result;
		(void)close(fd);
		ss_snapshot_free(snapshot);
	}
	*ret = bytes;
	return size;
}

static void print(const struct ss_snapshot *snapshot)
{
	const struct ss_format_options options = { .size = sizeof(options), .all = true };

	for (size_t i = 0; i < SS_ARRAY_SIZE(formats); i++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		if (!out)
			return;
		if (formats[i] != &ss_format_rows)
			ss_error_free(
				formats[i]->write_snapshot(snapshot, &options, out));
		(void)fclose(out);
		free(text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_snapshot *snapshot = NULL;
	uint8_t *bytes = NULL;
	size_t at = 0;

	if (size > 0 && data[0] == 'M') {
		const uint8_t *made = NULL;
		size_t left = get_message(&made);
		bytes = malloc(left);
		FUZZ_REQUIRE(bytes);
		memcpy(bytes, made, left);
		for (size_t i = 1; i + 3 <= size; i += 3) {
			size_t offset = data[i] | (size_t)data[i + 1] << 8;
			if (offset < left)
				bytes[offset] = data[i + 2];
			else
				left = SS_MIN(left, (size_t)data[i + 2] * 4);
		}
		size = left;
	} else {
		bytes = malloc(size + 1);
		FUZZ_REQUIRE(bytes);
		memcpy(bytes, data, size);
	}
	uint64_t memory = ss_snapshot_memory(size);
	struct ss_error *error =
		ss_snapshot_receive(bytes, size, &at, &memory, &snapshot);
	FUZZ_REQUIRE(error || at <= size);
	ss_error_free(error);
	if (snapshot)
		print(snapshot);
	ss_snapshot_free(snapshot);
	free(bytes);
	return 0;
}
