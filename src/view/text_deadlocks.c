/*
 * Deadlocks, first and plainly, and the threads for which others wait.
 */
#include <string.h>

#include "view/escape.h"
#include "view/label.h"
#include "view/quantity.h"
#include "view/style.h"
#include "view/text.h"

enum {
	DEADLOCKS_MAX = 8, /* unless all are wanted */
	MEMBERS_MAX = 16,
	BLOCKERS_MAX = 3,
	USER_FRAMES = 2, /* that are shown of where a thread wants a lock */
};

static void write_thread(const struct ss_thread *thread,
			 const struct ss_render_options *options, FILE *out)
{
	ss_style_write(SS_STYLE_STRONG, options->color, out);
	(void)fprintf(out, "%d (", thread->tid);
	ss_escape_write(thread->name, NULL, out);
	(void)fputc_unlocked(')', out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
}

/* The first frame of the program itself: outside of the module that waits, if there is
   such a frame, and of what belongs to libraries. */
static size_t first_user_frame(const struct ss_snapshot *snapshot,
			       const struct ss_thread *thread)
{
	const struct ss_module *inner = NULL;
	size_t first = 0;

	for (size_t i = 0; i < thread->frame_count && thread->wait; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		inner = i == 0 ? frame->module : inner;
		if (frame->module == inner)
			continue;
		first = i;
		break;
	}
	for (size_t i = first; i < thread->frame_count && thread->wait; i++) {
		const char *symbol = ss_snapshot_frame(snapshot, thread, i)->symbol;
		if (!symbol || !ss_label_is_of_library(symbol))
			return i;
	}
	return first;
}

/* file: NULL: not known. */
static void write_function(const char *words, const struct ss_frame *frame,
			   const char *file, uint32_t line,
			   const struct ss_render_options *options, FILE *out)
{
	(void)fputs_unlocked(words, out);
	ss_label_write(frame, options->raw, NULL, out);
	if (line && !options->raw)
		ss_text_write_source(file, line, options->verbose, out);
	(void)fputc_unlocked('\n', out);
}

void ss_text_write_where(const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread,
			 const struct ss_render_options *options, FILE *out)
{
	size_t first = first_user_frame(snapshot, thread);

	for (size_t i = first; i < thread->frame_count && i < first + USER_FRAMES; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		write_function(i == first ? "    in " : "    called from ", frame,
			       frame->file, frame->line, options, out);
	}
}

/* What it holds is what the one before it waits for, up to the words that say so; and which
   of its frames still refer to that, from the inside out. */
static void write_held(const struct ss_snapshot *snapshot, const struct ss_thread *thread,
		       const struct ss_wait *wait,
		       const struct ss_render_options *options, FILE *out)
{
	/* Of a rwlock the first of them says what the other one wants to do with it. */
	static const char *const ends[] = { ", which it wants to ", ", held by " };
	const char *end = NULL;

	for (size_t i = 0; !end && i < SS_ARRAY_SIZE(ends); i++)
		end = strstr(wait->text, ends[i]);
	if (!end)
		return;
	_cleanup_free_ char *text = strndup(wait->text, (size_t)(end - wait->text));
	(void)fputs_unlocked("    holds ", out);
	ss_escape_write(text ? text : "", NULL, out);
	(void)fputc_unlocked('\n', out);
	for (size_t i = 0; i < wait->owner_frame_count; i++) {
		const struct ss_owner_frame *owner = &wait->owner_frames[i];
		const struct ss_frame *frame =
			ss_snapshot_frame(snapshot, thread, owner->frame);
		write_function(i == 0 ? "    referred to by " : "    and by ", frame,
			       owner->file ? owner->file : frame->file,
			       owner->file ? owner->line : frame->line, options, out);
	}
}

static void write_member(const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread, const struct ss_thread *before,
			 const struct ss_render_options *options, FILE *out)
{
	(void)fputs_unlocked("  ", out);
	write_thread(thread, options, out);
	(void)fputs_unlocked(" waits for ", out);
	ss_text_write_wait(thread->wait, options->color, out);
	(void)fputc_unlocked('\n', out);
	ss_text_write_where(snapshot, thread, options, out);
	write_held(snapshot, thread, before->wait, options, out);
}

static const struct ss_thread *member(const struct ss_snapshot *snapshot,
				      const struct ss_deadlock *deadlock, size_t index)
{
	return ss_snapshot_thread(snapshot, deadlock->threads[index % deadlock->count]);
}

static void write_deadlock(const struct ss_snapshot *snapshot,
			   const struct ss_deadlock *deadlock,
			   const struct ss_render_options *options, FILE *out)
{
	size_t shown = options->verbose ? deadlock->count :
					  SS_MIN(deadlock->count, (size_t)MEMBERS_MAX);

	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_WARN, options->color, out);
	if (deadlock->count == 1)
		(void)fputs_unlocked("DEADLOCK: a thread waits for itself", out);
	else
		(void)fprintf(out,
			      "DEADLOCK of %zu threads, each of which waits for "
			      "the next",
			      deadlock->count);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	if (deadlock->timed)
		(void)fputs_unlocked(" (until a time limit ends it)", out);
	if (deadlock->behind)
		(void)fprintf(out, "; %zu more wait%s behind", deadlock->behind,
			      deadlock->behind == 1 ? "s" : "");
	(void)fputs_unlocked(":\n", out);
	for (size_t i = 0; i < shown; i++)
		write_member(snapshot, member(snapshot, deadlock, i),
			     member(snapshot, deadlock, i + deadlock->count - 1), options,
			     out);
	if (shown < deadlock->count)
		(void)fprintf(out, "  ... and %zu more threads (-v lists them)\n",
			      deadlock->count - shown);
}

