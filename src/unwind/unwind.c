#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "data/futex.h"
#include "data/session.h"
#include "runtime/runtimes.h"
#include "unwind/walk.h"
#include "data/gather.h"
#include "data/pipeline.h"

enum {
	/* Frames that are unwound for those of runtimes, and for each one that is shown */
	CALLS_MIN = 1 << 14,
	NATIVES = 8,
	FRAMES_MAX = 4 << 20, /* the default: a 64 MiB stack of the smallest frames */
	OVERFLOW_MAX =
		1 << 20, /* what a function with large variables accesses below sp */
};

/* The state that unwinding keeps in a session. */
struct session_state {
	struct ss_unwinders unwinders;
	struct ss_images *images;
};

static void free_state(void *data)
{
	struct session_state *state = data;

	ss_unwinders_deinit(&state->unwinders);
	ss_images_free(state->images);
	free(state);
}

static struct session_state *get_state(struct ss_session *session)
{
	if (session->unwind.data)
		return session->unwind.data;
	struct session_state *state = calloc(1, sizeof(*state));
	if (!state)
		return NULL;
	state->images = ss_images_new(session);
	if (!ss_unwinders_init(&state->unwinders) || !state->images) {
		free_state(state);
		return NULL;
	}
	session->unwind = (struct ss_session_slot){ .data = state, .free = free_state };
	return state;
}

static const char *intern_or_null(struct ss_snapshot *snapshot, const char *text)
{
	return text ? ss_intern_string(snapshot->strings, text) : NULL;
}

/* Whether the process has memory at an address to which unwinding led. */
static bool is_memory(const struct ss_walk *walk, const struct ss_capture_thread *thread,
		      uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(walk->ctx.capture, address);

	return walk->frames.count > 0 && !thread->live && area &&
	       (area->prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE);
}

/* Why memory is missing from the copy, if known: the stack may continue in another area, as
   in a program that was compiled with split stacks. Or NULL. */
static const char *reason_of_unreadable(const struct ss_walk *walk,
					const struct ss_capture_thread *thread)
{
	const struct ss_capture *capture = walk->ctx.capture;

	if (capture->process.mode == SS_MODE_CORE)
		return "not in the core file";
	if (!thread->live && ss_capture_thread_lacks(thread, walk->ctx.missing))
		return SS_ABSENT_REASON;
	if (!is_memory(walk, thread, walk->ctx.missing) ||
	    ss_capture_find_area(capture, walk->ctx.missing) ==
		    ss_capture_find_area(capture,
					 ss_regs_sp(capture->arch, &thread->regs)))
		return NULL;
	return "it leads to other memory than the stack that was copied";
}

/* The address at which the stack continues beyond what was copied, or 0. */
static uint64_t find_missing(const struct ss_walk *walk,
			     const struct ss_capture_thread *thread)
{
	uint64_t missing = walk->ctx.missing;
	bool ends = walk->end == SS_END_LIMIT || walk->end == SS_END_UNREADABLE;

	return ends && is_memory(walk, thread, missing) &&
			       !ss_capture_thread_lacks(thread, missing) ?
		       missing :
		       0;
}

/* The locks to which frames refer, after runtimes have changed the frames: those of frames that
   were left out go, too. */
static void renumber_references(struct ss_snapshot *snapshot, size_t first,
				const uint32_t *map, size_t count)
{
	size_t kept = first;

	for (size_t i = first; i < snapshot->references.count; i++) {
		struct ss_lock_reference reference = snapshot->references.items[i];
		if (reference.frame < count)
			reference.frame = map[reference.frame];
		if (reference.frame != UINT32_MAX)
			snapshot->references.items[kept++] = reference;
	}
	snapshot->references.count = kept;
}

/* Unwinds a thread, and finds the frames of runtimes. Those may be known only if the stack is unwound
   to its end: the limit is for what is shown. False without memory. */
static bool walk_thread(struct ss_walk *walk, struct ss_runtimes *runtimes,
			const struct ss_capture_thread *from,
			struct ss_runtimes_frames *ret, uint64_t *ret_missing)
{
	const size_t first_reference = walk->snapshot->references.count;

