/*
 * Waits in words: data in, sentence out.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include <fcntl.h>
#include <netinet/tcp.h>

#include "base/cleanup.h"
#include "report/wait_text.h"

#define S UINT64_C(1000000000)
#define SIGNAL(number) (UINT64_C(1) << ((number)-1))

#define NO_FD .fd = -1
#define NO_TIME .timeout_ns = -1, .left_ns = -1
/* What does not apply. */
#define NOTHING NO_FD, NO_TIME, .syscall_number = -1, .ipc_id = -1, .command = -1
#define NOTHING_BUT_FD NO_TIME, .syscall_number = -1, .ipc_id = -1, .command = -1

static const struct ss_related_process processes[] = {
	{ .pid = 11, .name = "cat", .state = 'S' },
	{ .pid = 12, .name = "a\033b", .state = 'Z' },
	{ .pid = 13, .state = '?' },
	{ .pid = 14, .name = "make", .state = 'D', .same = true },
	{ .pid = 15, .name = "sh", .state = 'T' },
};

static const struct ss_descriptor eventfd = { .fd = 7, .kind = SS_FD_EVENTFD };
static const struct ss_descriptor file = { .fd = 7, .kind = SS_FD_FILE, .name = "/data" };
static const struct ss_descriptor pipe_end = { .fd = 7,
					       .kind = SS_FD_PIPE,
					       .name = "pipe:[1]",
					       .flags = O_RDONLY,
					       .peers = processes,
					       .peer_count = 2,
					       .peers_searched = true,
					       .peers_incomplete = true };
static const struct ss_descriptor fifo = { .fd = 7,
					   .kind = SS_FD_PIPE,
					   .name = "/run/f",
					   .flags = O_RDWR,
					   .peers = &processes[3],
					   .peer_count = 1 };
static const struct ss_descriptor broken_pipe = { .kind = SS_FD_PIPE,
						  .flags = O_WRONLY,
						  .peers_searched = true };
static const struct ss_descriptor listener = {
	.kind = SS_FD_SOCKET,
	.protocol = "TCP",
	.listening = true,
	.tcp_state = TCP_LISTEN,
	.local = { .size = 4, .port = 80 },
};
static const struct ss_descriptor connection = {
	.kind = SS_FD_SOCKET,
	.protocol = "TCPv6",
	.tcp_state = TCP_CLOSE_WAIT,
	.local = { .bytes = { [15] = 1 }, .size = 16, .port = 80 },
	.remote = { .bytes = { [10] = 0xff, 0xff, 10, 0, 0, 1 }, .size = 16, .port = 81 },
};
static const struct ss_descriptor unknown_socket = { .kind = SS_FD_SOCKET };
static const struct ss_descriptor netlink = { .kind = SS_FD_SOCKET,
					      .protocol = "NETLINK" };
static const struct ss_descriptor unix_socket = { .kind = SS_FD_SOCKET,
						  .protocol = "UNIX",
						  .peer_path = "@bus",
						  .peers = processes,
						  .peer_count = 1 };
static const struct ss_descriptor timer = { .kind = SS_FD_TIMERFD,
					    .timer_known = true,
					    .timer_left_ns = 90 * S,
					    .timer_interval_ns = S / 2 };
static const struct ss_descriptor idle_timer = { .kind = SS_FD_TIMERFD,
						 .timer_known = true };
static const struct ss_descriptor signals = {
	.kind = SS_FD_SIGNALFD, .signals = SIGNAL(1) | SIGNAL(2) | SIGNAL(40)
};
static const struct ss_descriptor pidfd = { .kind = SS_FD_PIDFD, .process_ended = true };
static const struct ss_descriptor memfd = { .kind = SS_FD_MEMFD, .name = "heap" };
static const struct ss_descriptor inotify = { .kind = SS_FD_INOTIFY,
					      .inotify_watches = 1 };

static const struct ss_watched_fd fds[] = {
	{ .fd = 1, .input = true, .what = &eventfd },
	{ .fd = 2, .output = true },
	{ .fd = 3 },
	{ .fd = 4 },
	{ .fd = 5 },
	{ .fd = 6 },
	{ .fd = 7 },
	{ .fd = 8 },
	{ .fd = 9 },
};

