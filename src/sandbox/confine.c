#include "sandbox/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/wait.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"

/*
 * Restricts the system calls of a confined process.
 */

/* Calls that are not always allowed. A filter cannot see the flags of openat2(). */
enum filter_calls {
	FILTER_OPEN = 1 << 0, /* open() and openat(), for reading only */
	FILTER_OPENAT2 = 1 << 1,
	FILTER_RECVMSG = 1 << 2, /* it receives open files */
};

/* landlock(7); headers before Linux 5.13 lack it. Its calls have the same numbers on all
   architectures. FIRST_WRITES: all access rights of version 1 except reading, that is
   execute, write, and bits 4 to 12: removing and creating files of any kind. */
enum {
	CREATE_RULESET = 444,
	RESTRICT_SELF = 446,
	ASK_VERSION = 1,
	FIRST_WRITES = 1 << 0 | 1 << 1 | 0x1ff << 4,
	TRUNCATE = 1 << 14,
	TRUNCATE_VERSION = 3,
};

/* Forbids to create, change and remove files by name, also by openat2(), with Landlock
   (Linux 5.13). False: this kernel cannot. */
static bool syscall_filter_forbid_writing(void)
{
	long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
	uint64_t handled = FIRST_WRITES; /* no rule grants any of them */

	if (version < 1)
		return false;
	if (version >= TRUNCATE_VERSION)
		handled |= TRUNCATE;
	_cleanup_close_ int fd =
		(int)syscall(CREATE_RULESET, &handled, sizeof(handled), 0);
	return fd >= 0 && syscall(RESTRICT_SELF, fd, 0) == 0;
}

static const int allowed[] = {
	SCMP_SYS(brk),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(close),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(fadvise64),
	SCMP_SYS(fstat),
	SCMP_SYS(fstatfs),
	SCMP_SYS(futex),
	SCMP_SYS(getcwd),
	SCMP_SYS(getdents64),
	SCMP_SYS(getegid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getpid),
	SCMP_SYS(getrandom),
	SCMP_SYS(getrusage),
	SCMP_SYS(gettid),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(getuid),
	SCMP_SYS(lseek),
	SCMP_SYS(lstat),
	SCMP_SYS(madvise),
	SCMP_SYS(mincore),
	SCMP_SYS(mremap),
	SCMP_SYS(munmap),
	SCMP_SYS(newfstatat),
	SCMP_SYS(pread64),
	SCMP_SYS(preadv),
	SCMP_SYS(read),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(readv),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(stat),
	SCMP_SYS(statx),
	SCMP_SYS(sysinfo),
	SCMP_SYS(time),
	SCMP_SYS(uname),
	SCMP_SYS(write),
	SCMP_SYS(writev),
};

static const int deadly[] = {
	SCMP_SYS(bpf),
	SCMP_SYS(connect),
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(kill),
	SCMP_SYS(mount),
	SCMP_SYS(pidfd_send_signal),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(ptrace),
	SCMP_SYS(socket),
	SCMP_SYS(tkill),
	SCMP_SYS(unshare),
};

static bool add_plain(scmp_filter_ctx filter)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(allowed); i++) {
		if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0) < 0)
			return false;
	}
	/* Before Linux 4.14 this kills the thread only: there is but one. */
	for (size_t i = 0; i < SS_ARRAY_SIZE(deadly); i++) {
		if (seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, deadly[i], 0) < 0)
			return false;
	}
	return true;
}

/* Allows a call if none of bits is set in the argument with that index. */
static bool add_without(scmp_filter_ctx filter, int call, unsigned argument,
			uint64_t bits)
{
	const struct scmp_arg_cmp clear =
		SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, bits, 0);

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &clear) == 0;
}

static bool add_equal(scmp_filter_ctx filter, int call, unsigned argument, uint64_t value)
{
	const struct scmp_arg_cmp equal = { .arg = argument,
					    .op = SCMP_CMP_EQ,
					    .datum_a = value };

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &equal) == 0;
}

static bool add_open(scmp_filter_ctx filter)
{
	/* O_TMPFILE includes O_DIRECTORY. */
	const uint64_t writing = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND |
				 (O_TMPFILE & ~O_DIRECTORY);

	return add_without(filter, SCMP_SYS(open), 1, writing) &&
	       add_without(filter, SCMP_SYS(openat), 2, writing);
}