	walk->max_frames = walk->limit;
	if (runtimes)
		walk->max_frames =
			SS_MIN(SS_MAX(walk->limit, (size_t)CALLS_MIN) * NATIVES,
			       (size_t)FRAMES_MAX);
	if (!ss_walk_thread(walk, from))
		return false;
	const struct ss_runtimes_stack stack = {
		.frames = walk->frames.items,
		.natives = walk->natives.items,
		.count = walk->frames.count,
		.complete = ss_end_is_outermost(walk->end),
	};
	/* Frames of SS_MODE_LIVE have no registers. */
	if (runtimes && walk->natives.count == walk->frames.count &&
	    !ss_runtimes_apply(runtimes, from, &stack, ret))
		return false;
	if (ret->items) {
		renumber_references(walk->snapshot, first_reference, ret->map,
				    walk->frames.count);
		return true;
	}
	if (walk->frames.count <= walk->limit)
		return true;
	/* More of the stack may show the functions of a runtime. */
	if (ret->reason)
		*ret_missing = find_missing(walk, from);
	walk->snapshot->references.count = first_reference;
	walk->max_frames = walk->limit;
	return ss_walk_thread(walk, from);
}

/* Adds the stack of the walk, or with the frames of runtimes. False without memory. */
static bool add_stack(struct ss_walk *walk, const struct ss_capture_thread *from,
		      struct ss_runtimes_frames frames, struct ss_task *thread)
{
	struct ss_snapshot *snapshot = walk->snapshot;

	thread->native_reason = intern_or_null(snapshot, frames.reason);
	if (!frames.items) {
		frames.items = walk->frames.items;
		frames.count = walk->frames.count;
	} else if (frames.count > walk->limit) {
		frames.count = walk->limit;
		frames.ended = false;
		thread->end = SS_END_FRAMES;
		thread->missing = 0;
		thread->reason = intern_or_null(snapshot, walk->frames_reason);
	}
	if (frames.ended) {
		thread->end = SS_END_ROOT;
		thread->missing = 0;
		thread->reason = intern_or_null(snapshot, from->reason);
	}
	thread->frame_count = frames.count;
	return ss_snapshot_add_stack(snapshot, frames.items, frames.count, thread->end,
				     &thread->stack_id);
}

/* Where the frames of runtimes come from: all are NULL if there are none. */
struct calls {
	struct ss_runtimes *runtimes;
	struct ss_saved_stacks *earlier; /* of the previous capture, with runtimes */
	struct ss_saved_stacks *saved;
};

/* The saved stacks that have the one of a thread; NULL: it is to be unwound. The one of an owner
   has references only to locks that threads waited for in the previous capture. */
static struct ss_saved_stacks *find_saved(const struct calls *calls,
					  const struct ss_walk *walk,
					  const struct ss_capture_thread *thread)
{
	if (calls->saved || !calls->earlier)
		return calls->saved;
	return thread->not_run &&
			       !ss_lock_references_is_owner(&walk->lock_references,
							    thread) &&
			       ss_saved_stacks_has_whole(calls->earlier, thread->tid) &&
			       ss_runtimes_skip(calls->runtimes, thread) ?
		       calls->earlier :
		       NULL;
}

static bool add_thread(struct ss_walk *walk, const struct calls *calls,
		       const struct ss_capture_thread *from)
{
	bool found = false;
	struct ss_runtimes_frames frames = {};
	uint64_t missing = 0;
	struct ss_snapshot *snapshot = walk->snapshot;
	struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);

	if (!thread)
		return false;
	*thread = (struct ss_task){
		.id = (uint64_t)from->tid,
		.tid = from->tid,
		.name = ss_intern_string(snapshot->strings, from->name),
		.state = from->state,
		.stopped_ns = from->stopped_ns,
		.reason = intern_or_null(snapshot, from->reason),
		.consistent = from->consistent,
		.thread_pointer = from->thread_pointer,
		.inner_tid = from->inner_tid,
		.wchan = intern_or_null(snapshot, from->wchan),
		.kernel_stack = intern_or_null(snapshot, from->kernel_stack),
	};
	bool ok = thread->name != NULL;
	thread->comm = thread->name;
	struct ss_saved_stacks *saved = find_saved(calls, walk, from);
	if (ok && saved)
		ok = ss_saved_stacks_apply(saved, thread, &found);
	if (found || !ok)
		return ok;
	ok = walk_thread(walk, calls->runtimes, from, &frames, &missing);
	thread->end = walk->end;
	thread->missing = missing ? missing : find_missing(walk, from);
	if (thread->end == SS_END_FRAMES && !thread->reason)
		thread->reason = intern_or_null(snapshot, walk->frames_reason);
	if (thread->end == SS_END_UNREADABLE && !thread->reason)
		thread->reason =
			intern_or_null(snapshot, reason_of_unreadable(walk, from));
	return ok && add_stack(walk, from, frames, thread);
}

