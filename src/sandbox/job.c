#include "sandbox/job.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/io.h"
#include "sandbox/sandbox.h"

enum {
	SLOW_MS = 1000,
	LOOK_MS = 100,
	REQUESTS_AT_ONCE = 64, /* that are answered before the time is checked */
	PAGE = 4096,
	HEAP_SIZE = 16 << 20,
	KILLED_MAX = 2, /* children that are replaced after SIGKILL */
	REQUEST_MAX = SS_SANDBOX_ASK_MAX + 64, /* with its header */
};

struct ss_job_page *ss_job_page_new(void)
{
	void *page = mmap(NULL, sizeof(struct ss_job_page), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

void ss_job_page_free(struct ss_job_page *page)
{
	if (page)
		(void)munmap(page, sizeof(*page)); /* it is mapped */
}

/* One run, as parent and child see it. */
struct run {
	const struct ss_job *job;
	int output;
	int messages;
	/* The child requests memory over its channel, whose end tells the parent that the child
	   has ended. Where sockets are refused it is a pipe, and nothing can be requested. */
	struct ss_child child;
	/* Buffers of the parent */
	void *request;
	void *answer;
	int64_t asked_ms; /* in the ask function; not limited */
};

static void run_deinit(struct run *run)
{
	close_cleanup(&run->output);
	close_cleanup(&run->messages);
	free(run->request);
	free(run->answer);
}

static struct ss_error *run_init(struct run *run, const struct ss_job *job)
{
	run->job = job;
	run->output = ss_io_create_unnamed();
	run->messages = ss_io_create_unnamed();
	if (run->output < 0 || run->messages < 0)
		return ss_error_new_errno(errno,
					  "cannot create files for a child process");
	run->request = malloc(REQUEST_MAX);
	run->answer = malloc(SS_SANDBOX_ASK_MAX);
	if (!run->request || !run->answer)
		return ss_error_no_memory();
	*job->page = (struct ss_job_page){ .module = -1 };
	return NULL;
}

static int64_t now_ms(void)
{
	return (int64_t)(ss_now_ns() / SS_NS_PER_MS);
}

/* What the child asks for -------------------------------------------------- */

enum { READ, CHECK, ASK };

/* A request of the child; the bytes that it asks with follow. The answer is a byte, 1 if a
   checked thread is unchanged, and then the bytes that were read, or the answer. It is never
   empty: that would look like the end. */
struct request {
	uint32_t kind;
	uint32_t size; /* READ */
	uint64_t address;
	int32_t tid; /* CHECK */
};

/* Stopping threads takes time, for which the child is not to blame. */
static size_t ask_job(struct run *run, const void *bytes, size_t size, void *ret,
		      size_t max)
{
	const struct ss_job *job = run->job;
	int64_t begin = now_ms();
	size_t answered = job->ask ? job->ask(job->read_data, bytes, size, ret, max) : 0;

	run->asked_ms += now_ms() - begin;
	return SS_MIN(answered, max);
}

static bool send_answer(const struct run *run, const uint8_t *bytes, size_t size)
{
	return send(run->child.channel, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (ssize_t)size;
}

/* The child waits for each answer, so the socket always has room for it. asked: the bytes
   after the request. */
static void answer(struct run *run, const struct request *request, const uint8_t *asked,
		   size_t asked_size)
{
	const struct ss_job *job = run->job;
	uint8_t *bytes = run->answer;
	size_t size = SS_MIN(request->size, (uint32_t)SS_JOB_READ_MAX - 1);

	bytes[0] = 0;
	switch (request->kind) {
	case READ:
		size = job->read ? job->read(job->read_data, request->address, bytes + 1,
					     size) :
				   0;
		break;
	case CHECK:
		bytes[0] = job->check && job->check(job->read_data, request->tid);
		size = 0;
		break;
	case ASK:
		size = ask_job(run, asked, asked_size, bytes + 1, SS_SANDBOX_ASK_MAX - 1);
		break;
	default: /* it is hostile */
		size = 0;
	}
	if (!send_answer(run, bytes, 1 + size) && size > 0) {
		/* It is larger than the socket's buffer may be, or there is no memory: nothing
		   was read. */
		bytes[0] = 0;
		(void)send_answer(run, bytes, 1);
	}
}

/* Answers what the child asks for. False: it has ended, or closed the socket. */
static bool serve(struct run *run)
{
	struct request request;
	ssize_t size = read(run->child.channel, run->request, REQUEST_MAX);

	if (size >= (ssize_t)sizeof(request)) {
		memcpy(&request, run->request, sizeof(request));
		answer(run, &request, (const uint8_t *)run->request + sizeof(request),
		       (size_t)size - sizeof(request));
	}
	return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

/* The answer, with its first byte; returns its size. */
static size_t send_request(const struct request *request, const void *more,
			   size_t more_size, uint8_t *bytes, size_t size)
{
	const struct iovec parts[2] = { { ss_drop_const(request), sizeof(*request) },
					{ ss_drop_const(more), more_size } };
	ssize_t all = (ssize_t)(sizeof(*request) + more_size);

	if (writev(STDIN_FILENO, parts, more_size ? 2 : 1) != all)
		return 0;
	ssize_t got = read(STDIN_FILENO, bytes, size);
	return got > 0 ? (size_t)got : 0;
}

size_t ss_job_read(uint64_t address, void *bytes, size_t size)
{
	const struct request request = {
		.kind = READ,
		.address = address,
		.size = (uint32_t)SS_MIN(size, (size_t)SS_JOB_READ_MAX - 1),
	};
	uint8_t message[SS_JOB_READ_MAX];
	size_t got = request.size ?
			     send_request(&request, NULL, 0, message, sizeof(message)) :
			     0;

	if (got <= 1)
		return 0;
	memcpy(bytes, message + 1, got - 1);
	return got - 1;
}

bool ss_job_check(pid_t tid)
{
	const struct request request = { .kind = CHECK, .tid = tid };
	uint8_t message = 0;

	return send_request(&request, NULL, 0, &message, sizeof(message)) == 1 &&
	       message == 1;
}

size_t ss_job_ask(const void *bytes, size_t size, void *ret, size_t max)
{
	const struct request request = { .kind = ASK };
	size_t room = SS_MIN(max, (size_t)SS_SANDBOX_ASK_MAX - 1) + 1;
	_cleanup_free_ uint8_t *message = malloc(room);

	if (!message || size > SS_SANDBOX_ASK_MAX)
		return 0;
	size_t got = send_request(&request, bytes, size, message, room);
	if (got <= 1)
		return 0;
	memcpy(ret, message + 1, got - 1);
	return got - 1;
}

/* The child ------------------------------------------------------------- */

static void copy_text(const char *text, char *ret, size_t size)
{
	size_t length = text ? strnlen(text, size - 1) : 0;

	if (length)
		memcpy(ret, text, length);
	ret[length] = '\0';
}

static void copy_error(const struct ss_error *error, struct ss_job_page *page)
{
	page->error_code = ss_error_code(error);
	copy_text(ss_error_message(error), page->error_message,
		  sizeof(page->error_message));
	copy_text(ss_error_remedy(error), page->error_remedy, sizeof(page->error_remedy));
}

/* Symbol tables and the like are arrays of megabytes, and half of the time to fill them is
   spent on page faults: they get large pages, on the heap, where the next ones reuse them. */
static void use_large_pages(void)
{
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
	/* Refused: it takes longer. */
	(void)mallopt(M_MMAP_THRESHOLD, HEAP_SIZE);
	(void)mallopt(M_TRIM_THRESHOLD, 2 * HEAP_SIZE);
	char *heap = malloc(HEAP_SIZE - PAGE);

	if (heap) {
		char *page = heap + (PAGE - (uintptr_t)heap % PAGE) % PAGE;
		(void)madvise(page, HEAP_SIZE - 2 * PAGE, MADV_HUGEPAGE);
	}
	free(heap);
#endif
}

/* Standard input keeps the channel open until the child ends. */
static int work(void *data, int channel)
{
	const struct run *run = data;
	const struct ss_job *job = run->job;
	unsigned refused = 0;

	(void)channel; /* it is standard input, too */
	ss_confine_files(&job->confinement);
	bool is_confined = ss_confine(&job->confinement, &refused);
	job->page->refused = refused;
	if (!is_confined)
		return EXIT_FAILURE;
	use_large_pages();
	struct ss_error *error = job->work(job->data, job->page, STDOUT_FILENO);
	if (error)
		copy_error(error, job->page);
	job->page->finished = 1;
	return EXIT_SUCCESS;
}

/* The parent ------------------------------------------------------------ */

/* Waits for the end of the child, or until it closes the socket, or a while; serves it
   meanwhile. */
static bool wait_a_while(struct run *run, int64_t ms)
{
	struct pollfd end = { .fd = run->child.channel, .events = POLLIN };

	int count = poll(&end, 1, (int)SS_MIN(ms, (int64_t)LOOK_MS));
	/* A seccomp filter may refuse it. Reading does not block. */
	if (count < 0 && errno != EINTR)
		ss_sleep_ns(SS_NS_PER_MS);
	for (int i = 0; count > 0 && i < REQUESTS_AT_ONCE; i++) {
		if (!serve(run))
			return true;
		count = poll(&end, 1, 0);
	}
	return count < 0 && !serve(run);
}

/* Why the parent waits no longer. */
enum end {
	ENDED,
	/* It took too long, or is blocked in a system call: it reads a file whose server does
	   not respond. */
	TIMED_OUT,
	INTERRUPTED,
};

/* Unless it has ended, the child is to be killed. */
static enum end wait_for_end(struct run *run)
{
	const struct ss_job *job = run->job;
	int64_t begin = now_ms();
	int64_t looked = begin;
	int64_t spent = 0;
	bool slow = false;

	while (!wait_a_while(run, SS_MAX(job->timeout_ms - spent, (int64_t)0))) {
		const int64_t now = now_ms();
		spent = now - begin - run->asked_ms;
		if (spent >= job->timeout_ms)
			return TIMED_OUT;
		/* Not after each request: a look takes longer than most of them. */
		if (now - looked < LOOK_MS)
			continue;
		looked = now;
		if (job->stop && job->stop(job->stop_data))
			return INTERRUPTED;
		if (ss_child_blocked_ns(&run->child) >= job->blocked_ms * SS_NS_PER_MS)
			return TIMED_OUT;
		if (!slow && spent >= SLOW_MS && job->slow)
			job->slow(job->slow_data, job->page->step);
		slow |= spent >= SLOW_MS;
	}
	return ENDED;
}

static struct ss_error *start(struct run *run)
{
	struct ss_child_options options = {
		.channel = SS_CHILD_PACKETS,
		.streams = { SS_CHILD_CHANNEL, run->output, run->messages },
		.death_signal = SIGKILL,
		.on_this_cpu = true,
	};
	struct ss_error *error = ss_child_start(&options, work, run, &run->child);

	if (error) {
		ss_error_free(error);
		options.channel = SS_CHILD_WRITES;
		error = ss_child_start(&options, work, run, &run->child);
	}
	if (!error)
		(void)fcntl(run->child.channel, F_SETFL, O_NONBLOCK); /* cannot fail */
	return error;
}

/* The child could change the page until it ended, so only this copy is read. */
static void copy_page(const struct run *run, struct ss_job_page *ret)
{
	memcpy(ret, (const void *)run->job->page, sizeof(*ret));
	ret->error_message[sizeof(ret->error_message) - 1] = '\0';
	ret->error_remedy[sizeof(ret->error_remedy) - 1] = '\0';
}

static struct ss_error *make_error(const struct ss_job_page *page)
{
	enum ss_error_code code = SS_ERROR_SYSTEM;

	if (page->error_code == 0)
		return NULL;
	if (page->error_code <= SS_ERROR_CHANGED)
		code = (enum ss_error_code)page->error_code;
	struct ss_error *error = ss_error_new(
		code, "%s",
		*page->error_message ? page->error_message : "the analysis failed");
	return *page->error_remedy ?
		       ss_error_with_remedy(error, "%s", page->error_remedy) :
		       error;
}

static void set_cause(int status, enum end end, struct ss_job_outcome *outcome)
{
	const struct ss_sandbox_failure failure =
		ss_confine_failure(status, outcome->page.refused);

	outcome->failed = true;
	outcome->interrupted = end == INTERRUPTED;
	outcome->cause = failure.cause;
	outcome->code = failure.code;
	if (end == TIMED_OUT)
		outcome->cause = SS_SANDBOX_TIMEOUT;
	else if (failure.cause != SS_SANDBOX_EXIT)
		return;
	else if (outcome->page.error_code == SS_ERROR_NO_MEMORY)
		outcome->cause = SS_SANDBOX_MEMORY;
	else if (failure.code == EXIT_SUCCESS && outcome->page.finished)
		outcome->failed = false;
}

static bool is_killed(const struct ss_job_outcome *outcome)
{
	const struct ss_sandbox_failure failure = { .cause = outcome->cause,
						    .code = outcome->code };

	return outcome->failed && !outcome->interrupted &&
	       ss_confine_was_killed(&failure);
}

static struct ss_error *run_once(const struct ss_job *job, struct ss_job_outcome *ret)
{
	_cleanup_(run_deinit) struct run run = { .output = -1, .messages = -1 };
	struct ss_job_outcome outcome = SS_JOB_NO_OUTCOME;
	struct ss_error *error = run_init(&run, job);

	if (!error)
		error = start(&run);
	if (error)
		return error;
	enum end end = wait_for_end(&run);
	if (!ss_child_end(&run.child) && end == ENDED)
		end = TIMED_OUT;
	copy_page(&run, &outcome.page);
	set_cause(run.child.status, end, &outcome);
	if (is_killed(&outcome))
		outcome.page.module = -1;
	if (!outcome.failed)
		outcome.error = make_error(&outcome.page);
	outcome.output = take_fd(run.output);
	outcome.messages = take_fd(run.messages);
	*ret = outcome;
	return NULL;
}

struct ss_error *ss_job_run(const struct ss_job *job, struct ss_job_outcome *ret)
{
	const int more_output = job->confinement.more_output;
	struct ss_job_outcome outcome = SS_JOB_NO_OUTCOME;
	struct ss_error *error = run_once(job, &outcome);

	for (int i = 0; i < KILLED_MAX && !error && is_killed(&outcome); i++) {
		ss_job_outcome_deinit(&outcome);
		outcome = (struct ss_job_outcome)SS_JOB_NO_OUTCOME;
		if (more_output > 0 && (ftruncate(more_output, 0) < 0 ||
					lseek(more_output, 0, SEEK_SET) < 0))
			return ss_error_new_errno(errno, "cannot write to a file again");
		error = run_once(job, &outcome);
	}
	if (!error)
		*ret = outcome;
	return error;
}

void ss_job_outcome_deinit(struct ss_job_outcome *outcome)
{
	close_cleanup(&outcome->output);
	close_cleanup(&outcome->messages);
	ss_error_free(outcome->error);
}
