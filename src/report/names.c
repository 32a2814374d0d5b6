#include "report/names.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

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

const char *ss_task_words(const struct ss_task *task)
{
	return task->status == SS_STATUS_WAITING && task->wait_reason ?
		       task->wait_reason :
		       ss_task_status_name(task->status);
}

static const char *const names[] = {
	[SS_MODE_DEFAULT] = "default", [SS_MODE_STOP] = "stop", [SS_MODE_LIVE] = "live",
	[SS_MODE_NO_STOP] = "no-stop", [SS_MODE_AUTO] = "auto", [SS_MODE_CORE] = "core",
};

const char *ss_mode_name(enum ss_mode mode)
{
	return (size_t)mode < SS_ARRAY_SIZE(names) ? names[mode] : "unknown";
}

bool ss_mode_find(const char *name, enum ss_mode *ret)
{
	for (size_t i = SS_MODE_STOP; i <= SS_MODE_AUTO; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret = (enum ss_mode)i;
			return true;
		}
	}
	return false;
}
