#include "diagnose/diagnose.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>

#include "base/error.h"
#include "diagnose/lock.h"
#include "data/call.h"
#include "diagnose/wait_table.h"

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

struct ss_related_process ss_related_process(const struct ss_facts *facts,
					     const struct ss_process_fact *process)
{
	return (struct ss_related_process){ .pid = process->pid,
					    .name = process->name,
					    .state = process->state ? process->state :
								      '?',
					    .same = process->pid == facts->pid };
}

static struct ss_socket_address address_of(const struct ss_net_address *from)
{
	struct ss_socket_address address = { .size = from->size, .port = from->port };

	memcpy(address.bytes, from->bytes, sizeof(address.bytes));
	return address;
}

static void set_socket(const struct ss_socket_fact *socket, struct ss_descriptor *ret)
{
	enum { TCP_LISTEN_STATE = 10 }; /* TCP_LISTEN of netinet/tcp.h */

	ret->protocol = socket->protocol;
	ret->path = socket->path;
	ret->peer_path = socket->peer_path;
	ret->listening = socket->listens;
	if (!socket->found || !socket->protocol ||
	    strncmp(socket->protocol, "UNIX", strlen("UNIX")) == 0)
		return;
	ret->local = address_of(&socket->inet.local);
	ret->remote = address_of(&socket->inet.remote);
	if (strncmp(socket->protocol, "TCP", strlen("TCP")) != 0 &&
	    strcmp(socket->protocol, "MPTCP") != 0)
		return;
	ret->tcp_state = socket->inet.state;
	ret->listening = ret->tcp_state == TCP_LISTEN_STATE;
}

static bool set_peers(struct ss_snapshot *snapshot, const struct ss_fd_fact *fact,
		      struct ss_descriptor *ret)
{
	ret->peers_searched = fact->resolve_peers;
	ret->peers_incomplete = fact->holders_truncated;
	if (fact->holder_count == 0)
		return true;
	struct ss_related_process *peers =
		ss_snapshot_alloc(snapshot, fact->holder_count, sizeof(*peers));
	for (size_t i = 0; peers && i < fact->holder_count; i++)
		peers[i] = ss_related_process(snapshot->facts, &fact->holders[i]);
	ret->peers = peers;
	ret->peer_count = peers ? fact->holder_count : 0;
	return peers != NULL;
}

/* The descriptor with that number, or NULL. */
static const struct ss_descriptor *descriptor_find(const struct ss_snapshot *snapshot,
						   int fd)
{
	const struct ss_fd_fact *fact = ss_facts_find_fd(snapshot->facts, fd);

	return fact ? &snapshot->descriptors[fact - snapshot->facts->fds.items] : NULL;
}

/* Bytes that lie in a socket of which an event tells only once. */
static uint32_t count_unread(const struct ss_fdinfo_watch *watch,
			     const struct ss_fd_fact *fact)
{
	if (!fact || fact->kind != SS_FD_SOCKET || !(watch->events & EPOLLET) ||
	    !(watch->events & EPOLLIN))
		return 0;
	return fact->socket.unread ? fact->socket.unread : fact->socket.inet.unread;
}

static bool set_watches(struct ss_snapshot *snapshot, const struct ss_fd_fact *fact,
			struct ss_descriptor *ret)
{
	ret->watches_incomplete = fact->watches_truncated;
	if (fact->watch_count == 0)
		return true;
	struct ss_watched_fd *watches =
		ss_snapshot_alloc(snapshot, fact->watch_count, sizeof(*watches));
	for (size_t i = 0; watches && i < fact->watch_count; i++) {
		int fd = fact->watches[i].fd;
		const struct ss_fd_fact *watched = ss_facts_find_fd(snapshot->facts, fd);
		watches[i] = (struct ss_watched_fd){
			.fd = fd,
			.what = descriptor_find(snapshot, fd),
			.unread = count_unread(&fact->watches[i], watched)
		};
	}
	ret->watches = watches;
	ret->watch_count = watches ? fact->watch_count : 0;
	return watches != NULL;
}

