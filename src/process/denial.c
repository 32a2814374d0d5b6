#include "process/denial.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/procfs.h"
#include "base/scan.h"

enum { SMALL_TEXT_MAX = 64 * 1024 };

/* kernel.yama.ptrace_scope, 0 without Yama. */
static int read_scope(void)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	if (ss_io_read_path(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope",
			    SMALL_TEXT_MAX, &text) != 0)
		return 0;
	struct ss_scan scan = { .at = text.bytes, .end = text.bytes + text.size };
	uint64_t scope;
	return ss_scan_number(&scan, 10, &scope) && scope <= INT32_MAX ? (int)scope : 0;
}

static bool same_user(const struct ss_denial_facts *facts)
{
	for (int i = 0; i < 3; i++) {
		if (facts->theirs.uid[i] != facts->uid ||
		    facts->theirs.gid[i] != facts->gid)
			return false;
	}
	return true;
}

static struct ss_error *explain_scope(const struct ss_denial_facts *facts, bool capable)
{
	if (facts->scope >= 3)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_DENIED,
				     "ptrace is disabled on this machine "
				     "(kernel.yama.ptrace_scope is %d)",
				     facts->scope),
			"set kernel.yama.ptrace_scope below 3 in /etc/sysctl.d and "
			"reboot");
	if (facts->scope == 2 && !capable)
		return ss_error_with_remedy(
			ss_error_new(
				SS_ERROR_DENIED,
				"only root may trace (kernel.yama.ptrace_scope is 2)"),
			"sudo stacksnap %d", facts->pid);
	return NULL;
}

static struct ss_error *explain_capable(pid_t pid)
{
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_DENIED,
			     "process %d may not be traced despite CAP_SYS_PTRACE: it is "
			     "outside this user namespace, or a security module "
			     "(AppArmor, SELinux) or a seccomp filter denies it",
			     pid),
		"on the host, outside containers: sudo stacksnap PID");
}

static struct ss_error *explain_root(void)
{
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_DENIED,
			     "running as root without CAP_SYS_PTRACE, as in a container"),
		"docker run --cap-add SYS_PTRACE …, or kubectl debug --profile=general "
		"--target=CONTAINER …, or on the host: sudo stacksnap PID");
}

static struct ss_error *explain_user(const struct ss_denial_facts *facts)
{
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_DENIED,
			     "process %d belongs to another user (uid %u, gid %u)",
			     facts->pid, facts->theirs.uid[0], facts->theirs.gid[0]),
		"sudo stacksnap %d", facts->pid);
}

/* Why a process of the same user may not be traced, in the order of the kernel's checks
   (__ptrace_may_access() before the security modules). */
static struct ss_error *explain_same_user(const struct ss_denial_facts *facts)
{
	pid_t pid = facts->pid;

	if (!facts->dumpable)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_DENIED,
				     "process %d is not dumpable: it is set-uid, or has "
				     "called prctl(PR_SET_DUMPABLE)",
				     pid),
			"sudo stacksnap %d", pid);
	if (facts->theirs.cap_permitted & ~facts->ours.cap_permitted)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_DENIED,
				     "process %d has more capabilities than the caller",
				     pid),
			"sudo stacksnap %d", pid);
	if (facts->scope == 1)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_DENIED,
				     "only its own ancestors may trace process %d "
				     "(kernel.yama.ptrace_scope is 1)",
				     pid),
			"sudo stacksnap %d, or permanently: sudo sysctl "
			"kernel.yama.ptrace_scope=0",
			pid);
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_DENIED,
			     "process %d may not be traced: it is in another user "
			     "namespace, or a security module (AppArmor, SELinux) or a "
			     "seccomp filter denies it",
			     pid),
		"sudo stacksnap %d, outside containers", pid);
}

struct ss_error *ss_denial_decide(const struct ss_denial_facts *facts)
{
	bool capable = facts->ours.cap_effective >> CAP_SYS_PTRACE & 1;
	struct ss_error *error = explain_scope(facts, capable);

	if (error)
		return error;
	if (!facts->known)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_DENIED, "process %d may not be inspected",
				     facts->pid),
			"sudo stacksnap %d", facts->pid);
	if (capable)
		return explain_capable(facts->pid);
	if (facts->uid == 0)
		return explain_root();
	return same_user(facts) ? explain_same_user(facts) : explain_user(facts);
}

/* The files of a process that is not dumpable belong to root (task_dump_owner()); its
   directory does not. */
static bool is_dumpable(const struct ss_target *target, const struct ss_status *status)
{
	struct stat st;

	if (status->uid[1] == 0 || fstatat(target->proc_fd, "status", &st, 0) != 0)
		return true; /* assume so */
	return st.st_uid == status->uid[1];
}

