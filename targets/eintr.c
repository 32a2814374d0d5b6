/*
 * A thread in each blocking system call, without a time limit and, where the call has
 * one, with a time limit of a week. Tools that stop threads make some of these calls
 * return EINTR, unless they take care.
 *
 * Thread NAME, for each name in the table below: the libc's frames of the call,
 * call_NAME, thread_routine, target_thread_main, start_thread, clone3.
 * At the end of standard input, prints "NAME EINTRS OTHERS KIND" for each thread: how often
 * the call returned EINTR, how often it returned otherwise or wrote to memory of the
 * program, and KIND: "infinite" (no time limit), "finite" or "missing" (the kernel does
 * not have the call).
 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static int epoll_fd, semaphore, queue, full_queue, listener, pair[2], pipe_ends[2],
	full_pipe[2], event_fd;
static int inotify_fd, timer_fd, uring_fd, lock_fd, timeout_pair[2], timeout_listener;
static int full_pair[2], full_timeout_pair[2], signal_fd, child_fd, spliced[2],
	message_fd;
static int terminal, lowat_pair[2], raw_ends[2], submit_fd;
static unsigned *submit_tail;
static struct timespec left = { -1, -1 }, clock_left = { -1, -1 };
enum { LEAST = 100 }; /* bytes for SO_RCVLOWAT and VMIN */
static char fifo[64];
static struct sockaddr_un full_address;
static socklen_t full_address_size;
static pthread_mutex_t held_mutex;
static const struct timespec week = { .tv_sec = 7 * 24 * 3600 };
enum { WEEK_MS = 7 * 24 * 3600 * 1000 };
static aio_context_t aio;
static uint32_t futex_word;
static pid_t child;

/* clang-format off */
#define CALL(name) TARGET_FRAME static long call_##name(void)
/* clang-format on */

CALL(epoll_wait)
{
	struct epoll_event event;
	return epoll_wait(epoll_fd, &event, 1, -1);
}

CALL(epoll_pwait)
{
	struct epoll_event event;
	return epoll_pwait(epoll_fd, &event, 1, -1, NULL);
}

CALL(epoll_pwait2)
{
	struct epoll_event event;
	return syscall(SYS_epoll_pwait2, epoll_fd, &event, 1, NULL, NULL, 0);
}

CALL(semop)
{
	struct sembuf down = { .sem_op = -1 };
	return semop(semaphore, &down, 1);
}

CALL(semtimedop)
{
	struct sembuf down = { .sem_op = -1 };
	return semtimedop(semaphore, &down, 1, NULL);
}

static sigset_t one_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return set;
}

CALL(sigwaitinfo)
{
	sigset_t set = one_signal();
	return sigwaitinfo(&set, NULL);
}

CALL(sigtimedwait)
{
	sigset_t set = one_signal();
	return sigtimedwait(&set, NULL, NULL);
}

CALL(sigsuspend)
{
	sigset_t set = one_signal();
	return sigsuspend(&set);
}

CALL(pause)
{
	return pause();
}

CALL(io_getevents)
{
	struct io_event event;
	return syscall(SYS_io_getevents, aio, 1L, 1L, &event, NULL);
}

CALL(poll)
{
	return poll(NULL, 0, -1);
}

CALL(ppoll)
{
	return ppoll(NULL, 0, NULL, NULL);
}

CALL(select)
{
	return select(0, NULL, NULL, NULL, NULL);
}

CALL(pselect)
{
	return pselect(0, NULL, NULL, NULL, NULL, NULL);
}

CALL(nanosleep)
{
	return syscall(SYS_nanosleep, &week, NULL);
}

CALL(clock_nanosleep)
{
	errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &week, NULL);
	return errno ? -1 : 0;
}