/* "/memfd:NAME (deleted)" */
static const char *memfd_name(struct ss_snapshot *snapshot, const char *name)
{
	static const char prefix[] = "/memfd:";
	static const char suffix[] = " (deleted)";
	size_t size = strlen(name);

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return name;
	name += strlen(prefix);
	size -= strlen(prefix);
	if (size >= strlen(suffix) && strcmp(name + size - strlen(suffix), suffix) == 0)
		size -= strlen(suffix);
	return ss_intern_bytes(snapshot->strings, name, size);
}

static struct ss_descriptor simple_part(struct ss_snapshot *snapshot,
					const struct ss_fd_fact *fact)
{
	const struct ss_fdinfo *info = &fact->info;
	bool memfd = fact->kind == SS_FD_MEMFD && fact->name;

	return (struct ss_descriptor){
		.fd = fact->fd,
		.kind = fact->name ? fact->kind : SS_FD_UNKNOWN,
		.name = memfd ? memfd_name(snapshot, fact->name) : fact->name,
		.flags = (int)info->flags,
		.process_ended = info->has_pid && info->pid < 0,
		.timer_known = info->has_timer,
		.timer_left_ns = info->left_ns,
		.timer_interval_ns = info->interval_ns,
		.signals = info->mask,
		.inotify_watches = info->watches,
	};
}

/* Fills snapshot->descriptors from the captured facts. False without memory. */
static bool descriptors_init(struct ss_snapshot *snapshot)
{
	const struct ss_facts *facts = snapshot->facts;
	size_t count = facts ? facts->fds.count : 0;
	bool ok = true;

	snapshot->descriptors = calloc(count + 1, sizeof(*snapshot->descriptors));
	if (!snapshot->descriptors)
		return false;
	for (size_t i = 0; i < count; i++)
		snapshot->descriptors[i] = simple_part(snapshot, &facts->fds.items[i]);
	snapshot->descriptor_count = count;
	for (size_t i = 0; ok && i < count; i++) {
		const struct ss_fd_fact *fact = &facts->fds.items[i];
		struct ss_descriptor *descriptor = &snapshot->descriptors[i];
		if (fact->kind == SS_FD_SOCKET)
			set_socket(&fact->socket, descriptor);
		ok = set_peers(snapshot, fact, descriptor) &&
		     set_watches(snapshot, fact, descriptor);
	}
	return ok;
}

/* Sets fd and descriptor of the wait. The descriptor is known only if the thread was
   still in its call when descriptors were looked up. */
static void descriptor_fill(struct ss_diagnosis *d, int fd)
{
	const struct ss_descriptor *descriptor = descriptor_find(d->snapshot, fd);

	d->wait->fd = fd;
	if (d->facts->still_in_call && descriptor && descriptor->kind != SS_FD_UNKNOWN)
		d->wait->descriptor = descriptor;
}

/*
 * Waits for any of several file descriptors: poll(2) and select(2). The set of an epoll
 * instance is part of its descriptor.
 */

enum { NEAR = 8 }; /* limit of entries searched for the same descriptor */

/* The entry of a descriptor: usually a new one, but some programs list a descriptor
   twice. */
static struct ss_watched_fd *get_entry(struct ss_watched_fd *fds, size_t *count, int fd)
{
	for (size_t i = *count; i > 0 && *count - i < NEAR; i--) {
		if (fds[i - 1].fd == fd)
			return &fds[i - 1];
	}
	fds[*count].fd = fd;
	return &fds[(*count)++];
}

