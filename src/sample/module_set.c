#include "sample/modules.h"

#include "base/io.h"
#include "base/search.h"

static int compare_modules(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct ss_module_entry *)a)->module;
	uintptr_t y = (uintptr_t)((const struct ss_module_entry *)b)->module;

	return SS_COMPARE(x, y);
}

/* Called for each module of each capture; a process may have 60,000. */
static struct ss_module_entry *find(const struct ss_module_set *set,
				    const struct ss_module_impl *module)
{
	size_t at =
		ss_lower_bound(set->sorted, i,
			       (uintptr_t)set->items.items[i].module < (uintptr_t)module);

	return at < set->sorted && set->items.items[at].module == module ?
		       &set->items.items[at] :
		       NULL;
}

const struct ss_module_entry *ss_module_set_find(const struct ss_module_set *set,
						 const struct ss_module_impl *module)
{
	return find(set, module);
}

bool ss_module_set_update(struct ss_module_set *set, const struct ss_capture *capture)
{
	for (size_t i = 0; i < set->items.count; i++)
		set->items.items[i].state = SS_MODULE_UNLOADED;
	for (size_t i = 0; capture && i < capture->modules.count; i++) {
		struct ss_module_entry *entry = find(set, capture->modules.items[i]);
		if (entry) {
			entry->state = SS_MODULE_MAPPED;
			continue;
		}
		entry = ss_vector_push(&set->items);
		if (!entry)
			return false;
		entry->module = ss_module_ref(capture->modules.items[i]);
		entry->state = SS_MODULE_LOADED;
	}
	return true;
}

void ss_module_set_settle(struct ss_module_set *set)
{
	const bool loaded = set->items.count > set->sorted;
	size_t kept = 0;

	for (size_t i = 0; i < set->items.count; i++) {
		const struct ss_module_entry *entry = &set->items.items[i];
		if (entry->state == SS_MODULE_UNLOADED)
			ss_module_unref(entry->module);
		else
			set->items.items[kept++] = *entry;
	}
	set->items.count = set->sorted = kept;
	if (loaded)
		qsort(set->items.items, kept, sizeof(*set->items.items), compare_modules);
}

void ss_module_set_deinit(struct ss_module_set *set)
{
	for (size_t i = 0; i < set->items.count; i++)
		ss_module_unref(set->items.items[i].module);
	ss_vector_free(&set->items);
}

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
static bool run(const modules *batch, const struct ss_job *job)
{
	struct ss_job_outcome outcome = SS_JOB_NO_OUTCOME;
	_cleanup_error_ struct ss_error *error = ss_job_run(job, &outcome);

	if (error)
		return false;
	take_answers(batch, outcome.output);
	int32_t fatal = outcome.failure.module;
	bool again = outcome.failed && fatal >= 0 && (size_t)fatal < batch->count;
	if (again)
		give_up(batch->items[fatal]);
	ss_job_outcome_deinit(&outcome);
	return again;
}

static struct ss_error *find_all(const modules *batch, const struct ss_target *target)
{
	struct ss_build_id_batch data = { batch->items, batch->count };
	_cleanup_(ss_worker_page_cleanup) struct ss_worker_page *page =
		ss_worker_page_new();
	struct ss_job job = {
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
