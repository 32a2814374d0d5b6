/*
 * Locks of applications that threads wait for, and which threads probably hold them.
 */
#include "output/escape.h"
#include "output/style.h"
#include "output/text.h"
#include "output/wait_text.h"

enum { LOCKS_MAX = 3, SUSPECTS_MAX = 3 }; /* without -v */

static void write_name(const char *name, FILE *out)
{
	ss_escape_write(name, NULL, out);
}

static void write_thread(const struct ss_snapshot *snapshot, size_t index,
			 const struct ss_format_options *options, FILE *out)
{
	const struct ss_thread *thread = ss_snapshot_thread(snapshot, index);

	ss_style_write(SS_STYLE_STRONG, options->color, out);
	(void)fprintf(out, "%d (", thread->tid);
	write_name(thread->name, out);
	(void)fputc_unlocked(')', out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
}

static void write_only_suspect(const struct ss_snapshot *snapshot,
			       const struct ss_application_lock *lock,
			       const struct ss_format_options *options, FILE *out)
{
	const struct ss_thread *thread = ss_snapshot_thread(snapshot, lock->suspects[0]);

	write_thread(snapshot, lock->suspects[0], options, out);
	(void)fputs_unlocked(", the only other thread in ", out);
	write_name(lock->common_function, out);
	if (thread->wait) {
		(void)fputs_unlocked("\n    which waits for ", out);
		ss_wait_text_write(thread->wait, options->color, out);
	} else if (thread->state == 'R') {
		(void)fputs_unlocked("\n    which runs", out);
	}
}

static void write_list(const struct ss_snapshot *snapshot, const size_t *threads,
		       size_t count, size_t total,
		       const struct ss_format_options *options, FILE *out)
{
	size_t shown = options->verbose ? count : SS_MIN(count, (size_t)SUSPECTS_MAX);

	for (size_t i = 0; i < shown; i++) {
		(void)fputs_unlocked(i ? ", " : ": ", out);
		write_thread(snapshot, threads[i], options, out);
	}
	if (shown < total)
		(void)fprintf(out, " and %zu more", total - shown);
}

/* They may hold the lock of a transaction. */
static void write_clients(const struct ss_snapshot *snapshot,
			  const struct ss_application_lock *lock,
			  const struct ss_format_options *options, FILE *out)
{
	size_t total = lock->client_suspects_total;

	if (total == 0)
		return;
	(void)fprintf(out, "  or by %s%zu thread%s in ", total > 1 ? "one of " : "",
		      total, total > 1 ? "s" : "");
	write_name(lock->client_function, out);
	(void)fputs_unlocked(total > 1 ? " that wait for their clients" :
					 " that waits for its client",
			     out);
	write_list(snapshot, lock->client_suspects, lock->client_suspect_count, total,
		   options, out);
	(void)fputc_unlocked('\n', out);
}

static void write_suspects(const struct ss_snapshot *snapshot,
			   const struct ss_application_lock *lock,
			   const struct ss_format_options *options, FILE *out)
{
	if (lock->suspects_total == 0)
		return;
	(void)fputs_unlocked("  probably held by ", out);
	if (lock->suspects_total == 1) {
		write_only_suspect(snapshot, lock, options, out);
	} else {
		(void)fprintf(out, "one of %zu other threads in ", lock->suspects_total);
		write_name(lock->common_function, out);
		write_list(snapshot, lock->suspects, lock->suspect_count,
			   lock->suspects_total, options, out);
	}
	(void)fputc_unlocked('\n', out);
	write_clients(snapshot, lock, options, out);
}

static void write_lock(const struct ss_snapshot *snapshot,
		       const struct ss_application_lock *lock,
		       const struct ss_format_options *options, FILE *out)
{
	(void)fprintf(out, "%zu thread%s for an application lock: ", lock->waiting,
		      lock->waiting == 1 ? " waits" : "s wait");
	ss_style_write(SS_STYLE_WARN, options->color, out);
	write_name(lock->function, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	if (lock->words) {
		(void)fputs_unlocked(" (", out);
		write_name(lock->words, out);
		(void)fputc_unlocked(')', out);
	}
	(void)fputc_unlocked('\n', out);
	write_suspects(snapshot, lock, options, out);
}

void ss_text_write_application_locks(const struct ss_snapshot *snapshot,
				     const struct ss_format_options *options, FILE *out)
{
	size_t count = ss_snapshot_application_lock_count(snapshot);
	size_t shown = options->verbose ? count : SS_MIN(count, (size_t)LOCKS_MAX);

	if (count)
		(void)fputc_unlocked('\n', out);
	for (size_t i = 0; i < shown; i++)
		write_lock(snapshot, ss_snapshot_application_lock(snapshot, i), options,
			   out);
	if (shown < count)
		(void)fprintf(out, "... and %zu more such lock%s (-v lists them)\n",
			      count - shown, count - shown == 1 ? "" : "s");
}
