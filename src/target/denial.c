#include "target/denial.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <unistd.h>

enum { SMALL_TEXT_MAX = 64 * 1024 };

static bool has_capability(const struct ss_status *status, unsigned capability)
{
	return status->cap_effective >> capability & 1;
}

/* kernel.yama.ptrace_scope, 0 without Yama. */
static int read_scope(void)
{
	_cleanup_text_ struct ss_text text = {};

	if (ss_io_read_path(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope",
			    SMALL_TEXT_MAX, &text) != 0)
		return 0;
	return (int)strtol(text.bytes, NULL, 10);
}

static bool same_user(const struct ss_status *target)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	for (int i = 0; i < 3; i++) {
		if (target->uid[i] != uid || target->gid[i] != gid)
			return false;
	}
	return true;
}

static struct ss_error *explain_scope(pid_t pid, int scope, bool capable)
{
	if (scope >= 3)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_DENIED,
				     "ptrace is switched off on this machine "
				     "(kernel.yama.ptrace_scope is %d)",
				     scope),
			"set kernel.yama.ptrace_scope below 3 in /etc/sysctl.d and "
			"reboot");
	if (scope == 2 && !capable)
		return ss_error_with_remedy(
			ss_error_new(
				SS_ERROR_DENIED,
				"only root may trace (kernel.yama.ptrace_scope is 2)"),
			"sudo stacksnap %d", pid);
	return NULL;
}

static struct ss_error *explain_root(void)
{
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_DENIED,
			     "we are root without the capability SYS_PTRACE, as in a "
			     "container"),
		"docker run --cap-add SYS_PTRACE …, or kubectl debug --profile=general "
		"--target=CONTAINER …, or on the host: sudo stacksnap PID");
}

static struct ss_error *explain_user(pid_t pid, const struct ss_status *target)
{
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_DENIED,
			     "process %d belongs to another user (uid %u, gid %u)", pid,
			     target->uid[0], target->gid[0]),
		"sudo stacksnap %d", pid);
}

static struct ss_error *explain_same_user(pid_t pid, int scope)
{
	if (scope == 1)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_DENIED,
				     "only its own ancestors may trace process %d "
				     "(kernel.yama.ptrace_scope is 1)",
				     pid),
			"sudo stacksnap %d, or for good: sudo sysctl "
			"kernel.yama.ptrace_scope=0",
			pid);
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_DENIED,
			     "process %d is not dumpable (set-uid, file capabilities, or "
			     "prctl PR_SET_DUMPABLE), or has more capabilities than we",
			     pid),
		"sudo stacksnap %d", pid);
}

struct ss_error *ss_denial_explain(const struct ss_target *target)
{
	_cleanup_text_ struct ss_text text = {};
	struct ss_status ours = {};
	struct ss_status theirs = {};
	int scope = read_scope();

	if (ss_io_read_path(AT_FDCWD, "/proc/self/status", SMALL_TEXT_MAX, &text) == 0)
		(void)ss_status_parse(text.bytes, text.size, &ours); /* zeros will do */
	bool capable = has_capability(&ours, CAP_SYS_PTRACE);
	struct ss_error *error = explain_scope(target->pid, scope, capable);
	if (error)
		return error;
	if (target->task_fd < 0 ||
	    !ss_target_read_status(target, target->pid, &text, &theirs))
		return ss_error_new(SS_ERROR_DENIED, "process %d may not be looked at",
				    target->pid);
	if (capable)
		return ss_error_with_remedy(
			ss_error_new(
				SS_ERROR_DENIED,
				"process %d may not be traced in spite of the "
				"capability SYS_PTRACE: it is outside our user "
				"namespace, or a security module (AppArmor, SELinux) "
				"or a seccomp filter refuses",
				target->pid),
			"on the host, outside containers: sudo stacksnap PID");
	if (geteuid() == 0)
		return explain_root();
	return same_user(&theirs) ? explain_same_user(target->pid, scope) :
				    explain_user(target->pid, &theirs);
}

struct ss_error *ss_denial_find_tracer(const struct ss_target *target, pid_t tid)
{
	_cleanup_text_ struct ss_text text = {};
	struct ss_status status;
	struct ss_stat tracer = {};
	char path[32];

	if (!ss_target_read_status(target, tid, &text, &status) || status.tracer == 0)
		return NULL;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", status.tracer); /* fits */
	if (ss_io_read_path(AT_FDCWD, path, SMALL_TEXT_MAX, &text) == 0)
		(void)ss_stat_parse(text.bytes, text.size, &tracer); /* name "" will do */
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_TRACED, "process %d is traced already, by %d (%s)",
			     target->pid, status.tracer, tracer.comm),
		"end that tracer first (a process has one tracer at most), or read it "
		"without stopping it: stacksnap --mode=no-stop %d",
		target->pid);
}
