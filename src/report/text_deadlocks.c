/*
 * Deadlocks, threads that other threads wait for, locks of applications and who probably holds them,
 * and tasks that wait for each other.
 */
#include <inttypes.h>
#include <string.h>

#include "base/search.h"
#include "report/print.h"
#include "report/text.h"
#include "report/wait_text.h"
#include "data/snapshot.h"
#include "diagnose/progress.h"

enum {
	DEADLOCKS_MAX = 8, /* without -v */
	MEMBERS_MAX = 16,
	BLOCKERS_MAX = 3,
	LEADERS_MAX = 64, /* that are recognised */
	LOCKS_MAX = 3,
	SUSPECTS_MAX = 3,
	USER_FRAMES = 2, /* frames shown for each waiting thread */
};

/* Returns the index of the first frame of the program itself: not in the module that waits,
   if possible, and not in code of libraries. */
static size_t first_user_frame(const struct ss_snapshot *snapshot,
			       const struct ss_task *thread)
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
		if (!symbol || !ss_symbol_is_of_c_library(symbol))
			return i;
	}
	return first;
}

/* file is NULL if unknown. */
static void write_function(const char *words, const struct ss_frame *frame,
			   const char *file, uint32_t line,
			   const struct ss_format_options *options, FILE *out)
{
	(void)fputs_unlocked(words, out);
	ss_text_write_function(frame, line ? file : NULL, line, options, out);
	(void)fputc_unlocked('\n', out);
}

/* Writes what the program called, and functions of the program from there on, all in its
   own language. */
static void write_calls(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			size_t first, size_t program,
			const struct ss_format_options *options, FILE *out)
{
	size_t shown = 0;

	if (first < program) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, first);
		write_function("    in ", frame, frame->file, frame->line, options, out);
	}
	for (size_t i = program; i < thread->frame_count && shown < USER_FRAMES; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->kind == SS_FRAME_NATIVE || !frame->symbol)
			continue;
		write_function(i == first ? "    in " : "    called from ", frame,
			       frame->file, frame->line, options, out);
		shown++;
	}
}

static void write_frame(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			size_t index, const char *words,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, index);

	write_function(words, frame, frame->file, frame->line, options, out);
}

/* Whether it is a function of a library that was compiled into the program, such as a template or Go's
   library; or where each program begins. */
static bool is_compiled_in(const struct ss_frame *frame,
			   const struct ss_languages *languages)
{
	static const char headers[] = "/usr/include/";

	return (languages->go && (ss_frame_is_of_go_library(frame) ||
				  ss_frame_is_of_runtime(frame, languages))) ||
	       (frame->file && strncmp(frame->file, headers, strlen(headers)) == 0) ||
	       (frame->symbol && (ss_symbol_is_of_c_library(frame->symbol) ||
				  strcmp(frame->symbol, "_start") == 0));
}

/* Code outside of all files is the program's only if it was generated. */
static bool is_known(const struct ss_frame *frame)
{
	const char *place = frame->module ? frame->module->path : frame->area;

	return frame->symbol || (place && place[0]);
}

/* The first native frame of the program from there on. Without one the number of frames. */
static size_t find_native(const struct ss_snapshot *snapshot,
			  const struct ss_task *thread, size_t from)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	const struct ss_languages languages = ss_task_languages(snapshot, thread);

	for (; from < thread->frame_count; from++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, from);
		if (!frame->signal_frame && !is_compiled_in(frame, &languages) &&
		    is_known(frame) && ss_frame_code(process, frame) == SS_CODE_PROGRAM)
			break;
	}
	return from;
}

/* The same, but with a name, if there is one. */
static size_t find_named(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 size_t from)
{
	const size_t first = find_native(snapshot, thread, from);
	size_t i = first;

	while (i < thread->frame_count && !ss_snapshot_frame(snapshot, thread, i)->symbol)
		i = find_native(snapshot, thread, i + 1);
	return i < thread->frame_count ? i : first;
}

