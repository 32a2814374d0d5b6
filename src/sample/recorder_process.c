#include "sample/recorder_process.h"

#include <string.h>

#include "base/clock.h"
#include "base/intern.h"

enum {
	BRIEF_MAX = 200, /* in a second: a hostile process may load more */
	/* Patience of the sampler: a tenth of the time between two ticks, at most a millisecond */
	PATIENCE_NS = 1000 * 1000,
	PATIENCE_MAX = 10,
};

struct ss_recorder_process *
ss_recorder_process_new(struct ss_target *target, bool owned,
			const struct ss_recorder_process_options *options)
{
	struct ss_recorder_process *process = calloc(1, sizeof(*process));

	if (!process || !ss_unwinder_add_space(options->unwinder, &process->space)) {
		free(process);
		if (owned)
			ss_target_close(target);
		return NULL;
	}
	struct ss_sampler *sampler = &process->sampler;
	process->options = options;
	process->target = target;
	process->owned = owned;
	process->handle = SS_ID_NONE;
	ss_sampler_init(sampler, target, &options->capture, options->arena,
			&ss_process_access);
	sampler->on_cpu = options->on_cpu;
	sampler->patience = (unsigned)SS_MIN(options->period_ns / PATIENCE_NS,
					     (uint64_t)PATIENCE_MAX);
	ss_sampler_find_namespace(sampler);
	if (options->feed &&
	    ss_load_feed_add(options->feed, target->pid, &process->loads))
		process->feed = options->feed;
	if (process->feed && !options->on_cpu) {
		sampler->threads.sampled = true;
		ss_switch_stacks_open(&sampler->switches);
	}
	return process;
}

static void drop_plan(struct ss_recorder_process *process)
{
	if (process->options->reader)
		ss_sample_reader_set(process->options->reader, &process->sample_plan, 0,
				     NULL);
	free(take_ptr(process->plan));
}

void ss_recorder_process_free(struct ss_recorder_process *process)
{
	if (!process)
		return;
	drop_plan(process);
	ss_sampler_deinit(&process->sampler);
	for (size_t i = 0; i < process->modules.items.count; i++) {
		const uint32_t id = process->modules.items.items[i].id;
		if (id != SS_ID_NONE)
			ss_unwinder_remove_module(process->options->unwinder, id);
	}
	ss_unwinder_remove_space(process->options->unwinder, &process->space);
	ss_module_set_deinit(&process->modules);
	ss_recorder_perf_map_deinit(&process->perf_map);
	ss_recorder_waits_deinit(&process->waits);
	ss_vector_free(&process->recorded_modules);
	if (process->feed)
		ss_load_feed_remove(process->feed, &process->loads);
	ss_module_loads_close(&process->loads);
	ss_vector_free(&process->stacks);
	ss_vector_free(&process->frames);
	ss_vector_free(&process->last);
	if (process->owned)
		ss_target_close(process->target);
	free(process);
}

/* Modules --------------------------------------------------------------- */

bool ss_recorder_process_is_current(const struct ss_recorder_process *process)
{
	return process->feed &&
	       process->loads.last_code_ns < process->sampler.space.updated_ns;
}

/* The kernel's time of a load, or that of the tick that has found it; 0: not known. */
static uint64_t clamp_time(const struct ss_recorder_process *process, uint64_t time_ns)
{
	return time_ns && time_ns < process->now_ns ? SS_MAX(time_ns, process->begin_ns) :
						      process->now_ns;
}

/* One that came and went between two reads of the memory map. */
static bool define_brief(struct ss_recorder_process *process,
			 const struct ss_mmap_event *event)
{
	struct ss_module_impl *module = ss_module_loads_make(event);

	if (!module)
		return false;
	uint32_t handle = ss_writer_add_module(process->options->writer, process->handle,
					       &module->pub, module->pub.base,
					       clamp_time(process, event->time_ns));
	if (handle != SS_ID_NONE)
		ss_writer_end_module(process->options->writer, handle, process->now_ns);
	ss_module_unref(module);
	return handle != SS_ID_NONE;
}

