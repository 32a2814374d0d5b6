#include "sample/recorder_process.h"

#include <string.h>

#include "base/clock.h"
#include "base/idtable.h"
#include "data/recording_format.h"
#include "data/gather_plan.h"

enum {
	CAPTURES_MAX = 3,
	NS_PER_US = 1000,
	WAITS_MAX = 128, /* looked at in a tick */
	/* Stopped for so many captures, if the kernel's copy of a stack was not enough. */
	LARGE_CAPTURES = 64,
	OTHER_CAPTURES = 4, /* on another stack, perhaps for a moment */
	ONE_CAPTURE = 2,    /* of functions: the next one, which is of the same tick */
	BRIEF_MAX = 200,    /* in a second: a hostile process may load more */
	UNREAD_NS = 1500 * 1000 * 1000, /* in which the memory map is read again */
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
	process->target = target;
	process->owned = owned;
	process->writer = options->writer;
	process->unwinder = options->unwinder;
	process->waits_budget = options->waits_budget;
	process->handle = SS_ID_NONE;
	ss_sampler_init(&process->sampler, target, &options->capture, options->arena,
			&ss_process_access);
	process->sampler.on_cpu = options->on_cpu;
	process->period_ns = options->period_ns;
	process->sampler.patience = (unsigned)SS_MIN(options->period_ns / PATIENCE_NS,
						     (uint64_t)PATIENCE_MAX);
	process->inner_pid = ss_wait_facts_inner_tid(&process->sampler, target->pid);
	if (options->feed &&
	    ss_load_feed_add(options->feed, target->pid, &process->loads)) {
		process->feed = options->feed;
	}
	process->reader = options->reader;
	if (process->feed && !options->on_cpu) {
		process->sampler.by_kernel = true;
		process->sampler.threads.sampled = true;
		ss_switch_stacks_open(&process->sampler.switches);
	}
	return process;
}

static void forget_module(void *data, struct ss_module_entry *module, bool loaded)
{
	struct ss_recorder_process *process = data;

	if (!loaded && module->id != SS_ID_NONE)
		ss_unwinder_remove_module(process->unwinder, module->id);
}

void ss_recorder_process_free(struct ss_recorder_process *process)
{
	if (!process)
		return;
	if (process->reader)
		ss_sample_reader_set(process->reader, &process->sample_plan, 0, NULL);
	free(process->plan);
	ss_sampler_deinit(&process->sampler);
	/* Cannot fail: nothing is added. */
	(void)ss_module_set_update(&process->modules, NULL, forget_module, process);
	ss_unwinder_remove_space(process->unwinder, &process->space);
	ss_module_set_deinit(&process->modules);
	ss_recorder_perf_map_deinit(&process->perf_map);
	ss_recorder_waits_deinit(&process->waits);
	ss_vector_free(&process->threads);
	ss_vector_free(&process->handles);
	ss_vector_free(&process->begins);
	if (process->feed)
		ss_load_feed_remove(process->feed, &process->loads);
	ss_module_loads_close(&process->loads);
	ss_vector_free(&process->stacks);
	ss_vector_free(&process->frames);
	ss_vector_free(&process->pending);
	ss_vector_free(&process->last);
	if (process->owned)
		ss_target_close(process->target);
	free(process);
}

/* Modules --------------------------------------------------------------- */

/* Whether the kernel has reported no mapping of code since the memory map was read. */
static bool is_map_current(const struct ss_recorder_process *process)
{
	return process->feed &&
	       process->loads.last_code_ns < process->sampler.space.updated_ns;
}

