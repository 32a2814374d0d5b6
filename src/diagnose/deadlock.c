#include "diagnose/diagnose.h"

#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
/*
 * Makes snapshots of the related processes in a capture. Their modules are numbered
 * separately, so meanwhile the session does not report them to the sandbox.
 */
#include "base/graph.h"
#include "base/search.h"
#include "data/call.h"
#include "data/capture.h"
#include "data/session.h"
#include "data/snapshot.h"

/* The target of a wait. */
struct ss_chain_link {
	const struct ss_snapshot *snapshot; /* NULL: not known */
	const struct ss_task *thread;	    /* NULL: any thread of that process */
	bool ambiguous;			    /* others may end the wait as well */
};

enum { LENGTH_MAX = 12 }; /* as many as there are related processes */

bool ss_wait_is_idle(const struct ss_wait *wait)
{
	if (wait->mount || (wait->opens_fifo && wait->access == SS_ACCESS_EXCLUSIVE))
		return false;
	if (wait->kind == SS_WAIT_CONNECT && wait->descriptor &&
	    wait->descriptor->protocol &&
	    strncmp(wait->descriptor->protocol, "UNIX", strlen("UNIX")) == 0)
		return false;
	switch (wait->kind) {
	case SS_WAIT_MUTEX:
	case SS_WAIT_RWLOCK:
	case SS_WAIT_ONCE:
	case SS_WAIT_FILE_LOCK:
	case SS_WAIT_PTRACE:
	case SS_WAIT_STOPPED:
	case SS_WAIT_PAGE_FAULT:
		return false;
	default:
		return true;
	}
}

bool ss_process_expects_signal(const struct ss_process *process)
{
	static const uint8_t others[] = { SIGINT,  SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
					  SIGTRAP, SIGABRT, SIGSYS, SIGPIPE, SIGCHLD,
					  SIGXFSZ, 32,	    33,	    34 };
	uint64_t handled = process->handled_signals;

	for (size_t i = 0; i < SS_ARRAY_SIZE(others); i++)
		handled &= ~(UINT64_C(1) << (others[i] - 1));
	return handled != 0;
}

static const struct ss_snapshot *find_process(const struct ss_snapshot *snapshot,
					      pid_t pid)
{
	const struct ss_snapshot *other;

	for (size_t i = 0; (other = ss_snapshot_related(snapshot, i)) != NULL; i++) {
		if (other->process.pid == pid)
			return other;
	}
	return NULL;
}

/* The only process that has the other end of what a thread reads or writes. NULL: none
   or several are known, or it is the thread's own process, in which a signal handler
   may write. */
static const struct ss_related_process *only_peer(const struct ss_wait *wait)
{
	const struct ss_descriptor *descriptor = wait->descriptor;

	return ss_wait_kind_transfers(wait->kind) && descriptor &&
			       descriptor->peer_count == 1 && !descriptor->peers[0].same ?
		       &descriptor->peers[0] :
		       NULL;
}

/* The process that a thread waits for, or 0. */
static pid_t find_pid(const struct ss_snapshot *snapshot, const struct ss_wait *wait,
		      bool *ambiguous)
{
	const struct ss_related_process *peer = only_peer(wait);
	const struct ss_facts *facts = snapshot->facts;

	if (wait->owner_pid)
		return wait->owner_pid;
	if (wait->owner_tid)
		return snapshot->process.pid;
	*ambiguous = peer ? wait->descriptor->peers_incomplete : true;
	if (peer)
		return peer->pid;
	if ((wait->kind != SS_WAIT_CHILD && wait->child_count == 0) || !facts ||
	    facts->children.count != 1)
		return 0;
	/* While it waits, it starts no other child. */
	*ambiguous = wait->kind != SS_WAIT_CHILD;
	return facts->children.items[0].pid;
}

/* Of a process that has to end: usually its main thread ends it. If that one only waits for another
   one, the one that waits for another process. */
static const struct ss_task *telling_thread(const struct ss_snapshot *process)
{
	const struct ss_task *threads = process->tasks[SS_TASK_THREAD].items;
	const struct ss_task *main =
		ss_snapshot_find_thread(process, process->process.pid);

	for (size_t i = 0;
	     main && main->wait && main->wait->within_process && !main->wait->owner_tid &&
	     i < process->tasks[SS_TASK_THREAD].count;
	     i++) {
		const struct ss_wait *wait = threads[i].wait;
		if (wait && (wait->owner_pid || wait->kind == SS_WAIT_WRITE ||
			     wait->kind == SS_WAIT_SEND))
			return &threads[i];
	}
	return main;
}

