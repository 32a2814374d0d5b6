/* Writing and reading recordings: round trips, truncation and corruption. */
#include "record_sample.h"

#include <limits.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "stacksnap.h"
#include "data/recording.h"
#include "stacksnap/record.h"

static uint64_t same_hash(const void *key, size_t size)
{
	(void)key;
	(void)size;
	return 4711;
}

/* A poor hash: long chains of different keys. */
static uint64_t poor_hash(const void *key, size_t size)
{
	return size ? ((const uint8_t *)key)[0] & 1 : 0;
}

static struct ss_recording *reopen(int fd)
{
	struct ss_recording *recording = NULL;
	struct ss_error *error = ss_recording_open_fd(dup(fd), &recording);

	if (error)
		fail_msg("%s", ss_error_message(error));
	return recording;
}

static void expect_stack(const struct ss_recording *recording, uint32_t index,
			 const uint64_t *offsets, size_t count)
{
	const struct ss_recorded_stack *stack = ss_recording_stack(recording, index);

	assert_int_equal(stack->count, count);
	for (size_t i = 0; i < count; i++) {
		size_t frames;
		const struct ss_frame *frame =
			ss_recording_place(recording, stack->places[i], &frames);
		assert_int_equal(frames, 1);
		assert_int_equal(frame->offset, offsets[i]);
		assert_int_equal(frame->pc, offsets[i] + 0x10000);
		assert_int_equal(frame->lookup_offset, offsets[i] - (i ? 1 : 0));
		assert_string_equal(frame->module->path, "/bin/a");
	}
}

static void expect_call(const struct ss_recording *recording, uint32_t place,
			const char *function, const char *file, uint32_t line)
{
	size_t count;
	const struct ss_frame *frame = ss_recording_place(recording, place, &count);

	assert_int_equal(count, 1);
	assert_int_equal(frame->kind, SS_FRAME_PYTHON);
	assert_int_equal(frame->source, SS_FROM_RUNTIME);
	assert_int_equal(frame->module_index, -1);
	assert_null(frame->module);
	assert_string_equal(frame->symbol, function);
	assert_int_equal(frame->file != NULL, file != NULL);
	if (file)
		assert_string_equal(frame->file, file);
	assert_int_equal(frame->line, line);
	assert_false(frame->replaced);
}

static void finish(struct sample_recording *s)
{
	struct ss_summary summary = { .reason = SS_RECORDING_STOPPED };

	assert_null(ss_writer_finish(s->writer, &summary));
}

/* Stacks of few different frames in every order: PAIRS of them share frames, and with
   a poor hash their hash; and each must come back as itself. */
static void stacks_with(ss_hash_function *hash, unsigned pairs)
{
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS,
						   .hash = hash };
	struct sample_recording s = {};
	struct ss_sample_record sample = { .call = SS_ID_NONE, .state = 'R' };

	sample_open(&s, &options);
	sample.thread = ss_writer_add_thread(s.writer, s.process, 43, "t", 3);
	for (unsigned i = 0; i < pairs; i++) {
		uint64_t offsets[] = { i + 1, i + 2, 5, 5 };
		uint64_t swapped[] = { i + 2, i + 1, 5, 5 };
		uint32_t a = sample_stack(&s, offsets, 4);
		uint32_t b = sample_stack(&s, swapped, 4);
		assert_int_not_equal(a, b);
		assert_int_equal(sample_stack(&s, offsets, 4), a);
		sample.stack = a;
		struct ss_tick_record tick = { .monotonic_ns = i };
		assert_null(ss_writer_tick(s.writer, &tick, &sample, 1));
		sample.stack = b;
		assert_null(ss_writer_tick(s.writer, &tick, &sample, 1));
	}
	finish(&s);
	struct ss_recording *recording = reopen(s.fd);
	assert_int_equal(ss_recording_stack_count(recording), 2 * pairs);
	for (unsigned i = 0; i < pairs; i++) {
		uint64_t offsets[] = { i + 1, i + 2, 5, 5 };
		uint64_t swapped[] = { i + 2, i + 1, 5, 5 };
		struct ss_sample got;
		assert_true(ss_recording_next(recording, &got));
		assert_int_equal(got.sequence, 2 * i);
		expect_stack(recording, got.stack, offsets, 4);
		assert_true(ss_recording_next(recording, &got));
		expect_stack(recording, got.stack, swapped, 4);
	}
	struct ss_sample none;
	assert_false(ss_recording_next(recording, &none));
	ss_recording_close(recording);
	sample_close(&s);
}