/* The handle of a module, by the unwinder's id; NULL: no memory. */
static uint32_t *handle_slot(struct ss_recorder_process *process, uint32_t id)
{
	while (process->handles.count <= id) {
		uint64_t *begin = ss_vector_push(&process->begins);
		uint32_t *slot = begin ? ss_vector_push(&process->handles) : NULL;
		if (!slot)
			return NULL;
		*slot = SS_ID_NONE;
	}
	return &process->handles.items[id];
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
	uint32_t handle = ss_writer_add_module(process->writer, process->handle,
					       &module->pub, module->pub.base,
					       clamp_time(process, event->time_ns));
	if (handle != SS_ID_NONE)
		ss_writer_end_module(process->writer, handle, process->now_ns);
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

static void track_module(void *data, struct ss_module_entry *module, bool loaded)
{
	struct ss_recorder_process *process = data;

	if (loaded) {
		module->id = ss_unwinder_add_module(process->unwinder, module->module);
		process->undefined++;
		if (module->id == SS_ID_NONE || !handle_slot(process, module->id))
			process->no_memory = true;
		else
			process->begins.items[module->id] = clamp_time(
				process, ss_module_loads_date(&process->loads,
							      &module->module->pub));
		return;
	}
	uint32_t *handle = module->id == SS_ID_NONE ? NULL :
						      handle_slot(process, module->id);
	if (!handle)
		return;
	if (*handle == SS_ID_NONE)
		process->undefined--;
	else
		ss_writer_end_module(
			process->writer, *handle,
			clamp_time(process, ss_module_loads_first(&process->loads,
								  &module->module->pub)));
	*handle = SS_ID_NONE;
	ss_unwinder_remove_module(process->unwinder, module->id);
}

/* Defines new modules, which the unwinder has described. */
static bool define_modules(struct ss_recorder_process *process)
{
	for (size_t i = 0; process->undefined && i < process->space.modules.count; i++) {
		uint32_t id = process->space.modules.items[i];
		const struct ss_unwinder_module *known =
			&process->unwinder->modules.items[id];
		uint32_t *handle = &process->handles.items[id];
		if (*handle != SS_ID_NONE || !known->described)
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
		*handle = ss_writer_add_module(process->writer, process->handle, &module,
					       known->bias, process->begins.items[id]);
		if (*handle == SS_ID_NONE)
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
	process->handle = ss_writer_add_process(process->writer, target->pid,
						target->start_time, name ? name : "",
						executable, process->begin_ns);
	return process->handle != SS_ID_NONE;
}

static void end_thread(struct ss_recorder_process *process,
		       struct ss_recorder_thread *thread)
{
	if (thread->tid)
		ss_writer_end_thread(process->writer, thread->handle, process->now_ns);
	*thread = (struct ss_recorder_thread){};
	process->grouped = false;
}

/* The process has ended or executes another program: drops all of its state. */
static void end_process(struct ss_recorder_process *process)
{
	if (process->handle == SS_ID_NONE)
		return;
	for (size_t i = 0; i < process->threads.count; i++)
		end_thread(process, &process->threads.items[i]);
	/* Cannot fail: nothing is added. */
	(void)ss_module_set_update(&process->modules, NULL, track_module, process);
	ss_writer_end_process(process->writer, process->handle, process->now_ns);
	process->handle = SS_ID_NONE;
	ss_gathers_deinit(&process->sampler.gathers);
	if (process->reader)
		ss_sample_reader_set(process->reader, &process->sample_plan, 0, NULL);
	free(take_ptr(process->plan));
	process->sampler.by_kernel = process->feed && !process->sampler.on_cpu;
	/* The new program may have overwritten it. */
	ss_recorder_perf_map_deinit(&process->perf_map);
	ss_recorder_waits_forget(&process->waits);
}

struct ss_error *ss_recorder_process_finish(struct ss_recorder_process *process)
{
	return process->handle == SS_ID_NONE ?
		       NULL :
		       ss_recorder_perf_map_write(&process->perf_map, process->target,
						  process->writer, process->handle);
}

/* The slot of a thread; ends the thread that used it before. NULL: no memory. */
static struct ss_recorder_thread *thread_slot(struct ss_recorder_process *process,
					      const struct ss_sampled_thread *sampled)
{
	while (process->threads.count <= sampled->slot) {
		if (!ss_vector_push(&process->threads))
			return NULL;
	}
	struct ss_recorder_thread *thread = &process->threads.items[sampled->slot];
	if (thread->tid != sampled->tid)
		end_thread(process, thread);
	return thread;
}

static void end_threads(struct ss_recorder_process *process)
{
	const struct ss_thread_list *list = &process->sampler.threads;

	for (size_t i = 0; i < list->active.count; i++) {
		const struct ss_sampled_thread *sampled = ss_thread_list_active(list, i);
		if (sampled->state == SS_THREAD_GONE &&
		    sampled->slot < process->threads.count)
			end_thread(process, &process->threads.items[sampled->slot]);
	}
}

static bool is_in_namespace(const struct ss_recorder_process *process)
{
	return process->inner_pid != process->target->pid;
}

/* The id of a thread in its innermost pid namespace; 0: not known. */
static pid_t inner_tid_of(struct ss_recorder_process *process,
			  struct ss_sampled_thread *sampled)
{
	if (!is_in_namespace(process))
		return sampled->tid;
	if (sampled->inner_tid == 0) {
		sampled->inner_tid =
			ss_wait_facts_inner_tid(&process->sampler, sampled->tid);
		process->has_new_ids |= sampled->inner_tid > 0;
	}
	return sampled->inner_tid;
}

/* A thread that was seen before, by that id. */
static struct ss_sampled_thread *find_inner(const struct ss_recorder_process *process,
					    pid_t tid)
{
	const struct ss_thread_list *list = &process->sampler.threads;

	if (!is_in_namespace(process))
		return ss_thread_list_find(list, tid);
	for (size_t i = 0; tid > 0 && i < list->items.count; i++) {
		struct ss_sampled_thread *thread = &list->items.items[i];
		if (thread->inner_tid == tid && thread->state != SS_THREAD_GONE)
			return thread;
	}
	return NULL;
}

/* Runtimes know their threads by these ids. */
static void find_inner_tids(struct ss_recorder_process *process,
			    struct ss_capture *capture)
{
	if (!is_in_namespace(process))
		return;
	for (size_t i = 0; i < capture->threads.count; i++) {
		struct ss_capture_thread *thread = &capture->threads.items[i];
		struct ss_sampled_thread *sampled =
			ss_thread_list_find(&process->sampler.threads, thread->tid);
		if (sampled)
			thread->inner_tid = inner_tid_of(process, sampled);
	}
}

/* Defines a new thread, or a new name of a known one. */
static struct ss_recorder_thread *define_thread(struct ss_recorder_process *process,
						const struct ss_sampled_thread *sampled)
{
	struct ss_recorder_thread *thread = thread_slot(process, sampled);

	if (!thread)
		return NULL;
	if (!thread->tid) {
		thread->handle = ss_writer_add_thread(process->writer, process->handle,
						      sampled->tid, sampled->name,
						      process->now_ns);
		if (thread->handle == SS_ID_NONE)
			return NULL;
		thread->tid = sampled->tid;
		thread->call = SS_ID_NONE;
		/* A sample of a CPU stands for the time before it, also the first one. */
		thread->counted_ns = sampled->run_ns;
		if (process->sampled)
			thread->counted_ns -= SS_MIN(sampled->run_ns, process->period_ns);
		thread->counted_ready_ns = sampled->ready_ns;
	} else if (strcmp(thread->name, sampled->name) != 0) {
		ss_writer_name_thread(process->writer, thread->handle, sampled->name,
				      process->now_ns);
	}
	memcpy(thread->name, sampled->name, sizeof(thread->name));
	return thread;
}

/* Loads of the program before, or of this one before it begins in the recording. */
static void drop_loads(struct ss_recorder_process *process)
{
	struct ss_mmap_event *event;

	while ((event = ss_module_loads_take(&process->loads,
					     process->sampler.space.updated_ns)))
		free(event);
}

/* Applies changes of the address space. New modules are defined once the unwinder has
   described them. */
static bool apply_change(struct ss_recorder_process *process, struct ss_tick *tick)
{
	enum ss_address_space_change change = tick->change;

	tick->change = SS_ADDRESS_SPACE_SAME;
	if (change == SS_ADDRESS_SPACE_REPLACED)
		end_process(process);
	if (!begin_process(process) ||
	    (process->feed && !ss_load_feed_read(process->feed)))
		return false;
	if (change == SS_ADDRESS_SPACE_REPLACED)
		drop_loads(process);
	if ((change != SS_ADDRESS_SPACE_SAME &&
	     !ss_module_set_update(&process->modules, process->sampler.space.capture,
				   track_module, process)) ||
	    !define_briefs(process))
		return false;
	return !process->no_memory;
}

/* Likewise, and ends threads. */
static bool track(struct ss_recorder_process *process, struct ss_tick *tick)
{
	if (!apply_change(process, tick))
		return false;
	end_threads(process);
	return true;
}

/* Stacks ---------------------------------------------------------------- */

/* The unwound stacks of a capture. */
struct result {
	const struct ss_capture *capture;
	const struct ss_unwound *unwound;
	bool stale; /* all stacks are stale: modules have changed */
	bool last;  /* no other capture follows in this tick */
	bool taken; /* of samples: a thread may have ended since */
	bool again; /* capture threads again in this tick whose calls are missing */
};

static uint32_t call_of(struct ss_recorder_process *process,
			const struct ss_capture_thread *thread)
{
	return thread->syscall.number < 0 ?
		       SS_ID_NONE :
		       ss_writer_call(process->writer, thread->syscall.number,
				      thread->syscall.args[0], NULL);
}

static bool is_musl(const struct ss_capture *capture,
		    const struct ss_unwound_stack *stack)
{
	int32_t module = stack->count ? stack->frames[0].module : -1;

	return module >= 0 && strstr(capture->modules.items[module]->pub.path, "musl");
}

/* False: no memory. */
static bool queue_wait(struct ss_recorder_process *process,
		       struct ss_recorder_thread *thread)
{
	pid_t *slot = thread->queued ? NULL : ss_vector_push(&process->pending);

	if (slot) {
		*slot = thread->tid;
		thread->queued = true;
	}
	return thread->queued;
}

/* Whether the memory map has the stack that a thread uses. */
static bool is_stack_mapped(const struct ss_recorder_process *process,
			    const struct ss_capture_thread *captured)
{
	const struct ss_capture *capture = process->sampler.space.capture;

	return ss_capture_find_area(capture,
				    ss_regs_sp(capture->arch, &captured->regs)) != NULL;
}

/*
 * Whether a stack may have been unreadable only because it is in memory that was mapped after the
 * memory map was read, which is done once a second. A blocked thread would keep it for as long as it
 * does not run.
 */
static bool is_unread(const struct ss_recorder_process *process,
		      struct ss_recorder_thread *thread,
		      const struct ss_capture_thread *captured,
		      const struct ss_unwound_stack *stack, uint64_t run_count)
{
	if (stack->end != SS_END_UNREADABLE || captured->reason || captured->worker ||
	    captured->state == 'Z')
		return false;
	/* A stack that the map has is most likely unreadable for another reason: the thread is not
	   captured again after each run. */
	bool restarts = !is_stack_mapped(process, captured) &&
			thread->unread_count != run_count;
	if (!thread->unread_ns || restarts) {
		thread->unread_ns = process->now_ns;
		thread->unread_count = run_count;
	}
	return process->now_ns - thread->unread_ns < (uint64_t)UNREAD_NS;
}

/* Whether a sample of the kernel has no functions that a capture would have. */
static bool lacks_functions(const struct ss_recorder_process *process,
			    const struct ss_sampled_thread *sampled)
{
	return process->plan && !sampled->copied;
}

/* Records the stack of one thread, or requests another capture of it. False: no
   memory. */
static bool take_thread(struct ss_recorder_process *process, const struct result *result,
			size_t index)
{
	const struct ss_capture_thread *captured = &result->capture->threads.items[index];
	struct ss_sampled_thread *sampled =
		ss_thread_list_find(&process->sampler.threads, captured->tid);

	if (!sampled || (sampled->state == SS_THREAD_GONE && !result->taken))
		return true;
	bool unusable = result->stale || sampled->areas.incomplete ||
			(sampled->by_kernel && !sampled->slept && !result->last &&
			 (sampled->deep > 0 || lacks_functions(process, sampled)));
	if (unusable && !result->last) {
		ss_thread_reject(sampled, true);
		return true;
	}
	struct ss_recorder_thread *thread = define_thread(process, sampled);
	if (!thread)
		return false;
	uint32_t stack = result->unwound->threads.items[index].stack;
	bool stopped = captured->stopped_ns > 0;
	if (unusable) {
		ss_thread_reject(sampled, false); /* the next tick may succeed */
		thread->stack = ss_recorder_no_stack(process, result->stale);
	} else {
		ss_thread_accept(sampled, stopped,
				 result->unwound->stacks.items[stack].end ==
					 SS_END_REGISTER);
		thread->stack = ss_recorder_stack_of(process, result->capture,
						     result->unwound, index);
		if (is_unread(process, thread, captured,
			      &result->unwound->stacks.items[stack], sampled->run_count))
			ss_thread_reject(sampled, false);
		/* With the new plan, the next capture finds its calls. */
		if (result->unwound->has_plan &&
		    result->unwound->threads.items[index].lacks_calls)
			ss_thread_reject(sampled, result->again);
	}
	thread->call = call_of(process, captured);
	thread->wait.pending = false;
	if (!unusable && !process->sampler.on_cpu)
		ss_recorder_wait_begin(
			&thread->wait, captured,
			result->unwound->threads.items[index].function,
			is_musl(result->capture, &result->unwound->stacks.items[stack]));
	if (thread->wait.pending && !queue_wait(process, thread))
		return false;
	thread->state = captured->state;
	thread->sampled = thread->stack != SS_ID_NONE;
	return thread->sampled;
}

static struct ss_error *take_threads(struct ss_recorder_process *process,
				     const struct result *result)
{
	if (!ss_recorder_stacks_begin(process, result->unwound->stacks.count))
		return ss_error_no_memory();
	for (size_t i = 0; i < result->capture->threads.count; i++) {
		if (!take_thread(process, result, i))
			return ss_error_no_memory();
	}
	return NULL;
}

/* Waits ----------------------------------------------------------------- */

static bool find_thread(void *data, pid_t tid, bool inner, struct ss_task *ret)
{
	struct ss_recorder_process *process = data;
	struct ss_sampled_thread *sampled =
		inner ? find_inner(process, tid) :
			ss_thread_list_find(&process->sampler.threads, tid);

	if (!sampled || sampled->state == SS_THREAD_GONE)
		return false;
	*ret = (struct ss_task){ .tid = sampled->tid,
				 .inner_tid = inner_tid_of(process, sampled),
				 .name = sampled->name,
				 .state = sampled->kernel_state };
	return true;
}

static struct ss_recorder_thread *find_recorded(struct ss_recorder_process *process,
						const struct ss_sampled_thread *sampled)
{
	struct ss_recorder_thread *thread =
		sampled && sampled->slot < process->threads.count ?
			&process->threads.items[sampled->slot] :
			NULL;

	return thread && thread->tid == sampled->tid ? thread : NULL;
}

/* Whether a thread is still in its wait. */
static bool is_waiting(const struct ss_sampled_thread *sampled)
{
	return sampled->state == SS_THREAD_IDLE && sampled->run_count;
}

/* Looks up what threads wait for whose waits have begun, some at a tick. False: no memory. */
static bool look_at_waits(struct ss_recorder_process *process)
{
	struct ss_recorder_waits *waits = &process->waits;
	const struct ss_recorder_waits_context context = {
		.sampler = &process->sampler,
		.writer = process->writer,
		.inner_pid = process->inner_pid,
		.find = find_thread,
		.data = process,
	};
	struct ss_recorder_lookup lookups[SS_WAIT_FACTS_MAX];
	struct ss_recorder_thread *tried[WAITS_MAX];
	size_t tried_count = 0;
	size_t count = 0;
	size_t kept = 0;

	if (process->sampler.late ||
	    !ss_recorder_waits_may_look(waits, process->waits_budget, process->now_ns) ||
	    process->pending.count == 0)
		return true;
	uint64_t begin_ns = ss_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; i < process->pending.count; i++) {
		pid_t tid = process->pending.items[i];
		const struct ss_sampled_thread *sampled =
			ss_thread_list_find(&process->sampler.threads, tid);
		struct ss_recorder_thread *thread = find_recorded(process, sampled);
		bool pending = thread && thread->queued && thread->wait.pending;
		if (pending && (count == SS_WAIT_FACTS_MAX || tried_count == WAITS_MAX ||
				!is_waiting(sampled))) {
			process->pending.items[kept++] = tid;
			continue;
		}
		if (thread)
			thread->queued = false;
		if (!pending)
			continue;
		tried[tried_count++] = thread;
		thread->wait.pending = false;
		thread->wait.thread.run_count = sampled->run_count;
		if (!ss_recorder_waits_find(waits, &process->sampler, &thread->wait,
					    &thread->call))
			lookups[count++] = (struct ss_recorder_lookup){ &thread->wait,
									&thread->call };
	}
	process->pending.count = kept;
	bool ok = count == 0 || ss_recorder_waits_look(waits, &context, lookups, count);
	for (size_t i = 0; i < tried_count && process->grouped; i++) {
		if (tried[i]->place)
			process->last.items[tried[i]->place - 1].call = tried[i]->call;
	}
	process->waits_budget->spent_ns +=
		ss_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	return ok;
}

/* Ticks ----------------------------------------------------------------- */

/* Whether the unwinder has answered. If so, defines new modules. */
static bool has_answered(struct ss_recorder_process *process,
			 enum ss_unwinder_result result, struct ss_error **error)
{
	if (result == SS_UNWINDER_FAILED) {
		process->lost = true;
		ss_sampler_discard(&process->sampler);
		return false;
	}
	if (result == SS_UNWINDER_NO_MEMORY || !define_modules(process)) {
		*error = ss_error_no_memory();
		return false;
	}
	return true;
}

/*
 * The kernel copies what is at the stack pointer. A stop copies more: of a larger stack, and of the
 * stack that a signal handler or a coroutine was entered from. If that is not enough either, the
 * thread is not stopped for it again.
 */
static void check_stack(const struct ss_sampler *sampler,
			struct ss_sampled_thread *sampled,
			const struct ss_capture_thread *thread, enum ss_end end)
{
	bool unreadable = end == SS_END_UNREADABLE && thread->regs.valid != 0;

	if (!sampled->by_kernel) {
		if (sampled->deep > 0 && unreadable && thread->stopped_ns) {
			sampled->unreadable = true;
			sampled->deep = 0;
		}
		return;
	}
	if (sampled->slept) /* nothing else is left of it */
		return;
	sampled->unreadable &= unreadable;
	if (end == SS_END_LIMIT && sampler->options.max_stack > SS_SWITCH_STACK_MAX)
		sampled->deep = LARGE_CAPTURES;
	else
		sampled->deep = unreadable && !sampled->unreadable ? OTHER_CAPTURES : 0;
}

/*
 * Threads that the kernel sampled. Whether all are usable: what runtimes need was copied, the
 * whole stack of each was copied, and mappings were those of the capture. These are still there: if
 * the process has mapped nothing since the sample, they were there then.
 */
static bool check_samples(struct ss_recorder_process *process,
			  const struct ss_capture *capture,
			  const struct ss_unwound *unwound)
{
	bool whole = true;

	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_unwound_stack *stack =
			&unwound->stacks.items[unwound->threads.items[i].stack];
		struct ss_sampled_thread *sampled = ss_thread_list_find(
			&process->sampler.threads, capture->threads.items[i].tid);
		if (!sampled)
			continue;
		check_stack(&process->sampler, sampled, &capture->threads.items[i],
			    stack->end);
		if (!sampled->by_kernel)
			continue;
		sampled->areas.incomplete |=
			stack->count > 0 && process->loads.last_ns >= sampled->sampled_ns;
		if (sampled->copied && unwound->threads.items[i].lacks_calls)
			sampled->deep = ONE_CAPTURE;
		whole &= (sampled->slept ||
			  (sampled->deep == 0 && !lacks_functions(process, sampled))) &&
			 !sampled->areas.incomplete;
	}
	return whole;
}

