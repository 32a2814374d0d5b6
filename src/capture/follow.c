/*
 * What one look does not prove: other processes to which waits lead are looked at as they
 * are, and never stopped; only those of the same user, and few. Circles are looked at
 * until nothing moves in between.
 */
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "capture/stop.h"
#include "model/activity.h"
#include "objects/leads.h"

/* Of one process: what is wanted are the waits, not whole stacks; of the one that was
   captured already only what may have changed. */
enum {
	THREADS_MAX = 256,
	STACK_MAX = 64 << 10,
	OWN_THREADS_MAX = 16 << 10,
	OWN_STACK_MAX = 512,
	TOTAL_MAX = 8 << 20,
};

/*
 * Looks at a circle, and the time before the second one; it doubles with each. Threads of
 * this process that cannot have stood together, because there was more to run than CPUs,
 * get longer to go back to their waits.
 */
enum {
	LOOKS = 4,
	TORN_LOOKS = 9,
	NAP_NS = 2 * 1000 * 1000,
	SETTLE_NS = 1000 * 1000 * 1000, /* all of them; thousands of threads take long */
};

/* One process, looked at between two looks at what it has done so far. */
struct party {
	struct ss_target *target;
	bool opened; /* target is ours */
	struct ss_capture *capture;
	struct ss_activity *before;
	struct ss_activity *after;
};

struct follow {
	struct party parties[SS_LEADS_MAX + 1]; /* the first one is the process itself */
	struct ss_leads leads;
	uid_t uid;
};

static void party_deinit(struct party *party)
{
	ss_capture_free(party->capture);
	ss_activity_free(party->before);
	ss_activity_free(party->after);
	if (party->opened)
		ss_target_close(party->target);
}

static void follow_deinit(struct follow *follow)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(follow->parties); i++)
		party_deinit(&follow->parties[i]);
}

static bool wants_few(void *data, pid_t tid, const char *name, char state)
{
	size_t *left = data;

	(void)tid;
	(void)name;
	(void)state;
	return *left > 0 && (*left)--;
}

/* Replaces what was captured before. Never stops anything. */
static void capture_party(struct party *party)
{
	size_t left = party->opened ? THREADS_MAX : OWN_THREADS_MAX;
	const struct ss_capture_options options = {
		.size = sizeof(options),
		.mode = SS_MODE_NO_STOP,
		.max_stack = party->opened ? STACK_MAX : OWN_STACK_MAX,
		.max_total = TOTAL_MAX,
		.filter = wants_few,
		.filter_data = &left,
	};
	struct ss_capture *capture = NULL;

	if (!party->target)
		return;
	ss_error_free(ss_capture_take(party->target, &options, &capture));
	if (capture && capture->facts)
		capture->facts->of_another = true;
	ss_capture_free(party->capture);
	party->capture = capture;
}

/* One of another user tells nobody here what it waits for. */
static void open_party(struct follow *follow, size_t index)
{
	struct party *party = &follow->parties[index];
	uid_t uid = 0;
	gid_t gid = 0;

	ss_error_free(ss_target_open(follow->leads.pids[index], &party->target));
	party->opened = true;
	if (!party->target)
		return;
	_cleanup_error_ struct ss_error *unknown =
		ss_target_owner(party->target, &uid, &gid);
	if (unknown || uid != follow->uid) {
		ss_target_close(party->target);
		party->target = NULL;
	}
}

static void find_parties(struct follow *follow, const struct ss_capture *capture)
{
	ss_leads_find(&follow->leads, capture, follow->parties[0].target);
	for (size_t i = 1; i < follow->leads.count; i++) {
		struct party *party = &follow->parties[i];
		open_party(follow, i);
		capture_party(party);
		if (party->capture)
			ss_leads_find(&follow->leads, party->capture, party->target);
	}
}

/* It did not run from one look to the other, and still sleeps: what it held at any
   moment in between it held all the time. */
