#include "sample/build_ids.h"

#include "base/io.h"
#include "base/vector.h"
#include "sample/build_ids_child.h"

enum {
	TIMEOUT_MS = 10000, /* of one child */
	CPU_S = 10,
	TRIES = 4, /* children, each without the module that was fatal to the last one */
};

static const uint64_t memory_limit = (uint64_t)512 << 20;

typedef SS_VECTOR(struct ss_module_impl *) modules;

static bool is_missing(const struct ss_module_impl *module)
{
	return !module->identified && module->build_id_size == 0 &&
	       (module->fd >= 0 || module->bytes);
}

/* Takes what a child found, which is untrusted. */
static void take_answers(const modules *batch, int file)
{
	struct ss_build_id_answer answer;

	for (uint64_t at = 0;
	     ss_io_pread(file, &answer, sizeof(answer), at) == sizeof(answer);
	     at += sizeof(answer)) {
		if (answer.module >= batch->count || answer.size > SS_BUILD_ID_MAX)
			return;
		struct ss_module_impl *module = batch->items[answer.module];
		if (answer.size && !module->identified)
			(void)ss_module_set_build_id(module, answer.build_id,
						     answer.size); /* or none is known */
		module->identified = true;
	}
}

static void give_up(struct ss_module_impl *module)
{
	if (!module->identified)
		ss_module_set_problem(module, "the child that reads build-ids failed");
	module->identified = true;
}

/* Runs one child. Returns whether another one should go on. */
static bool run(const modules *batch, const struct ss_child_job *job)
{
	struct ss_child_outcome outcome = SS_CHILD_NO_OUTCOME;
	_cleanup_error_ struct ss_error *error = ss_child_run(job, &outcome);

	if (error)
		return false;
	take_answers(batch, outcome.output);
	int32_t fatal = outcome.page.module;
	bool again = outcome.failed && fatal >= 0 && (size_t)fatal < batch->count;
	if (again)
		give_up(batch->items[fatal]);
	ss_child_outcome_deinit(&outcome);
	return again;
}

static struct ss_error *find_all(const modules *batch, const struct ss_target *target)
{
	struct ss_build_id_batch data = { batch->items, batch->count };
	_cleanup_(ss_child_page_cleanup) struct ss_child_page *page = ss_child_page_new();
	struct ss_child_job job = {
		.work = ss_build_ids_read,
		.data = &data,
		.page = page,
		.timeout_ms = TIMEOUT_MS,
		.blocked_ms = TIMEOUT_MS,
		.confinement = { .memory = memory_limit,
				 .output =
					 batch->count * sizeof(struct ss_build_id_answer),
				 .cpu_s = CPU_S },
	};

	if (!page)
		return ss_error_no_memory();
	struct ss_error *unknown =
		ss_target_owner(target, &job.confinement.uid, &job.confinement.gid);
	job.confinement.change_ids = !unknown;
	ss_error_free(unknown);
	for (int i = 0; i < TRIES && run(batch, &job); i++)
		;
	for (size_t i = 0; i < batch->count; i++)
		give_up(batch->items[i]);
	return NULL;
}

struct ss_error *ss_build_ids_find(const struct ss_capture *capture,
				   const struct ss_target *target)
{
	modules batch = {};
	struct ss_error *error = NULL;

	for (size_t i = 0; i < capture->modules.count && !error; i++) {
		if (!is_missing(capture->modules.items[i]))
			continue;
		struct ss_module_impl **slot = ss_vector_push(&batch);
		if (slot)
			*slot = capture->modules.items[i];
		else
			error = ss_error_no_memory();
	}
	if (!error && batch.count > 0)
		error = find_all(&batch, target);
	ss_vector_free(&batch);
	return error;
}
