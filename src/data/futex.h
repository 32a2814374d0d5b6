/*
 * Decodes arguments of futex waits: futex(2), and futex_wait of later kernels. diagnose/
 * determines the lock.
 */
#ifndef SS_DATA_FUTEX_H
#define SS_DATA_FUTEX_H

#include <linux/futex.h>
#include <string.h>
#include <time.h>

#include "arch/arch.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

/* Every lock of glibc and musl lies within this distance of its futex. */
enum { SS_LOCK_REACH = 64, SS_LOCK_MAX = 2 * SS_LOCK_REACH };

struct ss_futex {
	uint64_t address; /* of the word */
	uint32_t value;	  /* expected value; unused by PI operations */
	int operation;	 /* FUTEX_WAIT, WAIT_BITSET, LOCK_PI, LOCK_PI2, WAIT_REQUEUE_PI */
	bool private;	 /* not shared with other processes */
	bool restarted;	 /* from restart_syscall: probably a futex call */
	bool timed;	 /* the wait has a time limit, a struct timespec: */
	int timeout_arg; /* index of the argument that points to it */
	bool relative;	 /* a duration, not a point in time of clock */
	clockid_t clock;
};

static inline bool ss_futex_operation_waits(int operation)
{
	return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ||
	       operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2 ||
	       operation == FUTEX_WAIT_REQUEUE_PI;
}

/*
 * Whether the call waits on one futex. A wait with a time limit that was interrupted
 * continues as restart_syscall, with its arguments still in the registers: plausible ones
 * are taken for a futex call.
 */
static inline bool ss_futex_parse(const struct ss_syscall *call, struct ss_futex *ret)
{
	bool restarted = call->id == SS_SYS_RESTART_SYSCALL;

	*ret = (struct ss_futex){ .address = call->args[0],
				  .value = (uint32_t)call->args[2],
				  .timed = call->args[3] != 0,
				  .timeout_arg = 3,
				  .restarted = restarted };
	if (call->id == SS_SYS_FUTEX || restarted) {
		ret->operation = (int)call->args[1] & FUTEX_CMD_MASK;
		ret->private = (call->args[1] & FUTEX_PRIVATE_FLAG) != 0;
		ret->relative = ret->operation == FUTEX_WAIT;
		ret->clock = ret->operation == FUTEX_LOCK_PI ||
					     (call->args[1] & FUTEX_CLOCK_REALTIME) ?
				     CLOCK_REALTIME :
				     CLOCK_MONOTONIC;
		if (restarted && (!ret->timed || call->args[1] >> 9))
			return false;
	} else if (call->id == SS_SYS_FUTEX_WAIT) {
		ret->operation = FUTEX_WAIT_BITSET;
		ret->private = (call->args[3] & FUTEX_PRIVATE_FLAG) != 0;
		ret->value = (uint32_t)call->args[1];
		ret->timeout_arg = 4;
		ret->timed = call->args[4] != 0;
		ret->clock = (clockid_t)call->args[5];
	} else {
		return false;
	}
	return ret->address != 0 && ret->address % sizeof(uint32_t) == 0 &&
	       ss_futex_operation_waits(ret->operation);
}

/* Number of positions, relative to the futex, where locks of glibc store their owner. */
enum { SS_FUTEX_OWNERS = 4 };

/* The thread id at one of these positions, in a copy of size bytes at address; 0: none.
   */
static inline uint32_t ss_futex_owner(const struct ss_futex *futex, size_t place,
				      uint64_t address, const uint8_t *bytes, size_t size)
{
	static const unsigned offsets[SS_FUTEX_OWNERS] = { 0, 8, 12, 16 };
	uint64_t at = futex->address + offsets[place] -
		      address; /* or wraps around to a large value */
	uint32_t word;

	if (at > size || size - at < sizeof(word))
		return 0;
	memcpy(&word, bytes + at, sizeof(word));
	return word & FUTEX_TID_MASK;
}

#endif
