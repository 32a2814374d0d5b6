#include "record/followed.h"

#include <string.h>

#include "capture/sampled.h"
#include "model/snapshot.h"
#include "record/placing.h"
#include "record/written.h"

/* What we note of a thread. */
enum {
	NOTE_THREAD, /* handle + 1; 0: not defined yet */
	NOTE_STACK,  /* + 1; 0: it has none yet */
	NOTE_CALL,   /* + 1; 0: none */
	NOTE_STATE,
};

enum {
	ATTEMPTS = 3, /* while modules come and go */
};

SS_DEFINE_CLEANUP(struct ss_snapshot, snapshot, ss_snapshot_free)

static const char changed_text[] = "modules were loaded or unloaded while it was read";
static const char unproved_text[] = "it ran on before it was asked what was mapped there";

void ss_followed_init(struct ss_followed *followed, struct ss_target *target,
		      const struct ss_capture_options *options)
{
	*followed = (struct ss_followed){ .target = target, .process = SS_ID_NONE };
	ss_sampler_init(&followed->sampler, target, options);
}

void ss_followed_deinit(struct ss_followed *followed)
{
	ss_sampler_deinit(&followed->sampler);
	ss_tracked_deinit(&followed->modules);
	ss_jit_deinit(&followed->jit);
	ss_vector_free(&followed->handles);
	ss_vector_free(&followed->stacks);
	ss_vector_free(&followed->frames);
	if (followed->owned)
		ss_target_close(followed->target);
}

static void watch_module(void *data, struct ss_tracked *module, bool loaded)
{
	struct ss_followed *followed = data;

	if (loaded)
		module->note = ss_writer_add_module(
			followed->writer, followed->process, &module->module->pub,
			ss_tracked_bias(module->module), followed->now_ns);
	else if (module->note != SS_ID_NONE)
		ss_writer_end_module(followed->writer, module->note, followed->now_ns);
}

static void end_threads(struct ss_followed *followed, bool all)
{
	for (size_t i = 0; i < followed->sampler.threads.count; i++) {
		struct ss_sampled *thread = &followed->sampler.threads.items[i];
		if (!(thread->gone || all) || !thread->notes[NOTE_THREAD])
			continue;
		ss_writer_end_thread(followed->writer, thread->notes[NOTE_THREAD] - 1,
				     followed->now_ns);
		memset(thread->notes, 0, sizeof(thread->notes));
	}
}

/* The process ends, or goes on as another program: what was known of it is void. */
static void end_process(struct ss_followed *followed)
{
	if (followed->process == SS_ID_NONE)
		return;
	end_threads(followed, true);
	/* Cannot fail: nothing is added. */
	(void)ss_tracked_update(&followed->modules, NULL, watch_module, followed);
	ss_writer_end_process(followed->writer, followed->process, followed->now_ns);
	followed->process = SS_ID_NONE;
	/* The next program may have written over it. */
	ss_jit_deinit(&followed->jit);
}

struct ss_error *ss_followed_finish(struct ss_followed *followed)
{
	return followed->process == SS_ID_NONE ?
		       NULL :
		       ss_jit_write(&followed->jit, followed->target, followed->writer,
				    followed->process);
}

static bool begin_process(struct ss_followed *followed)
{
	if (followed->process != SS_ID_NONE)
		return true;
	const struct ss_target *target = followed->target;
	_cleanup_free_ char *name = NULL;
	_cleanup_free_ char *executable = NULL;
	ss_target_describe(target, &name, &executable);
	followed->process = ss_writer_add_process(followed->writer, target->pid,
						  target->start_time, name ? name : "",
						  executable, followed->now_ns);
	return followed->process != SS_ID_NONE;
}

/* The handles of the snapshot's modules. */
static bool find_handles(struct ss_followed *followed, const struct ss_snapshot *snapshot)
{
	followed->handles.count = 0;
	for (size_t i = 0; i < snapshot->modules.count; i++) {
		uint32_t *slot = ss_vector_push(&followed->handles);
		const struct ss_tracked *tracked =
			ss_tracked_find(&followed->modules, snapshot->modules.items[i]);
		if (!slot)
			return false;
		*slot = tracked ? tracked->note : SS_ID_NONE;
	}
	return true;
}

/* .NET keeps what it compiles in such a file. */
static bool is_jit(const struct ss_frame *frame)
{
	return frame->module ?
		       strncmp(frame->module->path, "/memfd:doublemapper", 19) == 0 :
		       frame->area != NULL;
}

static uint32_t write_stack(struct ss_followed *followed, const struct ss_stack *stack,
			    const char *reason)
{
	followed->frames.count = 0;
	for (size_t i = 0; i < stack->count; i++) {
		struct ss_written_frame *frame = ss_vector_push(&followed->frames);
		if (!frame)
			return SS_ID_NONE;
		*frame = ss_written_frame_of(&stack->frames[i], followed->process,
					     followed->handles.items);
		/* Not while a thread that is late may stop for us. */
		if (is_jit(&stack->frames[i]) && !followed->sampler.late)
			ss_jit_look(&followed->jit, followed->target, followed->now_ns);
	}
	return ss_writer_stack(followed->writer, followed->frames.items,
			       followed->frames.count, stack->end, reason);
}