/*
 * Whether the access that the kernel refused was to the stack: a push below it, or to a
 * variable of a frame that does not fit. A frame that is larger than this is not told from a
 * bad pointer.
 */
static bool is_stack_overflow(const struct ss_capture *capture)
{
	const struct ss_crash *crash = &capture->process.crash;

	if (crash->signal != SIGSEGV || !crash->has_info || crash->code <= 0 ||
	    crash->code == SI_KERNEL)
		return false;
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		if (thread->tid != crash->tid)
			continue;
		uint64_t sp = ss_regs_sp(capture->arch, &thread->regs);
		uint64_t distance = sp > crash->address ? sp - crash->address :
							  crash->address - sp;
		return distance <= OVERFLOW_MAX;
	}
	return false;
}

static bool copy_process(struct ss_snapshot *snapshot, const struct ss_capture *capture)
{
	snapshot->arch = capture->arch;
	snapshot->process = capture->process;
	snapshot->process.crash.stack_overflow = is_stack_overflow(capture);
	snapshot->facts = ss_facts_ref(capture->facts);
	snapshot->process.name = intern_or_null(snapshot, capture->process.name);
	snapshot->process.executable =
		intern_or_null(snapshot, capture->process.executable);
	snapshot->process.host = intern_or_null(snapshot, capture->process.host);
	snapshot->process.frozen = intern_or_null(snapshot, capture->process.frozen);
	for (size_t i = 0; i < capture->modules.count; i++) {
		struct ss_module_impl **slot = ss_vector_push(&snapshot->modules);
		if (!slot)
			return false;
		*slot = ss_module_ref(capture->modules.items[i]);
	}
	if (!capture->perf_map)
		return true;
	struct ss_perf_map_file *slot = ss_vector_push(&snapshot->perf_maps);
	if (slot)
		*slot = (struct ss_perf_map_file){ .file = ss_module_ref(
							   capture->perf_map),
						   .stable_size = UINT64_MAX };
	return slot != NULL;
}

/* Whether an address of a module is one of its variables. Memory that follows a mapping of its code
   only seems to be. */
static bool is_in_data(const struct ss_image *image, uint64_t address)
{
	const struct ss_segment *found = NULL;

	for (size_t i = 0; image && i < image->segment_count; i++) {
		const struct ss_segment *segment = &image->segments[i];
		if (segment->address <= address &&
		    (!found || found->address <= segment->address))
			found = segment;
	}
	return found && found->flags & PF_W;
}

/* Adds the place of the lock that a thread waits for, so that symbols can name it. */
static bool add_lock_place(struct ss_walk *walk, const struct ss_capture_thread *from)
{
	struct ss_futex futex;

	if (from->lock.size == 0 || !ss_futex_parse(&from->syscall, &futex))
		return true;
	struct ss_lock_place *place = ss_vector_push(&walk->snapshot->places);
	if (!place)
		return false;
	place->address = futex.address;
	place->module_index = -1;
	struct ss_loaded_module *loaded = ss_context_find_data(&walk->ctx, futex.address);
	if (loaded && is_in_data(loaded->image, futex.address - loaded->bias)) {
		place->module_index = (int32_t)(loaded - walk->ctx.modules);
		place->offset = futex.address - loaded->bias;
	}
	return true;
}

