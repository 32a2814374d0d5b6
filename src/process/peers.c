#include "process/objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/graph.h"
#include "base/procfs.h"
#include "base/scan.h"
#include "base/search.h"
#include "data/call.h"
#include "data/futex.h"

enum {
	RECORD_MAX = 8 * 1024,
	MAPS_MAX = 8 << 20,
	SEEN_MAX = 16 << 20, /* 4 MB take some 50 ms */
	FEW_THREADS = 4,     /* follow every wait in a process with so few */
	FEW_CHILDREN = 8,    /* any of which a thread waits for, are followed */
	TID_MAX = 4 << 20,   /* PID_MAX_LIMIT of the kernel */
};

/* The file that is mapped at an address; zeros if none. */
struct object {
	uint64_t device;
	uint64_t inode;
	bool unlinked; /* processes that do not have it cannot open it */
};

/* False: it is in the list. */
static bool add_new(struct ss_peers *peers, pid_t pid)
{
	for (size_t i = 0; i < peers->count; i++) {
		if (peers->pids[i] == pid)
			return false;
	}
	if (pid > 0 && peers->count < SS_ARRAY_SIZE(peers->pids))
		peers->pids[peers->count++] = pid;
	return true;
}

/* Adds the process that another one waits for. */
static void add(struct ss_peers *peers, pid_t pid)
{
	peers->has_cycle |= !add_new(peers, pid);
}

static bool is_own(const struct ss_capture *capture, pid_t tid)
{
	return ss_any(capture->threads.count, i, capture->threads.items[i].tid == tid);
}

static uint32_t owner_word(const struct ss_thread_facts *waiter,
			   const struct ss_futex *futex, size_t place)
{
	const struct ss_memory_fact *lock = &waiter->lock;

	return ss_futex_owner(futex, place, lock->address, lock->bytes, lock->size);
}

static bool names_thread(const struct ss_thread_facts *waiter, pid_t tid)
{
	struct ss_futex futex;

	if (!ss_futex_parse(&waiter->call, &futex))
		return false;
	return ss_any(SS_FUTEX_OWNERS, i, owner_word(waiter, &futex, i) == (uint32_t)tid);
}

/* Whether to follow the wait of a reading thread, since most readers are idle: only if
   another thread may wait for it, or if the process has few threads. */
static bool matters(const struct ss_capture *capture,
		    const struct ss_capture_thread *thread)
{
	pid_t tid = thread->inner_tid ? thread->inner_tid : thread->tid;

	if (capture->threads.count <= FEW_THREADS)
		return true;
	return ss_any(capture->facts->threads.count, i,
		      names_thread(&capture->facts->threads.items[i], tid));
}

static void add_other_end(struct ss_peers *peers, const struct ss_capture *capture,
			  const struct ss_capture_thread *thread,
			  const struct ss_thread_facts *facts)
{
	const struct ss_fd_fact *fd =
		ss_facts_find_fd(capture->facts, (int)(uint32_t)facts->call.args[0]);

	const struct ss_process_fact *other = NULL;

	if (!facts->still_in_call || !fd || !fd->resolve_peers)
		return;
	/* Processes that fork often have both ends. */
	for (size_t i = 0; i < fd->holder_count; i++) {
		if (fd->holders[i].pid == capture->process.pid)
			continue;
		if (other)
			return;
		other = &fd->holders[i];
	}
	if (other && matters(capture, thread))
		add(peers, other->pid);
}

/* The children that a thread may wait for. */
static void add_children(struct ss_peers *peers, const struct ss_facts *facts)
{
	if (facts->children.count > FEW_CHILDREN)
		return;
	for (size_t i = 0; i < facts->children.count; i++)
		add(peers, facts->children.items[i].pid);
}

/* Cache of earlier results: most threads wait for the same few locks. */
struct sharing {
	struct ss_buffer maps; /* of the process itself, once they are read */
	uint64_t address;
	struct object object; /* at that address */
	pid_t pid;
	bool is_mapped; /* that object, in that process */
	size_t seen;	/* bytes of maps parsed */
	bool unknown;	/* maps of a process could not be read */
	bool searched;	/* all processes, for those that map the object */
	bool alone;	/* no other one does */
};

