/*
 * Why the kernel denies access to a process, and the remedy. Used after a denial only.
 */
#ifndef SS_PROCESS_DENIAL_H
#define SS_PROCESS_DENIAL_H

#include "process/target.h"

/* What the kernel's decision depends on. */
struct ss_denial_facts {
	pid_t pid;
	int scope; /* kernel.yama.ptrace_scope; 0 without Yama */
	uid_t uid; /* effective, ours */
	gid_t gid;
	struct ss_status ours;
	bool known; /* theirs and dumpable are valid */
	struct ss_status theirs;
	/* PR_SET_DUMPABLE is 1, according to the owner of its /proc files */
	bool dumpable;
};

/* The error for a target that may not be traced: the first cause in the order of
   ptrace(2), with its remedy. */
struct ss_error *ss_denial_decide(const struct ss_denial_facts *facts);

/* Collects these facts about a target and decides. */
struct ss_error *ss_denial_explain(const struct ss_target *target);

struct ss_tracer {
	pid_t pid;
	char name[64]; /* raw bytes; "" if unknown */
};

/* Finds the tracer of a thread. Returns false if there is none. */
bool ss_denial_find_tracer(const struct ss_target *target, pid_t tid,
			   struct ss_tracer *ret);

/* The error for a target that is traced by this tracer. */
struct ss_error *ss_denial_by_tracer(const struct ss_target *target,
				     const struct ss_tracer *tracer);

/*
 * Whether the freezer of cgroup v2 keeps a process from running (cgroup-v2.rst,
 * cgroup.freeze). Check before stopping anything: a thread in a ptrace-stop may leave the
 * freezer for a short time.
 */

/*
 * The path of the cgroup that freezes this thread of the target: its own or an ancestor;
 * its own if none is visible. NULL if it is not frozen, or if that is unknown (other
 * mounts, another cgroup namespace, no memory). The caller frees it.
 */
char *ss_freezer_find(const struct ss_target *target, pid_t tid);

#endif