TEST(test_order_of_frames)
{
	stacks_with(NULL, 5000);
}

TEST(test_equal_hashes)
{
	stacks_with(same_hash, 600);
	stacks_with(poor_hash, 600);
}

/* Calls of a runtime, and the native frame that executes them; also in a new segment. */
TEST(test_calls_of_a_runtime)
{
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS };
	const uint32_t flags = SS_FROM_RUNTIME << SS_FRAME_SOURCE_SHIFT;
	struct sample_recording s = {};
	struct ss_tick_record tick = {};
	struct ss_sample got;

	sample_open(&s, &options);
	struct ss_frame_record frames[] = {
		{ .module = SS_ID_NONE,
		  .flags = flags,
		  .kind = SS_FRAME_PYTHON,
		  .function = "Worker.run",
		  .file = "/srv/worker.py",
		  .line = 41 },
		{ .module = SS_ID_NONE,
		  .flags = flags,
		  .kind = SS_FRAME_PYTHON,
		  .function = "<module>" },
		{ .module = s.modules[0],
		  .value = 0x10,
		  .flags = SS_FRAME_CALL | SS_FRAME_REPLACED },
	};
	struct ss_sample_record sample = { .call = SS_ID_NONE, .state = 'R' };
	sample.thread = ss_writer_add_thread(s.writer, s.process, 43, "t", 3);
	sample.stack = ss_writer_stack(s.writer, frames, 3, SS_END_ROOT, NULL);
	assert_int_equal(ss_writer_stack(s.writer, frames, 3, SS_END_ROOT, NULL),
			 sample.stack);
	frames[0].line = 42;
	assert_int_not_equal(ss_writer_stack(s.writer, frames, 3, SS_END_ROOT, NULL),
			     sample.stack);
	assert_null(ss_writer_tick(s.writer, &tick, &sample, 1));
	tick.monotonic_ns = 1;
	assert_null(ss_writer_roll(s.writer, 1, 1, &sample, 1));
	assert_null(ss_writer_tick(s.writer, &tick, &sample, 1));
	finish(&s);
	struct ss_recording *recording = reopen(s.fd);
	for (int i = 0; i < 2; i++) {
		size_t count;
		assert_true(ss_recording_next(recording, &got));
		const struct ss_recorded_stack *stack =
			ss_recording_stack(recording, got.stack);
		assert_int_equal(stack->count, 3);
		expect_call(recording, stack->places[0], "Worker.run", "/srv/worker.py",
			    41);
		expect_call(recording, stack->places[1], "<module>", NULL, 0);
		const struct ss_frame *native =
			ss_recording_place(recording, stack->places[2], &count);
		assert_int_equal(native->kind, SS_FRAME_NATIVE);
		assert_true(native->replaced);
		assert_int_equal(native->offset, 0x10);
		assert_int_equal(native->lookup_offset, 0xf);
	}
	ss_recording_close(recording);
	sample_close(&s);
}

/* Threads begin, end and move; every field of each sample is read back. */
enum { THREADS = 40, TICKS = 300 };