static bool check_thread(void *data, pid_t tid)
{
	return ss_sampler_check(data, tid);
}

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
	ss_sample_reader_set(process->reader, &process->sample_plan, process->target->pid,
			     &checked);
}

/* Whether there is a plan that must be set: a new one, or one for threads whose ids are known by now. */
static bool take_plan(struct ss_recorder_process *process,
		      const struct ss_unwound *unwound)
{
	if (unwound->has_plan && !process->plan)
		process->plan = malloc(sizeof(*process->plan));
	if (unwound->has_plan && process->plan)
		*process->plan = unwound->plan;
	return process->plan && (unwound->has_plan || process->has_new_ids);
}

/* The plan has the ids of threads in their pid namespace. Of those that were not seen yet, they are not known:
   it is set again when there are more. */
static void translate_roots(struct ss_recorder_process *process,
			    struct ss_gather_plan *plan)
{
	process->has_new_ids = false;
	for (size_t i = 0; i < plan->root_count && i < SS_GATHER_ROOTS_MAX; i++) {
		const struct ss_sampled_thread *sampled =
			find_inner(process, plan->roots[i].tid);
		plan->roots[i].tid = sampled ? sampled->tid : 0;
	}
}

/* What is copied with the stacks of threads from now on. One that is not valid copies nothing. */
static void set_plan(struct ss_recorder_process *process)
{
	struct ss_gather_plan translated = *process->plan;
	const struct ss_gather_plan *plan = &translated;

	if (is_in_namespace(process))
		translate_roots(process, &translated);
	struct ss_error *error = ss_gathers_set(&process->sampler.gathers, plan);

	if (process->reader && error)
		ss_sample_reader_set(process->reader, &process->sample_plan, 0, NULL);
	else if (process->reader)
		plan_samples(process, plan);
	ss_error_free(error);
}

