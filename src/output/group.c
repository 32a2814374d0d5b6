#include "output/group.h"

#include <stdlib.h>
#include <string.h>

static int compare_text(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

/* Returns 0 for threads of one group. */
static int compare_stacks(const struct ss_thread *a, const struct ss_thread *b)
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
	const struct ss_snapshot *snapshot = *(const struct ss_snapshot **)data;
	size_t i = *(const size_t *)a;
	size_t k = *(const size_t *)b;
	int order = compare_stacks(ss_snapshot_thread(snapshot, i),
				   ss_snapshot_thread(snapshot, k));

	return order ? order : (i > k) - (i < k);
}

/* Whether a thread probably waits for work. Waiting for a lock, a disk or a child is not
   idle. */
static bool is_idle(const struct ss_thread *thread)
{
	if (!thread->wait || thread->state == 'D')
		return false;
	switch (thread->wait->kind) {
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
		return true;
	case SS_WAIT_IO: /* waits for completions; none may be pending */
		return thread->wait->syscall &&
		       strncmp(thread->wait->syscall, "io_", 3) == 0;
	default:
		return false;
	}
}

/* 0 to 2; a larger number is less interesting. */
static int idleness(const struct ss_group *group)
{
	if (!group->is_idle)
		return 0;
	return group->count > 1 ? 2 : 1;
}

static int compare_groups(const void *a, const void *b)
{
	const struct ss_group *g = a;
	const struct ss_group *h = b;

	if (g->has_crashed != h->has_crashed)
		return g->has_crashed ? -1 : 1;
	if (idleness(g) != idleness(h))
		return idleness(g) - idleness(h);
	if (g->has_main != h->has_main)
		return g->has_main ? -1 : 1;
	if (g->count != h->count)
		return g->count < h->count ? -1 : 1;
	if (g->has_running != h->has_running) /* single running threads first */
		return g->has_running ? -1 : 1;
	return (*g->members > *h->members) - (*g->members < *h->members);
}

static bool continues(const struct ss_snapshot *snapshot,
		      const struct ss_grouping *grouping, size_t index)
{
	const size_t *members = grouping->members;

	return grouping->count > 0 &&
	       compare_stacks(ss_snapshot_thread(snapshot, members[index - 1]),
			      ss_snapshot_thread(snapshot, members[index])) == 0;
}

static void collect(struct ss_grouping *grouping, const struct ss_snapshot *snapshot,
		    bool merge)
{
	size_t count = ss_snapshot_thread_count(snapshot);
	pid_t pid = ss_snapshot_process(snapshot)->pid;
	const struct ss_crash *crash = &ss_snapshot_process(snapshot)->crash;

	for (size_t i = 0; i < count; i++) {
		if (!merge || !continues(snapshot, grouping, i))
			grouping->groups[grouping->count++].members =
				&grouping->members[i];
		struct ss_group *group = &grouping->groups[grouping->count - 1];
		const struct ss_thread *thread =
			ss_snapshot_thread(snapshot, grouping->members[i]);
		group->is_idle = (group->count == 0 || group->is_idle) && is_idle(thread);
		group->count++;
		group->has_main |= thread->tid == pid;
		group->has_crashed |= crash->signal && thread->tid == crash->tid;
		group->has_running |= thread->state == 'R';
	}
}

struct ss_grouping *ss_grouping_new(const struct ss_snapshot *snapshot, bool merge)
{
	size_t count = ss_snapshot_thread_count(snapshot);
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
	if (merge)
		qsort_r(grouping->members, count, sizeof(*grouping->members),
			compare_members, &snapshot);
	collect(grouping, snapshot, merge);
	if (merge)
		qsort(grouping->groups, grouping->count, sizeof(*grouping->groups),
		      compare_groups);
	return take_ptr(grouping);
}

void ss_grouping_free(struct ss_grouping *grouping)
{
	if (!grouping)
		return;
	free(grouping->members);
	free(grouping->groups);
	free(grouping);
}
