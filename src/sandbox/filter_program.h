/*
 * The program of a seccomp filter (seccomp(2)), made from a list of rules: a binary tree, which a
 * call passes in a few steps. libseccomp makes the same, but takes 0.13 ms: longer than all other
 * restrictions of a sandbox together.
 */
#ifndef SS_SANDBOX_FILTER_PROGRAM_H
#define SS_SANDBOX_FILTER_PROGRAM_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ss_filter_condition {
	SS_FILTER_ALWAYS,
	SS_FILTER_EQUAL, /* the argument has that value */
	SS_FILTER_CLEAR, /* none of these bits is set in the lower half of the argument */
};

/* What to do with a system call. Several rules for one call are alternatives; the first one counts
   whose condition is met. */
struct ss_filter_rule {
	int call;	 /* its number; negative: this processor does not have it */
	uint32_t action; /* SECCOMP_RET_... */
	enum ss_filter_condition condition;
	unsigned argument;
	uint64_t value;
};

enum { SS_FILTER_CODE_MAX = 512 };

struct ss_filter_program {
	struct sock_filter code[SS_FILTER_CODE_MAX];
	size_t first; /* the program is from here to the end */
};

/*
 * rules: ascending by call. Calls without a rule, and those whose conditions are not met, get the
 * action otherwise. architecture: AUDIT_ARCH_... of the calls; another one kills the process. False:
 * there are too many rules.
 */
bool ss_filter_program_make(const struct ss_filter_rule *rules, size_t count,
			    uint32_t architecture, uint32_t otherwise,
			    struct ss_filter_program *ret);

#endif
