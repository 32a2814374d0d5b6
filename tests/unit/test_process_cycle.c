/*
 * Waits that lead through several processes, in snapshots made by hand: chains, and
 * cycles that are proven.
 */
#include "unit.h"

#include <signal.h>
#include <stdlib.h>

#include "diagnose/diagnose.h"

enum { PROCESSES = 3, FIRST_PID = 100 };

/* Processes of one thread each, all of which waited for the same all the time. The first
   one is freed with all of them. */
struct family {
	struct ss_snapshot *of[PROCESSES];
};

static void make(struct family *family)
{
	for (int i = 0; i < PROCESSES; i++) {
		struct ss_snapshot *snapshot = ss_snapshot_new();
		assert_non_null(snapshot);
		snapshot->facts = ss_facts_new();
		snapshot->waits = calloc(1, sizeof(*snapshot->waits));
		assert_true(snapshot->facts && snapshot->waits);
		struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);
		struct ss_thread_facts *facts = ss_vector_push(&snapshot->facts->threads);
		assert_true(thread && facts);
		snapshot->process.pid = FIRST_PID + i;
		*thread = (struct ss_task){ .tid = FIRST_PID + i,
					    .state = 'S',
					    .wait = snapshot->waits };
		*facts =
			(struct ss_thread_facts){ .tid = thread->tid, .unchanged = true };
		snapshot->waits->fd = -1;
		family->of[i] = snapshot;
		if (i == 0)
			continue;
		struct ss_snapshot **slot = ss_vector_push(&family->of[0]->others);
		assert_non_null(slot);
		*slot = snapshot;
		snapshot->first = family->of[0];
	}
}

/* The process waits for a file lock of another one; -1: of nobody. */
static void set_owner(const struct family *family, int process, int owner)
{
	struct ss_wait *wait = family->of[process]->waits;

	wait->kind = owner < 0 ? SS_WAIT_SIGNAL : SS_WAIT_FILE_LOCK;
	wait->owner_pid = owner < 0 ? 0 : FIRST_PID + owner;
}

static size_t count_cycles(const struct family *family)
{
	struct ss_snapshot *first = family->of[0];

	first->cycles.count = 0;
	assert_true(ss_process_cycle_find(first));
	return ss_snapshot_cycle_count(first);
}

TEST(test_cycle)
{
	struct family family;

	make(&family);
	set_owner(&family, 0, 1);
	set_owner(&family, 1, 2);
	set_owner(&family, 2, 0);
	assert_int_equal(count_cycles(&family), 1);
	const struct ss_cycle *cycle = ss_snapshot_cycle(family.of[0], 0);
	assert_int_equal(cycle->count, PROCESSES);
	for (size_t i = 0; i < PROCESSES; i++) {
		assert_ptr_equal(cycle->members[i].snapshot, family.of[i]);
		assert_int_equal(cycle->members[i].thread->tid, FIRST_PID + (pid_t)i);
	}
	set_owner(&family, 2, -1);
	assert_int_equal(count_cycles(&family), 0);
	ss_snapshot_free(family.of[0]);
}

/* One that could end in another way is no deadlock. */
TEST(test_unproven)
{
	struct family family;

	make(&family);
	set_owner(&family, 0, 1);
	set_owner(&family, 1, 0);
	set_owner(&family, 2, -1);
	assert_int_equal(count_cycles(&family), 1);
	family.of[1]->waits->timed = true;
	assert_int_equal(count_cycles(&family), 0);
	family.of[1]->waits->timed = false;
	family.of[1]->facts->threads.items[0].unchanged = false;
	assert_int_equal(count_cycles(&family), 0);
	family.of[1]->facts->threads.items[0].unchanged = true;
	/* another thread of the process may release the file lock */
	family.of[1]->process.threads_unseen = 1;
	assert_int_equal(count_cycles(&family), 0);
	family.of[1]->process.threads_unseen = 0;
	assert_int_equal(count_cycles(&family), 1);
	ss_snapshot_free(family.of[0]);
}

/* A pipe leads to its only other end, if it is certain that there is no other. */
TEST(test_pipes)
{
	struct ss_related_process writers[] = { { .pid = FIRST_PID + 1 },
						{ .pid = FIRST_PID + 2 } };
	struct ss_descriptor pipe_end = { .kind = SS_FD_PIPE,
					  .peers = writers,
					  .peer_count = 1 };
	struct family family;

	make(&family);
	*family.of[0]->waits = (struct ss_wait){ .kind = SS_WAIT_READ,
						 .fd = 3,
						 .descriptor = &pipe_end };
	set_owner(&family, 1, 0);
	set_owner(&family, 2, -1);
	assert_int_equal(count_cycles(&family), 1);
	pipe_end.peers_incomplete = true;
	assert_int_equal(count_cycles(&family), 0);
	pipe_end.peers_incomplete = false;
	pipe_end.peer_count = 2;
	assert_int_equal(count_cycles(&family), 0);
	pipe_end.peer_count = 1;
	writers[0].same = true; /* a signal handler may write */
	assert_int_equal(count_cycles(&family), 0);
	ss_snapshot_free(family.of[0]);
}

static void add_thread(const struct family *family, int process)
{
	struct ss_snapshot *snapshot = family->of[process];
	struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);
	struct ss_thread_facts *facts = ss_vector_push(&snapshot->facts->threads);

	assert_true(thread && facts);
	*thread = (struct ss_task){ .tid = FIRST_PID + 10, .state = 'S' };
	*facts = (struct ss_thread_facts){ .tid = thread->tid, .still = true };
}

static bool is_stuck_elsewhere(const struct family *family)
{
	(void)count_cycles(family);
	return family->of[0]->waits->stuck_elsewhere;
}

