#include "cli/analysis.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/advice.h"
#include "cli/escaped_copy.h"
#include "cli/failure.h"
#include "cli/sanitizer.h"
#include "report/profile.h"
#include "sandbox/sandbox.h"

enum { BUFFER_SIZE = 64 << 10, FIRST_FD = STDERR_FILENO + 1 };

/* Default of --max-total, in bytes. */
#define STACKS_DEFAULT ((uint64_t)256 << 20)

static void print_slow(void *data, enum ss_sandbox_step step)
{
	(void)data;
	if (isatty(STDERR_FILENO) == 1)
		ss_failure_warn("%s...", ss_sandbox_step_name(step));
}

struct ss_analysis_owner ss_analysis_owner_of(const struct ss_target *target)
{
	struct ss_analysis_owner owner = {};
	_cleanup_error_ struct ss_error *error =
		ss_target_owner(target, &owner.uid, &owner.gid);

	owner.known = !error;
	return owner;
}

void ss_analysis_configure(struct ss_analysis *analysis,
			   struct ss_session_options *session,
			   const struct ss_options *options,
			   const struct ss_analysis_owner *owner, size_t captures,
			   struct ss_file_requests *requests)
{
	const char *debug_dir = options->symbols.debug_dir;
	const char *sysroot = options->symbols.sysroot;

	*session = (struct ss_session_options){ .size = sizeof(*session),
						.debug_dir = debug_dir,
						.sysroot = sysroot };
	ss_file_requests_attach(requests, session);
	if (owner->may_read) /* not with more rights than the child has */
		requests->sysroot = NULL;
	analysis->options = (struct ss_sandbox_options){
		.session = session,
		/* Files of --debug-dir and --sysroot may be readable for the caller
		   only. */
		.change_ids = owner->known && !debug_dir && (!sysroot || owner->may_read),
		.uid = owner->uid,
		.gid = owner->gid,
		.timeout_ms = options->interpret_ms,
		.cache = owner->known ? options->cache : NULL,
		.max_requests = SS_FILE_REQUEST_ROUNDS,
		.more_memory =
			(options->max_total ? options->max_total : STACKS_DEFAULT) *
			captures,
	};
	analysis->verbose = options->common.verbose;
}

struct ss_error *ss_analysis_run(const struct ss_analysis *analysis,
				 struct ss_sandbox_result **ret)
{
	struct ss_sandbox_options options = analysis->options;

	options.size = sizeof(options);
	options.slow = print_slow;
	struct ss_error *error =
		ss_sandbox_run(&options, analysis->work, analysis->data, ret);
	if (!error)
		ss_sanitizer_exit(*ret);
	return error;
}

struct ss_error *ss_analysis_copy(const struct ss_analysis *analysis,
				  const struct ss_sandbox_result *result,
				  struct ss_output *output)
{
	struct ss_error *error = NULL;

	if (output && analysis->binary)
		error = ss_plain_copy(result->output, ss_output_file(output));
	else if (output)
		error = ss_escaped_copy(result->output, analysis->color,
					ss_output_file(output));
	if (!error && output)
		error = ss_output_flush(output);
	if (!error)
		error = ss_escaped_copy(result->messages, false, stderr);
	if (!error && analysis->verbose && result->partial)
		ss_failure_warn("the kernel refused part of the sandbox");
	return error;
}

struct ss_error *ss_analysis_open(const struct ss_sandbox_attempt *attempt, FILE **ret)
{
	return ss_analysis_open_fd(attempt->output, ret);
}

struct ss_error *ss_analysis_open_fd(int output, FILE **ret)
{
	_cleanup_close_ int fd = fcntl(output, F_DUPFD_CLOEXEC, FIRST_FD);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (!out)
		return ss_error_no_memory();
	(void)take_fd(fd);			       /* the stream owns it */
	(void)setvbuf(out, NULL, _IOFBF, BUFFER_SIZE); /* best effort */
	*ret = out;
	return NULL;
}

struct ss_error *ss_analysis_close(FILE *out, struct ss_error *error)
{
	bool failed = ferror(out) != 0;
	int closed = fclose(out);
	int errnum = errno;

	if (error || (!failed && closed == 0))
		return error;
	return ss_error_new_errno(failed ? EIO : errnum, "cannot write the result");
}

char *ss_analysis_advice(const struct ss_sandbox_attempt *attempt,
			 const struct ss_snapshot *snapshot,
			 const struct ss_options *options, bool privileged)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	const struct ss_advice_options advice = {
		.privileged = privileged,
		.debuginfod = options->symbols.debuginfod,
		/* The files of a container are those of its own packages. */
		.packages = !options->symbols.sysroot &&
			    (!process->inner_pid || process->inner_pid == process->pid),
		.session = attempt->session,
	};

	return options->symbols.raw || attempt->level != SS_SANDBOX_NAMES ?
		       NULL :
		       ss_advice_new(snapshot, &advice);
}
