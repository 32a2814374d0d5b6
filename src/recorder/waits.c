#include "recorder/waits.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "diagnose/wait_function.h"
#include "model/call.h"
#include "model/futex.h"
#include "model/snapshot.h"

enum {
	SHARE = 100,		     /* lookups take one part in so many of the time, */
	BURST_NS = 20 * 1000 * 1000, /* after so much at the beginning */
	FORGET_NS = 2000 * 1000 * 1000, /* a number may be another file by then */
	KNOWN_MAX = 1 << 14,
};

void ss_recorder_waits_deinit(struct ss_recorder_waits *waits)
{
	ss_wait_table_free(waits->table);
	ss_idtable_deinit(&waits->known);
	ss_vector_free(&waits->calls);
	ss_buffer_deinit(&waits->key);
}

void ss_recorder_waits_forget(struct ss_recorder_waits *waits)
{
	ss_idtable_deinit(&waits->known);
	waits->calls.count = 0;
}

bool ss_recorder_waits_may_look(struct ss_recorder_waits *waits, uint64_t now_ns)
{
	if (!waits->begin_ns)
		waits->begin_ns = now_ns;
	if (now_ns - waits->forgotten_ns >= (uint64_t)FORGET_NS ||
	    waits->known.count >= KNOWN_MAX) {
		ss_recorder_waits_forget(waits);
		waits->forgotten_ns = now_ns;
	}
	return waits->spent_ns <= (now_ns - waits->begin_ns) / SHARE + (uint64_t)BURST_NS;
}

/* Whether anything is known of what a call waits for. */
static bool is_known(const struct ss_syscall *syscall)
{
	struct ss_futex futex;

	return ss_call_find(syscall->id) || ss_futex_parse(syscall, &futex);
}

void ss_recorder_wait_begin(struct ss_recorder_wait *wait,
			    const struct ss_capture_thread *captured,
			    const char *function, bool musl)
{
	*wait = (struct ss_recorder_wait){
		.pending = captured->state != 'R' && captured->syscall.number >= 0 &&
			   is_known(&captured->syscall),
		.musl = musl,
		.thread = { .tid = captured->tid,
			    .state = captured->state,
			    .call = captured->syscall,
			    .regs = captured->regs },
	};
	(void)snprintf(wait->function, sizeof(wait->function), "%s",
		       function ? function : ""); /* may be cut */
}

/* Keys ------------------------------------------------------------------- */

/* Whether threads that wait like this never have an owner. */
static bool is_ownerless(const struct ss_recorder_wait *wait)
{
	const enum ss_lock_class lock_class =
		*wait->function ? ss_wait_function_class(wait->function) :
				  SS_CLASS_UNKNOWN;

	return lock_class == SS_CLASS_CONDVAR || lock_class == SS_CLASS_SEMAPHORE;
}

/* Makes the key of a wait that is the same for as long as its object. False: look it up
   each time. */
static bool make_key(struct ss_recorder_waits *waits, struct ss_sampler *sampler,
		     const struct ss_recorder_wait *wait)
{
	const struct ss_syscall *syscall = &wait->thread.call;
	const struct ss_call *call = ss_call_find(syscall->id);
	struct ss_buffer *key = &waits->key;
	char link[PATH_MAX];
	struct ss_futex futex;

	ss_buffer_clear(key);
	ss_buffer_add(key, &syscall->number, sizeof(syscall->number));
	if (call && call->kind == SS_WAIT_SLEEP)
		return !key->failed;
	ss_buffer_add(key, &syscall->args[0], sizeof(syscall->args[0]));
	if (ss_futex_parse(syscall, &futex)) {
		ss_buffer_add(key, wait->function, strlen(wait->function));
		return is_ownerless(wait) && !key->failed;
	}
	if (!call || call->kind == SS_WAIT_FILE_LOCK || call->kind == SS_WAIT_CHILD)
		return false;
	if (!call->fd) {
		ss_buffer_add(key, &syscall->args[1], 2 * sizeof(syscall->args[1]));
		return !key->failed;
	}
	if (!ss_wait_facts_read_link(sampler, (int)(uint32_t)syscall->args[call->fd - 1],
				     link, sizeof(link)))
		return false;
	ss_buffer_add(key, link, strlen(link));
	return !key->failed;
}

