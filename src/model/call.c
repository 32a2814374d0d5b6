#include "model/call.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "base/cleanup.h"

/* Arguments are counted from 1 here, so that 0 is none. */
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
/* An fd_set has a bit for each descriptor below the first argument. */
#define BITS(n)                                                                          \
	{                                                                                \
		.arg = (n), .size = 0, .count_arg = 1                                    \
	}

enum { PATH_BYTES = 255 };

/* clang-format off */
static const struct ss_call calls[] = {
	{ SYS_read, SS_WAIT_READ, FD(1) },
	{ SYS_pread64, SS_WAIT_READ, FD(1) },
	{ SYS_readv, SS_WAIT_READ, FD(1) },
	{ SYS_preadv, SS_WAIT_READ, FD(1) },
	{ SYS_preadv2, SS_WAIT_READ, FD(1) },
	{ SYS_getdents64, SS_WAIT_READ, FD(1) },
	{ SYS_write, SS_WAIT_WRITE, FD(1) },
	{ SYS_pwrite64, SS_WAIT_WRITE, FD(1) },
	{ SYS_writev, SS_WAIT_WRITE, FD(1) },
	{ SYS_pwritev, SS_WAIT_WRITE, FD(1) },
	{ SYS_pwritev2, SS_WAIT_WRITE, FD(1) },
	{ SYS_sendfile, SS_WAIT_WRITE, FD(1) },
	{ SYS_vmsplice, SS_WAIT_WRITE, FD(1) },
	{ SYS_splice, SS_WAIT_OTHER, FD(1) },
	{ SYS_tee, SS_WAIT_OTHER, FD(1) },
	{ SYS_copy_file_range, SS_WAIT_IO, FD(1) },
	{ SYS_fsync, SS_WAIT_IO, FD(1) },
	{ SYS_fdatasync, SS_WAIT_IO, FD(1) },
	{ SYS_syncfs, SS_WAIT_IO, FD(1) },
	{ SYS_sync_file_range, SS_WAIT_IO, FD(1) },
	{ SYS_fallocate, SS_WAIT_IO, FD(1) },
	{ SYS_ftruncate, SS_WAIT_IO, FD(1) },
	{ SYS_sync, SS_WAIT_IO, FD(0) },
	{ SYS_msync, SS_WAIT_IO, FD(0) },
	{ SYS_close, SS_WAIT_OTHER, FD(1) },
	{ SYS_ioctl, SS_WAIT_OTHER, FD(1) },
	{ SYS_open, SS_WAIT_OTHER, .memory = { { .arg = 1, .size = PATH_BYTES } } },
	{ SYS_openat, SS_WAIT_OTHER, .memory = { { .arg = 2, .size = PATH_BYTES } } },
	{ SYS_accept, SS_WAIT_ACCEPT, FD(1) },
	{ SYS_accept4, SS_WAIT_ACCEPT, FD(1) },
	{ SYS_connect, SS_WAIT_CONNECT, FD(1), .memory = { ONE(2, struct sockaddr_in6) } },
	{ SYS_recvfrom, SS_WAIT_RECEIVE, FD(1) },
	{ SYS_recvmsg, SS_WAIT_RECEIVE, FD(1) },
	{ SYS_recvmmsg, SS_WAIT_RECEIVE, FD(1), SPEC(5), .memory = { TIMESPEC(5) } },
	{ SYS_sendto, SS_WAIT_SEND, FD(1) },
	{ SYS_sendmsg, SS_WAIT_SEND, FD(1) },
	{ SYS_sendmmsg, SS_WAIT_SEND, FD(1) },
	{ SYS_poll, SS_WAIT_POLL, MS(3), .memory = { MANY(1, struct pollfd, 2) } },
	{ SYS_ppoll, SS_WAIT_POLL, SPEC(3),
	  .memory = { MANY(1, struct pollfd, 2), TIMESPEC(3) } },
	{ SYS_select, SS_WAIT_SELECT, .timeout = 5, .timeout_type = SS_TIMEOUT_VAL,
	  .memory = { BITS(2), BITS(3), BITS(4), ONE(5, struct timeval) } },
	{ SYS_pselect6, SS_WAIT_SELECT, SPEC(5),
	  .memory = { BITS(2), BITS(3), BITS(4), TIMESPEC(5) } },
	{ SYS_epoll_wait, SS_WAIT_EPOLL, FD(1), MS(4) },
	{ SYS_epoll_pwait, SS_WAIT_EPOLL, FD(1), MS(4) },
	{ SYS_epoll_pwait2, SS_WAIT_EPOLL, FD(1), SPEC(4), .memory = { TIMESPEC(4) } },
	{ SYS_nanosleep, SS_WAIT_SLEEP, SPEC(1), .memory = { TIMESPEC(1) } },
	{ SYS_clock_nanosleep, SS_WAIT_SLEEP, SPEC(3), .memory = { TIMESPEC(3) } },
	{ SYS_futex, SS_WAIT_FUTEX, .memory = { TIMESPEC(4) } },
	{ SYS_wait4, SS_WAIT_CHILD, FD(0) },
	{ SYS_waitid, SS_WAIT_CHILD, FD(0) },
	{ SYS_vfork, SS_WAIT_CHILD, FD(0) },
	{ SYS_clone, SS_WAIT_CHILD, FD(0) },
	{ SYS_clone3, SS_WAIT_CHILD, .memory = { ONE(1, uint64_t) } },
	{ SYS_flock, SS_WAIT_FILE_LOCK, FD(1) },
	{ SYS_fcntl, SS_WAIT_FILE_LOCK, FD(1), .memory = { ONE(3, struct flock) } },
	{ SYS_pause, SS_WAIT_SIGNAL, FD(0) },
	{ SYS_rt_sigsuspend, SS_WAIT_SIGNAL, .memory = { ONE(1, uint64_t) } },
	{ SYS_rt_sigtimedwait, SS_WAIT_SIGNAL, SPEC(3),
	  .memory = { ONE(1, uint64_t), TIMESPEC(3) } },
	{ SYS_semop, SS_WAIT_IPC, .memory = { MANY(2, struct sembuf, 3) } },
	{ SYS_semtimedop, SS_WAIT_IPC, SPEC(4),
	  .memory = { MANY(2, struct sembuf, 3), TIMESPEC(4) } },
	{ SYS_msgrcv, SS_WAIT_IPC, FD(0) },
	{ SYS_msgsnd, SS_WAIT_IPC, FD(0) },
	{ SYS_mq_timedreceive, SS_WAIT_IPC, FD(1), .timeout = 5,
	  .timeout_type = SS_TIMEOUT_REALTIME, .memory = { TIMESPEC(5) } },
	{ SYS_mq_timedsend, SS_WAIT_IPC, FD(1), .timeout = 5,
	  .timeout_type = SS_TIMEOUT_REALTIME, .memory = { TIMESPEC(5) } },
	{ SYS_io_getevents, SS_WAIT_IO, SPEC(5), .memory = { TIMESPEC(5) } },
	{ SYS_io_pgetevents, SS_WAIT_IO, SPEC(5), .memory = { TIMESPEC(5) } },
	{ SYS_io_uring_enter, SS_WAIT_IO, FD(1) },
};
/* clang-format on */

const struct ss_call *ss_call_find(long number)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(calls); i++) {
		if (calls[i].number == number)
			return &calls[i];
	}
	return NULL;
}

size_t ss_call_memory_size(const struct ss_call_memory *memory,
			   const struct ss_syscall *call)
{
	enum { WORD_BITS = 64, SET_MAX = 1024 * 1024 };
	uint64_t count = memory->count_arg ? call->args[memory->count_arg - 1] : 1;

	if (memory->size == 0) { /* the kernel takes an int, and whole words of bits */
		int32_t bits = (int32_t)(uint32_t)count;
		if (bits <= 0 || bits > SET_MAX)
			return 0;
		return SS_MIN(((size_t)bits + WORD_BITS - 1) / WORD_BITS * 8,
			      (size_t)SS_CALL_BYTES_MAX);
	}
	count = SS_MIN(count & UINT32_MAX, (uint64_t)SS_CALL_BYTES_MAX / memory->size);
	return (size_t)count * memory->size;
}