/* Returns the target of a thread's wait, in its own process or a related one. */
static struct ss_chain_link chain_follow(const struct ss_snapshot *snapshot,
					 const struct ss_task *thread)
{
	struct ss_chain_link to = {};
	const struct ss_wait *wait = thread->wait;

	if (!wait)
		return to;
	pid_t pid = find_pid(snapshot, wait, &to.ambiguous);
	to.snapshot = pid ? find_process(snapshot, pid) : NULL;
	if (to.snapshot && wait->owner_tid) {
		to.thread = ss_snapshot_find_thread(to.snapshot, wait->owner_tid);
	} else if (to.snapshot && to.snapshot->tasks[SS_TASK_THREAD].count == 1 &&
		   to.snapshot->process.threads_unseen == 0) {
		to.thread = &to.snapshot->tasks[SS_TASK_THREAD].items[0];
	} else if (to.snapshot &&
		   (wait->kind == SS_WAIT_CHILD || wait->kind == SS_WAIT_SIGNAL)) {
		to.thread = telling_thread(to.snapshot);
		to.ambiguous = true;
	}
	return to;
}

/* The part of the chain of waits that goes through other processes. */
static size_t list_chain(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 struct ss_thread_ref *ret)
{
	struct ss_chain_link link = chain_follow(snapshot, thread);
	size_t length = 0;

	while (length < LENGTH_MAX && link.thread && link.snapshot != snapshot) {
		ret[length++] = (struct ss_thread_ref){ link.snapshot, link.thread };
		link = chain_follow(link.snapshot, link.thread);
	}
	return length;
}

static bool set_chain(struct ss_snapshot *snapshot, size_t index)
{
	struct ss_thread_ref found[LENGTH_MAX];
	struct ss_wait *wait = &snapshot->waits[index];
	size_t length = list_chain(snapshot,
				   &snapshot->tasks[SS_TASK_THREAD].items[index], found);

	if (length == 0)
		return true;
	struct ss_thread_ref *chain = ss_snapshot_alloc(snapshot, length, sizeof(*chain));
	if (!chain)
		return false;
	memcpy(chain, found, length * sizeof(*chain));
	wait->chain = chain;
	wait->chain_length = length;
	return true;
}

bool ss_chains_find(struct ss_snapshot *snapshot)
{
	for (size_t i = 0;
	     i < snapshot->tasks[SS_TASK_THREAD].count && snapshot->others.count; i++) {
		if (snapshot->tasks[SS_TASK_THREAD].items[i].wait &&
		    !set_chain(snapshot, i))
			return false;
	}
	return true;
}

size_t ss_snapshot_cycle_count(const struct ss_snapshot *snapshot)
{
	return snapshot->cycles.count;
}

const struct ss_cycle *ss_snapshot_cycle(const struct ss_snapshot *snapshot, size_t index)
{
	return &snapshot->cycles.items[index];
}

/* The chain of a waiting thread: its last thread and its first lock. */
struct link {
	size_t end;
	uint64_t lock; /* 0: the first wait is a join */
};

struct search {
	struct ss_snapshot *snapshot;
	const struct ss_thread_facts **facts; /* by thread; NULL: none */
	size_t *next;			      /* the graph */
	struct ss_graph graph;
};

static void search_deinit(struct search *search)
{
	free(search->facts);
	free(search->next);
	ss_graph_deinit(&search->graph);
}

static size_t find_thread(const struct ss_snapshot *snapshot, pid_t tid)
{
	const struct ss_task *thread = ss_snapshot_find_thread(snapshot, tid);

	return thread ? (size_t)(thread - snapshot->tasks[SS_TASK_THREAD].items) :
			SS_GRAPH_NONE;
}

static size_t owner_of(const struct ss_snapshot *snapshot, size_t thread)
{
	const struct ss_wait *wait = snapshot->tasks[SS_TASK_THREAD].items[thread].wait;

	return wait && wait->owner_tid && !wait->owner_pid ?
		       find_thread(snapshot, wait->owner_tid) :
		       SS_GRAPH_NONE;
}

/* Whether the owner did not run while the thread's lock was read: in the capture (see
   struct ss_lock_copy), or in later checks of both. */
