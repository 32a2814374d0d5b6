/*
 * Recordings are merged into a profile; one may claim anything.
 *
 * ctest: long-with-sanitizers
 */
#include "record_sample.h"

#include "base/error.h"
#include "report/profile_load.h"
#include "data/recording.h"
#include "data/snapshot_fields.h"
#include "stacksnap.h"
#include "stacksnap/record.h"

enum { TICKS = 4 };

static void add_goroutine(struct sample_recording *s, uint64_t tick, uint32_t stack)
{
	const struct ss_recorded_task written = {
		.tick = tick,
		.process = s->process,
		.thread = SS_ID_NONE,
		.stack = stack,
		.task = { .kind = SS_TASK_GOROUTINE,
			  .id = 7,
			  .name = "",
			  .status = SS_STATUS_WAITING },
	};

	ss_writer_task(s->writer, &written);
}

/* The runs of a goroutine follow each other, whatever the order of its ticks is. */
TEST(test_goroutine_order)
{
	const uint64_t claimed[] = { 1, 0, 1, 3, 2 };
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS,
						   .machine = "x86_64",
						   .host = "h" };
	const struct ss_load_options load = { .size = sizeof(load) };
	struct sample_recording s = {};
	struct ss_recording *recording = NULL;
	struct ss_profile *profile = ss_profile_new();
	struct ss_summary summary = {};
	const uint64_t offset = 16;

	assert_non_null(profile);
	sample_open(&s, &options);
	uint32_t thread = ss_writer_add_thread(s.writer, s.process, 43, "t", 1);
	uint32_t stack = sample_stack(&s, &offset, 1);
	const struct ss_sample_record sample = {
		.thread = thread, .stack = stack, .call = SS_ID_NONE, .state = 'S'
	};
	for (uint64_t i = 0; i < SS_ARRAY_SIZE(claimed); i++)
		add_goroutine(&s, claimed[i], stack);
	for (uint64_t i = 0; i < TICKS; i++) {
		const struct ss_tick_record tick = {
			.monotonic_ns = (i + 1) * SAMPLE_PERIOD_NS,
			.wall_ns = (i + 1) * SAMPLE_PERIOD_NS
		};
		assert_null(ss_writer_tick(s.writer, &tick, &sample, 1));
	}
	assert_null(ss_writer_finish(s.writer, &summary));
	assert_null(ss_recording_open_fd(copy_of(s.fd, size_of(s.fd)), &recording));
	assert_int_equal(recording->tasks.count, SS_ARRAY_SIZE(claimed));
	assert_null(ss_load_recording(profile, recording, "file", &load));
	assert_int_equal(profile->threads.count, 2);
	const struct ss_profile_thread *goroutine = &profile->threads.items[1];
	assert_int_equal(goroutine->id, 7);
	assert_int_equal(goroutine->runs.count, 2);
	assert_int_equal(goroutine->runs.items[0].tick, 1);
	assert_int_equal(goroutine->runs.items[0].count, 1);
	assert_int_equal(goroutine->runs.items[1].tick, 3);
	assert_int_equal(profile->notes.count, 1);
	assert_string_equal(profile->notes.items[0],
			    "file: 3 more goroutines are not counted");
	ss_profile_free(profile);
	ss_recording_close(recording);
	sample_close(&s);
}

static void encode(const struct ss_task *task, struct ss_buffer *ret)
{
	const struct ss_schema_writer writer = { .out = ret };

	ss_schema_write(&writer, &ss_recorded_task_schema, task);
	assert_false(ret->failed);
}

/* A snapshot made from a recording has every member of a task that is no matter of threads. */
TEST(test_task_members)
{
	const size_t awaited = 0;
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS };
	struct ss_recorded_task written = {
		.thread = SS_ID_NONE,
		.task = { .kind = SS_TASK_ASYNCIO,
			  .id = 7,
			  .name = "name",
			  .status = SS_STATUS_WAITING,
			  .wait_reason = "suspended",
			  .waiting_ns = 8,
			  .changed = true,
			  .lock_function = "lock",
			  .blocked = true,
			  .runtime = "/runtime",
			  .awaited = &awaited,
			  .awaited_count = 1,
			  .awaits_all = true,
			  .in_cycle = true,
			  .object = "Queue",
			  .endless = SS_ENDLESS_NIL_CHANNEL,
			  .loop_empty = true,
			  .holder = 9,
			  .greenlet = true },
	};
	struct sample_recording s = {};
	struct ss_recording *recording = NULL;
	struct ss_snapshot *snapshot = NULL;
	struct ss_summary summary = {};
	_cleanup_buffer_ struct ss_buffer before = {};
	_cleanup_buffer_ struct ss_buffer after = {};
	const struct ss_tick_record tick = { .monotonic_ns = 1, .wall_ns = 1 };
	const uint64_t offset = 16;

	sample_open(&s, &options);
	written.process = s.process;
	written.stack = sample_stack(&s, &offset, 1);
	const struct ss_sample_record sample = {
		.thread = ss_writer_add_thread(s.writer, s.process, 43, "t", 1),
		.stack = written.stack,
		.call = SS_ID_NONE,
		.state = 'S',
	};
	ss_writer_task(s.writer, &written);
	assert_null(ss_writer_tick(s.writer, &tick, &sample, 1));
	assert_null(ss_writer_finish(s.writer, &summary));
	assert_null(ss_recording_open_fd(copy_of(s.fd, size_of(s.fd)), &recording));
	assert_null(ss_recording_snapshot(recording, 0, 0, &snapshot));
	ss_recording_close(recording);
	const struct ss_task *task = ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, 0);
	assert_non_null(task);
	assert_string_equal(task->lock_function, "lock");
	assert_true(task->blocked && task->loop_empty && task->greenlet);
	assert_int_equal(task->holder, 9);
	encode(&written.task, &before);
	encode(task, &after);
	assert_int_equal(after.size, before.size);
	assert_memory_equal(after.bytes, before.bytes, before.size);
	ss_snapshot_free(snapshot);
	sample_close(&s);
}