/* Whether what the program called says more than what the thread waits for. */
static bool is_telling(const struct ss_snapshot *snapshot, const struct ss_task *thread,
		       const struct ss_frame *called)
{
	const struct ss_wait *wait = thread->wait;
	const enum ss_code code = ss_frame_code(ss_snapshot_process(snapshot), called);

	/* A template of C++: a future, or a guard of a mutex. */
	if (code == SS_CODE_PROGRAM)
		return called->symbol && (ss_frame_is_of_go_library(called) ||
					  (wait && (wait->kind == SS_WAIT_JOIN ||
						    wait->kind == SS_WAIT_FUTEX)));
	return (called->symbol || called->called) && !called->signal_frame &&
	       (code == SS_CODE_LIBRARY ||
		(code == SS_CODE_C_LIBRARY && wait && wait->lock == SS_LOCK_LIBC));
}

/* Writes the library's function that the program has called, if that tells something, and the
   innermost functions of the program. */
static void write_native(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 size_t first, const struct ss_format_options *options, FILE *out)
{
	size_t shown = 0;

	if (first > 0 &&
	    is_telling(snapshot, thread, ss_snapshot_frame(snapshot, thread, first - 1)))
		write_frame(snapshot, thread, first - (++shown), "    in ", options, out);
	for (size_t i = first; i < thread->frame_count && shown < USER_FRAMES;
	     i = find_named(snapshot, thread, i + 1)) {
		write_frame(snapshot, thread, i, shown ? "    called from " : "    in ",
			    options, out);
		shown++;
		if (i + 2 >= thread->frame_count ||
		    !ss_snapshot_frame(snapshot, thread, i + 1)->signal_frame)
			continue;
		write_frame(snapshot, thread, i + 2,
			    "    in a signal handler that interrupted ", options, out);
		return;
	}
}

void ss_text_write_where(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 const struct ss_format_options *options, FILE *out)
{
	size_t program = 0;
	size_t first = ss_text_find_call(snapshot, thread, &program);

	if (first < thread->frame_count) {
		write_calls(snapshot, thread, first, program, options, out);
		return;
	}
	first = find_native(snapshot, thread, ss_task_find_lock(snapshot, thread));
	if (first < thread->frame_count) {
		write_native(snapshot, thread, first, options, out);
		return;
	}
	first = first_user_frame(snapshot, thread);
	for (size_t i = first; i < thread->frame_count && i < first + USER_FRAMES; i++)
		write_frame(snapshot, thread, i,
			    i == first ? "    in " : "    called from ", options, out);
}

/* Writes the lock that the thread owns and its predecessor in the cycle waits for, and the
   frames that refer to the lock. */
