#include "diagnose/interrupted_lock.h"

#include <string.h>

#include "diagnose/wait_function.h"

enum { NAME_MAX_SIZE = 64, FRAMES_MAX = 64 };

/*
 * Functions of glibc that wait for a lock, and those that run while they hold it; only what
 * must be the same lock. A thread allocates from its own arena, whose lock malloc() and
 * its relatives hold around the functions below; memory that it frees may be of another
 * one. The others hold the only lock of their kind from the begin to the end.
 */
static const struct {
	const char *waits[6];
	const char *holds[6];
} locks[] = {
	{ { "libc_malloc", "libc_calloc", "libc_memalign", "mid_memalign", "malloc",
	    "calloc" },
	  { "int_malloc", "sysmalloc", "int_memalign", "malloc_consolidate",
	    "sysmalloc_mmap", "alloc_perturb" } },
	{ { "tz_convert" }, { "tz_convert" } },
	{ { "vsyslog_internal" }, { "vsyslog_internal" } },
	{ { "random" }, { "random" } },
	{ { "add_to_environ" }, { "add_to_environ" } },
};

static bool contains(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count && names[i]; i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* The plain name of a function of the C library, which is the one that waits; otherwise "". */
static void name_of(const struct ss_snapshot *snapshot, const struct ss_thread *thread,
		    size_t index, char *ret)
{
	const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, index);

	ret[0] = '\0';
	if (frame->symbol && frame->kind == SS_FRAME_NATIVE &&
	    frame->module == ss_snapshot_frame(snapshot, thread, 0)->module)
		ss_wait_function_plain_name(frame->symbol, ret, NAME_MAX_SIZE);
}

/* The index of the signal frame, or of the end. */
static size_t find_signal(const struct ss_snapshot *snapshot,
			  const struct ss_thread *thread, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ss_snapshot_frame(snapshot, thread, i)->signal_frame)
			return i;
	}
	return count;
}

/* Which of the locks the handler waits for, in the frames before the signal frame. */
static size_t find_lock(const struct ss_snapshot *snapshot,
			const struct ss_thread *thread, size_t signal)
{
	char name[NAME_MAX_SIZE];

	for (size_t i = 0; i < signal; i++) {
		name_of(snapshot, thread, i, name);
		for (size_t j = 0; j < SS_ARRAY_SIZE(locks); j++) {
			if (contains(locks[j].waits, SS_ARRAY_SIZE(locks[j].waits), name))
				return j;
		}
	}
	return SS_ARRAY_SIZE(locks);
}

void ss_interrupted_lock_fill(struct ss_diagnosis *d)
{
	const struct ss_thread *thread = d->thread;
	size_t count = SS_MIN(thread->frame_count, (size_t)FRAMES_MAX);
	char name[NAME_MAX_SIZE];

	if (d->wait->lock != SS_LOCK_LIBC || d->wait->owner_tid)
		return;
	size_t signal = find_signal(d->snapshot, thread, count);
	size_t lock = find_lock(d->snapshot, thread, signal);
	if (lock == SS_ARRAY_SIZE(locks))
		return;
	for (size_t i = signal + 1; i < count; i++) {
		name_of(d->snapshot, thread, i, name);
		if (!contains(locks[lock].holds, SS_ARRAY_SIZE(locks[lock].holds), name))
			continue;
		d->wait->owner_tid = thread->tid;
		d->wait->owner_name = thread->name;
		d->wait->owner_unknown = SS_OWNER_UNSPECIFIED;
		d->wait->self_owned = true;
		return;
	}
}