static const struct ss_descriptor epoll = {
	.kind = SS_FD_EPOLL, .watches = fds, .watch_count = 2, .watches_incomplete = true
};
static const struct ss_descriptor idle_epoll = { .kind = SS_FD_EPOLL };

/* clang-format off */
static const struct {
	const char *text;
	struct ss_wait wait;
} waits[] = {
	/* locks */
	{ "mutex stock+0x8 (0x1008), held by 4711 (worker-3)",
	  { NOTHING, .kind = SS_WAIT_MUTEX, .lock = SS_LOCK_MUTEX, .symbol = "stock",
	    .symbol_offset = 8, .address = 0x1008, .owner_tid = 4711,
	    .owner_name = "worker-3" } },
	{ "robust mutex at 0x10, held by 5 (b) of another process, with a time limit",
	  { NOTHING, .kind = SS_WAIT_MUTEX, .lock = SS_LOCK_ROBUST_MUTEX,
	    .address = 0x10, .owner_tid = 5, .owner_pid = 5, .owner_name = "b",
	    .owner_process = "b", .timed = true } },
	{ "recursive mutex at 0x10, held by 6 (b) of process 5 (c)",
	  { NOTHING, .kind = SS_WAIT_MUTEX, .lock = SS_LOCK_RECURSIVE_MUTEX,
	    .address = 0x10, .owner_tid = 6, .owner_pid = 5, .owner_name = "b",
	    .owner_process = "c" } },
	{ "mutex at 0x10, held by the thread itself",
	  { NOTHING, .kind = SS_WAIT_MUTEX, .lock = SS_LOCK_MUTEX, .address = 0x10,
	    .owner_tid = 6, .owner_name = "b", .self_owned = true } },
	{ "mutex at 0x10, owner unknown: thread 7, which took it, has ended or was not "
	  "captured",
	  { NOTHING, .kind = SS_WAIT_MUTEX, .lock = SS_LOCK_MUTEX, .address = 0x10,
	    .owner_unknown = SS_OWNER_GONE, .owner_unknown_tid = 7 } },
	{ "PI mutex that the kernel refused (deadlock, or its owner has ended), forever",
	  { NOTHING, .kind = SS_WAIT_MUTEX, .lock = SS_LOCK_PI_MUTEX,
	    .owner_unknown = SS_OWNER_REFUSED } },
	{ "Java monitor, owner unknown: only the Java virtual machine knows it (see "
	  "jstack)",
	  { NOTHING, .kind = SS_WAIT_MUTEX, .lock = SS_LOCK_JAVA_MONITOR,
	    .owner_unknown = SS_OWNER_RUNTIME } },
	{ "read access to rwlock cache (0x10), held for writing by 6 (b)",
	  { NOTHING, .kind = SS_WAIT_RWLOCK, .lock = SS_LOCK_RWLOCK, .symbol = "cache",
	    .address = 0x10, .access = SS_ACCESS_SHARED, .owner_tid = 6,
	    .owner_name = "b", .owner_access = SS_ACCESS_EXCLUSIVE } },
	{ "write access to Rust RwLock at 0x10, held by 2 readers, owner unknown: the "
	  "lock does not identify its readers",
	  { NOTHING, .kind = SS_WAIT_RWLOCK, .lock = SS_LOCK_RUST_RWLOCK,
	    .address = 0x10, .access = SS_ACCESS_EXCLUSIVE, .readers = 2,
	    .owner_access = SS_ACCESS_SHARED, .owner_unknown = SS_OWNER_READERS } },
	{ "semaphore slots (0x10), value 0",
	  { NOTHING, .kind = SS_WAIT_SEMAPHORE, .lock = SS_LOCK_SEMAPHORE,
	    .symbol = "slots", .address = 0x10 } },
	{ "barrier at 0x10, 1 of 3 threads arrived",
	  { NOTHING, .kind = SS_WAIT_BARRIER, .lock = SS_LOCK_BARRIER, .address = 0x10,
	    .arrived = 1, .needed = 3 } },
	{ "condition variable, with a time limit",
	  { NOTHING, .kind = SS_WAIT_CONDVAR, .lock = SS_LOCK_CONDVAR, .timed = true } },
	{ "any of 3 futexes, 1.5 s left",
	  { NO_FD, .kind = SS_WAIT_FUTEX, .futexes = 3, .timed = true, .timeout_ns = -1,
	    .left_ns = 3 * S / 2 } },
	{ "futex at 0x10, for at most 20 ms",
	  { NO_FD, .kind = SS_WAIT_FUTEX, .address = 0x10, .timed = true,
	    .timeout_ns = S / 50, .left_ns = -1 } },
	{ "thread 6 (b) to end",
	  { NOTHING, .kind = SS_WAIT_JOIN, .lock = SS_LOCK_THREAD, .address = 0x10,
	    .owner_tid = 6, .owner_name = "b" } },
	{ "an unknown thread to end",
	  { NOTHING, .kind = SS_WAIT_JOIN, .lock = SS_LOCK_THREAD,
	    .owner_unknown = SS_OWNER_GONE } },
	{ "futex at 0x10",
	  { NOTHING, .kind = SS_WAIT_FUTEX, .address = 0x10,
	    .owner_unknown = SS_OWNER_NO_SYMBOLS } },
	{ "any of 3 futexes", { NOTHING, .kind = SS_WAIT_FUTEX, .futexes = 3 } },
	{ "a std::future, through futex at 0x10",
	  { NOTHING, .kind = SS_WAIT_FUTEX, .address = 0x10,
	    .purpose = SS_PURPOSE_EVENT, .purpose_function = "f",
	    .purpose_words = "a std::future" } },
	{ "futex at 0x10",
	  { NOTHING, .kind = SS_WAIT_FUTEX, .address = 0x10,
	    .purpose = SS_PURPOSE_EVENT, .purpose_function = "f" } },
	{ "the initialization of guard (0x10), executed by 6 (b)",
	  { NOTHING, .kind = SS_WAIT_ONCE, .lock = SS_LOCK_STATIC_INIT, .address = 0x10,
	    .symbol = "guard", .owner_tid = 6, .owner_name = "b" } },
	{ "lock of a stdio stream at 0x10, held by 6 (b)",
	  { NOTHING, .kind = SS_WAIT_MUTEX, .lock = SS_LOCK_STREAM, .address = 0x10,
	    .owner_tid = 6, .owner_name = "b" } },
	/* file descriptors */
	{ "input from fd 7", { NOTHING_BUT_FD, .kind = SS_WAIT_READ, .fd = 7 } },
	{ "data from fd 7, /data",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_READ, .fd = 7, .descriptor = &file } },
	{ "data to be written to fd 7, /data",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_WRITE, .fd = 7, .descriptor = &file } },
	{ "input from fd 7, pipe, written by 11 (cat), 12 (a\\x1bb), perhaps others",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_READ, .fd = 7, .descriptor = &pipe_end } },
	{ "room to write to fd 7, pipe, other end not open in any process",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_WRITE, .fd = 7, .descriptor = &broken_pipe } },
	{ "input from fd 7, pipe /run/f, also open in the same process",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_READ, .fd = 7, .descriptor = &fifo } },
	{ "a connection to fd 3, TCP socket listening on *:80",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_ACCEPT, .fd = 3, .descriptor = &listener } },
	{ "input from fd 3, TCPv6 connection [::1]:80 to 10.0.0.1:81 (closed by the "
	  "peer), for at most 1.5 s",
	  { .kind = SS_WAIT_RECEIVE, .fd = 3, .descriptor = &connection,
	    .timeout_ns = 1500000000, .left_ns = -1, .command = -1 } },
	{ "the peer to accept fd 3, socket",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_CONNECT, .fd = 3,
	    .descriptor = &unknown_socket } },
	{ "room to send to fd 3, NETLINK socket",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_SEND, .fd = 3, .descriptor = &netlink } },
	{ "input from fd 3, UNIX socket @bus, connected to 11 (cat)",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_RECEIVE, .fd = 3,
	    .descriptor = &unix_socket } },
	{ "input from fd 3, timerfd, 90 s left, then every 500 ms",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_READ, .fd = 3, .descriptor = &timer } },
	{ "input from fd 3, timerfd, not armed",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_READ, .fd = 3, .descriptor = &idle_timer } },
	{ "input from fd 3, signalfd for HUP, INT and 40",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_READ, .fd = 3, .descriptor = &signals } },
	{ "input from fd 3, inotify with 1 watch",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_READ, .fd = 3, .descriptor = &inotify } },
	{ "data from fd 3, memfd heap",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_READ, .fd = 3, .descriptor = &memfd } },
	{ "60 min to pass",
	  { .kind = SS_WAIT_POLL, NO_FD, .timed = true, .timeout_ns = 3600 * S,
	    .left_ns = -1 } },
	{ "a signal (no file descriptor is watched)", { NOTHING, .kind = SS_WAIT_POLL } },
	{ "file descriptors that could not be read",
	  { NOTHING, .kind = SS_WAIT_POLL, .fds_incomplete = true } },
	{ "room to write to fd 2",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_POLL, .fd = 2, .fds = &fds[1], .fd_count = 1 } },
	{ "an error on fd 3",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_SELECT, .fd = 3, .fds = &fds[2],
	    .fd_count = 1 } },
	{ "input from or room to write to any of at least 9 fds: 1 (eventfd), 2, 3, 4, 5, "
	  "6, 7, 8 and at least 1 more",
	  { NOTHING, .kind = SS_WAIT_POLL, .fds = fds, .fd_count = 9,
	    .fds_incomplete = true } },
	{ "an event on epoll fd 3, which watches at least 2 fds: 1 (eventfd), 2 and more, "
	  "5 s left",
	  { .kind = SS_WAIT_EPOLL, .fd = 3, .descriptor = &epoll, .timeout_ns = -1,
	    .left_ns = 5 * S } },
	{ "an event on epoll fd 3, which watches nothing",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_EPOLL, .fd = 3, .descriptor = &idle_epoll } },
	{ "an event on epoll fd 3", { NOTHING_BUT_FD, .kind = SS_WAIT_EPOLL, .fd = 3 } },
	/* time */
	{ "200 ms to pass",
	  { NO_FD, .kind = SS_WAIT_SLEEP, .timeout_ns = S / 5, .left_ns = -1 } },
	{ "the remaining 3 days to pass",
	  { NO_FD, .kind = SS_WAIT_SLEEP, .timeout_ns = -1, .left_ns = 3 * 86400 * S } },
	{ "an unknown time to pass", { NOTHING, .kind = SS_WAIT_SLEEP } },
	/* processes */
	{ "child process 11 (cat, sleeping)",
	  { NOTHING, .kind = SS_WAIT_CHILD, .child_scope = SS_CHILD_PID, .child_id = 2,
	    .children = processes, .child_count = 1, .children_total = 1 } },
	{ "child process 2",
	  { NOTHING, .kind = SS_WAIT_CHILD, .child_scope = SS_CHILD_PID, .child_id = 2 } },
	{ "any child process: 11 (cat, sleeping), 12 (a\\x1bb, zombie), 13 (?, in an "
	  "unknown state), 14 (make, in uninterruptible sleep (D)) and 16 more",
	  { NOTHING, .kind = SS_WAIT_CHILD, .child_scope = SS_CHILD_ANY,
	    .children = processes, .child_count = 5, .children_total = 20,
	    .children_known = true } },
	{ "any child process (there is none)",
	  { NOTHING, .kind = SS_WAIT_CHILD, .child_scope = SS_CHILD_ANY,
	    .children_known = true } },
	{ "any child process of process group 9",
	  { NOTHING, .kind = SS_WAIT_CHILD, .child_scope = SS_CHILD_GROUP,
	    .child_id = 9 } },
	{ "any child process of its own process group",
	  { NOTHING, .kind = SS_WAIT_CHILD, .child_scope = SS_CHILD_OWN_GROUP } },
	{ "the child process of fd 5, pidfd of a process that has ended",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_CHILD, .child_scope = SS_CHILD_PIDFD, .fd = 5,
	    .descriptor = &pidfd } },
	{ "its vfork child to call exec or exit: 11 (cat, sleeping)",
	  { NOTHING, .kind = SS_WAIT_CHILD, .child_scope = SS_CHILD_VFORK,
	    .children = processes, .child_count = 1, .children_total = 1 } },
	{ "an exclusive lock on bytes 12 to 16 of fd 7, /data, held by 11 (cat)",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_FILE_LOCK, .fd = 7, .descriptor = &file,
	    .access = SS_ACCESS_EXCLUSIVE, .range = SS_RANGE_BYTES, .range_first = 12,
	    .range_last = 16, .owner_pid = 11, .owner_process = "cat" } },
	{ "a shared lock on bytes 12 to the end of fd 7, held by its own process",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_FILE_LOCK, .fd = 7,
	    .access = SS_ACCESS_SHARED, .range = SS_RANGE_BYTES, .range_first = 12,
	    .range_last = UINT64_MAX, .owner_pid = 11, .self_owned = true } },
	{ "a lock on a part of fd 7, owner unknown: the lock was not found in "
	  "/proc/locks",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_FILE_LOCK, .fd = 7, .range = SS_RANGE_PART,
	    .owner_unknown = SS_OWNER_NOT_LISTED } },
	{ "its tracer 11 (gdb) to resume it",
	  { NOTHING, .kind = SS_WAIT_PTRACE, .owner_pid = 11, .owner_process = "gdb" } },
	/* the kernel */
	{ "one of the signals none",
	  { NOTHING, .kind = SS_WAIT_SIGNAL, .signals_known = true } },
	{ "one of the signals HUP, INT, QUIT, ILL, TRAP, ABRT and 58 more",
	  { NOTHING, .kind = SS_WAIT_SIGNAL, .signals_known = true,
	    .signals = UINT64_MAX } },
	{ "a signal", { NOTHING, .kind = SS_WAIT_SIGNAL } },
	{ "System V semaphore set 4: number 2 to reach 3 (first of 2 operations)",
	  { NO_FD, NO_TIME, .kind = SS_WAIT_IPC, .ipc = SS_IPC_SEMAPHORE, .ipc_id = 4,
	    .semaphore = 2, .semaphore_change = -3, .semaphore_operations = 2 } },
	{ "System V semaphore set 4: number 2 to reach 1, probably held by 11 (cat), which "
	  "changed it last",
	  { NO_FD, NO_TIME, .kind = SS_WAIT_IPC, .ipc = SS_IPC_SEMAPHORE, .ipc_id = 4,
	    .semaphore = 2, .semaphore_change = -1, .semaphore_operations = 1,
	    .operator_pid = 11, .operator_process = "cat" } },
	{ "a message in System V queue 4",
	  { NO_FD, NO_TIME, .kind = SS_WAIT_IPC, .ipc = SS_IPC_RECEIVE, .ipc_id = 4 } },
	{ "room in the queue of fd 7, /data",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_IPC, .ipc = SS_IPC_SEND, .fd = 7,
	    .descriptor = &file } },
	{ "2 completions of asynchronous I/O",
	  { NOTHING, .kind = SS_WAIT_IO, .completions = 2 } },
	{ "1 completion of fd 7",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_IO, .completions = 1, .fd = 7 } },
	{ "fsync to finish on fd 7, /data",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_IO, .syscall = "fsync", .fd = 7,
	    .descriptor = &file } },
	{ "SIGCONT (it is stopped by a signal)", { NOTHING, .kind = SS_WAIT_STOPPED } },
	{ "memory (it is not in a system call)", { NOTHING, .kind = SS_WAIT_PAGE_FAULT } },
	{ "work (it is a kernel worker thread)",
	  { NOTHING, .kind = SS_WAIT_WORK } },
	{ "/run/f to be opened, which another program has to permit (fanotify)",
	  { NOTHING, .kind = SS_WAIT_OTHER, .path = "/run/f", .fanotify = true } },
	{ "/run/f to be opened", { NOTHING, .kind = SS_WAIT_OTHER, .path = "/run/f" } },
	{ "another process to open FIFO /run/f for writing",
	  { NOTHING, .kind = SS_WAIT_OTHER, .syscall = "openat", .path = "/run/f",
	    .opens_fifo = true, .access = SS_ACCESS_SHARED } },
	{ "another process to open FIFO /run/f for reading",
	  { NOTHING, .kind = SS_WAIT_OTHER, .syscall = "creat", .path = "/run/f",
	    .opens_fifo = true, .access = SS_ACCESS_EXCLUSIVE } },
	{ "system call statx of /mnt/a, on the FUSE file system /mnt, served by 11 (sshfs)",
	  { NOTHING, .kind = SS_WAIT_OTHER, .syscall = "statx", .path = "/mnt/a",
	    .mount = "/mnt", .owner_pid = 11, .owner_process = "sshfs" } },
	{ "/mnt/a to be opened, on a FUSE file system",
	  { NOTHING, .kind = SS_WAIT_OTHER, .syscall = "openat", .path = "/mnt/a",
	    .mount = "" } },
	{ "system call ioctl on fd 7",
	  { NOTHING_BUT_FD, .kind = SS_WAIT_OTHER, .syscall = "ioctl", .fd = 7 } },
	{ "fcntl command 1024 on fd 7",
	  { NO_TIME, .kind = SS_WAIT_OTHER, .syscall = "fcntl", .command = 1024, .fd = 7 } },
	{ "system call 999",
	  { NO_FD, NO_TIME, .kind = SS_WAIT_OTHER, .command = -1, .syscall_number = 999 } },
	{ "an interrupted call with a time limit (which one is unknown)",
	  { NOTHING, .kind = SS_WAIT_OTHER, .syscall = "restart_syscall" } },
};
/* clang-format on */

