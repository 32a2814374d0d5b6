#include "process/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/clock.h"
#include "base/scan.h"
#include "data/pipeline.h"
#include "process/denial.h"
#include "base/child.h"

enum {
	RECORD_MAX = 8 * 1024, /* of status and auxv */
	/* How long a forked process usually takes at most until it executes a program. */
	YOUNG_MS = 100,
};

bool ss_target_will_execute(const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	uint64_t per_second = (uint64_t)SS_MAX(sysconf(_SC_CLK_TCK), 1L);
	uint64_t now = ss_clock_ns(CLOCK_BOOTTIME) / (SS_NS_PER_SECOND / per_second);
	struct ss_stat stat;

	return ss_target_read_stat(target, target->pid, &text, &stat) && stat.forked &&
	       now < stat.start_time + per_second * YOUNG_MS / 1000;
}

static bool is_alive(const struct ss_target *target, pid_t tid, struct ss_buffer *text,
		     struct ss_stat *ret)
{
	return ss_target_read_stat(target, tid, text, ret) && ret->state != 'Z' &&
	       ret->state != 'X';
}

/* *ret: of the thread that is returned */
static pid_t find_live(const struct ss_target *target, struct ss_stat *ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	if (is_alive(target, target->pid, &text, ret))
		return target->pid;
	DIR *dir = ss_io_open_directory(target->task_fd, ".");
	pid_t found = 0;
	if (!dir)
		return 0;
	for (struct dirent *entry; !found && (entry = readdir(dir));) {
		pid_t tid = ss_scan_pid(entry->d_name);
		if (tid > 0 && is_alive(target, tid, &text, ret))
			found = tid;
	}
	(void)closedir(dir); /* only read from */
	return found;
}

pid_t ss_target_find_live(const struct ss_target *target)
{
	struct ss_stat stat;

	return find_live(target, &stat);
}

uint64_t ss_target_program(const struct ss_target *target)
{
	struct ss_stat stat;

	return find_live(target, &stat) ? stat.program : 0;
}

bool ss_target_has_memory(const struct ss_target *target, uint64_t program, int maps_fd)
{
	char byte;

	return lseek(maps_fd, 0, SEEK_SET) == 0 &&
	       read(maps_fd, &byte, sizeof(byte)) == sizeof(byte) &&
	       ss_target_program(target) == program;
}

/* Opens /proc/TID, which exists although it is not listed, and checks that it is still
   a thread of the target. */
static int open_thread(const struct ss_target *target, pid_t tid)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", tid); /* always fits */
	_cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || ss_io_read_record(fd, "status", RECORD_MAX, &text) != 0 ||
	    !ss_status_parse(text.bytes, text.size, &status) ||
	    status.tgid != target->pid)
		return -1;
	return take_fd(fd);
}

pid_t ss_target_reopen_live(struct ss_target *target)
{
	pid_t live = ss_target_find_live(target);

	if (live == 0 || live == target->live)
		return live;
	int fd = open_thread(target, live);
	if (fd < 0)
		return 0;
	close_cleanup(&target->proc_fd);
	target->proc_fd = fd;
	target->live = live;
	return live;
}

void ss_target_open_root(struct ss_target *target)
{
	close_cleanup(&target->root_fd);
	target->root_fd =
		openat(target->proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Why nothing of a process can be read although it may exist; or NULL. */
static struct ss_error *explain_limit(pid_t pid)
{
	_cleanup_close_ int fd = open("/", O_PATH | O_CLOEXEC);
	int errnum = errno;

	if (fd >= 0)
		return NULL;
	return ss_error_with_remedy(ss_error_new(SS_ERROR_SYSTEM,
						 "cannot read process %d: %s", pid,
						 strerrordesc_np(errnum)),
				    "raise the limit of open files: ulimit -n 1024");
}

struct ss_error *ss_target_missing(const struct ss_target *target)
{
	struct ss_error *error = explain_limit(target->pid);

	return error ? error :
		       ss_error_new(SS_ERROR_NO_PROCESS, "process %d has ended",
				    target->pid);
}

static struct ss_error *no_process(pid_t pid)
{
	struct ss_error *error = explain_limit(pid);

	if (error)
		return error;
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_NO_PROCESS, "there is no process %d", pid),
		"look it up again: pgrep -a NAME (in a container: a pid as seen from "
		"here)");
}

struct ss_error *ss_target_check(const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat;

	if (!ss_target_read_stat(target, target->pid, &text, &stat) ||
	    stat.start_time != target->start_time)
		return ss_target_missing(target);
	return NULL;
}

