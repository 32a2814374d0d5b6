#include "sandbox/worker.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/vector.h"
#include "sandbox/sandbox.h"

enum {
	BUFFER_MIN = 256 << 10,
	RETRY_NS = 1000000, /* after ETOOMANYREFS: too many files are in flight */
	MEANWHILE_MS = 1,
};

/* A longer answer is invalid. */
static const uint64_t answer_max = (uint64_t)256 << 20;

/* Shared by owner and worker. */
struct board {
	volatile int32_t module;
	volatile uint32_t refused;
};

struct bytes {
	SS_VECTOR(uint8_t) items;
};

struct ss_worker {
	struct ss_worker_options options;
	struct board *board;
	struct ss_child child;
	struct bytes answer;
	struct bytes supplied; /* to the worker */
};

struct ss_error *ss_worker_new(const struct ss_worker_options *options,
			       struct ss_worker **ret)
{
	struct ss_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return ss_error_no_memory();
	worker->options = *options;
	worker->child = (struct ss_child)SS_NO_CHILD;
	worker->board = mmap(NULL, sizeof(*worker->board), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (worker->board == MAP_FAILED) {
		free(worker);
		return ss_error_no_memory();
	}
	*ret = worker;
	return NULL;
}

void ss_worker_free(struct ss_worker *worker)
{
	if (!worker)
		return;
	(void)ss_child_end(&worker->child);		     /* or it is abandoned */
	(void)munmap(worker->board, sizeof(*worker->board)); /* it is mapped */
	ss_vector_free(&worker->answer.items);
	ss_vector_free(&worker->supplied.items);
	free(worker);
}

/* The worker ------------------------------------------------------------ */

struct inbox {
	struct bytes bytes;
	SS_VECTOR(int) files;
};

/* Receives until so many bytes are there. False: the owner has ended, or no memory. */
static bool receive(struct inbox *inbox, size_t expected)
{
	struct ss_child_files files;

	if (!ss_vector_reserve(&inbox->bytes.items, SS_MAX(expected, (size_t)BUFFER_MIN)))
		return false;
	while (inbox->bytes.items.count < expected) {
		ssize_t n = ss_child_receive(
			STDIN_FILENO, inbox->bytes.items.items + inbox->bytes.items.count,
			inbox->bytes.items.capacity - inbox->bytes.items.count, 0,
			&files);
		/* Files are taken in order: none may be missing. */
		if (n <= 0 || files.truncated)
			return false;
		inbox->bytes.items.count += (size_t)n;
		for (size_t i = 0; i < files.count; i++) {
			int *slot = ss_vector_push(&inbox->files);
			if (!slot)
				return false;
			*slot = files.items[i];
		}
	}
	return true;
}

static bool write_all(const void *bytes, size_t size)
{
	return ss_io_write_all(STDIN_FILENO, bytes, size) == 0;
}

/* The length of what is no answer, but asks for memory: a struct read_request follows. */
static const uint64_t read_length = UINT64_MAX - 1;

struct read_request {
	uint64_t length;
	uint64_t address;
	uint64_t size;
	uint64_t ranges; /* if not 0, so many follow */
	int64_t tid;	 /* if not 0, it asks for a check of that thread */
};

struct read_range {
	uint64_t address;
	uint64_t size;
};

static bool read_parts(struct iovec *parts, size_t count)
{
	while (count > 0) {
		if (parts->iov_len == 0) {
			parts++;
			count--;
			continue;
		}
		ssize_t n = readv(STDIN_FILENO, parts, (int)count);
		if (n <= 0)
			return false;
		while (n > 0) {
			size_t taken = SS_MIN((size_t)n, parts->iov_len);
			parts->iov_base = (char *)parts->iov_base + taken;
			parts->iov_len -= taken;
			n -= (ssize_t)taken;
			if (parts->iov_len == 0) {
				parts++;
				count--;
			}
		}
	}
	return true;
}

static bool read_all(void *bytes, size_t size)
{
	struct iovec part = { bytes, size };

	return read_parts(&part, 1);
}

size_t ss_worker_read(uint64_t address, void *bytes, size_t size)
{
	const struct read_request request = {
		.length = read_length,
		.address = address,
		.size = SS_MIN(size, (size_t)SS_WORKER_READ_MAX),
	};
	uint64_t done = 0;

	/* Without its owner there is nothing left to do. */
	if (!write_all(&request, sizeof(request)) || !read_all(&done, sizeof(done)) ||
	    done > request.size || !read_all(bytes, done))
		_exit(EXIT_SUCCESS);
	return done;
}

bool ss_worker_check(pid_t tid)
{
	const struct read_request request = { .length = read_length, .tid = tid };
	uint64_t unmoved = 0;

	if (!write_all(&request, sizeof(request)) || !read_all(&unmoved, sizeof(unmoved)))
		_exit(EXIT_SUCCESS);
	return unmoved != 0;
}

void ss_worker_read_ranges(struct ss_memory_range *ranges, size_t count)
{
	struct {
		struct read_request request;
		struct read_range ranges[SS_MEMORY_RANGES_MAX];
	} out = { .request = { .length = read_length, .ranges = count } };
	uint32_t sizes[SS_MEMORY_RANGES_MAX];
	struct iovec parts[SS_MEMORY_RANGES_MAX];
	const size_t head = offsetof(typeof(out), ranges);

	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++)
		out.ranges[i] = (struct read_range){ ranges[i].address, ranges[i].size };
	if (!write_all(&out, head + count * sizeof(*out.ranges)) ||
	    !read_all(sizes, count * sizeof(*sizes)))
		_exit(EXIT_SUCCESS);
	for (size_t i = 0; i < count; i++) {
		if (sizes[i] > ranges[i].size)
			_exit(EXIT_SUCCESS);
		ranges[i].done = sizes[i];
		parts[i] = (struct iovec){ ranges[i].bytes, sizes[i] };
	}
	if (!read_parts(parts, count))
		_exit(EXIT_SUCCESS);
}