static void write_owned_lock(const struct ss_snapshot *snapshot,
			     const struct ss_task *thread, const struct ss_wait *wait,
			     const struct ss_format_options *options, FILE *out)
{
	const bool once = wait->kind == SS_WAIT_ONCE;

	if (!ss_wait_text_write_lock(wait, once ? "    executes " : "    holds ", out))
		return;
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

static void write_member(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 const struct ss_task *before,
			 const struct ss_format_options *options, FILE *out)
{
	(void)fputs_unlocked("  ", out);
	ss_text_write_thread(thread->tid, thread->name, options, out);
	(void)fputs_unlocked(" waits for ", out);
	ss_wait_text_write(thread->wait, options->color, out);
	(void)fputc_unlocked('\n', out);
	ss_text_write_where(snapshot, thread, options, out);
	write_owned_lock(snapshot, thread, before->wait, options, out);
}

static const struct ss_task *member(const struct ss_snapshot *snapshot,
				    const struct ss_deadlock *deadlock, size_t index)
{
	return ss_snapshot_task(snapshot, SS_TASK_THREAD,
				deadlock->threads[index % deadlock->count]);
}

/* Only the thread that took such a lock unlocks it. */
static bool is_of_libc(const struct ss_snapshot *snapshot,
		       const struct ss_deadlock *deadlock)
{
	const struct ss_task *thread =
		ss_snapshot_task(snapshot, SS_TASK_THREAD, deadlock->threads[0]);

	return thread->wait->lock == SS_LOCK_LIBC || thread->wait->lock == SS_LOCK_STREAM;
}

/* Whether a member waits again and again. The members of a cycle are stuck together. */
static bool is_stuck(const struct ss_progress *progress,
		     const struct ss_deadlock *deadlock)
{
	return progress && ss_progress_thread(progress, *deadlock->threads)->stuck;
}

/* What a cycle is called. If its threads have run, or a time limit ends a wait, it is no deadlock. A
   normal mutex may be unlocked by a thread that does not hold it, if there is another one (POSIX leaves
   it undefined; glibc does not check). */
static void write_heading(const struct ss_snapshot *snapshot,
			  const struct ss_deadlock *deadlock,
			  const struct ss_progress *progress,
			  const struct ss_format_options *options, FILE *out)
{
	const bool lasting = !progress || progress->verdict == SS_VERDICT_DEADLOCK;
	const bool again = deadlock->timed && is_stuck(progress, deadlock);
	bool alone = deadlock->count == 1;
	const char *word = "DEADLOCK";

	if (again)
		word = "Stuck, although a time limit ends each wait";
	else if (deadlock->timed)
		word = "Contention with a time limit";
	else if (alone &&
		 ss_snapshot_task_count(snapshot, SS_TASK_THREAD) +
				 ss_snapshot_process(snapshot)->threads_left_out >
			 1 &&
		 !is_of_libc(snapshot, deadlock))
		word = "Self-deadlock, unless another thread unlocks it";
	else if (!lasting)
		word = "Contention";
	ss_style_write(again || (lasting && !deadlock->timed) ? SS_STYLE_WARN :
								SS_STYLE_STRONG,
		       options->color, out);
	if (alone)
		(void)fprintf(out, "%s: a thread waits for a lock that it holds", word);
	else
		(void)fprintf(out, "%s: %zu threads wait for each other in a cycle", word,
			      deadlock->count);
	ss_style_write(SS_STYLE_NONE, options->color, out);
}

static void write_deadlock(const struct ss_snapshot *snapshot,
			   const struct ss_deadlock *deadlock,
			   const struct ss_progress *progress,
			   const struct ss_format_options *options, FILE *out)
{
	size_t shown = SS_MIN(deadlock->count, ss_text_most(options, MEMBERS_MAX));

	(void)fputc_unlocked('\n', out);
	write_heading(snapshot, deadlock, progress, options, out);
	if (deadlock->behind)
		(void)fprintf(out, "; %zu more wait%s for them", deadlock->behind,
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

static void write_cycle(const struct ss_cycle *cycle,
			const struct ss_format_options *options, FILE *out)
{
	(void)fputc_unlocked('\n', out);
	ss_style_print(SS_STYLE_WARN, options->color, out,
		       "DEADLOCK: %zu threads of several processes wait for each "
		       "other in a cycle",
		       cycle->count);
	(void)fputs_unlocked(":\n", out);
	for (size_t i = 0; i < SS_MIN(cycle->count, (size_t)MEMBERS_MAX); i++)
		write_member(cycle->members[i].snapshot, cycle->members[i].thread,
			     cycle->members[(i + cycle->count - 1) % cycle->count].thread,
			     options, out);
}

static void write_blocker(const struct ss_snapshot *snapshot,
			  const struct ss_blocker *blocker,
			  const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *thread =
		ss_snapshot_task(snapshot, SS_TASK_THREAD, blocker->thread);

	(void)fprintf(out, "%zu thread%s, through %zu lock%s, for thread ",
		      blocker->waiting, blocker->waiting == 1 ? " waits" : "s wait",
		      blocker->locks, blocker->locks == 1 ? "" : "s");
	ss_text_write_thread(thread->tid, thread->name, options, out);
	if (thread->wait) {
		(void)fputs_unlocked(", which waits for ", out);
		ss_wait_text_write(thread->wait, false, out);
		ss_wait_text_write_chain(thread->wait, "; ", out);
	} else {
		(void)fputs_unlocked(thread->state == 'R' ? ", which is running" : "",
				     out);
	}
	(void)fputc_unlocked('\n', out);
	ss_text_write_where(snapshot, thread, options, out);
}

/* Whether a thread waits for connections, and all that wait for it wait for their turn: servers whose
   threads accept in turn. */
static bool leads_pool(const struct ss_snapshot *snapshot,
		       const struct ss_blocker *blocker)
{
	const struct ss_task *leader =
		ss_snapshot_task(snapshot, SS_TASK_THREAD, blocker->thread);
	const struct ss_task *before = NULL;
	size_t followers = 0;

	if (!ss_wait_is_for_connections(leader->wait))
		return false;
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		if (!thread->wait || thread->wait->owner_tid != leader->tid)
			continue;
		if ((!before || before->stack_id != thread->stack_id) &&
		    !ss_thread_has_leader(snapshot, thread))
			return false;
		before = thread;
		followers++;
	}
	return followers == blocker->waiting;
}

static void write_more(size_t count, const char *what, FILE *out)
{
	if (count)
		(void)fprintf(out, "... and %zu more %s%s (-v lists them)\n", count, what,
			      count == 1 ? "" : "s");
}

static void write_blockers(const struct ss_snapshot *snapshot,
			   const struct ss_format_options *options, FILE *out)
{
	const size_t count = ss_snapshot_blocker_count(snapshot);
	const size_t most = ss_text_most(options, BLOCKERS_MAX);
	size_t shown = 0;
	size_t i = 0;

	for (; i < count && shown < most; i++) {
		const struct ss_blocker *blocker = ss_snapshot_blocker(snapshot, i);
		if (!options->verbose && i < LEADERS_MAX && leads_pool(snapshot, blocker))
			continue;
		if (shown++ == 0)
			(void)fputc_unlocked('\n', out);
		write_blocker(snapshot, blocker, options, out);
	}
	write_more(count - i, "such thread", out);
}

/* Locks of applications ------------------------------------------------------ */

static void write_only_suspect(const struct ss_snapshot *snapshot,
			       const struct ss_application_lock *lock,
			       const struct ss_format_options *options, FILE *out)
{
	const struct ss_task *thread =
		ss_snapshot_task(snapshot, SS_TASK_THREAD, lock->suspects[0]);

	ss_text_write_thread(thread->tid, thread->name, options, out);
	(void)fputs_unlocked(", the only other thread in ", out);
	ss_escape_write(lock->common_function, NULL, out);
	if (thread->wait) {
		(void)fputs_unlocked("\n    which waits for ", out);
		ss_wait_text_write(thread->wait, options->color, out);
	} else if (thread->state == 'R') {
		(void)fputs_unlocked("\n    which is running", out);
	}
}

static void write_list(const struct ss_snapshot *snapshot, const size_t *threads,
		       size_t count, size_t total,
		       const struct ss_format_options *options, FILE *out)
{
	size_t shown = SS_MIN(count, ss_text_most(options, SUSPECTS_MAX));

	for (size_t i = 0; i < shown; i++) {
		(void)fputs_unlocked(i ? ", " : ": ", out);
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, threads[i]);
		ss_text_write_thread(thread->tid, thread->name, options, out);
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
	ss_escape_write(lock->client_function, NULL, out);
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
	if (lock->owner_pid) {
		(void)fprintf(out, "  held by process %d (", lock->owner_pid);
		ss_escape_write(lock->owner_process, NULL, out);
		(void)fputs_unlocked(")\n", out);
		return;
	}
	if (lock->suspects_total) {
		(void)fputs_unlocked("  probably held by ", out);
		if (lock->suspects_total == 1) {
			write_only_suspect(snapshot, lock, options, out);
			(void)fputc_unlocked('\n', out);
			ss_text_write_where(snapshot,
					    ss_snapshot_task(snapshot, SS_TASK_THREAD,
							     lock->suspects[0]),
					    options, out);
		} else {
			(void)fprintf(out, "one of %zu other threads in ",
				      lock->suspects_total);
			ss_escape_write(lock->common_function, NULL, out);
			write_list(snapshot, lock->suspects, lock->suspect_count,
				   lock->suspects_total, options, out);
			(void)fputc_unlocked('\n', out);
		}
		write_clients(snapshot, lock, options, out);
	}
	if (lock->waiting > 1)
		(void)fprintf(out, "  %seach may hold what another one waits for\n",
			      lock->suspects_total ? "or " : "");
}

static void write_lock(const struct ss_snapshot *snapshot,
		       const struct ss_application_lock *lock,
		       const struct ss_format_options *options, FILE *out)
{
	(void)fprintf(out, "%zu thread%s for an application lock: ", lock->waiting,
		      lock->waiting == 1 ? " waits" : "s wait");
	ss_style_write(SS_STYLE_WARN, options->color, out);
	ss_escape_write(lock->function, NULL, out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	if (lock->words) {
		(void)fputs_unlocked(" (", out);
		ss_escape_write(lock->words, NULL, out);
		(void)fputc_unlocked(')', out);
	}
	(void)fputc_unlocked('\n', out);
	write_suspects(snapshot, lock, options, out);
}

static void write_application_locks(const struct ss_snapshot *snapshot,
				    const struct ss_format_options *options, FILE *out)
{
	size_t count = ss_snapshot_application_lock_count(snapshot);
	size_t shown = SS_MIN(count, ss_text_most(options, LOCKS_MAX));

	if (count)
		(void)fputc_unlocked('\n', out);
	for (size_t i = 0; i < shown; i++)
		write_lock(snapshot, ss_snapshot_application_lock(snapshot, i), options,
			   out);
	write_more(count - shown, "such lock", out);
}

/* Whether a thread of another process cannot write what the process itself would have to read. */
static bool waits_for_reader(const struct ss_snapshot *snapshot,
			     const struct ss_task *thread)
{
	const struct ss_wait *wait = thread->wait;
	const struct ss_descriptor *descriptor = wait ? wait->descriptor : NULL;

	if (!descriptor || (wait->kind != SS_WAIT_WRITE && wait->kind != SS_WAIT_SEND))
		return false;
	return ss_any(descriptor->peer_count, i,
		      descriptor->peers[i].pid == ss_snapshot_process(snapshot)->pid);
}

/* Whether a wait leads to that thread. */
static bool is_in_chain(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_wait *wait =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i)->wait;
		for (size_t k = 0; wait && k < wait->chain_length; k++) {
			if (wait->chain[k].thread == thread)
				return true;
		}
	}
	return false;
}

/* "process 4711 (head) waits for room to write to fd 1, pipe, read by 4710 (node)": an event loop does not
   tell which of its processes it waits for. */
static void write_writers(const struct ss_snapshot *snapshot,
			  const struct ss_format_options *options, FILE *out)
{
	const struct ss_snapshot *other;
	bool any = false;

	for (size_t i = 1; (other = ss_snapshot_related(snapshot, i)) != NULL; i++) {
		for (size_t k = 0; k < ss_snapshot_task_count(other, SS_TASK_THREAD);
		     k++) {
			const struct ss_task *thread =
				ss_snapshot_task(other, SS_TASK_THREAD, k);
			if (!waits_for_reader(snapshot, thread) ||
			    is_in_chain(snapshot, thread))
				continue;
			(void)fputs_unlocked(any ? "process " : "\nprocess ", out);
			ss_text_write_thread(ss_snapshot_process(other)->pid,
					     ss_snapshot_process(other)->name, options,
					     out);
			(void)fputs_unlocked(" waits for ", out);
			ss_wait_text_write(thread->wait, options->color, out);
			(void)fputc_unlocked('\n', out);
			any = true;
		}
	}
}

void ss_text_write_deadlocks(const struct ss_snapshot *snapshot,
			     const struct ss_progress *progress,
			     const struct ss_format_options *options, FILE *out)
{
	size_t deadlocks = ss_snapshot_deadlock_count(snapshot);
	size_t most = ss_text_most(options, DEADLOCKS_MAX);

	for (size_t i = 0; i < ss_snapshot_cycle_count(snapshot); i++)
		write_cycle(ss_snapshot_cycle(snapshot, i), options, out);
	for (size_t i = 0; i < SS_MIN(deadlocks, most); i++)
		write_deadlock(snapshot, ss_snapshot_deadlock(snapshot, i), progress,
			       options, out);
	if (deadlocks > most)
		write_more(deadlocks - most, "deadlock", out);
	write_blockers(snapshot, options, out);
	write_application_locks(snapshot, options, out);
	write_writers(snapshot, options, out);
}

/* Tasks that cannot continue ------------------------------------------------- */

/* Each cycle is written at its first member. */
static bool is_first(const struct ss_snapshot *snapshot, size_t index)
{
	const struct ss_task *task = ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, index);

	if (!task->in_cycle)
		return false;
	for (size_t at = task->cycle_next; at != index;
	     at = ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, at)->cycle_next) {
		if (at < index)
			return false;
	}
	return true;
}

