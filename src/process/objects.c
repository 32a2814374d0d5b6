#include "process/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/scan.h"
#include "base/search.h"
#include "data/call.h"
#include "data/capture.h"
#include "data/futex.h"
#include "process/target.h"
#include "process/process_memory.h"

/*
 * The memory that arguments of system calls point to: taken from the copied stacks if
 * possible, otherwise read after the release.
 */

enum {
	TOTAL_MAX = 16 << 20, /* bytes of all arguments together */
	PAGE = 4096,
	/* delay for threads that are about to return to their call: 100 us, doubled
	   each time, 12.7 ms in total */
	NAP_NS = 100 * 1000,
	NAPS = 7,
};

struct arguments {
	const struct ss_arch *arch;
	struct ss_facts *facts;
	const struct ss_process_memory *memory;
	size_t left;   /* of TOTAL_MAX */
	unsigned naps; /* delays spent on unknown calls */
	/* The last code that was read: many threads wait at the same place. */
	uint64_t restarted_pc;
	enum ss_syscall_id restarted;
	/* The last owner of a stream, for the same reason. */
	uint64_t stream_thread;
	pid_t stream_owner;
};

static const uint8_t *find_copy(const struct ss_capture_thread *thread, uint64_t address,
				size_t size)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &thread->stacks[i];
		if (copy->bytes && address >= copy->address &&
		    address - copy->address <= copy->size &&
		    size <= ss_stack_copy_present(copy, address - copy->address))
			return copy->bytes + (address - copy->address);
	}
	return NULL;
}

/* Reads up to size bytes; strings may be shorter. */
static size_t read_memory(const struct ss_process_memory *memory, uint64_t address,
			  void *bytes, size_t size)
{
	struct ss_piece piece = { .address = address, .bytes = bytes, .size = size };

	ss_process_memory_read(memory, &piece, 1);
	return piece.done;
}

static void take_bytes(struct arguments *a, const struct ss_capture_thread *thread,
		       uint64_t address, size_t size, struct ss_memory_fact *ret)
{
	const uint8_t *copy = find_copy(thread, address, size);

	if (address == 0 || size == 0 || size > a->left)
		return;
	uint8_t *bytes = ss_facts_keep(a->facts, size);
	if (!bytes)
		return;
	a->left -= size;
	if (copy)
		memcpy(bytes, copy, size);
	else
		size = read_memory(a->memory, address, bytes, size);
	*ret = (struct ss_memory_fact){ .address = address,
					.size = size,
					.bytes = bytes };
}

static void nap(unsigned doublings)
{
	ss_sleep_ns((uint64_t)NAP_NS << doublings);
}

/* In syscall(3), and in glibc since 2.41, the code does not show the number of the call. The kernel
   function in which it waits does, once the thread is back in the call; these names
   have been stable for many years. UNKNOWN otherwise. */
static enum ss_syscall_id find_where_it_waits(struct arguments *a,
					      const struct ss_target *target, pid_t tid)
{
	static const struct {
		const char *begin;
		enum ss_syscall_id id;
	} places[] = { { "futex_", SS_SYS_FUTEX },
		       { "poll_schedule_timeout", SS_SYS_POLL },
		       { "do_poll", SS_SYS_POLL },
		       { "do_sys_poll", SS_SYS_POLL },
		       /* hrtimer_nanosleep_restart() is seldom seen: it calls last. */
		       { "hrtimer_nanosleep", SS_SYS_CLOCK_NANOSLEEP },
		       { "__do_sys_restart_syscall", SS_SYS_CLOCK_NANOSLEEP },
		       { "__x64_sys_restart_syscall", SS_SYS_CLOCK_NANOSLEEP },
		       { "do_syscall_64", SS_SYS_CLOCK_NANOSLEEP } };
	_cleanup_buffer_ struct ss_buffer text = {};

	for (;; nap(a->naps++)) {
		bool known = ss_target_read_task(target, tid, "wchan", &text);
		for (size_t i = 0; known && i < SS_ARRAY_SIZE(places); i++) {
			const char *begin = places[i].begin;
			if (strncmp(text.bytes, begin, strlen(begin)) == 0)
				return places[i].id;
		}
		if (!known || strcmp(text.bytes, "0") != 0 || a->naps == NAPS)
			return SS_SYS_UNKNOWN;
	}
}

