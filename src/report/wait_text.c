#include "report/wait_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text_stream.h"
#include "report/names.h"
#include "report/print.h"

enum { CHILDREN_SHOWN = 4, FDS_SHOWN = 8 };

static void write_limit(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (wait->timeout_ns >= 0) {
		ss_text_writer_add(w, ", for at most ");
		ss_text_writer_add_duration(w, (uint64_t)wait->timeout_ns);
	}
	if (wait->left_ns >= 0) {
		ss_text_writer_add(w, ", ");
		ss_text_writer_add_duration(w, (uint64_t)wait->left_ns);
		ss_text_writer_add(w, " left");
	}
	if (wait->timed && wait->timeout_ns < 0 && wait->left_ns < 0)
		ss_text_writer_add(w, ", with a time limit");
}

/* "fd 5, pipe, written by 4711 (cat)" */
static void write_fd(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	ss_text_writer_add(w, "fd %d", wait->fd);
	if (!wait->descriptor)
		return;
	ss_text_writer_add(w, ", ");
	ss_descriptor_text_write(w, wait->descriptor);
}

/* Locks ------------------------------------------------------------------ */

static const char *lock_noun(enum ss_lock_type type)
{
	static const char *const nouns[] = {
		[SS_LOCK_NONE] = "futex",
		[SS_LOCK_MUTEX] = "mutex",
		[SS_LOCK_RECURSIVE_MUTEX] = "recursive mutex",
		[SS_LOCK_ERRORCHECK_MUTEX] = "error-checking mutex",
		[SS_LOCK_ROBUST_MUTEX] = "robust mutex",
		[SS_LOCK_PI_MUTEX] = "PI mutex",
		[SS_LOCK_RWLOCK] = "rwlock",
		[SS_LOCK_CONDVAR] = "condition variable",
		[SS_LOCK_SEMAPHORE] = "semaphore",
		[SS_LOCK_BARRIER] = "barrier",
		[SS_LOCK_THREAD] = "thread",
		[SS_LOCK_ONCE] = "pthread_once",
		[SS_LOCK_STATIC_INIT] = "the initialization of",
		[SS_LOCK_LIBC] = "lock inside the C library",
		[SS_LOCK_RUST_MUTEX] = "Rust Mutex",
		[SS_LOCK_RUST_RWLOCK] = "Rust RwLock",
		[SS_LOCK_RUST_CONDVAR] = "Rust Condvar",
		[SS_LOCK_RUST_ONCE] = "Rust Once",
		[SS_LOCK_RUST_PARKER] = "unpark() of this Rust thread",
		[SS_LOCK_JAVA_MONITOR] = "Java monitor",
		[SS_LOCK_JAVA_LOCK] = "Java lock",
		[SS_LOCK_PYTHON_GIL] = "the GIL",
		[SS_LOCK_PYTHON_LOCK] = "threading.Lock",
		[SS_LOCK_PYTHON_RLOCK] = "threading.RLock",
		[SS_LOCK_STREAM] = "lock of a stdio stream",
		[SS_LOCK_JAVA_CLASS] = "the initialization of a Java class",
	};

	return (size_t)type < SS_ARRAY_SIZE(nouns) ? nouns[type] : "lock";
}

/* "mutex stock"; without the name of a variable "mutex at 0x55d0c83f4a10". */
static void write_lock_name(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	ss_text_writer_add(w, "%s", lock_noun(wait->lock));
	if (wait->lock == SS_LOCK_PYTHON_GIL) /* there is one */
		return;
	if (wait->symbol) {
		ss_text_writer_add(w, " ");
		ss_text_writer_add_string(w, wait->symbol);
		if (wait->symbol_offset)
			ss_text_writer_add(w, "+0x%" PRIx64, wait->symbol_offset);
	} else if (wait->address) {
		ss_text_writer_add(w, " at 0x%" PRIx64, wait->address);
	}
}

static void write_lock(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	write_lock_name(w, wait);
	if (wait->symbol)
		ss_text_writer_add(w, " (0x%" PRIx64 ")", wait->address);
}

