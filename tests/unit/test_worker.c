/*
 * The worker: requests with and without files, and every way in which it can fail. It is
 * confined, so it can do little but compute and answer.
 */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/worker.h"
#include "sandbox/sandbox.h"

enum { PAGE = 4096, RANGES = SS_MEMORY_RANGES_BYTES / PAGE };
enum { LIES = 10, MAX_BYTES = 1 << 20 };
enum { BIG = 10 << 20, FILES = 600, MODULE = 3, TIMEOUT_MS = 3000 };

/* What a request asks for, by its first byte. */
enum order {
	ECHO = 'e',
	CHECK = 'k',
	ANSWER_BIG = 'b',
	READ_FILES = 'f',
	CRASH = 'c',
	HANG = 'h',
	EXIT = 'x',
	NO_MEMORY = 'n',
	LIE = 'l',
	TRACE = 't',
	READ = 'r',
	READ_MORE = 'm',
	READ_RANGES = 'p',
	LARGE_RANGE = 'G',
	ASK = 'a',
};

static uint8_t big[BIG];

/* How many of the files are ours. */
static uint32_t count_files(const struct ss_worker_request *request)
{
	uint32_t count = 0;

	for (size_t i = 0; i < request->file_count; i++) {
		char magic[4] = "";
		ssize_t n = pread(request->files[i], magic, sizeof(magic), 0);
		count += n == 4 && memcmp(magic, "\177ELF", 4) == 0;
		(void)close(request->files[i]);
	}
	return count;
}

/* Answers with a byte of each piece, and how much was read of each. */
static size_t read_ranges(uint8_t *ret)
{
	static uint8_t bytes[RANGES * PAGE];
	struct ss_memory_range ranges[RANGES];

	for (size_t i = 0; i < RANGES; i++)
		ranges[i] = (struct ss_memory_range){ .address = (i + 1) * PAGE,
						      .bytes = bytes + i * PAGE,
						      .size = PAGE };
	ss_worker_read_ranges(ranges, RANGES);
	for (size_t i = 0; i < RANGES; i++) {
		ret[2 * i] = bytes[i * PAGE + 1];
		ret[2 * i + 1] = ranges[i].done == (i == 0 ? PAGE : 16);
	}
	return (size_t)2 * RANGES;
}

