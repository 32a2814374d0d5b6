#include "diagnose/chain.h"

#include <string.h>

enum { LENGTH_MAX = 4 }; /* as many as there are related processes */

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

	if (wait->kind != SS_WAIT_READ && wait->kind != SS_WAIT_WRITE &&
	    wait->kind != SS_WAIT_RECEIVE)
		return NULL;
	return descriptor && descriptor->peer_count == 1 && !descriptor->peers[0].same ?
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
	return wait->kind == SS_WAIT_CHILD && facts && facts->children.count == 1 ?
		       facts->children.items[0].pid :
		       0;
}

struct ss_chain_link ss_chain_follow(const struct ss_snapshot *snapshot,
				     const struct ss_thread *thread)
{
	struct ss_chain_link to = {};
	const struct ss_wait *wait = thread->wait;

	if (!wait)
		return to;
	pid_t pid = find_pid(snapshot, wait, &to.ambiguous);
	to.snapshot = pid ? find_process(snapshot, pid) : NULL;
	if (to.snapshot && wait->owner_tid)
		to.thread = ss_snapshot_find_thread(to.snapshot, wait->owner_tid);
	else if (to.snapshot && to.snapshot->threads.count == 1 &&
		 to.snapshot->process.threads_unseen == 0)
		to.thread = &to.snapshot->threads.items[0];
	return to;
}

/* The part of the chain of waits that goes through other processes. */
static size_t list_chain(const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread, struct ss_thread_ref *ret)
{
	struct ss_chain_link link = ss_chain_follow(snapshot, thread);
	size_t length = 0;

	while (length < LENGTH_MAX && link.thread && link.snapshot != snapshot) {
		ret[length++] = (struct ss_thread_ref){ link.snapshot, link.thread };
		link = ss_chain_follow(link.snapshot, link.thread);
	}
	return length;
}

static bool set_chain(struct ss_snapshot *snapshot, size_t index)
{
	struct ss_thread_ref found[LENGTH_MAX];
	struct ss_wait *wait = &snapshot->waits[index];
	size_t length = list_chain(snapshot, &snapshot->threads.items[index], found);

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
	for (size_t i = 0; i < snapshot->threads.count && snapshot->others.count; i++) {
		if (snapshot->threads.items[i].wait && !set_chain(snapshot, i))
			return false;
	}
	return true;
}