TEST(test_sentences)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(waits); i++) {
		_cleanup_free_ char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		assert_non_null(out);
		ss_wait_text_write(&waits[i].wait, false, out);
		assert_int_equal(fclose(out), 0);
		assert_string_equal(text, waits[i].text);
	}
}

/* Every kind has its own words, and no type of lock is without a noun. */
TEST(test_every_value)
{
	for (int kind = 0; kind <= SS_WAIT_WORK + 1; kind++) {
		for (int lock = 0; lock <= SS_LOCK_JAVA_MONITOR + 1; lock++) {
			for (int why = 0; why <= SS_OWNER_ALONE + 1; why++) {
				const struct ss_wait wait = {
					NOTHING,
					.kind = (enum ss_wait_kind)kind,
					.lock = (enum ss_lock_type)lock,
					.owner_unknown = (enum ss_owner_unknown)why,
				};
				_cleanup_free_ char *text = ss_wait_text_new(&wait);
				assert_non_null(text);
				assert_true(text[0]);
			}
		}
	}
}

/* Strings for JSON are escaped by who writes them. */
TEST(test_raw)
{
	const struct ss_wait wait = { NOTHING, .kind = SS_WAIT_PTRACE, .owner_pid = 1,
				      .owner_process = "a\033b" };
	_cleanup_free_ char *text = ss_wait_text_new(&wait);

	assert_string_equal(text, "its tracer 1 (a\033b) to resume it");
	assert_null(ss_wait_text_new_chain(&wait));
	assert_null(ss_wait_text_new_owner_unknown(&wait));
	assert_null(ss_wait_text_new_descriptor(NULL));
}