static struct ss_sample_record made_sample(const uint32_t *threads,
					   const uint32_t *stacks, unsigned tick,
					   unsigned thread)
{
	bool moves = (tick * 7 + thread * 3) % 11 == 0;
	unsigned stage = (tick + thread) / 50;

	return (struct ss_sample_record){
		.thread = threads[thread],
		.stack = stacks[(thread + stage) % 8],
		.call = SS_ID_NONE,
		.state = "RSD"[stage % 3],
		.cpu_us = moves ? tick + 1 : 0,
		.ready_us = moves ? tick % 3 : 0,
	};
}

static bool is_there(unsigned tick, unsigned thread)
{
	return (tick / 20 + thread) % 5 != 0;
}

/* Returns the size of the file. */
static size_t write_many(struct sample_recording *s, const struct ss_writer_options *o)
{
	uint32_t threads[THREADS];
	uint32_t stacks[8];

	sample_open(s, o);
	for (unsigned i = 0; i < THREADS; i++)
		threads[i] = ss_writer_add_thread(s->writer, s->process, (pid_t)(100 + i),
						  "worker", 3);
	for (unsigned i = 0; i < 8; i++) {
		const uint64_t offsets[] = { i, 9, 8 };
		stacks[i] = sample_stack(s, offsets, 3);
	}
	uint32_t call = ss_writer_call(s->writer, 202, 0xdeadbeef, NULL);
	for (unsigned tick = 0; tick < TICKS; tick++) {
		struct ss_sample_record samples[THREADS];
		size_t count = 0;
		const struct ss_tick_record t = {
			.monotonic_ns = (uint64_t)tick * SAMPLE_PERIOD_NS,
			.wall_ns = 1000000000000 + (uint64_t)tick * SAMPLE_PERIOD_NS -
				   (tick >= 100 ? 3600000000000 / 10 : 0),
			.missed = tick == 50 ? 3 : 0,
			.stopped_ns = 1000,
			.stopped_max_ns = 600,
		};
		for (unsigned i = 0; i < THREADS; i++) {
			if (!is_there(tick, i))
				continue;
			samples[count] = made_sample(threads, stacks, tick, i);
			samples[count++].call = i == 1 ? call : SS_ID_NONE;
		}
		if (ss_writer_wants_roll(s->writer, t.monotonic_ns)) {
			struct ss_sample_record carried[8] = {};
			for (unsigned i = 0; i < 8; i++)
				carried[i] = (struct ss_sample_record){
					.stack = stacks[i],
					.call = call,
				};
			assert_null(ss_writer_roll(s->writer, t.monotonic_ns, t.wall_ns,
						   carried, 8));
			for (size_t i = 0; i < count; i++)
				for (unsigned k = 0; k < 8; k++)
					if (samples[i].stack == stacks[k]) {
						samples[i].stack = carried[k].stack;
						break;
					}
			for (unsigned i = 0; i < 8; i++)
				stacks[i] = carried[i].stack;
			if (samples[0].call == call || samples[1].call == call)
				samples[samples[1].call == call].call = carried[0].call;
			call = carried[0].call;
		}
		assert_null(ss_writer_tick(s->writer, &t, samples, count));
	}
	return (size_t)s->writer->ring.size;
}