/* " waits for second", " waits for a Lock of second" */
static void write_link(const struct ss_task *task, const struct ss_task *next, FILE *out)
{
	(void)fputs_unlocked(" waits for ", out);
	if (task->object) {
		(void)fputs_unlocked("a ", out);
		ss_escape_write(task->object, NULL, out);
		(void)fputs_unlocked(
			task == next ? " that it holds itself" : ", held by ", out);
	}
	if (task != next || !task->object)
		ss_escape_write(next->name, NULL, out);
}

static void write_task_cycle(const struct ss_snapshot *snapshot, size_t index, FILE *out)
{
	const struct ss_task *task = ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, index);
	const struct ss_task *first = task;

	ss_escape_write(task->name, NULL, out);
	do {
		const struct ss_task *next =
			ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, task->cycle_next);
		write_link(task, next, out);
		(void)fputs_unlocked(next == first ? "\n" : ", which", out);
		task = next;
	} while (task != first);
}

static void write_without_channel(const struct ss_snapshot *snapshot,
				  const struct ss_format_options *options, FILE *out)
{
	size_t count = 0;

	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_GOROUTINE); i++) {
		const struct ss_task *task =
			ss_snapshot_task(snapshot, SS_TASK_GOROUTINE, i);
		count += task->endless == SS_ENDLESS_NIL_CHANNEL;
	}
	if (count == 0)
		return;
	(void)fputc_unlocked('\n', out);
	ss_style_print(SS_STYLE_WARN, options->color, out, "%s",
		       ss_quantity_things(count, ss_task_noun(SS_TASK_GOROUTINE)).text);
	(void)fputs_unlocked(" cannot continue: the channel is nil\n", out);
}

