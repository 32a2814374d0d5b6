/*
 * System calls by name. Numbers differ between processors: each struct ss_arch has a
 * table from its numbers to these names, and everything outside arch/ uses the names.
 */
#ifndef SS_ARCH_SYSCALL_H
#define SS_ARCH_SYSCALL_H

#include <stdint.h>

/* The calls that stacksnap interprets. To add one, add it here and to the table of each
   processor that has it. */
enum ss_syscall_id {
	SS_SYS_UNKNOWN, /* no call, or one that is not interpreted */
	SS_SYS_ACCEPT,
	SS_SYS_ACCEPT4,
	SS_SYS_CLOCK_NANOSLEEP,
	SS_SYS_CLONE,
	SS_SYS_CLONE3,
	SS_SYS_CLOSE,
	SS_SYS_CONNECT,
	SS_SYS_COPY_FILE_RANGE,
	SS_SYS_EPOLL_PWAIT,
	SS_SYS_EPOLL_PWAIT2,
	SS_SYS_EPOLL_WAIT,
	SS_SYS_FALLOCATE,
	SS_SYS_FCNTL,
	SS_SYS_FDATASYNC,
	SS_SYS_FLOCK,
	SS_SYS_FORK,
	SS_SYS_FSYNC,
	SS_SYS_FTRUNCATE,
	SS_SYS_FUTEX,
	SS_SYS_FUTEX_WAIT,
	SS_SYS_FUTEX_WAITV,
	SS_SYS_GETDENTS64,
	SS_SYS_IO_GETEVENTS,
	SS_SYS_IO_PGETEVENTS,
	SS_SYS_IO_URING_ENTER,
	SS_SYS_IOCTL,
	SS_SYS_MQ_TIMEDRECEIVE,
	SS_SYS_MQ_TIMEDSEND,
	SS_SYS_MSGRCV,
	SS_SYS_MSGSND,
	SS_SYS_MSYNC,
	SS_SYS_NANOSLEEP,
	SS_SYS_OPEN,
	SS_SYS_OPENAT,
	SS_SYS_PAUSE,
	SS_SYS_POLL,
	SS_SYS_PPOLL,
	SS_SYS_PREAD64,
	SS_SYS_PREADV,
	SS_SYS_PREADV2,
	SS_SYS_PSELECT6,
	SS_SYS_PWRITE64,
	SS_SYS_PWRITEV,
	SS_SYS_PWRITEV2,
	SS_SYS_READ,
	SS_SYS_READV,
	SS_SYS_RECVFROM,
	SS_SYS_RECVMMSG,
	SS_SYS_RECVMSG,
	SS_SYS_RESTART_SYSCALL,
	SS_SYS_RT_SIGRETURN,
	SS_SYS_RT_SIGSUSPEND,
	SS_SYS_RT_SIGTIMEDWAIT,
	SS_SYS_SELECT,
	SS_SYS_SEMOP,
	SS_SYS_SEMTIMEDOP,
	SS_SYS_SENDFILE,
	SS_SYS_SENDMMSG,
	SS_SYS_SENDMSG,
	SS_SYS_SENDTO,
	SS_SYS_SPLICE,
	SS_SYS_SYNC,
	SS_SYS_SYNC_FILE_RANGE,
	SS_SYS_SYNCFS,
	SS_SYS_TEE,
	SS_SYS_VFORK,
	SS_SYS_VMSPLICE,
	SS_SYS_WAIT4,
	SS_SYS_WAITID,
	SS_SYS_WRITE,
	SS_SYS_WRITEV,
};

enum { SS_SYSCALL_ARGS = 6 };

/* A system call that a thread is blocked in. */
struct ss_syscall {
	long number; /* the processor's; -1: none */
	enum ss_syscall_id id;
	uint64_t args[SS_SYSCALL_ARGS];
};

#endif