/* Reads what write_many() wrote, from a tick on; the number of samples. */
static uint64_t check_many(struct ss_recording *recording, unsigned first_tick)
{
	uint64_t sequence = ss_recording_info(recording)->first_sequence;
	uint64_t count = 0;
	struct ss_sample got;
	unsigned thread = 0;

	while (ss_recording_next(recording, &got)) {
		unsigned tick = first_tick + (unsigned)got.tick;
		assert_int_equal(got.sequence, sequence + count);
		assert_int_equal(got.monotonic_ns, (uint64_t)tick * SAMPLE_PERIOD_NS);
		assert_int_equal(got.time_ns, 1000000000000 + got.monotonic_ns -
						      (tick >= 100 ? 360000000000 : 0));
		assert_int_equal(got.missed, tick == 50 ? 3 : 0);
		thread = (unsigned)got.tid - 100;
		assert_true(thread < THREADS && is_there(tick, thread));
		const uint32_t numbers[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
		uint32_t handles[THREADS] = {};
		struct ss_sample_record made =
			made_sample(handles, numbers, tick, thread);
		const uint64_t offsets[] = { made.stack, 9, 8 };
		expect_stack(recording, got.stack, offsets, 3);
		assert_int_equal(got.state, made.state);
		assert_int_equal(got.on_cpu_ns, made.cpu_us * 1000);
		assert_int_equal(got.ready_ns, made.ready_us * 1000);
		assert_int_equal(got.call, thread == 1 ? 202 : -1);
		assert_int_equal(got.argument, thread == 1 ? 0xdeadbeef : 0);
		assert_int_equal(got.pid, 42);
		count++;
	}
	return count;
}

static uint64_t samples_between(unsigned first, unsigned last)
{
	uint64_t count = 0;

	for (unsigned tick = first; tick < last; tick++)
		for (unsigned i = 0; i < THREADS; i++)
			count += is_there(tick, i);
	return count;
}

TEST(test_round_trip)
{
	const struct ss_writer_options options = { .wall_ns = 1000000000000,
						   .period_ns = SAMPLE_PERIOD_NS,
						   .machine = "x86_64",
						   .host = "here" };
	struct sample_recording s = {};

	write_many(&s, &options);
	finish(&s);
	struct ss_recording *recording = reopen(s.fd);
	const struct ss_recording_info *info = ss_recording_info(recording);
	assert_null(info->problem);
	assert_int_equal(info->end, SS_RECORDING_STOPPED);
	assert_string_equal(info->machine, "x86_64");
	assert_string_equal(info->host, "here");
	assert_int_equal(info->ticks, TICKS);
	assert_int_equal(info->missed, 3);
	assert_int_equal(info->stopped_ns, TICKS * 1000);
	assert_int_equal(info->stopped_max_ns, 600);
	assert_int_equal(ss_recording_module_count(recording), SAMPLE_MODULES);
	assert_string_equal(ss_recording_module(recording, 1)->module->build_id,
			    "44556677");
	assert_null(ss_recording_module(recording, 2)->module->build_id);
	assert_int_equal(check_many(recording, 0), samples_between(0, TICKS));
	ss_recording_rewind(recording);
	assert_int_equal(check_many(recording, 0), info->samples);
	ss_recording_close(recording);
	sample_close(&s);
}

/* A file that is truncated anywhere can be read up to the last whole chunk. */
TEST(test_truncated_anywhere)
{
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS };
	struct sample_recording s = {};
	uint64_t before = 0;

	write_many(&s, &options);
	finish(&s);
	size_t size = size_of(s.fd);
	for (size_t cut = 0; cut < size; cut += cut < 200 || cut + 200 > size ? 1 : 37) {
		struct ss_recording *recording = NULL;
		struct ss_error *error =
			ss_recording_open_fd(copy_of(s.fd, cut), &recording);
		if (cut < SS_FILE_HEADER_SIZE) {
			assert_int_equal(ss_error_code(error), SS_ERROR_INVALID);
			ss_error_free(error);
			continue;
		}
		assert_null(error);
		const struct ss_recording_info *info = ss_recording_info(recording);
		assert_non_null(info->problem);
		assert_int_equal(info->end, SS_RECORDING_CUT);
		assert_true(info->samples >= before && info->size <= cut);
		before = info->samples;
		struct ss_sample got;
		uint64_t count = 0;
		while (ss_recording_next(recording, &got))
			count++;
		assert_int_equal(count, info->samples);
		ss_recording_close(recording);
	}
	assert_int_equal(before, samples_between(0, TICKS));
	sample_close(&s);
}

