/*
 * Captures related processes, which threads of a capture wait for: a few of the same
 * user, without stopping them. Cycles are checked again until no thread runs meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/facts.h"
#include "data/pipeline.h"
#include "process/objects.h"

/* Limits for one process: waits are needed, not whole stacks. The process that is
   already captured is read again only where it may have changed. */
enum {
	THREADS_MAX = 256,
	STACK_MAX = 64 << 10,
	OWN_THREADS_MAX = 16 << 10,
	OWN_STACK_MAX = 512,
	TOTAL_MAX = 8 << 20,
};

/*
 * Number of checks of a cycle, and the delay before the second, which doubles with each.
 * If threads of this process were not stopped together, because there were more runnable
 * threads than CPUs, they get more time to return to their waits.
 */
enum {
	CHECKS = 4,
	UNPROVEN_CHECKS = 9,
	NAP_NS = 2 * 1000 * 1000,
	STABLE_NS =
		1000 * 1000 * 1000, /* of all checks; thousands of threads take long */
	WHOLE_NS = 400 * 1000 *
		   1000, /* CPU time to search all processes for other holders */
};

/* One process, captured between two reads of its scheduler counters. */
struct process {
	struct ss_target *target;
	bool opened; /* target was opened by this file */
	struct ss_capture *capture;
	struct ss_activity *before;
	struct ss_activity *after;
};

struct related {
	struct process
		processes[SS_PEERS_MAX + 1]; /* the first one is the captured process */
	struct ss_peers peers;
	uid_t uid;
};

static void process_deinit(struct process *process)
{
	ss_capture_free(process->capture);
	ss_activity_free(process->before);
	ss_activity_free(process->after);
	if (process->opened)
		ss_target_close(process->target);
}

static void deinit_related(struct related *related)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(related->processes); i++)
		process_deinit(&related->processes[i]);
}

static bool selects_few(void *data, pid_t tid, const char *name, char state)
{
	size_t *left = data;

	(void)tid;
	(void)name;
	(void)state;
	return *left > 0 && (*left)--;
}

/* Replaces the previous capture. Stops no thread. */
static void capture_process(struct process *process)
{
	size_t left = process->opened ? THREADS_MAX : OWN_THREADS_MAX;
	const struct ss_capture_options options = {
		.size = sizeof(options),
		.mode = SS_MODE_NO_STOP,
		.max_stack = process->opened ? STACK_MAX : OWN_STACK_MAX,
		.max_total = TOTAL_MAX,
		.filter = selects_few,
		.filter_data = &left,
	};
	struct ss_capture *capture = NULL;

	if (!process->target)
		return;
	ss_error_free(ss_capture_take(process->target, &options, &capture));
	if (capture && capture->facts)
		capture->facts->of_another = true;
	ss_capture_free(process->capture);
	process->capture = capture;
}

/* Skips processes of other users. */
static void open_process_of(struct related *related, size_t index)
{
	struct process *process = &related->processes[index];
	uid_t uid = 0;
	gid_t gid = 0;

	ss_error_free(ss_target_open(related->peers.pids[index], &process->target));
	process->opened = true;
	if (!process->target)
		return;
	_cleanup_error_ struct ss_error *unknown =
		ss_target_owner(process->target, &uid, &gid);
	if (unknown || uid != related->uid) {
		ss_target_close(process->target);
		process->target = NULL;
	}
}

static void find_processes(struct related *related, struct ss_capture *capture)
{
	ss_peers_find(&related->peers, capture, related->processes[0].target);
	for (size_t i = 1; i < related->peers.count; i++) {
		struct process *process = &related->processes[i];
		open_process_of(related, i);
		capture_process(process);
		if (process->capture)
			ss_peers_find(&related->peers, process->capture, process->target);
	}
}

/* The thread did not run between the two reads and still sleeps: so it held the same
   locks all the time. */
static bool is_unchanged(const struct process *process, pid_t tid)
{
	const struct ss_thread_activity *before = ss_activity_find(process->before, tid);
	const struct ss_thread_activity *after = ss_activity_find(process->after, tid);

	return before && after && before->counted && before->runs == after->runs &&
	       before->state == 'S' && after->state == 'S';
}

