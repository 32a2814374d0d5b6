/*
 * A tick of a recorded process. Its phases, of which each passes over the threads that were
 * captured:
 *
 *	capture   the threads that have run since the last tick (ss_sampler_tick()), or what was
 *		  sampled on CPUs (ss_sampler_take())
 *	unwind    by the unwinder, which describes new modules
 *	confirm   that the frames lie in the modules that the memory map has for them
 *	check     whether the samples of the kernel are enough
 *	record    stack, call and state of each thread; those that are not confirmed are captured
 *		  again, twice at most
 *	waits     what blocked threads wait for
 *	samples   one of each thread, or of each that was sampled
 */
#include <string.h>

#include "base/intern.h"
#include "base/search.h"
#include "data/recording_format.h"
#include "sample/recorder_process.h"

enum {
	ROUNDS_MAX = 3,
	NS_PER_US = 1000,
	/* Stopped for so many captures, if the kernel's copy of a stack was not enough. */
	LARGE_CAPTURES = 64,
	OTHER_CAPTURES = 4, /* on another stack, perhaps for a moment */
	ONE_CAPTURE = 2,    /* of functions: the next one, which is of the same tick */
	UNREAD_NS = 1500 * 1000 * 1000, /* in which the memory map is read again */
};

/* A tick between its phases. */
struct tick {
	struct ss_recorder_process *process;
	struct ss_tick found;		  /* the capture */
	const struct ss_unwound *unwound; /* its stacks */
	struct ss_samples *samples;	  /* the result */
	bool last;			  /* no other capture follows in this tick */
	bool stale;			  /* all stacks are stale: modules have changed */
	bool changed;			  /* the memory map has, since the capture */
	bool set_plan;			  /* when the threads are recorded */
	bool first_plan; /* threads are captured again in this tick whose calls are missing */
};

/* A captured thread. */
struct item {
	struct ss_sampled_thread *thread;
	const struct ss_capture_thread *captured;
	const struct ss_unwound_thread *unwound;
	const struct ss_unwound_stack *stack;
	const struct ss_unwound_frame *frames; /* of the stack */
};

static struct item item_at(const struct tick *tick, size_t index)
{
	const struct ss_unwound_thread *unwound = &tick->unwound->threads.items[index];
	const struct ss_unwound_stack *stack =
		&tick->unwound->stacks.items[unwound->stack];

	return (struct item){
		.thread = tick->process->sampler.captured.items[index],
		.captured = &tick->found.capture->threads.items[index],
		.unwound = unwound,
		.stack = stack,
		.frames = ss_unwound_frames(tick->unwound, stack),
	};
}

static bool read_loads(struct ss_recorder_process *process)
{
	return !process->feed || ss_load_feed_read(process->feed);
}

/* What the kernel's samples of threads have, as far as it is known by now. */
static enum ss_kernel_samples samples_of(const struct ss_recorder_process *process)
{
	if (process->plan)
		return process->sample_plan ? SS_SAMPLES_OF_RUNTIMES :
					      SS_SAMPLES_OF_TIMES;
	return process->feed ? SS_SAMPLES_OF_STACKS : SS_SAMPLES_OF_TIMES;
}

/* Unwind ----------------------------------------------------------------- */

/* Whether the unwinder has answered. If so, defines new modules. */
static bool has_answered(struct ss_recorder_process *process,
			 enum ss_unwinder_result result, struct ss_error **error)
{
	if (result == SS_UNWINDER_FAILED) {
		process->state = SS_PROCESS_LOST;
		ss_sampler_discard(&process->sampler);
		return false;
	}
	if (result == SS_UNWINDER_NO_MEMORY ||
	    !ss_recorder_process_define_modules(process)) {
		*error = ss_error_no_memory();
		return false;
	}
	return true;
}

static bool describe_modules(struct ss_recorder_process *process, struct ss_error **error)
{
	return has_answered(process,
			    ss_unwinder_sync(process->options->unwinder, &process->space,
					     &process->sampler.space, &process->modules),
			    error);
}

