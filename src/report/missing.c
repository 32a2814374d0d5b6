#include "base/text_stream.h"
#include "report/names.h"

#include <stdlib.h>

#include "data/snapshot.h"
#include "report/group.h"

enum { TIDS_MAX = 8, END_COUNT = SS_END_GUESSED };

/* Why a stack counts as incomplete: its end, or that it has a guess. */
static bool is_missing(const struct ss_snapshot *snapshot, const struct ss_task *thread,
		       enum ss_end end, bool strict)
{
	/* All that have guesses are one reason. */
	if (thread->end != end && !(thread->end == SS_END_GUESSED && end == SS_END_ROOT))
		return false;
	if (!ss_end_is_outermost(end))
		return true;
	return ss_end_has_guess(snapshot, thread) &&
	       (strict ||
		ss_group_class_of(thread->state, thread->wait) != SS_GROUP_IDLE);
}

size_t ss_missing_count(const struct ss_snapshot *snapshot, bool strict)
{
	size_t count = ss_snapshot_process(snapshot)->threads_unseen;

	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		count += is_missing(snapshot, thread, thread->end, strict);
	}
	return count;
}

/* What is known about the threads of a reason. */
struct reason {
	enum ss_end end;
	const char *text; /* of the first one that has one; or NULL */
	bool stopped;	  /* any was */
};

static void write_reason(const struct ss_snapshot *snapshot, const struct reason *reason,
			 size_t max_stack, FILE *out)
{
	if (ss_end_is_outermost(reason->end)) {
		(void)fputs(SS_END_GUESS_TEXT, out);
		return;
	}
	(void)fprintf(out, "%s [%s]", ss_end_text(reason->end), ss_end_name(reason->end));
	if (reason->text)
		(void)fprintf(out, ": %s", reason->text);
	else
		ss_end_write_remedy(reason->end, ss_snapshot_process(snapshot)->mode,
				    reason->stopped, max_stack, out);
}

static void write_end(const struct ss_snapshot *snapshot, enum ss_end end,
		      size_t max_stack, bool strict, const char *prefix, FILE *out)
{
	struct reason reason = { .end = end };
	size_t count = 0;

	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		if (!is_missing(snapshot, thread, end, strict))
			continue;
		if (count == 0)
			(void)fprintf(out, "%sthread %d", prefix, thread->tid);
		else if (count < TIDS_MAX)
			(void)fprintf(out, ", %d", thread->tid);
		count++;
		reason.text = reason.text ? reason.text : thread->reason;
		reason.stopped |= thread->stopped_ns > 0;
	}
	if (count > TIDS_MAX)
		(void)fprintf(out, " and %zu more", count - TIDS_MAX);
	if (count == 0)
		return;
	(void)fputs(": ", out);
	write_reason(snapshot, &reason, max_stack, out);
	(void)fputc('\n', out);
}

void ss_missing_write(const struct ss_snapshot *snapshot, size_t max_stack, bool strict,
		      const char *prefix, FILE *out)
{
	unsigned unseen = ss_snapshot_process(snapshot)->threads_unseen;

	for (int end = SS_END_ROOT + 1; end < END_COUNT; end++)
		write_end(snapshot, (enum ss_end)end, max_stack, strict, prefix, out);
	write_end(snapshot, SS_END_ROOT, max_stack, strict, prefix, out);
	if (unseen)
		(void)fprintf(out, "%s%u more thread%s exist%s, but could not be read\n",
			      prefix, unseen, unseen == 1 ? "" : "s",
			      unseen == 1 ? "s" : "");
}

char *ss_missing_new(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	const struct reason reason = {
		.end = thread->end,
		.text = thread->reason,
		.stopped = thread->stopped_ns > 0,
	};
	struct ss_text_stream text;

	if (!is_missing(snapshot, thread, thread->end, true) ||
	    !ss_text_stream_open(&text))
		return NULL;
	write_reason(snapshot, &reason, 0, text.out);
	return ss_text_stream_close(&text);
}
