#include "sandbox/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/filter_program.h"

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

bool ss_syscall_filter_forbid_writing(void)
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

/* O_TMPFILE includes O_DIRECTORY. */
enum { WRITING = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY) };

/* Calls that are allowed with some arguments, which are numbered from 0. */
static const struct ss_filter_rule conditional[] = {
	{ SCMP_SYS(open), SCMP_ACT_ALLOW, SS_FILTER_CLEAR, 1, WRITING },
	{ SCMP_SYS(openat), SCMP_ACT_ALLOW, SS_FILTER_CLEAR, 2, WRITING },
	{ SCMP_SYS(mmap), SCMP_ACT_ALLOW, SS_FILTER_CLEAR, 2, PROT_EXEC },
	{ SCMP_SYS(mprotect), SCMP_ACT_ALLOW, SS_FILTER_CLEAR, 2, PROT_EXEC },
	/* getrlimit(), of libc: the size of the stack */
	{ SCMP_SYS(prlimit64), SCMP_ACT_ALLOW, SS_FILTER_EQUAL, 2, 0 },
	{ SCMP_SYS(fcntl), SCMP_ACT_ALLOW, SS_FILTER_EQUAL, 1, F_GETFD },
	{ SCMP_SYS(fcntl), SCMP_ACT_ALLOW, SS_FILTER_EQUAL, 1, F_GETFL },
	{ SCMP_SYS(fcntl), SCMP_ACT_ALLOW, SS_FILTER_EQUAL, 1, F_SETFD },
	{ SCMP_SYS(fcntl), SCMP_ACT_ALLOW, SS_FILTER_EQUAL, 1, F_DUPFD_CLOEXEC },
};

enum {
	RULES_MAX = SS_ARRAY_SIZE(allowed) + SS_ARRAY_SIZE(deadly) +
		    SS_ARRAY_SIZE(conditional) + 3,
};

struct rules {
	struct ss_filter_rule items[RULES_MAX];
	size_t count;
};

static void add(struct rules *rules, int call, uint32_t action)
{
	rules->items[rules->count++] =
		(struct ss_filter_rule){ .call = call, .action = action };
}

static int compare_calls(const void *a, const void *b)
{
	const struct ss_filter_rule *x = a;
	const struct ss_filter_rule *y = b;

	return (x->call > y->call) - (x->call < y->call);
}

static void fill(struct rules *rules, bool openat2, bool recvmsg)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(allowed); i++)
		add(rules, allowed[i], SCMP_ACT_ALLOW);
	/* Before Linux 4.14 this kills the thread only: there is but one. */
	for (size_t i = 0; i < SS_ARRAY_SIZE(deadly); i++)
		add(rules, deadly[i], SCMP_ACT_KILL_PROCESS);
	for (size_t i = 0; i < SS_ARRAY_SIZE(conditional); i++)
		rules->items[rules->count++] = conditional[i];
	/* abort() */
	rules->items[rules->count++] =
		(struct ss_filter_rule){ SCMP_SYS(tgkill), SCMP_ACT_ALLOW,
					 SS_FILTER_EQUAL, 0, (uint64_t)getpid() };
	if (openat2)
		add(rules, SCMP_SYS(openat2), SCMP_ACT_ALLOW);
	if (recvmsg)
		add(rules, SCMP_SYS(recvmsg), SCMP_ACT_ALLOW);
	qsort(rules->items, rules->count, sizeof(*rules->items), compare_calls);
}

bool ss_syscall_filter_load(bool openat2, bool recvmsg)
{
	struct ss_filter_program program;
	struct rules rules = {};

	fill(&rules, openat2, recvmsg);
	if (!ss_filter_program_make(rules.items, rules.count, seccomp_arch_native(),
				    SCMP_ACT_ERRNO(EPERM), &program))
		return false;
	const struct sock_fprog filter = {
		.len = (unsigned short)(SS_FILTER_CODE_MAX - program.first),
		.filter = program.code + program.first,
	};
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}
