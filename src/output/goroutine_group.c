#include "output/goroutine_group.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

const char *ss_goroutine_words(const struct ss_goroutine *goroutine)
{
	return goroutine->status == SS_GOROUTINE_WAITING && goroutine->wait_reason ?
		       goroutine->wait_reason :
		       ss_goroutine_status_name(goroutine->status);
}

int ss_goroutine_compare_runtimes(const struct ss_goroutine *a,
				  const struct ss_goroutine *b)
{
	if (a->runtime == b->runtime)
		return 0;
	return strcmp(a->runtime ? a->runtime : "", b->runtime ? b->runtime : "");
}

bool ss_goroutines_of_several(const struct ss_snapshot *snapshot)
{
	const size_t count = ss_snapshot_goroutine_count(snapshot);

	for (size_t i = 1; i < count; i++) {
		if (ss_goroutine_compare_runtimes(ss_snapshot_goroutine(snapshot, 0),
						  ss_snapshot_goroutine(snapshot, i)) !=
		    0)
			return true;
	}
	return false;
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Equal for members of one group. */
static int compare_kinds(const struct ss_goroutine *a, const struct ss_goroutine *b)
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

static int compare_members(const void *a, const void *b)
{
	const struct ss_goroutine *x = *(const struct ss_goroutine *const *)a;
	const struct ss_goroutine *y = *(const struct ss_goroutine *const *)b;
	int order = compare_kinds(x, y);

	return order ? order : COMPARE(x->id, y->id);
}

static int compare_groups(const void *a, const void *b)
{
	const struct ss_goroutine_group *x = a;
	const struct ss_goroutine_group *y = b;
	const struct ss_goroutine *first = *x->members;
	const struct ss_goroutine *other = *y->members;
	int order = COMPARE(first->on_thread, other->on_thread);

	if (order == 0 && first->on_thread)
		order = COMPARE(first->tid, other->tid);
	if (order == 0)
		order = COMPARE(y->count, x->count);
	if (order == 0)
		order = COMPARE(first->id, other->id);
	return order ? order : ss_goroutine_compare_runtimes(first, other);
}

static void make_groups(struct ss_goroutine_grouping *grouping, size_t count, bool merge)
{
	for (size_t i = 0; i < count; i++) {
		const struct ss_goroutine *member = grouping->members[i];
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
		      compare_groups);
}

struct ss_goroutine_grouping *
ss_goroutine_grouping_new(const struct ss_snapshot *snapshot, bool merge)
{
	size_t count = ss_snapshot_goroutine_count(snapshot);
	_cleanup_(ss_goroutine_grouping_cleanup) struct ss_goroutine_grouping *grouping =
		calloc(1, sizeof(*grouping));

	if (!grouping)
		return NULL;
	grouping->members = calloc(count + 1, sizeof(const struct ss_goroutine *));
	grouping->groups = calloc(count + 1, sizeof(*grouping->groups));
	if (!grouping->members || !grouping->groups)
		return NULL;
	grouping->several = ss_goroutines_of_several(snapshot);
	for (size_t i = 0; i < count; i++)
		grouping->members[i] = ss_snapshot_goroutine(snapshot, i);
	qsort(grouping->members, count, sizeof(const struct ss_goroutine *),
	      compare_members);
	make_groups(grouping, count, merge);
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

const struct ss_goroutine *
ss_goroutine_grouping_find(const struct ss_goroutine_grouping *grouping, pid_t tid)
{
	const struct ss_goroutine_group *groups = grouping->groups + grouping->own_count;
	size_t count = grouping->count - grouping->own_count;
	size_t at = ss_lower_bound(count, i, (*groups[i].members)->tid < tid);

	return at < count && (*groups[at].members)->tid == tid ? *groups[at].members :
								 NULL;
}
