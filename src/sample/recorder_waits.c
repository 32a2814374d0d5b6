#include "sample/recorder_process.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/search.h"
#include "data/call.h"
#include "data/futex.h"
#include "data/recording.h"
#include "data/snapshot.h"
#include "diagnose/lock.h"
#include "diagnose/wait_table.h"
#include "process/objects.h"

enum {
	SHARE = 100,		     /* lookups take one part in so many of the time, */
	BURST_NS = 20 * 1000 * 1000, /* after so much at the beginning */
	FORGET_NS = 2000 * 1000 * 1000, /* a number may be another file by then */
	KNOWN_MAX = 1 << 14,
	KEY_MEMORY_MAX = 256, /* bytes that a call refers to; with more, it has no key */
	KEY_POLLED_MAX = 4,   /* likewise, descriptors: each costs a system call */
	TRIED_MAX = 128,      /* waits of a tick */
	LOOKUPS_MAX = 32,     /* of these that are looked up at once */
	/* How long to read the memory of locks: a file system may not answer. */
	READ_NS = 2 * 1000 * 1000,
};

struct locks {
	struct ss_piece pieces[LOOKUPS_MAX];
	uint8_t bytes[LOOKUPS_MAX][SS_LOCK_MAX];
};

/* Copies the memory around the futexes, within their areas. */
static void read_locks(struct ss_sampler *sampler, struct locks *locks,
		       struct ss_sampled_thread *const *waiters, size_t count)
{
	struct ss_process_memory memory = sampler->space.memory;

	for (size_t i = 0; i < count; i++) {
		struct ss_piece *piece = &locks->pieces[i];
		struct ss_futex futex;
		const struct ss_area *area =
			ss_futex_parse(&waiters[i]->recorded->wait.call, &futex) ?
				ss_capture_find_area(sampler->space.capture,
						     futex.address) :
				NULL;
		*piece = (struct ss_piece){ .bytes = locks->bytes[i] };
		if (!area)
			continue;
		uint64_t before =
			SS_MIN(futex.address - area->start, (uint64_t)SS_LOCK_REACH);
		piece->address = futex.address - before;
		piece->size = before +
			      SS_MIN(area->end - futex.address, (uint64_t)SS_LOCK_REACH);
	}
	memory.deadline_ns = ss_now_ns() + (uint64_t)READ_NS;
	ss_process_memory_read_present(&memory, locks->pieces, count);
}

/*
 * Reads the memory, descriptors and locks that the calls of these threads refer to. They are in
 * ascending order. NULL: no memory. The caller frees the facts.
 */
static struct ss_facts *read_facts(struct ss_sampler *sampler,
				   struct ss_sampled_thread *const *waiters, size_t count)
{
	/* The captured threads of this tick are not needed any more. */
	struct ss_capture *capture = sampler->space.capture;
	struct ss_facts *before = capture->facts;
	struct locks locks;

	capture->threads.count = 0;
	if (!ss_vector_reserve(&capture->threads, count + 1))
		return NULL;
	read_locks(sampler, &locks, waiters, count);
	for (size_t i = 0; i < count; i++) {
		const struct ss_recorder_wait *wait = &waiters[i]->recorded->wait;
		const struct ss_piece *piece = &locks.pieces[i];
		capture->threads.items[i] = (struct ss_capture_thread){
			.tid = wait->tid,
			.state = wait->state,
			.syscall = wait->call,
			.regs = wait->regs,
			.lock = { .address = piece->address,
				  .size = piece->done,
				  .bytes = piece->bytes },
		};
	}
	capture->threads.count = count;
	capture->process.pid = sampler->target->pid;
	capture->process.time_ns = ss_clock_ns(CLOCK_REALTIME);
	capture->facts = NULL;
	ss_objects_collect(capture, sampler->target, &sampler->space.memory, NULL, NULL);
	struct ss_facts *facts = capture->facts;
	capture->facts = before;
	capture->threads.count = 0;
	return facts;
}

/* Whether a thread has not run since. */
static bool has_not_run(struct ss_sampler *sampler, const struct ss_recorder_wait *wait)
{
	return sampler->access->read_run_count(sampler->target, wait->tid,
					       &sampler->text) == wait->run_count;
}

