#include "trace/resolve.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "sandbox/sandbox.h"

enum { TIMEOUT_MS = 120000, CPU_S = 110 };

static const uint64_t memory_limit = (uint64_t)4 << 30;

void ss_resolved_deinit(struct ss_resolved *resolved)
{
	for (size_t i = 0; i < resolved->probes.count; i++) {
		free(resolved->probes.items[i].name);
		ss_module_unref(resolved->probes.items[i].module);
	}
	for (size_t i = 0; i < resolved->notes.count; i++) {
		free(resolved->notes.items[i].text);
		ss_module_unref(resolved->notes.items[i].module);
	}
	ss_vector_free(&resolved->probes);
	ss_vector_free(&resolved->returns);
	ss_vector_free(&resolved->notes);
}

struct reader {
	struct ss_cursor at;
	const struct ss_capture *capture;
	size_t spec_count;
	struct ss_resolved *resolved;
	bool invalid;
};

static char *read_name(struct reader *reader, size_t size)
{
	const uint8_t *bytes =
		size <= SS_RESOLVE_NAME_MAX ? ss_cursor_take(&reader->at, size) : NULL;

	reader->invalid |= !bytes;
	return bytes ? strndup((const char *)bytes, size) : NULL;
}

/* False: no memory, or invalid. */
static bool read_probe(struct reader *reader, const struct ss_resolve_record *record)
{
	struct ss_resolved *resolved = reader->resolved;

	if (resolved->probes.count >= SS_RESOLVE_FUNCTIONS_MAX) {
		reader->invalid = true;
		return false;
	}
	struct ss_resolved_probe *probe = ss_vector_push(&resolved->probes);
	if (!probe)
		return false;
	*probe = (struct ss_resolved_probe){
		.flags = record->flags,
		.spec = record->spec,
		.module = ss_module_ref(reader->capture->modules.items[record->module]),
		.address = record->address,
		.offset = record->offset,
		.counter = record->counter,
		.name = read_name(reader, record->name_size),
		.first = resolved->returns.count,
	};
	return probe->name;
}

static bool read_return(struct reader *reader, const struct ss_resolve_record *record)
{
	struct ss_resolved *resolved = reader->resolved;

	if (resolved->probes.count == 0 ||
	    resolved->probes.items[resolved->probes.count - 1].returns >=
		    SS_RESOLVE_RETURNS_MAX) {
		reader->invalid = true;
		return false;
	}
	if (record->flags & SS_RESOLVE_REFUSED)
		return true;
	uint64_t *slot = ss_vector_push(&resolved->returns);
	if (!slot)
		return false;
	*slot = record->offset;
	resolved->probes.items[resolved->probes.count - 1].returns++;
	return true;
}

static bool read_note(struct reader *reader, const struct ss_resolve_record *record)
{
	struct ss_resolved_note *note = ss_vector_push(&reader->resolved->notes);

	if (!note)
		return false;
	*note = (struct ss_resolved_note){
		.spec = record->spec,
		.module = ss_module_ref(reader->capture->modules.items[record->module]),
		.text = read_name(reader, record->name_size),
	};
	return note->text;
}

static bool read_record(struct reader *reader)
{
	struct ss_resolve_record record;
	const uint8_t *bytes = ss_cursor_take(&reader->at, sizeof(record));

	reader->invalid = !bytes;
	if (!bytes)
		return false;
	memcpy(&record, bytes, sizeof(record));
	reader->invalid = record.module >= reader->capture->modules.count ||
			  record.spec >= reader->spec_count;
	if (reader->invalid)
		return false;
	switch (record.kind) {
	case SS_RESOLVE_PROBE:
		return read_probe(reader, &record);
	case SS_RESOLVE_RETURN:
		return read_return(reader, &record);
	case SS_RESOLVE_NOTE:
		return read_note(reader, &record);
	default:
		reader->invalid = true;
		return false;
	}
}

static struct ss_error *read_answer(struct reader *reader, int file)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	int result = lseek(file, 0, SEEK_SET) == 0 ?
			     ss_io_read_all(file, SS_RESOLVE_OUTPUT_MAX, &text) :
			     0;

	if (result < 0)
		return ss_error_new_errno(-result, "cannot read the list of functions");
	reader->at = (struct ss_cursor){ .at = (const uint8_t *)text.bytes,
					 .end = (const uint8_t *)text.bytes + text.size };
	while (reader->at.at < reader->at.end) {
		if (read_record(reader))
			continue;
		return reader->invalid ?
			       ss_error_new(SS_ERROR_SYSTEM,
					    "the child process that searches for "
					    "functions gave an invalid answer") :
			       ss_error_no_memory();
	}
	return NULL;
}

struct ss_error *ss_resolved_read(int file, const struct ss_capture *capture,
				  size_t spec_count, struct ss_resolved *ret)
{
	struct ss_resolved resolved = {};
	struct reader reader = { .capture = capture,
				 .spec_count = spec_count,
				 .resolved = &resolved };
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