/* Unwinds a capture and records the threads whose frames are verified. *again: some are
   not, because modules were loaded or unloaded meanwhile. */
static struct ss_error *take_capture(struct ss_recorder_process *process,
				     struct ss_tick *tick, bool last, bool *again)
{
	struct ss_sampler *sampler = &process->sampler;
	struct result result = { .capture = tick->capture };
	bool verified = false;
	struct ss_error *error = NULL;

	if (!track(process, tick))
		return ss_error_no_memory();
	find_inner_tids(process, tick->capture);
	const struct ss_unwinder_runtimes runtimes = {
		.gathers = &sampler->gathers,
		.memory = &sampler->space.memory,
		.check = check_thread,
		.data = sampler,
	};
	if (!has_answered(process,
			  ss_unwinder_unwind(process->unwinder, &process->space,
					     &sampler->space, &process->modules,
					     tick->capture, &runtimes, &result.unwound),
			  &error))
		return error;
	const bool first_plan = result.unwound->has_plan && !process->plan;
	if (take_plan(process, result.unwound))
		set_plan(process);
	sampler->by_kernel = process->feed && !process->plan;
	if (process->feed && !ss_load_feed_read(process->feed))
		return ss_error_no_memory();
	enum ss_mapping_check mapping =
		ss_recorder_check_frames(process, tick->capture, result.unwound,
					 is_map_current(process), &verified);
	error = ss_sampler_confirm(sampler, mapping, tick, &result.stale);
	if (error || tick->change == SS_ADDRESS_SPACE_ENDED)
		return error;
	if (process->feed && !ss_load_feed_read(process->feed))
		return ss_error_no_memory();
	bool whole = check_samples(process, tick->capture, result.unwound);
	if (tick->change != SS_ADDRESS_SPACE_SAME && !track(process, tick))
		return ss_error_no_memory();
	result.last = last || sampler->late; /* the recording thread must end first */
	result.again = !result.last && first_plan;
	*again = !result.last && (result.stale || !verified || !whole || first_plan);
	return take_threads(process, &result);
}