static bool was_read_atomically(const struct ss_thread_facts *thread,
				const struct ss_thread_facts *owner)
{
	if (!thread || !owner)
		return false;
	if (thread->unchanged && owner->unchanged)
		return true;
	if (thread->freeze_round == 0)
		return false;
	return owner->freeze_round == thread->freeze_round ||
	       (thread->freeze_round % 2 &&
		owner->freeze_round == thread->freeze_round + 1);
}

/* Whether a runtime has found its locks in a cycle. */
static bool is_in_cycle(const struct ss_snapshot *snapshot, size_t thread)
{
	const struct ss_wait *wait = snapshot->tasks[SS_TASK_THREAD].items[thread].wait;

	for (size_t i = 0; i < snapshot->runtime_locks.count; i++) {
		const struct ss_runtime_lock *lock = &snapshot->runtime_locks.items[i];
		if (lock->cyclic && lock->type == wait->lock &&
		    lock->address == wait->address && lock->owner == wait->owner_tid)
			return true;
	}
	return false;
}

/*
 * The owner held the lock when the lock was read, even if it has run since. But if the
 * owner waits itself, both threads must have been stopped together: otherwise the two
 * waits may never have existed at the same time.
 */
static void link_threads(struct search *search)
{
	struct ss_snapshot *snapshot = search->snapshot;

	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		search->facts[i] = ss_facts_find_thread(
			snapshot->facts, snapshot->tasks[SS_TASK_THREAD].items[i].tid);
		search->next[i] = owner_of(snapshot, i);
	}
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		size_t owner = search->next[i];
		if (owner != SS_GRAPH_NONE &&
		    owner_of(snapshot, owner) != SS_GRAPH_NONE &&
		    !was_read_atomically(search->facts[i], search->facts[owner]) &&
		    !is_in_cycle(snapshot, i))
			search->next[i] = SS_GRAPH_NONE;
	}
}

static bool add_deadlock(struct search *search, size_t first)
{
	struct ss_snapshot *snapshot = search->snapshot;
	size_t count = ss_graph_list_cycle(&search->graph, first, NULL, 0);
	size_t *members = ss_snapshot_alloc(snapshot, count, sizeof(*members));
	struct ss_deadlock *deadlock = members ? ss_vector_push(&snapshot->deadlocks) :
						 NULL;

	if (!deadlock)
		return false;
	(void)ss_graph_list_cycle(&search->graph, first, members, count);
	deadlock->threads = members;
	deadlock->count = count;
	for (size_t i = 0; i < count; i++)
		deadlock->timed |=
			snapshot->tasks[SS_TASK_THREAD].items[members[i]].wait->timed;
	for (size_t i = 0; i < search->graph.count; i++)
		deadlock->behind += search->graph.end[i] == first &&
				    !search->graph.cyclic[i];
	return true;
}

static bool add_deadlocks(struct search *search)
{
	for (size_t i = 0; i < search->graph.count; i++) {
		if (search->graph.cyclic[i] && search->graph.end[i] == i &&
		    !add_deadlock(search, i))
			return false;
	}
	return true;
}

static int compare_links(const void *a, const void *b)
{
	const struct link *x = a;
	const struct link *y = b;

	return SS_COMPARE(x->end, y->end) ?: SS_COMPARE(x->lock, y->lock);
}

static int compare_blockers(const void *a, const void *b)
{
	const struct ss_blocker *x = a;
	const struct ss_blocker *y = b;

	return SS_COMPARE(y->waiting, x->waiting) ?: SS_COMPARE(x->thread, y->thread);
}

/* Adds the thread at the end of these chains, which are sorted by lock. A thread that
   is only joined is not a blocker: main threads usually join others. */
static bool add_blocker(struct ss_snapshot *snapshot, const struct link *links,
			size_t count)
{
	struct ss_blocker blocker = { .thread = links[0].end, .waiting = count };

	for (size_t i = 0; i < count; i++)
		blocker.locks += links[i].lock &&
				 (i == 0 || links[i - 1].lock != links[i].lock);
	if (blocker.locks == 0)
		return true;
	struct ss_blocker *slot = ss_vector_push(&snapshot->blockers);
	if (slot)
		*slot = blocker;
	return slot != NULL;
}