static void set_fds(struct ss_diagnosis *d, struct ss_watched_fd *fds, size_t count)
{
	struct ss_wait *wait = d->wait;

	for (size_t i = 0; d->facts->still_in_call && i < count; i++)
		fds[i].what = descriptor_find(d->snapshot, fds[i].fd);
	wait->fds = fds;
	wait->fd_count = count;
	if (count == 1 && !wait->fds_incomplete)
		descriptor_fill(d, fds[0].fd);
}

/* Memory for count elements, zeroed, that lives as long as the snapshot. Without
   memory, returns NULL and sets failed. */
static void *diagnosis_alloc(struct ss_diagnosis *d, size_t count, size_t size)
{
	void *memory = ss_snapshot_alloc(d->snapshot, count, size);

	d->failed |= !memory;
	return memory;
}

static void fill_watched(struct ss_diagnosis *d)
{
	struct ss_watch watch;
	size_t count = 0;

	for (size_t at = 0; ss_facts_next_watch(d->facts, &at, &watch);)
		count++;
	struct ss_watched_fd *fds = diagnosis_alloc(d, count, sizeof(*fds));
	d->wait->fds_incomplete = !ss_facts_has_all_watches(d->facts);
	count = 0;
	for (size_t at = 0; fds && ss_facts_next_watch(d->facts, &at, &watch);) {
		struct ss_watched_fd *entry = get_entry(fds, &count, watch.fd);
		entry->input |= watch.input;
		entry->output |= watch.output;
	}
	if (fds)
		set_fds(d, fds, count);
}

/*
 * Waits for other processes: children, and owners of file locks.
 */

enum { CHILDREN_MAX = 16 }; /* that are listed */

/* Finds a child by the id that the target used, in the target's pid namespace. If that
   is ours, the child may be the first process of a new namespace. */
static const struct ss_process_fact *find_child(const struct ss_snapshot *snapshot,
						pid_t pid)
{
	const struct ss_process *parent = &snapshot->process;
	const struct ss_facts *facts = snapshot->facts;
	bool ours = parent->inner_pid == parent->pid;

	for (size_t i = 0; i < facts->children.count; i++) {
		const struct ss_process_fact *child = &facts->children.items[i];
		if ((child->inner_pid && !ours ? child->inner_pid : child->pid) == pid)
			return child;
	}
	return NULL;
}

static void list_child(struct ss_diagnosis *d, struct ss_related_process *list,
		       const struct ss_process_fact *child)
{
	if (d->wait->child_count < CHILDREN_MAX)
		list[d->wait->child_count++] =
			ss_related_process(d->snapshot->facts, child);
	d->wait->children_total++;
}

/* parent_tid: only children created by this thread; 0: all. */
static void list_children(struct ss_diagnosis *d, pid_t parent_tid)
{
	const struct ss_facts *facts = d->snapshot->facts;
	size_t most = SS_MIN(facts->children.count, (size_t)CHILDREN_MAX);
	struct ss_related_process *list = diagnosis_alloc(d, most, sizeof(*list));

	d->wait->children = list;
	d->wait->children_known = facts->children_known;
	for (size_t i = 0; list && i < facts->children.count; i++) {
		const struct ss_process_fact *child = &facts->children.items[i];
		if (!parent_tid || child->parent_tid == parent_tid)
			list_child(d, list, child);
	}
}

static void fill_one(struct ss_diagnosis *d, pid_t pid)
{
	const struct ss_process_fact *child = find_child(d->snapshot, pid);
	struct ss_related_process *list = child ? diagnosis_alloc(d, 1, sizeof(*list)) :
						  NULL;

	d->wait->child_scope = SS_CHILD_PID;
	d->wait->child_id = pid;
	d->wait->children = list;
	if (!list)
		return;
	list_child(d, list, child);
	d->wait->children_known = true;
	d->wait->owner_pid = child->pid;
	d->wait->owner_process = child->name;
}

static void fill_any(struct ss_diagnosis *d)
{
	d->wait->child_scope = SS_CHILD_ANY;
	list_children(d, 0);
}