TEST(test_damaged)
{
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS };
	struct sample_recording s = {};

	write_many(&s, &options);
	finish(&s);
	size_t size = size_of(s.fd);
	for (size_t at = SS_FILE_HEADER_SIZE; at < size; at += 13) {
		int copy = copy_of(s.fd, size);
		uint8_t byte = 0;
		assert_int_equal(pread(copy, &byte, 1, (off_t)at), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(copy, &byte, 1, (off_t)at), 1);
		struct ss_recording *recording = NULL;
		assert_null(ss_recording_open_fd(copy, &recording));
		assert_non_null(ss_recording_info(recording)->problem);
		ss_recording_close(recording);
	}
	sample_close(&s);
}

static void expect_refused(const void *bytes, size_t size, const char *word)
{
	int fd = memfd_create("odd", MFD_CLOEXEC);
	struct ss_recording *recording = NULL;

	assert_int_equal(write(fd, bytes, size), size);
	struct ss_error *error = ss_recording_open_fd(fd, &recording);
	assert_non_null(error);
	assert_int_equal(ss_error_code(error), SS_ERROR_INVALID);
	if (!strstr(ss_error_message(error), word))
		fail_msg("%s", ss_error_message(error));
	ss_error_free(error);
}

TEST(test_not_a_recording)
{
	expect_refused("", 0, "empty");
	expect_refused("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\0", 17, "not a recording");
	expect_refused("\x89SSREC\r\n\x09\0\0\0\4\3\2\1", 16, "version 9");
	expect_refused("\x89SSREC\r\n\x01\0\0\0\1\2\3\4", 16, "byte order");
	expect_refused("\x89SSREC", 6, "truncated");
}

/* The memory limit is reached repeatedly: each time a new segment begins, and the reader
   merges the numbers of all segments. */
TEST(test_segments)
{
	const struct ss_writer_options options = { .wall_ns = 1000000000000,
						   .period_ns = SAMPLE_PERIOD_NS,
						   .memory_max = 1 };
	struct sample_recording s = {};

	write_many(&s, &options);
	finish(&s);
	struct ss_recording *recording = reopen(s.fd);
	assert_null(ss_recording_info(recording)->problem);
	assert_int_equal(ss_recording_stack_count(recording), 8);
	assert_int_equal(ss_recording_thread_count(recording), THREADS);
	assert_int_equal(ss_recording_module_count(recording), SAMPLE_MODULES);
	assert_int_equal(check_many(recording, 0), samples_between(0, TICKS));
	ss_recording_close(recording);
	sample_close(&s);
}

/* Old segments are dropped; sequence numbers continue. */
static void ring_under(const char *name)
{
	char directory[] = "/tmp/ss_ring_XXXXXX";
	char path[NAME_MAX + sizeof(directory) + 1];

	assert_non_null(mkdtemp(directory));
	int dirfd = open(directory, O_PATH | O_DIRECTORY);
	int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL, 0600);
	/* It may be left from a test that was killed. */
	int left = openat(dirfd, "r.part", O_RDWR | O_CREAT | O_EXCL, 0600);
	const struct ss_writer_options options = {
		.wall_ns = 1000000000000,
		.period_ns = SAMPLE_PERIOD_NS,
		.keep_ns = 100 * (uint64_t)SAMPLE_PERIOD_NS,
		.directory = directory,
		.name = name,
	};
	struct sample_recording s = { .fd = fd };
	assert_true(fd >= 0 && left >= 0 && close(left) == 0);
	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	size_t size = write_many(&s, &options);
	finish(&s);
	assert_int_equal(s.writer->ring.undropped, 0);
	/* The name refers to the newest file. */
	struct ss_recording *recording = NULL;
	assert_null(ss_recording_open(path, &recording));
	const struct ss_recording_info *info = ss_recording_info(recording);
	assert_null(info->problem);
	assert_true(info->ticks >= 100 && info->ticks <= 126);
	assert_true(info->size < size * 2);
	assert_true(info->first_sequence > 0);
	assert_int_equal(check_many(recording, TICKS - (unsigned)info->ticks),
			 samples_between(TICKS - (unsigned)info->ticks, TICKS));
	ss_recording_close(recording);
	sample_close(&s);
	assert_int_equal(unlinkat(dirfd, name, 0), 0);
	assert_int_equal(unlinkat(dirfd, "r.part", 0), 0);
	(void)close(dirfd);
	assert_int_equal(rmdir(directory), 0); /* it is empty */
}