/* Whether no process can open the file any more. Segments of System V shared memory and files without a
   name have the names of deleted files, but others may attach or open them; and the file of a named
   semaphore has another name than that with which it was made. */
static bool is_unlinked(const struct ss_target *target, const struct ss_maps_entry *entry)
{
	static const char *const starts[] = { "/SYSV", "/memfd:" };
	struct statx file;
	char path[64];

	for (size_t i = 0; i < SS_ARRAY_SIZE(starts); i++) {
		if (entry->name_size >= strlen(starts[i]) &&
		    memcmp(entry->name, starts[i], strlen(starts[i])) == 0)
			return false;
	}
	(void)snprintf(path, sizeof(path), "map_files/%" PRIx64 "-%" PRIx64, entry->start,
		       entry->end); /* fits */
	/* The file may be in a FUSE file system, whose server does not answer. */
	return entry->deleted &&
	       statx(target->proc_fd, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		     STATX_NLINK, &file) == 0 &&
	       file.stx_nlink == 0;
}

static struct object object_at(struct sharing *sharing, const struct ss_target *target,
			       uint64_t address)
{
	struct ss_maps_entry entry;

	if (sharing->address == address)
		return sharing->object;
	sharing->address = address;
	sharing->object = (struct object){};
	sharing->pid = 0;
	sharing->searched = false;
	if (sharing->seen > SEEN_MAX ||
	    (sharing->maps.size == 0 &&
	     ss_io_read_path(target->proc_fd, "maps", MAPS_MAX, &sharing->maps) != 0))
		return sharing->object;
	sharing->seen += sharing->maps.size;
	for (const char *at = sharing->maps.bytes;
	     ss_maps_next(&at, sharing->maps.bytes + sharing->maps.size, &entry);) {
		if (address >= entry.start && address < entry.end && entry.shared)
			sharing->object = (struct object){ entry.device, entry.inode,
							   is_unlinked(target, &entry) };
	}
	return sharing->object;
}

static bool maps_object(struct sharing *sharing, const struct ss_target *target,
			pid_t pid)
{
	const struct object *object = &sharing->object;
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_maps_entry entry;
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/maps", pid); /* fits */
	const int result =
		sharing->seen > SEEN_MAX ?
			-EFBIG :
			ss_io_read_path(target->procfs_fd, path, MAPS_MAX, &text);
	if (result != 0) {
		/* Threads of the kernel have no memory. */
		sharing->unknown = result != -ESRCH && result != -ENOENT;
		return false;
	}
	sharing->seen += text.size;
	for (const char *at = text.bytes;
	     ss_maps_next(&at, text.bytes + text.size, &entry);) {
		if (entry.shared && entry.device == object->device &&
		    entry.inode == object->inode)
			return true;
	}
	return false;
}

static bool is_mapped_in(struct sharing *sharing, const struct ss_target *target,
			 pid_t pid)
{
	if (sharing->pid != pid)
		sharing->is_mapped = maps_object(sharing, target, pid);
	sharing->pid = pid;
	return sharing->is_mapped;
}

/* The parent of the process, or 0. */
static pid_t parent_of(const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;

	return ss_target_read_status(target, target->pid, &text, &status) ?
		       status.parent :
		       0;
}

/* Whether the target alone has the object: each process that had it has ended. The first process of the
   system, which some systems protect from all others, has it only if it started the target. */
static bool is_alone(struct sharing *sharing, const struct ss_target *target)
{
	const pid_t init = parent_of(target) == 1 ? 0 : 1;

	if (sharing->searched)
		return sharing->alone;
	sharing->searched = true;
	sharing->alone = false;
	if (!sharing->object.inode || !sharing->object.unlinked)
		return false;
	DIR *dir = ss_io_open_directory(target->procfs_fd, ".");
	sharing->alone = dir != NULL;
	for (const struct dirent *entry;
	     dir && sharing->alone && (entry = readdir(dir)) != NULL;) {
		const pid_t pid = ss_scan_pid(entry->d_name);
		if (pid <= 0 || pid == target->pid)
			continue;
		sharing->unknown = false;
		sharing->alone = !maps_object(sharing, target, pid) &&
				 (!sharing->unknown || pid == init);
	}
	if (dir)
		(void)closedir(dir); /* only read from */
	return sharing->alone;
}