static bool same_wait(const struct ss_thread_facts *a, const struct ss_thread_facts *b)
{
	return a && b && a->call.number == b->call.number &&
	       memcmp(a->call.args, b->call.args, sizeof(a->call.args)) == 0 &&
	       a->holder.pid == b->holder.pid && a->lock.size == b->lock.size &&
	       a->lock.address == b->lock.address &&
	       (a->lock.size == 0 ||
		memcmp(a->lock.bytes, b->lock.bytes, a->lock.size) == 0);
}

/* facts: where threads are marked; they may belong to an older capture than that of
   process. */
static void mark(const struct process *process, struct ss_facts *facts)
{
	for (size_t i = 0; facts && process->capture && i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		thread->unchanged =
			is_unchanged(process, thread->tid) &&
			same_wait(thread, ss_facts_find_thread(process->capture->facts,
							       thread->tid));
	}
}

/* Clears marks of an earlier check. */
static void unmark(struct ss_facts *facts)
{
	for (size_t i = 0; facts && i < facts->threads.count; i++)
		facts->threads.items[i].unchanged = false;
}

static void take_activity(struct process *process, struct ss_activity **ret)
{
	ss_activity_free(*ret);
	*ret = NULL;
	if (process->target)
		ss_error_free(ss_activity_take(process->target, ret));
}

/*
 * If waits form a cycle that is not proven yet, captures each process again between two
 * reads of the counters of all. The waits and owners of threads that did not run in
 * between are from the same instant.
 */
static void recheck(struct related *related, struct ss_capture *capture)
{
	struct process *processes = related->processes;

	for (size_t i = 0; i < related->peers.count; i++)
		take_activity(&processes[i], &processes[i].before);
	for (size_t i = 0; i < related->peers.count; i++) {
		struct ss_peers known = related->peers;
		capture_process(&processes[i]);
		if (processes[i].capture) /* find processes that share its locks */
			ss_peers_find(&known, processes[i].capture, processes[i].target);
	}
	for (size_t i = 0; i < related->peers.count; i++)
		take_activity(&processes[i], &processes[i].after);
	unmark(capture->facts);
	/* Only some of its threads were requested; others may release locks. */
	if (processes[0].capture &&
	    processes[0].capture->threads.count == capture->threads.count)
		mark(&processes[0], capture->facts);
	for (size_t i = 1; i < related->peers.count; i++) {
		if (processes[i].capture)
			mark(&processes[i], processes[i].capture->facts);
	}
}

/* Whether all sleeping threads are unchanged. With more runnable threads than CPUs,
   threads that were stopped may take some time to return to their system calls. */
static bool is_stable(const struct ss_facts *facts)
{
	for (size_t i = 0; facts && i < facts->threads.count; i++) {
		if (facts->threads.items[i].state == 'S' &&
		    !facts->threads.items[i].unchanged)
			return false;
	}
	return true;
}

static void recheck_until_stable(struct related *related, struct ss_capture *capture)
{
	bool unproven = ss_peers_have_unproven_cycle(capture);
	uint64_t end_ns = ss_now_ns() + (uint64_t)STABLE_NS;

	for (int i = 0; unproven || (related->peers.has_cycle && i < CHECKS); i++) {
		if (i > 0)
			ss_sleep_ns((uint64_t)NAP_NS << (i - 1));
		recheck(related, capture);
		unproven = i + 1 < UNPROVEN_CHECKS &&
			   ss_peers_have_unproven_cycle(capture);
		if (ss_now_ns() >= end_ns || (!unproven && is_stable(capture->facts)))
			return;
	}
}

/* A cycle through the two ends of a pipe or socket is one only if nobody else has these ends; and a thread
   cannot go on that waits for a process that is stopped, or for itself. */
