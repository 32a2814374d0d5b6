/* What is said of a refusal, for machines that this one is not: Yama, containers. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <linux/capability.h>

#include "process/denial.h"

enum { PID = 4711, USER = 1000, OTHER = 1001 };

static const uint64_t trace = UINT64_C(1) << CAP_SYS_PTRACE;
static const uint64_t net = UINT64_C(1) << CAP_NET_ADMIN;

/* An ordinary user and a process of the same user. */
static struct ss_denial_facts same_user(void)
{
	return (struct ss_denial_facts){
		.pid = PID,
		.uid = USER,
		.gid = USER,
		.known = true,
		.theirs = { .uid = { USER, USER, USER }, .gid = { USER, USER, USER } },
		.dumpable = true,
	};
}

static void check(const struct ss_denial_facts *facts, const char *cause,
		  const char *remedy)
{
	struct ss_error *error = ss_denial_decide(facts);

	assert_non_null(error);
	assert_int_equal(ss_error_code(error), SS_ERROR_DENIED);
	if (!strstr(ss_error_message(error), cause))
		fail_msg("'%s' lacks '%s'", ss_error_message(error), cause);
	if (!ss_error_remedy(error) || !strstr(ss_error_remedy(error), remedy))
		fail_msg("'%s' lacks '%s'", ss_error_remedy(error), remedy);
	ss_error_free(error);
}

TEST(test_yama)
{
	struct ss_denial_facts facts = same_user();

	facts.scope = 1;
	check(&facts, "ptrace_scope is 1", "sudo sysctl kernel.yama.ptrace_scope=0");
	check(&facts, "only its own ancestors", "sudo stacksnap 4711");
	facts.scope = 2;
	check(&facts, "ptrace_scope is 2", "sudo stacksnap 4711");
	facts.scope = 3;
	check(&facts, "ptrace_scope is 3", "reboot");
	/* Root is refused by 3 as well, and by nothing less. */
	facts.uid = 0;
	facts.ours.cap_effective = trace;
	check(&facts, "ptrace_scope is 3", "reboot");
	facts.scope = 2;
	check(&facts, "despite CAP_SYS_PTRACE", "on the host");
}

/* Yama is asked last by the kernel: what comes before it is the cause. */
TEST(test_order)
{
	struct ss_denial_facts facts = same_user();

	facts.scope = 1;
	facts.theirs.cap_permitted = net;
	check(&facts, "more capabilities", "sudo stacksnap 4711");
	facts.dumpable = false;
	check(&facts, "not dumpable", "sudo stacksnap 4711");
	facts.theirs.uid[2] = OTHER;
	check(&facts, "another user", "sudo stacksnap 4711");
	facts.known = false;
	check(&facts, "may not be inspected", "sudo stacksnap 4711");
}

TEST(test_users)
{
	struct ss_denial_facts facts = same_user();

	facts.uid = OTHER;
	check(&facts, "another user (uid 1000, gid 1000)", "sudo stacksnap 4711");
	facts.uid = USER;
	facts.gid = OTHER;
	check(&facts, "another user", "sudo stacksnap 4711");
}

TEST(test_capabilities)
{
	struct ss_denial_facts facts = same_user();

	facts.theirs.cap_permitted = net;
	facts.ours.cap_permitted = net;
	check(&facts, "user namespace", "sudo stacksnap 4711");
	facts.uid = 0;
	check(&facts, "root without CAP_SYS_PTRACE", "--cap-add SYS_PTRACE");
	check(&facts, "root without CAP_SYS_PTRACE", "kubectl debug --profile=general");
	facts.ours.cap_effective = trace;
	check(&facts, "despite CAP_SYS_PTRACE", "outside containers");
}
