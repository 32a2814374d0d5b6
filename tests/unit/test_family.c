/*
 * The processes of a recording: children are found as they are forked, in a tree of
 * processes that is made up.
 */
#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "sample/recorder_process.h"

enum { PROCESSES_MAX = 5000, INTERVAL_NS = 50000000 };

static struct {
	struct ss_target targets[PROCESSES_MAX]; /* by pid; pid 0: not opened */
	pid_t parents[PROCESSES_MAX];		 /* 0: no such process */
	bool no_memory;
	pid_t early;
	pid_t refused;
	unsigned listings;
} tree;

static struct ss_error *open_process(pid_t pid, struct ss_target **ret)
{
	if (pid == tree.early)
		return NULL;
	if (pid == tree.refused)
		return ss_error_new(SS_ERROR_DENIED, "no");
	assert_int_equal(tree.targets[pid].pid, 0); /* only once */
	tree.targets[pid].pid = pid;
	*ret = &tree.targets[pid];
	return NULL;
}

static bool list_children(const struct ss_target *target, struct ss_children *ret)
{
	tree.listings++;
	ret->pids.count = 0;
	for (pid_t pid = 2; pid < PROCESSES_MAX; pid++) {
		pid_t *slot = tree.parents[pid] == target->pid ?
				      ss_vector_push(&ret->pids) :
				      NULL;
		if (slot)
			*slot = pid;
	}
	return !tree.no_memory;
}

static const struct ss_process_access made_up = {
	.open_child = open_process,
	.list_children = list_children,
};

static bool adopt(void *data, struct ss_target *target)
{
	return ss_family_add(data, target);
}

/* Process 1 alone. */
static void begin(struct ss_family *family)
{
	memset(&tree, 0, sizeof(tree));
	tree.targets[1].pid = 1;
	ss_family_init(family, &made_up);
	assert_true(ss_family_add(family, &tree.targets[1]));
}

static bool search(struct ss_family *family, uint64_t now_ns)
{
	return ss_family_search(family, now_ns, adopt, family);
}

TEST(test_forks)
{
	struct ss_family family;

	begin(&family);
	assert_true(search(&family, INTERVAL_NS));
	assert_int_equal(family.members.count, 1);
	/* a child, and its child, in one search */
	tree.parents[2] = 1;
	tree.parents[3] = 2;
	assert_true(search(&family, 2 * INTERVAL_NS));
	assert_int_equal(family.members.count, 3);
	/* nothing is opened twice; an ended one is forgotten by its pid, which is used again */
	assert_true(search(&family, 3 * INTERVAL_NS));
	ss_family_remove(&family, &tree.targets[3]);
	tree.targets[3].pid = 0;
	assert_true(search(&family, 4 * INTERVAL_NS));
	assert_int_equal(family.members.count, 3);
	ss_family_deinit(&family);
}

TEST(test_interval)
{
	struct ss_family family;

	begin(&family);
	assert_true(search(&family, INTERVAL_NS));
	tree.parents[2] = 1;
	tree.listings = 0;
	for (uint64_t now = INTERVAL_NS; now < 2 * INTERVAL_NS; now += INTERVAL_NS / 10)
		assert_true(search(&family, now));
	assert_int_equal(tree.listings, 0);
	assert_true(search(&family, 2 * INTERVAL_NS));
	assert_int_equal(family.members.count, 2);
	ss_family_deinit(&family);
}

TEST(test_errors)
{
	struct ss_family family;

	begin(&family);
	tree.parents[2] = tree.parents[3] = 1;
	tree.refused = 2; /* skipped, and tried again */
	tree.early = 3;
	assert_true(search(&family, INTERVAL_NS));
	assert_int_equal(family.members.count, 1);
	tree.refused = tree.early = 0;
	assert_true(search(&family, 2 * INTERVAL_NS));
	assert_int_equal(family.members.count, 3);
	tree.no_memory = true;
	assert_false(search(&family, 3 * INTERVAL_NS));
	ss_family_deinit(&family);
}

/* A process that forks without end does not make the recorder's memory grow so. */
TEST(test_limit)
{
	struct ss_family family;

	begin(&family);
	for (pid_t pid = 2; pid < PROCESSES_MAX; pid++)
		tree.parents[pid] = 1;
	assert_true(search(&family, INTERVAL_NS));
	assert_int_equal(family.members.count, 4096);
	ss_family_deinit(&family);
}