/* The call that the code before pc makes. UNKNOWN: it does not show it. */
static enum ss_syscall_id find_in_code(struct arguments *a, uint64_t pc)
{
	uint8_t code[SS_SYSCALL_CODE];

	if (pc == a->restarted_pc)
		return a->restarted;
	a->restarted_pc = pc;
	a->restarted = SS_SYS_UNKNOWN;
	if (pc >= sizeof(code) &&
	    read_memory(a->memory, pc - sizeof(code), code, sizeof(code)) == sizeof(code))
		a->restarted = ss_arch_restarted_call(a->arch, code, sizeof(code));
	return a->restarted;
}

static void find_restarted(struct arguments *a, const struct ss_target *target,
			   const struct ss_capture_thread *thread,
			   struct ss_thread_facts *facts)
{
	enum ss_syscall_id id = find_in_code(a, ss_regs_pc(target->arch, &thread->regs));

	facts->restarted = true;
	if (id == SS_SYS_UNKNOWN) {
		id = find_where_it_waits(a, target, thread->tid);
		/* Its first argument is a clock, that of nanosleep(2) an address. */
		if (id == SS_SYS_CLOCK_NANOSLEEP && facts->call.args[0] >= PAGE)
			id = SS_SYS_NANOSLEEP;
	}
	if (id == SS_SYS_UNKNOWN)
		return;
	facts->call.id = id;
	facts->call.number = ss_arch_syscall_number(target->arch, id);
}

/*
 * A locked stream names its owner by the address of its struct pthread, which mostly begins with its
 * own address (glibc's stdio-lock.h, tls.h). That of a thread that was not stopped is not known
 * otherwise.
 */
static void find_stream_owner(struct arguments *a, struct ss_thread_facts *thread)
{
	enum { COUNT = 4, OWNER = 8, COUNT_MAX = 1000 };
	const struct ss_memory_fact *lock = &thread->lock;
	const size_t word = a->arch->word;
	struct ss_futex futex;
	uint64_t self = 0;
	uint32_t count;
	uint32_t tid;

	if (!a->arch->pthread_tid || !ss_futex_parse(&thread->call, &futex))
		return;
	const uint64_t at = futex.address - lock->address;
	if (at > lock->size || lock->size - at < OWNER + word)
		return;
	memcpy(&count, lock->bytes + at + COUNT, sizeof(count));
	const uint64_t address = ss_load_word(lock->bytes, at + OWNER, word);
	if (count > COUNT_MAX || address == 0 || address % word)
		return;
	if (address != a->stream_thread) {
		a->stream_thread = address;
		a->stream_owner = 0;
		if (read_memory(a->memory, address, &self, word) == word &&
		    (self == address || a->arch->pthread_below) &&
		    read_memory(a->memory, address + a->arch->pthread_tid, &tid,
				sizeof(tid)) == sizeof(tid))
			a->stream_owner = (pid_t)tid;
	}
	thread->stream_owner = a->stream_owner;
}

/* Sets the memory of each thread's facts, and the original call of a restarted one.
   facts->threads and capture->threads have the same order. */
static void arguments_read(struct ss_facts *facts, const struct ss_capture *capture,
			   const struct ss_target *target,
			   const struct ss_process_memory *memory)
{
	struct arguments a = {
		.arch = target->arch, .facts = facts, .memory = memory, .left = TOTAL_MAX
	};

	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		const struct ss_capture_thread *from = &capture->threads.items[i];
		if (thread->call.id == SS_SYS_RESTART_SYSCALL)
			find_restarted(&a, target, from, thread);
		find_stream_owner(&a, thread);
		const struct ss_call *call = ss_call_find(thread->call.id);
		for (size_t m = 0; call && m < SS_CALL_MEMORY; m++) {
			const struct ss_call_memory *spec = &call->memory[m];
			if (spec->arg == 0)
				break;
			int arg = spec->arg - 1;
			take_bytes(&a, from, thread->call.args[arg],
				   ss_call_memory_size(spec, &thread->call),
				   &thread->memory[arg]);
		}
	}
}

/* After a stop a call may continue as restart_syscall; or, if the stop ended the wait,
   as the same call with the remaining time. */
