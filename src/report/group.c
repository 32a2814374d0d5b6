#include "report/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

static int compare_text(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

/* More threads that may hold a lock of the application are no help. */
enum { SUSPECTS_MAX = 3 };

/* Classes ----------------------------------------------------------------- */

/* To classify a new kind of wait, add it here. A thread that waits for a disk, a child or
   a peer that does not read is not idle. */
static enum ss_group_class class_of_wait(const struct ss_wait *wait)
{
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

enum ss_group_class ss_group_class_of(char state, const struct ss_wait *wait)
{
	if (state == 'R')
		return SS_GROUP_RUNNING;
	if (state == 'D')
		return SS_GROUP_KERNEL;
	return wait ? class_of_wait(wait) : SS_GROUP_OTHER;
}

static enum ss_group_class class_of_thread(const struct ss_task *thread)
{
	return ss_group_class_of(thread->state, thread->wait);
}

/* For one snapshot. */
struct sorting {
	const struct ss_snapshot *snapshot;
	enum ss_group_class *classes; /* by thread */
	size_t *waiters;    /* by thread: threads blocked on the same lock; or 0 */
	bool *interpreting; /* by thread */
};

static void sorting_deinit(struct sorting *sorting)
{
	free(sorting->classes);
	free(sorting->waiters);
	free(sorting->interpreting);
}

static void set_class(struct sorting *sorting, size_t index, enum ss_group_class class)
{
	if (class < sorting->classes[index])
		sorting->classes[index] = class;
}

static size_t index_of(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	return (size_t)(thread - ss_snapshot_task(snapshot, SS_TASK_THREAD, 0));
}

static void mark_owner(struct sorting *sorting, const struct ss_wait *wait)
{
	const struct ss_task *owner =
		wait && wait->owner_tid && !wait->owner_pid ?
			ss_snapshot_find_thread(sorting->snapshot, wait->owner_tid) :
			NULL;

	if (owner)
		set_class(sorting, index_of(sorting->snapshot, owner), SS_GROUP_OWNER);
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
					  index_of(snapshot, cycle->members[k].thread),
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
		set_class(sorting, index_of(sorting->snapshot, thread), SS_GROUP_CRASH);
}

static uint64_t lock_of(const struct sorting *sorting, size_t index)
{
	const struct ss_wait *wait =
		ss_snapshot_task(sorting->snapshot, SS_TASK_THREAD, index)->wait;

	return sorting->classes[index] == SS_GROUP_BLOCKED && wait ? wait->address : 0;
}

static int compare_locks(const void *a, const void *b, void *data)
{
	const struct sorting *sorting = data;
	uint64_t x = lock_of(sorting, *(const size_t *)a);
	uint64_t y = lock_of(sorting, *(const size_t *)b);

	return (x > y) - (x < y);
}

/* Counts the threads that are blocked on each lock. indexes is scratch memory. */
static void count_waiters(struct sorting *sorting, size_t *indexes, size_t count)
{
	qsort_r(indexes, count, sizeof(*indexes), compare_locks, sorting);
	for (size_t i = 0, end; i < count; i = end) {
		uint64_t lock = lock_of(sorting, indexes[i]);
		for (end = i + 1; end < count && lock_of(sorting, indexes[end]) == lock;)
			end++;
		for (size_t k = i; k < end && lock; k++)
			sorting->waiters[indexes[k]] = end - i;
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

	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++) {
		if (strcmp(symbol, names[i]) == 0)
			return true;
	}
	return false;
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

/* Equal stacks are looked at once: indexes are sorted by stack. */
static void mark_interpreters(struct sorting *sorting, const size_t *indexes,
			      size_t count)
{
	const struct ss_snapshot *snapshot = sorting->snapshot;

	for (size_t i = 0; i < count; i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, indexes[i]);
		bool same = i > 0 &&
			    ss_snapshot_task(snapshot, SS_TASK_THREAD, indexes[i - 1])
					    ->stack_id == thread->stack_id;
		sorting->interpreting[indexes[i]] =
			same ? sorting->interpreting[indexes[i - 1]] :
			       interprets(snapshot, thread);
	}
}

/* Groups ------------------------------------------------------------------ */

/* Returns 0 for equal stacks. */
static int compare_stacks(const struct ss_task *a, const struct ss_task *b)
{
	if (a->stack_id != b->stack_id)
		return a->stack_id < b->stack_id ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	int order = compare_text(a->reason, b->reason);
	if (order == 0)
		order = compare_text(a->wchan, b->wchan);
	return order ? order : compare_text(a->kernel_stack, b->kernel_stack);
}

static int compare_members(const void *a, const void *b, void *data)
{
	const struct sorting *sorting = data;
	size_t i = *(const size_t *)a;
	size_t k = *(const size_t *)b;
	int order =
		compare_stacks(ss_snapshot_task(sorting->snapshot, SS_TASK_THREAD, i),
			       ss_snapshot_task(sorting->snapshot, SS_TASK_THREAD, k));

	return order ? order : (i > k) - (i < k);
}

static int compare_groups(const void *a, const void *b)
{
	const struct ss_group *g = a;
	const struct ss_group *h = b;
	bool largest_first = g->class == SS_GROUP_BLOCKED;

	if (g->class != h->class)
		return g->class < h->class ? -1 : 1;
	if (g->waiters != h->waiters)
		return g->waiters > h->waiters ? -1 : 1;
	if (g->has_main != h->has_main)
		return g->has_main ? -1 : 1;
	if (g->alike != h->alike)
		return (g->alike < h->alike) == largest_first ? 1 : -1;
	if (g->first_alike != h->first_alike)
		return g->first_alike < h->first_alike ? -1 : 1;
	return (*g->members > *h->members) - (*g->members < *h->members);
}

static bool equal(const struct sorting *sorting, size_t index, size_t other)
{
	return compare_stacks(
		       ss_snapshot_task(sorting->snapshot, SS_TASK_THREAD, index),
		       ss_snapshot_task(sorting->snapshot, SS_TASK_THREAD, other)) == 0;
}

static void add_member(struct ss_group *group, const struct sorting *sorting,
		       size_t index)
{
	const struct ss_snapshot *snapshot = sorting->snapshot;

	if (group->count == 0 || sorting->classes[index] < group->class)
		group->class = sorting->classes[index];
	group->waiters = SS_MAX(group->waiters, sorting->waiters[index]);
	group->has_main |= ss_snapshot_task(snapshot, SS_TASK_THREAD, index)->tid ==
			   ss_snapshot_process(snapshot)->pid;
	group->count++;
}

/* Makes the groups of the threads with one stack: one, or one for each thread. */
static void add_groups(struct ss_grouping *grouping, const struct sorting *sorting,
		       const size_t *members, size_t count, bool merge)
{
	struct ss_group *group = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!group || !merge) {
			group = &grouping->groups[grouping->count++];
			*group = (struct ss_group){ .members = &members[i],
						    .alike = count,
						    .first_alike = members[0] };
		}
		add_member(group, sorting, members[i]);
	}
}