/* Runtimes know their threads by these ids. */
static void find_inner_tids(struct tick *tick)
{
	struct ss_sampler *sampler = &tick->process->sampler;

	for (size_t i = 0;
	     ss_sampler_is_in_namespace(sampler) && i < sampler->captured.count; i++)
		tick->found.capture->threads.items[i].inner_tid =
			ss_sampler_inner_tid(sampler, sampler->captured.items[i]);
}

static bool unwind(struct tick *tick, struct ss_error **error)
{
	struct ss_recorder_process *process = tick->process;
	struct ss_sampler *sampler = &process->sampler;
	const bool planned = process->plan;
	const struct ss_unwinder_runtimes runtimes = {
		.gathers = &sampler->gathers,
		.memory = &sampler->space.memory,
		.threads = process->options->only_samples ? NULL : &sampler->threads,
	};

	find_inner_tids(tick);
	if (!has_answered(process,
			  ss_unwinder_unwind(process->options->unwinder, &process->space,
					     &sampler->space, &process->modules,
					     tick->found.capture, &runtimes,
					     &tick->unwound),
			  error))
		return false;
	tick->set_plan |= ss_recorder_process_take_plan(process, tick->unwound);
	tick->first_plan = tick->unwound->plans.count && !planned;
	return true;
}

/* Confirm ---------------------------------------------------------------- */

static bool is_among(const uint64_t *starts, size_t count, uint64_t start)
{
	return ss_any(count, i, starts[i] == start);
}

/*
 * Checks that the frames of a thread lie in the modules that the sampler assigned to them. current:
 * the frames in areas of the memory map need no check. Returns the worst result for areas that were
 * not verified. Even SAME does not verify them: it was read after the thread may have run.
 */
static enum ss_mapping_check check_frames(struct ss_sampler *sampler,
					  const struct item *item, bool current)
{
	struct ss_area_check *areas = &item->thread->areas;
	enum ss_mapping_check worst = SS_MAPPING_SAME;
	uint64_t starts[SS_AREA_CHECK_MAX]; /* of the areas of its frames */
	size_t count = 0;

	for (size_t i = 0; i < item->stack->count && worst != SS_MAPPING_DIFFERS; i++) {
		const struct ss_unwound_frame *frame = &item->frames[i];
		const bool call = ss_frame_flags_source(frame->flags) == SS_FROM_RUNTIME;
		const struct ss_area *area =
			call ? NULL :
			       ss_capture_find_area(sampler->space.capture, frame->pc);
		if (call || (area && is_among(starts, count, area->start)))
			continue;
		const bool fits = area && count < SS_AREA_CHECK_MAX;
		if (fits)
			starts[count++] = area->start;
		if (area && (current || ss_area_check_contains(areas, area->start)))
			continue;
		const enum ss_mapping_check found =
			ss_address_space_check(&sampler->space, frame->pc);
		worst = SS_MIN(worst, found);
		/* More areas than fit are never verified, and a sample of the kernel cannot be:
		   another attempt would not help. */
		areas->incomplete |= fits && item->thread->origin == SS_THREAD_READ &&
				     worst != SS_MAPPING_UNKNOWN;
	}
	ss_area_check_remember(areas, starts, count);
	/* If the thread has not run, the current mappings are those of the capture. */
	if (areas->incomplete &&
	    ss_thread_list_is_unchanged(&sampler->threads, item->thread))
		areas->incomplete = false;
	return worst;
}

/* Confirms all frames. *verified: all areas of all threads were. */
static struct ss_error *confirm(struct tick *tick, bool *verified)
{
	struct ss_recorder_process *process = tick->process;
	struct ss_sampler *sampler = &process->sampler;
	const bool current = !process->options->only_samples &&
			     ss_recorder_process_is_current(process);
	enum ss_mapping_check worst = SS_MAPPING_SAME;

	*verified = true;
	for (size_t i = 0; i < sampler->captured.count; i++) {
		const struct item item = item_at(tick, i);
		if (worst != SS_MAPPING_DIFFERS) {
			const enum ss_mapping_check found =
				check_frames(sampler, &item, current);
			worst = SS_MIN(worst, found);
		}
		*verified &= !item.thread->areas.incomplete;
	}
	return ss_sampler_confirm(sampler, worst, &tick->found, &tick->stale);
}

