#include "report/group.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "data/snapshot.h"
#include "diagnose/progress.h"

static int compare_text(const char *a, const char *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

/* More threads that may hold a lock of the application are no help. */
enum { SUSPECTS_MAX = 3, PORTS = 1 << 16 };

/* Classes ----------------------------------------------------------------- */

/* To classify a new kind of wait, add it here. A thread that waits for a disk, a child or
   a peer that does not read is not idle. */
static enum ss_group_class class_of_wait(const struct ss_wait *wait)
{
	if (wait->mount)
		return SS_GROUP_BLOCKED;
	switch (wait->purpose) {
	case SS_PURPOSE_LOCK:
		return SS_GROUP_BLOCKED;
	case SS_PURPOSE_IDLE:
	case SS_PURPOSE_SERVICE:
		return SS_GROUP_IDLE;
	default:
		break;
	}
	switch (wait->kind) {
	case SS_WAIT_MUTEX:
	case SS_WAIT_RWLOCK:
	case SS_WAIT_ONCE:
	case SS_WAIT_FILE_LOCK:
		return SS_GROUP_BLOCKED;
	case SS_WAIT_CONDVAR:
	case SS_WAIT_SEMAPHORE:
	case SS_WAIT_FUTEX:
	case SS_WAIT_POLL:
	case SS_WAIT_SELECT:
	case SS_WAIT_EPOLL:
	case SS_WAIT_SLEEP:
	case SS_WAIT_READ:
	case SS_WAIT_ACCEPT:
	case SS_WAIT_RECEIVE:
	case SS_WAIT_SIGNAL:
		return SS_GROUP_IDLE;
	case SS_WAIT_IO: /* waits for completions; none may be pending */
		return wait->syscall && strncmp(wait->syscall, "io_", 3) == 0 ?
			       SS_GROUP_IDLE :
			       SS_GROUP_OTHER;
	default:
		return SS_GROUP_OTHER;
	}
}

const char *ss_group_class_words(enum ss_group_class class)
{
	static const char *const words[] = {
		[SS_GROUP_CRASH] = "crashed",
		[SS_GROUP_DEADLOCK] = "in a deadlock",
		[SS_GROUP_BLOCKED] = "blocked",
		[SS_GROUP_OWNER] = "waited for by others",
		[SS_GROUP_RUNNING] = "running",
		[SS_GROUP_KERNEL] = "in the kernel",
		[SS_GROUP_OTHER] = "waiting",
		[SS_GROUP_IDLE] = "idle",
		[SS_GROUP_RUNTIME] = "of the runtime",
	};

	return words[class];
}

enum ss_group_class ss_group_class_of(char state, const struct ss_wait *wait)
{
	if (state == 'R')
		return SS_GROUP_RUNNING;
	if (state == 'D')
		return SS_GROUP_KERNEL;
	return wait ? class_of_wait(wait) : SS_GROUP_OTHER;
}

/* For the tasks of a kind in one snapshot. */
struct sorting {
	const struct ss_snapshot *snapshot;
	struct ss_languages languages;
	const struct ss_task *tasks;
	size_t count;
	enum ss_group_class *classes; /* by task */
	size_t *waiters;    /* by task: threads blocked on the same lock; or 0 */
	bool *interpreting; /* by task */
	bool *turns;	    /* by task: of a pool whose threads take turns */
	uint8_t *listening; /* by port: a bit */
};

/* Goroutines that wait for the network or a timer wait for others than goroutines. */
static enum ss_group_class class_of_task(const struct ss_task *task)
{
	if (task->blocked || task->lock_function || task->endless)
		return SS_GROUP_BLOCKED;
	return task->idle ? SS_GROUP_IDLE : SS_GROUP_OTHER;
}

/* Whether a thread that runs only looks at times whether there is something to do: it is in a function of
   the C library that waits. */
static bool only_looks(const struct ss_snapshot *snapshot, const struct ss_task *task)
{
	const char *symbol = task->state == 'R' && task->frame_count ?
				     ss_snapshot_frame(snapshot, task, 0)->symbol :
				     NULL;

	return symbol && (strncmp(symbol, "__futex_", strlen("__futex_")) == 0 ||
			  strncmp(symbol, "pthread_cond_", strlen("pthread_cond_")) == 0);
}

static enum ss_group_class class_of(const struct sorting *sorting,
				    const struct ss_task *task)
{
	const enum ss_group_class class =
		task->kind == SS_TASK_THREAD ?
			ss_group_class_of(task->state, task->wait) :
			class_of_task(task);

	return (class >= SS_GROUP_OTHER || only_looks(sorting->snapshot, task)) &&
			       ss_task_is_of_runtime(sorting->snapshot, task,
						     &sorting->languages) ?
		       SS_GROUP_RUNTIME :
		       class;
}

static void sorting_deinit(struct sorting *sorting)
{
	free(sorting->classes);
	free(sorting->waiters);
	free(sorting->interpreting);
	free(sorting->turns);
	free(sorting->listening);
}

static uint8_t port_bit(unsigned port)
{
	return (uint8_t)(1u << port % 8);
}

static void note_listening(struct sorting *sorting,
			   const struct ss_descriptor *descriptor)
{
	if (descriptor && descriptor->listening)
		sorting->listening[descriptor->local.port % PORTS / 8] |=
			port_bit(descriptor->local.port);
}

/* The ports at which threads wait for connections. */
static void find_listening(struct sorting *sorting)
{
	for (size_t i = 0; i < sorting->count; i++) {
		const struct ss_wait *wait = sorting->tasks[i].wait;
		const struct ss_descriptor *descriptor = wait ? wait->descriptor : NULL;
		note_listening(sorting, descriptor);
		for (size_t k = 0; descriptor && k < descriptor->watch_count; k++)
			note_listening(sorting, descriptor->watches[k].what);
		for (size_t k = 0; wait && k < wait->fd_count; k++)
			note_listening(sorting, wait->fds[k].what);
	}
}

static size_t index_of(const struct sorting *sorting, const struct ss_task *task)
{
	return (size_t)(task - sorting->tasks);
}

static void set_class(struct sorting *sorting, size_t index, enum ss_group_class class)
{
	if (class < sorting->classes[index])
		sorting->classes[index] = class;
}

/* A thread that only waits for another one to end tells less than that one. */
static bool joins(const struct ss_wait *wait)
{
	return wait && wait->kind == SS_WAIT_JOIN && wait->owner_tid;
}

/* The thread of the process that another one waits for; or NULL. */
static const struct ss_task *owner_of(const struct sorting *sorting,
				      const struct ss_wait *wait)
{
	return wait && wait->owner_tid && !wait->owner_pid ?
		       ss_snapshot_find_thread(sorting->snapshot, wait->owner_tid) :
		       NULL;
}

static void mark_owner(struct sorting *sorting, const struct ss_wait *wait)
{
	const struct ss_task *owner = owner_of(sorting, wait);

	/* What a joined thread waits for matters as much as any other wait. */
	if (owner)
		set_class(sorting, index_of(sorting, owner),
			  joins(wait) ? SS_GROUP_OTHER : SS_GROUP_OWNER);
}

/* Threads that may hold a lock of the application. */
static void mark_suspects(struct sorting *sorting)
{
	const struct ss_snapshot *snapshot = sorting->snapshot;

	for (size_t i = 0; i < ss_snapshot_application_lock_count(snapshot); i++) {
		const struct ss_application_lock *lock =
			ss_snapshot_application_lock(snapshot, i);
		for (size_t k = 0;
		     lock->suspects_total <= SUSPECTS_MAX && k < lock->suspect_count; k++)
			set_class(sorting, lock->suspects[k], SS_GROUP_OWNER);
	}
}

static void mark_deadlocks(struct sorting *sorting)
{
	const struct ss_snapshot *snapshot = sorting->snapshot;

	for (size_t i = 0; i < ss_snapshot_deadlock_count(snapshot); i++) {
		const struct ss_deadlock *deadlock = ss_snapshot_deadlock(snapshot, i);
		for (size_t k = 0; k < deadlock->count; k++)
			set_class(sorting, deadlock->threads[k], SS_GROUP_DEADLOCK);
	}
	for (size_t i = 0; i < ss_snapshot_cycle_count(snapshot); i++) {
		const struct ss_cycle *cycle = ss_snapshot_cycle(snapshot, i);
		for (size_t k = 0; k < cycle->count; k++) {
			if (cycle->members[k].snapshot == snapshot)
				set_class(sorting,
					  index_of(sorting, cycle->members[k].thread),
					  SS_GROUP_DEADLOCK);
		}
	}
}

static void mark_crash(struct sorting *sorting)
{
	const struct ss_crash *crash = &ss_snapshot_process(sorting->snapshot)->crash;
	const struct ss_task *thread =
		crash->signal ? ss_snapshot_find_thread(sorting->snapshot, crash->tid) :
				NULL;

	if (thread)
		set_class(sorting, index_of(sorting, thread), SS_GROUP_CRASH);
}

static uint64_t lock_of(const struct sorting *sorting, const struct ss_task *thread)
{
	return sorting->classes[index_of(sorting, thread)] == SS_GROUP_BLOCKED &&
			       thread->wait ?
		       thread->wait->address :
		       0;
}

static int compare_locks(const void *a, const void *b, void *data)
{
	const struct sorting *sorting = data;
	uint64_t x = lock_of(sorting, *(const struct ss_task *const *)a);
	uint64_t y = lock_of(sorting, *(const struct ss_task *const *)b);

	return SS_COMPARE(x, y);
}

/* Counts the threads that are blocked on each lock. threads: all, in any order. */
static void count_waiters(struct sorting *sorting, const struct ss_task **threads)
{
	const size_t count = sorting->count;

	qsort_r(threads, count, sizeof(const struct ss_task *), compare_locks, sorting);
	for (size_t i = 0, end; i < count; i = end) {
		uint64_t lock = lock_of(sorting, threads[i]);
		for (end = i + 1; end < count && lock_of(sorting, threads[end]) == lock;)
			end++;
		for (size_t k = i; k < end && lock; k++)
			sorting->waiters[index_of(sorting, threads[k])] = end - i;
	}
}

/* Interpreters ------------------------------------------------------------ */

/* Functions that execute the program of an interpreter. Its calls are not on the stack, so
   that two threads with equal stacks may execute different functions. */
static bool is_interpreter(const char *symbol)
{
	static const char *const names[] = {
		"_PyEval_EvalFrameDefault", /* CPython */
		"PyEval_EvalFrameEx",
		"rb_vm_exec", /* Ruby */
		"vm_exec",
		"Perl_runops_standard",
		"Perl_runops_debug",
		"execute_ex",			       /* PHP */
		"luaV_execute",			       /* Lua */
		"Builtins_InterpreterEntryTrampoline", /* V8 */
	};

	return ss_any(SS_ARRAY_SIZE(names), i, strcmp(symbol, names[i]) == 0);
}

/* Whether a frame of JIT code has a name of a perf map that tells what it executes. */
static bool has_perf_map_name(const struct ss_frame *frame)
{
	return frame->symbol && strcmp(frame->symbol, "Interpreter") != 0; /* HotSpot's */
}

static bool interprets(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	static const char java[] = "JavaCalls::call_helper(";
	bool found = false;
	bool found_java = false;
	bool jit = false;
	bool known = true;

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->kind != SS_FRAME_NATIVE) /* its functions are known */
			return false;
		if (frame->area && strcmp(frame->area, "[jit]") == 0) {
			jit = true;
			known = known && has_perf_map_name(frame);
		} else if (frame->symbol) {
			found_java |= strncmp(frame->symbol, java, strlen(java)) == 0;
			found |= is_interpreter(frame->symbol);
		}
	}
	return found || (found_java && !(jit && known));
}