static struct ss_error *open_directories(pid_t pid, struct ss_target *target)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", pid); /* always fits */
	if (target->procfs_fd < 0)
		target->procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	target->pid = target->live = pid;
	target->proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int errnum = errno;
	if (target->proc_fd < 0 && errnum == ENOENT && access("/proc/self", F_OK) != 0)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_SYSTEM, "/proc is not mounted here"),
			"mount -t proc proc /proc");
	if (target->proc_fd < 0)
		return errnum == ENOENT ? no_process(pid) :
					  ss_error_new_errno(errnum, "%s", path);
	target->task_fd =
		openat(target->proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	errnum = errno;
	if (target->task_fd < 0)
		return errnum == EACCES || errnum == EPERM ? ss_denial_explain(target) :
							     no_process(pid);
	return NULL;
}

/* Without it a process would seem to have no threads. */
static struct ss_error *check_listing(const struct ss_target *target)
{
	uint64_t entries[32]; /* aligned; room for the first ones */

	if (syscall(SYS_getdents64, target->task_fd, entries, sizeof(entries)) >= 0)
		return NULL;
	int errnum = errno;
	if (errnum == ENOENT || errnum == ESRCH)
		return ss_target_missing(target);
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_SYSTEM, "cannot list the threads of process %d: %s",
			     target->pid, strerrordesc_np(errnum)),
		"does a seccomp filter refuse getdents64(2)? Run stacksnap without it");
}

static void close_directories(struct ss_target *target)
{
	close_cleanup(&target->proc_fd);
	close_cleanup(&target->task_fd);
	target->proc_fd = target->task_fd = -1;
}

/* Opens the directories of a process. pid may be the id of any of its threads. */
static struct ss_error *open_process(pid_t pid, struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;
	struct ss_error *error = open_directories(pid, target);

	if (error)
		return error;
	if (!ss_target_read_status(target, pid, &text, &status))
		return no_process(pid);
	if (status.tgid == pid)
		return NULL;
	close_directories(target);
	return open_directories(status.tgid, target);
}

static struct ss_error *check_kind(struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat;

	if (!ss_target_read_stat(target, target->pid, &text, &stat))
		return no_process(target->pid);
	target->start_time = stat.start_time;
	if (stat.kernel_thread)
		return ss_error_with_remedy(
			ss_error_new(
				SS_ERROR_KERNEL_THREAD,
				"%d (%s) is a kernel thread: it has no user-space stack",
				target->pid, stat.comm),
			"its kernel stack: sudo cat /proc/%d/stack", target->pid);
	if (target->pid == getpid())
		return ss_error_new(SS_ERROR_SELF,
				    "%d is the calling process, which cannot stop itself",
				    target->pid);
	if (stat.state == 'Z' && ss_target_find_live(target) == 0)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_ZOMBIE,
				     "process %d (%s) is a zombie: it has ended, and its "
				     "parent has not reaped it",
				     target->pid, stat.comm),
			"look at its parent (ps -o ppid= -p %d), which should call "
			"wait(2)",
			target->pid);
	return NULL;
}

/* Opening mem needs the same permission as ptrace (PTRACE_MODE_ATTACH), and has no side
   effect. */
static struct ss_error *check_access(struct ss_target *target)
{
	char path[32];
	pid_t live = ss_target_reopen_live(target);

	(void)snprintf(path, sizeof(path), "%d/mem", live); /* always fits */
	_cleanup_close_ int fd = openat(target->task_fd, path, O_RDONLY | O_CLOEXEC);
	int errnum = errno;
	if (fd >= 0)
		return NULL;
	return errnum == EACCES || errnum == EPERM ? ss_denial_explain(target) :
						     no_process(target->pid);
}

/* What the kernel told the program is read rather than its file, which is untrusted. If it cannot be
   read, the registers tell later. Programs of 32 bits are those of i386, which have AT_SYSINFO,
   where the host has them, or x32. */
struct ss_error *ss_target_find_arch(struct ss_target *target)
{
	enum { SYSINFO = 32 }; /* AT_SYSINFO, which headers of 64 bits lack */
	_cleanup_buffer_ struct ss_buffer auxv = {};
	uint64_t entry;

	target->arch = &ss_arch_host;
	if (ss_io_read_record(target->proc_fd, "auxv", RECORD_MAX, &auxv) != 0 ||
	    ss_auxv_word(auxv.bytes, auxv.size) != sizeof(uint32_t))
		return NULL;
	target->arch = &ss_arch_i386;
	if (ss_arch_i386.attach &&
	    ss_auxv_find(auxv.bytes, auxv.size, sizeof(uint32_t), SYSINFO, &entry))
		return NULL;
	return ss_error_new(SS_ERROR_UNSUPPORTED,
			    "process %d runs a 32-bit program%s, which is not supported",
			    target->pid, ss_arch_i386.attach ? " of x32" : "");
}