/* Modules whose load the memory map does not show. */
static bool define_briefs(struct ss_recorder_process *process)
{
	const struct ss_address_space *space = &process->sampler.space;
	struct ss_mmap_event *event;
	bool ok = true;

	if (process->now_ns - process->brief_ns >= SS_NS_PER_SECOND) {
		process->brief_ns = process->now_ns;
		process->brief = 0;
	}
	while (ok && space->capture &&
	       (event = ss_module_loads_take(&process->loads, space->updated_ns))) {
		if (!ss_module_loads_find(event, space->capture) &&
		    process->brief++ < BRIEF_MAX)
			ok = define_brief(process, event);
		free(event);
	}
	return ok;
}

/* A module was loaded. False: no memory. */
static bool add_module(struct ss_recorder_process *process, struct ss_module_entry *entry)
{
	entry->id = ss_unwinder_add_module(process->options->unwinder, entry->module);
	if (entry->id == SS_ID_NONE)
		return false;
	while (process->recorded_modules.count <= entry->id) {
		if (!ss_vector_push(&process->recorded_modules))
			return false;
	}
	process->undefined++;
	process->recorded_modules.items[entry->id] = (struct ss_recorder_module){
		.handle = SS_ID_NONE,
		.begin_ns = clamp_time(
			process,
			ss_module_loads_date(&process->loads, &entry->module->pub,
					     process->sampler.space.updated_ns))
	};
	return true;
}

static void end_module(struct ss_recorder_process *process, struct ss_module_entry *entry)
{
	const uint32_t handle = process->recorded_modules.items[entry->id].handle;

	if (handle == SS_ID_NONE)
		process->undefined--;
	else
		ss_writer_end_module(
			process->options->writer, handle,
			clamp_time(process, ss_module_loads_first(&process->loads,
								  &entry->module->pub)));
	ss_unwinder_remove_module(process->options->unwinder, entry->id);
	entry->id = SS_ID_NONE;
}

/* capture: NULL, all are unloaded. False: no memory. */
static bool track_modules(struct ss_recorder_process *process,
			  const struct ss_capture *capture)
{
	struct ss_module_set *set = &process->modules;

	if (!ss_module_set_update(set, capture))
		return false;
	for (size_t i = 0; i < set->items.count; i++) {
		struct ss_module_entry *entry = &set->items.items[i];
		if (entry->state == SS_MODULE_UNLOADED)
			end_module(process, entry);
		else if (entry->state == SS_MODULE_LOADED && !add_module(process, entry))
			return false;
	}
	ss_module_set_settle(set);
	return true;
}

bool ss_recorder_process_define_modules(struct ss_recorder_process *process)
{
	for (size_t i = 0; process->undefined && i < process->space.modules.count; i++) {
		uint32_t id = process->space.modules.items[i];
		const struct ss_unwinder_module *known =
			&process->options->unwinder->modules.items[id];
		struct ss_recorder_module *recorded =
			&process->recorded_modules.items[id];
		if (recorded->handle != SS_ID_NONE || !known->described)
			continue;
		struct ss_module module = known->module->pub;
		if (!module.build_id && *known->build_id)
			module.build_id = known->build_id;
		if (*known->file_hash) {
			module.file = known->file;
			module.file.hash = known->file_hash;
		}
		if (!module.problem)
			module.problem = known->problem;
		recorded->handle = ss_writer_add_module(process->options->writer,
							process->handle, &module,
							known->bias, recorded->begin_ns);
		if (recorded->handle == SS_ID_NONE)
			return false;
		process->undefined--;
	}
	return true;
}

/* Processes and threads --------------------------------------------------- */

static bool begin_process(struct ss_recorder_process *process)
{
	if (process->handle != SS_ID_NONE)
		return true;
	const struct ss_target *target = process->target;
	_cleanup_free_ char *name = NULL;
	_cleanup_free_ char *executable = NULL;
	ss_target_describe(target, &name, &executable);
	process->begin_ns = process->now_ns;
	process->handle = ss_writer_add_process(process->options->writer, target->pid,
						target->start_time, name ? name : "",
						executable, process->begin_ns);
	return process->handle != SS_ID_NONE;
}