static bool walk_threads(struct ss_walk *walk, const struct calls *calls,
			 const struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->threads.count; i++) {
		if (capture->threads.items[i].tid == capture->process.crash.tid)
			walk->snapshot->crash_regs = capture->threads.items[i].regs;
		if (!add_thread(walk, calls, &capture->threads.items[i]) ||
		    !add_lock_place(walk, &capture->threads.items[i]))
			return false;
	}
	ss_snapshot_sort_places(walk->snapshot);
	return true;
}

struct ss_error *ss_capture_unwind(const struct ss_capture *capture,
				   struct ss_session *session,
				   const struct ss_unwind_options *options,
				   struct ss_snapshot **ret)
{
	struct session_state *state = get_state(session);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = ss_snapshot_new();
	struct ss_walk walk = { .snapshot = snapshot, .limit = FRAMES_MAX };
	struct ss_unwind_options given = {};

	if (options)
		memcpy(&given, options, SS_MIN(options->size, sizeof(given)));
	if (!state || !snapshot || !copy_process(snapshot, capture) ||
	    !ss_context_init(&walk.ctx, capture, state->images))
		return ss_error_no_memory();
	bool ok = ss_lock_references_init(&walk.lock_references, capture);
	if (given.max_frames)
		walk.limit = SS_MIN(given.max_frames, (unsigned)FRAMES_MAX);
	walk.frames_reason = given.frames_reason;
	walk.unwinders = &state->unwinders;
	walk.ctx.words = session->words;
	_cleanup_(ss_runtimes_cleanup) struct ss_runtimes *runtimes = NULL;
	_cleanup_(ss_saved_stacks_cleanup) struct ss_saved_stacks *earlier = NULL;
	_cleanup_(ss_saved_stacks_cleanup) struct ss_saved_stacks *saved = NULL;
	const bool has_runtimes = !given.no_runtimes &&
				  !(given.frames_reason && given.max_frames == 1);
	if (ok && has_runtimes && (given.read || capture->whole)) {
		const struct ss_runtimes_options runtime_options = {
			.read = given.read,
			.read_early = given.read_early,
			.read_ranges = given.read_ranges,
			.check = given.check,
			.read_data = given.read_data,
			.native = given.native,
			.many = given.many,
		};
		if (given.native)
			ok = ss_saved_stacks_open(capture, snapshot, true, true,
						  &earlier);
		if (ok)
			runtimes = ss_runtimes_new(capture, session, snapshot,
						   &runtime_options);
		ok = runtimes != NULL;
		walk.ctx.runtimes = runtimes;
	} else if (ok && has_runtimes) {
		ok = ss_saved_stacks_open(capture, snapshot, given.native, false, &saved);
	}
	const struct calls calls = { .runtimes = runtimes,
				     .earlier = earlier,
				     .saved = saved };
	ok = ok && walk_threads(&walk, &calls, capture);
	ok = ok && (!runtimes || ss_runtimes_add_locks(runtimes));
	if (ok && runtimes)
		ss_runtimes_plan(runtimes);
	if (ok && runtimes && given.tasks)
		ss_runtimes_add_tasks(runtimes);
	if (ok && runtimes && !given.no_names)
		ss_runtimes_add_names(runtimes);
	if (ok && runtimes)
		ss_runtimes_add_signals(runtimes);
	walk.max_frames = walk.limit;
	ok = ok && ss_goroutines_walk(&walk, &given);
	ss_lock_references_deinit(&walk.lock_references);
	ss_vector_free(&walk.frames);
	ss_vector_free(&walk.natives);
	ss_context_deinit(&walk.ctx);
	if (!ok)
		return ss_error_no_memory();
	*ret = take_ptr(snapshot);
	return NULL;
}

bool ss_capture_plan_goroutines(const struct ss_capture *capture,
				struct ss_session *session, struct ss_gather_plan *ret)
{
	struct session_state *state = get_state(session);
	struct ss_unwind_context ctx;

	if (!state)
		return false;
	bool ok = ss_context_init(&ctx, capture, state->images) &&
		  ss_goroutines_plan(&ctx, ret);
	ss_context_deinit(&ctx);
	return ok;
}