/* Reads memory that a call refers to, of pages that are in memory. False: not all of it. */
static bool read_memory(const struct ss_sampler *sampler, uint64_t address, void *ret,
			size_t size)
{
	struct ss_process_memory memory = sampler->space.memory;
	struct ss_piece piece = { .address = address, .bytes = ret, .size = size };

	memory.deadline_ns = ss_now_ns() + (uint64_t)READ_NS;
	ss_process_memory_read_present(&memory, &piece, 1);
	return piece.done == size;
}

/* The link of a descriptor, such as "socket:[4711]". False: it is not open. */
static bool read_link(const struct ss_sampler *sampler, int fd, char *ret, size_t size)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "fd/%d", fd); /* it fits */
	ssize_t length = readlinkat(sampler->target->proc_fd, path, ret, size - 1);
	if (length <= 0)
		return false;
	ret[length] = '\0';
	return true;
}

void ss_recorder_waits_deinit(struct ss_recorder_waits *waits)
{
	ss_wait_table_free(waits->table);
	ss_idtable_deinit(&waits->known);
	ss_vector_free(&waits->calls);
	ss_buffer_deinit(&waits->key);
	ss_vector_free(&waits->queue);
}

void ss_recorder_waits_forget(struct ss_recorder_waits *waits)
{
	ss_idtable_deinit(&waits->known);
	waits->calls.count = 0;
}

void ss_recorder_waits_budget_begin(struct ss_recorder_waits_budget *budget)
{
	if (!budget->refused)
		budget->first = 0;
	budget->asked = 0;
	budget->refused = false;
}

/* After a process that is refused, all others of the tick are, so that it is the first one in
   the next. */
static bool has_time(struct ss_recorder_waits_budget *budget, uint64_t now_ns)
{
	size_t number = budget->asked++;

	if (!budget->begin_ns)
		budget->begin_ns = now_ns;
	if (number < budget->first || budget->refused)
		return false;
	if (budget->spent_ns <= (now_ns - budget->begin_ns) / SHARE + (uint64_t)BURST_NS)
		return true;
	budget->first = number;
	budget->refused = true;
	return false;
}

bool ss_recorder_waits_may_look(struct ss_recorder_waits *waits,
				struct ss_recorder_waits_budget *budget, uint64_t now_ns)
{
	if (now_ns - waits->forgotten_ns >= (uint64_t)FORGET_NS ||
	    waits->known.count >= KNOWN_MAX) {
		ss_recorder_waits_forget(waits);
		waits->forgotten_ns = now_ns;
	}
	return has_time(budget, now_ns);
}

/* Whether anything is known of what a call waits for. */
static bool is_known(const struct ss_syscall *syscall)
{
	struct ss_futex futex;

	return ss_call_find(syscall->id) || ss_futex_parse(syscall, &futex);
}