/* "2 tasks wait for ever, as only tasks that wait could wake them: consumer, producer" */
static void write_endless(const struct ss_snapshot *snapshot, enum ss_task_kind kind,
			  enum ss_endless reason, const struct ss_format_options *options,
			  FILE *out)
{
	const size_t tasks = ss_snapshot_task_count(snapshot, kind);
	const char *noun = ss_task_noun(kind);
	size_t count = 0;
	size_t shown = 0;

	for (size_t i = 0; i < tasks; i++)
		count += ss_snapshot_task(snapshot, kind, i)->endless == reason;
	if (count == 0)
		return;
	(void)fputc_unlocked('\n', out);
	ss_style_print(SS_STYLE_WARN, options->color, out, "%s",
		       ss_quantity_things(count, noun).text);
	(void)fputs_unlocked(count == 1 ? " waits for ever, as " : " wait for ever, as ",
			     out);
	if (reason == SS_ENDLESS_LOOP)
		(void)fputs_unlocked(
			"nothing can wake the event loop, which has no timer "
			"and no descriptor, and no other thread runs: ",
			out);
	else
		(void)fprintf(out, "only %ss that wait could wake %s: ", noun,
			      count == 1 ? "it" : "them");
	for (size_t i = 0; i < tasks && shown < ss_text_most(options, MEMBERS_MAX); i++) {
		const struct ss_task *task = ss_snapshot_task(snapshot, kind, i);
		if (task->endless != reason)
			continue;
		(void)fputs_unlocked(shown++ ? ", " : "", out);
		if (kind == SS_TASK_GOROUTINE)
			(void)fprintf(out, "%" PRIu64, task->id);
		else
			ss_escape_write(task->name, NULL, out);
	}
	(void)fputs_unlocked(shown < count ? " ...\n" : "\n", out);
}

void ss_text_write_task_cycles(const struct ss_snapshot *snapshot,
			       const struct ss_format_options *options, FILE *out)
{
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO); i++) {
		if (!is_first(snapshot, i))
			continue;
		(void)fputc_unlocked('\n', out);
		ss_style_print(SS_STYLE_WARN, options->color, out, "deadlock of tasks");
		(void)fputs_unlocked(": ", out);
		write_task_cycle(snapshot, i, out);
	}
	write_endless(snapshot, SS_TASK_ASYNCIO, SS_ENDLESS_OBJECT, options, out);
	write_endless(snapshot, SS_TASK_ASYNCIO, SS_ENDLESS_LOOP, options, out);
	write_endless(snapshot, SS_TASK_GOROUTINE, SS_ENDLESS_OBJECT, options, out);
	write_without_channel(snapshot, options, out);
}