static struct ss_error *open_target(pid_t pid, bool listing, struct ss_target **ret)
{
	if (pid <= 0)
		return ss_error_new(SS_ERROR_INVALID,
				    "%d is not a valid pid: pids are positive", pid);
	_cleanup_(ss_target_cleanup) struct ss_target *target =
		calloc(1, sizeof(*target));
	if (!target)
		return ss_error_no_memory();
	target->proc_fd = target->task_fd = target->root_fd = target->procfs_fd = -1;
	target->held_mem_fd = -1;
	target->arch = &ss_arch_host;
	target->keep_max = ss_io_keep_max();
	target->listing = listing;
	struct ss_error *error = open_process(pid, target);
	if (!error)
		error = check_kind(target);
	if (!error)
		error = check_listing(target);
	if (!error && !listing)
		error = check_access(target);
	if (!error && !listing)
		error = ss_target_find_arch(target);
	if (!error)
		*ret = take_ptr(target);
	return error;
}

struct ss_error *ss_target_open(pid_t pid, struct ss_target **ret)
{
	return open_target(pid, false, ret);
}

struct ss_error *ss_target_open_listing(pid_t pid, struct ss_target **ret)
{
	return open_target(pid, true, ret);
}

struct ss_error *ss_target_owner(const struct ss_target *target, uid_t *ret_uid,
				 gid_t *ret_gid)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;

	if (!ss_target_read_status(target, target->pid, &text, &status))
		return no_process(target->pid);
	*ret_uid = status.uid[1];
	*ret_gid = status.gid[1];
	return NULL;
}

/* Kills a child that was not resumed; reaps a child that has ended. */
static void reap(struct ss_target *target)
{
	struct ss_child child = { .pid = target->pid, .channel = -1 };

	if (target->stopped_at_exec)
		(void)ss_child_end(&child);
	else
		(void)ss_child_wait(&child, 0); /* or it continues */
}

void ss_target_close(struct ss_target *target)
{
	if (!target)
		return;
	if (target->spawned)
		reap(target);
	close_directories(target);
	close_cleanup(&target->root_fd);
	close_cleanup(&target->procfs_fd);
	close_cleanup(&target->held_mem_fd);
	ss_kept_files_free(target->kept);
	free(target);
}

bool ss_target_has_page(const struct ss_target *target, uint64_t address)
{
	/* Documentation/admin-guide/mm/pagemap.rst: swapped, or present. */
	const uint64_t there = UINT64_C(3) << 62;
	_cleanup_close_ int fd = openat(target->proc_fd, "pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	uint64_t number = address / (uint64_t)sysconf(_SC_PAGESIZE);

	return fd >= 0 &&
	       ss_io_pread(fd, &entry, sizeof(entry), number * sizeof(entry)) ==
		       (ssize_t)sizeof(entry) &&
	       (entry & there);
}

enum { TEXT_MAX = 1 << 20 };

/* proc_pid_task_tid_children(5): ids, each followed by a space. */
static bool add_children(const struct ss_target *target, const char *tid,
			 struct ss_buffer *text, struct ss_children *ret)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%.20s/children", tid); /* always fits */
	if (ss_io_read_path(target->task_fd, path, TEXT_MAX, text) != 0)
		return true;
	struct ss_scan scan = { .at = text->bytes, .end = text->bytes + text->size };
	for (pid_t pid; ss_scan_next_pid(&scan, &pid);) {
		pid_t *slot = ss_vector_push(&ret->pids);
		if (!slot)
			return false;
		*slot = pid;
	}
	return true;
}

bool ss_target_list_children(const struct ss_target *target, struct ss_children *ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	DIR *dir = ss_io_open_directory(target->task_fd, ".");
	bool whole = true;

	ret->pids.count = 0;
	if (!dir)
		return true;
	for (struct dirent *entry; whole && (entry = readdir(dir));) {
		if (entry->d_name[0] != '.')
			whole = add_children(target, entry->d_name, &text, ret);
	}
	(void)closedir(dir); /* only read from */
	return whole;
}

bool ss_target_is_exiting(const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat;
	pid_t live = ss_target_find_live(target);

	return !live || !ss_target_read_stat(target, live, &text, &stat) || stat.exiting;
}

void ss_target_describe(const struct ss_target *target, char **name, char **executable)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat;
	char path[PATH_MAX];

	*name = *executable = NULL;
	if (ss_target_read_stat(target, target->pid, &text, &stat))
		*name = strdup(stat.comm);
	ssize_t n = readlinkat(target->proc_fd, "exe", path, sizeof(path));
	if (n > 0)
		*executable = strndup(path, (size_t)n);
}