static void end_thread(struct ss_recorder_process *process,
		       struct ss_sampled_thread *thread)
{
	if (!thread->recorded)
		return;
	ss_writer_end_thread(process->options->writer, thread->recorded->handle,
			     process->now_ns);
	free(take_ptr(thread->recorded));
	process->grouped = false;
}

void ss_recorder_process_end_threads(struct ss_recorder_process *process)
{
	const struct ss_thread_list *list = &process->sampler.threads;

	for (size_t i = 0; i < list->active.count; i++) {
		struct ss_sampled_thread *thread = ss_thread_list_active(list, i);
		if (thread->state == SS_THREAD_GONE)
			end_thread(process, thread);
	}
}

/* The process has ended or executes another program: drops all of its state. */
static void drop_all(struct ss_recorder_process *process)
{
	const struct ss_thread_list *list = &process->sampler.threads;

	if (process->handle == SS_ID_NONE)
		return;
	for (size_t i = 0; i < list->items.count; i++)
		end_thread(process, &list->items.items[i]);
	(void)track_modules(process, NULL); /* cannot fail: nothing is added */
	ss_writer_end_process(process->options->writer, process->handle, process->now_ns);
	process->handle = SS_ID_NONE;
	ss_gathers_deinit(&process->sampler.gathers);
	drop_plan(process);
	/* The new program may have overwritten it. */
	ss_recorder_perf_map_deinit(&process->perf_map);
	ss_recorder_waits_forget(&process->waits);
}

struct ss_error *ss_recorder_process_finish(struct ss_recorder_process *process)
{
	return process->handle == SS_ID_NONE ?
		       NULL :
		       ss_recorder_perf_map_write(&process->perf_map, process->target,
						  process->options->writer,
						  process->handle);
}

struct ss_error *ss_recorder_process_end(struct ss_recorder_process *process)
{
	struct ss_error *error = ss_recorder_process_finish(process);

	drop_all(process);
	process->state = SS_PROCESS_ENDED;
	return error;
}

struct ss_recorder_thread *
ss_recorder_process_define_thread(struct ss_recorder_process *process,
				  struct ss_sampled_thread *thread)
{
	struct ss_recorder_thread *recorded = thread->recorded;
	struct ss_writer *writer = process->options->writer;

	if (!recorded) {
		recorded = calloc(1, sizeof(*recorded));
		if (!recorded)
			return NULL;
		thread->recorded = recorded;
		recorded->stack = recorded->call = SS_ID_NONE;
		recorded->handle = ss_writer_add_thread(writer, process->handle,
							thread->tid, thread->name,
							process->now_ns);
		if (recorded->handle == SS_ID_NONE)
			return NULL;
		/* A sample of a CPU stands for the time before it, also the first one. */
		recorded->counted_ns = thread->run_ns;
		if (process->options->only_samples)
			recorded->counted_ns -=
				SS_MIN(thread->run_ns, process->options->period_ns);
		recorded->counted_ready_ns = thread->ready_ns;
	} else if (!recorded->has_runtime_name) {
		ss_writer_name_thread(writer, recorded->handle, thread->name,
				      process->now_ns);
	}
	return recorded;
}

void ss_recorder_process_name_thread(struct ss_recorder_process *process,
				     struct ss_recorder_thread *recorded,
				     const char *name)
{
	if (!name)
		return;
	recorded->has_runtime_name = true;
	ss_writer_name_thread(process->options->writer, recorded->handle, name,
			      process->now_ns);
}

/* Loads of the program before, or of this one before it begins in the recording. */
static void drop_loads(struct ss_recorder_process *process)
{
	struct ss_mmap_event *event;

	while ((event = ss_module_loads_take(&process->loads,
					     process->sampler.space.updated_ns)))
		free(event);
}

bool ss_recorder_process_follow(struct ss_recorder_process *process,
				enum ss_address_space_change *change)
{
	const bool replaced = *change == SS_ADDRESS_SPACE_REPLACED;
	const bool changed = *change != SS_ADDRESS_SPACE_SAME;

