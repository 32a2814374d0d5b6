#include "sandbox/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/vector.h"
#include "sandbox/sandbox.h"

enum {
	BUFFER_MIN = 256 << 10,
	RETRY_NS = 1000000, /* after ETOOMANYREFS: too many files are in flight */
	MEANWHILE_MS = 1,
	LOOK_MS = 100,
	SLOW_MS = 1000,
};

/* A longer answer is invalid. */
static const uint64_t answer_max = (uint64_t)256 << 20;

struct bytes {
	SS_VECTOR(uint8_t) items;
};

struct ss_worker {
	struct ss_worker_options options;
	struct ss_worker_page *page;
	bool owns_page;
	struct ss_child child;
	bool is_mute; /* the channel is a pipe: what the worker requests is ignored */
	struct bytes received; /* from the worker */
	struct bytes supplied; /* to it */
};

struct ss_worker_page *ss_worker_page_new(void)
{
	void *page = mmap(NULL, sizeof(struct ss_worker_page), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

void ss_worker_page_free(struct ss_worker_page *page)
{
	if (page)
		(void)munmap(page, sizeof(*page)); /* it is mapped */
}

struct ss_error *ss_worker_new(const struct ss_worker_options *options,
			       struct ss_worker **ret)
{
	struct ss_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return ss_error_no_memory();
	worker->options = *options;
	worker->child = (struct ss_child)SS_NO_CHILD;
	worker->owns_page = !options->page;
	worker->page = options->page ? options->page : ss_worker_page_new();
	if (!worker->page) {
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
	(void)ss_child_end(&worker->child); /* or it is abandoned */
	if (worker->owns_page)
		ss_worker_page_free(worker->page);
	ss_vector_free(&worker->received.items);
	ss_vector_free(&worker->supplied.items);
	free(worker);
}

/* The worker ------------------------------------------------------------ */

/* What it has received of a request. */
struct inbox {
	struct bytes bytes;
	SS_VECTOR(int) files;
};

static ssize_t receive_some(const struct ss_worker *worker, struct inbox *inbox)
{
	struct bytes *bytes = &inbox->bytes;
	uint8_t *end = bytes->items.items + bytes->items.count;
	const size_t room = bytes->items.capacity - bytes->items.count;
	struct ss_child_files files;

	/* A filter may allow nothing else. */
	if (worker->options.confinement.receives == 0)
		return read(STDIN_FILENO, end, room);
	ssize_t n = ss_child_receive(STDIN_FILENO, end, room, 0, &files);
	if (files.truncated) /* files are taken in order: none may be missing */
		return -1;
	for (size_t i = 0; i < files.count; i++) {
		int *slot = ss_vector_push(&inbox->files);
		if (!slot)
			return -1;
		*slot = files.items[i];
	}
	return n;
}

/* Receives until so many bytes are there. False: the owner has ended, or no memory. */
static bool receive(const struct ss_worker *worker, struct inbox *inbox, size_t expected)
{
	if (!ss_vector_reserve(&inbox->bytes.items, SS_MAX(expected, (size_t)BUFFER_MIN)))
		return false;
	while (inbox->bytes.items.count < expected) {
		ssize_t n = receive_some(worker, inbox);
		if (n <= 0)
			return false;
		inbox->bytes.items.count += (size_t)n;
	}
	return true;
}

/* Reads or writes all parts. False: there is no owner, or no socket. */
static bool transfer(ssize_t (*call)(int, const struct iovec *, int), struct iovec *parts,
		     size_t count)
{
	while (count > 0) {
		ssize_t n = parts->iov_len ? call(STDIN_FILENO, parts, (int)count) : 0;
		if (parts->iov_len && n <= 0)
			return false;
		while (count > 0 && (size_t)n >= parts->iov_len) {
			n -= (ssize_t)parts->iov_len;
			parts++;
			count--;
		}
		if (count > 0) {
			parts->iov_base = (char *)parts->iov_base + n;
			parts->iov_len -= (size_t)n;
		}
	}
	return true;
}

static bool send_message(const struct ss_worker_message *message, const void *bytes,
			 size_t size)
{
	struct iovec parts[] = { { ss_drop_const(message), sizeof(*message) },
				 { ss_drop_const(bytes), size } };

	return transfer(writev, parts, 2);
}

/* Sends a request, with size bytes; those of the reply go to ret, which has room for what was
   wanted. False: there are none. */
static bool exchange(struct ss_worker_message *message, const void *bytes, void *ret)
{
	const uint64_t wanted = message->wanted;
	struct iovec parts[] = { { message, sizeof(*message) }, { ret, wanted } };

	if (!send_message(message, bytes, message->size))
		return false;
	/* The bytes mostly come together with the message. */
	ssize_t n = readv(STDIN_FILENO, parts, wanted ? 2 : 1);
	if (n < (ssize_t)sizeof(*message) || message->size > wanted)
		return false;
	const size_t done = (size_t)n - sizeof(*message);
	parts[1].iov_base = (char *)ret + done;
	parts[1].iov_len = message->size - done;
	return transfer(readv, &parts[1], 1);
}

size_t ss_worker_read(uint64_t address, void *bytes, size_t size)
{
	struct ss_worker_message message = {
		.kind = SS_WORKER_READ,
		.value = address,
		.wanted = SS_MIN(size, (size_t)SS_WORKER_READ_MAX),
	};

	return exchange(&message, NULL, bytes) ? message.size : 0;
}

bool ss_worker_check(pid_t tid)
{
	struct ss_worker_message message = { .kind = SS_WORKER_CHECK,
					     .value = (uint64_t)tid };

	return exchange(&message, NULL, NULL) && message.value == 1;
}

size_t ss_worker_ask(const void *bytes, size_t size, void *ret, size_t max)
{
	struct ss_worker_message message = {
		.kind = SS_WORKER_ASK,
		.size = size,
		.wanted = SS_MIN(max, (size_t)SS_SANDBOX_ASK_MAX),
	};

	return size <= SS_SANDBOX_ASK_MAX && exchange(&message, bytes, ret) ?
		       message.size :
		       0;
}

void ss_worker_read_ranges(struct ss_memory_range *ranges, size_t count)
{
	struct ss_worker_range out[SS_MEMORY_RANGES_MAX];
	uint32_t sizes[SS_MEMORY_RANGES_MAX];
	struct iovec parts[SS_MEMORY_RANGES_MAX];
	struct ss_worker_message message = { .kind = SS_WORKER_RANGES,
					     .size = count * sizeof(*out) };
	struct iovec head[] = { { &message, sizeof(message) },
				{ sizes, count * sizeof(*sizes) } };

	for (size_t i = 0; i < count; i++) {
		out[i] = (struct ss_worker_range){ ranges[i].address, ranges[i].size };
		ranges[i].done = 0;
	}
	if (count == 0 || !send_message(&message, out, message.size) ||
	    !transfer(readv, head, 2))
		return;
	for (size_t i = 0; i < count; i++)
		parts[i] = (struct iovec){ ranges[i].bytes,
					   SS_MIN(sizes[i], ranges[i].size) };
	if (!transfer(readv, parts, count))
		return;
	for (size_t i = 0; i < count; i++)
		ranges[i].done = SS_MIN(sizes[i], ranges[i].size);
}

/* False: the worker must end. */
static bool serve(struct ss_worker *worker, const struct ss_worker_request *request)
{
	struct ss_worker_message message = { .kind = SS_WORKER_ANSWER };
	const uint8_t *answer = NULL;
	size_t size = 0;

	if (!worker->options.serve(worker->options.data, request, &worker->page->module,
				   &answer, &size))
		return false;
	worker->page->module = -1;
	message.size = size;
	return send_message(&message, answer, size);
}

static bool serve_next(struct ss_worker *worker, struct inbox *inbox)
{
	struct ss_worker_message message;

	inbox->bytes.items.count = 0;
	inbox->files.count = 0;
	if (!receive(worker, inbox, sizeof(message)))
		return false;
	memcpy(&message, inbox->bytes.items.items, sizeof(message));
	if (!receive(worker, inbox, sizeof(message) + message.size))
		return false;
	const struct ss_worker_request request = {
		.bytes = inbox->bytes.items.items + sizeof(message),
		.size = message.size,
		.files = inbox->files.items,
		.file_count = inbox->files.count,
	};
	return serve(worker, &request);
}

static int run(void *data, int channel)
{
	struct ss_worker *worker = data;
	const struct ss_worker_request empty = {};
	struct inbox inbox = {};
	unsigned refused = 0;

	(void)channel; /* it is standard input, too */
	ss_confine_files(&worker->options.confinement);
	bool is_confined = ss_confine(&worker->options.confinement, &refused);
	worker->page->refused = refused;
	if (!is_confined)
		return EXIT_FAILURE;
	if (worker->options.at_once && !serve(worker, &empty))
		return EXIT_SUCCESS;
	while (serve_next(worker, &inbox))
		;
	return EXIT_SUCCESS;
}

/* The owner ------------------------------------------------------------- */

/* The sanitizers write their findings to stderr. */
#if defined(__SANITIZE_ADDRESS__)
enum { MESSAGES = 0 };
#else
enum { MESSAGES = SS_CHILD_NOWHERE };
#endif

struct ss_error *ss_worker_start(struct ss_worker *worker)
{
	const struct ss_worker_options *options = &worker->options;
	struct ss_child_options child = {
		.channel = SS_CHILD_STREAM,
		.streams = { SS_CHILD_CHANNEL,
			     options->output ? options->output : SS_CHILD_NOWHERE,
			     options->messages ? options->messages : MESSAGES },
		.death_signal = SIGKILL,
		.block_signals = true,
		.on_this_cpu = true,
	};

	*worker->page = (struct ss_worker_page){ .module = -1 };
	struct ss_error *error = ss_child_start(&child, run, worker, &worker->child);
	worker->is_mute = error && options->at_once;
	if (worker->is_mute) {
		ss_error_free(error);
		child.channel = SS_CHILD_WRITES;
		error = ss_child_start(&child, run, worker, &worker->child);
	}
	if (!error)
		(void)fcntl(worker->child.channel, F_SETFL, O_NONBLOCK); /* cannot fail */
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
	return worker->page->refused;
}

bool ss_worker_end(struct ss_worker *worker)
{
	return ss_child_end(&worker->child);
}

/* One call. */
struct call {
	struct ss_worker *worker;
	const struct ss_worker_memory *memory;
	uint64_t begin_ns;
	uint64_t asked_ns; /* in the ask function; does not count */
	uint64_t looked_ns;
	bool is_slow;
	size_t reads;
	uint64_t bytes; /* that were read */
};

enum result { ANSWERED, ENDED, LATE, INVALID, STOPPED };

/* Whether the worker may go on. Not all of it each time: a look takes longer than most requests. */
static enum result look(struct call *call)
{
	const struct ss_worker_options *options = &call->worker->options;
	const uint64_t now_ns = ss_now_ns();
	const uint64_t spent_ns = now_ns - call->begin_ns - call->asked_ns;

	if (spent_ns >= options->timeout_ms * SS_NS_PER_MS)
		return LATE;
	if (now_ns - call->looked_ns < LOOK_MS * SS_NS_PER_MS)
		return ANSWERED;
	call->looked_ns = now_ns;
	if (options->stop && options->stop(options->owner))
		return STOPPED;
	/* It reads a file whose server does not respond. */
	if (options->blocked_ms && ss_child_blocked_ns(&call->worker->child) >=
					   options->blocked_ms * SS_NS_PER_MS)
		return LATE;
	if (!call->is_slow && spent_ns >= SLOW_MS * SS_NS_PER_MS) {
		call->is_slow = true;
		if (options->slow)
			options->slow(options->owner, call->worker->page->step);
	}
	return ANSWERED;
}

/* Waits until the channel is ready, or a while. */
static enum result wait_for_channel(struct call *call, short events)
{
	const struct ss_worker_options *options = &call->worker->options;
	struct pollfd pollfd = { .fd = call->worker->child.channel, .events = events };
	const bool is_busy = options->meanwhile && options->meanwhile(options->owner);

	if (poll(&pollfd, 1,
		 is_busy ? MEANWHILE_MS : (int)SS_MIN(options->timeout_ms, LOOK_MS)) <
		    0 &&
	    errno != EINTR)
		ss_sleep_ns(SS_NS_PER_MS); /* a filter refuses it */
	return look(call);
}

/* files: of a request, or NULL. */
static enum result send_all(struct call *call, const struct ss_worker_message *message,
			    const void *bytes, const struct ss_worker_request *files)
{
	const size_t all = sizeof(*message) + message->size;
	const size_t file_count = files ? files->file_count : 0;
	size_t sent_files = 0;

	for (size_t done = 0; done < all;) {
		const size_t at = done > sizeof(*message) ? done - sizeof(*message) : 0;
		struct iovec parts[2] = {
			{ (char *)ss_drop_const(message) + done,
			  sizeof(*message) - done },
			{ (char *)ss_drop_const(bytes) + at, message->size - at },
		};
		const size_t first = done >= sizeof(*message);
		size_t count = 2 - first;
		struct ss_child_files more;
		more.count = SS_MIN(file_count - sent_files, SS_ARRAY_SIZE(more.items));
		/* Files need a byte that carries them. */
		if (file_count - sent_files > more.count)
			parts[first].iov_len = count = 1;
		if (more.count)
			memcpy(more.items, files->files + sent_files,
			       more.count * sizeof(int));
		ssize_t n = ss_child_send(call->worker->child.channel, &parts[first],
					  count, more.count ? &more : NULL);
		if (n > 0) {
			done += (size_t)n;
			sent_files += more.count;
			continue;
		}
		if (errno != EINTR && errno != EAGAIN && errno != ETOOMANYREFS)
			return ENDED;
		if (errno == ETOOMANYREFS)
			ss_sleep_ns(RETRY_NS);
		enum result result = wait_for_channel(call, POLLOUT);
		if (result != ANSWERED)
			return result;
	}
	return ANSWERED;
}

/* Whether a message of the worker is one that it may send. */
static bool is_valid(const struct ss_worker_message *message)
{
	switch (message->kind) {
	case SS_WORKER_ANSWER:
		return message->size <= answer_max;
	case SS_WORKER_READ:
		return message->size == 0 && message->wanted <= SS_WORKER_READ_MAX;
	case SS_WORKER_RANGES:
		return message->size > 0 &&
		       message->size % sizeof(struct ss_worker_range) == 0 &&
		       message->size / sizeof(struct ss_worker_range) <=
			       SS_MEMORY_RANGES_MAX;
	case SS_WORKER_CHECK:
		return message->size == 0;
	case SS_WORKER_ASK:
		return message->size <= SS_SANDBOX_ASK_MAX &&
		       message->wanted <= SS_SANDBOX_ASK_MAX;
	default:
		return false;
	}
}

/* Receives one message; what follows it is in received, behind it. */
static enum result receive_message(struct call *call, struct ss_worker_message *ret)
{
	struct bytes *bytes = &call->worker->received;
	uint64_t expected = sizeof(*ret);
	bool is_ready = false;

	bytes->items.count = 0;
	while (bytes->items.count < expected) {
		enum result result = is_ready ? ANSWERED : wait_for_channel(call, POLLIN);
		if (result != ANSWERED)
			return result;
		if (!ss_vector_reserve(&bytes->items,
				       SS_MAX(expected, (uint64_t)BUFFER_MIN)))
			return INVALID;
		ssize_t n = read(call->worker->child.channel,
				 bytes->items.items + bytes->items.count,
				 bytes->items.capacity - bytes->items.count);
		is_ready = n > 0;
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return ENDED;
		bytes->items.count += n > 0 ? (size_t)n : 0;
		if (expected == sizeof(*ret) && bytes->items.count >= expected) {
			memcpy(ret, bytes->items.items, sizeof(*ret));
			if (!is_valid(ret))
				return INVALID;
			expected += ret->size;
		}
	}
	/* It sends nothing else until it has a reply, or a request. */
	return bytes->items.count == expected ? ANSWERED : INVALID;
}

/* What the worker requests ---------------------------------------------- */

static bool may_read(const struct call *call)
{
	const struct ss_worker_memory *memory = call->memory;

	return memory && (!memory->max_reads || call->reads < memory->max_reads) &&
	       (!memory->max_bytes || call->bytes < memory->max_bytes);
}

static size_t read_for_worker(struct call *call, uint64_t address, void *bytes,
			      size_t size)
{
	if (!may_read(call) || !call->memory->read)
		return 0;
	call->reads++;
	call->bytes += size;
	const size_t done = call->memory->read(call->memory->data, address, bytes, size);
	return SS_MIN(done, size);
}

static bool check_for_worker(struct call *call, uint64_t tid)
{
	if (!may_read(call) || !call->memory->check || tid < 1 || tid > INT32_MAX)
		return false;
	call->reads++;
	return call->memory->check(call->memory->data, (pid_t)tid);
}

/* Stopping threads takes time, for which the worker is not to blame. */
static size_t ask_for_worker(struct call *call, const void *bytes, size_t size, void *ret,
			     size_t max)
{
	const uint64_t begin_ns = ss_now_ns();

	if (!call->memory || !call->memory->ask)
		return 0;
	size_t answered = call->memory->ask(call->memory->data, bytes, size, ret, max);
	call->asked_ns += ss_now_ns() - begin_ns;
	return SS_MIN(answered, max);
}

static void read_ranges_for_worker(struct call *call, struct ss_memory_range *ranges,
				   size_t count)
{
	const struct ss_worker_memory *memory = call->memory;

	if (memory && memory->read_ranges && may_read(call)) {
		call->reads += count;
		for (size_t i = 0; i < count; i++)
			call->bytes += ranges[i].size;
		memory->read_ranges(memory->data, ranges, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		ranges[i].done = read_for_worker(call, ranges[i].address, ranges[i].bytes,
						 ranges[i].size);
}

/* Returns how many bytes the ranges have; 0: too many, or none. */
static size_t take_ranges(const uint8_t *at, size_t count, struct ss_memory_range *ret)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++, at += sizeof(struct ss_worker_range)) {
		struct ss_worker_range range;
		memcpy(&range, at, sizeof(range));
		if (range.size > SS_MEMORY_RANGES_BYTES - total)
			return 0;
		ret[i] = (struct ss_memory_range){ .address = range.address,
						   .size = (size_t)range.size };
		total += (size_t)range.size;
	}
	return total;
}

/* Makes the reply in supplied: the sizes, then the bytes. False: it is invalid. */
static bool supply_ranges(struct call *call, const uint8_t *more, size_t count,
			  struct ss_worker_message *reply)
{
	struct bytes *out = &call->worker->supplied;
	struct ss_memory_range ranges[SS_MEMORY_RANGES_MAX];
	const size_t head = count * sizeof(uint32_t);
	const size_t total = take_ranges(more, count, ranges);

	if (total == 0 || !ss_vector_reserve(&out->items, head + total))
		return false;
	uint8_t *bytes = out->items.items + head;
	for (size_t i = 0; i < count; bytes += ranges[i].size, i++)
		ranges[i].bytes = bytes;
	read_ranges_for_worker(call, ranges, count);
	reply->size = head;
	for (size_t i = 0; i < count; i++) {
		const uint32_t size = (uint32_t)SS_MIN(ranges[i].done, ranges[i].size);
		memcpy(out->items.items + i * sizeof(size), &size, sizeof(size));
		memmove(out->items.items + reply->size, ranges[i].bytes, size);
		reply->size += size;
	}
	return true;
}

static enum result supply(struct call *call, const struct ss_worker_message *request)
{
	struct ss_worker_message reply = { .kind = SS_WORKER_REPLY };
	const uint8_t *more = call->worker->received.items.items + sizeof(*request);
	struct bytes *out = &call->worker->supplied;

	if (!ss_vector_reserve(&out->items, (size_t)SS_SANDBOX_ASK_MAX))
		return INVALID;
	switch (request->kind) {
	case SS_WORKER_READ:
		reply.size = read_for_worker(call, request->value, out->items.items,
					     request->wanted);
		break;
	case SS_WORKER_CHECK:
		reply.value = check_for_worker(call, request->value);
		break;
	case SS_WORKER_ASK:
		reply.size = ask_for_worker(call, more, request->size, out->items.items,
					    request->wanted);
		break;
	default:
		if (!supply_ranges(call, more,
				   request->size / sizeof(struct ss_worker_range),
				   &reply))
			return INVALID;
	}
	return send_all(call, &reply, out->items.items, NULL);
}

static enum result receive_answer(struct call *call)
{
	struct ss_worker_message message;
	enum result result;

	while ((result = receive_message(call, &message)) == ANSWERED) {
		if (message.kind == SS_WORKER_ANSWER)
			return ANSWERED;
		if (!call->worker->is_mute)
			result = supply(call, &message);
		if (result != ANSWERED)
			return result;
	}
	return result;
}

/* Ends the worker and describes its failure. */
static void take_failure(struct ss_worker *worker, enum result result,
			 struct ss_sandbox_failure *ret)
{
	if (!ss_worker_end(worker) && result == ENDED)
		result = LATE;
	*ret = ss_confine_failure(worker->child.status, worker->page->refused);
	ret->step = (enum ss_sandbox_step)SS_MIN(worker->page->step,
						 (uint32_t)SS_SANDBOX_OUTPUT);
	if (result == LATE)
		ret->cause = SS_SANDBOX_TIMEOUT;
	else if (result == INVALID)
		ret->cause = SS_SANDBOX_INVALID;
	else if (ret->cause == SS_SANDBOX_EXIT && ret->code == EXIT_SUCCESS)
		ret->cause = SS_SANDBOX_MEMORY;
	if (ret->cause != SS_SANDBOX_SIGNAL && ret->cause != SS_SANDBOX_EXIT)
		ret->code = 0;
	if (!ss_confine_was_killed(ret))
		ret->module = worker->page->module;
}

bool ss_worker_call(struct ss_worker *worker, const struct ss_worker_request *request,
		    const struct ss_worker_memory *memory, const uint8_t **answer,
		    size_t *answer_size, struct ss_sandbox_failure *failure)
{
	const struct ss_worker_message message = { .kind = SS_WORKER_WORK,
						   .size = request ? request->size : 0 };
	const uint64_t now_ns = ss_now_ns();
	struct call call = { .worker = worker,
			     .memory = memory,
			     .begin_ns = now_ns,
			     .looked_ns = now_ns };
	enum result result = ANSWERED;

	*failure = (struct ss_sandbox_failure){ .cause = SS_SANDBOX_NO_CHILD,
						.step = SS_SANDBOX_UNWIND,
						.module = -1 };
	if (!ss_worker_is_running(worker))
		return false;
	if (request)
		result = send_all(&call, &message, request->bytes, request);
	if (result == ANSWERED)
		result = receive_answer(&call);
	if (result != ANSWERED) {
		take_failure(worker, result, failure);
		return false;
	}
	*answer = worker->received.items.items + sizeof(message);
	*answer_size = worker->received.items.count - sizeof(message);
	return true;
}

void ss_worker_reject(struct ss_worker *worker, struct ss_sandbox_failure *failure)
{
	take_failure(worker, INVALID, failure);
}