bool ss_recorder_waits_note(struct ss_recorder_waits *waits,
			    struct ss_recorder_wait *wait,
			    const struct ss_capture_thread *captured,
			    const char *function, bool musl)
{
	if (wait->lookup == SS_LOOKUP_PENDING)
		wait->lookup = SS_LOOKUP_DROPPED;
	if (!captured || captured->state == 'R' || captured->syscall.number < 0 ||
	    !is_known(&captured->syscall))
		return true;
	if (wait->lookup == SS_LOOKUP_NONE) {
		pid_t *slot = ss_vector_push(&waits->queue);
		if (!slot)
			return false;
		*slot = captured->tid;
	}
	wait->lookup = SS_LOOKUP_PENDING;
	wait->musl = musl;
	wait->tid = captured->tid;
	wait->state = captured->state;
	wait->call = captured->syscall;
	wait->regs = captured->regs;
	(void)snprintf(wait->function, sizeof(wait->function), "%s",
		       function ? function : ""); /* may be cut */
	return true;
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

static bool add_link(struct ss_buffer *key, const struct ss_sampler *sampler, int fd)
{
	char link[PATH_MAX];

	if (!read_link(sampler, fd, link, sizeof(link)))
		return false;
	ss_buffer_add(key, link, strlen(link) + 1);
	return true;
}

/* Adds the descriptors that a thread polls. */
static bool add_polled(struct ss_buffer *key, const struct ss_sampler *sampler,
		       const struct pollfd *fds, size_t count)
{
	if (count > KEY_POLLED_MAX)
		return false;
	for (size_t i = 0; i < count; i++) {
		ss_buffer_add(key, &fds[i].fd, sizeof(fds[i].fd));
		ss_buffer_add(key, &fds[i].events, sizeof(fds[i].events));
		if (fds[i].fd >= 0 && !add_link(key, sampler, fds[i].fd))
			return false;
	}
	return true;
}

/* Adds what arguments point to, except for time limits: another wait may have the same
   addresses, such as that of a variable of a function. */
static bool add_memory(struct ss_buffer *key, struct ss_sampler *sampler,
		       const struct ss_recorder_wait *wait, const struct ss_call *call)
{
	const struct ss_syscall *syscall = &wait->call;
	_Alignas(struct pollfd) uint8_t bytes[KEY_MEMORY_MAX];
	bool any = false;

	for (size_t i = 0; i < SS_CALL_MEMORY && call->memory[i].arg; i++) {
		const struct ss_call_memory *memory = &call->memory[i];
		size_t size = ss_call_memory_size(memory, syscall);
		if (memory->arg == call->timeout)
			continue;
		if (call->kind == SS_WAIT_SELECT || size > sizeof(bytes) ||
		    !read_memory(sampler, syscall->args[memory->arg - 1], bytes, size))
			return false;
		if (call->kind != SS_WAIT_POLL)
			ss_buffer_add(key, bytes, size);
		else if (!add_polled(key, sampler, (const struct pollfd *)(void *)bytes,
				     size / sizeof(struct pollfd)))
			return false;
		any = true;
	}
	/* It could have been overwritten after the wait. */
	return !any || has_not_run(sampler, wait);
}

/* Makes the key of a wait that is the same for as long as its object. False: look it up
   each time. */
static bool make_key(struct ss_recorder_waits *waits, struct ss_sampler *sampler,
		     const struct ss_recorder_wait *wait)
{
	const struct ss_syscall *syscall = &wait->call;
	const struct ss_call *call = ss_call_find(syscall->id);
	struct ss_buffer *key = &waits->key;
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
	if (!call || call->kind == SS_WAIT_FILE_LOCK || call->kind == SS_WAIT_CHILD ||
	    call->kind == SS_WAIT_FUTEX)
		return false;
	if (!call->fd) {
		ss_buffer_add(key, &syscall->args[1], 2 * sizeof(syscall->args[1]));
		return add_memory(key, sampler, wait, call) && !key->failed;
	}
	return add_link(key, sampler, (int)(uint32_t)syscall->args[call->fd - 1]) &&
	       !key->failed;
}

/* Whether the wait is known: then *call is set. */
static bool find_known(struct ss_recorder_waits *waits, struct ss_sampler *sampler,
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

static struct ss_task task_of(struct ss_sampler *sampler,
			      struct ss_sampled_thread *thread)
{
	return (struct ss_task){ .tid = thread->tid,
				 .inner_tid = ss_sampler_inner_tid(sampler, thread),
				 .name = thread->name,
				 .state = thread->kernel_state };
}

static bool add_waiter(struct ss_snapshot *snapshot, struct ss_sampler *sampler,
		       struct ss_sampled_thread *waiter)
{
	const struct ss_recorder_wait *wait = &waiter->recorded->wait;
	struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);

	if (!thread || !add_stack(snapshot, wait))
		return false;
	*thread = task_of(sampler, waiter);
	thread->state = wait->state;
	thread->stack_id = (uint32_t)snapshot->stacks.count - 1;
	thread->frame_count = 1;
	return true;
}

static bool has_thread(const struct ss_snapshot *snapshot, pid_t tid)
{
	return ss_any(snapshot->tasks[SS_TASK_THREAD].count, i,
		      snapshot->tasks[SS_TASK_THREAD].items[i].tid == tid);
}

/* Adds the threads whose ids are in the memory of a lock: one of them may be its owner. */
static bool add_owners(struct ss_snapshot *snapshot, struct ss_sampler *sampler,
		       const struct ss_memory_fact *lock)
{
	for (size_t at = 0; at + sizeof(uint32_t) <= lock->size; at += sizeof(uint32_t)) {
		uint32_t word;
		memcpy(&word, lock->bytes + at, sizeof(word));
		word &= FUTEX_TID_MASK;
		struct ss_sampled_thread *owner =
			word ? ss_sampler_find_inner(sampler, (pid_t)word) : NULL;
		if (!owner || owner->state == SS_THREAD_GONE ||
		    has_thread(snapshot, owner->tid))
			continue;
		struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);
		if (!thread)
			return false;
		*thread = task_of(sampler, owner);
	}
	return true;
}