/* Check ------------------------------------------------------------------ */

/* Whether a sample of the kernel has no functions that a capture would have. */
static bool lacks_functions(const struct ss_recorder_process *process,
			    const struct ss_sampled_thread *thread)
{
	return process->plan && thread->origin != SS_THREAD_COPIED;
}

/*
 * The kernel copies what is at the stack pointer. A stop copies more: of a larger stack, and of the
 * stack that a signal handler or a coroutine was entered from. If that is not enough either, the
 * thread is not stopped for it again.
 */
static void check_stack(const struct ss_sampler *sampler, const struct item *item)
{
	struct ss_sampled_thread *thread = item->thread;
	const enum ss_end end = item->stack->end;
	const bool unreadable = end == SS_END_UNREADABLE &&
				item->captured->regs.valid != 0;

	if (thread->origin == SS_THREAD_READ) {
		if (thread->deep > 0 && unreadable && item->captured->stopped_ns) {
			thread->unreadable = true;
			thread->deep = 0;
		}
		return;
	}
	if (thread->origin == SS_THREAD_SLEPT) /* nothing else is left of it */
		return;
	thread->unreadable &= unreadable;
	if (end == SS_END_LIMIT && sampler->options.max_stack > SS_SWITCH_STACK_MAX)
		thread->deep = LARGE_CAPTURES;
	else
		thread->deep = unreadable && !thread->unreadable ? OTHER_CAPTURES : 0;
}

/*
 * A thread that the kernel sampled. Whether that is enough: what runtimes need was copied, the whole
 * stack was copied, and mappings were those of the capture. These are still there: if the process
 * has mapped nothing since the sample, they were there then.
 */
static bool check_sample(struct ss_recorder_process *process, const struct item *item)
{
	struct ss_sampled_thread *thread = item->thread;

	check_stack(&process->sampler, item);
	if (thread->origin == SS_THREAD_READ)
		return true;
	thread->areas.incomplete |= item->stack->count > 0 &&
				    process->loads.last_ns >= thread->sampled_ns;
	if (thread->origin == SS_THREAD_COPIED && item->unwound->lacks_calls)
		thread->deep = ONE_CAPTURE;
	return (thread->origin == SS_THREAD_SLEPT ||
		(thread->deep == 0 && !lacks_functions(process, thread))) &&
	       !thread->areas.incomplete;
}

/* A sample that nothing can replace: it was taken at an unknown moment between two reads of the
   memory map, or what was mapped since may have taken the place of what it was in. */
static void check_only_sample(const struct tick *tick, const struct item *item)
{
	const struct ss_recorder_process *process = tick->process;
	struct ss_sampled_thread *thread = item->thread;
	const bool loaded = process->feed && process->loads.last_ns >= thread->sampled_ns;

	for (size_t i = 0; i < item->stack->count; i++) {
		const uint64_t pc = item->frames[i].pc;
		thread->areas.incomplete |=
			(tick->changed && ss_sampler_was_other(&process->sampler, pc)) ||
			(loaded && ss_module_loads_covered(&process->loads, pc,
							   thread->sampled_ns));
	}
}

/* Whether all threads are usable. */
static bool check(struct tick *tick)
{
	bool whole = true;

	for (size_t i = 0; i < tick->process->sampler.captured.count; i++) {
		const struct item item = item_at(tick, i);
		if (tick->process->options->only_samples)
			check_only_sample(tick, &item);
		else
			whole &= check_sample(tick->process, &item);
	}
	return whole;
}

/* Record ----------------------------------------------------------------- */