static void fill_group(struct ss_diagnosis *d, pid_t group)
{
	d->wait->child_scope = group ? SS_CHILD_GROUP : SS_CHILD_OWN_GROUP;
	d->wait->child_id = group;
}

static void fill_wait4(struct ss_diagnosis *d)
{
	pid_t pid = (pid_t)(uint32_t)d->facts->call.args[0];

	if (pid > 0)
		fill_one(d, pid);
	else if (pid == -1)
		fill_any(d);
	else
		fill_group(d, pid == INT32_MIN ? 0 : -pid);
}

static void fill_waitid(struct ss_diagnosis *d)
{
	unsigned type = (unsigned)d->facts->call.args[0];
	pid_t id = (pid_t)(uint32_t)d->facts->call.args[1];

	if (type == P_PID) {
		fill_one(d, id);
	} else if (type == P_ALL) {
		fill_any(d);
	} else if (type == P_PGID) {
		fill_group(d, id);
	} else {
		d->wait->child_scope = SS_CHILD_PIDFD;
		descriptor_fill(d, id);
	}
}

static bool is_vfork(const struct ss_thread_facts *facts)
{
	uint64_t flags = facts->call.args[0];

	if (facts->call.id == SS_SYS_VFORK)
		return true;
	if (facts->call.id == SS_SYS_CLONE3) {
		if (facts->memory[0].size != sizeof(flags))
			return false;
		memcpy(&flags, facts->memory[0].bytes, sizeof(flags));
	}
	return flags & CLONE_VFORK;
}

static void process_fill_child(struct ss_diagnosis *d)
{
	if (d->facts->call.id == SS_SYS_WAIT4) {
		fill_wait4(d);
	} else if (d->facts->call.id == SS_SYS_WAITID) {
		fill_waitid(d);
	} else if (is_vfork(d->facts)) {
		d->wait->child_scope = SS_CHILD_VFORK;
		list_children(d, d->thread->tid);
	} else {
		d->wait->kind = SS_WAIT_OTHER;
	}
}

static void fill_holder(struct ss_diagnosis *d)
{
	const struct ss_process_fact *holder = &d->facts->holder;

	if (holder->pid > 0) {
		d->wait->owner_pid = holder->pid;
		d->wait->owner_process = holder->name;
		d->wait->self_owned = holder->pid == d->snapshot->facts->pid;
		return;
	}
	d->wait->owner_unknown = d->facts->holder_known ? SS_OWNER_NOT_VISIBLE :
							  SS_OWNER_NOT_LISTED;
}

static void fill_range(struct ss_diagnosis *d)
{
	struct ss_wait *wait = d->wait;
	struct flock lock;

	if (d->facts->memory[2].size != sizeof(lock))
		return;
	memcpy(&lock, d->facts->memory[2].bytes, sizeof(lock));
	wait->access = lock.l_type == F_RDLCK ? SS_ACCESS_SHARED : SS_ACCESS_EXCLUSIVE;
	if (lock.l_whence != SEEK_SET || lock.l_start < 0 || lock.l_len < 0) {
		wait->range = SS_RANGE_PART;
	} else if (lock.l_start || lock.l_len) {
		uint64_t first = (uint64_t)lock.l_start;
		wait->range = SS_RANGE_BYTES;
		wait->range_first = first;
		wait->range_last = lock.l_len ? first + (uint64_t)lock.l_len - 1 :
						UINT64_MAX;
	}
}

static void process_fill_file_lock(struct ss_diagnosis *d)
{
	const struct ss_syscall *call = &d->facts->call;
	int command = (int)(uint32_t)call->args[1];

	if (call->id == SS_SYS_FLOCK) {
		d->wait->access = (command & LOCK_SH) ? SS_ACCESS_SHARED :
							SS_ACCESS_EXCLUSIVE;
	} else if (command == F_SETLKW || command == F_OFD_SETLKW) {
		fill_range(d);
	} else {
		d->wait->kind = SS_WAIT_OTHER;
		d->wait->command = command;
		return;
	}
	fill_holder(d);
}

