#include "data/call.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <time.h>

#include "base/cleanup.h"

#define CALL(id, ...) [id] = { id, __VA_ARGS__ }
/* Arguments are numbered from 1; 0 is none. */
#define FD(n) .fd = (n)
#define MS(n) .timeout = (n), .timeout_type = SS_TIMEOUT_MS
#define SPEC(n) .timeout = (n), .timeout_type = SS_TIMEOUT_SPEC
#define TIMESPEC(n)                                                                      \
	{                                                                                \
		.arg = (n), .size = sizeof(struct timespec)                              \
	}
#define ONE(n, type)                                                                     \
	{                                                                                \
		.arg = (n), .size = sizeof(type)                                         \
	}
#define MANY(n, type, count)                                                             \
	{                                                                                \
		.arg = (n), .size = sizeof(type), .count_arg = (count)                   \
	}
#define PATH(n) .path = (n), .memory = { { .arg = (n), .size = PATH_BYTES } }
/* An fd_set has a bit for each descriptor below the first argument. */
#define BITS(n)                                                                          \
	{                                                                                \
		.arg = (n), .size = 0, .count_arg = 1                                    \
	}

enum { PATH_BYTES = 255 };

/* clang-format off */
static const struct ss_call calls[] = {
	CALL(SS_SYS_READ, SS_WAIT_READ, FD(1)),
	CALL(SS_SYS_PREAD64, SS_WAIT_READ, FD(1)),
	CALL(SS_SYS_READV, SS_WAIT_READ, FD(1)),
	CALL(SS_SYS_PREADV, SS_WAIT_READ, FD(1)),
	CALL(SS_SYS_PREADV2, SS_WAIT_READ, FD(1)),
	CALL(SS_SYS_GETDENTS64, SS_WAIT_READ, FD(1)),
	CALL(SS_SYS_FSTAT, SS_WAIT_OTHER, FD(1)),
	CALL(SS_SYS_WRITE, SS_WAIT_WRITE, FD(1)),
	CALL(SS_SYS_PWRITE64, SS_WAIT_WRITE, FD(1)),
	CALL(SS_SYS_WRITEV, SS_WAIT_WRITE, FD(1)),
	CALL(SS_SYS_PWRITEV, SS_WAIT_WRITE, FD(1)),
	CALL(SS_SYS_PWRITEV2, SS_WAIT_WRITE, FD(1)),
	CALL(SS_SYS_SENDFILE, SS_WAIT_WRITE, FD(1)),
	CALL(SS_SYS_VMSPLICE, SS_WAIT_WRITE, FD(1)),
	CALL(SS_SYS_SPLICE, SS_WAIT_OTHER, FD(1)),
	CALL(SS_SYS_TEE, SS_WAIT_OTHER, FD(1)),
	CALL(SS_SYS_COPY_FILE_RANGE, SS_WAIT_IO, FD(1)),
	CALL(SS_SYS_FSYNC, SS_WAIT_IO, FD(1)),
	CALL(SS_SYS_FDATASYNC, SS_WAIT_IO, FD(1)),
	CALL(SS_SYS_SYNCFS, SS_WAIT_IO, FD(1)),
	CALL(SS_SYS_SYNC_FILE_RANGE, SS_WAIT_IO, FD(1)),
	CALL(SS_SYS_FALLOCATE, SS_WAIT_IO, FD(1)),
	CALL(SS_SYS_FTRUNCATE, SS_WAIT_IO, FD(1)),
	CALL(SS_SYS_SYNC, SS_WAIT_IO, FD(0)),
	CALL(SS_SYS_MSYNC, SS_WAIT_IO, FD(0)),
	CALL(SS_SYS_CLOSE, SS_WAIT_OTHER, FD(1)),
	CALL(SS_SYS_IOCTL, SS_WAIT_OTHER, FD(1)),
	CALL(SS_SYS_OPEN, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_OPENAT, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_OPENAT2, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_CREAT, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_STAT, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_LSTAT, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_NEWFSTATAT, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_STATX, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_STATFS, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_ACCESS, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_FACCESSAT, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_FACCESSAT2, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_READLINK, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_READLINKAT, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_CHDIR, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_EXECVE, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_MKDIR, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_MKDIRAT, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_RENAME, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_RENAMEAT, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_RENAMEAT2, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_UNLINK, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_UNLINKAT, SS_WAIT_OTHER, PATH(2)),
	CALL(SS_SYS_TRUNCATE, SS_WAIT_OTHER, PATH(1)),
	CALL(SS_SYS_ACCEPT, SS_WAIT_ACCEPT, FD(1)),
	CALL(SS_SYS_ACCEPT4, SS_WAIT_ACCEPT, FD(1)),
	CALL(SS_SYS_CONNECT, SS_WAIT_CONNECT, FD(1), .memory = { MANY(2, uint8_t, 3) }),
	CALL(SS_SYS_RECVFROM, SS_WAIT_RECEIVE, FD(1)),
	CALL(SS_SYS_RECVMSG, SS_WAIT_RECEIVE, FD(1)),
	CALL(SS_SYS_RECVMMSG, SS_WAIT_RECEIVE, FD(1), SPEC(5), .memory = { TIMESPEC(5) }),
	CALL(SS_SYS_SENDTO, SS_WAIT_SEND, FD(1)),
	CALL(SS_SYS_SENDMSG, SS_WAIT_SEND, FD(1)),
	CALL(SS_SYS_SENDMMSG, SS_WAIT_SEND, FD(1)),
	CALL(SS_SYS_POLL, SS_WAIT_POLL, MS(3), .memory = { MANY(1, struct pollfd, 2) }),
	CALL(SS_SYS_PPOLL, SS_WAIT_POLL, SPEC(3),
	  .memory = { MANY(1, struct pollfd, 2), TIMESPEC(3) }),
	CALL(SS_SYS_SELECT, SS_WAIT_SELECT, .timeout = 5, .timeout_type = SS_TIMEOUT_VAL,
	  .memory = { BITS(2), BITS(3), BITS(4), ONE(5, struct timeval) }),
	CALL(SS_SYS_PSELECT6, SS_WAIT_SELECT, SPEC(5),
	  .memory = { BITS(2), BITS(3), BITS(4), TIMESPEC(5) }),
	CALL(SS_SYS_EPOLL_WAIT, SS_WAIT_EPOLL, FD(1), MS(4)),
	CALL(SS_SYS_EPOLL_PWAIT, SS_WAIT_EPOLL, FD(1), MS(4)),
	CALL(SS_SYS_EPOLL_PWAIT2, SS_WAIT_EPOLL, FD(1), SPEC(4), .memory = { TIMESPEC(4) }),
	CALL(SS_SYS_NANOSLEEP, SS_WAIT_SLEEP, SPEC(1), .memory = { TIMESPEC(1) }),
	CALL(SS_SYS_CLOCK_NANOSLEEP, SS_WAIT_SLEEP, SPEC(3), .memory = { TIMESPEC(3) }),
	CALL(SS_SYS_FUTEX, SS_WAIT_FUTEX, .memory = { TIMESPEC(4) }),
	CALL(SS_SYS_FUTEX_WAIT, SS_WAIT_FUTEX, .memory = { TIMESPEC(5) }),
	CALL(SS_SYS_FUTEX_WAITV, SS_WAIT_FUTEX, .memory = { TIMESPEC(4) }),
	CALL(SS_SYS_WAIT4, SS_WAIT_CHILD, FD(0)),
	CALL(SS_SYS_WAITID, SS_WAIT_CHILD, FD(0)),
	CALL(SS_SYS_VFORK, SS_WAIT_CHILD, FD(0)),
	CALL(SS_SYS_CLONE, SS_WAIT_CHILD, FD(0)),
	CALL(SS_SYS_CLONE3, SS_WAIT_CHILD, .memory = { ONE(1, uint64_t) }),
	CALL(SS_SYS_FLOCK, SS_WAIT_FILE_LOCK, FD(1)),
	CALL(SS_SYS_FCNTL, SS_WAIT_FILE_LOCK, FD(1), .memory = { ONE(3, struct flock) }),
	CALL(SS_SYS_PAUSE, SS_WAIT_SIGNAL, FD(0)),
	CALL(SS_SYS_RT_SIGSUSPEND, SS_WAIT_SIGNAL, .memory = { ONE(1, uint64_t) }),
	CALL(SS_SYS_RT_SIGTIMEDWAIT, SS_WAIT_SIGNAL, SPEC(3),
	  .memory = { ONE(1, uint64_t), TIMESPEC(3) }),
	CALL(SS_SYS_SEMOP, SS_WAIT_IPC, .memory = { MANY(2, struct sembuf, 3) }),
	CALL(SS_SYS_SEMTIMEDOP, SS_WAIT_IPC, SPEC(4),
	  .memory = { MANY(2, struct sembuf, 3), TIMESPEC(4) }),
	CALL(SS_SYS_MSGRCV, SS_WAIT_IPC, FD(0)),
	CALL(SS_SYS_MSGSND, SS_WAIT_IPC, FD(0)),
	CALL(SS_SYS_MQ_TIMEDRECEIVE, SS_WAIT_IPC, FD(1), .timeout = 5,
	  .timeout_type = SS_TIMEOUT_REALTIME, .memory = { TIMESPEC(5) }),
	CALL(SS_SYS_MQ_TIMEDSEND, SS_WAIT_IPC, FD(1), .timeout = 5,
	  .timeout_type = SS_TIMEOUT_REALTIME, .memory = { TIMESPEC(5) }),
	CALL(SS_SYS_IO_GETEVENTS, SS_WAIT_IO, SPEC(5), .memory = { TIMESPEC(5) }),
	CALL(SS_SYS_IO_PGETEVENTS, SS_WAIT_IO, SPEC(5), .memory = { TIMESPEC(5) }),
	CALL(SS_SYS_IO_URING_ENTER, SS_WAIT_IO, FD(1), .memory = { ONE(5, uint64_t[3]) }),
};
/* clang-format on */

