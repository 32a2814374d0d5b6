#include "stacksnap.h"

#include "base/cleanup.h"

const char *ss_wait_kind_name(enum ss_wait_kind kind)
{
	static const char *const names[] = {
		[SS_WAIT_OTHER] = "other",
		[SS_WAIT_FUTEX] = "futex",
		[SS_WAIT_MUTEX] = "mutex",
		[SS_WAIT_RWLOCK] = "rwlock",
		[SS_WAIT_CONDVAR] = "condvar",
		[SS_WAIT_SEMAPHORE] = "semaphore",
		[SS_WAIT_BARRIER] = "barrier",
		[SS_WAIT_JOIN] = "join",
		[SS_WAIT_ONCE] = "once",
		[SS_WAIT_POLL] = "poll",
		[SS_WAIT_SELECT] = "select",
		[SS_WAIT_EPOLL] = "epoll",
		[SS_WAIT_SLEEP] = "sleep",
		[SS_WAIT_READ] = "read",
		[SS_WAIT_WRITE] = "write",
		[SS_WAIT_ACCEPT] = "accept",
		[SS_WAIT_CONNECT] = "connect",
		[SS_WAIT_RECEIVE] = "receive",
		[SS_WAIT_SEND] = "send",
		[SS_WAIT_CHILD] = "child",
		[SS_WAIT_FILE_LOCK] = "file-lock",
		[SS_WAIT_SIGNAL] = "signal",
		[SS_WAIT_IPC] = "ipc",
		[SS_WAIT_IO] = "io",
		[SS_WAIT_PTRACE] = "ptrace",
		[SS_WAIT_STOPPED] = "stopped",
		[SS_WAIT_PAGE_FAULT] = "page-fault",
		[SS_WAIT_WORK] = "work",
	};

	return (size_t)kind < SS_ARRAY_SIZE(names) ? names[kind] : "other";
}

const char *ss_wait_purpose_name(enum ss_wait_purpose purpose)
{
	static const char *const names[] = {
		[SS_PURPOSE_UNKNOWN] = "unknown", [SS_PURPOSE_LOCK] = "lock",
		[SS_PURPOSE_EVENT] = "event",	  [SS_PURPOSE_IDLE] = "idle",
		[SS_PURPOSE_SERVICE] = "service",
	};

	return (size_t)purpose < SS_ARRAY_SIZE(names) ? names[purpose] : "unknown";
}

const char *ss_lock_type_name(enum ss_lock_type type)
{
	static const char *const names[] = {
		[SS_LOCK_NONE] = "none",
		[SS_LOCK_MUTEX] = "mutex",
		[SS_LOCK_RECURSIVE_MUTEX] = "recursive-mutex",
		[SS_LOCK_ERRORCHECK_MUTEX] = "errorcheck-mutex",
		[SS_LOCK_ROBUST_MUTEX] = "robust-mutex",
		[SS_LOCK_PI_MUTEX] = "pi-mutex",
		[SS_LOCK_RWLOCK] = "rwlock",
		[SS_LOCK_CONDVAR] = "condvar",
		[SS_LOCK_SEMAPHORE] = "semaphore",
		[SS_LOCK_BARRIER] = "barrier",
		[SS_LOCK_THREAD] = "thread",
		[SS_LOCK_ONCE] = "once",
		[SS_LOCK_STATIC_INIT] = "static-init",
		[SS_LOCK_LIBC] = "libc",
		[SS_LOCK_RUST_MUTEX] = "rust-mutex",
		[SS_LOCK_RUST_RWLOCK] = "rust-rwlock",
		[SS_LOCK_RUST_CONDVAR] = "rust-condvar",
		[SS_LOCK_RUST_ONCE] = "rust-once",
		[SS_LOCK_RUST_PARKER] = "rust-parker",
		[SS_LOCK_JAVA_MONITOR] = "java-monitor",
		[SS_LOCK_JAVA_LOCK] = "java-lock",
		[SS_LOCK_PYTHON_GIL] = "python-gil",
		[SS_LOCK_PYTHON_LOCK] = "python-lock",
		[SS_LOCK_PYTHON_RLOCK] = "python-rlock",
	};

	return (size_t)type < SS_ARRAY_SIZE(names) ? names[type] : "none";
}

const char *ss_owner_unknown_name(enum ss_owner_unknown reason)
{
	static const char *const names[] = {
		[SS_OWNER_UNSPECIFIED] = "unspecified",
		[SS_OWNER_CHANGING] = "changing",
		[SS_OWNER_NOT_RECORDED] = "not-recorded",
		[SS_OWNER_READERS] = "readers",
		[SS_OWNER_DIED] = "died",
		[SS_OWNER_GONE] = "gone",
		[SS_OWNER_GONE_OR_ELSEWHERE] = "gone-or-elsewhere",
		[SS_OWNER_AMBIGUOUS_TID] = "ambiguous-tid",
		[SS_OWNER_BEING_GRANTED] = "being-granted",
		[SS_OWNER_CORRUPTED] = "corrupted",
		[SS_OWNER_UNREADABLE] = "unreadable",
		[SS_OWNER_NO_SYMBOLS] = "no-symbols",
		[SS_OWNER_REFUSED] = "refused",
		[SS_OWNER_RUNTIME] = "runtime",
		[SS_OWNER_NOT_VISIBLE] = "not-visible",
		[SS_OWNER_NOT_LISTED] = "not-listed",
		[SS_OWNER_IN_PARENT] = "in-parent",
	};

	return (size_t)reason < SS_ARRAY_SIZE(names) ? names[reason] : "unspecified";
}

const char *ss_fd_kind_name(enum ss_fd_kind kind)
{
	static const char *const names[] = {
		[SS_FD_UNKNOWN] = "unknown",   [SS_FD_FILE] = "file",
		[SS_FD_PIPE] = "pipe",	       [SS_FD_SOCKET] = "socket",
		[SS_FD_EVENTFD] = "eventfd",   [SS_FD_TIMERFD] = "timerfd",
		[SS_FD_SIGNALFD] = "signalfd", [SS_FD_INOTIFY] = "inotify",
		[SS_FD_EPOLL] = "epoll",       [SS_FD_PIDFD] = "pidfd",
		[SS_FD_IO_URING] = "io-uring", [SS_FD_MEMFD] = "memfd",
		[SS_FD_TTY] = "tty",	       [SS_FD_OTHER] = "other",
	};

	return (size_t)kind < SS_ARRAY_SIZE(names) ? names[kind] : "unknown";
}