static bool is_same_call(const struct ss_arch *arch, const struct ss_syscall_text *now,
			 const struct ss_syscall *then, const struct ss_call *call,
			 uint64_t sp)
{
	if (now->kind != SS_SYSCALL_BLOCKED || now->sp != sp ||
	    (now->number != then->number &&
	     ss_arch_syscall_id(arch, now->number) != SS_SYS_RESTART_SYSCALL))
		return false;
	for (int i = 0; i < SS_SYSCALL_ARGS; i++) {
		bool is_time = call->timeout_type == SS_TIMEOUT_MS &&
			       i == call->timeout - 1;
		if (now->args[i] != then->args[i] && !is_time)
			return false;
	}
	return true;
}

static bool has_objects(const struct ss_call *call)
{
	return call && (call->fd || call->path || call->kind == SS_WAIT_POLL ||
			call->kind == SS_WAIT_SELECT || call->kind == SS_WAIT_CHILD);
}

/* Returns false if the thread runs: after a stop, it runs until it is back in its
   call. */
static bool check_thread(struct ss_thread_facts *thread,
			 const struct ss_capture_thread *from,
			 const struct ss_target *target,
			 const struct ss_kept_files *counters, struct ss_buffer *text)
{
	const struct ss_call *call = ss_call_find(thread->call.id);
	struct ss_syscall_text now;

	if (!has_objects(call) || thread->still_in_call || from->state == 'R')
		return true;
	if (from->consistent && from->run_count != 0 &&
	    ss_kept_files_count_runs(counters, thread->tid) == from->run_count) {
		thread->still_in_call = true;
		return true;
	}
	if (!ss_target_read_syscall(target, thread->tid, text, &now))
		return true;
	if (now.kind == SS_SYSCALL_RUNNING)
		return false;
	thread->still_in_call = is_same_call(target->arch, &now, &from->syscall, call,
					     ss_regs_sp(target->arch, &from->regs));
	return true;
}

/* Sets still_in_call for each thread that waits for an object and is in the same call
   as in the capture: one whose counter shows that it has not run needs no other look. counters may
   be NULL. */
static void arguments_check(struct ss_facts *facts, const struct ss_capture *capture,
			    const struct ss_target *target,
			    const struct ss_kept_files *counters)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	size_t first = 0; /* all earlier ones are done */

	for (unsigned i = 0; i < NAPS; i++) {
		size_t runs = facts->threads.count;
		for (size_t k = facts->threads.count; k-- > first;) {
			if (!check_thread(&facts->threads.items[k],
					  &capture->threads.items[k], target, counters,
					  &text))
				runs = k;
		}
		first = runs;
		if (first == facts->threads.count)
			return;
		nap(i);
	}
}

/*
 * Connected and listening sockets of which the capture before, of a series, knows everything.
 * The end of a connection wakes up the threads that wait for its data. So what was known of the
 * socket of such a thread is still true if the thread has not run since.
 */

/* The descriptors for which threads wait that have not run. */
struct waited {
	SS_VECTOR(int) fds;
};

static void add(struct waited *waited, int fd)
{
	int *slot = ss_vector_push(&waited->fds);

	if (slot)
		*slot = fd;
}

static void add_thread(struct waited *waited, const struct ss_thread_facts *thread)
{
	const struct ss_call *call = ss_call_find(thread->call.id);
	struct ss_watch watch;

	for (size_t at = 0; ss_facts_next_watch(thread, &at, &watch);)
		add(waited, watch.fd);
	if (call && call->fd)
		add(waited, (int)(uint32_t)thread->call.args[call->fd - 1]);
}

static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a;
	int y = *(const int *)b;

	return (x > y) - (x < y);
}

static bool is_waited_for(const struct waited *waited, int fd)
{
	return waited->fds.count && bsearch(&fd, waited->fds.items, waited->fds.count,
					    sizeof(int), compare_ints);
}

/* Whether it stays as it is until a thread that waits for it wakes up. Another kind of socket
   can be connected to something else at any time. */
static bool is_lasting(const struct ss_socket_fact *socket)
{
	const char *protocol = socket->protocol ? socket->protocol : "";

	if (!socket->found)
		return false;
	if (strcmp(protocol, "UNIX-STREAM") == 0)
		return socket->listens || socket->peer_inode != 0;
	return strncmp(protocol, "TCP", 3) == 0 &&
	       (socket->inet.state == TCP_ESTABLISHED ||
		socket->inet.state == TCP_LISTEN);
}

