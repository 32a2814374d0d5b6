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
	};

	return (size_t)kind < SS_ARRAY_SIZE(names) ? names[kind] : "other";
}