static bool stood_still(const struct party *party, pid_t tid)
{
	const struct ss_thread_activity *before = ss_activity_find(party->before, tid);
	const struct ss_thread_activity *after = ss_activity_find(party->after, tid);

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

/* facts: those that are marked, of a capture that may be older than the party's. */
static void mark(const struct party *party, struct ss_facts *facts)
{
	for (size_t i = 0; facts && party->capture && i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		thread->stood_still =
			stood_still(party, thread->tid) &&
			same_wait(thread, ss_facts_find_thread(party->capture->facts,
							       thread->tid));
	}
}

/* What was marked before is not of the look in which others are marked. */
static void unmark(struct ss_facts *facts)
{
	for (size_t i = 0; facts && i < facts->threads.count; i++)
		facts->threads.items[i].stood_still = false;
}

static void take_activity(struct party *party, struct ss_activity **ret)
{
	ss_activity_free(*ret);
	*ret = NULL;
	if (party->target)
		ss_error_free(ss_activity_take(party->target, ret));
}

/*
 * Where waits lead in a circle that is not proven yet, each process is captured again
 * between two looks at all of them: what a thread waits for, and who holds that, was read
 * while all of those that stood still did so together.
 */
static void look_again(struct follow *follow, struct ss_capture *capture)
{
	struct party *parties = follow->parties;

	for (size_t i = 0; i < follow->leads.count; i++)
		take_activity(&parties[i], &parties[i].before);
	for (size_t i = 0; i < follow->leads.count; i++) {
		struct ss_leads known = follow->leads;
		capture_party(&parties[i]);
		if (parties[i].capture) /* for who shares its locks */
			ss_leads_find(&known, parties[i].capture, parties[i].target);
	}
	for (size_t i = 0; i < follow->leads.count; i++)
		take_activity(&parties[i], &parties[i].after);
	unmark(capture->facts);
	/* Where only some of its threads were asked for, the others may let go. */
	if (parties[0].capture &&
	    parties[0].capture->threads.count == capture->threads.count)
		mark(&parties[0], capture->facts);
	for (size_t i = 1; i < follow->leads.count; i++) {
		if (parties[i].capture)
			mark(&parties[i], parties[i].capture->facts);
	}
}

/* Whether all threads stand still that slept. Where more wants to run than there are
   CPUs, those that were stopped may take a while until they are back in their calls. */
static bool is_settled(const struct ss_facts *facts)
{
	for (size_t i = 0; facts && i < facts->threads.count; i++) {
		if (facts->threads.items[i].state == 'S' &&
		    !facts->threads.items[i].stood_still)
			return false;
	}
	return true;
}

static void look_until_settled(struct follow *follow, struct ss_capture *capture)
{
	bool torn = ss_leads_are_torn(capture);
	uint64_t end_ns = ss_freeze_now() + (uint64_t)SETTLE_NS;

	for (int i = 0; torn || (follow->leads.closed && i < LOOKS); i++) {
		const struct timespec ts = { .tv_nsec = (long)NAP_NS << i >> 1 };
		if (i > 0) /* it may take less */
			(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
		look_again(follow, capture);
		torn = i + 1 < TORN_LOOKS && ss_leads_are_torn(capture);
		if (ss_freeze_now() >= end_ns || (!torn && is_settled(capture->facts)))
			return;
	}
}

void ss_capture_follow(struct ss_capture *capture, struct ss_target *target)
{
	__attribute__((cleanup(follow_deinit))) struct follow follow = {
		.parties[0].target = target,
		.leads = { .pids = { target->pid }, .count = 1 },
	};
	gid_t gid = 0;
	_cleanup_error_ struct ss_error *unknown =
		ss_target_owner(target, &follow.uid, &gid);

	if (unknown || target->listing || capture->others.count)
		return;
	find_parties(&follow, capture);
	look_until_settled(&follow, capture);
	for (size_t i = 1; i < follow.leads.count; i++) {
		struct ss_capture **slot = follow.parties[i].capture ?
						   ss_vector_push(&capture->others) :
						   NULL;
		if (slot)
			*slot = take_ptr(follow.parties[i].capture);
	}
}