/* Equal stacks are looked at once: threads are sorted by stack. */
static void mark_interpreters(struct sorting *sorting,
			      const struct ss_task *const *threads)
{
	for (size_t i = 0; i < sorting->count; i++) {
		bool *slot = &sorting->interpreting[index_of(sorting, threads[i])];
		*slot = i > 0 && threads[i - 1]->stack_id == threads[i]->stack_id ?
				sorting->interpreting[index_of(sorting, threads[i - 1])] :
				interprets(sorting->snapshot, threads[i]);
	}
}

/* Pools ------------------------------------------------------------------- */

/* The threads of a pool take turns in waiting for work: one waits for it, and holds a lock for which
   the others wait. */
static void mark_turns(struct sorting *sorting, const struct ss_task *const *threads)
{
	enum { STACKS_MAX = 16 };
	const struct ss_task *previous = NULL;
	size_t stacks = 0;
	bool follows = false;

	for (size_t i = 0; i < sorting->count; i++) {
		const struct ss_task *owner = owner_of(sorting, threads[i]->wait);
		if (!owner)
			continue;
		if (!previous || previous->stack_id != threads[i]->stack_id)
			follows = stacks++ < STACKS_MAX &&
				  ss_thread_has_leader(sorting->snapshot, threads[i]);
		previous = threads[i];
		sorting->turns[index_of(sorting, threads[i])] = follows;
		sorting->turns[index_of(sorting, owner)] |= follows;
	}
	/* Others may wait for one of the pool. */
	for (size_t i = 0; i < sorting->count; i++) {
		const struct ss_task *owner = owner_of(sorting, threads[i]->wait);
		if (owner && !sorting->turns[index_of(sorting, threads[i])])
			sorting->turns[index_of(sorting, owner)] = false;
	}
}