/* The process of a thread, or 0. Most words where an owner would be are something else. */
static pid_t process_of(const struct ss_target *target, pid_t tid)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;
	char path[48];

	if (tid > TID_MAX)
		return 0;
	(void)snprintf(path, sizeof(path), "%d/status", tid); /* fits */
	return ss_io_read_record(target->procfs_fd, path, RECORD_MAX, &text) == 0 &&
			       ss_status_parse(text.bytes, text.size, &status) ?
		       status.tgid :
		       0;
}

/* The thread has taken the lock in memory that is not shared, so it must have been before the
   fork. */
static void set_forked_owner(struct ss_facts *all, struct ss_thread_facts *facts,
			     const struct ss_target *target, pid_t tid)
{
	pid_t pid = process_of(target, tid);

	if (pid == 0 || pid != parent_of(target))
		return;
	facts->forked_owner = tid;
	all->parent = pid;
}

/* Lock words contain ids of their pid namespace: follow them only in ours. */
static void add_sharer(struct ss_peers *peers, struct sharing *sharing,
		       const struct ss_capture *capture, const struct ss_target *target,
		       struct ss_thread_facts *facts)
{
	struct ss_futex futex;

	if (!ss_futex_parse(&facts->call, &futex) || facts->lock.size == 0 ||
	    (capture->process.inner_pid &&
	     capture->process.inner_pid != capture->process.pid))
		return;
	for (size_t i = 0; i < SS_FUTEX_OWNERS; i++) {
		pid_t tid = (pid_t)owner_word(facts, &futex, i);
		if (tid < 2 || is_own(capture, tid))
			continue;
		if (futex.private) {
			set_forked_owner(capture->facts, facts, target, tid);
			continue;
		}
		pid_t pid = process_of(target, tid);
		if (!pid || !object_at(sharing, target, futex.address).inode ||
		    !is_mapped_in(sharing, target, pid))
			continue;
		facts->sharer = pid;
		add(peers, pid);
	}
	if (futex.private || futex.timed || facts->sharer || !facts->lock_shared)
		return;
	(void)object_at(sharing, target, futex.address);
	facts->lock_alone = is_alone(sharing, target);
}

/* A thread that waits on a futex. */
struct waiter {
	uint32_t inner_tid;
	const struct ss_thread_facts *facts;
};

SS_DEFINE_COMPARE(compare_waiters, struct waiter, inner_tid)

/* Collects threads that wait on a futex, sorted by id. Returns their number. */
static size_t find_waiters(const struct ss_capture *capture, struct waiter *waiters)
{
	size_t count = 0;

	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		const struct ss_thread_facts *facts =
			ss_facts_find_thread(capture->facts, thread->tid);
		pid_t tid = thread->inner_tid ? thread->inner_tid : thread->tid;
		if (facts && facts->lock.size > 0)
			waiters[count++] = (struct waiter){ (uint32_t)tid, facts };
	}
	if (count > 1)
		qsort(waiters, count, sizeof(*waiters), compare_waiters);
	return count;
}

/* The index of the waiter that the lock word of another one names, or NONE. */
static size_t owner_of(const struct waiter *waiter, const struct waiter *waiters,
		       size_t count)
{
	struct ss_futex futex;

	if (!ss_futex_parse(&waiter->facts->call, &futex))
		return SS_GRAPH_NONE;
	for (size_t i = 0; i < SS_FUTEX_OWNERS; i++) {
		uint32_t tid = owner_word(waiter->facts, &futex, i);
		size_t at = ss_lower_bound(count, k, waiters[k].inner_tid < tid);
		if (at < count && waiters[at].inner_tid == tid)
			return at;
	}
	return SS_GRAPH_NONE;
}