/* False: the worker must end. */
static bool serve_one(const struct ss_worker *worker, struct inbox *inbox)
{
	struct bytes out = {};
	const uint8_t *answer = NULL;
	size_t size = 0;
	uint64_t length;

	inbox->bytes.items.count = 0;
	inbox->files.count = 0;
	if (!receive(inbox, sizeof(length)))
		return false;
	memcpy(&length, inbox->bytes.items.items, sizeof(length));
	if (!receive(inbox, sizeof(length) + length))
		return false;
	const struct ss_worker_request request = {
		.bytes = inbox->bytes.items.items + sizeof(length),
		.size = length,
		.files = inbox->files.items,
		.file_count = inbox->files.count,
	};
	if (!worker->options.serve(worker->options.data, &request, &worker->board->module,
				   &answer, &size))
		return false;
	worker->board->module = -1;
	length = size;
	if (!ss_vector_reserve(&out.items, sizeof(length) + size))
		return false;
	memcpy(out.items.items, &length, sizeof(length));
	if (size)
		memcpy(out.items.items + sizeof(length), answer, size);
	bool sent = write_all(out.items.items, sizeof(length) + size);
	ss_vector_free(&out.items);
	return sent;
}

static int run(void *data, int socket)
{
	struct ss_worker *worker = data;
	struct inbox inbox = {};
	unsigned refused = 0;

	(void)socket; /* it is standard input, too */
	ss_confine_files(&worker->options.confinement);
	bool is_confined = ss_confine(&worker->options.confinement, &refused);
	worker->board->refused = refused;
	if (!is_confined)
		return EXIT_FAILURE;
	while (serve_one(worker, &inbox))
		;
	return EXIT_SUCCESS;
}

/* The sanitizers write their findings to stderr. */
#if defined(__SANITIZE_ADDRESS__)
enum { MESSAGES = 0 };
#else
enum { MESSAGES = SS_CHILD_NOWHERE };
#endif

/* The owner ------------------------------------------------------------- */