/* Records a capture; captures threads again whose frames are not verified. */
static struct ss_error *take_captures(struct ss_recorder_process *process,
				      struct ss_tick *tick)
{
	bool again = true;

	for (int i = 0; i < CAPTURES_MAX && again && tick->capture; i++) {
		again = false;
		struct ss_error *error =
			take_capture(process, tick, i == CAPTURES_MAX - 1, &again);
		process->sampler.is_current = is_map_current(process);
		if (!error && again)
			error = ss_sampler_retry(&process->sampler, tick);
		if (error)
			return error;
	}
	return NULL;
}

static struct ss_sample_record sample_of(const struct ss_recorder_thread *thread)
{
	return (struct ss_sample_record){ .thread = thread->handle,
					  .stack = thread->stack,
					  .call = thread->call,
					  .state = thread->state };
}

/* In whole microseconds; the remainder is carried over to the next sample. */
static uint64_t count_us(uint64_t *counted_ns, uint64_t now_ns)
{
	uint64_t us = now_ns > *counted_ns ? (now_ns - *counted_ns) / NS_PER_US : 0;

	*counted_ns += us * NS_PER_US;
	return us;
}

static struct ss_sample_record count_sample(struct ss_recorder_thread *thread,
					    const struct ss_sampled_thread *sampled)
{
	struct ss_sample_record sample = sample_of(thread);

	sample.cpu_us = count_us(&thread->counted_ns, sampled->run_ns);
	sample.ready_us = count_us(&thread->counted_ready_ns, sampled->ready_ns);
	return sample;
}