CALL(futex)
{
	return syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

CALL(futex_bitset)
{
	return syscall(SYS_futex, &futex_word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL,
		       FUTEX_BITSET_MATCH_ANY);
}

CALL(read_pipe)
{
	char byte;
	return read(pipe_ends[0], &byte, 1);
}

CALL(read_eventfd)
{
	uint64_t value;
	return read(event_fd, &value, sizeof(value));
}

CALL(read_timerfd)
{
	uint64_t value;
	return read(timer_fd, &value, sizeof(value));
}

CALL(read_inotify)
{
	char buffer[4096];
	return read(inotify_fd, buffer, sizeof(buffer));
}

CALL(write_pipe)
{
	char buffer[4096] = { 0 };
	return write(full_pipe[1], buffer, sizeof(buffer));
}

CALL(waitid)
{
	siginfo_t info;
	return waitid(P_PID, (id_t)child, &info, WEXITED);
}

CALL(wait4)
{
	int status;
	return wait4(child, &status, 0, NULL);
}

CALL(msgrcv)
{
	struct {
		long type;
		char text[8];
	} message;
	return msgrcv(queue, &message, sizeof(message.text), 0, 0);
}

CALL(accept)
{
	return accept(listener, NULL, NULL);
}

CALL(accept4)
{
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

CALL(recv)
{
	char byte;
	return recv(pair[0], &byte, 1, 0);
}

CALL(recvmsg)
{
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	return recvmsg(pair[0], &header, 0);
}

CALL(accept_timeo)
{
	return accept(timeout_listener, NULL, NULL);
}

CALL(recv_timeo)
{
	char byte;
	return recv(timeout_pair[0], &byte, 1, 0);
}

CALL(io_uring_enter)
{
	return syscall(SYS_io_uring_enter, uring_fd, 0, 1, IORING_ENTER_GETEVENTS, NULL,
		       0);
}

CALL(flock)
{
	return flock(lock_fd, LOCK_EX);
}

CALL(send)
{
	char bytes[4096] = { 0 };
	return send(full_pair[0], bytes, sizeof(bytes), 0);
}

CALL(sendmsg)
{
	char bytes[4096] = { 0 };
	struct iovec part = { bytes, sizeof(bytes) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	return sendmsg(full_pair[0], &header, 0);
}

CALL(send_timed)
{
	char bytes[4096] = { 0 };
	return send(full_timeout_pair[0], bytes, sizeof(bytes), 0);
}

CALL(recvmmsg)
{
	char byte;
	struct iovec part = { &byte, 1 };
	struct mmsghdr header = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };
	return recvmmsg(pair[0], &header, 1, 0, NULL);
}

CALL(connect)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	long result = connect(fd, (struct sockaddr *)&full_address, full_address_size);
	int errnum = errno;
	close(fd);
	errno = errnum;
	return result;
}

CALL(msgsnd)
{
	struct {
		long type;
		char text[1024];
	} message = { .type = 1 };
	return msgsnd(full_queue, &message, sizeof(message.text), 0);
}

CALL(mq_receive)
{
	char bytes[64];
	return syscall(SYS_mq_timedreceive, message_fd, bytes, sizeof(bytes), NULL, NULL);
}

CALL(mq_timed)
{
	char bytes[64];
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += week.tv_sec;
	return syscall(SYS_mq_timedreceive, message_fd, bytes, sizeof(bytes), NULL,
		       &until);
}

CALL(setlkw)
{
	struct flock lock = { .l_type = F_WRLCK };
	return fcntl(lock_fd, F_OFD_SETLKW, &lock);
}

CALL(futex_lock_pi)
{
	return -(errno = pthread_mutex_lock(&held_mutex));
}

CALL(futex_waitv)
{
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} waiter = { 0, (uintptr_t)&futex_word, 2 | 128, 0 };
	return syscall(449, &waiter, 1, 0, NULL, CLOCK_MONOTONIC);
}

CALL(futex_timed)
{
	return syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &week, NULL, 0);
}

