#include "cli/analysis.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/advice.h"
#include "cli/escaped_copy.h"
#include "cli/failure.h"
#include "cli/sanitizer.h"
#include "profile/label.h"

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

void ss_analysis_attach(const struct ss_options *options,
			const struct ss_analysis_owner *owner, struct ss_capture *capture)
{
	if (options->cache && owner->known)
		ss_cache_attach(options->cache, capture, owner->uid);
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

const char *ss_analysis_snapshot_module(const void *data, size_t index)
{
	const struct ss_snapshot *snapshot = data;

	return index < ss_snapshot_module_count(snapshot) ?
		       ss_snapshot_module(snapshot, index)->path :
		       NULL;
}

static void write_failure(const struct ss_sandbox_failure *failure, const char *path,
			  FILE *out)
{
	char how[128];

	ss_sandbox_failure_describe(failure, how, sizeof(how));
	if (failure->module < 0)
		(void)fprintf(out, "the analysis %s", how);
	else
		(void)fprintf(out, "the analysis of %s %s, module skipped",
			      path ? ss_label_base(path) : "a module", how);
}

char *ss_analysis_problem(const struct ss_sandbox_attempt *attempt,
			  ss_analysis_module_path *module_path, const void *data,
			  bool raw)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = attempt->failure_count ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	for (size_t i = 0; i < attempt->failure_count; i++) {
		const struct ss_sandbox_failure *failure = &attempt->failures[i];
		bool known = module_path && failure->module >= 0;
		(void)fputs(i ? "; " : "", out);
		write_failure(failure,
			      known ? module_path(data, (size_t)failure->module) : NULL,
			      out);
	}
	if (attempt->level == SS_SANDBOX_RAW && !raw)
		(void)fputs("; names are missing", out);
	if (attempt->level == SS_SANDBOX_PLACES)
		(void)fputs("; only the innermost frame of each thread is shown", out);
	else if (attempt->no_waits)
		(void)fputs("; waits are missing", out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

struct ss_error *ss_analysis_diagnose(const struct ss_sandbox_attempt *attempt,
				      const struct ss_options *options,
				      const struct ss_capture *capture,
				      struct ss_snapshot *snapshot)
{
	const struct ss_diagnose_options diagnose_options = {
		.size = sizeof(diagnose_options),
		.waits = options->waits,
	};
	struct ss_error *error = NULL;

	if (attempt->level == SS_SANDBOX_PLACES || attempt->no_waits || options->no_waits)
		return NULL;
	ss_sandbox_enter(attempt, SS_SANDBOX_DIAGNOSE);
	if (capture && attempt->level == SS_SANDBOX_NAMES)
		error = ss_snapshot_add_related(snapshot, capture, attempt->session,
						options->symbols.flags);
	return error ? error : ss_snapshot_diagnose(snapshot, &diagnose_options);
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
