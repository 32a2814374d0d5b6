#include "sandbox/worker.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"

enum {
	PAGE = 4096,
	HEAP_SIZE = 16 << 20,
	KILLED_MAX = 2, /* children that are replaced after SIGKILL */
};

/* The child ------------------------------------------------------------- */

static void copy_text(const char *text, char *ret, size_t size)
{
	size_t length = text ? strnlen(text, size - 1) : 0;

	if (length)
		memcpy(ret, text, length);
	ret[length] = '\0';
}

static void copy_error(const struct ss_error *error, struct ss_worker_page *page)
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

static bool work(void *data, const struct ss_worker_request *request,
		 volatile int32_t *module_at, const uint8_t **answer, size_t *answer_size)
{
	const struct ss_job *job = data;

	(void)request;
	(void)module_at; /* it is in the page */
	(void)answer;
	(void)answer_size;
	use_large_pages();
	struct ss_error *error = job->work(job->data, job->page, STDOUT_FILENO);
	if (error && ss_error_code(error) == SS_ERROR_NO_MEMORY)
		return false;
	if (error)
		copy_error(error, job->page);
	return true;
}

/* The parent ------------------------------------------------------------ */

static struct ss_error *make_error(const struct ss_worker_page *page)
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

/* The job, and whether its owner wants it to end. */
struct owner {
	const struct ss_job *job;
	bool is_stopped;
};

static bool stop(void *data)
{
	struct owner *owner = data;

	owner->is_stopped = owner->job->stop && owner->job->stop(owner->job->data);
	return owner->is_stopped;
}

static void report_slow(void *data, uint32_t step)
{
	const struct owner *owner = data;

	if (owner->job->slow)
		owner->job->slow(owner->job->data, step);
}

/* The child could change the page until it ended, so only this copy is read. */
static void copy_page(const struct ss_job *job, struct ss_worker_page *ret)
{
	memcpy(ret, (const void *)job->page, sizeof(*ret));
	ret->error_message[sizeof(ret->error_message) - 1] = '\0';
	ret->error_remedy[sizeof(ret->error_remedy) - 1] = '\0';
}

static struct ss_error *run_child(const struct ss_job *job,
				  struct ss_job_outcome *outcome)
{
	struct owner owner = { .job = job };
	const struct ss_worker_options options = {
		.serve = work,
		.data = ss_drop_const(job),
		.at_once = true,
		.timeout_ms = job->timeout_ms,
		.blocked_ms = job->blocked_ms,
		.stop = stop,
		.slow = report_slow,
		.owner = &owner,
		.output = outcome->output,
		.messages = outcome->messages,
		.page = job->page,
		.confinement = job->confinement,
	};
	struct ss_worker *worker = NULL;
	const uint8_t *answer;
	size_t size;
	struct ss_error *error = ss_worker_new(&options, &worker);

	if (!error)
		error = ss_worker_start(worker);
	if (!error) {
		outcome->failed = !ss_worker_call(worker, NULL, &job->memory, &answer,
						  &size, &outcome->failure);
		if (!ss_worker_end(worker) && !outcome->failed) {
			outcome->failed = true;
			outcome->failure.cause = SS_SANDBOX_TIMEOUT;
		}
		outcome->interrupted = outcome->failed && owner.is_stopped;
	}
	ss_worker_free(worker);
	return error;
}

static struct ss_error *run_once(const struct ss_job *job, struct ss_job_outcome *ret)
{
	struct ss_job_outcome outcome = { .output = ss_io_create_unnamed(),
					  .messages = ss_io_create_unnamed() };
	struct ss_error *error = NULL;

	if (outcome.output < 0 || outcome.messages < 0)
		error = ss_error_new_errno(errno,
					   "cannot create files for a child process");
	else
		error = run_child(job, &outcome);
	if (error) {
		ss_job_outcome_deinit(&outcome);
		return error;
	}
	copy_page(job, &outcome.page);
	if (!outcome.failed)
		outcome.error = make_error(&outcome.page);
	*ret = outcome;
	return NULL;
}

static bool is_killed(const struct ss_job_outcome *outcome)
{
	return outcome->failed && !outcome->interrupted &&
	       ss_confine_was_killed(&outcome->failure);
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