CALL(io_pgetevents)
{
	struct io_event event;
	return syscall(SYS_io_pgetevents, aio, 1L, 1L, &event, NULL, NULL);
}

CALL(io_gete_timed)
{
	struct io_event event;
	return syscall(SYS_io_getevents, aio, 1L, 1L, &event, &week);
}

CALL(splice)
{
	return splice(spliced[0], NULL, full_pipe[1], NULL, 1, 0);
}

CALL(tee)
{
	return tee(pipe_ends[0], full_pipe[1], 1, 0);
}

CALL(open_fifo)
{
	int fd = open(fifo, O_WRONLY);
	int errnum = errno;
	if (fd >= 0)
		close(fd);
	errno = errnum;
	return fd;
}

CALL(read_signalfd)
{
	struct signalfd_siginfo info;
	return read(signal_fd, &info, sizeof(info));
}

CALL(readv)
{
	char byte;
	struct iovec part = { &byte, 1 };
	return readv(pipe_ends[0], &part, 1);
}

CALL(read_tty)
{
	char byte;
	return read(terminal, &byte, 1);
}

CALL(waitid_pidfd)
{
	siginfo_t info;
	return waitid((idtype_t)3, (id_t)child_fd, &info, WEXITED); /* P_PIDFD */
}

CALL(epoll_timed)
{
	struct epoll_event event;
	return epoll_wait(epoll_fd, &event, 1, WEEK_MS);
}

CALL(epoll_pw_timed)
{
	struct epoll_event event;
	return epoll_pwait(epoll_fd, &event, 1, WEEK_MS, NULL);
}

CALL(epoll_pw2_timed)
{
	struct epoll_event event;
	return syscall(SYS_epoll_pwait2, epoll_fd, &event, 1, &week, NULL, 0);
}

CALL(semop_timed)
{
	struct sembuf down = { .sem_op = -1 };
	return semtimedop(semaphore, &down, 1, &week);
}

CALL(sigwait_timed)
{
	sigset_t set = one_signal();
	return sigtimedwait(&set, NULL, &week);
}

CALL(poll_timed)
{
	return poll(NULL, 0, WEEK_MS);
}

CALL(select_timed)
{
	struct timeval time = { .tv_sec = week.tv_sec };
	return select(0, NULL, NULL, NULL, &time);
}

CALL(uring_timed)
{
	struct __kernel_timespec time = { .tv_sec = week.tv_sec };
	struct io_uring_getevents_arg argument = { .ts = (uintptr_t)&time };
	return syscall(SYS_io_uring_enter, uring_fd, 0, 1,
		       IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument,
		       sizeof(argument));
}

/* It has bytes, but fewer than SO_RCVLOWAT asks for. */
CALL(recv_lowat)
{
	char bytes[2 * LEAST] = { 0 };
	send(lowat_pair[1], bytes, LEAST / 2, 0);
	return recv(lowat_pair[0], bytes, sizeof(bytes), 0);
}

CALL(read_lowat)
{
	char bytes[2 * LEAST] = { 0 };
	send(lowat_pair[0], bytes, LEAST / 2, 0);
	return read(lowat_pair[1], bytes, sizeof(bytes));
}

/* It has bytes, but fewer than VMIN asks for. */
CALL(read_vmin)
{
	char bytes[2 * LEAST] = { 0 };
	if (write(raw_ends[0], bytes, LEAST / 2) < 0)
		target_die("write");
	return read(raw_ends[1], bytes, sizeof(bytes));
}

CALL(uring_no_time)
{
	struct io_uring_getevents_arg argument = { 0 };
	return syscall(SYS_io_uring_enter, uring_fd, 0, 1,
		       IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument,
		       sizeof(argument));
}

/* Submits a read of an empty pipe, and waits for it. */
CALL(uring_submit)
{
	__atomic_fetch_add(submit_tail, 1, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, submit_fd, 1, 1, IORING_ENTER_GETEVENTS, NULL,
		       0);
}

