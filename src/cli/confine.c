#include "cli/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/filter.h"

/* Descriptors are given out from the lowest on: where so many follow each other that
   are closed, what is behind them is not ours. */
enum { GAP_MAX = 256 };

/* Files that may be open at once beyond those that are. */
enum { FILES_MORE = 64 };

/* The number of close_range(2), which headers before Linux 5.9 lack. */
enum { CLOSE_RANGE = 436 };

static bool may_stay(int fd, int flags, bool keep_places)
{
	struct stat status;

	if (flags & O_PATH)
		return keep_places && fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
	return (flags & O_ACCMODE) == O_RDONLY && fstat(fd, &status) == 0 &&
	       S_ISREG(status.st_mode);
}

static rlim_t close_others(bool keep_places)
{
	int last = STDERR_FILENO;
	int fd = last + 1;

	for (; fd - last <= GAP_MAX; fd++) {
		int flags = fcntl(fd, F_GETFL);
		if (flags < 0)
			continue;
		if (may_stay(fd, flags, keep_places))
			last = fd;
		else
			(void)close(fd); /* the parent has it, too */
	}
	(void)syscall(CLOSE_RANGE, fd, ~0U, 0); /* Linux 5.9; before it: a wish */
	return (rlim_t)last;
}

static void limit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit now = {};

	/* The libc's functions differ in the type of their first argument. */
	if (syscall(SYS_prlimit64, 0, resource, NULL, &now) < 0)
		return;
	now.rlim_max = SS_MIN(now.rlim_max, hard);
	now.rlim_cur = SS_MIN(SS_MIN(now.rlim_cur, soft), now.rlim_max);
	/* Lowering is always allowed. */
	(void)syscall(SYS_prlimit64, 0, resource, &now, NULL);
}

void ss_confine_files(bool keep_places)
{
	rlim_t last = close_others(keep_places);

	limit(RLIMIT_NOFILE, last + FILES_MORE, last + FILES_MORE);
}

/* AddressSanitizer takes terabytes of address space for itself. */
#if defined(__SANITIZE_ADDRESS__)
enum { LIMIT_MEMORY = 0 };
#else
enum { LIMIT_MEMORY = 1 };
#endif

static void limit_resources(const struct ss_confinement *c)
{
	limit(RLIMIT_CORE, 0, 0);
	limit(RLIMIT_FSIZE, c->output, c->output);
	limit(RLIMIT_CPU, c->cpu_s, c->cpu_s + 1); /* SIGXCPU first, which tells why */
	limit(RLIMIT_NPROC, 0, 0);
	limit(RLIMIT_MEMLOCK, 0, 0);
	if (LIMIT_MEMORY && c->memory)
		limit(RLIMIT_DATA, c->memory, c->memory);
}

/* Where memory runs out, this process is to go and not the one that is looked at. */
static void offer_to_be_killed(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "1000", 4); /* a wish */
	(void)close(fd);	     /* written unbuffered */
}

/* Where these are refused the process stays who it is, and loses its capabilities. */
static void change_ids(const struct ss_confinement *c)
{
	(void)!setgroups(0, NULL);
	(void)!setresgid(c->gid, c->gid, c->gid);
	(void)!setresuid(c->uid, c->uid, c->uid);
}

/* capabilities(7). The bounding set may be lowered with CAP_SETPCAP only. */
static bool drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version =
							   _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};

	for (unsigned long number = 0; number < 64; number++) {
		if (prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0)
			break;
	}
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* Linux 4.3 */
	return syscall(SYS_capset, &header, none) == 0;
}

/* Killed where the parent is. Changing who one is clears it, so that comes first. */
static bool end_with_parent(pid_t parent)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent;
}

bool ss_confine(const struct ss_confinement *confinement, unsigned *ret)
{
	*ret = 0;
	offer_to_be_killed();
	limit_resources(confinement);
	if (confinement->change_ids)
		change_ids(confinement);
	if (!drop_capabilities())
		*ret |= SS_REFUSED_CAPABILITIES;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail */
	if (!end_with_parent(confinement->parent))
		return false;
	/* An unprivileged process cannot have the other two without it. */
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	bool cannot_write = ss_filter_forbid_writing();
	if (!ss_filter_load(cannot_write || confinement->resolves_root))
		*ret |= SS_REFUSED_FILTER;
	return true;
}