TEST(test_chain)
{
	const struct ss_wait sleep = { .kind = SS_WAIT_SLEEP,
				       .timeout_ns = 1000000000,
				       .left_ns = -1 };
	const struct ss_task threads[] = {
		{ .tid = 5, .name = "a", .state = 'S', .wait = &sleep },
		{ .tid = 6, .name = "b", .state = 'R' },
	};
	const struct ss_thread_ref chain[] = { { .thread = &threads[0] },
					       { .thread = &threads[1] } };
	const struct ss_wait wait = { NOTHING, .chain = chain, .chain_length = 2 };
	_cleanup_free_ char *text = ss_wait_text_new_chain(&wait);

	assert_string_equal(text, "5 (a) waits for 1 s to pass; 6 (b) is running");
}

/* What the next thread of a cycle holds. */
TEST(test_lock)
{
	const struct ss_wait lock = {
		NOTHING,	 .kind = SS_WAIT_RWLOCK,     .lock = SS_LOCK_RWLOCK,
		.address = 0x10, .access = SS_ACCESS_SHARED, .owner_tid = 5
	};
	const struct ss_wait join = { NOTHING, .kind = SS_WAIT_JOIN, .owner_tid = 5 };
	const struct ss_wait file_lock = {
		.kind = SS_WAIT_FILE_LOCK, .fd = 7, .descriptor = &file, .owner_pid = 5
	};
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_true(ss_wait_text_write_lock(&lock, "holds ", out));
	assert_false(ss_wait_text_write_lock(&join, "; holds ", out));
	assert_true(ss_wait_text_write_lock(&file_lock, "; holds ", out));
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "holds rwlock at 0x10; holds a lock on /data");
}