static const char *keep_string(struct ss_facts *facts, const char *string)
{
	return string ? ss_intern_string(facts->strings, string) : NULL;
}

/* Whether both are of the same socket. */
static bool is_same_socket(const struct ss_fd_fact *now, const struct ss_fd_fact *then)
{
	return then && now->kind == SS_FD_SOCKET && then->kind == SS_FD_SOCKET &&
	       now->inode != 0 && now->inode == then->inode && now->socket.protocol &&
	       then->socket.protocol &&
	       strcmp(now->socket.protocol, then->socket.protocol) == 0;
}

/* Sets the socket of those entries of facts->fds. facts->threads and capture->threads have the same order. */
static void connections_keep(struct ss_facts *facts, const struct ss_capture *capture,
			     const struct ss_facts *previous)
{
	struct waited waited = {};

	for (size_t i = 0; i < facts->threads.count; i++)
		if (capture->threads.items[i].not_run)
			add_thread(&waited, &facts->threads.items[i]);
	if (waited.fds.count > 1)
		qsort(waited.fds.items, waited.fds.count, sizeof(int), compare_ints);
	for (size_t i = 0; i < facts->fds.count; i++) {
		struct ss_fd_fact *fact = &facts->fds.items[i];
		const struct ss_fd_fact *then = ss_facts_find_fd(previous, fact->fd);
		if (!is_waited_for(&waited, fact->fd) || !is_same_socket(fact, then) ||
		    !is_lasting(&then->socket))
			continue;
		const char *protocol = fact->socket.protocol;
		fact->socket = then->socket;
		fact->socket.protocol = protocol;
		fact->socket.path = keep_string(facts, then->socket.path);
		fact->socket.peer_path = keep_string(facts, then->socket.peer_path);
	}
	ss_vector_free(&waited.fds);
}

enum {
	FDS_MAX = 8192, /* of all threads */
	WATCHES_MAX = 4096,
	FDINFO_MAX = 1 << 20,
	/* descriptors of a poll: a call with more is the event loop of a server */
	FEW = 4,
};

struct descriptors {
	struct ss_facts *facts;
	const struct ss_target *target;
	const struct ss_facts *previous; /* or NULL */
	SS_VECTOR(int) fds;		 /* to be read */
	SS_VECTOR(int)
	/* a thread waits for this descriptor alone, or for it and a few others */
	resolve_peers;
	struct ss_buffer text;
};

static void want(struct descriptors *d, int fd)
{
	int *slot = fd >= 0 && d->fds.count < FDS_MAX ? ss_vector_push(&d->fds) : NULL;

	if (slot)
		*slot = fd;
}

static void follow(struct descriptors *d, int fd)
{
	int *slot = fd >= 0 && d->resolve_peers.count < FDS_MAX ?
			    ss_vector_push(&d->resolve_peers) :
			    NULL;

	if (slot)
		*slot = fd;
}

static void want_watched(struct descriptors *d, const struct ss_thread_facts *thread)
{
	struct ss_watch watch;
	size_t count = 0;

	for (size_t at = 0;
	     count < SS_SET_SHOWN && ss_facts_next_watch(thread, &at, &watch); count++)
		want(d, watch.fd);
	for (size_t at = 0; count <= FEW && ss_facts_next_watch(thread, &at, &watch);)
		follow(d, watch.fd);
}

static void want_of_thread(struct descriptors *d, const struct ss_thread_facts *thread)
{
	const struct ss_call *call = ss_call_find(thread->call.id);

	if (!call || thread->state == 'R')
		return;
	if (call->fd) {
		want(d, (int)(uint32_t)thread->call.args[call->fd - 1]);
		follow(d, (int)(uint32_t)thread->call.args[call->fd - 1]);
	}
	want_watched(d, thread);
	if (thread->call.id == SS_SYS_SPLICE || thread->call.id == SS_SYS_TEE)
		want(d, (int)(uint32_t)
				thread->call.args[thread->call.id == SS_SYS_TEE ? 1 : 2]);
}