/* RLIMIT_DATA limits private memory only. */
static bool add_mmap(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp private[] = {
		SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
		SCMP_CMP64(3, SCMP_CMP_MASKED_EQ, MAP_TYPE | MAP_GROWSDOWN | MAP_HUGETLB,
			   MAP_PRIVATE),
	};

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap),
				      SS_ARRAY_SIZE(private), private) == 0;
}

static bool add_conditional(scmp_filter_ctx filter)
{
	return add_mmap(filter) &&
	       add_without(filter, SCMP_SYS(mprotect), 2, PROT_EXEC) &&
	       /* getrlimit(), of libc: the size of the stack */
	       add_equal(filter, SCMP_SYS(prlimit64), 2, 0) &&
	       add_equal(filter, SCMP_SYS(fcntl), 1, F_GETFD) &&
	       add_equal(filter, SCMP_SYS(fcntl), 1, F_GETFL) &&
	       add_equal(filter, SCMP_SYS(fcntl), 1, F_SETFD) &&
	       add_equal(filter, SCMP_SYS(fcntl), 1, F_DUPFD_CLOEXEC) &&
	       /* abort() */
	       add_equal(filter, SCMP_SYS(tgkill), 0, (uint64_t)getpid());
}

/*
 * Loads a seccomp filter. It allows reading files, managing private memory and writing to
 * open files, and calls (enum filter_calls). Calls that interpreting never makes (starting
 * programs, sockets, access to other processes) kill the process; all others fail with EPERM.
 * False: the kernel refused.
 */
static bool syscall_filter_load(unsigned calls)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	bool ok = filter && add_plain(filter) && add_conditional(filter);

	if (ok && calls & FILTER_OPEN)
		ok = add_open(filter);
	if (ok && calls & FILTER_OPENAT2)
		ok = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat2), 0) == 0;
	if (ok && calls & FILTER_RECVMSG)
		ok = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(recvmsg), 0) == 0;
	/* A binary tree, if this libseccomp has it: faster than a list. */
	(void)(filter && seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2));
	ok = ok && seccomp_load(filter) == 0;
	seccomp_release(filter);
	return ok;
}

/* The kernel allocates the lowest free descriptor: after this many free ones, no more of
   ours are expected. */
enum { GAP_MAX = 256 };

/* A debug file for each of the modules that a session keeps. */
enum { MORE_FILES = 4096 };

/*
 * User ids that no account has, one for each process id (which is below 2^22): systemd and the
 * tools for containers leave them alone.
 */
enum { OWN_UID = 0x7fc00000, PID_MASK = 0x3fffff };

/* Names are demangled recursively. */
#define STACK_MAX ((uint64_t)64 << 20)

/* The number of close_range(2); headers before Linux 5.9 lack it. */
enum { CLOSE_RANGE = 436 };

static bool is_needed(int fd, int flags, bool keep_directories)
{
	int descriptor_flags = fcntl(fd, F_GETFD);
	struct stat status;
	struct statfs fs;

	if (descriptor_flags < 0 || !(descriptor_flags & FD_CLOEXEC) ||
	    fstat(fd, &status) != 0)
		return false;
	if (flags & O_PATH)
		return keep_directories && S_ISDIR(status.st_mode);
	/* Not /proc/PID/mem: the child asks for what it may read. Where fstatfs() is refused,
	   files of procfs can be told by their size, which is 0. */
	bool is_proc = fstatfs(fd, &fs) == 0 ? fs.f_type == PROC_SUPER_MAGIC :
					       status.st_size == 0;
	return (flags & O_ACCMODE) == O_RDONLY && S_ISREG(status.st_mode) && !is_proc;
}

/* Returns the highest descriptor that is left. */
static int close_others(const struct ss_confinement *c)
{
	int highest = STDERR_FILENO;
	int last_open = STDERR_FILENO;
	int fd = STDERR_FILENO + 1;

	for (; fd - last_open <= GAP_MAX; fd++) {
		int flags = fcntl(fd, F_GETFL);
		if (flags < 0)
			continue;
		last_open = fd;
		if (fd == c->more_output || is_needed(fd, flags, c->keep_directories))
			highest = fd;
		else
			(void)close(fd); /* nothing was written through it here */
	}
	(void)syscall(CLOSE_RANGE, fd, ~0U, 0); /* before Linux 5.9 these stay open */
	return highest;
}

void ss_confine_files(const struct ss_confinement *confinement)
{
	uint64_t files =
		(uint64_t)close_others(confinement) + MORE_FILES + confinement->receives;

	ss_child_limit(RLIMIT_NOFILE, files, files);
}