/* The number of the stack of a thread in the snapshot, written when it is first met. A
   reason is rare, and the thread's own. */
static uint32_t stack_of(struct ss_followed *followed, const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread)
{
	uint32_t *slot = &followed->stacks.items[thread->stack_id];
	const struct ss_stack *stack = &snapshot->stacks.items[thread->stack_id];

	if (thread->reason)
		return write_stack(followed, stack, thread->reason);
	if (*slot == SS_ID_NONE)
		*slot = write_stack(followed, stack, NULL);
	return *slot;
}

/* Defines a thread when it is first met, and its name when that is another one. */
static bool define_thread(struct ss_followed *followed, struct ss_sampled *sampled,
			  const char *before)
{
	if (!sampled->notes[NOTE_THREAD]) {
		uint32_t handle = ss_writer_add_thread(followed->writer,
						       followed->process, sampled->tid,
						       sampled->name, followed->now_ns);
		if (handle == SS_ID_NONE)
			return false;
		sampled->notes[NOTE_THREAD] = handle + 1;
		sampled->counted_ns = sampled->run_ns;
	} else if (strcmp(before, sampled->name) != 0) {
		ss_writer_name_thread(followed->writer, sampled->notes[NOTE_THREAD] - 1,
				      sampled->name, followed->now_ns);
	}
	memcpy(sampled->told, sampled->name, sizeof(sampled->told));
	return true;
}

/* A blocked thread of which a register is needed: it is stopped if it is still there at
   the next tick. */
static void ask_for_stop(struct ss_sampled *thread, bool cut, bool stopped)
{
	thread->gone_back = stopped ? thread->way_back : 0;
	thread->way_back = 0;
	thread->stop_at = cut && !stopped && thread->settled ? thread->run_count : 0;
	thread->settled &= thread->stop_at == 0;
}

static bool note_thread(struct ss_followed *followed, const struct ss_snapshot *snapshot,
			size_t index, const struct ss_capture_thread *captured,
			bool unplaced, bool last)
{
	static const struct ss_stack none = { .end = SS_END_UNREADABLE };
	const struct ss_thread *thread = &snapshot->threads.items[index];
	struct ss_sampled *sampled = ss_sampled_find(&followed->sampler, thread->tid);

	if (!sampled || sampled->gone)
		return true;
	const char *reason = unplaced ? changed_text : unproved_text;
	unplaced |= sampled->unplaced;
	sampled->touched = unplaced && !last;
	if (sampled->touched)
		return true;
	if (!define_thread(followed, sampled, sampled->told))
		return false;
	sampled->settled &= !unplaced; /* the next tick may do better */
	ask_for_stop(sampled, thread->end == SS_END_REGISTER, captured->stopped_ns > 0);
	uint32_t stack = unplaced ? write_stack(followed, &none, reason) :
				    stack_of(followed, snapshot, thread);
	uint32_t call = captured->syscall.number < 0 ?
				SS_ID_NONE :
				ss_writer_call(followed->writer, captured->syscall.number,
					       captured->syscall.args[0]);
	sampled->notes[NOTE_STACK] = stack + 1;
	sampled->notes[NOTE_CALL] = call == SS_ID_NONE ? 0 : call + 1;
	sampled->notes[NOTE_STATE] = (uint32_t)thread->state;
	return stack != SS_ID_NONE;
}

/* Notes the stack of each thread that is placed, or, the last time, of all. */
static struct ss_error *note_threads(struct ss_followed *followed,
				     const struct ss_capture *capture,
				     const struct ss_snapshot *snapshot, bool unplaced,
				     bool last)
{
	if (!find_handles(followed, snapshot) ||
	    !ss_vector_reserve(&followed->stacks, snapshot->stacks.count + 1))
		return ss_error_no_memory();
	for (size_t i = 0; i < snapshot->stacks.count; i++)
		followed->stacks.items[i] = SS_ID_NONE;
	/* Threads are in the same order in both. */
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		if (!note_thread(followed, snapshot, i, &capture->threads.items[i],
				 unplaced, last))
			return ss_error_no_memory();
	}
	return NULL;
}

/* Defines what is new in the process. False without memory. */
static bool define(struct ss_followed *followed, enum ss_world_change change)
{
	if (change == SS_WORLD_REPLACED)
		end_process(followed);
	if (!begin_process(followed) ||
	    (change != SS_WORLD_SAME &&
	     !ss_tracked_update(&followed->modules, followed->sampler.world.capture,
				watch_module, followed)))
		return false;
	end_threads(followed, false);
	return true;
}