static bool add_sample(struct ss_recorder_process *process,
		       const struct ss_sampled_thread *sampled,
		       struct ss_samples *samples)
{
	struct ss_sample_record *sample = ss_vector_push(&samples->items);

	if (sample)
		*sample = count_sample(&process->threads.items[sampled->slot], sampled);
	return sample != NULL;
}

/* The thread, if it is in the samples of a tick; or NULL. */
static struct ss_recorder_thread *in_samples(struct ss_recorder_process *process,
					     const struct ss_sampled_thread *sampled)
{
	struct ss_recorder_thread *thread = find_recorded(process, sampled);

	return thread && thread->sampled && !sampled->excluded &&
			       sampled->state != SS_THREAD_GONE ?
		       thread :
		       NULL;
}

/* Makes the samples of all threads anew. */
static bool group_samples(struct ss_recorder_process *process)
{
	const struct ss_thread_list *list = &process->sampler.threads;

	process->last.count = 0;
	for (size_t i = 0; i < process->threads.count; i++)
		process->threads.items[i].place = 0;
	for (size_t i = 0; i < list->items.count; i++) {
		const struct ss_sampled_thread *sampled = &list->items.items[i];
		struct ss_recorder_thread *thread = in_samples(process, sampled);
		struct ss_sample_record *sample =
			thread ? ss_vector_push(&process->last) : NULL;
		if (!thread)
			continue;
		if (!sample)
			return false;
		*sample = count_sample(thread, sampled);
		thread->place = (uint32_t)process->last.count;
	}
	return true;
}

/* Whether the threads in the samples of the last tick are those of this one: all others have not
   run since. */