static void limit_resources(const struct ss_confinement *c)
{
	ss_child_limit(RLIMIT_CORE, 0, 0);
	ss_child_limit(RLIMIT_FSIZE, c->output, c->output);
	if (c->cpu_s) /* SIGXCPU comes first and names the cause */
		ss_child_limit(RLIMIT_CPU, c->cpu_s, c->cpu_s + 1);
	ss_child_limit(RLIMIT_NPROC, 0, 0);
	ss_child_limit(RLIMIT_MEMLOCK, 0, 0);
	/* RLIMIT_DATA counts neither the stack nor shared memory; the filter forbids to map
	   more of both. */
	ss_child_limit(RLIMIT_STACK, STACK_MAX, STACK_MAX);
	if (c->memory)
		ss_child_limit(RLIMIT_DATA, c->memory, c->memory);
}

/* If memory runs out, the kernel is to kill this process rather than the target. */
static void raise_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "1000", 4); /* best effort */
	(void)close(fd);	     /* written unbuffered */
}

/* Returns whether the process has a user id of its own: then no user but root can send it
   signals, and there is no other process whose memory it may access. A user namespace may
   lack that id. If the kernel refuses the other one as well, the process keeps its ids and
   loses its capabilities below. */
static bool change_ids(const struct ss_confinement *c)
{
	const uid_t own = OWN_UID + ((uid_t)getpid() & PID_MASK);

	(void)!setgroups(0, NULL);
	(void)!setresgid(c->gid, c->gid, c->gid);
	if (setresuid(own, own, own) == 0)
		return true;
	(void)!setresuid(c->uid, c->uid, c->uid);
	return false;
}

/* Needs CAP_SETPCAP, which setresuid() takes away: to be called before. Without it the
   set stays; it matters only to execve(), which the filter forbids. */
static void drop_bounding_set(void)
{
	for (unsigned long number = 0; number < 64; number++) {
		if (prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0)
			break; /* EPERM; EINVAL: the kernel knows no more */
	}
}

static bool drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version =
							   _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* Linux 4.3 */
	return syscall(SYS_capset, &header, none) == 0;
}

/* A change of ids clears the signal: to be called afterwards. */
static bool end_with_parent(pid_t parent)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent;
}

bool ss_confine(const struct ss_confinement *confinement, unsigned *ret)
{
	bool is_foreign = confinement->change_ids && confinement->uid != getuid();
	/* That it was started by: it would end with that one until the ids change. */
	const pid_t parent = getppid();

	*ret = 0;
	raise_oom_score();
	limit_resources(confinement);
	drop_bounding_set();
	bool is_apart = confinement->change_ids && change_ids(confinement);
	if (!drop_capabilities())
		*ret |= SS_REFUSED_CAPABILITIES;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail */
	if (!end_with_parent(parent))
		return false;
	/* Landlock and seccomp require it of a process without CAP_SYS_ADMIN. */
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	bool has_landlock = syscall_filter_forbid_writing();
	/* Landlock also keeps it from the memory of other processes of its user in /proc. The
	   flags of openat2(2) are out of reach for seccomp. */
	bool needs_openat2 = is_apart && confinement->keep_directories;
	unsigned calls = (has_landlock || needs_openat2 ? FILTER_OPENAT2 : 0U) |
			 (has_landlock || is_apart ? FILTER_OPEN : 0U) |
			 (confinement->receives > 0 ? FILTER_RECVMSG : 0U);
	if (syscall_filter_load(calls))
		return true;
	*ret |= SS_REFUSED_FILTER;
	if (has_landlock || is_apart || !is_foreign)
		return true;
	*ret |= SS_REFUSED_ALL;
	return false;
}

/* Failures ----------------------------------------------------------------------- */

struct ss_sandbox_failure ss_confine_failure(int status, unsigned refused)
{
	struct ss_sandbox_failure failure = { .cause = SS_SANDBOX_EXIT, .module = -1 };

	if (!WIFEXITED(status))
		failure.cause = SS_SANDBOX_SIGNAL;
	else if (refused & SS_REFUSED_ALL)
		failure.cause = SS_SANDBOX_REFUSED;
	failure.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
	return failure;
}

bool ss_confine_was_killed(const struct ss_sandbox_failure *failure)
{
	return failure->cause == SS_SANDBOX_SIGNAL && failure->code == SIGKILL;
}
