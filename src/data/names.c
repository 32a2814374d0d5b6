#include "data/names.h"

#include <stddef.h>

#include "base/cleanup.h"

#define NAMES(noun, array)                                                               \
	const struct ss_names ss_names_##noun = { .names = (array),                      \
						  .count = SS_ARRAY_SIZE(array) }

const char *ss_names_at(const struct ss_names *names, uint64_t value)
{
	const char *name = value < names->count ? names->names[value] : NULL;

	return name || value == 0 ? name : "unknown";
}

static const char *const ends[] = {
	[SS_END_ROOT] = "root",
	[SS_END_FRAMES] = "frames",
	[SS_END_LIMIT] = "limit",
	[SS_END_NO_UNWIND_INFO] = "no-unwind-info",
	[SS_END_BAD_UNWIND_INFO] = "bad-unwind-info",
	[SS_END_UNREADABLE] = "unreadable",
	[SS_END_LOOP] = "loop",
	[SS_END_REGISTER] = "register",
	[SS_END_GONE] = "gone",
	[SS_END_RUNNING] = "running",
	[SS_END_NOT_STOPPED] = "not-stopped",
	[SS_END_TRACED] = "traced",
	[SS_END_DENIED] = "denied",
	[SS_END_RUNNABLE] = "runnable",
	[SS_END_GUESSED] = "guessed",
};
NAMES(end, ends);

static const char *const frame_kinds[] = {
	[SS_FRAME_NATIVE] = "native",
	[SS_FRAME_PYTHON] = "python",
	[SS_FRAME_JAVASCRIPT] = "javascript",
	[SS_FRAME_JAVA] = "java",
	[SS_FRAME_JIT] = "jit",
};
NAMES(frame_kind, frame_kinds);

static const char *const task_kinds[] = {
	[SS_TASK_THREAD] = "thread",
	[SS_TASK_GOROUTINE] = "goroutine",
	[SS_TASK_ASYNCIO] = "asyncio-task",
};
NAMES(task_kind, task_kinds);

static const char *const task_statuses[] = {
	[SS_STATUS_UNKNOWN] = "unknown",     [SS_STATUS_RUNNABLE] = "runnable",
	[SS_STATUS_RUNNING] = "running",     [SS_STATUS_SYSCALL] = "syscall",
	[SS_STATUS_WAITING] = "waiting",     [SS_STATUS_PREEMPTED] = "preempted",
	[SS_STATUS_COPYSTACK] = "copystack",
};
NAMES(task_status, task_statuses);

static const char *const endless_reasons[] = {
	[SS_ENDLESS_NO] = NULL,
	[SS_ENDLESS_OBJECT] = "object",
	[SS_ENDLESS_LOOP] = "loop",
	[SS_ENDLESS_NIL_CHANNEL] = "nil_channel",
};
NAMES(endless, endless_reasons);

static const char *const wait_kinds[] = {
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
NAMES(wait_kind, wait_kinds);

static const char *const wait_purposes[] = {
	[SS_PURPOSE_UNKNOWN] = "unknown", [SS_PURPOSE_LOCK] = "lock",
	[SS_PURPOSE_EVENT] = "event",	  [SS_PURPOSE_IDLE] = "idle",
	[SS_PURPOSE_SERVICE] = "service",
};
NAMES(wait_purpose, wait_purposes);

static const char *const lock_types[] = {
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
	[SS_LOCK_STREAM] = "stream",
	[SS_LOCK_JAVA_CLASS] = "java-class",
};
NAMES(lock_type, lock_types);

static const char *const owner_unknowns[] = {
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
	[SS_OWNER_ALONE] = "alone",
};
NAMES(owner_unknown, owner_unknowns);

static const char *const fd_kinds[] = {
	[SS_FD_UNKNOWN] = "unknown",   [SS_FD_FILE] = "file",
	[SS_FD_PIPE] = "pipe",	       [SS_FD_SOCKET] = "socket",
	[SS_FD_EVENTFD] = "eventfd",   [SS_FD_TIMERFD] = "timerfd",
	[SS_FD_SIGNALFD] = "signalfd", [SS_FD_INOTIFY] = "inotify",
	[SS_FD_EPOLL] = "epoll",       [SS_FD_PIDFD] = "pidfd",
	[SS_FD_IO_URING] = "io-uring", [SS_FD_MEMFD] = "memfd",
	[SS_FD_TTY] = "tty",	       [SS_FD_OTHER] = "other",
};
NAMES(fd_kind, fd_kinds);

static const char *const modes[] = {
	[SS_MODE_DEFAULT] = "default", [SS_MODE_STOP] = "stop", [SS_MODE_LIVE] = "live",
	[SS_MODE_NO_STOP] = "no-stop", [SS_MODE_AUTO] = "auto", [SS_MODE_CORE] = "core",
};
NAMES(mode, modes);

static const char *const frame_sources[] = {
	[SS_FROM_REGISTERS] = "registers",
	[SS_FROM_CFI] = "cfi",
	[SS_FROM_FRAME_POINTER] = "frame-pointer",
	[SS_FROM_RETURN_ADDRESS] = "return-address",
	[SS_FROM_INLINE] = "inline",
	[SS_FROM_RUNTIME] = "runtime",
};
NAMES(frame_source, frame_sources);

static const char *const accesses[] = {
	[SS_ACCESS_NONE] = NULL,
	[SS_ACCESS_SHARED] = "shared",
	[SS_ACCESS_EXCLUSIVE] = "exclusive",
};
NAMES(access, accesses);

static const char *const child_scopes[] = {
	[SS_CHILD_NONE] = "none",	[SS_CHILD_PID] = "pid",
	[SS_CHILD_ANY] = "any",		[SS_CHILD_GROUP] = "group",
	[SS_CHILD_OWN_GROUP] = "group", [SS_CHILD_PIDFD] = "pidfd",
	[SS_CHILD_VFORK] = "vfork",
};
NAMES(child_scope, child_scopes);

static const char *const ipc_operations[] = {
	[SS_IPC_NONE] = "none",
	[SS_IPC_SEMAPHORE] = "semaphore",
	[SS_IPC_RECEIVE] = "receive",
	[SS_IPC_SEND] = "send",
};
NAMES(ipc, ipc_operations);

#define NAME_FUNCTION(noun)                                                              \
	const char *ss_##noun##_name(enum ss_##noun value)                               \
	{                                                                                \
		return ss_names_at(&ss_names_##noun, (uint64_t)value);                   \
	}

NAME_FUNCTION(end)
NAME_FUNCTION(fd_kind)
NAME_FUNCTION(frame_kind)
NAME_FUNCTION(lock_type)
NAME_FUNCTION(mode)
NAME_FUNCTION(owner_unknown)
NAME_FUNCTION(task_kind)
NAME_FUNCTION(task_status)
NAME_FUNCTION(wait_kind)
NAME_FUNCTION(wait_purpose)