/* Prefixes of the targets of descriptor links; a path is a file. */
static const struct {
	const char *prefix;
	enum ss_fd_kind kind;
} links[] = {
	{ "socket:[", SS_FD_SOCKET },
	{ "pipe:[", SS_FD_PIPE },
	{ "anon_inode:[eventfd", SS_FD_EVENTFD },
	{ "anon_inode:[eventpoll]", SS_FD_EPOLL },
	{ "anon_inode:[timerfd]", SS_FD_TIMERFD },
	{ "anon_inode:[signalfd]", SS_FD_SIGNALFD },
	{ "anon_inode:inotify", SS_FD_INOTIFY },
	{ "anon_inode:[pidfd]", SS_FD_PIDFD },
	{ "pidfd:[", SS_FD_PIDFD },
	{ "anon_inode:[io_uring]", SS_FD_IO_URING },
	{ "/memfd:", SS_FD_MEMFD },
	{ "/dev/pts/", SS_FD_TTY },
	{ "/dev/tty", SS_FD_TTY },
	{ "/dev/console", SS_FD_TTY },
	{ "/", SS_FD_FILE },
};

static enum ss_fd_kind kind_of(const char *link)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(links); i++) {
		if (strncmp(link, links[i].prefix, strlen(links[i].prefix)) == 0)
			return links[i].kind;
	}
	return SS_FD_OTHER;
}

static void read_link(struct descriptors *d, struct ss_fd_fact *fact)
{
	char path[32];
	char link[PATH_MAX];

	(void)snprintf(path, sizeof(path), "fd/%d", fact->fd); /* fits */
	ssize_t size = readlinkat(d->target->proc_fd, path, link, sizeof(link) - 1);
	if (size <= 0)
		return;
	link[size] = '\0';
	fact->kind = kind_of(link);
	fact->name = ss_intern_string(d->facts->strings, link);
	const char *number = strchr(link, '[');
	struct ss_scan scan = { .at = number ? number + 1 : NULL, .end = link + size };
	if (number && (fact->kind == SS_FD_SOCKET || fact->kind == SS_FD_PIPE))
		(void)ss_scan_number(&scan, 10, &fact->inode); /* otherwise 0 */
}

/* The link of a named pipe is a path. Reads only cached attributes: an unresponsive
   file server must not block us. */
static void detect_named_pipe(struct descriptors *d, struct ss_fd_fact *fact)
{
	char path[32];
	struct statx st;

	(void)snprintf(path, sizeof(path), "fd/%d", fact->fd); /* fits */
	if (statx(d->target->proc_fd, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		  STATX_TYPE | STATX_INO, &st) != 0)
		return;
	fact->inode = st.stx_ino;
	fact->device = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
	if ((st.stx_mode & S_IFMT) == S_IFIFO)
		fact->kind = SS_FD_PIPE;
}

/* The protocol of a socket never changes. */
static void keep_protocol(struct descriptors *d, struct ss_fd_fact *fact)
{
	const struct ss_fd_fact *then =
		d->previous ? ss_facts_find_fd(d->previous, fact->fd) : NULL;

	if (then && then->kind == SS_FD_SOCKET && fact->inode != 0 &&
	    then->inode == fact->inode && then->socket.protocol)
		fact->socket.protocol =
			ss_intern_string(d->facts->strings, then->socket.protocol);
}

SS_DEFINE_COMPARE(compare_watches, struct ss_fdinfo_watch, fd)

static void read_watches(struct descriptors *d, struct ss_fd_fact *fact)
{
	const char *cursor = d->text.bytes;
	const char *end = cursor + d->text.size;
	struct ss_fdinfo_watch *watches =
		ss_facts_keep(d->facts, WATCHES_MAX * sizeof(*watches));

	if (!watches)
		return;
	while (fact->watch_count < WATCHES_MAX &&
	       ss_fdinfo_next_watch(&cursor, end, &watches[fact->watch_count]))
		fact->watch_count++;
	fact->watches_truncated = cursor < end;
	fact->watches = watches;
	qsort(watches, fact->watch_count, sizeof(*watches), compare_watches);
}

static void read_fdinfo(struct descriptors *d, struct ss_fd_fact *fact)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "fdinfo/%d", fact->fd); /* fits */
	int error = ss_io_read_path(d->target->proc_fd, path, FDINFO_MAX, &d->text);
	if (error && error != -EFBIG)
		return;
	(void)ss_fdinfo_parse(d->text.bytes, d->text.size, &fact->info); /* or zeros */
	if (fact->kind == SS_FD_EPOLL)
		read_watches(d, fact);
}

