/*
 * The locks of C libraries as bytes: where a lock begins, what its words mean, whom it
 * names as its owner. Whether that owner is to be believed is for futex.c to say.
 *
 * glibc: struct __pthread_mutex_s (bits/struct_mutex.h), struct __pthread_rwlock_arch_t
 * (bits/struct_rwlock.h), struct __pthread_cond_s (bits/thread-shared-types.h), the same
 * from 2.25 to 2.41; the barrier since 2.25; FILE's _IO_lock_t. musl: the accessors of
 * its pthread_impl.h. Rust: std's futex locks.
 */
#ifndef SS_DIAGNOSE_LOCK_LAYOUT_H
#define SS_DIAGNOSE_LOCK_LAYOUT_H

#include "diagnose/lock_sign.h"
#include "model/facts.h"
#include "model/futex.h"

/* What the memory of a lock says. */
struct ss_lock_words {
	uint64_t address;	/* where the lock begins */
	pid_t owner;		/* id as the process sees it; 0: none is named */
	uint64_t owner_pointer; /* thread pointer of the owner; 0: none is named */
	const char *kind;	/* "mutex", "robust mutex"...; constant */
	const char *why;	/* why no owner is named; constant; NULL: one is */
	uint32_t value;		/* of the futex */
	bool shared;		/* between processes, as far as the lock knows */
	bool dead;		/* the kernel has noted that the owner died */
	uint32_t readers;	/* of a rwlock that is held by readers */
	uint32_t arrived;	/* at a barrier */
	uint32_t needed;	/* by a barrier; 0: not known */
};

/* Reads the lock around a futex. False: its words were not copied. */
bool ss_lock_layout_read(const struct ss_memory_fact *memory,
			 const struct ss_futex *futex, const struct ss_lock_sign *sign,
			 struct ss_lock_words *ret);

#endif