static bool add_blockers(struct search *search)
{
	struct ss_snapshot *snapshot = search->snapshot;
	_cleanup_free_ struct link *links =
		calloc(search->graph.count + 1, sizeof(*links));
	size_t count = 0;

	if (!links)
		return false;
	for (size_t i = 0; i < search->graph.count; i++) {
		size_t end = search->graph.end[i];
		if (end == i || search->graph.cyclic[end])
			continue;
		const struct ss_wait *wait =
			snapshot->tasks[SS_TASK_THREAD].items[i].wait;
		bool joins = wait->kind == SS_WAIT_JOIN;
		links[count++] =
			(struct link){ .end = end, .lock = joins ? 0 : wait->address };
	}
	if (count > 1)
		qsort(links, count, sizeof(*links), compare_links);
	for (size_t i = 0, run; i < count; i += run) {
		for (run = 1; i + run < count && links[i + run].end == links[i].end;)
			run++;
		if (!add_blocker(snapshot, &links[i], run))
			return false;
	}
	if (snapshot->blockers.count > 1)
		qsort(snapshot->blockers.items, snapshot->blockers.count,
		      sizeof(*snapshot->blockers.items), compare_blockers);
	return true;
}

bool ss_deadlock_find(struct ss_snapshot *snapshot)
{
	size_t count = snapshot->tasks[SS_TASK_THREAD].count;
	__attribute__((cleanup(search_deinit))) struct search search = {
		.snapshot = snapshot,
		.facts = calloc(count + 1, sizeof(const struct ss_thread_facts *)),
		.next = calloc(count + 1, sizeof(size_t)),
	};

	if (!search.facts || !search.next)
		return false;
	link_threads(&search);
	return ss_graph_init(&search.graph, search.next, count) &&
	       add_deadlocks(&search) && add_blockers(&search);
}

/* The nodes are the threads of all processes, process by process. */
struct process_search {
	struct ss_snapshot *snapshot;
	struct ss_thread_ref *members; /* by node */
	size_t *next;
	struct ss_graph graph;
	size_t count;
	/* By node: it cannot go on, because what it waits for cannot happen, or because it made no
	   progress during the observation */
	bool *stuck;
	bool *left_out; /* by node: it has ended, or each program of its language has it */
	bool *all_stuck; /* by process: its threads, without those that are left out */
	/* Waits for other threads of the process itself count, too: none of them has run during the
	   observation, which struct ss_progress knows. */
	bool closed;
};

static void process_search_deinit(struct process_search *search)
{
	free(search->members);
	free(search->next);
	free(search->stuck);
	free(search->left_out);
	free(search->all_stuck);
	ss_graph_deinit(&search->graph);
}

static size_t count_threads(const struct ss_snapshot *snapshot)
{
	const struct ss_snapshot *process;
	size_t count = 0;

	for (size_t i = 0; (process = ss_snapshot_related(snapshot, i)) != NULL; i++)
		count += process->tasks[SS_TASK_THREAD].count;
	return count;
}

/* The node of the thread that another one waits for. */
static size_t node_of(const struct ss_snapshot *snapshot,
		      const struct ss_chain_link *link)
{
	const struct ss_snapshot *process;
	size_t before = 0;

	for (size_t i = 0; (process = ss_snapshot_related(snapshot, i)) != NULL; i++) {
		if (process == link->snapshot)
			return before + (size_t)(link->thread -
						 process->tasks[SS_TASK_THREAD].items);
		before += process->tasks[SS_TASK_THREAD].count;
	}
	return SS_GRAPH_NONE;
}

static const struct ss_thread_facts *facts_of(const struct ss_thread_ref *member)
{
	return ss_facts_find_thread(member->snapshot->facts, member->thread->tid);
}

/* Whether the thread waited for the same object all the time, without a time limit. */
static bool is_permanent(const struct ss_thread_ref *member)
{
	const struct ss_wait *wait = member->thread->wait;
	const struct ss_thread_facts *facts = facts_of(member);

	return wait && !wait->timed && facts && facts->unchanged;
}

static void link_processes(struct process_search *search)
{
	const struct ss_snapshot *process;
	size_t node = 0;

	for (size_t i = 0; (process = ss_snapshot_related(search->snapshot, i)) != NULL;
	     i++) {
		for (size_t t = 0; t < process->tasks[SS_TASK_THREAD].count;
		     t++, node++) {
			const struct ss_task *thread =
				&process->tasks[SS_TASK_THREAD].items[t];
			const struct ss_chain_link to = chain_follow(process, thread);
			search->members[node] = (struct ss_thread_ref){ process, thread };
			search->next[node] =
				to.thread && !to.ambiguous &&
						is_permanent(&search->members[node]) ?
					node_of(search->snapshot, &to) :
					SS_GRAPH_NONE;
		}
	}
}