bool ss_recorder_waits_find(struct ss_recorder_waits *waits, struct ss_sampler *sampler,
			    const struct ss_recorder_wait *wait, uint32_t *call)
{
	uint32_t number = make_key(waits, sampler, wait) ?
				  ss_idtable_find(&waits->known, waits->key.bytes,
						  waits->key.size) :
				  SS_ID_NONE;

	if (number == SS_ID_NONE)
		return false;
	*call = waits->calls.items[number];
	return true;
}

/* Without memory it is looked up again. */
static void keep(struct ss_recorder_waits *waits, struct ss_sampler *sampler,
		 const struct ss_recorder_wait *wait, uint32_t call)
{
	bool added = false;

	if (!make_key(waits, sampler, wait) ||
	    !ss_vector_reserve(&waits->calls, waits->calls.count + 1))
		return;
	uint32_t number =
		ss_idtable_add(&waits->known, waits->key.bytes, waits->key.size, &added);
	if (number == SS_ID_NONE)
		return;
	if (added)
		waits->calls.count++;
	waits->calls.items[number] = call;
}

/* Diagnosis --------------------------------------------------------------- */

SS_DEFINE_CLEANUP(struct ss_snapshot, snapshot, ss_snapshot_free)

/* Adds a stack that is the function that waits. */
static bool add_stack(struct ss_snapshot *snapshot, const struct ss_recorder_wait *wait)
{
	static const struct ss_module musl = { .path = "musl" };
	struct ss_stack *stack = ss_vector_push(&snapshot->stacks);

	if (!stack)
		return false;
	stack->frames = calloc(1, sizeof(*stack->frames));
	if (!stack->frames)
		return false;
	stack->count = 1;
	*stack->frames = (struct ss_frame){ .module = wait->musl ? &musl : NULL,
					    .module_index = -1,
					    .kind = SS_FRAME_NATIVE };
	if (*wait->function)
		stack->frames->symbol =
			ss_intern_string(snapshot->strings, wait->function);
	return !*wait->function || stack->frames->symbol;
}

static bool add_waiter(struct ss_snapshot *snapshot,
		       const struct ss_recorder_waits_context *context,
		       const struct ss_recorder_wait *wait)
{
	struct ss_thread *thread = ss_vector_push(&snapshot->threads);

	if (!thread || !add_stack(snapshot, wait))
		return false;
	if (!context->find(context->data, wait->thread.tid, false, thread))
		*thread = (struct ss_thread){ .name = "" };
	thread->tid = wait->thread.tid;
	thread->state = wait->thread.state;
	thread->stack_id = (uint32_t)snapshot->stacks.count - 1;
	thread->frame_count = 1;
	return true;
}

static bool has_thread(const struct ss_snapshot *snapshot, pid_t tid)
{
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		if (snapshot->threads.items[i].tid == tid)
			return true;
	}
	return false;
}

/* Adds the threads whose ids are in the memory of a lock: one of them may be its owner. */
static bool add_owners(struct ss_snapshot *snapshot,
		       const struct ss_recorder_waits_context *context,
		       const struct ss_memory_fact *lock)
{
	for (size_t at = 0; at + sizeof(uint32_t) <= lock->size; at += sizeof(uint32_t)) {
		struct ss_thread owner = {};
		uint32_t word;
		memcpy(&word, lock->bytes + at, sizeof(word));
		word &= FUTEX_TID_MASK;
		if (!word || !context->find(context->data, (pid_t)word, true, &owner) ||
		    has_thread(snapshot, owner.tid))
			continue;
		struct ss_thread *thread = ss_vector_push(&snapshot->threads);
		if (!thread)
			return false;
		*thread = owner;
	}
	return true;
}