SS_DEFINE_COMPARE(compare_threads, struct ss_task, tid)

/* A snapshot of these threads and of those that may own their locks. NULL: no memory. */
static struct ss_snapshot *make_snapshot(struct ss_sampler *sampler,
					 struct ss_sampled_thread *const *waiters,
					 size_t count, struct ss_facts *facts)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = ss_snapshot_new();

	if (!snapshot)
		return NULL;
	snapshot->arch = sampler->space.capture->arch;
	snapshot->process.pid = sampler->target->pid;
	snapshot->process.inner_pid = sampler->inner_pid;
	snapshot->facts = ss_facts_ref(facts);
	for (size_t i = 0; i < count; i++) {
		if (!add_waiter(snapshot, sampler, waiters[i]))
			return NULL;
	}
	struct ss_stack *none = ss_vector_push(&snapshot->stacks);
	if (!none)
		return NULL;
	for (size_t i = 0; i < facts->threads.count; i++) {
		if (!add_owners(snapshot, sampler, &facts->threads.items[i].lock))
			return NULL;
	}
	for (size_t i = count; i < snapshot->tasks[SS_TASK_THREAD].count; i++)
		snapshot->tasks[SS_TASK_THREAD].items[i].stack_id =
			(uint32_t)snapshot->stacks.count - 1;
	qsort(snapshot->tasks[SS_TASK_THREAD].items,
	      snapshot->tasks[SS_TASK_THREAD].count,
	      sizeof(*snapshot->tasks[SS_TASK_THREAD].items), compare_threads);
	return take_ptr(snapshot);
}

/* A wait as it is recorded. */
struct simple {
	struct ss_wait wait;
	struct ss_descriptor descriptor;
	struct ss_watched_fd fds[SS_WAIT_RECORD_LIST_MAX];
	struct ss_watched_fd watches[SS_WAIT_RECORD_LIST_MAX];
	struct ss_descriptor timers[2 * SS_WAIT_RECORD_LIST_MAX];
	size_t timer_count;
};

/* Copies descriptors, with timers whose time left is not known. Returns how many. */
static size_t simplify_fds(struct simple *simple, struct ss_watched_fd *ret,
			   const struct ss_watched_fd *fds, size_t count,
			   bool *ret_incomplete)
{
	*ret_incomplete |= count > SS_WAIT_RECORD_LIST_MAX;
	count = SS_MIN(count, (size_t)SS_WAIT_RECORD_LIST_MAX);
	for (size_t i = 0; i < count; i++) {
		ret[i] = fds[i];
		if (!fds[i].what || !fds[i].what->timer_left_ns)
			continue;
		struct ss_descriptor *timer = &simple->timers[simple->timer_count++];
		*timer = *fds[i].what;
		timer->timer_left_ns = 0;
		ret[i].what = timer;
	}
	return count;
}

/* What changes all the time would make each wait another one. */
static void simplify(struct simple *simple, const struct ss_wait *diagnosed)
{
	struct ss_wait *wait = &simple->wait;
	struct ss_descriptor *descriptor = &simple->descriptor;

	*wait = *diagnosed;
	simple->timer_count = 0;
	wait->timeout_ns = wait->left_ns = -1;
	wait->fd_count = simplify_fds(simple, simple->fds, diagnosed->fds,
				      diagnosed->fd_count, &wait->fds_incomplete);
	wait->fds = simple->fds;
	if (!diagnosed->descriptor)
		return;
	*descriptor = *diagnosed->descriptor;
	descriptor->timer_left_ns = 0;
	descriptor->watch_count =
		simplify_fds(simple, simple->watches, descriptor->watches,
			     descriptor->watch_count, &descriptor->watches_incomplete);
	descriptor->watches = simple->watches;
	wait->descriptor = descriptor;
}