static bool add_cycle(struct process_search *search, size_t first)
{
	size_t count = ss_graph_list_cycle(&search->graph, first, NULL, 0);
	_cleanup_free_ size_t *nodes = calloc(count, sizeof(*nodes));
	struct ss_thread_ref *members =
		ss_snapshot_alloc(search->snapshot, count, sizeof(*members));
	struct ss_cycle *cycle =
		nodes && members ? ss_vector_push(&search->snapshot->cycles) : NULL;

	if (!cycle)
		return false;
	(void)ss_graph_list_cycle(&search->graph, first, nodes, count);
	for (size_t i = 0; i < count; i++)
		members[i] = search->members[nodes[i]];
	*cycle = (struct ss_cycle){ .members = members, .count = count };
	return true;
}

/* Whether a cycle spans several processes. A cycle within a process is a struct
   ss_deadlock. */
static bool is_across(const struct process_search *search, size_t first)
{
	const struct ss_snapshot *snapshot = search->members[first].snapshot;

	for (size_t at = search->next[first]; at != first; at = search->next[at]) {
		if (search->members[at].snapshot != snapshot)
			return true;
	}
	return false;
}

/*
 * Threads that cannot go on: those that made no progress during the observation in a wait that is
 * not idle, and those that wait only for such threads. At first all count as such that wait
 * without a time limit; then those are removed that a thread may release which is not among them,
 * until nothing changes. What is left may be a cycle.
 */

typedef bool condition(const struct process_search *search, size_t node);

static bool is_still(const struct process_search *search, size_t node)
{
	const struct ss_thread_facts *facts = facts_of(&search->members[node]);

	return facts && facts->still;
}

/* The process with that id, its number, and the node of its first thread. NULL: it was not
   captured. */
static const struct ss_snapshot *find_nodes(const struct process_search *search,
					    pid_t pid, size_t *number, size_t *first)
{
	const struct ss_snapshot *process;

	*first = 0;
	for (*number = 0;
	     (process = ss_snapshot_related(search->snapshot, *number)) != NULL;
	     ++*number) {
		if (process->process.pid == pid)
			return process;
		*first += process->tasks[SS_TASK_THREAD].count;
	}
	return NULL;
}

/* Whether each thread of a process made no progress. */
static bool process_is_still(const struct process_search *search, pid_t pid)
{
	size_t number;
	size_t first;
	const struct ss_snapshot *process = find_nodes(search, pid, &number, &first);
	const size_t count = process ? process->tasks[SS_TASK_THREAD].count : 0;

	for (size_t i = 0; i < count; i++) {
		if (!is_still(search, first + i))
			return false;
	}
	return count > 0 && process->process.threads_unseen == 0;
}

static bool process_is_stuck(const struct process_search *search, pid_t pid)
{
	size_t number;
	size_t first;

	return find_nodes(search, pid, &number, &first) && search->all_stuck[number];
}

/* Sets all_stuck. */
static void find_stuck_processes(struct process_search *search)
{
	const struct ss_snapshot *process;
	size_t node = 0;

	for (size_t i = 0; (process = ss_snapshot_related(search->snapshot, i)) != NULL;
	     i++) {
		size_t stuck = 0;
		bool all = process->process.threads_unseen == 0;
		for (size_t t = 0; t < process->tasks[SS_TASK_THREAD].count;
		     t++, node++) {
			all = all && (search->stuck[node] || search->left_out[node]);
			stuck += search->stuck[node];
		}
		search->all_stuck[i] = all && stuck > 0;
	}
}

/* Whether it holds for the owner of a lock: a thread, or each thread of a process. */
static bool owner_is(const struct process_search *search, size_t node, condition *is)
{
	const struct ss_thread_ref *member = &search->members[node];
	const struct ss_wait *wait = member->thread->wait;
	pid_t pid = wait->owner_pid ? wait->owner_pid : member->snapshot->process.pid;
	size_t number;
	size_t first;

	if (!wait->owner_tid)
		return is == is_still ? process_is_still(search, pid) :
					process_is_stuck(search, pid);
	const struct ss_snapshot *process = find_nodes(search, pid, &number, &first);
	const struct ss_task *owner =
		process ? ss_snapshot_find_thread(process, wait->owner_tid) : NULL;
	return owner &&
	       is(search, first + (size_t)(owner - process->tasks[SS_TASK_THREAD].items));
}