/* The kernel cannot write the time that is left: the time limit is read-only. */
CALL(pselect_const)
{
	return syscall(SYS_pselect6, 0, NULL, NULL, NULL, &week, NULL);
}

CALL(ppoll_const)
{
	return syscall(SYS_ppoll, NULL, 0L, &week, NULL, 0L);
}

/* The time that is left must not be written: the calls have not returned. */
CALL(nanosleep_rem)
{
	return syscall(SYS_nanosleep, &week, &left);
}

CALL(clock_nano_rem)
{
	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &week, &clock_left);
}

#undef CALL

enum kind { INFINITE, FINITE };

static struct call {
	const char *name;
	long (*function)(void);
	long number;
	enum kind kind;
	struct target_thread *thread;
	atomic_ulong eintrs, others;
	atomic_bool missing;
} calls[] = {
#define CALL(name, number)                                                               \
	{                                                                                \
#name, call_##name, number, INFINITE, NULL, 0, 0, false                  \
	}
#define FINITE_CALL(name, number)                                                        \
	{                                                                                \
#name, call_##name, number, FINITE, NULL, 0, 0, false                    \
	}
	CALL(epoll_wait, SYS_epoll_wait),
	CALL(epoll_pwait, SYS_epoll_pwait),
	CALL(epoll_pwait2, SYS_epoll_pwait2),
	CALL(semop, SYS_semtimedop),
	CALL(semtimedop, SYS_semtimedop),
	CALL(sigwaitinfo, SYS_rt_sigtimedwait),
	CALL(sigtimedwait, SYS_rt_sigtimedwait),
	CALL(sigsuspend, SYS_rt_sigsuspend),
	CALL(pause, SYS_pause),
	CALL(io_getevents, SYS_io_getevents),
	CALL(poll, SYS_poll),
	CALL(ppoll, SYS_ppoll),
	CALL(select, SYS_pselect6),
	CALL(pselect, SYS_pselect6),
	CALL(nanosleep, SYS_nanosleep),
	CALL(clock_nanosleep, SYS_clock_nanosleep),
	CALL(futex, SYS_futex),
	CALL(futex_bitset, SYS_futex),
	CALL(read_pipe, SYS_read),
	CALL(read_eventfd, SYS_read),
	CALL(read_timerfd, SYS_read),
	CALL(read_inotify, SYS_read),
	CALL(write_pipe, SYS_write),
	CALL(waitid, SYS_waitid),
	CALL(wait4, SYS_wait4),
	CALL(msgrcv, SYS_msgrcv),
	CALL(accept, SYS_accept),
	CALL(accept4, SYS_accept4),
	CALL(recv, SYS_recvfrom),
	CALL(recvmsg, SYS_recvmsg),
	CALL(io_uring_enter, SYS_io_uring_enter),
	CALL(flock, SYS_flock),
	CALL(send, SYS_sendto),
	CALL(sendmsg, SYS_sendmsg),
	CALL(recvmmsg, SYS_recvmmsg),
	CALL(connect, SYS_connect),
	CALL(msgsnd, SYS_msgsnd),
	CALL(mq_receive, SYS_mq_timedreceive),
	CALL(setlkw, SYS_fcntl),
	CALL(futex_lock_pi, SYS_futex),
	CALL(futex_waitv, 449),
	CALL(io_pgetevents, SYS_io_pgetevents),
	CALL(splice, SYS_splice),
	CALL(tee, SYS_tee),
	CALL(open_fifo, SYS_openat),
	CALL(read_signalfd, SYS_read),
	CALL(readv, SYS_readv),
	CALL(read_tty, SYS_read),
	CALL(waitid_pidfd, SYS_waitid),
	FINITE_CALL(epoll_timed, SYS_epoll_wait),
	FINITE_CALL(epoll_pw_timed, SYS_epoll_pwait),
	FINITE_CALL(epoll_pw2_timed, SYS_epoll_pwait2),
	FINITE_CALL(semop_timed, SYS_semtimedop),
	FINITE_CALL(sigwait_timed, SYS_rt_sigtimedwait),
	FINITE_CALL(io_gete_timed, SYS_io_getevents),
	FINITE_CALL(uring_timed, SYS_io_uring_enter),
	FINITE_CALL(poll_timed, SYS_poll),
	FINITE_CALL(select_timed, SYS_pselect6),
	FINITE_CALL(futex_timed, SYS_futex),
	FINITE_CALL(mq_timed, SYS_mq_timedreceive),
	FINITE_CALL(send_timed, SYS_sendto),
	FINITE_CALL(accept_timeo, SYS_accept),
	FINITE_CALL(recv_timeo, SYS_recvfrom),
	CALL(recv_lowat, SYS_recvfrom),
	CALL(read_lowat, SYS_read),
	CALL(read_vmin, SYS_read),
	CALL(uring_no_time, SYS_io_uring_enter),
	CALL(uring_submit, SYS_io_uring_enter),
	FINITE_CALL(pselect_const, SYS_pselect6),
	FINITE_CALL(ppoll_const, SYS_ppoll),
	FINITE_CALL(nanosleep_rem, SYS_nanosleep),
	FINITE_CALL(clock_nano_rem, SYS_clock_nanosleep),
#undef FINITE_CALL
#undef CALL
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

TARGET_FRAME static void thread_routine(void *arg)
{
	struct call *call = arg;

	target_arrive();
	for (;;) {
		errno = 0;
		if (call->function() < 0 && errno == EINTR)
			atomic_fetch_add(&call->eintrs, 1);
		else if (atomic_fetch_add(&call->others, 1) > 1000)
			break;
		if (errno == ENOSYS || errno == EPERM || errno == EBADF)
			break;
	}
	/* the kernel does not have the call, or it does not block */
	atomic_store(&call->missing, true);
	for (;;)
		poll(NULL, 0, -1);
}

static int checked(int value, const char *what)
{
	if (value < 0)
		target_die(what);
	return value;
}

static int make_listener(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = checked(socket(AF_UNIX, SOCK_STREAM, 0), "socket");

	/* without a name the kernel chooses an abstract one */
	checked(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)), "bind");
	checked(listen(fd, 1), "listen");
	return fd;
}

