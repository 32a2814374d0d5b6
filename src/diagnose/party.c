#include "diagnose/party.h"

#include "base/words.h"
#include "model/call.h"

enum { HOPS_MAX = 4 };

static const struct ss_snapshot *find_party(const struct ss_snapshot *snapshot, pid_t pid)
{
	const struct ss_snapshot *party;

	for (size_t i = 0; (party = ss_snapshot_party(snapshot, i)) != NULL; i++) {
		if (party->process.pid == pid)
			return party;
	}
	return NULL;
}

/* What the thread reads from or writes to, if another process has the only other end
   that is known. In the process itself a signal handler may do it. NULL: neither. */
static const struct ss_fd_fact *other_end(const struct ss_snapshot *snapshot,
					  const struct ss_wait *wait)
{
	const struct ss_fd_fact *fd;

	if (wait->kind != SS_WAIT_READ && wait->kind != SS_WAIT_WRITE &&
	    wait->kind != SS_WAIT_RECEIVE)
		return NULL;
	fd = ss_facts_find_fd(snapshot->facts, wait->fd);
	return fd && wait->object && fd->holder_count == 1 &&
			       fd->holders[0].pid != snapshot->process.pid ?
		       fd :
		       NULL;
}

struct ss_destination ss_party_follow(const struct ss_snapshot *snapshot,
				      const struct ss_thread *thread)
{
	struct ss_destination to = {};
	const struct ss_wait *wait = thread->wait;

	if (!wait)
		return to;
	pid_t pid = wait->owner_pid ? wait->owner_pid :
		    wait->owner_tid ? snapshot->process.pid :
				      0;
	const struct ss_fd_fact *end = pid ? NULL : other_end(snapshot, wait);
	if (end) {
		pid = end->holders[0].pid;
		to.unsure = end->holders_cut;
	}
	const struct ss_facts *facts = snapshot->facts;
	if (!pid && wait->kind == SS_WAIT_CHILD && facts && facts->children.count == 1) {
		pid = facts->children.items[0].pid;
		to.unsure = true;
	}
	to.snapshot = pid ? find_party(snapshot, pid) : NULL;
	if (to.snapshot && wait->owner_tid)
		to.thread = ss_snapshot_find_thread(to.snapshot, wait->owner_tid);
	else if (to.snapshot && to.snapshot->threads.count == 1 &&
		 to.snapshot->process.threads_unseen == 0)
		to.thread = &to.snapshot->threads.items[0];
	return to;
}

static void describe_hop(const struct ss_destination *at, struct ss_words *words)
{
	const struct ss_thread *thread = at->thread;

	ss_words_add(words, "%s%d (%s) ", words->size ? "; " : "", thread->tid,
		     thread->name);
	if (thread->wait)
		ss_words_add(words, "waits for %s", thread->wait->text);
	else
		ss_words_add(words, thread->state == 'R' ? "runs" : "is in state %c",
			     thread->state);
}

/* The chain of waits, as far as it goes through other processes. */
static bool describe_chain(struct ss_snapshot *snapshot, const struct ss_thread *thread,
			   struct ss_wait *wait)
{
	_cleanup_words_ struct ss_words words = {};
	struct ss_destination at = ss_party_follow(snapshot, thread);

	for (int i = 0; i < HOPS_MAX && at.thread && at.snapshot != snapshot; i++) {
		describe_hop(&at, &words);
		at = ss_party_follow(at.snapshot, at.thread);
	}
	if (words.size)
		wait->beyond = ss_intern_string(snapshot->strings, words.bytes);
	return !words.failed && (words.size == 0 || wait->beyond);
}

bool ss_party_describe(struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->threads.count && snapshot->others.count; i++) {
		const struct ss_thread *thread = &snapshot->threads.items[i];
		if (thread->wait &&
		    !describe_chain(snapshot, thread, &snapshot->waits[i]))
			return false;
	}
	return true;
}