static bool is_marked_stuck(const struct process_search *search, size_t node)
{
	return search->stuck[node];
}

/* Whether a thread of another process made no progress in a wait that is not idle, as is_stuck() of
   progress.c says it of the process itself. */
static bool made_no_progress(const struct process_search *search, size_t node)
{
	const struct ss_task *thread = search->members[node].thread;
	const struct ss_wait *wait = thread->wait;

	if (!wait || wait->timed || ss_wait_is_idle(wait) ||
	    wait->kind == SS_WAIT_PTRACE || !is_still(search, node))
		return false;
	if ((wait->owner_tid || wait->owner_pid) && !wait->mount)
		return owner_is(search, node, is_still);
	return wait->kind == SS_WAIT_STOPPED || wait->opens_fifo || wait->mount ||
	       wait->owner_unknown == SS_OWNER_DIED ||
	       wait->owner_unknown == SS_OWNER_IN_PARENT;
}

/* Whether only processes that are known can end the wait, and each of their threads is stuck. */
static bool others_are_stuck(const struct process_search *search,
			     const struct ss_thread_ref *member,
			     const struct ss_related_process *others, size_t count)
{
	bool handles = ss_process_expects_signal(&member->snapshot->process);

	for (size_t i = 0; i < count; i++) {
		/* Its own signal handler may end it. */
		if ((others[i].same && (handles || count == 1)) ||
		    !process_is_stuck(search, others[i].pid))
			return false;
	}
	return count > 0;
}

static bool handles_children(const struct ss_process *process)
{
	return process->handled_signals >> (SIGCHLD - 1) & 1;
}

/* Whether a handler may run because a child ends. */
static bool child_may_end(const struct process_search *search,
			  const struct ss_snapshot *process)
{
	const struct ss_facts *facts = process->facts;

	if (!handles_children(&process->process))
		return false;
	for (size_t i = 0; facts && i < facts->children.count; i++) {
		if (!process_is_stuck(search, facts->children.items[i].pid))
			return true;
	}
	return !facts || !facts->children_known;
}

/* Whether only threads of the process can end the wait, and each of them is stuck. */
static bool process_is_closed(const struct process_search *search,
			      const struct ss_snapshot *process)
{
	/* Of the process itself is_closed() of progress.c knows what signals can do. */
	const bool own = process == search->snapshot;

	return (own ? search->closed : !ss_process_expects_signal(&process->process)) &&
	       !child_may_end(search, process) &&
	       process_is_stuck(search, process->process.pid);
}

static bool waits_for_stuck(const struct process_search *search, size_t node)
{
	const struct ss_thread_ref *member = &search->members[node];
	const struct ss_wait *wait = member->thread->wait;

	if (wait->owner_tid || wait->owner_pid)
		return owner_is(search, node, is_marked_stuck);
	if (wait->within_process)
		return process_is_closed(search, member->snapshot);
	switch (wait->kind) {
	case SS_WAIT_SIGNAL:
		if (ss_process_expects_signal(&member->snapshot->process))
			return false;
		__attribute__((fallthrough));
	case SS_WAIT_CHILD: /* any of them */
		return wait->child_scope == SS_CHILD_ANY && wait->children_known &&
		       wait->child_count == wait->children_total &&
		       others_are_stuck(search, member, wait->children,
					wait->child_count);
	case SS_WAIT_READ:
	case SS_WAIT_WRITE:
	case SS_WAIT_RECEIVE:
	case SS_WAIT_SEND:
		return wait->descriptor && !wait->descriptor->peers_incomplete &&
		       others_are_stuck(search, member, wait->descriptor->peers,
					wait->descriptor->peer_count);
	default:
		return false;
	}
}

/* Whether it waited for the same object all the time, without a time limit. Of the process itself
   struct ss_progress knows more. */
static bool waits_on(const struct ss_thread_ref *member)
{
	const struct ss_wait *wait = member->thread->wait;
	const struct ss_thread_facts *facts = facts_of(member);

	return wait && !wait->timed && facts &&
	       (facts->unchanged || facts->still || member->snapshot->facts->observed);
}