const struct ss_call *ss_call_find(enum ss_syscall_id id)
{
	return (size_t)id < SS_ARRAY_SIZE(calls) && calls[id].id ? &calls[id] : NULL;
}

bool ss_wait_kind_transfers(enum ss_wait_kind kind)
{
	return kind == SS_WAIT_READ || kind == SS_WAIT_WRITE || kind == SS_WAIT_RECEIVE ||
	       kind == SS_WAIT_SEND;
}

size_t ss_call_memory_size(const struct ss_call_memory *memory,
			   const struct ss_syscall *call)
{
	enum { WORD_BITS = 64, SET_MAX = 1024 * 1024 };
	uint64_t count = memory->count_arg ? call->args[memory->count_arg - 1] : 1;

	if (memory->size == 0) { /* the kernel uses an int, and whole words of bits */
		int32_t bits = (int32_t)(uint32_t)count;
		if (bits <= 0 || bits > SET_MAX)
			return 0;
		return SS_MIN(((size_t)bits + WORD_BITS - 1) / WORD_BITS * 8,
			      (size_t)SS_CALL_BYTES_MAX);
	}
	count = SS_MIN(count & UINT32_MAX, (uint64_t)SS_CALL_BYTES_MAX / memory->size);
	return (size_t)count * memory->size;
}