/* Groups ------------------------------------------------------------------ */

/* 0: they do the same with equal stacks. Members that are not set for their kind are equal. */
static int compare_tasks(const struct ss_task *a, const struct ss_task *b)
{
	const bool with_tid = a->on_thread || a->kind == SS_TASK_ASYNCIO;

	return SS_COMPARE(a->on_thread, b->on_thread)		      ?:
		       (with_tid ? SS_COMPARE(a->tid, b->tid) : 0)    ?:
		       SS_COMPARE(a->stack_id, b->stack_id)	      ?:
		       SS_COMPARE(a->end, b->end)		      ?:
		       compare_text(a->reason, b->reason)	      ?:
		       compare_text(a->wchan, b->wchan)		      ?:
		       compare_text(a->kernel_stack, b->kernel_stack) ?:
		       compare_text(a->runtime, b->runtime)	      ?:
		       SS_COMPARE(a->status, b->status)		      ?:
		       SS_COMPARE(a->changed, b->changed)	      ?:
		       SS_COMPARE(a->blocked, b->blocked)	      ?:
		       compare_text(a->wait_reason, b->wait_reason)   ?:
		       compare_text(a->object, b->object)	      ?:
		       SS_COMPARE(a->endless, b->endless)	      ?:
		       SS_COMPARE(a->greenlet, b->greenlet)	      ?:
		       SS_COMPARE(a->awaited_count > 0, b->awaited_count > 0);
}