static void finish_groups(struct ss_grouping *grouping, const struct sorting *sorting)
{
	for (size_t i = 0; i < grouping->count; i++) {
		struct ss_group *group = &grouping->groups[i];
		group->interprets = sorting->interpreting[*group->members];
		group->waiters = group->class == SS_GROUP_BLOCKED ?
					 SS_MAX(group->waiters, group->alike) :
					 0;
	}
	qsort(grouping->groups, grouping->count, sizeof(*grouping->groups),
	      compare_groups);
	for (size_t i = 1; i < grouping->count; i++) {
		struct ss_group *group = &grouping->groups[i];
		group->like_previous =
			sorting->interpreting[*group->members] &&
			equal(sorting, *group[-1].members, *group->members);
	}
}

static void make_groups(struct ss_grouping *grouping, struct sorting *sorting,
			size_t count)
{
	size_t *members = grouping->members;

	qsort_r(members, count, sizeof(*members), compare_members, sorting);
	mark_interpreters(sorting, members, count);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1;
		     end < count && equal(sorting, members[i], members[end]);)
			end++;
		add_groups(grouping, sorting, members + i, end - i,
			   !sorting->interpreting[members[i]]);
	}
	finish_groups(grouping, sorting);
}

/* False without memory. */
static bool sorting_init(struct sorting *sorting, const struct ss_snapshot *snapshot,
			 size_t *indexes)
{
	size_t count = ss_snapshot_task_count(snapshot, SS_TASK_THREAD);

	sorting->snapshot = snapshot;
	sorting->classes = calloc(count + 1, sizeof(*sorting->classes));
	sorting->waiters = calloc(count + 1, sizeof(*sorting->waiters));
	sorting->interpreting = calloc(count + 1, sizeof(*sorting->interpreting));
	if (!sorting->classes || !sorting->waiters || !sorting->interpreting)
		return false;
	for (size_t i = 0; i < count; i++)
		sorting->classes[i] =
			class_of_thread(ss_snapshot_task(snapshot, SS_TASK_THREAD, i));
	for (size_t i = 0; i < count; i++)
		mark_owner(sorting, ss_snapshot_task(snapshot, SS_TASK_THREAD, i)->wait);
	mark_suspects(sorting);
	mark_deadlocks(sorting);
	mark_crash(sorting);
	count_waiters(sorting, indexes, count);
	return true;
}

struct ss_grouping *ss_grouping_new(const struct ss_snapshot *snapshot, bool merge)
{
	size_t count = ss_snapshot_task_count(snapshot, SS_TASK_THREAD);
	__attribute__((cleanup(sorting_deinit))) struct sorting sorting = {};
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		calloc(1, sizeof(*grouping));