static bool serve(void *data, const struct ss_worker_request *request,
		  volatile int32_t *module_at, const uint8_t **answer,
		  size_t *answer_size)
{
	static uint32_t count;
	static uint8_t bytes[SS_WORKER_READ_MAX];
	static const struct ss_worker_message lies[] = {
		{ .kind = SS_WORKER_ANSWER, .size = UINT64_MAX },
		{ .kind = SS_WORKER_REPLY },
		{ .kind = SS_WORKER_READ, .wanted = SS_WORKER_READ_MAX + 1 },
		{ .kind = SS_WORKER_READ, .size = 1 },
		{ .kind = SS_WORKER_CHECK, .size = UINT64_MAX },
		{ .kind = SS_WORKER_ASK, .size = SS_SANDBOX_ASK_MAX + 1 },
		{ .kind = SS_WORKER_ASK, .wanted = SS_SANDBOX_ASK_MAX + 1 },
		{ .kind = SS_WORKER_RANGES },
		{ .kind = SS_WORKER_RANGES, .size = sizeof(struct ss_worker_range) + 1 },
		{ .kind = SS_WORKER_RANGES,
		  .size = (SS_MEMORY_RANGES_MAX + 1) * sizeof(struct ss_worker_range) },
	};
	static const struct {
		struct ss_worker_message message;
		struct ss_worker_range range;
	} large = { { .kind = SS_WORKER_RANGES, .size = sizeof(large.range) },
		    { .size = SS_MEMORY_RANGES_BYTES + 1 } };

	(void)data;
	*module_at = MODULE;
	*answer = request->bytes;
	*answer_size = request->size;
	switch ((enum order)request->bytes[0]) {
	case ECHO:
		return true;
	case ANSWER_BIG:
		*answer = big;
		*answer_size = sizeof(big);
		return true;
	case READ_FILES:
		count = count_files(request);
		*answer = (const uint8_t *)&count;
		*answer_size = sizeof(count);
		return true;
	case READ: /* what it gets is the answer; then from a different address */
		*answer = bytes;
		*answer_size = ss_worker_read(0x1000, bytes, 4);
		*answer_size += ss_worker_read(0x2000, bytes + *answer_size, 1 << 10);
		return true;
	case READ_MORE: /* than the limits allow */
		while (ss_worker_read(0x1000, bytes, sizeof(bytes)) > 0)
			;
		return true;
	case CHECK:
		*answer = bytes;
		*answer_size = 2;
		bytes[0] = ss_worker_check(4711);
		bytes[1] = ss_worker_check(4712);
		return true;
	case ASK: /* is answered with what it says, twice */
		*answer = bytes;
		*answer_size = ss_worker_ask("what?", 5, bytes, sizeof(bytes));
		*answer_size += ss_worker_ask("what?", 5, bytes + *answer_size, 3);
		return true;
	case CRASH:
		(void)signal(SIGSEGV, SIG_DFL); /* cmocka has a handler */
		(void)raise(SIGSEGV);
		return true;
	case HANG:
		for (;;)
			(void)pause();
	case EXIT:
		_exit(7);
	case LIE:
		(void)!write(STDIN_FILENO, &lies[request->bytes[1]], sizeof(*lies));
		for (;;) /* to return would be to end with the module */
			(void)pause();
	case READ_RANGES:
		*answer = bytes;
		*answer_size = read_ranges(bytes);
		return true;
	case LARGE_RANGE:
		(void)!write(STDIN_FILENO, &large, sizeof(large));
		for (;;)
			(void)pause();
	case TRACE:
		(void)kill(getppid(), 0);
		return true;
	default:
		return false;
	}
}

static struct ss_worker *make(void)
{
	const struct ss_worker_options options = {
		.serve = serve,
		.timeout_ms = TIMEOUT_MS,
		.confinement = { .receives = FILES },
	};
	struct ss_worker *worker = NULL;

	assert_null(ss_worker_new(&options, &worker));
	return worker;
}

struct reads {
	size_t calls;
	size_t bytes;
	uint64_t last;
};

/* The lowest byte of each address; nothing beyond 0x2010. */
static size_t read_memory(void *data, uint64_t address, void *ret, size_t size)
{
	struct reads *reads = data;
	uint8_t *bytes = ret;

	reads->calls++;
	reads->bytes += size;
	reads->last = address;
	if (address >= 0x2000)
		size = SS_MIN(size, (size_t)0x10);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(address + i);
	return size;
}

static void read_many(void *data, struct ss_memory_range *ranges, size_t count)
{
	struct reads *reads = data;
	struct reads each = {};

	for (size_t i = 0; i < count; i++)
		ranges[i].done = read_memory(&each, ranges[i].address, ranges[i].bytes,
					     ranges[i].size);
	reads->calls++;
}

static void start(struct ss_worker *worker)
{
	assert_null(ss_worker_start(worker));
	assert_true(ss_worker_is_running(worker));
}

