#include "sandbox/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/child.h"
#include "sandbox/syscall_filter.h"

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
	bool has_landlock = ss_syscall_filter_forbid_writing();
	/* Landlock also keeps it from the memory of other processes of its user in /proc. The
	   flags of openat2(2) are out of reach for seccomp. */
	bool needs_openat2 = is_apart && confinement->keep_directories;
	unsigned calls = (has_landlock || needs_openat2 ? SS_FILTER_OPENAT2 : 0U) |
			 (has_landlock || is_apart ? SS_FILTER_OPEN : 0U) |
			 (confinement->receives > 0 ? SS_FILTER_RECVMSG : 0U);
	if (ss_syscall_filter_load(calls))
		return true;
	*ret |= SS_REFUSED_FILTER;
	if (has_landlock || is_apart || !is_foreign)
		return true;
	*ret |= SS_REFUSED_ALL;
	return false;
}