static const char *unknown_reason(enum ss_owner_unknown reason)
{
	static const char *const reasons[] = {
		[SS_OWNER_UNSPECIFIED] = "the reason is unknown",
		[SS_OWNER_CHANGING] = "the lock was being taken or released",
		[SS_OWNER_NOT_RECORDED] = "this type of lock does not record its owner",
		[SS_OWNER_READERS] = "the lock does not identify its readers",
		[SS_OWNER_DIED] = "its owner ended without releasing it",
		[SS_OWNER_GONE] = "has ended or was not captured",
		[SS_OWNER_GONE_OR_ELSEWHERE] = "has ended or belongs to another process",
		[SS_OWNER_AMBIGUOUS_TID] = ("may belong to this pid namespace or to "
					    "another one that shares the memory"),
		[SS_OWNER_BEING_GRANTED] = "the kernel is granting it to this thread",
		[SS_OWNER_CORRUPTED] = "its memory does not look like such a lock",
		[SS_OWNER_UNREADABLE] = "the lock could not be read",
		[SS_OWNER_NO_SYMBOLS] = "no function on the stack has a name",
		[SS_OWNER_REFUSED] = ("the kernel refused it (deadlock, or its owner has "
				      "ended)"),
		[SS_OWNER_RUNTIME] =
			"only the Java virtual machine knows it (see jstack)",
		[SS_OWNER_NOT_VISIBLE] = ("it belongs to an open file, or to a process "
					  "that is not visible"),
		[SS_OWNER_NOT_LISTED] = "the lock was not found in /proc/locks",
		[SS_OWNER_IN_PARENT] =
			"belongs to the parent process, and held it at the fork",
		[SS_OWNER_ALONE] = "no other process has it any more",
	};

	return (size_t)reason < SS_ARRAY_SIZE(reasons) ? reasons[reason] : reasons[0];
}

static void write_unknown(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (wait->owner_unknown_tid)
		ss_text_writer_add(w, "thread %d, which took it, ",
				   wait->owner_unknown_tid);
	else if (wait->owner_unknown == SS_OWNER_GONE)
		ss_text_writer_add(w, "the thread ");
	ss_text_writer_add(w, "%s", unknown_reason(wait->owner_unknown));
	if (wait->owner_unknown_pid)
		ss_text_writer_add(w, " (stacksnap %d)", wait->owner_unknown_pid);
}

static void write_owner(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	bool known = wait->owner_tid || wait->owner_pid;

	if (wait->owner_unknown == SS_OWNER_ALONE) {
		ss_text_writer_add(w, ", which no other process has any more");
	} else if (!known && wait->owner_unknown) {
		ss_text_writer_add(w, ", owner unknown: ");
		write_unknown(w, wait);
	}
	if (!known)
		return;
	ss_text_writer_add(w, wait->kind == SS_WAIT_ONCE ? ", executed by " :
			      wait->owner_access == SS_ACCESS_EXCLUSIVE ?
							   ", held for writing by " :
							   ", held by ");
	ss_style_write(SS_STYLE_WARN, w->color, w->out);
	if (wait->self_owned)
		ss_text_writer_add(w, wait->owner_tid ? "the thread itself" :
							"its own process");
	else if (wait->owner_tid)
		ss_text_writer_add_id(w, wait->owner_tid, wait->owner_name);
	else
		ss_text_writer_add_id(w, wait->owner_pid, wait->owner_process);
	if (wait->owner_tid && wait->owner_pid == wait->owner_tid) {
		ss_text_writer_add(w, " of another process");
	} else if (wait->owner_tid && wait->owner_pid) {
		ss_text_writer_add(w, " of process ");
		ss_text_writer_add_id(w, wait->owner_pid, wait->owner_process);
	}
	ss_style_write(SS_STYLE_NONE, w->color, w->out);
}

