#include "sandbox/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

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

bool ss_syscall_filter_load(unsigned calls)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	bool ok = filter && add_plain(filter) && add_conditional(filter);

	if (ok && calls & SS_FILTER_OPEN)
		ok = add_open(filter);
	if (ok && calls & SS_FILTER_OPENAT2)
		ok = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat2), 0) == 0;
	if (ok && calls & SS_FILTER_RECVMSG)
		ok = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(recvmsg), 0) == 0;
	/* A binary tree, if this libseccomp has it: faster than a list. */
	(void)(filter && seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2));
	ok = ok && seccomp_load(filter) == 0;
	seccomp_release(filter);
	return ok;
}
