/*
 * What a futex call waits for, by its arguments alone: futex(2), and futex_waitv and
 * futex_wait of later kernels. Which lock it is, is for diagnose/ to say.
 */
#ifndef SS_MODEL_FUTEX_H
#define SS_MODEL_FUTEX_H

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/arch.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

/* Every lock of glibc and musl lies whole in so much before and behind its futex. */
enum { SS_LOCK_REACH = 64, SS_LOCK_MAX = 2 * SS_LOCK_REACH };

struct ss_futex {
	uint64_t address; /* of the word */
	uint32_t value;	  /* with which it began to wait; nothing with PI operations */
	int operation;	/* FUTEX_WAIT, WAIT_BITSET, LOCK_PI, LOCK_PI2, WAIT_REQUEUE_PI */
	bool private;	/* not shared with other processes */
	bool restarted; /* goes on after a stop: it is a guess that it is a futex call */
	bool timed;	/* the wait ends by itself */
	uint64_t timeout; /* address of a struct timespec, if timed */
};

static inline bool ss_futex_operation_waits(int operation)
{
	return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET ||
	       operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2 ||
	       operation == FUTEX_WAIT_REQUEUE_PI;
}

/*
 * Whether the call waits on one futex. A wait with a time limit that was interrupted goes
 * on as restart_syscall, with the arguments still in their registers: what could be a
 * futex call is taken for one.
 */
static inline bool ss_futex_parse(const struct ss_syscall *call, struct ss_futex *ret)
{
	bool restarted = call->number == SYS_restart_syscall;

	*ret = (struct ss_futex){ .address = call->args[0],
				  .value = (uint32_t)call->args[2],
				  .timeout = call->args[3],
				  .timed = call->args[3] != 0,
				  .restarted = restarted };
	if (call->number == SYS_futex || restarted) {
		ret->operation = (int)call->args[1] & FUTEX_CMD_MASK;
		ret->private = (call->args[1] & FUTEX_PRIVATE_FLAG) != 0;
		if (restarted && (!ret->timed || call->args[1] >> 9))
			return false;
	} else if (call->number == SYS_futex_wait) {
		ret->operation = FUTEX_WAIT_BITSET;
		ret->private = (call->args[3] & FUTEX_PRIVATE_FLAG) != 0;
		ret->value = (uint32_t)call->args[1];
		ret->timeout = call->args[4];
		ret->timed = call->args[4] != 0;
	} else {
		return false;
	}
	return ret->address != 0 && ret->address % sizeof(uint32_t) == 0 &&
	       ss_futex_operation_waits(ret->operation);
}

/* Where locks of glibc say who holds them: in so many places from the futex on. */
enum { SS_FUTEX_OWNERS = 4 };

/* The id of a thread that one of these places may name, of a copy of size bytes from
   address on; 0: none. */
static inline uint32_t ss_futex_owner(const struct ss_futex *futex, size_t place,
				      uint64_t address, const uint8_t *bytes, size_t size)
{
	static const unsigned offsets[SS_FUTEX_OWNERS] = { 0, 8, 12, 16 };
	uint64_t at = futex->address + offsets[place] - address; /* or far too large */
	uint32_t word;

	if (at > size || size - at < sizeof(word))
		return 0;
	memcpy(&word, bytes + at, sizeof(word));
	return word & FUTEX_TID_MASK;
}

#endif