/*
 * What a thread blocked in a system call waits for. The table in data/call.c assigns a
 * kind to each call; the table below has one entry for each kind.
 *
 * To add a system call: give it a name in arch/arch.h and a line in the table of
 * data/call.c. To add a kind of wait: add it to enum ss_wait_kind, its name to
 * diagnose/names.c, its function to the table below, its words to report/wait_text.c,
 * and to stacksnap-json(5). A wait that only the stack reveals (of a lock, a runtime, an
 * application) is a class in diagnose/lock.h.
 */

static const char *call_name(struct ss_diagnosis *d, long number)
{
	_cleanup_free_ char *name =
		seccomp_syscall_resolve_num_arch(d->snapshot->arch->audit, (int)number);

	return name ? ss_intern_string(d->snapshot->strings, name) : NULL;
}

static void fill_signal(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *memory = &d->facts->memory[0];

	if (d->facts->call.id != SS_SYS_RT_SIGTIMEDWAIT ||
	    memory->size != sizeof(d->wait->signals))
		return;
	memcpy(&d->wait->signals, memory->bytes, sizeof(d->wait->signals));
	d->wait->signals_known = true;
}

/* A shell waits for the end of its children in sigsuspend(2). */
static void fill_signal_of_child(struct ss_diagnosis *d)
{
	const uint64_t child = UINT64_C(1) << (SIGCHLD - 1);
	const struct ss_memory_fact *memory = &d->facts->memory[0];
	uint64_t blocked = 0;

	fill_signal(d);
	if (d->facts->call.id != SS_SYS_RT_SIGSUSPEND ||
	    memory->size != sizeof(blocked) ||
	    !(d->snapshot->process.handled_signals & child))
		return;
	memcpy(&blocked, memory->bytes, sizeof(blocked));
	if (!(blocked & child) && d->snapshot->facts->children.count > 0)
		fill_any(d);
}

static void fill_semaphore(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *memory = &d->facts->memory[1];
	struct sembuf first;

	d->wait->ipc = SS_IPC_SEMAPHORE;
	if (memory->size < sizeof(first))
		return;
	memcpy(&first, memory->bytes, sizeof(first));
	d->wait->semaphore = first.sem_num;
	d->wait->semaphore_change = first.sem_op;
	d->wait->semaphore_operations = memory->size / sizeof(first);
}

static void fill_ipc(struct ss_diagnosis *d)
{
	enum ss_syscall_id call = d->facts->call.id;

	if (call == SS_SYS_MSGRCV || call == SS_SYS_MQ_TIMEDRECEIVE)
		d->wait->ipc = SS_IPC_RECEIVE;
	else if (call == SS_SYS_MSGSND || call == SS_SYS_MQ_TIMEDSEND)
		d->wait->ipc = SS_IPC_SEND;
	else
		fill_semaphore(d);
	d->wait->operator_pid = d->facts->last_operator.pid;
	d->wait->operator_process = d->facts->last_operator.name;
	if (d->wait->fd < 0)
		d->wait->ipc_id = (int)(uint32_t)d->facts->call.args[0];
}

/* Whether struct io_uring_getevents_arg points to a time limit (io_uring_enter(2)). The
   limit itself is not copied. */
static bool has_uring_limit(const struct ss_thread_facts *facts)
{
	enum { EXT_ARG = 1 << 3, EXT_ARG_REG = 1 << 6, TIME = 2 };
	const struct ss_memory_fact *memory = &facts->memory[4];
	uint64_t words[3];

	if ((facts->call.args[3] & (EXT_ARG | EXT_ARG_REG)) != EXT_ARG ||
	    memory->size != sizeof(words))
		return false;
	memcpy(words, memory->bytes, sizeof(words));
	return words[TIME] != 0;
}