TEST(test_ring)
{
	char longest[NAME_MAX + 1] = "";

	ring_under("r");
	(void)memset(longest, 'r', sizeof(longest) - 1);
	ring_under(longest);
}

/* The next segment forgets what has ended; its lifetime remains in the file. */
TEST(test_lifetimes)
{
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS };
	struct sample_recording s = {};
	const uint64_t offsets[] = { 1, 2 };

	sample_open(&s, &options);
	uint32_t first = ss_writer_add_thread(s.writer, s.process, 43, "first", 3);
	uint32_t second = ss_writer_add_thread(s.writer, s.process, 44, "second", 4);
	struct ss_sample_record sample = { .thread = second,
					   .stack = sample_stack(&s, offsets, 2),
					   .call = SS_ID_NONE,
					   .state = 'S' };
	ss_writer_end_thread(s.writer, first, 5);
	ss_writer_end_module(s.writer, s.modules[0], 6); /* still on the stack */
	ss_writer_end_module(s.writer, s.modules[1], 7);
	assert_null(ss_writer_roll(s.writer, 8, 8, &sample, 1));
	/* A handle may be reused for another thread. */
	uint32_t third = ss_writer_add_thread(s.writer, s.process, 43, "third", 9);
	ss_writer_name_thread(s.writer, second, "renamed", 10);
	struct ss_sample_record samples[] = { sample, sample };
	samples[1].thread = third;
	const struct ss_tick_record tick = { .monotonic_ns = 11 };
	assert_null(ss_writer_tick(s.writer, &tick, samples, 2));
	finish(&s);
	struct ss_recording *recording = reopen(s.fd);
	assert_null(ss_recording_info(recording)->problem);
	assert_int_equal(ss_recording_thread_count(recording), 3);
	assert_int_equal(ss_recording_thread(recording, 0)->end_ns, 5);
	assert_int_equal(ss_recording_thread(recording, 1)->end_ns, 0);
	assert_string_equal(ss_recording_thread(recording, 1)->name, "renamed");
	assert_string_equal(ss_recording_thread(recording, 2)->name, "third");
	assert_int_equal(ss_recording_module_count(recording), SAMPLE_MODULES);
	assert_int_equal(ss_recording_module(recording, 0)->end_ns, 6);
	assert_int_equal(ss_recording_module(recording, 1)->end_ns, 7);
	struct ss_snapshot *snapshot = NULL;
	assert_null(ss_recording_snapshot(recording, 0, 0, &snapshot));
	assert_int_equal(ss_snapshot_task_count(snapshot, SS_TASK_THREAD), 2);
	assert_string_equal(ss_snapshot_task(snapshot, SS_TASK_THREAD, 1)->name, "third");
	assert_int_equal(ss_snapshot_frame(snapshot,
					   ss_snapshot_task(snapshot, SS_TASK_THREAD, 0),
					   1)
				 ->offset,
			 2);
	ss_snapshot_free(snapshot);
	ss_recording_close(recording);
	sample_close(&s);
}

