#include "capture/tasks.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "data/call.h"
#include "process/objects.h"

/* What a file descriptor refers to, as far as its link in /proc tells. */
enum file_kind {
	FILE_UNKNOWN,
	FILE_SOCKET,
	FILE_NAMELESS, /* a pipe, an eventfd and the like: reads of it are restarted */
	FILE_DEVICE,   /* below /dev: a terminal, for example */
	FILE_NAMED,    /* perhaps on a FUSE file system, whose reads end with EINTR */
};

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Reading the link accesses no file. */
static enum file_kind find_file_kind(const struct ss_target *target, pid_t tid, int fd)
{
	char path[64];
	char link[16] = {};

	(void)snprintf(path, sizeof(path), "%d/fd/%d", tid, fd); /* it fits */
	if (readlinkat(target->task_fd, path, link, sizeof(link) - 1) < 0)
		return FILE_UNKNOWN;
	if (begins(link, "socket:"))
		return FILE_SOCKET;
	if (begins(link, "/dev/"))
		return FILE_DEVICE;
	return link[0] == '/' ? FILE_NAMED : FILE_NAMELESS;
}

static int file_of(const struct ss_call *call, const struct ss_syscall_text *text)
{
	return (int)(uint32_t)text->args[call->fd - 1];
}

/* A read that waits: for more than one byte, it may have some already. */
static bool is_fragile_read(const struct ss_target *target, pid_t tid, int fd)
{
	switch (find_file_kind(target, tid, fd)) {
	case FILE_SOCKET:
		return !ss_target_socket_waits_plainly(target, fd);
	case FILE_NAMELESS:
		return false;
	default:
		return true;
	}
}

static bool gathers_all(enum ss_syscall_id id, const struct ss_syscall_text *text)
{
	return id == SS_SYS_RECVMMSG ||
	       ((id == SS_SYS_RECVFROM ? text->args[3] : text->args[2]) & MSG_WAITALL);
}

static bool has_time_limit(const struct ss_call *call, const struct ss_syscall_text *text)
{
	uint64_t value = call->timeout ? text->args[call->timeout - 1] : 0;

	return call->timeout_type == SS_TIMEOUT_MS ? (int32_t)(uint32_t)value >= 0 :
						     value != 0;
}

bool ss_fragile_blocked(const struct ss_target *target, pid_t tid,
			const struct ss_syscall_text *text, bool look)
{
	enum ss_syscall_id id = ss_arch_syscall_id(target->arch, text->number);
	const struct ss_call *call = ss_call_find(id);

	if (text->kind != SS_SYSCALL_BLOCKED)
		return false;
	switch (id) {
	/* The kernel continues these, or makes them again with the same arguments. */
	case SS_SYS_POLL:
	case SS_SYS_FUTEX:
	case SS_SYS_FUTEX_WAIT:
	case SS_SYS_FUTEX_WAITV:
	case SS_SYS_WAIT4:
	case SS_SYS_WAITID:
	case SS_SYS_PAUSE:
	case SS_SYS_RT_SIGSUSPEND:
	case SS_SYS_FLOCK:
	case SS_SYS_FCNTL:
	case SS_SYS_MSGRCV:
	case SS_SYS_MSGSND:
	case SS_SYS_MQ_TIMEDRECEIVE:
	case SS_SYS_MQ_TIMEDSEND:
	case SS_SYS_CLONE:
	case SS_SYS_CLONE3:
	case SS_SYS_VFORK:
	case SS_SYS_RESTART_SYSCALL:
		return false;
	case SS_SYS_SEMOP:
		return !target->arch->attach->undo_eintr;
	case SS_SYS_EPOLL_WAIT:
	case SS_SYS_EPOLL_PWAIT:
	case SS_SYS_EPOLL_PWAIT2:
	case SS_SYS_SEMTIMEDOP:
	case SS_SYS_RT_SIGTIMEDWAIT:
	case SS_SYS_IO_GETEVENTS:
	case SS_SYS_IO_PGETEVENTS:
		if (!target->arch->attach->undo_eintr)
			return true;
		/* fallthrough */
	/* Without a time limit they are restarted. With one, they return EINTR, or the
	   kernel writes the time that is left to memory of the program. */
	case SS_SYS_SELECT:
	case SS_SYS_PSELECT6:
	case SS_SYS_PPOLL:
		return has_time_limit(call, text);
	/* The time that is left is written where a program asks for it. */
	case SS_SYS_NANOSLEEP:
		return text->args[1] != 0;
	case SS_SYS_CLOCK_NANOSLEEP:
		return text->args[3] != 0 && !(text->args[1] & TIMER_ABSTIME);
	default:
		break;
	}
	if (!call)
		return true;
	switch (call->kind) {
	case SS_WAIT_RECEIVE:
		if (gathers_all(id, text))
			return true;
		/* fallthrough */
	case SS_WAIT_ACCEPT:
	case SS_WAIT_READ:
		return look && is_fragile_read(target, tid, file_of(call, text));
	default:
		return true;
	}
}

/* The bytes that a call shall move; if that is not an argument, many. */
static uint64_t size_of(enum ss_syscall_id id, const struct ss_syscall_text *text)
{
	switch (id) {
	case SS_SYS_GETRANDOM:
		return text->args[1];
	case SS_SYS_READ:
	case SS_SYS_PREAD64:
	case SS_SYS_RECVFROM:
	case SS_SYS_WRITE:
	case SS_SYS_PWRITE64:
	case SS_SYS_SENDTO:
		return text->args[2];
	default:
		return UINT64_MAX;
	}
}

bool ss_fragile_running(const struct ss_target *target, pid_t tid,
			const struct ss_syscall_text *text, bool look)
{
	/* PIPE_BUF, and a page: so many are moved at once, before the kernel looks for
	   signals. */
	enum { AT_ONCE = 4096 };
	enum ss_syscall_id id = ss_arch_syscall_id(target->arch, text->number);
	const struct ss_call *call = ss_call_find(id);

	if (text->number < 0)
		return true;
	if (size_of(id, text) <= AT_ONCE)
		return false;
	switch (id) {
	case SS_SYS_GETRANDOM:
	case SS_SYS_SPLICE:
	case SS_SYS_TEE:
	case SS_SYS_COPY_FILE_RANGE:
	case SS_SYS_FALLOCATE:
	case SS_SYS_IO_URING_ENTER:
		return true;
	default:
		break;
	}
	if (!call)
		return false;
	switch (call->kind) {
	case SS_WAIT_WRITE:
	case SS_WAIT_SEND:
	case SS_WAIT_CONNECT:
		return true;
	case SS_WAIT_RECEIVE:
		return gathers_all(id, text) ||
		       (look && is_fragile_read(target, tid, file_of(call, text)));
	case SS_WAIT_READ:
		/* Reads of files do not wait while they run. */
		return find_file_kind(target, tid, file_of(call, text)) == FILE_DEVICE;
	default:
		return false;
	}
}