static int compare_members(const void *a, const void *b)
{
	const struct ss_task *x = *(const struct ss_task *const *)a;
	const struct ss_task *y = *(const struct ss_task *const *)b;

	return compare_tasks(x, y) ?: SS_COMPARE(x, y);
}

static enum ss_group_class order_of(const struct ss_group *group)
{
	const bool idle = group->class == SS_GROUP_OTHER ?
				  joins((*group->members)->wait) || group->of_library :
				  group->takes_turns &&
					  (group->class == SS_GROUP_BLOCKED ||
					   group->class == SS_GROUP_OWNER);

	return idle ? SS_GROUP_IDLE : group->class;
}

/* Whether a thread waits for work, in a function that is known for that. */
static bool awaits_work(const struct ss_task *task)
{
	return task->wait && task->wait->purpose == SS_PURPOSE_IDLE;
}

/* Whether a thread waits for what one other end of a connection sends. */
static bool awaits_peer(const struct ss_wait *wait)
{
	const struct ss_descriptor *descriptor = wait ? wait->descriptor : NULL;

	return descriptor && descriptor->remote.port && !descriptor->listening &&
	       (wait->kind == SS_WAIT_READ || wait->kind == SS_WAIT_RECEIVE ||
		wait->kind == SS_WAIT_POLL || wait->kind == SS_WAIT_SELECT);
}

/* Whether that is the next request: the connection was accepted here. */
static bool is_accepted(const struct sorting *sorting, const struct ss_wait *wait)
{
	const unsigned port = wait->descriptor->local.port;

	return sorting->listening[port % PORTS / 8] & port_bit(port);
}

bool ss_group_is_held_up(const struct ss_group *group, bool language)
{
	const struct ss_task *first = *group->members;

	if (group->class != SS_GROUP_IDLE)
		return order_of(group) < SS_GROUP_IDLE;
	return !group->of_library && !group->passes && !group->takes_turns &&
	       !group->awaits_request && !awaits_work(first) &&
	       !ss_wait_is_for_connections(first->wait) &&
	       (language || group->awaits_answer);
}