/* Sets stuck. */
static void find_stuck(struct process_search *search, bool closed)
{
	bool changed = true;
	bool backwards = false;

	search->closed = closed;
	for (size_t i = 0; i < search->count; i++)
		search->stuck[i] = waits_on(&search->members[i]);
	/* In both directions: threads often wait for their neighbours, in long chains. */
	for (; changed; backwards = !backwards) {
		changed = false;
		find_stuck_processes(search);
		for (size_t k = 0; k < search->count; k++) {
			const size_t i = backwards ? search->count - 1 - k : k;
			if (!search->stuck[i] || made_no_progress(search, i) ||
			    waits_for_stuck(search, i))
				continue;
			search->stuck[i] = false;
			changed = true;
		}
	}
}

static void find_left_out(struct process_search *search)
{
	const struct ss_snapshot *process = NULL;
	struct ss_languages languages = {};

	for (size_t i = 0; i < search->count; i++) {
		const struct ss_thread_ref *member = &search->members[i];
		if (member->snapshot != process)
			languages = ss_snapshot_languages(member->snapshot);
		process = member->snapshot;
		/* NOLINTBEGIN(clang-analyzer-core.NullDereference): link_processes() set them */
		search->left_out[i] =
			member->thread->state == 'Z' || member->thread->state == 'X' ||
			/* Threads of Go run its goroutines. */
			(!languages.go &&
			 ss_task_is_of_runtime(process, member->thread, &languages));
		/* NOLINTEND(clang-analyzer-core.NullDereference) */
	}
}

static bool add_cycles(struct process_search *search)
{
	if (!ss_graph_init(&search->graph, search->next, search->count))
		return false;
	for (size_t i = 0; i < search->count; i++) {
		if (search->graph.cyclic[i] && search->graph.end[i] == i &&
		    is_across(search, i) && !add_cycle(search, i))
			return false;
	}
	return true;
}

bool ss_process_cycle_find(struct ss_snapshot *snapshot)
{
	const size_t count = count_threads(snapshot);
	__attribute__((cleanup(process_search_deinit))) struct process_search search = {
		.snapshot = snapshot,
		.members = calloc(count + 1, sizeof(struct ss_thread_ref)),
		.next = calloc(count + 1, sizeof(size_t)),
		.stuck = calloc(count + 1, sizeof(bool)),
		.left_out = calloc(count + 1, sizeof(bool)),
		.all_stuck = calloc(snapshot->others.count + 1, sizeof(bool)),
		.count = count,
	};

	if (!search.members || !search.next || !search.stuck || !search.left_out ||
	    !search.all_stuck)
		return false;
	link_processes(&search);
	find_left_out(&search);
	if (snapshot->others.count)
		find_stuck(&search, false);
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++)
		snapshot->waits[i].stuck_elsewhere = search.stuck[i];
	find_stuck(&search, true);
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++)
		snapshot->waits[i].closed = search.stuck[i];
	return snapshot->others.count == 0 || add_cycles(&search);
}

/* Who waits for whom, where a task waits for all of these. */
struct edges {
	size_t count;	 /* of tasks */
	size_t *first;	 /* by task: index in waiters; one more at the end */
	size_t *waiters; /* of the task */
	size_t *left;	 /* by task: tasks that it waits for and that may never end */
};

static void deinit(struct edges *edges)
{
	free(edges->first);
	free(edges->waiters);
	free(edges->left);
}

static size_t count_awaited(const struct ss_task *task)
{
	return task->awaits_all ? task->awaited_count : 0;
}

static bool init(struct edges *edges, const struct ss_snapshot *snapshot)
{
	const struct ss_task *tasks = snapshot->tasks[SS_TASK_ASYNCIO].items;
	const size_t count = snapshot->tasks[SS_TASK_ASYNCIO].count;
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += count_awaited(&tasks[i]);
	*edges = (struct edges){ .count = count,
				 .first = calloc(count + 2, sizeof(size_t)),
				 .waiters = calloc(total + 1, sizeof(size_t)),
				 .left = calloc(count + 1, sizeof(size_t)) };
	if (!edges->first || !edges->waiters || !edges->left)
		return false;
	for (size_t i = 0; i < count; i++) {
		edges->left[i] = count_awaited(&tasks[i]);
		for (size_t k = 0; k < edges->left[i]; k++)
			edges->first[tasks[i].awaited[k] + 2]++;
	}
	for (size_t i = 2; i < count + 2; i++)
		edges->first[i] += edges->first[i - 1];
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < edges->left[i]; k++)
			edges->waiters[edges->first[tasks[i].awaited[k] + 1]++] = i;
	}
	return true;
}

/* Removes tasks that wait for no task, then those that wait for these only, and so on. What is
   left waits for a cycle, or is in one. */
