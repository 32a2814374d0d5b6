#include "profile/goroutines.h"

#include <stdio.h>
#include <string.h>

/* Each is a thread of the profile, and takes memory as one. */
enum { GOROUTINES_MAX = 200000 };

struct key {
	uint64_t id;
	uint64_t name; /* the address of its interned text, as the next */
	uint64_t runtime;
	uint64_t task;
	uint64_t process;
};

bool ss_profile_goroutine_init(struct ss_profile_goroutine *goroutine,
			       struct ss_profile *profile,
			       const struct ss_recorded_goroutine *from)
{
	bool waits = from->status == SS_GOROUTINE_WAITING;
	const char *words = waits && from->wait_reason ?
				    from->wait_reason :
				    ss_goroutine_status_name(from->status);
	char name[128];

	(void)snprintf(name, sizeof(name), "goroutine (%s)", words);
	goroutine->id = from->id;
	goroutine->tid = from->id <= INT32_MAX ? (pid_t)from->id : 0;
	goroutine->state = from->status == SS_GOROUTINE_RUNNABLE ||
					   from->status == SS_GOROUTINE_RUNNING ?
				   'R' :
				   'S';
	goroutine->name = ss_profile_text(profile, name);
	goroutine->runtime = from->runtime ? ss_profile_text(profile, from->runtime) :
					     NULL;
	return goroutine->name && (goroutine->runtime || !from->runtime);
}

bool ss_profile_task_init(struct ss_profile_goroutine *task, struct ss_profile *profile,
			  const struct ss_recorded_task *from)
{
	const char *status = ss_async_task_status_name(from->status);
	char name[192];

	if (from->awaited_type)
		(void)snprintf(name, sizeof(name), "task (%s for %s)", status,
			       from->awaited_type);
	else
		(void)snprintf(name, sizeof(name), "task (%s)", status);
	task->id = from->address;
	task->state = from->status == SS_ASYNC_TASK_WAITING ? 'S' : 'R';
	task->name = ss_profile_text(profile, name);
	task->task = ss_profile_text(profile, from->name);
	return task->name && task->task;
}

bool ss_profile_goroutines_thread(struct ss_profile *profile,
				  const struct ss_profile_goroutine *goroutine,
				  uint32_t *ret)
{
	const struct key key = { .id = goroutine->id,
				 .name = (uint64_t)(uintptr_t)goroutine->name,
				 .runtime = (uint64_t)(uintptr_t)goroutine->runtime,
				 .task = (uint64_t)(uintptr_t)goroutine->task,
				 .process = goroutine->process };
	uint32_t id = ss_idtable_find(&profile->goroutines, &key, sizeof(key));

	*ret = SS_ID_NONE;
	if (id != SS_ID_NONE) {
		*ret = profile->goroutine_threads.items[id];
		return true;
	}
	if (profile->goroutines.count >= GOROUTINES_MAX)
		return true;
	uint32_t *slot = ss_vector_push(&profile->goroutine_threads);
	struct ss_profile_thread *thread = slot ? ss_vector_push(&profile->threads) :
						  NULL;
	if (!thread ||
	    ss_idtable_add(&profile->goroutines, &key, sizeof(key), NULL) == SS_ID_NONE)
		return false;
	thread->process = goroutine->process;
	thread->tid = goroutine->tid;
	thread->name = goroutine->name;
	thread->goroutine = goroutine->task ? 0 : goroutine->id;
	thread->task = goroutine->task;
	profile->task_count += goroutine->task != NULL;
	*ret = *slot = (uint32_t)profile->threads.count - 1;
	return true;
}