static bool are_grouped(struct ss_recorder_process *process)
{
	const struct ss_thread_list *list = &process->sampler.threads;

	for (size_t i = 0; i < list->active.count && process->grouped; i++) {
		const struct ss_sampled_thread *sampled = ss_thread_list_active(list, i);
		const struct ss_recorder_thread *known = find_recorded(process, sampled);
		const struct ss_recorder_thread *thread = in_samples(process, sampled);
		process->grouped = (known && known->place) == (thread != NULL);
	}
	return process->grouped;
}

/* Of threads that are not active, the samples are those of the last tick. */
static bool add_samples(struct ss_recorder_process *process, struct ss_samples *samples)
{
	const struct ss_thread_list *list = &process->sampler.threads;
	const bool grouped = are_grouped(process);

	if (!grouped && !group_samples(process))
		return false;
	for (size_t i = 0; i < list->active.count && grouped; i++) {
		const struct ss_sampled_thread *sampled = ss_thread_list_active(list, i);
		struct ss_recorder_thread *thread = in_samples(process, sampled);
		if (thread)
			process->last.items[thread->place - 1] =
				count_sample(thread, sampled);
	}
	const size_t count = process->last.count;
	if (!ss_vector_reserve(&samples->items, samples->items.count + count + 1))
		return false;
	if (count) /* otherwise there may be no memory of them */
		memcpy(samples->items.items + samples->items.count, process->last.items,
		       count * sizeof(*process->last.items));
	samples->items.count += count;
	for (size_t i = 0; i < count && !grouped; i++)
		process->last.items[i].cpu_us = process->last.items[i].ready_us = 0;
	process->grouped = true;
	return true;
}

static struct ss_error *end(struct ss_recorder_process *process)
{
	struct ss_error *error = ss_recorder_process_finish(process);

	end_process(process);
	process->ended = true;
	return error;
}

struct ss_error *ss_recorder_process_tick(struct ss_recorder_process *process,
					  uint64_t now_ns,
					  const struct ss_on_cpu_sample *clocked,
					  size_t count, struct ss_samples *samples,
					  struct ss_tick_record *written)
{
	struct ss_tick tick;

	if (process->feed && !ss_load_feed_read(process->feed))
		return ss_error_no_memory();
	process->sampler.is_current = is_map_current(process);
	process->sampler.copies = process->sample_plan != 0;
	process->sampler.clocked = clocked;
	process->sampler.clocked_count = count;
	struct ss_error *error = ss_sampler_tick(&process->sampler, &tick);

	process->now_ns = now_ns;
	process->lost = false;
	if (!error && tick.change != SS_ADDRESS_SPACE_ENDED)
		error = take_captures(process, &tick);
	process->sampler.clocked_count = 0;
	if (error)
		return error;
	written->stopped_ns += tick.stopped_ns;
	written->stopped_max_ns = SS_MAX(written->stopped_max_ns, tick.stopped_max_ns);
	if (tick.change == SS_ADDRESS_SPACE_ENDED)
		return end(process);
	if (process->lost) {
		process->grouped = false;
		return NULL;
	}
	if (!track(process, &tick))
		return ss_error_no_memory();
	if (!has_answered(process,
			  ss_unwinder_sync(process->unwinder, &process->space,
					   &process->sampler.space, &process->modules),
			  &error))
		return error;
	return look_at_waits(process) && add_samples(process, samples) ?
		       NULL :
		       ss_error_no_memory();
}

/* Samples of the CPUs ---------------------------------------------------- */

/* A sample was taken at an unknown moment between two reads of the memory map. */
static void check_sample(struct ss_recorder_process *process,
			 struct ss_sampled_thread *sampled,
			 const struct ss_unwound_stack *stack)
{
	for (size_t f = 0; f < stack->count; f++)
		sampled->areas.incomplete |=
			ss_sampler_was_other(&process->sampler, stack->frames[f].pc);
}

/* Whether the mappings of all frames are those of the capture. */
static enum ss_mapping_check check_mappings(struct ss_recorder_process *process,
					    const struct ss_unwound *unwound)
{
	enum ss_mapping_check worst = SS_MAPPING_SAME;
	uint64_t last = 0; /* frames that follow each other are often in one area */

	for (size_t i = 0; i < unwound->frames.count; i++) {
		uint64_t pc = unwound->frames.items[i].pc;
		const struct ss_area *area =
			ss_capture_find_area(process->sampler.space.capture, pc);
		if (area && area->start == last)
			continue;
		last = area ? area->start : 0;
		worst = SS_MIN(worst,
			       ss_address_space_check(&process->sampler.space, pc));
	}
	return worst;
}

/* What was mapped since a sample may have taken the place of what it was in. False without
   memory. */
static bool check_loads(struct ss_recorder_process *process,
			const struct ss_capture *capture,
			const struct ss_unwound *unwound)
{
	if (!process->feed)
		return true;
	if (!ss_load_feed_read(process->feed))
		return false;
	for (size_t i = 0; i < capture->threads.count; i++) {
		struct ss_sampled_thread *sampled = ss_thread_list_find(
			&process->sampler.threads, capture->threads.items[i].tid);
		const struct ss_unwound_stack *stack =
			&unwound->stacks.items[unwound->threads.items[i].stack];
		bool loaded = sampled && process->loads.last_ns >= sampled->sampled_ns;
		for (size_t f = 0; loaded && f < stack->count; f++)
			sampled->areas.incomplete |= ss_module_loads_covered(
				&process->loads, stack->frames[f].pc,
				sampled->sampled_ns);
	}
	return true;
}