	*change = SS_ADDRESS_SPACE_SAME;
	if (replaced)
		drop_all(process);
	if (!begin_process(process) ||
	    (process->feed && !ss_load_feed_read(process->feed)))
		return false;
	if (replaced)
		drop_loads(process);
	return (!changed || track_modules(process, process->sampler.space.capture)) &&
	       define_briefs(process);
}

/* What is copied with stacks ---------------------------------------------- */

/* What is copied with samples. The plan is of the sandboxed child: what it says of other threads than
   those of the process does not count. */
static void plan_samples(struct ss_recorder_process *process,
			 const struct ss_gather_plan *plan)
{
	struct ss_gather_plan checked = *plan;

	checked.root_count = 0;
	for (size_t i = 0; i < plan->root_count; i++) {
		if (ss_target_peek_state(process->target, plan->roots[i].tid))
			checked.roots[checked.root_count++] = plan->roots[i];
	}
	ss_sample_reader_set(process->options->reader, &process->sample_plan,
			     process->target->pid, &checked);
}

bool ss_recorder_process_take_plan(struct ss_recorder_process *process,
				   const struct ss_unwound *unwound)
{
	if (unwound->plans.count && !process->plan)
		process->plan = malloc(sizeof(*process->plan));
	if (unwound->plans.count && process->plan)
		*process->plan = unwound->plans.items[0];
	return process->plan && (unwound->plans.count || process->sampler.has_new_ids);
}

/* The plan has the ids of threads in their pid namespace. Of those that were not seen yet, they are not known:
   it is set again when there are more. */
static void translate_roots(struct ss_recorder_process *process,
			    struct ss_gather_plan *plan)
{
	process->sampler.has_new_ids = false;
	for (size_t i = 0; i < plan->root_count && i < SS_GATHER_ROOTS_MAX; i++) {
		const struct ss_sampled_thread *sampled =
			ss_sampler_find_inner(&process->sampler, plan->roots[i].tid);
		plan->roots[i].tid = sampled ? sampled->tid : 0;
	}
}

/* One that is not valid copies nothing. */
void ss_recorder_process_set_plan(struct ss_recorder_process *process)
{
	struct ss_gather_plan translated = *process->plan;
	const struct ss_gather_plan *plan = &translated;

	if (ss_sampler_is_in_namespace(&process->sampler))
		translate_roots(process, &translated);
	struct ss_error *error = ss_gathers_set(&process->sampler.gathers, plan);

	if (process->options->reader && error)
		ss_sample_reader_set(process->options->reader, &process->sample_plan, 0,
				     NULL);
	else if (process->options->reader)
		plan_samples(process, plan);
	ss_error_free(error);
}

/* A thread that has a sample in the recording; or NULL. */
static struct ss_recorder_thread *find_sampled(const struct ss_recorder_process *process,
					       size_t index)
{
	struct ss_recorder_thread *thread =
		process->sampler.threads.items.items[index].recorded;

	return thread && thread->stack != SS_ID_NONE ? thread : NULL;
}

bool ss_recorder_process_last(const struct ss_recorder_process *process,
			      struct ss_samples *samples)
{
	for (size_t i = 0; i < process->sampler.threads.items.count; i++) {
		const struct ss_recorder_thread *thread = find_sampled(process, i);
		struct ss_sample_record *sample =
			thread ? ss_vector_push(&samples->items) : NULL;
		if (thread && !sample)
			return false;
		if (thread)
			*sample = (struct ss_sample_record){ .thread = thread->handle,
							     .stack = thread->stack,
							     .call = thread->call,
							     .state = thread->state };
	}
	return true;
}

void ss_recorder_process_renumber(struct ss_recorder_process *process,
				  const struct ss_sample_record **next)
{
	for (size_t i = 0; i < process->sampler.threads.items.count; i++) {
		struct ss_recorder_thread *thread = find_sampled(process, i);
		if (!thread)
			continue;
		thread->stack = (*next)->stack;
		thread->call = (*next)->call;
		(*next)++;
	}
	process->grouped = false;
	ss_recorder_waits_forget(&process->waits);
}
