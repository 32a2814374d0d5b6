#include "profile/locks.h"

#include <string.h>

enum { FRAMES_MAX = 48 }; /* that are searched */

/* What was found for the stack of a call, in one system call. */
struct known {
	uint32_t wait; /* + 1; 0: not searched yet */
	uint32_t lock; /* + 1; 0: none */
};

/* The name of the function of a call, or NULL. */
static const char *symbol_of(const struct ss_profile *profile, uint32_t call)
{
	const struct ss_profile_frame *frame =
		ss_profile_frame_at(profile, ss_profile_call_at(profile, call)->frame);
	const struct ss_profile_function *function =
		ss_profile_function_at(profile, frame->function);

	return frame->named && !function->is_end && !function->is_origin ?
		       function->name :
		       NULL;
}

/* Locks with the same description, or else the same function, are one. Texts are interned. */
static uint32_t add_lock(struct ss_profile *profile, const char *function,
			 const char *words)
{
	for (uint32_t i = 0; i < profile->locks.count; i++) {
		const struct ss_profile_lock *lock = &profile->locks.items[i];
		if (words ? lock->words == words :
			    !lock->words && lock->function == function)
			return i + 1;
	}
	struct ss_profile_lock *lock = ss_vector_push(&profile->locks);
	if (!lock)
		return 0;
	*lock = (struct ss_profile_lock){ .function = function, .words = words };
	return (uint32_t)profile->locks.count;
}

/* Finds the lock that a stack waits for; 0: none. False without memory. */
static bool find_lock(struct ss_profile *profile, const struct ss_wait_table *waits,
		      const struct ss_profile_run *run, uint32_t *ret)
{
	const char *symbols[FRAMES_MAX];
	size_t count = 0;

	*ret = 0;
	for (uint32_t call = run->call; call && count < FRAMES_MAX;
	     call = ss_profile_call_at(profile, call)->parent) {
		const char *symbol = symbol_of(profile, call);
		/* The signal trampoline: the thread does not wait for what it interrupted. */
		if (symbol && strcmp(symbol, "__restore_rt") == 0)
			break;
		symbols[count++] = symbol;
	}
	const struct ss_stack_purpose found = ss_wait_table_search(
		waits, profile->waits.items[run->wait].name, symbols, count);
	if (found.purpose != SS_PURPOSE_LOCK)
		return true;
	_cleanup_free_ char *name = strndup(found.function, found.size);
	const char *function = name ? ss_profile_text(profile, name) : NULL;
	const char *words = ss_profile_text(profile, found.words);
	if (!function || (found.words && !words))
		return false;
	*ret = add_lock(profile, function, words);
	return *ret != 0;
}

bool ss_profile_find_locks(struct ss_profile *profile, const struct ss_wait_table *waits)
{
	_cleanup_free_ struct known *known =
		calloc(profile->calls.count + 1, sizeof(*known));

	if (!known)
		return false;
	for (size_t t = 0; t < profile->threads.count; t++) {
		struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++) {
			struct ss_profile_run *run = &thread->runs.items[r];
			if (run->wait == SS_ID_NONE || run->call == 0 ||
			    run->state == 'R')
				continue;
			struct known *at = &known[run->call];
			if (at->wait != run->wait + 1 &&
			    !find_lock(profile, waits, run, &at->lock))
				return false;
			at->wait = run->wait + 1;
			run->lock = at->lock;
		}
	}
	return true;
}