static int compare_groups(const void *a, const void *b)
{
	const struct ss_group *g = a;
	const struct ss_group *h = b;
	const struct ss_task *x = *g->members;
	const struct ss_task *y = *h->members;
	const bool largest_first = g->class == SS_GROUP_BLOCKED ||
				   x->kind != SS_TASK_THREAD;

	return SS_COMPARE(x->on_thread, y->on_thread)		       ?:
		       (x->on_thread ? SS_COMPARE(x->tid, y->tid) : 0) ?:
		       SS_COMPARE(order_of(g), order_of(h))	       ?:
		       SS_COMPARE(g->takes_turns, h->takes_turns)      ?:
		       SS_COMPARE(h->waiters, g->waiters)	       ?:
		       SS_COMPARE(joins(x->wait), joins(y->wait))      ?:
		       SS_COMPARE(g->of_library, h->of_library)	       ?:
		       SS_COMPARE(awaits_work(x), awaits_work(y))      ?:
		       SS_COMPARE(h->awaits_answer, g->awaits_answer)  ?:
		       SS_COMPARE(g->passes, h->passes)		       ?:
		       SS_COMPARE(h->has_main, g->has_main)	       ?:
		       (largest_first ? SS_COMPARE(h->alike, g->alike) : SS_COMPARE(g->alike, h->alike)) ?:
		       SS_COMPARE(g->first_alike, h->first_alike) ?:
								    SS_COMPARE(x, y);
}

static bool is_frame_of_library(const struct sorting *sorting, const struct ss_task *task,
				const struct ss_frame *frame)
{
	if (task->kind == SS_TASK_GOROUTINE)
		return ss_frame_is_of_go_library(frame) ||
		       ss_frame_is_of_runtime(frame, &sorting->languages);
	return frame->kind == SS_FRAME_NATIVE || ss_frame_is_of_library(frame);
}

/* Whether a task executes the library of its language only, as the idle threads of a pool do. */
static bool is_of_library(const struct sorting *sorting, const struct ss_task *task)
{
	if (task->kind == SS_TASK_THREAD ? !sorting->languages.kinds :
					   task->kind != SS_TASK_GOROUTINE)
		return false;
	return ss_all(task->frame_count, i,
		      is_frame_of_library(sorting, task,
					  ss_snapshot_frame(sorting->snapshot, task, i)));
}

static void add_member(struct ss_group *group, const struct sorting *sorting,
		       const struct ss_task *task)
{
	const size_t index = index_of(sorting, task);

	if (group->count == 0 || sorting->classes[index] < group->class)
		group->class = sorting->classes[index];
	if (group->count == 0) {
		group->of_library = is_of_library(sorting, task);
		group->takes_turns = sorting->turns[index];
		if (awaits_peer(task->wait) && is_accepted(sorting, task->wait))
			group->awaits_request = true;
		else
			group->awaits_answer = awaits_peer(task->wait);
		group->passes = sorting->languages.kinds &&
				group->class >= SS_GROUP_OTHER && task->wait &&
				task->wait->timed;
	}
	group->waiters = SS_MAX(group->waiters, sorting->waiters[index]);
	group->interprets |= sorting->interpreting[index];
	group->has_main |= task->kind == SS_TASK_THREAD &&
			   task->tid == ss_snapshot_process(sorting->snapshot)->pid;
	group->count++;
}

/* Makes the groups of the tasks that do the same: one, or one for each task. */
static void add_groups(struct ss_grouping *grouping, const struct sorting *sorting,
		       const struct ss_task *const *members, size_t count, bool merge)
{
	struct ss_group *group = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!group || !merge) {
			group = &grouping->groups[grouping->count++];
			*group = (struct ss_group){ .members = members + i,
						    .alike = count,
						    .first_alike =
							    index_of(sorting, *members) };
			grouping->own_count += !members[i]->on_thread;
		}
		add_member(group, sorting, members[i]);
	}
}

static void finish_groups(struct ss_grouping *grouping)
{
	for (size_t i = 0; i < grouping->count; i++) {
		struct ss_group *group = &grouping->groups[i];
		group->waiters = group->class == SS_GROUP_BLOCKED ?
					 SS_MAX(group->waiters, group->alike) :
					 0;
	}
	if (grouping->count > 1)
		qsort(grouping->groups, grouping->count, sizeof(*grouping->groups),
		      compare_groups);
	for (size_t i = 1; i < grouping->count; i++) {
		struct ss_group *group = &grouping->groups[i];
		group->like_previous =
			group->interprets &&
			compare_tasks(*group[-1].members, *group->members) == 0;
	}
}