struct ss_error *ss_denial_explain(const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_denial_facts facts = { .pid = target->pid,
					 .scope = read_scope(),
					 .uid = geteuid(),
					 .gid = getegid() };

	if (ss_io_read_path(AT_FDCWD, "/proc/self/status", SMALL_TEXT_MAX, &text) == 0)
		(void)ss_status_parse(text.bytes, text.size, &facts.ours); /* or zeros */
	facts.known = target->task_fd >= 0 &&
		      ss_target_read_status(target, target->pid, &text, &facts.theirs);
	facts.dumpable = !facts.known || is_dumpable(target, &facts.theirs);
	return ss_denial_decide(&facts);
}

bool ss_denial_find_tracer(const struct ss_target *target, pid_t tid,
			   struct ss_tracer *ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;
	struct ss_stat stat = {};
	char path[32];

	if (!ss_target_read_status(target, tid, &text, &status) || status.tracer == 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", status.tracer); /* fits */
	if (ss_io_read_path(AT_FDCWD, path, SMALL_TEXT_MAX, &text) == 0)
		(void)ss_stat_parse(text.bytes, text.size,
				    &stat); /* an empty name is fine */
	*ret = (struct ss_tracer){ .pid = status.tracer };
	memcpy(ret->name, stat.comm, sizeof(ret->name));
	return true;
}

struct ss_error *ss_denial_by_tracer(const struct ss_target *target,
				     const struct ss_tracer *tracer)
{
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_TRACED, "process %d is already traced by %d (%s)",
			     target->pid, tracer->pid, tracer->name),
		"end that tracer first (a process can have only one); until then only "
		"sleeping threads can be read");
}

enum {
	LINES_MAX = 1 << 18,	/* a line with a path for each hierarchy */
	THREADS_MAX = 64 << 20, /* more than the kernel allows */
};

/* Usual mount points: alone, or beside version 1. */
static int open_hierarchy(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup",
					      "/sys/fs/cgroup/unified" };

	for (size_t i = 0; i < SS_ARRAY_SIZE(mounts); i++) {
		struct statfs fs;
		int fd = open(mounts[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			return fd;
		close_cleanup(&fd);
	}
	return -1;
}

static char *read_cgroup(const struct ss_target *target, pid_t tid,
			 struct ss_buffer *text)
{
	char name[64];
	const char *path;
	size_t size;

	(void)snprintf(name, sizeof(name), "%d/cgroup", tid); /* always fits */
	if (ss_io_read_path(target->task_fd, name, LINES_MAX, text) != 0 ||
	    !ss_cgroup_find_path(text->bytes, text->size, &path, &size))
		return NULL;
	return strndup(path, size);
}

static bool read_file(int hierarchy, const char *cgroup, const char *name,
		      struct ss_buffer *text)
{
	char path[PATH_MAX];
	int size = snprintf(path, sizeof(path), ".%s/%s", cgroup, name);

	return size > 0 && (size_t)size < sizeof(path) &&
	       ss_io_read_path(hierarchy, path, THREADS_MAX, text) == 0;
}

/* The mount may show another part of the hierarchy, where a cgroup of the same name
   does not contain the thread. */
static bool is_frozen(int hierarchy, const char *cgroup, pid_t tid,
		      struct ss_buffer *text)
{
	return read_file(hierarchy, cgroup, "cgroup.events", text) &&
	       ss_cgroup_is_frozen(text->bytes, text->size) &&
	       read_file(hierarchy, cgroup, "cgroup.threads", text) &&
	       ss_cgroup_has_thread(text->bytes, text->size, tid);
}

/* A cgroup is frozen itself or with an ancestor: truncates the path to the nearest one
   that was frozen explicitly. */
static void cut_to_freezer(int hierarchy, char *cgroup, struct ss_buffer *text)
{
	_cleanup_free_ char *at = strdup(cgroup);

	while (at && *at) {
		if (read_file(hierarchy, at, "cgroup.freeze", text) &&
		    text->bytes[0] == '1') {
			cgroup[strlen(at)] = '\0';
			return;
		}
		*strrchr(at, '/') = '\0';
	}
}

char *ss_freezer_find(const struct ss_target *target, pid_t tid)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	_cleanup_free_ char *cgroup = read_cgroup(target, tid, &text);
	_cleanup_close_ int hierarchy = cgroup ? open_hierarchy() : -1;

	if (hierarchy < 0 || !is_frozen(hierarchy, cgroup, tid, &text))
		return NULL;
	cut_to_freezer(hierarchy, cgroup, &text);
	return take_ptr(cgroup);
}
