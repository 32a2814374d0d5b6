#include "output/task_group.h"

#include <stdlib.h>
#include <string.h>

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_kinds(const struct ss_async_task *a, const struct ss_async_task *b)
{
	const char *x = a->awaited_type ? a->awaited_type : "";
	const char *y = b->awaited_type ? b->awaited_type : "";
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
static int compare_members(const void *a, const void *b)
{
	const struct ss_async_task *x = *(const struct ss_async_task *const *)a;
	const struct ss_async_task *y = *(const struct ss_async_task *const *)b;
	int order = compare_kinds(x, y);

	return order ? order : COMPARE(x, y);
}

static int compare_groups(const void *a, const void *b)
{
	const struct ss_task_group *x = a;
	const struct ss_task_group *y = b;
	int order = COMPARE(y->count, x->count);

	return order ? order : COMPARE(*x->members, *y->members);
}

static void make_groups(struct ss_task_grouping *grouping, size_t count, bool merge)
{
	const struct ss_async_task **members = grouping->members;

	for (size_t i = 0; i < count; i++) {
		struct ss_task_group *last =
			grouping->count ? &grouping->groups[grouping->count - 1] : NULL;
		if (merge && last && members[i]->awaited_count == 0 &&
		    compare_kinds(*last->members, members[i]) == 0)
			last->count++;
		else
			grouping->groups[grouping->count++] =
				(struct ss_task_group){ &members[i], 1 };
	}
}

struct ss_task_grouping *ss_task_grouping_new(const struct ss_snapshot *snapshot,
					      bool merge)
{
	const size_t count = ss_snapshot_async_task_count(snapshot);
	_cleanup_(ss_task_grouping_cleanup) struct ss_task_grouping *grouping =
		calloc(1, sizeof(*grouping));

	if (!grouping)
		return NULL;
	grouping->members = calloc(count + 1, sizeof(const struct ss_async_task *));
	grouping->groups = calloc(count + 1, sizeof(*grouping->groups));
	if (!grouping->members || !grouping->groups)
		return NULL;
	for (size_t i = 0; i < count; i++)
		grouping->members[i] = ss_snapshot_async_task(snapshot, i);
	qsort(grouping->members, count, sizeof(const struct ss_async_task *),
	      compare_members);
	make_groups(grouping, count, merge);
	qsort(grouping->groups, grouping->count, sizeof(*grouping->groups),
	      compare_groups);
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