static void write_lock_wait(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (wait->owner_unknown == SS_OWNER_REFUSED) {
		ss_text_writer_add(w, "PI mutex that the kernel refused (deadlock, or "
				      "its owner has ended), forever");
		return;
	}
	if (wait->futexes) {
		ss_text_writer_add(w, "any of %" PRIu32 " futexes", wait->futexes);
		write_limit(w, wait);
		return;
	}
	if (wait->access)
		ss_text_writer_add(w, wait->access == SS_ACCESS_SHARED ?
					      "read access to " :
					      "write access to ");
	write_lock(w, wait);
	if (wait->kind == SS_WAIT_SEMAPHORE && wait->lock != SS_LOCK_PYTHON_LOCK &&
	    wait->owner_unknown != SS_OWNER_UNREADABLE)
		ss_text_writer_add(w, ", value %" PRIu32, wait->value);
	if (wait->needed)
		ss_text_writer_add(w, ", %" PRIu32 " of %" PRIu32 " threads arrived",
				   wait->arrived, wait->needed);
	if (wait->readers)
		ss_text_writer_add(w, ", held by %" PRIu32 " reader%s", wait->readers,
				   wait->readers == 1 ? "" : "s");
	if (wait->kind != SS_WAIT_FUTEX)
		write_owner(w, wait);
	write_limit(w, wait);
}

static void write_join(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (wait->owner_tid) {
		ss_text_writer_add(w, "thread ");
		ss_text_writer_add_id(w, wait->owner_tid, wait->owner_name);
		ss_text_writer_add(w, " to end");
	} else {
		ss_text_writer_add(w, "an unknown thread to end");
	}
	write_limit(w, wait);
}

/* File descriptors -------------------------------------------------------- */

static bool is_file(const struct ss_wait *wait)
{
	return wait->descriptor && (wait->descriptor->kind == SS_FD_FILE ||
				    wait->descriptor->kind == SS_FD_MEMFD);
}

static void write_read(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	ss_text_writer_add(w, is_file(wait) ? "data from " : "input from ");
	write_fd(w, wait);
	write_limit(w, wait);
}

static void write_write(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	ss_text_writer_add(w, is_file(wait) ? "data to be written to " :
					      "room to write to ");
	write_fd(w, wait);
}

static void write_accept(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	ss_text_writer_add(w, "a connection to ");
	write_fd(w, wait);
}

static void write_connect(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	struct ss_descriptor own = wait->descriptor ? *wait->descriptor :
						      (struct ss_descriptor){};
	struct ss_wait other = *wait;

	if (own.peer_count == 0) {
		ss_text_writer_add(w, "the peer to accept ");
		write_fd(w, wait);
		return;
	}
	ss_text_writer_add_id(w, own.peers[0].pid, own.peers[0].name);
	if (own.peer_count > 1)
		ss_text_writer_add(w, " and %zu others", own.peer_count - 1);
	ss_text_writer_add(w, " to accept ");
	own.peer_count = 0;
	other.descriptor = &own;
	write_fd(w, &other);
}

static void write_send(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	ss_text_writer_add(w, "room to send to ");
	write_fd(w, wait);
}

static const char *purpose(bool input, bool output)
{
	if (input && output)
		return "input from or room to write to";
	if (input)
		return "input from";
	return output ? "room to write to" : "an error on";
}

static const char *common_purpose(const struct ss_wait *wait)
{
	bool input = false;
	bool output = false;

	for (size_t i = 0; i < wait->fd_count; i++) {
		input |= wait->fds[i].input;
		output |= wait->fds[i].output;
	}
	return purpose(input, output);
}

/* "5 (eventfd), 6 (pipe), ... and 12 more" */
static void write_fds(const struct ss_text_writer *w, const struct ss_watched_fd *fds,
		      size_t count, bool incomplete)
{
	size_t shown = SS_MIN(count, (size_t)FDS_SHOWN);

	for (size_t i = 0; i < shown; i++) {
		ss_text_writer_add(w, "%s%d", i ? ", " : "", fds[i].fd);
		if (!fds[i].what || fds[i].what->kind == SS_FD_UNKNOWN)
			continue;
		ss_text_writer_add(w, " (");
		ss_descriptor_text_write(w, fds[i].what);
		if (fds[i].unread)
			ss_text_writer_add(w,
					   ", edge-triggered, %" PRIu32 " byte%s unread",
					   fds[i].unread, fds[i].unread == 1 ? "" : "s");
		ss_text_writer_add(w, ")");
	}
	if (shown < count)
		ss_text_writer_add(w, " and %s%zu more", incomplete ? "at least " : "",
				   count - shown);
	else if (incomplete)
		ss_text_writer_add(w, " and more");
}