	if (!grouping)
		return NULL;
	grouping->members = calloc(count + 1, sizeof(*grouping->members));
	grouping->groups = calloc(count + 1, sizeof(*grouping->groups));
	if (!grouping->members || !grouping->groups)
		return NULL;
	for (size_t i = 0; i < count; i++)
		grouping->members[i] = i;
	if (!sorting_init(&sorting, snapshot, grouping->members))
		return NULL;
	if (merge) {
		make_groups(grouping, &sorting, count);
		return take_ptr(grouping);
	}
	for (size_t i = 0; i < count; i++) {
		grouping->members[i] = i;
		add_groups(grouping, &sorting, &grouping->members[i], 1, true);
	}
	return take_ptr(grouping);
}

size_t *ss_grouping_numbers(const struct ss_snapshot *snapshot)
{
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, true);
	size_t *numbers = calloc(ss_snapshot_task_count(snapshot, SS_TASK_THREAD) + 1,
				 sizeof(*numbers));

	for (size_t i = 0; grouping && numbers && i < grouping->count; i++) {
		for (size_t k = 0; k < grouping->groups[i].count; k++)
			numbers[grouping->groups[i].members[k]] = i;
	}
	if (grouping)
		return numbers;
	free(numbers);
	return NULL;
}

void ss_grouping_free(struct ss_grouping *grouping)
{
	if (!grouping)
		return;
	free(grouping->members);
	free(grouping->groups);
	free(grouping);
}

const char *ss_goroutine_words(const struct ss_task *goroutine)
{
	return goroutine->status == SS_STATUS_WAITING && goroutine->wait_reason ?
		       goroutine->wait_reason :
		       ss_task_status_name(goroutine->status);
}

int ss_goroutine_compare_runtimes(const struct ss_task *a, const struct ss_task *b)
{
	if (a->runtime == b->runtime)
		return 0;
	return strcmp(a->runtime ? a->runtime : "", b->runtime ? b->runtime : "");
}

