#include "report/names.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"

const char *ss_state_name(char state)
{
	static const struct {
		char state;
		const char *name;
	} names[] = {
		{ 'R', "running" }, /* or runnable: waiting for a processor */
		{ 'S', "sleeping" },
		{ 'D', "in uninterruptible sleep (D)" },
		{ 'T', "stopped by a signal" },
		{ 't', "stopped by a tracer" },
		{ 'Z', "zombie" },
		{ 'X', "dead" },
		{ 'I', "idle" },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++) {
		if (names[i].state == state)
			return names[i].name;
	}
	return "in an unknown state";
}

const char *ss_task_noun(enum ss_task_kind kind)
{
	static const char *const nouns[] = {
		[SS_TASK_THREAD] = "thread",
		[SS_TASK_GOROUTINE] = "goroutine",
		[SS_TASK_ASYNCIO] = "task",
	};

	return nouns[kind];
}

size_t ss_greenlet_count(const struct ss_snapshot *snapshot)
{
	size_t count = 0;

	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO); i++)
		count += ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, i)->greenlet;
	return count;
}

const char *ss_task_words(const struct ss_task *task)
{
	return task->status == SS_STATUS_WAITING && task->wait_reason ?
		       task->wait_reason :
		       ss_task_status_name(task->status);
}

enum { DEFAULT_MAX_STACK = 256 << 10, KIB = 1024, MORE = 8 };

struct end_text {
	const char *meaning;
	const char *remedy;
};

static const struct end_text end_texts[] = {
	[SS_END_ROOT] = { "complete", NULL },
	[SS_END_FRAMES] = { "truncated: the frame limit was reached", "-n 0 shows all" },
	[SS_END_LIMIT] = { "truncated: the rest of the stack was not copied", NULL },
	[SS_END_NO_UNWIND_INFO] = { "lost: no unwind information for this code", NULL },
	[SS_END_BAD_UNWIND_INFO] = { "lost: the unwind information is corrupted", NULL },
	[SS_END_UNREADABLE] = { "lost: required memory could not be read", NULL },
	[SS_END_LOOP] = { "lost: the next frame is not further out: the stack is "
			  "corrupted, "
			  "or a frame before it is wrong",
			  NULL },
	[SS_END_REGISTER] = { "lost: a required register is unknown", NULL },
	[SS_END_GONE] = { "the thread ended before it could be read", NULL },
	[SS_END_RUNNING] = { "running, and not stopped", "--mode=stop shows its stack" },
	[SS_END_NOT_STOPPED] = { "the thread did not stop in time",
				 "--timeout=MS waits longer, --mode=no-stop reads "
				 "blocked "
				 "threads without stopping them" },
	[SS_END_TRACED] = { "traced by another process", NULL },
	[SS_END_RUNNABLE] = { "runnable: it waits for a CPU, or is busy in the kernel, "
			      "and was not stopped",
			      "--timeout=MS waits longer; with CAP_PERFMON, which root "
			      "has outside of containers, threads in the kernel are "
			      "seen" },
	[SS_END_DENIED] = { "access denied: only the state is known", NULL },
	[SS_END_GUESSED] = { "the outermost frame was reached by guesses", NULL },
};

const char *ss_end_text(enum ss_end end)
{
	return (size_t)end < SS_ARRAY_SIZE(end_texts) ? end_texts[end].meaning :
							"unknown";
}

bool ss_end_has_guess(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	return ss_any(thread->frame_count, i,
		      ss_snapshot_frame(snapshot, thread, i)->source ==
			      SS_FROM_RETURN_ADDRESS);
}

/* Modes that stop threads stop one whose register is missing, unless it must not be stopped. What a
   stop did not find is not found by another one. */
static const char *remedy_of_register(enum ss_mode mode, bool stopped)
{
	if (mode == SS_MODE_CORE || stopped)
		return NULL;
	return mode == SS_MODE_NO_STOP ? "--mode=auto may stop the thread and read it" :
					 "the thread was not stopped: see \"Interrupted "
					 "system calls\" in stacksnap(1)";
}

void ss_end_write_remedy(enum ss_end end, enum ss_mode mode, bool stopped,
			 size_t max_stack, FILE *out)
{
	size_t copied = max_stack ? max_stack : DEFAULT_MAX_STACK;

	if (end == SS_END_LIMIT)
		(void)fprintf(out, "; --max-stack=%zu copies more", copied / KIB * MORE);
	const char *remedy = end == SS_END_REGISTER ? remedy_of_register(mode, stopped) :
			     (size_t)end < SS_ARRAY_SIZE(end_texts) ?
						      end_texts[end].remedy :
						      NULL;
	if (remedy)
		(void)fprintf(out, "; %s", remedy);
}

bool ss_mode_find(const char *name, enum ss_mode *ret)
{
	for (size_t i = SS_MODE_STOP; i <= SS_MODE_AUTO; i++) {
		if (strcmp(ss_names_mode.names[i], name) == 0) {
			*ret = (enum ss_mode)i;
			return true;
		}
	}
	return false;
}