static void write_sleep(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	int64_t time_ns = wait->timeout_ns >= 0 ? wait->timeout_ns : wait->left_ns;

	if (time_ns < 0) {
		ss_text_writer_add(w, "an unknown time to pass");
		return;
	}
	if (wait->timeout_ns < 0)
		ss_text_writer_add(w, "the remaining ");
	ss_text_writer_add_duration(w, (uint64_t)time_ns);
	ss_text_writer_add(w, " to pass");
}

static void write_poll(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (wait->fd_count == 0 && wait->fds_incomplete) {
		ss_text_writer_add(w, "file descriptors that could not be read");
	} else if (wait->fd_count == 0 && wait->timed) {
		write_sleep(w, wait);
		return;
	} else if (wait->fd_count == 0) {
		ss_text_writer_add(w, "a signal (no file descriptor is watched)");
	} else if (wait->fd_count == 1 && !wait->fds_incomplete) {
		ss_text_writer_add(w, "%s ",
				   purpose(wait->fds[0].input, wait->fds[0].output));
		write_fd(w, wait);
	} else {
		ss_text_writer_add(w, "%s any of %s%zu fds: ", common_purpose(wait),
				   wait->fds_incomplete ? "at least " : "",
				   wait->fd_count);
		write_fds(w, wait->fds, wait->fd_count, wait->fds_incomplete);
	}
	write_limit(w, wait);
}

static void write_epoll(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	const struct ss_descriptor *epoll = wait->descriptor;

	ss_text_writer_add(w, "an event on epoll fd %d", wait->fd);
	if (epoll && epoll->watch_count) {
		ss_text_writer_add(w, ", which watches %s%zu fd%s: ",
				   epoll->watches_incomplete ? "at least " : "",
				   epoll->watch_count,
				   epoll->watch_count == 1 ? "" : "s");
		write_fds(w, epoll->watches, epoll->watch_count,
			  epoll->watches_incomplete);
	} else if (epoll) {
		ss_text_writer_add(w, ", which watches nothing");
	}
	write_limit(w, wait);
}

/* Other processes and the kernel ------------------------------------------ */

static void write_children(const struct ss_text_writer *w, const struct ss_wait *wait,
			   const char *before)
{
	size_t shown = SS_MIN(wait->child_count, (size_t)CHILDREN_SHOWN);

	for (size_t i = 0; i < shown; i++) {
		const struct ss_related_process *child = &wait->children[i];
		ss_text_writer_add(w, "%s%d (", i ? ", " : before, child->pid);
		ss_text_writer_add_string(w, child->name);
		ss_text_writer_add(w, ", %s)", ss_state_name(child->state));
	}
	if (shown < wait->children_total)
		ss_text_writer_add(w, " and %zu more", wait->children_total - shown);
}

static void write_child(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	switch (wait->child_scope) {
	case SS_CHILD_PID:
		ss_text_writer_add(w, "child process ");
		if (wait->child_count == 0)
			ss_text_writer_add(w, "%d", wait->child_id);
		write_children(w, wait, "");
		break;
	case SS_CHILD_GROUP:
		ss_text_writer_add(w, "any child process of process group %d",
				   wait->child_id);
		break;
	case SS_CHILD_OWN_GROUP:
		ss_text_writer_add(w, "any child process of its own process group");
		break;
	case SS_CHILD_PIDFD:
		ss_text_writer_add(w, "the child process of ");
		write_fd(w, wait);
		break;
	case SS_CHILD_VFORK:
		ss_text_writer_add(w, "its vfork child to call exec or exit");
		write_children(w, wait, ": ");
		break;
	default:
		ss_text_writer_add(w, "any child process");
		write_children(w, wait, ": ");
		if (wait->children_total == 0 && wait->children_known)
			ss_text_writer_add(w, " (there is none)");
	}
}

/* "bytes 12 to 16 of " */
static void write_range(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (wait->range == SS_RANGE_PART)
		ss_text_writer_add(w, "a part of ");
	else if (wait->range == SS_RANGE_BYTES && wait->range_last == UINT64_MAX)
		ss_text_writer_add(w, "bytes %" PRIu64 " to the end of ",
				   wait->range_first);
	else if (wait->range == SS_RANGE_BYTES)
		ss_text_writer_add(w, "bytes %" PRIu64 " to %" PRIu64 " of ",
				   wait->range_first, wait->range_last);
}