static void make_groups(struct ss_grouping *grouping, struct sorting *sorting)
{
	const struct ss_task **members = grouping->members;
	const size_t count = sorting->count;

	if (count > 1)
		qsort(members, count, sizeof(const struct ss_task *), compare_members);
	if (grouping->kind == SS_TASK_THREAD) {
		mark_interpreters(sorting, members);
		mark_turns(sorting, members);
	}
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && members[i]->awaited_count == 0 &&
				  compare_tasks(members[i], members[end]) == 0;)
			end++;
		add_groups(grouping, sorting, members + i, end - i,
			   !sorting->interpreting[index_of(sorting, members[i])]);
	}
	finish_groups(grouping);
}

/* False without memory. */
static bool sorting_init(struct sorting *sorting, const struct ss_task **members)
{
	const size_t count = sorting->count;

	/* Deadlocks have threads that are not shown, too. */
	sorting->classes = calloc(count + sorting->snapshot->not_shown + 1,
				  sizeof(*sorting->classes));
	sorting->waiters = calloc(count + 1, sizeof(*sorting->waiters));
	sorting->interpreting = calloc(count + 1, sizeof(*sorting->interpreting));
	sorting->turns = calloc(count + 1, sizeof(*sorting->turns));
	sorting->listening = calloc(PORTS / 8, 1);
	if (!sorting->classes || !sorting->waiters || !sorting->interpreting ||
	    !sorting->turns || !sorting->listening)
		return false;
	find_listening(sorting);
	for (size_t i = 0; i < count; i++)
		sorting->classes[i] = class_of(sorting, members[i]);
	if (count == 0 || (*members)->kind != SS_TASK_THREAD)
		return true;
	for (size_t i = 0; i < count; i++) {
		if (sorting->classes[i] != SS_GROUP_RUNTIME)
			mark_owner(sorting, members[i]->wait);
	}
	mark_suspects(sorting);
	mark_deadlocks(sorting);
	mark_crash(sorting);
	count_waiters(sorting, members);
	return true;
}

static void list_members(const struct sorting *sorting, const struct ss_task **ret)
{
	for (size_t i = 0; i < sorting->count; i++)
		ret[i] = &sorting->tasks[i];
}

/* Each task is a group, in the order of the snapshot. */
static void make_single_groups(struct ss_grouping *grouping, struct sorting *sorting)
{
	list_members(sorting, grouping->members);
	for (size_t i = 0; i < sorting->count; i++)
		add_groups(grouping, sorting, &grouping->members[i], 1, true);
	if (grouping->kind == SS_TASK_GOROUTINE) /* those on threads come last */
		finish_groups(grouping);
}

struct ss_grouping *ss_grouping_new(const struct ss_snapshot *snapshot,
				    enum ss_task_kind kind, bool merge)
{
	__attribute__((cleanup(sorting_deinit))) struct sorting sorting = {
		.snapshot = snapshot,
		.languages = ss_snapshot_languages(snapshot),
		.tasks = ss_snapshot_task(snapshot, kind, 0),
		.count = ss_snapshot_task_count(snapshot, kind),
	};
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		calloc(1, sizeof(*grouping));

	if (!grouping)
		return NULL;
	grouping->kind = kind;
	grouping->several = kind == SS_TASK_GOROUTINE && ss_tasks_of_several(snapshot);
	grouping->members = calloc(sorting.count + 1, sizeof(const struct ss_task *));
	grouping->groups = calloc(sorting.count + 1, sizeof(*grouping->groups));
	if (!grouping->members || !grouping->groups)
		return NULL;
	list_members(&sorting, grouping->members);
	if (!sorting_init(&sorting, grouping->members))
		return NULL;
	if (merge)
		make_groups(grouping, &sorting);
	else
		make_single_groups(grouping, &sorting);
	return take_ptr(grouping);
}