static void fill_io(struct ss_diagnosis *d)
{
	const struct ss_syscall *call = &d->facts->call;

	if (call->id == SS_SYS_IO_GETEVENTS || call->id == SS_SYS_IO_PGETEVENTS)
		d->wait->completions = (uint32_t)call->args[1];
	if (call->id != SS_SYS_IO_URING_ENTER)
		return;
	d->wait->completions = (uint32_t)call->args[2];
	d->wait->timed = has_uring_limit(d->facts);
}

static void fill_other(struct ss_diagnosis *d)
{
	const struct ss_call *call = ss_call_find(d->facts->call.id);
	const struct ss_memory_fact *path =
		call && call->path ? &d->facts->memory[call->path - 1] : NULL;

	if (path && path->size)
		d->wait->path = ss_intern_bytes(d->snapshot->strings,
						(const char *)path->bytes, path->size);
	if (d->facts->opens_fifo && d->facts->still_in_call) {
		d->wait->opens_fifo = true;
		d->wait->access = d->facts->fifo_access;
	}
}

/* The server of a FUSE file system. */
static void fill_mount(struct ss_diagnosis *d)
{
	const struct ss_process_fact *server = &d->facts->holder;

	if (!d->facts->mount || !d->facts->still_in_call)
		return;
	d->wait->mount = ss_intern_string(d->snapshot->strings, d->facts->mount);
	d->wait->owner_pid = server->pid;
	d->wait->owner_process = server->name;
	d->wait->self_owned = server->pid && server->pid == d->snapshot->facts->pid;
}

/* Fills in what a kind has besides the file descriptor and the time limit. */
static void (*const families[])(struct ss_diagnosis *d) = {
	[SS_WAIT_OTHER] = fill_other,
	[SS_WAIT_POLL] = fill_watched,
	[SS_WAIT_SELECT] = fill_watched,
	[SS_WAIT_CHILD] = process_fill_child,
	[SS_WAIT_FILE_LOCK] = process_fill_file_lock,
	[SS_WAIT_SIGNAL] = fill_signal_of_child,
	[SS_WAIT_IPC] = fill_ipc,
	[SS_WAIT_IO] = fill_io,
};

/* fs/notify/fanotify/fanotify.c: the function that waits for an answer may be inlined into the
   other one. */
static bool waits_for_permission(const struct ss_task *thread)
{
	const char *stack = thread->kernel_stack;

	return stack && (strncmp(stack, "fanotify_handle_event", 21) == 0 ||
			 strncmp(stack, "fanotify_get_response", 21) == 0);
}

/* Fills in the wait of a thread whose system call is known. */
static void call_fill(struct ss_diagnosis *d)
{
	const struct ss_syscall *made = &d->facts->call;
	const struct ss_call *call = ss_call_find(made->id);

	d->wait->syscall_number = made->number;
	d->wait->syscall = call_name(d, made->number);
	d->wait->fanotify = waits_for_permission(d->thread);
	if (ss_futex_fill(d))
		return;
	if (call) {
		d->wait->kind = call->kind;
		ss_time_limit_read(d, call);
	}
	if (call && call->fd)
		descriptor_fill(d, (int)(uint32_t)made->args[call->fd - 1]);
	if ((size_t)d->wait->kind < SS_ARRAY_SIZE(families) && families[d->wait->kind])
		families[d->wait->kind](d);
	fill_mount(d);
}

static void fill_tracer(struct ss_diagnosis *d)
{
	d->wait->kind = SS_WAIT_PTRACE;
	d->wait->owner_pid = d->facts->tracer.pid;
	d->wait->owner_process = d->facts->tracer.name;
}

/* Whether the call waits for threads of the process only. Calls that are not private do so,
   too, if the memory is not shared: those of glibc's joins, of C++'s futures and atomics. */