/* first: a thread of the cycle. */
static bool is_unproven(const struct ss_graph *graph, const struct waiter *waiters,
			size_t first)
{
	unsigned freeze_round = waiters[first].facts->freeze_round;
	bool together = freeze_round != 0;
	bool still = true;
	size_t at = first;

	/* NOLINTBEGIN(clang-analyzer-core.NullDereference): all threads of a cycle are waiters */
	do {
		together = together && waiters[at].facts->freeze_round == freeze_round;
		still = still && waiters[at].facts->unchanged;
		at = graph->next[at];
	} while (at != first);
	/* NOLINTEND(clang-analyzer-core.NullDereference) */
	return !together && !still;
}

bool ss_peers_have_unproven_cycle(const struct ss_capture *capture)
{
	size_t max = capture->threads.count + 1;
	_cleanup_free_ struct waiter *waiters = calloc(max, sizeof(*waiters));
	_cleanup_free_ size_t *next = calloc(max, sizeof(*next));
	struct ss_graph graph;
	bool unproven = false;

	if (!waiters || !next || !capture->facts)
		return false;
	size_t count = find_waiters(capture, waiters);
	for (size_t i = 0; i < count; i++)
		next[i] = owner_of(&waiters[i], waiters, count);
	if (!ss_graph_init(&graph, next, count))
		return false;
	for (size_t i = 0; i < count && !unproven; i++)
		unproven = graph.cyclic[i] && graph.end[i] == i &&
			   is_unproven(&graph, waiters, i);
	ss_graph_deinit(&graph);
	return unproven;
}

/* Whether the main thread of a process waits to write something. */
static bool waits_to_write(const struct ss_capture *capture,
			   const struct ss_target *target, pid_t pid)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_syscall_text call;
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/syscall", pid); /* fits */
	if (ss_io_read_record(target->procfs_fd, path, RECORD_MAX, &text) != 0 ||
	    !ss_syscall_parse(text.bytes, text.size, &call) ||
	    call.kind != SS_SYSCALL_BLOCKED)
		return false;
	const struct ss_call *found =
		ss_call_find(ss_arch_syscall_id(capture->arch, call.number));
	return found && (found->kind == SS_WAIT_WRITE || found->kind == SS_WAIT_SEND);
}

/* A program that handles SIGCHLD has no thread that waits for a child, but an event loop. Its children
   may wait for the program to read what they write. */
static void add_writing_children(struct ss_peers *peers, struct ss_capture *capture,
				 const struct ss_target *target)
{
	struct ss_facts *facts = capture->facts;

	if (!(capture->process.handled_signals >> (SIGCHLD - 1) & 1))
		return;
	if (!facts->children_known)
		ss_children_find(facts, target);
	for (size_t i = 0;
	     i < facts->children.count && facts->children.count <= FEW_CHILDREN; i++) {
		if (waits_to_write(capture, target, facts->children.items[i].pid))
			(void)add_new(peers, facts->children.items[i].pid);
	}
}

void ss_peers_find(struct ss_peers *peers, struct ss_capture *capture,
		   const struct ss_target *target)
{
	const bool first = peers->count == 1;

	struct sharing sharing = {};

	for (size_t i = 0; i < capture->threads.count && capture->facts; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		struct ss_thread_facts *facts = ss_search(capture->facts->threads.items,
							  capture->facts->threads.count,
							  tid, thread->tid);
		const struct ss_call *call = facts ? ss_call_find(facts->call.id) : NULL;
		if (!facts || facts->state == 'R')
			continue;
		if (facts->holder.pid > 0)
			add(peers, facts->holder.pid);
		else if (call && ss_wait_kind_transfers(call->kind))
			add_other_end(peers, capture, thread, facts);
		else if (call && (call->kind == SS_WAIT_CHILD ||
				  call->id == SS_SYS_RT_SIGSUSPEND))
			add_children(peers, capture->facts);
		else
			add_sharer(peers, &sharing, capture, target, facts);
	}
	ss_buffer_deinit(&sharing.maps);
	if (first && capture->facts)
		add_writing_children(peers, capture, target);
}