static void write_file_lock(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	static const char *const kinds[] = {
		[SS_ACCESS_NONE] = "a lock on ",
		[SS_ACCESS_SHARED] = "a shared lock on ",
		[SS_ACCESS_EXCLUSIVE] = "an exclusive lock on ",
	};

	ss_text_writer_add(w, "%s", kinds[wait->access]);
	write_range(w, wait);
	write_fd(w, wait);
	write_owner(w, wait);
}

static void write_signal(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (!wait->signals_known) {
		ss_text_writer_add(w, "a signal");
		write_children(w, wait, ", such as the end of child process ");
		return;
	}
	ss_text_writer_add(w, "one of the signals ");
	ss_text_writer_add_signals(w, wait->signals);
	write_limit(w, wait);
}

static void write_semaphore(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	ss_text_writer_add(w, "System V semaphore set %d", wait->ipc_id);
	if (wait->semaphore_operations && wait->semaphore_change == 0)
		ss_text_writer_add(w, ": number %u to become 0", wait->semaphore);
	else if (wait->semaphore_operations && wait->semaphore_change < 0)
		ss_text_writer_add(w, ": number %u to reach %d", wait->semaphore,
				   -wait->semaphore_change);
	if (wait->semaphore_operations > 1)
		ss_text_writer_add(w, " (first of %zu operations)",
				   wait->semaphore_operations);
	if (wait->operator_pid) {
		ss_text_writer_add(w, ", probably held by ");
		ss_text_writer_add_id(w, wait->operator_pid, wait->operator_process);
		ss_text_writer_add(w, ", which changed it last");
	}
}

static void write_ipc(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (wait->ipc == SS_IPC_SEMAPHORE) {
		write_semaphore(w, wait);
	} else {
		ss_text_writer_add(w, wait->ipc == SS_IPC_SEND ? "room in " :
								 "a message in ");
		if (wait->fd >= 0) {
			ss_text_writer_add(w, "the queue of ");
			write_fd(w, wait);
		} else {
			ss_text_writer_add(w, "System V queue %d", wait->ipc_id);
		}
		if (wait->operator_pid) {
			ss_text_writer_add(w, wait->ipc == SS_IPC_SEND ?
						      ", last read by " :
						      ", last written by ");
			ss_text_writer_add_id(w, wait->operator_pid,
					      wait->operator_process);
		}
	}
	write_limit(w, wait);
}

static void write_io(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (wait->completions)
		ss_text_writer_add(w, "%" PRIu32 " completion%s of %s", wait->completions,
				   wait->completions == 1 ? "" : "s",
				   wait->fd < 0 ? "asynchronous I/O" : "");
	else
		ss_text_writer_add(w, "%s to finish%s",
				   wait->syscall ? wait->syscall : "I/O",
				   wait->fd < 0 ? "" : " on ");
	if (wait->fd >= 0)
		write_fd(w, wait);
	write_limit(w, wait);
}

static void write_tracer(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	ss_text_writer_add(w, "its tracer ");
	if (wait->owner_pid) {
		ss_text_writer_add_id(w, wait->owner_pid, wait->owner_process);
		ss_text_writer_add(w, " ");
	}
	ss_text_writer_add(w, "to resume it");
}

static void write_stopped(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	(void)wait;
	ss_text_writer_add(w, "SIGCONT (it is stopped by a signal)");
}

static void write_page_fault(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	(void)wait;
	ss_text_writer_add(w, "memory (it is not in a system call)");
}

static void write_work(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	(void)wait;
	ss_text_writer_add(w, "work (it is a kernel worker thread)");
}

/* Waits of calls that are not known are of open(2). */
static bool opens(const struct ss_wait *wait)
{
	return !wait->syscall || strncmp(wait->syscall, "open", strlen("open")) == 0 ||
	       strcmp(wait->syscall, "creat") == 0;
}

/* "another process to open FIFO /run/f for writing" */
static void write_fifo(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	ss_text_writer_add(w, "another process to open FIFO ");
	if (wait->path)
		ss_text_writer_add_string(w, wait->path);
	if (wait->access)
		ss_text_writer_add(w, " for %s",
				   wait->access == SS_ACCESS_SHARED ? "writing" :
								      "reading");
}