/* Unwinds samples; once more if the memory map has changed. NULL in result->unwound: they
   are lost, or of a program that was replaced. */
static struct ss_error *unwind_samples(struct ss_recorder_process *process,
				       struct ss_tick *tick, struct result *result)
{
	struct ss_sampler *sampler = &process->sampler;
	const struct ss_unwinder_runtimes runtimes = {
		.gathers = &sampler->gathers,
		.memory = &sampler->space.memory,
	};
	struct ss_error *error = NULL;
	bool planned = false;
	bool changed = false;

	for (int i = 0; i < CAPTURES_MAX; i++) {
		const struct ss_unwound *unwound = NULL;
		if (!has_answered(process,
				  ss_unwinder_unwind(process->unwinder, &process->space,
						     &sampler->space, &process->modules,
						     result->capture, &runtimes,
						     &unwound),
				  &error))
			return error;
		planned |= take_plan(process, unwound);
		error = ss_sampler_confirm(sampler, check_mappings(process, unwound),
					   tick, &result->stale);
		if (error || tick->change >= SS_ADDRESS_SPACE_REPLACED)
			return error;
		result->unwound = unwound;
		if (tick->change == SS_ADDRESS_SPACE_SAME)
			break;
		changed = true;
		if (!ss_sampler_move(sampler, result->capture))
			return ss_error_no_memory();
		result->capture = sampler->space.capture;
		if (!apply_change(process, tick))
			return ss_error_no_memory();
	}
	/* Not before: it drops the turns. */
	if (planned)
		set_plan(process);
	for (size_t i = 0; changed && i < result->capture->threads.count; i++) {
		const struct ss_unwound *unwound = result->unwound;
		struct ss_sampled_thread *sampled = ss_thread_list_find(
			&sampler->threads, result->capture->threads.items[i].tid);
		if (sampled)
			check_sample(
				process, sampled,
				&unwound->stacks.items[unwound->threads.items[i].stack]);
	}
	return check_loads(process, result->capture, result->unwound) ?
		       NULL :
		       ss_error_no_memory();
}

static struct ss_error *take_samples(struct ss_recorder_process *process,
				     struct ss_tick *tick, struct ss_samples *samples)
{
	struct result result = { .capture = tick->capture, .last = true, .taken = true };

	if (!apply_change(process, tick))
		return ss_error_no_memory();
	if (!tick->capture)
		return NULL;
	find_inner_tids(process, tick->capture);
	struct ss_error *error = unwind_samples(process, tick, &result);
	if (error || process->lost || !result.unwound ||
	    tick->change >= SS_ADDRESS_SPACE_REPLACED)
		return error;
	error = take_threads(process, &result);
	for (size_t i = 0; !error && i < result.capture->threads.count; i++) {
		const struct ss_sampled_thread *sampled = ss_thread_list_find(
			&process->sampler.threads, result.capture->threads.items[i].tid);
		if (sampled && !add_sample(process, sampled, samples))
			error = ss_error_no_memory();
	}
	return error;
}

struct ss_error *ss_recorder_process_take(struct ss_recorder_process *process,
					  uint64_t now_ns,
					  const struct ss_on_cpu_sample *sampled,
					  size_t count, struct ss_samples *samples)
{
	struct ss_tick tick;
	struct ss_error *error =
		ss_sampler_take(&process->sampler, sampled, count, &tick);

	process->sampled = true;
	process->now_ns = now_ns;
	process->lost = false;
	if (!error && tick.change != SS_ADDRESS_SPACE_ENDED)
		error = take_samples(process, &tick, samples);
	if (error)
		return error;
	if (tick.change < SS_ADDRESS_SPACE_REPLACED)
		error = ss_sampler_follow(&process->sampler, &tick);
	if (error)
		return error;
	if (tick.change == SS_ADDRESS_SPACE_ENDED)
		return end(process);
	if (process->lost)
		return NULL;
	if (!track(process, &tick))
		return ss_error_no_memory();
	(void)has_answered(process,
			   ss_unwinder_sync(process->unwinder, &process->space,
					    &process->sampler.space, &process->modules),
			   &error);
	return error;
}

bool ss_recorder_process_last(const struct ss_recorder_process *process,
			      struct ss_samples *samples)
{
	for (size_t i = 0; i < process->threads.count; i++) {
		const struct ss_recorder_thread *thread = &process->threads.items[i];
		if (!thread->tid || !thread->sampled)
			continue;
		struct ss_sample_record *sample = ss_vector_push(&samples->items);
		if (!sample)
			return false;
		*sample = sample_of(thread);
	}
	return true;
}

void ss_recorder_process_renumber(struct ss_recorder_process *process,
				  const struct ss_sample_record **next)
{
	for (size_t i = 0; i < process->threads.count; i++) {
		struct ss_recorder_thread *thread = &process->threads.items[i];
		if (!thread->tid || !thread->sampled)
			continue;
		thread->stack = (*next)->stack;
		thread->call = (*next)->call;
		(*next)++;
	}
	process->grouped = false;
	ss_recorder_waits_forget(&process->waits);
}
