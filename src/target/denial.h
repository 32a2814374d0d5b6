/*
 * Why the kernel refuses, and what to do about it. Only asked after a refusal.
 */
#ifndef SS_TARGET_DENIAL_H
#define SS_TARGET_DENIAL_H

#include "target/target.h"

/* What the decision is made of. */
struct ss_denial_facts {
	pid_t pid;
	int scope; /* kernel.yama.ptrace_scope; 0 without Yama */
	uid_t uid; /* effective, ours */
	gid_t gid;
	struct ss_status ours;
	bool known; /* theirs and dumpable are */
	struct ss_status theirs;
	bool dumpable; /* PR_SET_DUMPABLE is 1, as far as its files of /proc show it */
};

/* The error for a target that may not be traced: the first cause in the order of the
   manual page, and the exact remedy. */
struct ss_error *ss_denial_decide(const struct ss_denial_facts *facts);

/* The same, with the facts of a target. */
struct ss_error *ss_denial_explain(const struct ss_target *target);

struct ss_tracer {
	pid_t pid;
	char name[64]; /* raw bytes; "" if it is not known */
};

/* Who traces a thread. False: nobody does. */
bool ss_denial_find_tracer(const struct ss_target *target, pid_t tid,
			   struct ss_tracer *ret);

/* The error for a target that this tracer holds. */
struct ss_error *ss_denial_by_tracer(const struct ss_target *target,
				     const struct ss_tracer *tracer);

#endif