/* The first process waits for its children: two that wait for each other, or for nobody. */
TEST(test_children)
{
	struct ss_related_process children[] = { { .pid = FIRST_PID + 1 },
						 { .pid = FIRST_PID + 2 } };
	struct family family;

	make(&family);
	*family.of[0]->waits = (struct ss_wait){ .kind = SS_WAIT_CHILD,
						 .child_scope = SS_CHILD_ANY,
						 .children = children,
						 .child_count = 2,
						 .children_total = 2,
						 .children_known = true };
	set_owner(&family, 1, 2);
	set_owner(&family, 2, 1);
	assert_int_equal(count_cycles(&family), 1);
	assert_true(is_stuck_elsewhere(&family));
	set_owner(&family, 2, -1); /* it may end */
	assert_false(is_stuck_elsewhere(&family));
	family.of[2]->waits->kind = SS_WAIT_STOPPED;
	assert_false(is_stuck_elsewhere(&family)); /* not observed */
	family.of[2]->facts->threads.items[0].still = true;
	assert_true(is_stuck_elsewhere(&family));
	add_thread(&family, 2); /* which may end the process */
	assert_false(is_stuck_elsewhere(&family));
	ss_snapshot_free(family.of[0]);
}

/* Any of several readers of a pipe may read from it. */
TEST(test_readers)
{
	struct ss_related_process readers[] = { { .pid = FIRST_PID + 1 },
						{ .pid = FIRST_PID + 2 } };
	struct ss_descriptor pipe_end = { .kind = SS_FD_PIPE,
					  .peers = readers,
					  .peer_count = 2 };
	struct family family;

	make(&family);
	*family.of[0]->waits = (struct ss_wait){ .kind = SS_WAIT_WRITE,
						 .fd = 1,
						 .descriptor = &pipe_end };
	set_owner(&family, 1, 0);
	set_owner(&family, 2, 1);
	assert_true(is_stuck_elsewhere(&family));
	pipe_end.peers_incomplete = true;
	assert_false(is_stuck_elsewhere(&family));
	pipe_end.peers_incomplete = false;
	family.of[0]->waits->timed = true;
	assert_false(is_stuck_elsewhere(&family));
	ss_snapshot_free(family.of[0]);
}

/* A child whose only thread waits for itself, unless a signal handler may help. */
TEST(test_closed_child)
{
	struct family family;

	make(&family);
	set_owner(&family, 0, 1);
	family.of[0]->waits->kind = SS_WAIT_CHILD;
	set_owner(&family, 1, -1);
	set_owner(&family, 2, -1);
	*family.of[1]->waits =
		(struct ss_wait){ .kind = SS_WAIT_SEMAPHORE, .within_process = true };
	assert_true(is_stuck_elsewhere(&family));
	family.of[1]->process.handled_signals = 1 << 9; /* SIGUSR1 */
	assert_false(is_stuck_elsewhere(&family));
	family.of[1]->process.handled_signals = 0;
	add_thread(&family, 1);
	assert_false(is_stuck_elsewhere(&family));
	ss_snapshot_free(family.of[0]);
}

static bool is_closed(const struct family *family)
{
	(void)count_cycles(family);
	return family->of[0]->waits->closed;
}

/* The first process waits for itself, the second one for room in its pipe, the others wait for nobody. */
TEST(test_closed_process)
{
	struct ss_related_process reader = { .pid = FIRST_PID };
	struct ss_descriptor pipe_end = { .kind = SS_FD_PIPE,
					  .peers = &reader,
					  .peer_count = 1 };
	struct family family;

	make(&family);
	struct ss_process *process = &family.of[0]->process;
	*family.of[0]->waits =
		(struct ss_wait){ .kind = SS_WAIT_CONDVAR, .within_process = true };
	*family.of[1]->waits =
		(struct ss_wait){ .kind = SS_WAIT_WRITE, .descriptor = &pipe_end };
	set_owner(&family, 2, -1);
	assert_true(is_closed(&family));
	assert_false(family.of[0]->waits->stuck_elsewhere);
	family.of[0]->waits->timed = true;
	assert_false(is_closed(&family));
	family.of[0]->waits->timed = false;
	process->handled_signals = 1 << (SIGCHLD - 1); /* a child may end */
	assert_false(is_closed(&family));
	family.of[0]->facts->children_known = true; /* there is none */
	assert_true(is_closed(&family));
	struct ss_process_fact *child = ss_vector_push(&family.of[0]->facts->children);
	assert_non_null(child);
	*child = (struct ss_process_fact){ .pid = FIRST_PID + 1 };
	assert_true(is_closed(&family)); /* it waits for this process */
	child->pid = FIRST_PID + 2;
	assert_false(is_closed(&family));
	process->handled_signals = 0;
	process->threads_unseen = 1;
	assert_false(is_closed(&family));
	ss_snapshot_free(family.of[0]);
}

TEST(test_chain)
{
	struct family family;

	make(&family);
	set_owner(&family, 0, 1);
	set_owner(&family, 1, 2);
	set_owner(&family, 2, -1);
	assert_true(ss_chains_find(family.of[0]));
	const struct ss_wait *wait = family.of[0]->waits;
	assert_int_equal(wait->chain_length, 2);
	assert_ptr_equal(wait->chain[0].snapshot, family.of[1]);
	assert_ptr_equal(wait->chain[1].snapshot, family.of[2]);
	/* a cycle among others is listed once around, and not for ever */
	set_owner(&family, 2, 1);
	assert_true(ss_chains_find(family.of[0]));
	assert_int_equal(wait->chain_length, 12);
	ss_snapshot_free(family.of[0]);
}