static bool needs_all_holders(const struct related *related,
			      const struct ss_capture *capture)
{
	bool needs = related->peers.has_cycle;

	for (size_t i = 0; capture->facts && i < capture->facts->threads.count; i++)
		needs |= ss_facts_waits_for_own_pipes(
			capture->facts, &capture->facts->threads.items[i], false);
	for (size_t i = 1; i < related->peers.count; i++) {
		const struct ss_capture *other = related->processes[i].capture;
		for (size_t t = 0; other && t < other->threads.count; t++)
			needs |= other->threads.items[t].state == 'T';
	}
	return needs;
}

static void complete_holders(const struct related *related, struct ss_capture *capture)
{
	const uint64_t end_ns = ss_clock_ns(CLOCK_THREAD_CPUTIME_ID) + WHOLE_NS;

	if (capture->facts)
		ss_holders_complete(capture->facts, related->processes[0].target, end_ns);
	for (size_t i = 1; i < related->peers.count; i++) {
		const struct process *process = &related->processes[i];
		if (process->capture && process->capture->facts)
			ss_holders_complete(process->capture->facts, process->target,
					    end_ns);
	}
}

/* Earlier snapshots share the facts: mark a copy. */
static bool detach_facts(struct ss_capture *capture)
{
	struct ss_facts *copy = capture->facts ? ss_facts_copy(capture->facts) : NULL;

	if (!copy)
		return capture->facts == NULL;
	ss_facts_unref(capture->facts);
	capture->facts = copy;
	return true;
}

void ss_capture_add_related(struct ss_capture *capture, struct ss_target *target)
{
	__attribute__((cleanup(deinit_related))) struct related related = {
		.processes[0].target = target,
		.peers = { .pids = { target->pid }, .count = 1 },
	};
	gid_t gid = 0;
	_cleanup_error_ struct ss_error *unknown =
		ss_target_owner(target, &related.uid, &gid);

	if (unknown || target->listing || capture->others.count || !detach_facts(capture))
		return;
	if (capture->facts)
		ss_holders_find_again(capture->facts, target);
	find_processes(&related, capture);
	recheck_until_stable(&related, capture);
	if (needs_all_holders(&related, capture))
		complete_holders(&related, capture);
	for (size_t i = 1; i < related.peers.count; i++) {
		struct ss_capture **slot = related.processes[i].capture ?
						   ss_vector_push(&capture->others) :
						   NULL;
		if (slot)
			*slot = take_ptr(related.processes[i].capture);
	}
}

/* Ids of threads are unique among all processes; the counts are sorted by them. */
static const struct ss_run_count *find_count(const struct ss_run_counts *counts,
					     pid_t tid)
{
	return ss_search(counts->items, counts->count, tid, tid);
}

SS_DEFINE_COMPARE(compare_counts, struct ss_run_count, tid)

void ss_capture_take_counts(struct ss_capture *capture, struct ss_run_counts *ret)
{
	for (size_t i = 0; i < capture->others.count; i++) {
		struct ss_capture *other = capture->others.items[i];
		for (size_t t = 0; t < other->threads.count; t++) {
			const struct ss_capture_thread *thread = &other->threads.items[t];
			struct ss_run_count *slot = ss_vector_push(ret);
			if (slot)
				*slot = (struct ss_run_count){ thread->tid,
							       thread->run_count };
		}
		ss_capture_free(other);
	}
	capture->others.count = 0;
	if (ret->count > 1)
		qsort(ret->items, ret->count, sizeof(*ret->items), compare_counts);
}

void ss_capture_compare_counts(struct ss_capture *capture,
			       const struct ss_run_counts *before)
{
	if (capture->facts)
		capture->facts->observed = true;
	for (size_t i = 0; i < capture->others.count; i++) {
		struct ss_capture *other = capture->others.items[i];
		const size_t count = other->facts ? SS_MIN(other->threads.count,
							   other->facts->threads.count) :
						    0;
		for (size_t t = 0; t < count; t++) {
			const struct ss_capture_thread *thread = &other->threads.items[t];
			const struct ss_run_count *then = find_count(before, thread->tid);
			/* They have the same order. */
			other->facts->threads.items[t].still =
				then && then->runs == thread->run_count && then->runs;
		}
	}
}