static bool remove_ends(struct edges *edges)
{
	_cleanup_free_ size_t *queue = calloc(edges->count + 1, sizeof(size_t));
	size_t count = 0;

	if (!queue)
		return false;
	for (size_t i = 0; i < edges->count; i++) {
		if (edges->left[i] == 0)
			queue[count++] = i;
	}
	for (size_t at = 0; at < count; at++) {
		for (size_t i = edges->first[queue[at]]; i < edges->first[queue[at] + 1];
		     i++) {
			if (--edges->left[edges->waiters[i]] == 0)
				queue[count++] = edges->waiters[i];
		}
	}
	return true;
}

/* One task that is left, of those for which a task waits. */
static size_t find_next(const struct edges *edges, const struct ss_task *task)
{
	for (size_t i = 0; i < task->awaited_count; i++) {
		if (edges->left[task->awaited[i]] > 0)
			return task->awaited[i];
	}
	return SS_GRAPH_NONE;
}

static bool mark(struct ss_snapshot *snapshot, const struct edges *edges)
{
	for (size_t i = 0; i < edges->count; i++) {
		struct ss_task *task = &snapshot->tasks[SS_TASK_ASYNCIO].items[i];
		task->in_cycle = edges->left[i] > 0;
		task->cycle_next = task->in_cycle ? find_next(edges, task) : 0;
	}
	return ss_snapshot_check_task_cycles(snapshot);
}

/* Whether a thread waits in the selector of an event loop without a time limit, for the descriptor by
   which other threads wake it. */
static bool waits_for_calls(const struct ss_task *thread)
{
	const struct ss_wait *wait = thread->wait;

	return wait && !wait->timed && wait->kind == SS_WAIT_EPOLL && wait->descriptor &&
	       wait->descriptor->watch_count == 1 &&
	       !wait->descriptor->watches_incomplete;
}

/* Whether nothing wakes an event loop that has no timers, signals and descriptors: each other thread of
   the process waits for threads of the process. */
static bool is_left_alone(const struct ss_snapshot *snapshot, pid_t loop_tid)
{
	const struct ss_task *loop = ss_snapshot_find_thread(snapshot, loop_tid);

	if (!loop || !waits_for_calls(loop) || snapshot->process.threads_unseen ||
	    handles_children(&snapshot->process) ||
	    ss_process_expects_signal(&snapshot->process))
		return false;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		const struct ss_wait *wait = thread->wait;
		if (thread != loop && thread->state != 'Z' &&
		    !(wait && !wait->timed && wait->within_process))
			return false;
	}
	return true;
}

/* Marks tasks for which no task waits: they may wait on purpose until the program is ended. */
static void mark_roots(const struct ss_snapshot *snapshot, bool *ret)
{
	const struct ss_task *tasks = snapshot->tasks[SS_TASK_ASYNCIO].items;
	const size_t count = snapshot->tasks[SS_TASK_ASYNCIO].count;

	for (size_t i = 0; i < count; i++)
		ret[i] = true;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < tasks[i].awaited_count; k++)
			ret[tasks[i].awaited[k]] = false;
	}
}

/* Marks the tasks of event loops that nothing can wake. False without memory. */
static bool find_endless(struct ss_snapshot *snapshot)
{
	const size_t count = snapshot->tasks[SS_TASK_ASYNCIO].count;
	_cleanup_free_ bool *roots = calloc(count + 1, sizeof(*roots));
	bool alone = false;
	pid_t loop = 0;

	if (!roots)
		return false;
	mark_roots(snapshot, roots);
	for (size_t i = 0; i < count; i++) {
		struct ss_task *task = &snapshot->tasks[SS_TASK_ASYNCIO].items[i];
		const bool usual = !task->object || strcmp(task->object, "Event") == 0;
		if (!task->loop_empty || task->status != SS_STATUS_WAITING ||
		    task->awaited_count || (usual && roots[i]))
			continue;
		if (task->tid != loop)
			alone = is_left_alone(snapshot, task->tid);
		loop = task->tid;
		if (alone)
			task->endless = SS_ENDLESS_LOOP;
	}
	return true;
}

bool ss_task_cycles_find(struct ss_snapshot *snapshot)
{
	struct edges edges;

	if (snapshot->tasks[SS_TASK_ASYNCIO].count == 0)
		return true;
	bool ok = init(&edges, snapshot) && remove_ends(&edges) && mark(snapshot, &edges);
	deinit(&edges);
	return ok && find_endless(snapshot);
}
