/*
 * Which thread initialises what others wait for: the routine of pthread_once() or
 * std::call_once(), a static variable of C++, a Once of Rust. Their words do not tell, but the
 * stack of that thread does: it is within a call of pthread_once() for that word; or in the
 * function of the variable, between the calls of __cxa_guard_acquire() and
 * __cxa_guard_release().
 */

#include "base/search.h"
#include "diagnose/lock.h"

enum {
	LOCKS_MAX = 32,	   /* that are looked at */
	FRAMES_MAX = 1024, /* of a thread, that are searched */
	WAIT_FRAMES = 16,  /* in which a thread waits */
};

/* What is looked for. */
struct initialization {
	enum ss_lock_class lock_class;
	uint64_t address;
};

static enum ss_lock_class class_of(enum ss_lock_type type)
{
	switch (type) {
	case SS_LOCK_ONCE:
		return SS_CLASS_ONCE;
	case SS_LOCK_STATIC_INIT:
		return SS_CLASS_STATIC_INIT;
	case SS_LOCK_RUST_ONCE:
		return SS_CLASS_RUST_ONCE;
	default:
		return SS_CLASS_UNKNOWN;
	}
}

static bool is_inlined(const struct ss_frame *frame)
{
	return frame->inlined && frame->kind == SS_FRAME_NATIVE;
}

static enum ss_lock_class class_at(const struct ss_snapshot *snapshot,
				   const struct ss_task *thread, size_t index)
{
	const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, index);

	return frame->kind == SS_FRAME_NATIVE && frame->symbol ?
		       ss_wait_function_class(frame->symbol) :
		       SS_CLASS_UNKNOWN;
}

/* The number of frames, without inlined calls, in which a thread waits for an initialisation
   itself, with the one that called. */
static size_t count_waiting(const struct ss_snapshot *snapshot,
			    const struct ss_task *thread)
{
	const enum ss_lock_class own = thread->wait ? class_of(thread->wait->lock) :
						      SS_CLASS_UNKNOWN;
	bool found = false;
	size_t number = 0;

	for (size_t i = 0; i < SS_MIN(thread->frame_count, (size_t)WAIT_FRAMES) && own;
	     i++) {
		if (is_inlined(ss_snapshot_frame(snapshot, thread, i)))
			continue;
		number++;
		const bool waits = class_at(snapshot, thread, i) == own;
		if (found && !waits)
			return number;
		found = waits;
	}
	return 0;
}

/* The references of a thread: they are sorted by thread, then by frame. */
static const struct ss_lock_reference *first_of(const struct ss_snapshot *snapshot,
						size_t thread)
{
	return snapshot->references.items +
	       ss_lower_bound(snapshot->references.count, i,
			      snapshot->references.items[i].thread < thread);
}

/* Whether a frame that refers to the word is one of the initialisation. inner: the class of the
   function that the frame has called. */
static bool is_within(const struct initialization *init,
		      const struct ss_lock_reference *reference, enum ss_lock_class frame,
		      enum ss_lock_class inner)
{
	/* A second call with the variable's guard released it. */
	if (init->lock_class == SS_CLASS_STATIC_INIT)
		return reference->calls == 1 && inner != init->lock_class;
	return reference->exact &&
	       (frame == init->lock_class || inner == init->lock_class);
}

static bool initializes(const struct ss_snapshot *snapshot, size_t index,
			const struct initialization *init)
{
	const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[index];
	const struct ss_lock_reference *at = first_of(snapshot, index);
	const struct ss_lock_reference *end =
		snapshot->references.items + snapshot->references.count;
	enum ss_lock_class inner = SS_CLASS_UNKNOWN;
	const size_t waiting = count_waiting(snapshot, thread);
	size_t number = 0;

	for (size_t i = 0; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		if (is_inlined(ss_snapshot_frame(snapshot, thread, i)))
			continue;
		const enum ss_lock_class frame = class_at(snapshot, thread, i);
		for (; at < end && at->thread == index && at->frame <= number; at++) {
			if (at->frame == number && number >= waiting &&
			    at->futex == init->address &&
			    is_within(init, at, frame, inner))
				return true;
		}
		if (at == end || at->thread != index)
			return false;
		inner = frame;
		number++;
	}
	return false;
}

/* Whether all frames of all threads are known: otherwise there may be another one. */
static bool is_complete(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		if (thread->end != SS_END_ROOT && thread->state != 'Z')
			return false;
	}
	return true;
}

/* The only thread that is within the initialisation; or NULL. */
static const struct ss_task *find(const struct ss_snapshot *snapshot,
				  const struct initialization *init)
{
	const struct ss_task *found = NULL;

	if (init->lock_class == SS_CLASS_STATIC_INIT && !is_complete(snapshot))
		return NULL;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		if (!initializes(snapshot, i, init))
			continue;
		if (found)
			return NULL;
		found = &snapshot->tasks[SS_TASK_THREAD].items[i];
	}
	return found;
}

static void set_owner(struct ss_wait *wait, const struct ss_task *thread,
		      const struct ss_task *owner)
{
	wait->owner_tid = owner->tid;
	wait->owner_name = owner->name;
	wait->owner_unknown = SS_OWNER_UNSPECIFIED;
	wait->self_owned = owner == thread;
}

void ss_initializers_find(struct ss_snapshot *snapshot)
{
	struct {
		uint64_t address;
		const struct ss_task *owner;
	} known[LOCKS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		struct ss_wait *wait = &snapshot->waits[i];
		const struct initialization init = { class_of(wait->lock),
						     wait->address };
		size_t k = 0;
		if (!thread->wait || !init.lock_class || !init.address)
			continue;
		while (k < count && known[k].address != init.address)
			k++;
		if (k == LOCKS_MAX)
			return;
		if (k == count) {
			known[k].address = init.address;
			known[k].owner = find(snapshot, &init);
			count++;
		}
		if (known[k].owner)
			set_owner(wait, thread, known[k].owner);
	}
}