static void set_timeout(int fd)
{
	struct timeval week = { .tv_sec = 7 * 24 * 3600 };

	checked(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &week, sizeof(week)),
		"SO_RCVTIMEO");
}

/* A pair of sockets; the buffer of one is full. */
static void make_full_pair(int *ends, bool timed)
{
	struct timeval time = { .tv_sec = week.tv_sec };
	char bytes[4096] = { 0 };

	checked(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	while (send(ends[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	if (timed)
		checked(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)),
			"SO_SNDTIMEO");
}

/* A listening socket whose backlog is full. */
static void make_full_listener(void)
{
	int fd = make_listener();

	full_address_size = sizeof(full_address);
	checked(getsockname(fd, (struct sockaddr *)&full_address, &full_address_size),
		"getsockname");
	checked(listen(fd, 0), "listen");
	for (;;) {
		int one = checked(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0),
				  "socket");
		if (connect(one, (struct sockaddr *)&full_address, full_address_size) < 0)
			break;
	}
}

/* The master of a pseudoterminal. */
static void make_terminal(void)
{
	terminal = posix_openpt(O_RDWR | O_NOCTTY);
	if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0)
		return;
	/* without an open slave a read fails with EIO */
	(void)open(ptsname(terminal), O_RDWR | O_NOCTTY);
}

