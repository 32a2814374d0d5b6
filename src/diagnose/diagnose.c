#include "diagnose/diagnosis.h"

#include <string.h>

#include "base/error.h"
#include "diagnose/call.h"
#include "diagnose/deadlock.h"

const char *ss_diagnosis_keep(struct ss_diagnosis *d, const char *text)
{
	return text ? ss_intern_string(d->snapshot->strings, text) : NULL;
}

/* What runs waits for nothing, and of what has ended nothing more will come. */
static bool may_wait(const struct ss_diagnosis *d)
{
	return d->thread->state != 'R' && d->thread->state != 'Z' &&
	       d->thread->state != 'X' && d->facts->call.number >= 0;
}

static bool diagnose_thread(struct ss_diagnosis *d)
{
	*d->wait = (struct ss_wait){ .fd = -1, .timeout_ns = -1, .left_ns = -1 };
	if (!may_wait(d))
		return true;
	ss_call_describe(d);
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

struct ss_error *ss_snapshot_diagnose(struct ss_snapshot *snapshot, unsigned flags)
{
	if (flags)
		return ss_error_new(SS_ERROR_INVALID, "flags 0x%x are not known", flags);
	if (snapshot->waits)
		return ss_error_new(SS_ERROR_INVALID,
				    "the snapshot was diagnosed already");
	snapshot->waits = calloc(snapshot->threads.count + 1, sizeof(*snapshot->waits));
	if (!snapshot->waits || !diagnose_threads(snapshot) ||
	    !ss_deadlock_find(snapshot))
		return ss_error_no_memory();
	return NULL;
}