/* The worker asks its owner for memory, within limits; without memory it gets none. */
TEST(test_reads)
{
	const uint8_t orders[] = { READ, READ_MORE, READ_RANGES };
	struct ss_worker *worker = make();
	struct reads reads = {};
	struct ss_worker_memory memory = { .read = read_memory,
					   .data = &reads,
					   .max_bytes = MAX_BYTES };
	struct ss_worker_request request = { .bytes = orders, .size = 1 };
	struct ss_sandbox_failure failure = {};
	const uint8_t *answer;
	size_t size;

	start(worker);
	assert_true(ss_worker_call(worker, &request, &memory, &answer, &size, &failure));
	assert_int_equal(size, 20);
	assert_int_equal(reads.calls, 2);
	assert_int_equal(reads.last, 0x2000);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(answer[i], i < 4 ? i : i - 4);
	assert_true(ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
	assert_int_equal(size, 0);
	request.bytes = &orders[1];
	reads = (struct reads){};
	assert_true(ss_worker_call(worker, &request, &memory, &answer, &size, &failure));
	assert_int_equal(reads.bytes, MAX_BYTES);
	request.bytes = &orders[2];
	reads = (struct reads){};
	assert_true(ss_worker_call(worker, &request, &memory, &answer, &size, &failure));
	assert_int_equal(reads.calls, RANGES);
	assert_int_equal(reads.last, RANGES * PAGE);
	assert_int_equal(size, 2 * RANGES);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(answer[i], 1);
	/* All at once */
	memory.read_ranges = read_many;
	reads = (struct reads){};
	assert_true(ss_worker_call(worker, &request, &memory, &answer, &size, &failure));
	assert_int_equal(reads.calls, 1);
	assert_int_equal(size, 2 * RANGES);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(answer[i], 1);
	assert_true(ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
	assert_int_equal(answer[1], 0);
	ss_worker_free(worker);
}

static bool check_thread(void *data, pid_t tid)
{
	struct reads *reads = data;

	reads->calls++;
	return tid == 4711;
}

/* It asks whether a thread has moved; without an answer it has. */
TEST(test_checks)
{
	const uint8_t order = CHECK;
	struct ss_worker *worker = make();
	struct reads reads = {};
	struct ss_worker_memory memory = { .read = read_memory, .data = &reads };
	const struct ss_worker_request request = { .bytes = &order, .size = 1 };
	struct ss_sandbox_failure failure = {};
	const uint8_t *answer;
	size_t size;

	start(worker);
	assert_true(ss_worker_call(worker, &request, &memory, &answer, &size, &failure));
	assert_int_equal(size, 2);
	assert_int_equal(answer[0], 0);
	memory.check = check_thread;
	assert_true(ss_worker_call(worker, &request, &memory, &answer, &size, &failure));
	assert_int_equal(reads.calls, 2);
	assert_int_equal(answer[0], 1);
	assert_int_equal(answer[1], 0);
	ss_worker_free(worker);
}

static size_t repeat(void *data, const void *bytes, size_t size, void *ret, size_t max)
{
	(void)data;
	assert_true(2 * size <= SS_SANDBOX_ASK_MAX);
	memcpy(ret, bytes, SS_MIN(size, max));
	if (max > size)
		memcpy((char *)ret + size, bytes, SS_MIN(size, max - size));
	return 2 * size;
}

/* It asks for anything else; the answer is cut to what it has room for. */
TEST(test_asks)
{
	const uint8_t order = ASK;
	struct ss_worker *worker = make();
	struct ss_worker_memory memory = { .ask = repeat };
	const struct ss_worker_request request = { .bytes = &order, .size = 1 };
	struct ss_sandbox_failure failure = {};
	const uint8_t *answer;
	size_t size;

	start(worker);
	assert_true(ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
	assert_int_equal(size, 0);
	assert_true(ss_worker_call(worker, &request, &memory, &answer, &size, &failure));
	assert_int_equal(size, 13);
	assert_memory_equal(answer, "what?what?wha", 13);
	ss_worker_free(worker);
}

/* Sends an order, which must fail. */
static void assert_fails(struct ss_worker *worker, enum order order, uint8_t number,
			 enum ss_sandbox_cause cause, int code, int32_t module)
{
	const uint8_t bytes[] = { (uint8_t)order, number };
	const struct ss_worker_request request = { .bytes = bytes,
						   .size = sizeof(bytes) };
	struct ss_sandbox_failure failure = {};
	const uint8_t *answer;
	size_t size;

	start(worker);
	assert_false(ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
	assert_int_equal(failure.cause, cause);
	assert_int_equal(failure.code, code);
	assert_int_equal(failure.module, module);
	assert_false(ss_worker_is_running(worker));
}

TEST(test_requests)
{
	struct ss_worker *worker = make();
	struct ss_sandbox_failure failure;
	const uint8_t *answer = NULL;
	size_t size = 0;

	start(worker);
	memset(big, 'e', sizeof(big));
	for (size_t length = 1; length <= sizeof(big); length *= 7) {
		const struct ss_worker_request request = { .bytes = big, .size = length };
		assert_true(
			ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
		assert_int_equal(size, length);
		assert_memory_equal(answer, big, length);
	}
	const struct ss_worker_request request = { .bytes = (const uint8_t *)"b",
						   .size = 1 };
	assert_true(ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
	assert_int_equal(size, sizeof(big));
	ss_worker_free(worker);
}

/* More than one message may carry. */
TEST(test_files)
{
	static const int counts[] = { 1, 252, 253, 254, FILES };
	struct ss_worker *worker = make();
	struct ss_sandbox_failure failure;
	int files[FILES];

	start(worker);
	for (size_t i = 0; i < FILES; i++) {
		files[i] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		assert_true(files[i] >= 0);
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		const struct ss_worker_request request = {
			.bytes = (const uint8_t *)"f, and a few bytes",
			.size = 18,
			.files = files,
			.file_count = (size_t)counts[i],
		};
		const uint8_t *answer;
		size_t size;
		uint32_t count = 0;
		assert_true(
			ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
		assert_int_equal(size, sizeof(count));
		memcpy(&count, answer, sizeof(count));
		assert_int_equal(count, counts[i]);
	}
	for (size_t i = 0; i < FILES; i++)
		assert_int_equal(close(files[i]), 0);
	ss_worker_free(worker);
}

TEST(test_failures)
{
	struct ss_worker *worker = make();

#if !defined(__SANITIZE_ADDRESS__) /* it makes an exit of a crash */
	assert_fails(worker, CRASH, 0, SS_SANDBOX_SIGNAL, SIGSEGV, MODULE);
	assert_fails(worker, TRACE, 0, SS_SANDBOX_SIGNAL, SIGSYS, MODULE);
#endif
	assert_fails(worker, HANG, 0, SS_SANDBOX_TIMEOUT, 0, MODULE);
	assert_fails(worker, EXIT, 0, SS_SANDBOX_EXIT, 7, MODULE);
	assert_fails(worker, NO_MEMORY, 0, SS_SANDBOX_MEMORY, 0, MODULE);
	for (uint8_t i = 0; i < LIES; i++)
		assert_fails(worker, LIE, i, SS_SANDBOX_INVALID, 0, MODULE);
	assert_fails(worker, LARGE_RANGE, 0, SS_SANDBOX_INVALID, 0, MODULE);
	ss_worker_free(worker);
}

TEST(test_killed_and_rejected)
{
	const struct ss_worker_request request = { .bytes = (const uint8_t *)"e",
						   .size = 1 };
	struct ss_worker *worker = make();
	struct ss_sandbox_failure failure;
	const uint8_t *answer;
	size_t size;

	assert_false(ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
	assert_int_equal(failure.cause, SS_SANDBOX_NO_CHILD);
	start(worker);
	assert_int_equal(kill(ss_worker_pid(worker), SIGKILL), 0);
	assert_false(ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
	assert_int_equal(failure.cause, SS_SANDBOX_SIGNAL);
	assert_int_equal(failure.code, SIGKILL);
	assert_int_equal(failure.module, -1);
	start(worker);
	assert_true(ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
	ss_worker_reject(worker, &failure);
	assert_int_equal(failure.cause, SS_SANDBOX_INVALID);
	assert_false(ss_worker_is_running(worker));
	start(worker);
	assert_true(ss_worker_call(worker, &request, NULL, &answer, &size, &failure));
	ss_worker_free(worker);
}
