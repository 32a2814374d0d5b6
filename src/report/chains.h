/*
 * Where the chains of waits in a profile end: each thread waits for the owner of what it
 * wants, which may wait for another one. A recording may hold any graph: what is found is
 * sound whatever is in it.
 */
#ifndef SS_REPORT_CHAINS_H
#define SS_REPORT_CHAINS_H

#include "report/profile.h"

/* Of one thread. Numbers may be SS_NUMBER_NOT. */
struct ss_chain {
	uint32_t link;	 /* what it waits for: the first of its links */
	uint32_t next;	 /* the thread that it waits for */
	uint32_t circle; /* the deadlock that its chain ends in: its first member */
	bool member;	 /* of this deadlock */
	uint32_t size;	 /* of a first member: how many members there are */
	uint32_t behind; /* of a first member: how many threads wait behind them */
	uint32_t walk;	 /* that came here first; of no use later */
};

/*
 * One for each thread; free() them. A deadlock is a circle of links each of which is
 * marked as part of one: a circle alone proves nothing where threads were not all seen at
 * one moment. NULL without memory.
 */
struct ss_chain *ss_chains_new(const struct ss_profile *profile);

#endif
