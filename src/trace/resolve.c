#include "trace/resolve.h"

#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "sandbox/sandbox.h"

/* MEMORY_MAX: of an answer that was read. */
enum { TIMEOUT_MS = 120000, CPU_S = 110, MEMORY_MAX = 64 << 20 };

static const uint64_t memory_limit = (uint64_t)4 << 30;

struct reader {
	const struct ss_capture *capture;
	size_t spec_count;
	struct ss_resolved *resolved;
	size_t memory; /* that may still be allocated */
	bool no_memory;
};

static const char *keep_text(void *data, const uint8_t *bytes, size_t size)
{
	struct reader *reader = data;

	if (size > SS_RESOLVE_NAME_MAX)
		return NULL;
	const char *text =
		ss_intern_bytes(reader->resolved->strings, (const char *)bytes, size);
	reader->no_memory |= !text;
	return text;
}

static void *allocate(void *data, size_t size, bool owned)
{
	struct reader *reader = data;

	(void)owned; /* all of it is */
	if (size > reader->memory)
		return NULL;
	reader->memory -= size;
	void *bytes = calloc(1, size);
	reader->no_memory |= !bytes;
	return bytes;
}

static uint64_t limit(void *data, unsigned table)
{
	const struct reader *reader = data;

	return table == SS_RESOLVE_SPECS   ? reader->spec_count :
	       table == SS_RESOLVE_MODULES ? reader->capture->modules.count :
					     UINT64_MAX;
}

/* Stores a reference to the module. False: there is no such module or spec. An index that is absent from
   the answer is 0, and was not checked. */
static bool refer(const struct reader *reader, uint32_t spec, uint32_t module,
		  struct ss_module_impl **ret)
{
	if (spec >= reader->spec_count || module >= reader->capture->modules.count)
		return false;
	*ret = ss_module_ref(reader->capture->modules.items[module]);
	return true;
}

/* Takes references to the modules. False: it is not valid, or has too many of something. */
static bool complete(const struct reader *reader)
{
	struct ss_resolved *resolved = reader->resolved;

	for (size_t i = 0; i < resolved->probes.count; i++) {
		struct ss_resolved_probe *at = &resolved->probes.items[i];
		if (!refer(reader, at->spec, at->module_index, &at->module) ||
		    at->return_count > SS_RESOLVE_RETURNS_MAX)
			return false;
	}
	for (size_t i = 0; i < resolved->notes.count; i++) {
		struct ss_resolved_note *at = &resolved->notes.items[i];
		if (!refer(reader, at->spec, at->module_index, &at->module))
			return false;
	}
	return resolved->probes.count <= SS_RESOLVE_FUNCTIONS_MAX;
}

static struct ss_error *read_answer(struct reader *data, int file)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	int result = lseek(file, 0, SEEK_SET) == 0 ?
			     ss_io_read_all(file, SS_RESOLVE_OUTPUT_MAX, &text) :
			     0;

	if (result < 0)
		return ss_error_new_errno(-result, "cannot read the list of functions");
	struct ss_schema_reader reader = {
		.cursor = { .at = (const uint8_t *)text.bytes,
			    .end = (const uint8_t *)text.bytes + text.size },
		.text = keep_text,
		.allocate = allocate,
		.limit = limit,
		.data = data,
	};
	data->resolved->strings = ss_intern_new();
	if (!data->resolved->strings)
		return ss_error_no_memory();
	ss_schema_read(&reader, &ss_resolved_schema, data->resolved);
	if (data->no_memory)
		return ss_error_no_memory();
	return !reader.cursor.failed && complete(data) ?
		       NULL :
		       ss_error_new(SS_ERROR_SYSTEM,
				    "the child process that searches for "
				    "functions gave an invalid answer");
}

struct ss_error *ss_resolved_read(int file, const struct ss_capture *capture,
				  size_t spec_count, struct ss_resolved *ret)
{
	struct ss_resolved resolved = {};
	struct reader reader = { .capture = capture,
				 .spec_count = spec_count,
				 .resolved = &resolved,
				 .memory = MEMORY_MAX };
	struct ss_error *error = read_answer(&reader, file);

	if (error)
		ss_resolved_deinit(&resolved);
	else
		*ret = resolved;
	return error;
}

static struct ss_error *run(const struct ss_capture *capture, size_t spec_count,
			    const struct ss_job *job, struct ss_resolved *ret)
{
	struct ss_job_outcome outcome = SS_JOB_NO_OUTCOME;
	char cause[128];
	struct ss_error *error = ss_job_run(job, &outcome);

	if (error)
		return error;
	if (outcome.failed) {
		const int32_t at = outcome.failure.module;
		outcome.failure.step = SS_SANDBOX_SYMBOLIZE;
		ss_sandbox_failure_describe(&outcome.failure, cause, sizeof(cause));
		error = ss_error_new(
			SS_ERROR_SYSTEM,
			"the child process that searches for functions %s, in %s", cause,
			at >= 0 && (size_t)at < capture->modules.count ?
				capture->modules.items[at]->pub.path :
				"no module");
	} else if (outcome.error) {
		error = take_ptr(outcome.error);
	} else {
		error = ss_resolved_read(outcome.output, capture, spec_count, ret);
	}
	ss_job_outcome_deinit(&outcome);
	return error;
}

struct ss_error *ss_resolve(const struct ss_capture *capture,
			    const struct ss_target *target, const char *const *specs,
			    size_t spec_count, bool scopes, const char *debug_dir,
			    struct ss_resolved *ret)
{
	struct ss_resolve_request request = {
		.modules = capture->modules.items,
		.module_count = capture->modules.count,
		.specs = specs,
		.spec_count = spec_count,
		.scopes = scopes,
		.debug_dir = debug_dir,
	};
	_cleanup_(ss_worker_page_cleanup) struct ss_worker_page *page =
		ss_worker_page_new();
	struct ss_job job = {
		.work = ss_resolve_read,
		.data = &request,
		.page = page,
		.timeout_ms = TIMEOUT_MS,
		.blocked_ms = TIMEOUT_MS,
		.confinement = { .memory = memory_limit,
				 .output = SS_RESOLVE_OUTPUT_MAX,
				 .cpu_s = CPU_S },
	};

	if (!page)
		return ss_error_no_memory();
	struct ss_error *unknown =
		ss_target_owner(target, &job.confinement.uid, &job.confinement.gid);
	job.confinement.change_ids = !unknown;
	ss_error_free(unknown);
	return run(capture, spec_count, &job, ret);
}