/* Waits, each of which is different -------------------------------------- */

enum {
	MANY_WAITS = SS_CALL_WAITS_MAX + 3,
	LARGE_WAITS =
		400, /* less than SS_WAIT_RECORD_BYTES_MAX, more than a third of the limit for all */
	LIST = SS_WAIT_RECORD_LIST_MAX,
};

/* A sample of one thread in each tick. */
static void write_waits(struct sample_recording *s, const struct ss_wait *wait,
			uint64_t count)
{
	const uint64_t offset = 16;
	uint32_t thread = ss_writer_add_thread(s->writer, s->process, 43, "t", 1);
	uint32_t stack = sample_stack(s, &offset, 1);

	for (uint64_t i = 0; i < count; i++) {
		struct ss_wait one = *wait;
		one.address = 4096 + i * 8;
		const struct ss_sample_record sample = {
			.thread = thread,
			.stack = stack,
			.call = ss_writer_call(s->writer, 202, one.address, &one),
			.state = 'S',
		};
		const struct ss_tick_record tick = {
			.monotonic_ns = (i + 1) * SAMPLE_PERIOD_NS,
			.wall_ns = (i + 1) * SAMPLE_PERIOD_NS
		};
		assert_true(sample.call != SS_ID_NONE);
		assert_null(ss_writer_tick(s->writer, &tick, &sample, 1));
	}
}

static struct ss_recording *record_waits(struct sample_recording *s,
					 const struct ss_wait *wait, uint64_t count)
{
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS,
						   .machine = "x86_64",
						   .host = "h" };
	struct ss_recording *recording = NULL;
	struct ss_summary summary = {};

	sample_open(s, &options);
	write_waits(s, wait, count);
	assert_null(ss_writer_finish(s->writer, &summary));
	assert_null(ss_recording_open_fd(copy_of(s->fd, size_of(s->fd)), &recording));
	return recording;
}

/* How many samples have what they wait for, of the threads from an index on. */
static size_t count_details(const struct ss_profile *profile, size_t from)
{
	size_t count = 0;

	for (size_t i = from; i < profile->threads.count; i++) {
		const struct ss_profile_thread *thread = &profile->threads.items[i];
		for (size_t k = 0; k < thread->runs.count; k++)
			count += thread->runs.items[k].detail > 0;
	}
	return count;
}

static const char left_out[] = "file: too many different waits: some are shown without "
			       "their object and owner";

/* The samples stay, and a note says what is missing. */
TEST(test_waits_left_out)
{
	const struct ss_wait wait = { .kind = SS_WAIT_MUTEX, .syscall_number = 202 };
	const struct ss_load_options load = { .size = sizeof(load) };
	struct sample_recording s = {};
	struct ss_recording *recording = record_waits(&s, &wait, MANY_WAITS);
	struct ss_profile *profile = ss_profile_new();

	assert_null(ss_load_recording(profile, recording, "file", &load));
	assert_int_equal(ss_recording_info(recording)->waits_left_out,
			 MANY_WAITS - SS_CALL_WAITS_MAX);
	assert_int_equal(ss_recording_info(recording)->samples, MANY_WAITS);
	assert_int_equal(count_details(profile, 0), SS_CALL_WAITS_MAX);
	assert_int_equal(profile->notes.count, 1);
	assert_string_equal(profile->notes.items[0], left_out);
	ss_profile_free(profile);
	ss_recording_close(recording);
	sample_close(&s);
}

/* What samples of all recordings wait for takes 128 MiB at most, and a little more. */
TEST(test_details_limited)
{
	struct ss_related_process peers[LIST];
	struct ss_watched_fd fds[LIST];
	const struct ss_descriptor pipe = { .fd = 7,
					    .kind = SS_FD_PIPE,
					    .name = "pipe:[1]",
					    .peers = peers,
					    .peer_count = LIST };
	const struct ss_wait wait = {
		.kind = SS_WAIT_EPOLL, .syscall_number = 202, .fds = fds, .fd_count = LIST
	};
	const struct ss_load_options load = { .size = sizeof(load) };
	struct sample_recording s = {};
	struct ss_profile *profile = ss_profile_new();

	for (int i = 0; i < LIST; i++) {
		peers[i] = (struct ss_related_process){ .pid = i + 1,
							.name = "p",
							.state = 'S' };
		fds[i] = (struct ss_watched_fd){ .fd = i, .what = &pipe };
	}
	struct ss_recording *recording = record_waits(&s, &wait, LARGE_WAITS);
	for (int i = 1; profile->notes.count == 0; i++) {
		const size_t threads = profile->threads.count;
		assert_true(i <= 4);
		assert_null(ss_load_recording(profile, recording, "file", &load));
		if (profile->notes.count == 0)
			assert_int_equal(count_details(profile, threads), LARGE_WAITS);
	}
	assert_int_equal(ss_recording_info(recording)->waits_left_out, 0);
	assert_string_equal(profile->notes.items[0], left_out);
	assert_true(profile->detail_bytes < (128 << 20) + (1 << 20));
	assert_true(count_details(profile, 0) < (size_t)4 * LARGE_WAITS);
	ss_profile_free(profile);
	ss_recording_close(recording);
	sample_close(&s);
}