static void set_timeouts(int socket, unsigned ms)
{
	const struct timeval limit = { .tv_sec = ms / 1000,
				       .tv_usec = (suseconds_t)(ms % 1000) * 1000 };

	/* Neither can fail: it is a socket. */
	(void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	(void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

struct ss_error *ss_worker_start(struct ss_worker *worker)
{
	const struct ss_child_options options = {
		.channel = SS_CHILD_STREAM,
		.streams = { SS_CHILD_CHANNEL, SS_CHILD_NOWHERE, MESSAGES },
		.death_signal = SIGKILL,
		.block_signals = true,
		.on_this_cpu = true,
	};

	worker->board->module = -1;
	struct ss_error *error = ss_child_start(&options, run, worker, &worker->child);
	if (!error)
		set_timeouts(worker->child.channel, worker->options.timeout_ms);
	return error;
}

bool ss_worker_is_running(const struct ss_worker *worker)
{
	return worker->child.pid > 0;
}

pid_t ss_worker_pid(const struct ss_worker *worker)
{
	return worker->child.pid;
}

unsigned ss_worker_refused(const struct ss_worker *worker)
{
	return worker->board->refused;
}

/* Waits until the socket is ready, or briefly. */
static void wait_for_socket(const struct ss_worker *worker, short events,
			    uint64_t deadline_ns)
{
	struct pollfd pollfd = { .fd = worker->child.channel, .events = events };
	int ready = 0;

	while (ready == 0 && ss_now_ns() < deadline_ns) {
		if (worker->options.meanwhile)
			(void)worker->options.meanwhile(worker->options.owner);
		ready = poll(&pollfd, 1, MEANWHILE_MS);
	}
	if (ready < 0)
		ss_sleep_ns(RETRY_NS); /* a filter refuses poll(2) */
}

/* Until there is an answer, or nothing else to do. */
static void work_meanwhile(const struct ss_worker *worker, uint64_t deadline_ns)
{
	struct pollfd pollfd = { .fd = worker->child.channel, .events = POLLIN };

	while (worker->options.meanwhile &&
	       worker->options.meanwhile(worker->options.owner) &&
	       ss_now_ns() < deadline_ns && poll(&pollfd, 1, MEANWHILE_MS) == 0)
		;
}

/* False: the worker has ended, or does not read in time. */
static bool send_request(const struct ss_worker *worker,
			 const struct ss_worker_request *request, uint64_t deadline_ns)
{
	uint64_t length = request->size;
	size_t done = 0; /* bytes, with the length */
	size_t files = 0;

	while (done < sizeof(length) + request->size) {
		struct ss_child_files sent = {
			.count = SS_MIN(request->file_count - files,
					SS_ARRAY_SIZE(sent.items)),
		};
		struct iovec iov[2];
		size_t count = 0;
		if (done < sizeof(length))
			iov[count++] = (struct iovec){ (char *)&length + done,
						       sizeof(length) - done };
		size_t at = done > sizeof(length) ? done - sizeof(length) : 0;
		iov[count++] = (struct iovec){ ss_drop_const(request->bytes + at),
					       request->size - at };
		/* A message needs at least one byte to carry files. */
		if (request->file_count - files > sent.count) {
			iov[0].iov_len = 1;
			count = 1;
		}
		if (sent.count)
			memcpy(sent.items, request->files + files,
			       sent.count * sizeof(int));
		ssize_t n = ss_child_send(worker->child.channel, iov, count, &sent,
					  MSG_DONTWAIT);
		int errnum = errno;
		if (n <= 0 && errnum != EINTR && errnum != ETOOMANYREFS &&
		    errnum != EAGAIN)
			return false;
		if (n <= 0 && ss_now_ns() >= deadline_ns)
			return false;
		if (n <= 0 && errnum == ETOOMANYREFS)
			ss_sleep_ns(RETRY_NS);
		if (n <= 0 && errnum == EAGAIN)
			wait_for_socket(worker, POLLOUT, deadline_ns);
		if (n <= 0)
			continue;
		done += (size_t)n;
		files += sent.count;
	}
	return true;
}

enum result { ANSWERED, ENDED, LATE, INVALID };

/* Reads memory for the worker, and the limits of that. */
struct supply {
	const struct ss_worker_memory *memory; /* or NULL */
	size_t calls;
	uint64_t bytes;
};

static enum result send_all(const struct ss_worker *worker, const void *bytes,
			    size_t size, uint64_t deadline_ns)
{
	struct iovec iov = { .iov_base = ss_drop_const(bytes), .iov_len = size };

	while (iov.iov_len > 0) {
		ssize_t n =
			ss_child_send(worker->child.channel, &iov, 1, NULL, MSG_DONTWAIT);
		int errnum = errno;
		if (n <= 0 && errnum != EINTR && errnum != EAGAIN)
			return ENDED;
		if (n <= 0 && ss_now_ns() >= deadline_ns)
			return LATE;
		if (n <= 0 && errnum == EAGAIN)
			wait_for_socket(worker, POLLOUT, deadline_ns);
		if (n <= 0)
			continue;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
	}
	return ANSWERED;
}

static bool may_read(const struct supply *supply)
{
	return supply->memory && supply->calls < SS_WORKER_READS_MAX &&
	       supply->bytes < SS_WORKER_READ_BYTES;
}

static size_t read_for_worker(struct supply *supply, uint64_t address, void *bytes,
			      size_t size)
{
	if (!may_read(supply))
		return 0;
	supply->calls++;
	supply->bytes += size;
	return supply->memory->read(supply->memory->data, address, bytes, size);
}

static bool check_for_worker(struct supply *supply, int64_t tid)
{
	if (!may_read(supply) || !supply->memory->check || tid < 1 || tid > INT32_MAX)
		return false;
	supply->calls++;
	return supply->memory->check(supply->memory->data, (pid_t)tid);
}

static void read_ranges_for_worker(struct supply *supply, struct ss_memory_range *ranges,
				   size_t count)
{
	const struct ss_worker_memory *memory = supply->memory;

	if (memory && memory->read_ranges && may_read(supply)) {
		supply->calls += count;
		for (size_t i = 0; i < count; i++)
			supply->bytes += ranges[i].size;
		memory->read_ranges(memory->data, ranges, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		ranges[i].done = read_for_worker(supply, ranges[i].address,
						 ranges[i].bytes, ranges[i].size);
}

/* Reads the ranges that follow a request, and returns their size; 0: there are too many bytes. */
static size_t take_ranges(const struct ss_worker *worker, size_t count,
			  struct ss_memory_range *ret)
{
	const uint8_t *at = worker->answer.items.items + sizeof(struct read_request);
	size_t total = 0;

	for (size_t i = 0; i < count; i++, at += sizeof(struct read_range)) {
		struct read_range range;
		memcpy(&range, at, sizeof(range));
		if (range.size > SS_MEMORY_RANGES_BYTES - total)
			return 0;
		ret[i] = (struct ss_memory_range){ .address = range.address,
						   .size = (size_t)range.size };
		total += (size_t)range.size;
	}
	return total;
}

/* Answers a request for several pieces: their sizes, then their bytes. */
static enum result supply_ranges(struct ss_worker *worker, struct supply *supply,
				 size_t count, uint64_t deadline_ns)
{
	const size_t head = count * sizeof(uint32_t);
	struct ss_memory_range ranges[SS_MEMORY_RANGES_MAX];
	struct bytes *out = &worker->supplied;
	size_t total = take_ranges(worker, count, ranges);

	if (total == 0 || !ss_vector_reserve(&out->items, head + total))
		return INVALID;
	uint8_t *bytes = out->items.items + head;
	for (size_t i = 0; i < count; bytes += ranges[i].size, i++)
		ranges[i].bytes = bytes;
	read_ranges_for_worker(supply, ranges, count);
	out->items.count = head;
	for (size_t i = 0; i < count; i++) {
		const uint32_t size = (uint32_t)ranges[i].done;
		memcpy(out->items.items + i * sizeof(size), &size, sizeof(size));
		memmove(out->items.items + out->items.count, ranges[i].bytes, size);
		out->items.count += size;
	}
	worker->answer.items.count = 0;
	return send_all(worker, out->items.items, out->items.count, deadline_ns);
}

/* Answers a request for memory, and drops it. */
static enum result supply(struct ss_worker *worker, struct supply *supply,
			  uint64_t deadline_ns)
{
	struct {
		uint64_t done;
		uint8_t bytes[SS_WORKER_READ_MAX];
	} out; /* setting all of it to 0 would take longer than most reads */
	struct read_request request;

	memcpy(&request, worker->answer.items.items, sizeof(request));
	if (request.ranges)
		return supply_ranges(worker, supply, request.ranges, deadline_ns);
	worker->answer.items.count = 0;
	if (request.tid) {
		uint64_t unmoved = check_for_worker(supply, request.tid);
		return send_all(worker, &unmoved, sizeof(unmoved), deadline_ns);
	}
	if (request.size > sizeof(out.bytes))
		return INVALID;
	out.done = read_for_worker(supply, request.address, out.bytes, request.size);
	return send_all(worker, &out, sizeof(out.done) + out.done, deadline_ns);
}

static enum result receive_answer(struct ss_worker *worker,
				  const struct ss_worker_memory *memory,
				  uint64_t deadline_ns)
{
	struct bytes *answer = &worker->answer;
	struct supply state = { .memory = memory };
	uint64_t expected = sizeof(uint64_t);
	bool known = false; /* its length */
	bool reads = false; /* it is a request for memory */

	answer->items.count = 0;
	while (answer->items.count < expected || !known) {
		if (!ss_vector_reserve(&answer->items,
				       SS_MAX(expected, (size_t)BUFFER_MIN)))
			return INVALID;
		work_meanwhile(worker, deadline_ns);
		ssize_t n = recv(worker->child.channel,
				 answer->items.items + answer->items.count,
				 answer->items.capacity - answer->items.count, 0);
		int errnum = errno;
		if (n == 0 || (n < 0 && errnum != EINTR && errnum != EAGAIN))
			return ENDED;
		if (n > 0)
			answer->items.count += (size_t)n;
		if (!known && answer->items.count >= sizeof(expected)) {
			known = true;
			memcpy(&expected, answer->items.items, sizeof(expected));
			if (expected > answer_max && expected != read_length)
				return INVALID;
			reads = expected == read_length;
			expected = reads ? sizeof(struct read_request) :
					   expected + sizeof(expected);
		}
		if (known && reads &&
		    answer->items.count >= sizeof(struct read_request)) {
			struct read_request request;
			memcpy(&request, answer->items.items, sizeof(request));
			if (request.ranges > SS_MEMORY_RANGES_MAX)
				return INVALID;
			expected = sizeof(request) +
				   request.ranges * sizeof(struct read_range);
		}
		if (known && reads && answer->items.count >= expected) {
			/* The worker sends nothing else until it has the bytes. */
			if (answer->items.count != expected)
				return INVALID;
			enum result result = supply(worker, &state, deadline_ns);
			if (result != ANSWERED)
				return result;
			known = reads = false;
			expected = sizeof(uint64_t);
		}
		if ((answer->items.count < expected || !known) &&
		    ss_now_ns() >= deadline_ns)
			return LATE;
	}
	return answer->items.count == expected ? ANSWERED : INVALID;
}

/* Ends the worker and describes its failure. */
static void take_failure(struct ss_worker *worker, enum result result,
			 struct ss_sandbox_failure *ret)
{
	int32_t module = worker->board->module;
	(void)ss_child_end(&worker->child); /* or it is abandoned */
	*ret = ss_confine_failure(worker->child.status, worker->board->refused);
	if (result == LATE)
		ret->cause = SS_SANDBOX_TIMEOUT;
	else if (result == INVALID)
		ret->cause = SS_SANDBOX_INVALID;
	else if (ret->cause == SS_SANDBOX_EXIT && ret->code == EXIT_SUCCESS)
		ret->cause = SS_SANDBOX_MEMORY;
	if (ret->cause != SS_SANDBOX_SIGNAL && ret->cause != SS_SANDBOX_EXIT)
		ret->code = 0;
	if (!ss_confine_was_killed(ret))
		ret->module = module;
}

bool ss_worker_call(struct ss_worker *worker, const struct ss_worker_request *request,
		    const struct ss_worker_memory *memory, const uint8_t **answer,
		    size_t *answer_size, struct ss_sandbox_failure *failure)
{
	uint64_t deadline_ns =
		ss_now_ns() + (uint64_t)worker->options.timeout_ms * SS_NS_PER_MS;
	enum result result = ENDED;

	*failure = (struct ss_sandbox_failure){ .cause = SS_SANDBOX_NO_CHILD,
						.step = SS_SANDBOX_UNWIND,
						.module = -1 };
	if (!ss_worker_is_running(worker))
		return false;
	if (send_request(worker, request, deadline_ns))
		result = receive_answer(worker, memory, deadline_ns);
	else if (ss_now_ns() >= deadline_ns)
		result = LATE;
	if (result != ANSWERED) {
		take_failure(worker, result, failure);
		return false;
	}
	*answer = worker->answer.items.items + sizeof(uint64_t);
	*answer_size = worker->answer.items.count - sizeof(uint64_t);
	return true;
}

void ss_worker_reject(struct ss_worker *worker, struct ss_sandbox_failure *failure)
{
	take_failure(worker, INVALID, failure);
}