static void read_descriptor(struct descriptors *d, struct ss_fd_fact *fact)
{
	read_link(d, fact);
	if (fact->kind == SS_FD_FILE)
		detect_named_pipe(d, fact);
	if (fact->kind == SS_FD_SOCKET)
		keep_protocol(d, fact);
	else if (fact->kind != SS_FD_UNKNOWN && fact->kind != SS_FD_FILE &&
		 fact->kind != SS_FD_TTY)
		read_fdinfo(d, fact);
}

/* Reads the queued descriptors that are not known yet. */
static void read_queued(struct descriptors *d)
{
	size_t known = d->facts->fds.count;

	if (d->fds.count > 1)
		qsort(d->fds.items, d->fds.count, sizeof(int), compare_ints);
	for (size_t i = 0; i < d->fds.count; i++) {
		int fd = d->fds.items[i];
		if (i > 0 && d->fds.items[i - 1] == fd)
			continue;
		if (known && bsearch(&fd, d->facts->fds.items, known,
				     sizeof(struct ss_fd_fact), compare_ints))
			continue;
		struct ss_fd_fact *fact = ss_vector_push(&d->facts->fds);
		if (!fact)
			return;
		fact->fd = fd;
		read_descriptor(d, fact);
	}
	if (d->facts->fds.count > 1)
		qsort(d->facts->fds.items, d->facts->fds.count, sizeof(struct ss_fd_fact),
		      compare_ints); /* fd comes first */
	d->fds.count = 0;
}

void ss_descriptors_read(struct ss_facts *facts, const struct ss_target *target,
			 const struct ss_facts *previous)
{
	struct descriptors d = { .facts = facts, .target = target, .previous = previous };

	for (size_t i = 0; i < facts->threads.count; i++)
		want_of_thread(&d, &facts->threads.items[i]);
	read_queued(&d);
	for (size_t i = 0; i < facts->fds.count; i++) {
		const struct ss_fd_fact *fact = &facts->fds.items[i];
		for (size_t w = 0; w < fact->watch_count && w < SS_SET_SHOWN; w++)
			want(&d, fact->watches[w].fd);
	}
	read_queued(&d);
	for (size_t i = 0; i < d.resolve_peers.count; i++) {
		const struct ss_fd_fact *fact =
			ss_facts_find_fd(facts, d.resolve_peers.items[i]);
		if (fact)
			facts->fds.items[fact - facts->fds.items].resolve_peers = true;
	}
	ss_vector_free(&d.resolve_peers);
	ss_vector_free(&d.fds);
	ss_buffer_deinit(&d.text);
}

/* In another time namespace CLOCK_MONOTONIC differs. */
static bool has_our_clock(const struct ss_target *target)
{
	struct stat ours;
	struct stat theirs;

	if (stat("/proc/self/ns/time", &ours) != 0) /* before Linux 5.6 */
		return true;
	return fstatat(target->proc_fd, "ns/time", &theirs, 0) == 0 &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/* When the time limits were read. A thread may have begun to wait after its capture: with the time of that,
   it would seem to have more left than its limit. */
static void set_time(struct ss_facts *facts, const struct ss_target *target)
{
	facts->time_ns = ss_clock_ns(CLOCK_REALTIME);
	if (has_our_clock(target))
		facts->monotonic_ns = ss_now_ns();
}

void ss_objects_collect(struct ss_capture *capture, const struct ss_target *target,
			const struct ss_process_memory *memory,
			const struct ss_capture *previous,
			const struct ss_kept_files *counters)
{
	_cleanup_(ss_facts_cleanup) struct ss_facts *facts = ss_facts_new();
	const struct ss_facts *then = previous ? previous->facts : NULL;

	if (!facts || !ss_capture_add_thread_facts(capture, facts))
		return;
	facts->pid = capture->process.pid;
	arguments_read(facts, capture, target, memory);
	set_time(facts, target);
	ss_descriptors_read(facts, target, then);
	if (then)
		connections_keep(facts, capture, then);
	ss_wait_channels_read(facts, target);
	ss_sockets_read(facts, target);
	if (then)
		ss_holders_confirm(facts, target, then);
	ss_processes_find(facts, target);
	ss_file_locks_find_owners(facts, target);
	ss_databases_find_owners(facts, capture, target);
	/* The rest needs the complete descriptors. */
	arguments_check(facts, capture, target, counters ? counters : target->kept);
	ss_holders_find(facts, target);
	capture->facts = take_ptr(facts);
}
