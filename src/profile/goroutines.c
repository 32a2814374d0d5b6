#include "profile/goroutines.h"

#include <stdio.h>
#include <string.h>

/* Each is a thread of the profile, and takes memory as one. */
enum { GOROUTINES_MAX = 200000 };

struct key {
	uint64_t id;
	uint64_t name; /* the address of its interned text */
	uint64_t process;
};

struct ss_profile_goroutines {
	struct ss_profile *profile;
	struct ss_idtable table;     /* of struct key */
	SS_VECTOR(uint32_t) threads; /* by number of the key */
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
	return goroutine->name != NULL;
}

static bool add_thread(struct ss_profile_goroutines *goroutines, uint32_t thread,
		       bool *ret_added)
{
	const struct ss_profile_thread *from =
		&goroutines->profile->threads.items[thread];
	const struct key key = { .id = from->goroutine,
				 .name = (uint64_t)(uintptr_t)from->name,
				 .process = from->process };
	uint32_t id = ss_idtable_add(&goroutines->table, &key, sizeof(key), ret_added);
	uint32_t *slot = id == SS_ID_NONE || !*ret_added ?
				 NULL :
				 ss_vector_push(&goroutines->threads);

	if (slot)
		*slot = thread;
	return slot || (id != SS_ID_NONE && !*ret_added);
}

struct ss_profile_goroutines *ss_profile_goroutines_new(struct ss_profile *profile)
{
	_cleanup_(
		ss_profile_goroutines_cleanup) struct ss_profile_goroutines *goroutines =
		calloc(1, sizeof(*goroutines));

	if (!goroutines)
		return NULL;
	goroutines->profile = profile;
	for (size_t i = 0; profile->goroutines && i < profile->threads.count; i++) {
		bool added = false;
		if (profile->threads.items[i].goroutine &&
		    !add_thread(goroutines, (uint32_t)i, &added))
			return NULL;
	}
	return take_ptr(goroutines);
}

void ss_profile_goroutines_free(struct ss_profile_goroutines *goroutines)
{
	if (!goroutines)
		return;
	ss_idtable_deinit(&goroutines->table);
	ss_vector_free(&goroutines->threads);
	free(goroutines);
}

bool ss_profile_goroutines_thread(struct ss_profile_goroutines *goroutines,
				  const struct ss_profile_goroutine *goroutine,
				  uint32_t *ret)
{
	struct ss_profile *profile = goroutines->profile;
	const struct key key = { .id = goroutine->id,
				 .name = (uint64_t)(uintptr_t)goroutine->name,
				 .process = goroutine->process };
	uint32_t id = ss_idtable_find(&goroutines->table, &key, sizeof(key));
	bool added = false;

	*ret = SS_ID_NONE;
	if (id != SS_ID_NONE) {
		*ret = goroutines->threads.items[id];
		return true;
	}
	if (profile->goroutines >= GOROUTINES_MAX)
		return true;
	struct ss_profile_thread *thread = ss_vector_push(&profile->threads);
	if (!thread)
		return false;
	thread->process = goroutine->process;
	thread->tid = goroutine->tid;
	thread->name = goroutine->name;
	thread->goroutine = goroutine->id;
	profile->goroutines++;
	*ret = (uint32_t)profile->threads.count - 1;
	return add_thread(goroutines, *ret, &added);
}