static int compare_threads(const void *a, const void *b)
{
	const struct ss_thread *x = a;
	const struct ss_thread *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* A snapshot of these threads and of those that may own their locks. NULL: no memory. */
static struct ss_snapshot *make_snapshot(const struct ss_recorder_waits_context *context,
					 const struct ss_recorder_lookup *lookups,
					 size_t count, struct ss_facts *facts)
{
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = ss_snapshot_new();

	if (!snapshot)
		return NULL;
	snapshot->arch = context->sampler->space.capture->arch;
	snapshot->process.pid = context->sampler->target->pid;
	snapshot->process.inner_pid = context->inner_pid;
	snapshot->facts = ss_facts_ref(facts);
	for (size_t i = 0; i < count; i++) {
		if (!add_waiter(snapshot, context, lookups[i].wait))
			return NULL;
	}
	struct ss_stack *none = ss_vector_push(&snapshot->stacks);
	if (!none)
		return NULL;
	for (size_t i = 0; i < facts->threads.count; i++) {
		if (!add_owners(snapshot, context, &facts->threads.items[i].lock))
			return NULL;
	}
	for (size_t i = count; i < snapshot->threads.count; i++)
		snapshot->threads.items[i].stack_id =
			(uint32_t)snapshot->stacks.count - 1;
	qsort(snapshot->threads.items, snapshot->threads.count,
	      sizeof(*snapshot->threads.items), compare_threads);
	return take_ptr(snapshot);
}

/* What changes all the time would make each wait another one. */
static void simplify(struct ss_wait *wait, struct ss_descriptor *descriptor)
{
	wait->timeout_ns = wait->left_ns = -1;
	if (!wait->descriptor)
		return;
	*descriptor = *wait->descriptor;
	descriptor->timer_left_ns = 0;
	wait->descriptor = descriptor;
}

static bool take_wait(struct ss_recorder_waits *waits,
		      const struct ss_recorder_waits_context *context,
		      const struct ss_recorder_lookup *lookup,
		      const struct ss_wait *diagnosed)
{
	const struct ss_recorder_wait *wait = lookup->wait;
	const struct ss_syscall *syscall = &wait->thread.call;
	struct ss_descriptor descriptor;
	struct ss_wait simple;

	if (!diagnosed || !ss_wait_facts_are_of(context->sampler, &wait->thread))
		return true;
	simple = *diagnosed;
	simplify(&simple, &descriptor);
	*lookup->call = ss_writer_call(context->writer, syscall->number, syscall->args[0],
				       &simple);
	if (*lookup->call == SS_ID_NONE)
		return false;
	keep(waits, context->sampler, wait, *lookup->call);
	return true;
}

static bool diagnose(struct ss_recorder_waits *waits,
		     const struct ss_recorder_waits_context *context,
		     const struct ss_recorder_lookup *lookups, size_t count,
		     struct ss_facts *facts)
{
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot =
		make_snapshot(context, lookups, count, facts);
	const struct ss_diagnose_options options = { .size = sizeof(options),
						     .waits = waits->table };
	struct ss_error *error = snapshot ? ss_snapshot_diagnose(snapshot, &options) :
					    ss_error_no_memory();
	bool ok = !error;

	for (size_t i = 0; i < count && ok; i++) {
		const struct ss_thread *thread =
			ss_snapshot_find_thread(snapshot, lookups[i].wait->thread.tid);
		ok = take_wait(waits, context, &lookups[i], thread ? thread->wait : NULL);
	}
	ss_error_free(error);
	return ok;
}

bool ss_recorder_waits_look(struct ss_recorder_waits *waits,
			    const struct ss_recorder_waits_context *context,
			    const struct ss_recorder_lookup *lookups, size_t count)
{
	struct ss_blocked_thread threads[SS_WAIT_FACTS_MAX];
	struct ss_error *error = waits->table ? NULL : ss_wait_table_new(&waits->table);

	for (size_t i = 0; i < count; i++)
		threads[i] = lookups[i].wait->thread;
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts =
		error ? NULL : ss_wait_facts_read(context->sampler, threads, count);
	bool ok = facts && diagnose(waits, context, lookups, count, facts);
	ss_error_free(error);
	return ok;
}