static void write_circle(const struct ss_circle *circle,
			 const struct ss_render_options *options, FILE *out)
{
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_WARN, options->color, out);
	(void)fprintf(out,
		      "DEADLOCK of %zu threads of several processes, each of which "
		      "waits for the next",
		      circle->count);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fputs_unlocked(":\n", out);
	for (size_t i = 0; i < SS_MIN(circle->count, (size_t)MEMBERS_MAX); i++)
		write_member(
			circle->members[i].snapshot, circle->members[i].thread,
			circle->members[(i + circle->count - 1) % circle->count].thread,
			options, out);
}

static void write_blocker(const struct ss_snapshot *snapshot,
			  const struct ss_blocker *blocker,
			  const struct ss_render_options *options, FILE *out)
{
	const struct ss_thread *thread = ss_snapshot_thread(snapshot, blocker->thread);

	(void)fprintf(out, "%zu thread%s, through %zu lock%s, for thread ",
		      blocker->waiting, blocker->waiting == 1 ? " waits" : "s wait",
		      blocker->locks, blocker->locks == 1 ? "" : "s");
	write_thread(thread, options, out);
	if (thread->wait) {
		(void)fputs_unlocked(", which waits for ", out);
		ss_escape_write(thread->wait->text, NULL, out);
	} else {
		(void)fputs_unlocked(thread->state == 'R' ? ", which runs" : "", out);
	}
	if (thread->wait && thread->wait->beyond) {
		(void)fputs_unlocked("; ", out);
		ss_escape_write(thread->wait->beyond, NULL, out);
	}
	(void)fputc_unlocked('\n', out);
}

static void write_more(size_t count, const char *what, FILE *out)
{
	if (count)
		(void)fprintf(out, "... and %zu more %s%s (-v lists them)\n", count, what,
			      count == 1 ? "" : "s");
}

void ss_text_write_deadlocks(const struct ss_snapshot *snapshot,
			     const struct ss_render_options *options, FILE *out)
{
	size_t deadlocks = ss_snapshot_deadlock_count(snapshot);
	size_t blockers = ss_snapshot_blocker_count(snapshot);
	size_t most = options->verbose ? SIZE_MAX : DEADLOCKS_MAX;

	for (size_t i = 0; i < ss_snapshot_circle_count(snapshot); i++)
		write_circle(ss_snapshot_circle(snapshot, i), options, out);
	for (size_t i = 0; i < SS_MIN(deadlocks, most); i++)
		write_deadlock(snapshot, ss_snapshot_deadlock(snapshot, i), options, out);
	if (deadlocks > most)
		write_more(deadlocks - most, "deadlock", out);
	most = options->verbose ? SIZE_MAX : BLOCKERS_MAX;
	if (blockers)
		(void)fputc_unlocked('\n', out);
	for (size_t i = 0; i < SS_MIN(blockers, most); i++)
		write_blocker(snapshot, ss_snapshot_blocker(snapshot, i), options, out);
	if (blockers > most)
		write_more(blockers - most, "such thread", out);
}
