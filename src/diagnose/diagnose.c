#include "diagnose/diagnosis.h"

#include <string.h>

#include "base/error.h"
#include "diagnose/call.h"
#include "diagnose/circle.h"
#include "diagnose/deadlock.h"
#include "diagnose/owner_frames.h"
#include "diagnose/party.h"

const char *ss_diagnosis_keep(struct ss_diagnosis *d, const char *text)
{
	return text ? ss_intern_string(d->snapshot->strings, text) : NULL;
}

static void describe_tracer(struct ss_diagnosis *d)
{
	const struct ss_process_fact *tracer = &d->facts->tracer;

	d->wait->kind = SS_WAIT_PTRACE;
	d->wait->owner_pid = tracer->pid;
	ss_words_add(&d->text, "its tracer");
	if (tracer->pid)
		ss_words_add(&d->text, " %d (%s)", tracer->pid,
			     tracer->name ? tracer->name : "?");
	ss_words_add(&d->text, " to let it go on");
}

/* What runs waits for nothing, and of what has ended nothing more will come. */
static void describe(struct ss_diagnosis *d)
{
	switch (d->thread->state) {
	case 'R':
	case 'Z':
	case 'X':
		return;
	case 't':
		describe_tracer(d);
		return;
	case 'T':
		d->wait->kind = SS_WAIT_STOPPED;
		ss_words_add(&d->text, "SIGCONT: a signal has stopped it");
		return;
	default:
		break;
	}
	if (d->facts->worker) {
		ss_words_add(&d->text, "work: it is a worker of the kernel");
	} else if (d->facts->call.number >= 0) {
		ss_call_describe(d);
	} else if (d->thread->state == 'D') {
		d->wait->kind = SS_WAIT_PAGE_FAULT;
		ss_words_add(&d->text, "memory: it is in no system call");
	}
}

static bool diagnose_thread(struct ss_diagnosis *d)
{
	*d->wait = (struct ss_wait){ .fd = -1, .timeout_ns = -1, .left_ns = -1 };
	describe(d);
	if (d->text.size == 0)
		return !d->text.failed;
	d->wait->text = ss_diagnosis_keep(d, d->text.bytes);
	return d->wait->text != NULL;
}

static bool diagnose_threads(struct ss_snapshot *snapshot)
{
	static const struct ss_thread_facts nothing = { .call.number = -1 };
	bool ok = true;

	for (size_t i = 0; ok && i < snapshot->threads.count; i++) {
		struct ss_thread *thread = &snapshot->threads.items[i];
		const struct ss_thread_facts *facts =
			ss_facts_find_thread(snapshot->facts, thread->tid);
		struct ss_diagnosis d = { .snapshot = snapshot,
					  .thread = thread,
					  .facts = facts ? facts : &nothing,
					  .wait = &snapshot->waits[i] };
		ok = diagnose_thread(&d);
		ss_words_free(&d.text);
		if (ok && d.wait->text)
			thread->wait = d.wait;
	}
	return ok;
}

static bool diagnose_party(struct ss_snapshot *snapshot)
{
	snapshot->waits = calloc(snapshot->threads.count + 1, sizeof(*snapshot->waits));
	return snapshot->waits && diagnose_threads(snapshot);
}

struct ss_error *ss_snapshot_diagnose(struct ss_snapshot *snapshot, unsigned flags)
{
	if (flags)
		return ss_error_new(SS_ERROR_INVALID, "flags 0x%x are not known", flags);
	if (snapshot->waits)
		return ss_error_new(SS_ERROR_INVALID,
				    "the snapshot was diagnosed already");
	bool ok = diagnose_party(snapshot);
	for (size_t i = 0; ok && i < snapshot->others.count; i++)
		ok = diagnose_party(snapshot->others.items[i]);
	if (ok)
		ss_owner_frames_find(snapshot);
	if (!ok || !ss_deadlock_find(snapshot) || !ss_party_describe(snapshot) ||
	    !ss_circle_find(snapshot))
		return ss_error_no_memory();
	return NULL;
}