static void write_other(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (wait->opens_fifo) {
		write_fifo(w, wait);
	} else if (wait->path && !opens(wait)) {
		ss_text_writer_add(w, "system call %s of ", wait->syscall);
		ss_text_writer_add_string(w, wait->path);
	} else if (wait->path) {
		ss_text_writer_add_string(w, wait->path);
		ss_text_writer_add(w, " to be opened");
	} else if (wait->command >= 0) {
		ss_text_writer_add(w, "fcntl command %d", wait->command);
	} else if (wait->syscall && strcmp(wait->syscall, "restart_syscall") == 0) {
		ss_text_writer_add(w, "an interrupted call with a time limit (which one "
				      "is unknown)");
	} else if (wait->syscall) {
		ss_text_writer_add(w, "system call %s", wait->syscall);
	} else {
		ss_text_writer_add(w, "system call %ld", wait->syscall_number);
	}
	if (wait->fd >= 0) {
		ss_text_writer_add(w, " on ");
		write_fd(w, wait);
	}
}

/* What the thread waits for, according to a function on its stack. NULL: no more than the call. */
static const char *purpose_text(const struct ss_wait *wait)
{
	switch (wait->purpose) {
	case SS_PURPOSE_LOCK:
		return wait->purpose_function;
	case SS_PURPOSE_EVENT:
	case SS_PURPOSE_IDLE:
		return wait->purpose_words;
	default:
		return NULL;
	}
}

/* "an application lock: MDL_context::acquire_lock, through ", "a std::future, through " */
static void write_purpose(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	const char *text = purpose_text(wait);

	if (!text)
		return;
	if (wait->purpose == SS_PURPOSE_LOCK)
		ss_text_writer_add(w, "an application lock: ");
	ss_text_writer_add_string(w, text);
	if (wait->purpose == SS_PURPOSE_LOCK && wait->owner_pid)
		write_owner(w, wait);
	ss_text_writer_add(w, ", through ");
}

/* ", on the FUSE file system /mnt, served by 4711 (sshfs)" */
static void write_mount(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	if (!wait->mount)
		return;
	ss_text_writer_add(w, ", on %sFUSE file system", *wait->mount ? "the " : "a ");
	if (*wait->mount) {
		ss_text_writer_add(w, " ");
		ss_text_writer_add_string(w, wait->mount);
	}
	if (!wait->owner_pid)
		return;
	ss_text_writer_add(w, ", served by ");
	if (wait->self_owned)
		ss_text_writer_add(w, "its own process ");
	ss_text_writer_add_id(w, wait->owner_pid, wait->owner_process);
}

static void write_wait(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	static void (*const writers[])(const struct ss_text_writer *w,
				       const struct ss_wait *wait) = {
		[SS_WAIT_OTHER] = write_other,
		[SS_WAIT_FUTEX] = write_lock_wait,
		[SS_WAIT_MUTEX] = write_lock_wait,
		[SS_WAIT_RWLOCK] = write_lock_wait,
		[SS_WAIT_CONDVAR] = write_lock_wait,
		[SS_WAIT_SEMAPHORE] = write_lock_wait,
		[SS_WAIT_BARRIER] = write_lock_wait,
		[SS_WAIT_JOIN] = write_join,
		[SS_WAIT_ONCE] = write_lock_wait,
		[SS_WAIT_POLL] = write_poll,
		[SS_WAIT_SELECT] = write_poll,
		[SS_WAIT_EPOLL] = write_epoll,
		[SS_WAIT_SLEEP] = write_sleep,
		[SS_WAIT_READ] = write_read,
		[SS_WAIT_WRITE] = write_write,
		[SS_WAIT_ACCEPT] = write_accept,
		[SS_WAIT_CONNECT] = write_connect,
		[SS_WAIT_RECEIVE] = write_read,
		[SS_WAIT_SEND] = write_send,
		[SS_WAIT_CHILD] = write_child,
		[SS_WAIT_FILE_LOCK] = write_file_lock,
		[SS_WAIT_SIGNAL] = write_signal,
		[SS_WAIT_IPC] = write_ipc,
		[SS_WAIT_IO] = write_io,
		[SS_WAIT_PTRACE] = write_tracer,
		[SS_WAIT_STOPPED] = write_stopped,
		[SS_WAIT_PAGE_FAULT] = write_page_fault,
		[SS_WAIT_WORK] = write_work,
	};

	write_purpose(w, wait);
	if ((size_t)wait->kind < SS_ARRAY_SIZE(writers))
		writers[wait->kind](w, wait);
	else
		write_other(w, wait);
	if (wait->fanotify)
		ss_text_writer_add(w, ", which another program has to permit (fanotify)");
	write_mount(w, wait);
}