/* A pseudoterminal that passes on bytes from LEAST on. */
static void make_raw_terminal(void)
{
	struct termios settings;

	raw_ends[0] = posix_openpt(O_RDWR | O_NOCTTY);
	if (raw_ends[0] < 0 || grantpt(raw_ends[0]) < 0 || unlockpt(raw_ends[0]) < 0)
		target_die("posix_openpt");
	raw_ends[1] = checked(open(ptsname(raw_ends[0]), O_RDWR | O_NOCTTY), "pts");
	checked(tcgetattr(raw_ends[1], &settings), "tcgetattr");
	cfmakeraw(&settings);
	settings.c_cc[VMIN] = LEAST;
	settings.c_cc[VTIME] = 0;
	checked(tcsetattr(raw_ends[1], TCSANOW, &settings), "tcsetattr");
}

/* A ring whose entries all read from an empty pipe. */
static void make_submit_ring(void)
{
	enum { ENTRIES = 256 };
	struct io_uring_params params = { 0 };
	static char byte;

	submit_fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &params);
	if (submit_fd < 0)
		return;
	char *ring = mmap(NULL, params.sq_off.array + ENTRIES * sizeof(unsigned),
			  PROT_READ | PROT_WRITE, MAP_SHARED, submit_fd,
			  IORING_OFF_SQ_RING);
	struct io_uring_sqe *entries = mmap(NULL, ENTRIES * sizeof(*entries),
					    PROT_READ | PROT_WRITE, MAP_SHARED, submit_fd,
					    IORING_OFF_SQES);
	if (ring == MAP_FAILED || entries == MAP_FAILED)
		target_die("mmap of a ring");
	for (unsigned i = 0; i < ENTRIES; i++) {
		entries[i] = (struct io_uring_sqe){ .opcode = IORING_OP_READ,
						    .fd = pipe_ends[0],
						    .addr = (uintptr_t)&byte,
						    .len = 1,
						    .off = (uint64_t)-1 };
		((unsigned *)(void *)(ring + params.sq_off.array))[i] = i;
	}
	submit_tail = (unsigned *)(void *)(ring + params.sq_off.tail);
}

static void make_fifo(void)
{
	snprintf(fifo, sizeof(fifo), "/tmp/stacksnap-fifo-%d", (int)getpid());
	checked(mkfifo(fifo, 0600), "mkfifo");
}

static void make_messages(void)
{
	struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = 16 };
	struct {
		long type;
		char text[1024];
	} message = { .type = 1 };
	char name[32];

	while (msgsnd(full_queue, &message, sizeof(message.text), IPC_NOWAIT) == 0)
		;
	snprintf(name, sizeof(name), "stacksnap-%d", (int)getpid());
	message_fd = (int)syscall(SYS_mq_open, name, O_RDWR | O_CREAT, 0600, &attributes);
	syscall(SYS_mq_unlink, name);
}

/* Its owner is the main thread. */
static void make_mutex(void)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&held_mutex, &attributes);
	pthread_mutex_lock(&held_mutex);
}