const struct ss_task *ss_grouping_find(const struct ss_grouping *grouping, pid_t tid)
{
	const struct ss_group *groups = grouping->groups + grouping->own_count;
	size_t count = grouping->count - grouping->own_count;
	size_t at = ss_lower_bound(count, i, (*groups[i].members)->tid < tid);

	return at < count && (*groups[at].members)->tid == tid ? *groups[at].members :
								 NULL;
}

size_t *ss_grouping_numbers(const struct ss_grouping *grouping,
			    const struct ss_snapshot *snapshot)
{
	const struct ss_task *first = ss_snapshot_task(snapshot, grouping->kind, 0);
	size_t *numbers = calloc(ss_snapshot_task_count(snapshot, grouping->kind) + 1,
				 sizeof(*numbers));

	for (size_t i = 0; numbers && i < grouping->count; i++) {
		for (size_t k = 0; k < grouping->groups[i].count; k++)
			numbers[grouping->groups[i].members[k] - first] = i;
	}
	return numbers;
}

bool ss_tasks_of_several(const struct ss_snapshot *snapshot)
{
	const size_t count = ss_snapshot_task_count(snapshot, SS_TASK_GOROUTINE);
	const struct ss_task *tasks = ss_snapshot_task(snapshot, SS_TASK_GOROUTINE, 0);

	for (size_t i = 1; i < count; i++) {
		if (compare_text(tasks[0].runtime, tasks[i].runtime) != 0)
			return true;
	}
	return false;
}

void ss_grouping_free(struct ss_grouping *grouping)
{
	if (!grouping)
		return;
	free(grouping->members);
	free(grouping->groups);
	free(grouping);
}

/* A stack of 100 frames is about 25 KB of JSON: room for 300 different ones. */
enum { BYTES_MAX = 8 << 20 };

struct entry {
	char *bytes; /* NULL: not cached */
	size_t size;
	size_t threads; /* with this stack */
	bool written;
};

struct ss_stack_cache {
	const struct ss_snapshot *snapshot;
	const struct ss_format_options *options;
	ss_stack_writer *write;
	struct entry *entries; /* by stack_id */
	size_t count;
	size_t bytes;
};

static size_t stack_count(const struct ss_snapshot *snapshot)
{
	size_t count = 0;

	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		size_t id = ss_snapshot_task(snapshot, SS_TASK_THREAD, i)->stack_id;
		count = SS_MAX(count, id + 1);
	}
	return count;
}

struct ss_stack_cache *ss_stack_cache_new(const struct ss_snapshot *snapshot,
					  const struct ss_format_options *options,
					  ss_stack_writer *write)
{
	_cleanup_(ss_stack_cache_cleanup) struct ss_stack_cache *cache =
		calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->snapshot = snapshot;
	cache->options = options;
	cache->write = write;
	size_t count = stack_count(snapshot);
	cache->entries = calloc(count + 1, sizeof(*cache->entries));
	if (!cache->entries)
		return NULL;
	cache->count = count;
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++)
		cache->entries[ss_snapshot_task(snapshot, SS_TASK_THREAD, i)->stack_id]
			.threads++;
	return take_ptr(cache);
}

void ss_stack_cache_free(struct ss_stack_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->count; i++)
		free(cache->entries[i].bytes);
	free(cache->entries);
	free(cache);
}

/* Without memory a stack is not cached. */
static void keep(struct ss_stack_cache *cache, struct entry *entry,
		 const struct ss_task *thread)
{
	char *bytes = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&bytes, &size);

	if (!memory)
		return;
	cache->write(cache->snapshot, thread, cache->options, memory);
	if (fclose(memory) != 0 || cache->bytes + size > BYTES_MAX) {
		free(bytes);
		entry->threads = 1; /* do not try again */
		return;
	}
	entry->bytes = bytes;
	entry->size = size;
	cache->bytes += size;
}

void ss_stack_cache_write(struct ss_stack_cache *cache, const struct ss_task *thread,
			  FILE *out)
{
	struct entry *entry = &cache->entries[thread->stack_id];

	entry->written = true;
	if (!entry->bytes && entry->threads > 1)
		keep(cache, entry, thread);
	if (entry->bytes)
		(void)fwrite_unlocked(entry->bytes, 1, entry->size, out);
	else
		cache->write(cache->snapshot, thread, cache->options, out);
}

bool ss_stack_cache_has_written(const struct ss_stack_cache *cache,
				const struct ss_task *thread)
{
	return cache->entries[thread->stack_id].written;
}
