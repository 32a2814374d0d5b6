/*
 * The time limits of system calls, from the memory that their arguments refer to.
 */
#include <string.h>
#include <time.h>

#include "diagnose/diagnose.h"

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

/* Two 64-bit words: seconds, and a fraction in units of 1/per_second. Programs of 32 bits have
   such times in new calls only. */
static bool read_pair(const struct ss_diagnosis *d, size_t arg, uint64_t per_second,
		      uint64_t *ret)
{
	enum { FIRST_64 = 403 }; /* clock_gettime64(2) */
	const struct ss_memory_fact *memory = &d->facts->memory[arg];
	int64_t pair[2];
	int32_t narrow[2];
	uint64_t ns;

	if (memory->size != sizeof(pair))
		return false;
	memcpy(pair, memory->bytes, sizeof(pair));
	if (d->snapshot->arch->word == sizeof(uint32_t) &&
	    d->facts->call.number < FIRST_64) {
		memcpy(narrow, memory->bytes, sizeof(narrow));
		pair[0] = narrow[0];
		pair[1] = narrow[1];
	}
	if (pair[0] < 0 || pair[1] < 0 || (uint64_t)pair[1] >= per_second ||
	    __builtin_mul_overflow((uint64_t)pair[0], NS_PER_S, &ns) ||
	    __builtin_add_overflow(ns, (uint64_t)pair[1] * (NS_PER_S / per_second), &ns))
		return false;
	*ret = SS_MIN(ns, (uint64_t)INT64_MAX);
	return true;
}

/* Sets the time left at the capture until a point in time. */
static void set_deadline(struct ss_diagnosis *d, uint64_t deadline_ns, clockid_t clock)
{
	const struct ss_facts *facts = d->snapshot->facts;
	uint64_t now = clock == CLOCK_REALTIME	? facts->time_ns :
		       clock == CLOCK_MONOTONIC ? facts->monotonic_ns :
						  0;

	if (now)
		d->wait->left_ns = deadline_ns > now ? (int64_t)(deadline_ns - now) : 0;
}

static bool is_absolute(const struct ss_diagnosis *d)
{
	return d->facts->call.id == SS_SYS_CLOCK_NANOSLEEP &&
	       (d->facts->call.args[1] & TIMER_ABSTIME);
}

static void read_limit(struct ss_diagnosis *d, const struct ss_call *call)
{
	const struct ss_syscall *made = &d->facts->call;
	int arg = call->timeout - 1;
	uint64_t ns;

	if (call->timeout_type == SS_TIMEOUT_MS) {
		int32_t ms = (int32_t)(uint32_t)made->args[arg];
		d->wait->timeout_ns = ms < 0 ? -1 : (int64_t)ms * (int64_t)NS_PER_MS;
		return;
	}
	uint64_t per_second = call->timeout_type == SS_TIMEOUT_VAL ? 1000000 : NS_PER_S;
	if (!read_pair(d, (size_t)arg, per_second, &ns))
		return;
	if (is_absolute(d))
		set_deadline(d, ns, (clockid_t)made->args[0]);
	else if (call->timeout_type == SS_TIMEOUT_REALTIME)
		set_deadline(d, ns, CLOCK_REALTIME);
	else
		d->wait->timeout_ns = (int64_t)ns;
}

void ss_time_limit_read(struct ss_diagnosis *d, const struct ss_call *call)
{
	if (!call->timeout)
		return;
	read_limit(d, call);
	/* A pointer that is not NULL is a time limit, even if it could not be read. */
	d->wait->timed = call->timeout_type == SS_TIMEOUT_MS ?
				 d->wait->timeout_ns >= 0 :
				 d->facts->call.args[call->timeout - 1] != 0;
}

void ss_time_limit_read_futex(struct ss_diagnosis *d, const struct ss_futex *futex)
{
	uint64_t ns;

	d->wait->timed = futex->timed;
	if (!futex->timed || !read_pair(d, (size_t)futex->timeout_arg, NS_PER_S, &ns))
		return;
	if (futex->relative)
		d->wait->timeout_ns = (int64_t)ns;
	else
		set_deadline(d, ns, futex->clock);
}
