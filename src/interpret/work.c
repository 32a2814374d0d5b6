/*
 * The confined process that interprets: what it may do and ask for, and how its failures are worded.
 */
#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "data/session.h"
#include "interpret/interpret.h"

struct ss_sandbox_options ss_interpret_confine(const struct ss_interpret_options *options)
{
	struct ss_file_requests *files = options->files;

	struct ss_sandbox_options ret = {
		.size = sizeof(ret),
		.session = { .size = sizeof(ret.session),
			     .debug_dir = options->debug_dir,
			     .sysroot = options->sysroot },
		/* Files of a debug directory or sysroot may be readable for the caller only. */
		.change_ids = options->owner_known && !options->debug_dir &&
			      (!options->sysroot || options->owner_reads_sysroot),
		.uid = options->uid,
		.gid = options->gid,
		.timeout_ms = options->timeout_ms,
		.cache = options->owner_known ? options->cache : NULL,
		.more_memory = options->more_memory,
		.max_output = options->max_output,
		.first_level = options->raw ? SS_SANDBOX_RAW : SS_SANDBOX_NAMES,
		.last_level = options->last_level,
		.keep_modules = options->keep_modules,
		.max_requests = files ? SS_FILE_REQUEST_ROUNDS : 0,
	};
	if (files)
		ret.files = ss_file_requests_attach(
			files,
			/* not with more rights than it has */
			options->owner_reads_sysroot ? NULL : options->sysroot);
	return ret;
}

/* Work without captures ------------------------------------------------------ */

struct confined {
	const struct ss_interpret_options *options;
	ss_sandbox_work *work;
};

static struct ss_error *run_work(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct confined *confined = data;

	return confined->work(confined->options->data, attempt);
}

static void answer(void *data, const void *bytes, size_t size)
{
	const struct confined *confined = data;

	ss_file_requests_answer(confined->options->files, bytes, size);
}

static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct confined *confined = data;

	return confined->options->read(confined->options->data, address, bytes, size);
}

static bool must_stop(void *data)
{
	const struct confined *confined = data;

	return confined->options->stop(confined->options->data);
}

static void report_slow(void *data, enum ss_sandbox_step step)
{
	const struct confined *confined = data;

	confined->options->slow(confined->options->data, step);
}

struct ss_error *ss_interpret_work(const struct ss_interpret_options *options,
				   ss_sandbox_work *work, struct ss_sandbox_result **ret)
{
	struct confined confined = { .options = options, .work = work };
	struct ss_sandbox_options sandbox = ss_interpret_confine(options);

	sandbox.answer = options->files ? answer : NULL;
	sandbox.read = options->read ? read_memory : NULL;
	sandbox.stop = options->stop ? must_stop : NULL;
	sandbox.slow = options->slow ? report_slow : NULL;
	return ss_sandbox_run(&sandbox, run_work, &confined, ret);
}

/* Failures ------------------------------------------------------------------ */

static void add_failure(const struct ss_sandbox_failure *failure, const char *path,
			struct ss_buffer *text)
{
	char how[128];

	ss_sandbox_failure_describe(failure, how, sizeof(how));
	if (failure->module < 0) {
		ss_buffer_printf(text, "the analysis %s", how);
		return;
	}
	ss_buffer_printf(text, "the analysis of %s %s, module skipped",
			 path ? ss_path_base(path) : "a module", how);
}

char *ss_interpret_problem(const struct ss_sandbox_attempt *attempt, bool raw,
			   ss_module_path_function *path, const void *data)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	size_t count = attempt->failure_count;

	for (size_t i = 0; i < count; i++) {
		int32_t module = attempt->failures[i].module;
		ss_buffer_printf(&text, "%s", i ? "; " : "");
		add_failure(&attempt->failures[i],
			    path && module >= 0 ? path(data, (size_t)module) : NULL,
			    &text);
	}
	if (count && attempt->level == SS_SANDBOX_RAW && !raw)
		ss_buffer_printf(&text, "; names are missing");
	if (count && attempt->level == SS_SANDBOX_PLACES)
		ss_buffer_printf(&text,
				 "; only the innermost frame of each thread is shown");
	else if (count && attempt->no_waits)
		ss_buffer_printf(&text, "; waits are missing");
	return text.size && !text.failed ? take_ptr(text.bytes) : NULL;
}