static bool is_musl(const struct tick *tick, const struct item *item)
{
	int32_t module = item->stack->count ? item->frames[0].module : -1;

	return module >= 0 &&
	       strstr(tick->found.capture->modules.items[module]->pub.path, "musl");
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
static bool is_unread(const struct ss_recorder_process *process, const struct item *item)
{
	const struct ss_capture_thread *captured = item->captured;
	struct ss_recorder_thread *recorded = item->thread->recorded;
	const uint64_t run_count = item->thread->run_count;

	if (item->stack->end != SS_END_UNREADABLE || captured->reason ||
	    captured->worker || captured->state == 'Z')
		return false;
	/* A stack that the map has is most likely unreadable for another reason: the thread is not
	   captured again after each run. */
	bool restarts = !is_stack_mapped(process, captured) &&
			recorded->unread_count != run_count;
	if (!recorded->unread_ns || restarts) {
		recorded->unread_ns = process->now_ns;
		recorded->unread_count = run_count;
	}
	return process->now_ns - recorded->unread_ns < (uint64_t)UNREAD_NS;
}

/* Whether a thread is not to be used as it was captured. */
static bool is_unusable(const struct tick *tick, const struct ss_sampled_thread *thread)
{
	return tick->stale || thread->areas.incomplete ||
	       (!tick->last &&
		(thread->origin == SS_THREAD_SAMPLED ||
		 thread->origin == SS_THREAD_COPIED) &&
		(thread->deep > 0 || lacks_functions(tick->process, thread)));
}

/* Accepts a captured thread. Returns the number of its stack; SS_ID_NONE: no memory. */
static uint32_t accept(struct tick *tick, const struct item *item, size_t index)
{
	ss_thread_accept(item->thread, item->captured->stopped_ns > 0,
			 item->stack->end == SS_END_REGISTER);
	uint32_t stack = ss_recorder_stack_of(tick->process, tick->found.capture,
					      tick->unwound, index);
	if (is_unread(tick->process, item))
		ss_thread_reject(item->thread, false);
	/* With the new plan, the next capture finds its calls. */
	if (tick->unwound->plans.count && item->unwound->lacks_calls)
		ss_thread_reject(item->thread, tick->first_plan && !tick->last);
	return stack;
}

/* In whole microseconds; the remainder is carried over to the next sample. */
static uint64_t count_us(uint64_t *counted_ns, uint64_t now_ns)
{
	uint64_t us = now_ns > *counted_ns ? (now_ns - *counted_ns) / NS_PER_US : 0;

	*counted_ns += us * NS_PER_US;
	return us;
}

static struct ss_sample_record count_sample(const struct ss_sampled_thread *thread)
{
	struct ss_recorder_thread *recorded = thread->recorded;

	return (struct ss_sample_record){
		.thread = recorded->handle,
		.stack = recorded->stack,
		.call = recorded->call,
		.state = recorded->state,
		.cpu_us = count_us(&recorded->counted_ns, thread->run_ns),
		.ready_us = count_us(&recorded->counted_ready_ns, thread->ready_ns),
	};
}

/* Records the stack of one thread, or requests another capture of it. False: no
   memory. */
static bool record_thread(struct tick *tick, size_t index)
{
	struct ss_recorder_process *process = tick->process;
	struct ss_writer *writer = process->options->writer;
	const struct item item = item_at(tick, index);
	const struct ss_capture_thread *captured = item.captured;
	const bool unusable = is_unusable(tick, item.thread);
	const bool only_samples = process->options->only_samples;

	if (item.thread->state == SS_THREAD_GONE && !only_samples)
		return true;
	if (unusable && !tick->last) {
		ss_thread_reject(item.thread, true);
		return true;
	}
	struct ss_recorder_thread *recorded =
		ss_recorder_process_define_thread(process, item.thread);
	if (!recorded)
		return false;
	ss_recorder_process_name_thread(
		process, recorded, ss_unwound_text(tick->unwound, item.unwound->name));
	if (unusable)
		ss_thread_reject(item.thread, false); /* the next tick may succeed */
	recorded->stack = unusable ? ss_recorder_no_stack(process, tick->stale) :
				     accept(tick, &item, index);
	recorded->state = captured->state;
	const long call = ss_arch_recorded_number(process->sampler.target->arch,
						  &captured->syscall);
	recorded->call =
		call < 0 ? SS_ID_NONE :
			   ss_writer_call(writer, call, captured->syscall.args[0], NULL);
	const bool may_wait = !unusable && !process->sampler.on_cpu;
	if (recorded->stack == SS_ID_NONE ||
	    !ss_recorder_waits_note(
		    &process->waits, &recorded->wait, may_wait ? captured : NULL,
		    ss_unwound_text(tick->unwound, item.unwound->function),
		    may_wait && is_musl(tick, &item)))
		return false;
	struct ss_sample_record *sample =
		only_samples ? ss_vector_push(&tick->samples->items) : NULL;
	if (sample)
		*sample = count_sample(item.thread);
	return sample || !only_samples;
}

static bool record(struct tick *tick)
{
	if (!ss_recorder_stacks_begin(tick->process, tick->unwound->stacks.count))
		return false;
	for (size_t i = 0; i < tick->process->sampler.captured.count; i++) {
		if (!record_thread(tick, i))
			return false;
	}
	return true;
}

/* Rounds ----------------------------------------------------------------- */

/* The memory map has changed since the capture. Samples, which are of an unknown time, move to the new
   one. False: no memory. */
static bool follow_map(struct tick *tick)
{
	struct ss_recorder_process *process = tick->process;

	if (tick->found.change == SS_ADDRESS_SPACE_SAME)
		return true;
	tick->changed = true;
	if (process->options->only_samples) {
		if (!ss_sampler_move(&process->sampler, tick->found.capture))
			return false;
		tick->found.capture = process->sampler.space.capture;
	}
	return ss_recorder_process_follow(process, &tick->found.change);
}

/* Unwinds a capture and records the threads whose frames are confirmed. *again: some are not, because
   modules were loaded or unloaded meanwhile. */
static struct ss_error *take_round(struct tick *tick, bool *again)
{
	struct ss_recorder_process *process = tick->process;
	const bool only_samples = process->options->only_samples;
	struct ss_error *error = NULL;
	bool verified = false;

	*again = false;
	if (!ss_recorder_process_follow(process, &tick->found.change))
		return ss_error_no_memory();
	if (!unwind(tick, &error))
		return error;
	if (!read_loads(process))
		return ss_error_no_memory();
	error = confirm(tick, &verified);
	if (error || tick->found.change == SS_ADDRESS_SPACE_ENDED ||
	    (only_samples && tick->found.change == SS_ADDRESS_SPACE_REPLACED))
		return error;
	const bool changed = tick->found.change != SS_ADDRESS_SPACE_SAME;
	if (!read_loads(process))
		return ss_error_no_memory();
	const bool whole = only_samples || check(tick);
	if (!follow_map(tick))
		return ss_error_no_memory();
	/* Nothing is captured again: samples are unwound until the map stays the same. */
	*again = only_samples && changed && !tick->last;
	if (*again)
		return NULL;
	tick->last |= only_samples;
	if (only_samples)
		(void)check(tick);
	*again = !tick->last && (tick->stale || !verified || !whole || tick->first_plan);
	if (!record(tick))
		return ss_error_no_memory();
	if (tick->set_plan)
		ss_recorder_process_set_plan(process);
	tick->set_plan = false;
	process->sampler.by_kernel = samples_of(process);
	return NULL;
}

/* Captures threads again whose frames are not confirmed. */
static struct ss_error *take_rounds(struct tick *tick)
{
	struct ss_sampler *sampler = &tick->process->sampler;
	struct ss_error *error = NULL;
	bool again = true;

	for (int i = 0; i < ROUNDS_MAX && again && !error && tick->found.capture; i++) {
		/* This thread must end first if it is late. */
		tick->last = i == ROUNDS_MAX - 1 || sampler->late;
		error = take_round(tick, &again);
		sampler->is_current = ss_recorder_process_is_current(tick->process);
		if (!error && again && !tick->process->options->only_samples)
			error = ss_sampler_retry(sampler, &tick->found);
	}
	return error;
}

/* Samples ---------------------------------------------------------------- */

/* Whether a thread is in the samples of a tick. */
static bool is_in_samples(const struct ss_sampled_thread *thread)
{
	return thread->recorded && thread->recorded->stack != SS_ID_NONE &&
	       !thread->excluded && thread->state != SS_THREAD_GONE;
}

/* Makes the samples of all threads anew. */
static bool group_samples(struct ss_recorder_process *process)
{
	const struct ss_thread_list *list = &process->sampler.threads;

	process->last.count = 0;
	for (size_t i = 0; i < list->items.count; i++) {
		const struct ss_sampled_thread *thread = &list->items.items[i];
		if (thread->recorded)
			thread->recorded->place = 0;
		if (!is_in_samples(thread))
			continue;
		struct ss_sample_record *sample = ss_vector_push(&process->last);
		if (!sample)
			return false;
		*sample = count_sample(thread);
		thread->recorded->place = (uint32_t)process->last.count;
	}
	return true;
}

/* Whether the threads in the samples of the last tick are those of this one: all others have not
   run since. */
static bool are_grouped(struct ss_recorder_process *process)
{
	const struct ss_thread_list *list = &process->sampler.threads;

	for (size_t i = 0; i < list->active.count && process->grouped; i++) {
		const struct ss_sampled_thread *thread = ss_thread_list_active(list, i);
		process->grouped = (thread->recorded && thread->recorded->place) ==
				   is_in_samples(thread);
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
		const struct ss_sampled_thread *thread = ss_thread_list_active(list, i);
		if (is_in_samples(thread))
			process->last.items[thread->recorded->place - 1] =
				count_sample(thread);
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

/* Looks up waits, and adds the samples. False: no memory. */
static bool sum_up(struct ss_recorder_process *process, struct ss_samples *samples)
{
	const struct ss_recorder_process_options *options = process->options;

	return ss_recorder_waits_look(&process->waits, options->waits_budget,
				      &process->sampler, options->writer,
				      process->grouped ? process->last.items : NULL,
				      process->now_ns) &&
	       add_samples(process, samples);
}

/* The tick --------------------------------------------------------------- */

static struct ss_error *capture(struct tick *tick, const struct ss_on_cpu_sample *clocked,
				size_t count)
{
	struct ss_recorder_process *process = tick->process;
	struct ss_sampler *sampler = &process->sampler;

	if (process->options->only_samples)
		return ss_sampler_take(sampler, clocked, count, &tick->found);
	if (!read_loads(process))
		return ss_error_no_memory();
	sampler->is_current = ss_recorder_process_is_current(process);
	sampler->by_kernel = samples_of(process);
	sampler->clocked = clocked;
	sampler->clocked_count = count;
	return ss_sampler_tick(sampler, &tick->found);
}

struct ss_error *ss_recorder_process_tick(struct ss_recorder_process *process,
					  uint64_t now_ns,
					  const struct ss_on_cpu_sample *clocked,
					  size_t count, struct ss_samples *samples,
					  struct ss_tick_record *written)
{
	const bool only_samples = process->options->only_samples;
	struct tick tick = { .process = process, .samples = samples };

	process->state = SS_PROCESS_RECORDED;
	process->now_ns = now_ns;
	/* Those of a tick that was lost. */
	ss_recorder_process_end_threads(process);
	struct ss_error *error = capture(&tick, clocked, count);

	if (!error && tick.found.change != SS_ADDRESS_SPACE_ENDED)
		error = take_rounds(&tick);
	process->sampler.clocked_count = 0;
	if (!error && only_samples && tick.found.change < SS_ADDRESS_SPACE_REPLACED)
		error = ss_sampler_follow(&process->sampler, &tick.found);
	if (error)
		return error;
	written->stopped_ns += tick.found.stopped_ns;
	written->stopped_max_ns =
		SS_MAX(written->stopped_max_ns, tick.found.stopped_max_ns);
	if (tick.found.change == SS_ADDRESS_SPACE_ENDED)
		return ss_recorder_process_end(process);
	if (process->state == SS_PROCESS_LOST) {
		process->grouped = false;
		return NULL;
	}
	if (!ss_recorder_process_follow(process, &tick.found.change))
		return ss_error_no_memory();
	ss_recorder_process_end_threads(process);
	if (!describe_modules(process, &error))
		return error;
	return only_samples || sum_up(process, samples) ? NULL : ss_error_no_memory();
}