/* Threads that have ended take no memory, also within a segment. */
TEST(test_short_threads)
{
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS,
						   .write_ns = 1 };
	struct sample_recording s = {};
	const uint64_t offsets[] = { 1, 2 };
	enum { SHORT = 20000, TABLES_MAX = 512 << 10 };

	sample_open(&s, &options);
	for (unsigned i = 0; i < SHORT; i++) {
		const struct ss_tick_record tick = { .monotonic_ns = 10 + i };
		const struct ss_sample_record sample = {
			.thread = ss_writer_add_thread(s.writer, s.process,
						       (pid_t)(100 + i), "short", 10 + i),
			.stack = sample_stack(&s, offsets, 2),
			.call = SS_ID_NONE,
			.state = 'S'
		};
		assert_null(ss_writer_tick(s.writer, &tick, &sample, 1));
		ss_writer_end_thread(s.writer, sample.thread, 11 + i);
	}
	assert_in_range(ss_writer_memory(s.writer), 1, TABLES_MAX);
	finish(&s);
	struct ss_recording *recording = reopen(s.fd);
	assert_null(ss_recording_info(recording)->problem);
	assert_int_equal(ss_recording_thread_count(recording), SHORT);
	for (unsigned i = 0; i < SHORT; i++) {
		assert_int_equal(ss_recording_thread(recording, i)->tid, 100 + i);
		assert_int_equal(ss_recording_thread(recording, i)->end_ns, 11 + i);
	}
	ss_recording_close(recording);
	sample_close(&s);
}

/* After a write error, what was written before can be read. */
/* Each segment begins in the other one of two files, in place of what it contained. */
TEST(test_two_files)
{
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS,
						   .other = memfd_create("other", 0),
						   .write_ns = 1 };
	const int other = dup(options.other);
	struct sample_recording s = {};
	struct ss_sample got;

	assert_true(other >= 0);
	sample_open(&s, &options);
	struct ss_sample_record sample = { .call = SS_ID_NONE, .state = 'R' };
	sample.thread = ss_writer_add_thread(s.writer, s.process, 43, "t", 3);
	sample.stack = ss_writer_stack(s.writer, NULL, 0, SS_END_ROOT, NULL);
	for (uint64_t i = 0; i < 5; i++) {
		const struct ss_tick_record tick = { .monotonic_ns = i + 1 };
		if (i)
			assert_null(ss_writer_roll(s.writer, i, i, &sample, 1));
		assert_null(ss_writer_tick(s.writer, &tick, &sample, 1));
		/* What was written can be read at once, and only that. */
		for (uint64_t file = 0; file < SS_MIN(i + 1, UINT64_C(2)); file++) {
			struct ss_recording *recording = reopen(file ? other : s.fd);
			assert_true(ss_recording_next(recording, &got));
			assert_int_equal(got.tid, 43);
			assert_int_equal(got.sequence, i % 2 == file ? i : i - 1);
			assert_false(ss_recording_next(recording, &got));
			ss_recording_close(recording);
		}
	}
	ss_writer_free(s.writer);
	assert_int_equal(close(s.fd), 0);
	assert_int_equal(close(other), 0);
}

TEST(test_full)
{
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS };
	struct ss_writer *writer = NULL;

	struct ss_error *error =
		ss_writer_new(open("/dev/full", O_RDWR), &options, &writer);
	assert_non_null(error);
	assert_int_equal(ss_error_code(error), SS_ERROR_SYSTEM);
	ss_error_free(error);
}

/* What the recorder lost is in the summary, and so is that it lost nothing. */
TEST(test_losses)
{
	static const char *const texts[] = { NULL, "the child process crashed" };
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS };

	for (size_t i = 0; i < 2; i++) {
		struct ss_summary summary = { .reason = SS_RECORDING_STOPPED,
					      .lost = 3 * i,
					      .loss = texts[i] };
		struct sample_recording s = {};
		struct ss_recording *recording = NULL;
		sample_open(&s, &options);
		assert_null(ss_writer_finish(s.writer, &summary));
		assert_null(ss_recording_open_fd(dup(s.fd), &recording));
		const struct ss_recording_info *info = ss_recording_info(recording);
		assert_null(info->problem);
		assert_int_equal(info->lost, 3 * i);
		if (texts[i])
			assert_string_equal(info->loss, texts[i]);
		else
			assert_null(info->loss);
		ss_recording_close(recording);
		ss_writer_free(s.writer);
		assert_int_equal(close(s.fd), 0);
	}
}