static void write_chain(const struct ss_text_writer *w, const struct ss_wait *wait)
{
	for (size_t i = 0; i < wait->chain_length; i++) {
		const struct ss_task *thread = wait->chain[i].thread;
		ss_text_writer_add(w, i ? "; " : "");
		ss_text_writer_add_id(w, thread->tid, thread->name);
		if (thread->wait) {
			ss_text_writer_add(w, " waits for ");
			write_wait(w, thread->wait);
		} else {
			ss_text_writer_add(w, " is %s", ss_state_name(thread->state));
		}
	}
}

void ss_wait_text_write(const struct ss_wait *wait, bool color, FILE *out)
{
	write_wait(&(struct ss_text_writer){ .out = out, .color = color }, wait);
}

bool ss_wait_text_write_lock(const struct ss_wait *wait, const char *prefix, FILE *out)
{
	const struct ss_text_writer w = { .out = out };

	if (wait->kind == SS_WAIT_FILE_LOCK && wait->owner_pid && wait->descriptor) {
		ss_text_writer_add(&w, "%sa lock on ", prefix);
		ss_descriptor_text_write(&w, wait->descriptor);
		return true;
	}
	if (!wait->owner_tid || wait->kind == SS_WAIT_JOIN)
		return false;
	ss_text_writer_add(&w, "%s", prefix);
	write_lock(&w, wait);
	return true;
}

void ss_wait_text_write_chain(const struct ss_wait *wait, const char *prefix, FILE *out)
{
	const struct ss_text_writer w = { .out = out };

	if (wait->chain_length == 0)
		return;
	ss_text_writer_add(&w, "%s", prefix);
	write_chain(&w, wait);
}

typedef void write_text(const struct ss_text_writer *w, const void *data);

/* Does not escape strings of the target: the user of the text does. */
static char *make_text(write_text *write, const void *data)
{
	struct ss_text_stream text;

	if (!ss_text_stream_open(&text))
		return NULL;
	write(&(struct ss_text_writer){ .out = text.out, .raw = true }, data);
	return ss_text_stream_close(&text);
}

static void write_any_wait(const struct ss_text_writer *w, const void *wait)
{
	write_wait(w, wait);
}

static void write_any_chain(const struct ss_text_writer *w, const void *wait)
{
	write_chain(w, wait);
}

static void write_any_unknown(const struct ss_text_writer *w, const void *wait)
{
	write_unknown(w, wait);
}

static void write_any_descriptor(const struct ss_text_writer *w, const void *descriptor)
{
	ss_descriptor_text_write(w, descriptor);
}

char *ss_wait_text_new(const struct ss_wait *wait)
{
	return make_text(write_any_wait, wait);
}

char *ss_wait_text_new_merged(const struct ss_wait *wait)
{
	struct ss_wait merged = *wait;

	if (wait->kind != SS_WAIT_SLEEP)
		merged.left_ns = -1;
	/* Each thread may wait for it on a condition variable of its own. */
	if (purpose_text(wait)) {
		merged.address = 0;
		merged.symbol = NULL;
	}
	return ss_wait_text_new(&merged);
}

static void write_any_lock(const struct ss_text_writer *w, const void *wait)
{
	write_lock_name(w, wait);
}

char *ss_wait_text_new_lock(const struct ss_wait *wait)
{
	return wait->address && wait->kind != SS_WAIT_JOIN ?
		       make_text(write_any_lock, wait) :
		       NULL;
}

char *ss_wait_text_new_chain(const struct ss_wait *wait)
{
	return wait->chain_length ? make_text(write_any_chain, wait) : NULL;
}

char *ss_wait_text_new_owner_unknown(const struct ss_wait *wait)
{
	return wait->owner_unknown ? make_text(write_any_unknown, wait) : NULL;
}

char *ss_wait_text_new_descriptor(const struct ss_descriptor *descriptor)
{
	return descriptor ? make_text(write_any_descriptor, descriptor) : NULL;
}