bool ss_goroutines_of_several(const struct ss_snapshot *snapshot)
{
	const size_t count = ss_snapshot_task_count(snapshot, SS_TASK_GOROUTINE);

	for (size_t i = 1; i < count; i++) {
		if (ss_goroutine_compare_runtimes(
			    ss_snapshot_task(snapshot, SS_TASK_GOROUTINE, 0),
			    ss_snapshot_task(snapshot, SS_TASK_GOROUTINE, i)) != 0)
			return true;
	}
	return false;
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Equal for members of one group. */
static int compare_kinds(const struct ss_task *a, const struct ss_task *b)
{
	int order = COMPARE(a->on_thread, b->on_thread);

	if (order == 0 && a->on_thread)
		order = COMPARE(a->tid, b->tid);
	if (order == 0)
		order = COMPARE(a->stack_id, b->stack_id);
	if (order == 0)
		order = ss_goroutine_compare_runtimes(a, b);
	if (order == 0)
		order = COMPARE(a->status, b->status);
	if (order == 0)
		order = COMPARE(a->changed, b->changed);
	if (order == 0)
		order = COMPARE(a->blocked, b->blocked);
	return order ? order :
		       strcmp(a->wait_reason ? a->wait_reason : "",
			      b->wait_reason ? b->wait_reason : "");
}

static int compare_goroutine_members(const void *a, const void *b)
{
	const struct ss_task *x = *(const struct ss_task *const *)a;
	const struct ss_task *y = *(const struct ss_task *const *)b;
	int order = compare_kinds(x, y);

	return order ? order : COMPARE(x->id, y->id);
}

static int compare_goroutine_groups(const void *a, const void *b)
{
	const struct ss_goroutine_group *x = a;
	const struct ss_goroutine_group *y = b;
	const struct ss_task *first = *x->members;
	const struct ss_task *other = *y->members;
	int order = COMPARE(first->on_thread, other->on_thread);

	if (order == 0 && first->on_thread)
		order = COMPARE(first->tid, other->tid);
	if (order == 0)
		order = COMPARE(y->count, x->count);
	if (order == 0)
		order = COMPARE(first->id, other->id);
	return order ? order : ss_goroutine_compare_runtimes(first, other);
}

static void make_goroutine_groups(struct ss_goroutine_grouping *grouping, size_t count,
				  bool merge)
{
	for (size_t i = 0; i < count; i++) {
		const struct ss_task *member = grouping->members[i];
		struct ss_goroutine_group *last =
			grouping->count ? &grouping->groups[grouping->count - 1] : NULL;
		if (merge && last && compare_kinds(*last->members, member) == 0) {
			last->count++;
			continue;
		}
		grouping->groups[grouping->count++] =
			(struct ss_goroutine_group){ .members = &grouping->members[i],
						     .count = 1 };
		grouping->own_count += !member->on_thread;
	}
	if (grouping->count > 1)
		qsort(grouping->groups, grouping->count, sizeof(*grouping->groups),
		      compare_goroutine_groups);
}

struct ss_goroutine_grouping *
ss_goroutine_grouping_new(const struct ss_snapshot *snapshot, bool merge)
{
	size_t count = ss_snapshot_task_count(snapshot, SS_TASK_GOROUTINE);
	_cleanup_(ss_goroutine_grouping_cleanup) struct ss_goroutine_grouping *grouping =
		calloc(1, sizeof(*grouping));

	if (!grouping)
		return NULL;
	grouping->members = calloc(count + 1, sizeof(const struct ss_task *));
	grouping->groups = calloc(count + 1, sizeof(*grouping->groups));
	if (!grouping->members || !grouping->groups)
		return NULL;
	grouping->several = ss_goroutines_of_several(snapshot);
	for (size_t i = 0; i < count; i++)
		grouping->members[i] = ss_snapshot_task(snapshot, SS_TASK_GOROUTINE, i);
	qsort(grouping->members, count, sizeof(const struct ss_task *),
	      compare_goroutine_members);
	make_goroutine_groups(grouping, count, merge);
	return take_ptr(grouping);
}

void ss_goroutine_grouping_free(struct ss_goroutine_grouping *grouping)
{
	if (!grouping)
		return;
	free(grouping->members);
	free(grouping->groups);
	free(grouping);
}

const struct ss_task *
ss_goroutine_grouping_find(const struct ss_goroutine_grouping *grouping, pid_t tid)
{
	const struct ss_goroutine_group *groups = grouping->groups + grouping->own_count;
	size_t count = grouping->count - grouping->own_count;
	size_t at = ss_lower_bound(count, i, (*groups[i].members)->tid < tid);

	return at < count && (*groups[at].members)->tid == tid ? *groups[at].members :
								 NULL;
}

static int compare_task_kinds(const struct ss_task *a, const struct ss_task *b)
{
	const char *x = a->wait_reason ? a->wait_reason : "";
	const char *y = b->wait_reason ? b->wait_reason : "";
	int order = COMPARE(a->status, b->status);

	if (order == 0)
		order = COMPARE(a->stack_id, b->stack_id);
	if (order == 0)
		order = COMPARE(a->tid, b->tid);
	if (order == 0)
		order = strcmp(x, y);
	return order ? order : COMPARE(a->awaited_count > 0, b->awaited_count > 0);
}

/* They are in an array that is ascending by name. */
static int compare_task_members(const void *a, const void *b)
{
	const struct ss_task *x = *(const struct ss_task *const *)a;
	const struct ss_task *y = *(const struct ss_task *const *)b;
	int order = compare_task_kinds(x, y);

	return order ? order : COMPARE(x, y);
}

static int compare_task_groups(const void *a, const void *b)
{
	const struct ss_task_group *x = a;
	const struct ss_task_group *y = b;
	int order = COMPARE(y->count, x->count);

	return order ? order : COMPARE(*x->members, *y->members);
}

static void make_task_groups(struct ss_task_grouping *grouping, size_t count, bool merge)
{
	const struct ss_task **members = grouping->members;

	for (size_t i = 0; i < count; i++) {
		struct ss_task_group *last =
			grouping->count ? &grouping->groups[grouping->count - 1] : NULL;
		if (merge && last && members[i]->awaited_count == 0 &&
		    compare_task_kinds(*last->members, members[i]) == 0)
			last->count++;
		else
			grouping->groups[grouping->count++] =
				(struct ss_task_group){ &members[i], 1 };
	}
}

struct ss_task_grouping *ss_task_grouping_new(const struct ss_snapshot *snapshot,
					      bool merge)
{
	const size_t count = ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO);
	_cleanup_(ss_task_grouping_cleanup) struct ss_task_grouping *grouping =
		calloc(1, sizeof(*grouping));

	if (!grouping)
		return NULL;
	grouping->members = calloc(count + 1, sizeof(const struct ss_task *));
	grouping->groups = calloc(count + 1, sizeof(*grouping->groups));
	if (!grouping->members || !grouping->groups)
		return NULL;
	for (size_t i = 0; i < count; i++)
		grouping->members[i] = ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, i);
	qsort(grouping->members, count, sizeof(const struct ss_task *),
	      compare_task_members);
	make_task_groups(grouping, count, merge);
	qsort(grouping->groups, grouping->count, sizeof(*grouping->groups),
	      compare_task_groups);
	return take_ptr(grouping);
}

void ss_task_grouping_free(struct ss_task_grouping *grouping)
{
	if (!grouping)
		return;
	free(grouping->members);
	free(grouping->groups);
	free(grouping);
}