/* Writes the call of a thread with what was diagnosed. False: no memory. */
static bool take_wait(struct ss_recorder_waits *waits, struct ss_sampler *sampler,
		      struct ss_writer *writer, struct ss_recorder_thread *thread,
		      const struct ss_wait *diagnosed)
{
	const struct ss_recorder_wait *wait = &thread->wait;
	const struct ss_syscall *syscall = &wait->call;
	struct simple simple;

	if (!diagnosed || !has_not_run(sampler, wait))
		return true;
	simplify(&simple, diagnosed);
	thread->call = ss_writer_call(
		writer, ss_arch_recorded_number(sampler->target->arch, syscall),
		syscall->args[0], &simple.wait);
	if (thread->call == SS_ID_NONE)
		return false;
	keep(waits, sampler, wait, thread->call);
	return true;
}

/* Looks up the waits of these threads. */
static bool look_up(struct ss_recorder_waits *waits, struct ss_sampler *sampler,
		    struct ss_writer *writer, struct ss_sampled_thread *const *waiters,
		    size_t count)
{
	_cleanup_error_ struct ss_error *error =
		waits->table ? NULL : ss_wait_table_new(&waits->table);

	_cleanup_(ss_facts_cleanup) struct ss_facts *facts =
		error ? NULL : read_facts(sampler, waiters, count);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot =
		facts ? make_snapshot(sampler, waiters, count, facts) : NULL;
	const struct ss_diagnose_options options = { .size = sizeof(options),
						     .waits = waits->table };
	if (snapshot)
		error = ss_snapshot_diagnose(snapshot, &options);
	bool ok = snapshot && !error;
	for (size_t i = 0; i < count && ok; i++) {
		const struct ss_task *thread =
			ss_snapshot_find_thread(snapshot, waiters[i]->tid);
		ok = take_wait(waits, sampler, writer, waiters[i]->recorded,
			       thread ? thread->wait : NULL);
	}
	return ok;
}

/* Whether a thread is still in its wait. */
static bool is_waiting(const struct ss_sampled_thread *thread)
{
	return thread->state == SS_THREAD_IDLE && thread->run_count;
}

bool ss_recorder_waits_look(struct ss_recorder_waits *waits,
			    struct ss_recorder_waits_budget *budget,
			    struct ss_sampler *sampler, struct ss_writer *writer,
			    struct ss_sample_record *samples, uint64_t now_ns)
{
	struct ss_sampled_thread *tried[TRIED_MAX];
	struct ss_sampled_thread *unknown[LOOKUPS_MAX];
	size_t tried_count = 0;
	size_t count = 0;
	size_t kept = 0;

	if (sampler->late || !ss_recorder_waits_may_look(waits, budget, now_ns) ||
	    waits->queue.count == 0)
		return true;
	const uint64_t begin_ns = ss_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; i < waits->queue.count; i++) {
		const pid_t tid = waits->queue.items[i];
		struct ss_sampled_thread *thread =
			ss_thread_list_find(&sampler->threads, tid);
		struct ss_recorder_thread *recorded = thread ? thread->recorded : NULL;
		const bool pending = recorded &&
				     recorded->wait.lookup == SS_LOOKUP_PENDING;
		if (pending && (count == LOOKUPS_MAX || tried_count == TRIED_MAX ||
				!is_waiting(thread))) {
			waits->queue.items[kept++] = tid;
			continue;
		}
		if (recorded)
			recorded->wait.lookup = SS_LOOKUP_NONE;
		if (!pending)
			continue;
		tried[tried_count++] = thread;
		recorded->wait.run_count = thread->run_count;
		if (!find_known(waits, sampler, &recorded->wait, &recorded->call))
			unknown[count++] = thread;
	}
	waits->queue.count = kept;
	const bool ok = count == 0 || look_up(waits, sampler, writer, unknown, count);
	for (size_t i = 0; i < tried_count && samples; i++) {
		const struct ss_recorder_thread *recorded = tried[i]->recorded;
		if (recorded->place)
			samples[recorded->place - 1].call = recorded->call;
	}
	budget->spent_ns += ss_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	return ok;
}