static void make_sockets(void)
{
	int least = LEAST;

	make_full_pair(full_pair, false);
	make_full_pair(full_timeout_pair, true);
	make_full_listener();
	listener = make_listener();
	timeout_listener = make_listener();
	set_timeout(timeout_listener);
	checked(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	checked(socketpair(AF_UNIX, SOCK_STREAM, 0, timeout_pair), "socketpair");
	set_timeout(timeout_pair[0]);
	checked(socketpair(AF_UNIX, SOCK_STREAM, 0, lowat_pair), "socketpair");
	for (int i = 0; i < 2; i++)
		checked(setsockopt(lowat_pair[i], SOL_SOCKET, SO_RCVLOWAT, &least,
				   sizeof(least)),
			"SO_RCVLOWAT");
}

static void make_pipes(void)
{
	char buffer[4096] = { 0 };

	checked(pipe(pipe_ends), "pipe");
	checked(pipe(spliced), "pipe");
	checked(pipe2(full_pipe, O_NONBLOCK), "pipe");
	while (write(full_pipe[1], buffer, sizeof(buffer)) > 0)
		;
	checked(fcntl(full_pipe[1], F_SETFL, 0), "F_SETFL");
}

/* Locked through one open file description and wanted through another. */
static void make_lock(void)
{
	struct flock whole = { .l_type = F_WRLCK };
	int holder = checked(memfd_create("lock", 0), "memfd_create");
	char path[64];

	checked(flock(holder, LOCK_EX), "flock");
	checked(fcntl(holder, F_OFD_SETLK, &whole), "F_OFD_SETLK");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", holder);
	lock_fd = checked(open(path, O_RDWR), "open");
}

/*
 * The child that wait4 and waitid wait for. System V objects outlive their process, so the
 * child removes them at the end, also when its parent is killed.
 */
static void make_child(void)
{
	sigset_t set;
	int number;

	semaphore = checked(semget(IPC_PRIVATE, 1, 0600), "semget");
	queue = checked(msgget(IPC_PRIVATE, 0600), "msgget");
	full_queue = checked(msgget(IPC_PRIVATE, 0600), "msgget");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	child = checked(fork(), "fork");
	if (child == 0) {
		sigprocmask(SIG_BLOCK, &set, NULL);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		syscall(SYS_close_range, 0, ~0U, 0);
		sigwait(&set, &number);
		semctl(semaphore, 0, IPC_RMID);
		msgctl(queue, IPC_RMID, NULL);
		msgctl(full_queue, IPC_RMID, NULL);
		unlink(fifo);
		_exit(0);
	}
}

static void make_objects(void)
{
	struct io_uring_params params = { 0 };
	sigset_t set = one_signal();

	sigprocmask(SIG_BLOCK, &set, NULL);
	make_fifo();
	make_child();
	child_fd = (int)syscall(SYS_pidfd_open, child, 0);
	make_messages();
	make_mutex();
	make_terminal();
	make_raw_terminal();
	make_sockets();
	make_pipes();
	make_submit_ring();
	make_lock();
	epoll_fd = checked(epoll_create1(0), "epoll_create1");
	event_fd = checked(eventfd(0, 0), "eventfd");
	inotify_fd = inotify_init1(0);
	signal_fd = checked(signalfd(-1, &set, 0), "signalfd");
	timer_fd = checked(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd_create");
	/* a kernel may lack these three; their calls are reported as missing */
	uring_fd = (int)syscall(SYS_io_uring_setup, 1, &params);
	if (syscall(SYS_io_setup, 1, &aio) < 0)
		aio = 0;
}

static bool is_written(const struct timespec *time)
{
	return time->tv_sec != -1 || time->tv_nsec != -1;
}

static void report(void)
{
	for (size_t i = 0; i < CALLS; i++) {
		const struct timespec *time =
			calls[i].function == call_nanosleep_rem	 ? &left :
			calls[i].function == call_clock_nano_rem ? &clock_left :
								   NULL;
		if (time && is_written(time))
			atomic_fetch_add(&calls[i].others, 1);
	}
	for (size_t i = 0; i < CALLS; i++) {
		struct call *call = &calls[i];
		const char *kind = call->kind == FINITE ? "finite" : "infinite";

		printf("%s %lu %lu %s\n", call->name, atomic_load(&call->eintrs),
		       atomic_load(&call->others), call->missing ? "missing" : kind);
	}
}

/* Returns when each thread sleeps in its call or has no call. */
static void await_all(void)
{
	for (size_t i = 0; i < CALLS; i++)
		while (!atomic_load(&calls[i].missing) && !target_sleeps(calls[i].thread))
			sched_yield();
}

int main(void)
{
	target_init();
	make_objects();
	for (size_t i = 0; i < CALLS; i++)
		calls[i].thread = target_begin(calls[i].name, calls[i].number,
					       thread_routine, &calls[i]);
	await_all();
	target_wait();
	await_all();
	report();
	kill(child, SIGTERM);
	return 0;
}