static bool is_within_process(const struct ss_diagnosis *d)
{
	struct ss_futex futex;

	if (d->facts->still_in_call &&
	    ss_facts_waits_for_own_pipes(d->snapshot->facts, d->facts, true))
		return true;
	return ss_futex_parse(&d->facts->call, &futex) &&
	       (futex.private || d->wait->kind == SS_WAIT_JOIN || d->facts->lock_alone ||
		(d->facts->lock.size && !d->facts->lock_shared));
}

/* Fills in the wait of a thread. False: it does not wait, or its wait is unknown. */
static bool fill(struct ss_diagnosis *d)
{
	switch (d->thread->state) {
	case 'R':
	case 'Z':
	case 'X':
		return false;
	case 't':
		fill_tracer(d);
		return true;
	case 'T':
		d->wait->kind = SS_WAIT_STOPPED;
		return true;
	default:
		break;
	}
	if (d->facts->worker) {
		d->wait->kind = SS_WAIT_WORK;
		return true;
	}
	if (d->facts->call.number >= 0) {
		call_fill(d);
		d->wait->within_process = is_within_process(d);
		return true;
	}
	d->wait->kind = SS_WAIT_PAGE_FAULT;
	return d->thread->state == 'D';
}

static bool diagnose_threads(struct ss_snapshot *snapshot)
{
	static const struct ss_thread_facts nothing = { .call.number = -1 };

	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		const struct ss_thread_facts *facts =
			ss_facts_find_thread(snapshot->facts, thread->tid);
		struct ss_diagnosis d = { .snapshot = snapshot,
					  .thread = thread,
					  .facts = facts ? facts : &nothing,
					  .wait = &snapshot->waits[i] };
		*d.wait = (struct ss_wait){ .syscall_number = -1,
					    .fd = -1,
					    .timeout_ns = -1,
					    .left_ns = -1,
					    .ipc_id = -1,
					    .command = -1 };
		if (fill(&d))
			thread->wait = d.wait;
		if (d.failed)
			return false;
	}
	return true;
}

static bool diagnose(struct ss_snapshot *snapshot, const struct ss_wait_table *table)
{
	snapshot->waits = calloc(snapshot->tasks[SS_TASK_THREAD].count + 1,
				 sizeof(*snapshot->waits));
	return snapshot->waits && descriptors_init(snapshot) &&
	       diagnose_threads(snapshot) && ss_purposes_find(snapshot, table);
}

static bool diagnose_all(struct ss_snapshot *snapshot, const struct ss_wait_table *table)
{
	bool ok = diagnose(snapshot, table);

	for (size_t i = 0; ok && i < snapshot->others.count; i++)
		ok = diagnose(snapshot->others.items[i], table);
	if (ok) {
		ss_initializers_find(snapshot);
		ss_owner_frames_find(snapshot);
	}
	return ok && ss_goroutine_locks_find(snapshot, table) &&
	       ss_deadlock_find(snapshot) && ss_application_locks_find(snapshot) &&
	       ss_chains_find(snapshot) && ss_process_cycle_find(snapshot) &&
	       ss_task_cycles_find(snapshot);
}

struct ss_error *ss_snapshot_diagnose(struct ss_snapshot *snapshot,
				      const struct ss_diagnose_options *options)
{
	_cleanup_(ss_wait_table_cleanup) struct ss_wait_table *own = NULL;
	const struct ss_wait_table *table = options ? options->waits : NULL;
	struct ss_error *error = NULL;

	if (options && options->size != sizeof(*options))
		return ss_error_new(
			SS_ERROR_INVALID,
			"the size of the options does not match the library's");
	if (snapshot->waits)
		return ss_error_new(SS_ERROR_INVALID,
				    "the snapshot has already been diagnosed");
	if (!table)
		error = ss_wait_table_new(&own);
	if (error)
		return error;
	return diagnose_all(snapshot, table ? table : own) ? NULL : ss_error_no_memory();
}