/* Unwinds what was captured and notes what is placed. *again: not all is, since modules
   came or went while it was captured. */
static struct ss_error *take_capture(struct ss_followed *followed, struct ss_tick *tick,
				     bool last, bool *again)
{
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .max_frames = followed->max_frames };
	struct ss_sampler *sampler = &followed->sampler;
	bool proved = false;
	bool unplaced = false;
	struct ss_error *error =
		ss_capture_unwind(tick->capture, followed->session, &options, &snapshot);

	if (error)
		return error;
	enum ss_world_answer answer = ss_placing_check(sampler, snapshot, &proved);
	error = ss_sampler_confirm(sampler, answer, tick, &unplaced);
	if (error || tick->change == SS_WORLD_ENDED)
		return error;
	if (!define(followed, tick->change))
		return ss_error_no_memory();
	tick->change = SS_WORLD_SAME;
	last |= sampler->late; /* this thread of ours must end first */
	*again = !last && (unplaced || !proved);
	return note_threads(followed, tick->capture, snapshot, unplaced, last);
}

/* Takes what was captured, and what has to be captured again. */
static struct ss_error *take_captures(struct ss_followed *followed, struct ss_tick *tick)
{
	bool again = true;

	for (int i = 0; i < ATTEMPTS && again && tick->capture; i++) {
		again = false;
		struct ss_error *error =
			take_capture(followed, tick, i == ATTEMPTS - 1, &again);
		if (!error && again)
			error = ss_sampler_again(&followed->sampler, tick);
		if (error)
			return error;
	}
	return NULL;
}

static struct ss_written_sample sample_of(const struct ss_sampled *thread)
{
	return (struct ss_written_sample){
		.thread = thread->notes[NOTE_THREAD] - 1,
		.stack = thread->notes[NOTE_STACK] - 1,
		.call = thread->notes[NOTE_CALL] ? thread->notes[NOTE_CALL] - 1 :
						   SS_ID_NONE,
		.state = (char)thread->notes[NOTE_STATE],
	};
}

/* What is less than a microsecond is left for the next sample. */
static uint64_t count_cpu(struct ss_sampled *thread)
{
	uint64_t us = thread->run_ns > thread->counted_ns ?
			      (thread->run_ns - thread->counted_ns) / 1000 :
			      0;

	thread->counted_ns += us * 1000;
	return us;
}

static bool add_samples(struct ss_followed *followed, struct ss_samples *samples)
{
	for (size_t i = 0; i < followed->sampler.threads.count; i++) {
		struct ss_sampled *thread = &followed->sampler.threads.items[i];
		if (thread->gone || thread->unwanted || !thread->notes[NOTE_STACK])
			continue;
		struct ss_written_sample *sample = ss_vector_push(&samples->items);
		if (!sample)
			return false;
		*sample = sample_of(thread);
		sample->cpu_us = count_cpu(thread);
	}
	return true;
}

struct ss_error *ss_followed_tick(struct ss_followed *followed, uint64_t now_ns,
				  struct ss_samples *samples,
				  struct ss_written_tick *written)
{
	struct ss_tick tick;
	struct ss_error *error = ss_sampler_tick(&followed->sampler, &tick);

	followed->now_ns = now_ns;
	if (!error && tick.change != SS_WORLD_ENDED)
		error = take_captures(followed, &tick);
	if (error)
		return error;
	written->stopped_ns += tick.stopped_ns;
	written->stopped_max_ns = SS_MAX(written->stopped_max_ns, tick.stopped_max_ns);
	if (tick.change == SS_WORLD_ENDED) {
		error = ss_followed_finish(followed);
		end_process(followed);
		followed->ended = true;
		return error;
	}
	if (!define(followed, tick.change) || !add_samples(followed, samples))
		return ss_error_no_memory();
	return NULL;
}

bool ss_followed_last(const struct ss_followed *followed, struct ss_samples *samples)
{
	for (size_t i = 0; i < followed->sampler.threads.count; i++) {
		const struct ss_sampled *thread = &followed->sampler.threads.items[i];
		if (!thread->notes[NOTE_STACK])
			continue;
		struct ss_written_sample *sample = ss_vector_push(&samples->items);
		if (!sample)
			return false;
		*sample = sample_of(thread);
	}
	return true;
}

void ss_followed_renew(struct ss_followed *followed,
		       const struct ss_written_sample **next)
{
	for (size_t i = 0; i < followed->sampler.threads.count; i++) {
		struct ss_sampled *thread = &followed->sampler.threads.items[i];
		if (!thread->notes[NOTE_STACK])
			continue;
		thread->notes[NOTE_STACK] = (*next)->stack + 1;
		thread->notes[NOTE_CALL] =
			(*next)->call == SS_ID_NONE ? 0 : (*next)->call + 1;
		(*next)++;
	}
}
