#include "process/objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/scan.h"
#include "base/search.h"
#include "data/call.h"

enum {
	RECORD_MAX = 8 * 1024,
	CHILDREN_MAX = 64,
	PARENTS_MAX = 256, /* threads whose children are read */
};

/* Reads name, state and inner pid of a process. Returns false if there is no such
   process. */
static bool processes_read(struct ss_facts *facts, const struct ss_target *target,
			   pid_t pid, struct ss_buffer *text, struct ss_process_fact *ret)
{
	struct ss_stat stat;
	struct ss_status status;
	char path[48];

	(void)snprintf(path, sizeof(path), "%d/stat", pid); /* fits */
	if (ss_io_read_record(target->procfs_fd, path, RECORD_MAX, text) != 0 ||
	    !ss_stat_parse(text->bytes, text->size, &stat))
		return false;
	*ret = (struct ss_process_fact){ .pid = pid,
					 .state = stat.state,
					 .name = ss_intern_string(facts->strings,
								  stat.comm) };
	(void)snprintf(path, sizeof(path), "%d/status", pid); /* fits */
	if (ss_io_read_record(target->procfs_fd, path, RECORD_MAX, text) == 0 &&
	    ss_status_parse(text->bytes, text->size, &status))
		ret->inner_pid = status.inner_id;
	return true;
}

static bool waits_for_child(const struct ss_thread_facts *thread)
{
	const struct ss_call *call = ss_call_find(thread->call.id);

	/* A signal may tell that a child has ended. */
	return call && (call->kind == SS_WAIT_CHILD || call->id == SS_SYS_RT_SIGSUSPEND);
}

/* Parses the children that this thread has created or adopted: "4711 4712 ". */
static void add_children(struct ss_facts *facts, const struct ss_target *target,
			 pid_t tid)
{
	_cleanup_buffer_ struct ss_buffer list = {};
	_cleanup_buffer_ struct ss_buffer text = {};

	if (!ss_target_read_task(target, tid, "children", &list))
		return;
	facts->children_known = true;
	struct ss_scan scan = { .at = list.bytes, .end = list.bytes + list.size };
	for (pid_t pid;
	     facts->children.count < CHILDREN_MAX && ss_scan_next_pid(&scan, &pid);) {
		struct ss_process_fact child;
		if (!processes_read(facts, target, pid, &text, &child))
			continue;
		child.parent_tid = tid;
		struct ss_process_fact *slot = ss_vector_push(&facts->children);
		if (slot)
			*slot = child;
	}
}

void ss_children_find(struct ss_facts *facts, const struct ss_target *target)
{
	for (size_t i = 0; i < facts->threads.count && i < PARENTS_MAX; i++)
		add_children(facts, target, facts->threads.items[i].tid);
}

static void follow_children(struct ss_facts *facts, const struct ss_target *target)
{
	bool has_waiter = false;

	for (size_t i = 0; i < facts->threads.count; i++)
		has_waiter |= waits_for_child(&facts->threads.items[i]);
	if (has_waiter)
		ss_children_find(facts, target);
}

bool ss_process_fact_read(struct ss_facts *facts, const struct ss_target *target,
			  pid_t pid, struct ss_process_fact *ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	return processes_read(facts, target, pid, &text, ret);
}

static bool shares_ipc(const struct ss_target *target)
{
	struct stat ours;
	struct stat theirs;

	return stat("/proc/self/ns/ipc", &ours) == 0 &&
	       fstatat(target->proc_fd, "ns/ipc", &theirs, 0) == 0 &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/* The process that changed the semaphore last. 0: not known. */
static pid_t find_semaphore_pid(const struct ss_thread_facts *thread, int id)
{
	const struct ss_memory_fact *memory = &thread->memory[1];
	struct sembuf first;

	if (memory->size < sizeof(first))
		return 0;
	memcpy(&first, memory->bytes, sizeof(first));
	return semctl(id, first.sem_num, GETPID);
}

/* The process that sent to the queue last, or received from it. 0: none, or not known. */
static pid_t find_queue_pid(int id, bool sent)
{
	struct msqid_ds queue;

	if (msgctl(id, IPC_STAT, &queue) != 0)
		return 0;
	return sent ? queue.msg_lspid : queue.msg_lrpid;
}

/* Sets the process that changed the System V semaphore last for which a thread waits; of a message queue
   the one at its other end. */
static void find_operator(struct ss_facts *facts, const struct ss_target *target,
			  struct ss_thread_facts *thread)
{
	const enum ss_syscall_id call = thread->call.id;
	const bool semaphore = call == SS_SYS_SEMOP || call == SS_SYS_SEMTIMEDOP;
	const bool receives = call == SS_SYS_MSGRCV;
	int id = (int)(uint32_t)thread->call.args[0];

	if ((!semaphore && !receives && call != SS_SYS_MSGSND) || !shares_ipc(target))
		return;
	pid_t pid = semaphore ? find_semaphore_pid(thread, id) :
				find_queue_pid(id, receives);
	if (pid > 0)
		(void)ss_process_fact_read(facts, target, pid,
					   &thread->last_operator); /* or it has ended */
}

void ss_processes_find(struct ss_facts *facts, const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	follow_children(facts, target);
	for (size_t i = 0; i < facts->threads.count; i++) {
		if (facts->threads.items[i].state == 'S')
			find_operator(facts, target, &facts->threads.items[i]);
	}
	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		struct ss_status status;
		if (thread->state != 't' ||
		    !ss_target_read_status(target, thread->tid, &text, &status) ||
		    status.tracer == 0)
			continue;
		thread->tracer = (struct ss_process_fact){ .pid = status.tracer };
		(void)processes_read(facts, target, status.tracer, &text,
				     &thread->tracer);
	}
}

enum {
	SCAN_NS = 5 * 1000 * 1000,   /* CPU time to search processes, */
	MORE_NS = 1000 * 1000,	     /* if each end has a holder already, */
	VISIT_NS = 20 * 1000 * 1000, /* and for ss_holders_visit() */
	STAT_MAX = 8 * 1024,
	LINKS_AT_ONCE = 64, /* links read between checks of the time */
	/* So many others are searched for more holders, however long it takes: those that were
	   started next to the process may be its children, which have what it has. */
	NEAREST = 8,
	LINK_MAX = 64, /* "socket:[...]"; a truncated path is enough */
};

struct peer_end {
	/* link of the other end, owned by the facts; NULL: a named pipe, compared by
	   inode since it may have several paths */
	const char *link;
	mode_t mode; /* S_IRUSR or S_IWUSR; 0: any */
	struct ss_fd_fact *fact;
	pid_t ours; /* this process or a child of it has the other end open; 0: none has */
};

struct search {
	struct ss_facts *facts;
	const struct ss_target *target;
	SS_VECTOR(struct peer_end) items;
	SS_VECTOR(pid_t) pids;	     /* of all processes, in ascending order */
	struct ss_process_fact last; /* a client often has many connections */
	pid_t asked;		     /* the last process of which is_ours() was asked, */
	bool ours;		     /* and its answer */
	struct ss_buffer text;
	uint64_t end_ns;
	uint64_t more_ns; /* earlier end, when each item has a holder */
	size_t others;	  /* that were searched */
	bool named;	  /* one of the items is a named pipe */
	bool incomplete;  /* not every process could be searched */
};

/* The other end of a read-only end is writable, and vice versa. */
static bool describe(struct ss_facts *facts, struct ss_fd_fact *fact,
		     struct peer_end *ret)
{
	char link[48];

	*ret = (struct peer_end){ .fact = fact };
	if (fact->kind == SS_FD_PIPE && fact->name) {
		unsigned access = fact->info.flags & O_ACCMODE;
		ret->link = fact->name[0] == '/' ? NULL : fact->name;
		ret->mode = access == O_RDONLY ? S_IWUSR :
			    access == O_WRONLY ? S_IRUSR :
						 0;
		return true;
	}
	if (fact->kind != SS_FD_SOCKET || fact->socket.peer_inode == 0)
		return false;
	(void)snprintf(link, sizeof(link), "socket:[%lu]", fact->socket.peer_inode);
	ret->link = ss_intern_string(facts->strings, link);
	return ret->link != NULL;
}

static bool works_for_us(struct search *s, pid_t pid)
{
	struct ss_stat process;
	struct stat own;
	struct stat theirs;
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/stat", pid); /* fits */
	if (ss_io_read_record(s->target->procfs_fd, path, STAT_MAX, &s->text) != 0 ||
	    !ss_stat_parse(s->text.bytes, s->text.size, &process) ||
	    process.parent != getpid())
		return false;
	(void)snprintf(path, sizeof(path), "%d/exe", pid); /* fits */
	return fstatat(s->target->procfs_fd, path, &theirs, 0) == 0 &&
	       stat("/proc/self/exe", &own) == 0 && own.st_dev == theirs.st_dev &&
	       own.st_ino == theirs.st_ino;
}

/* Whether it is this process or a child that works for it, which has inherited what the
   caller had open. The program that we started is a child, too. */
static bool is_ours(struct search *s, pid_t pid)
{
	if (s->asked != pid)
		s->ours = pid == getpid() || works_for_us(s, pid);
	s->asked = pid;
	return s->ours;
}

/* fd: its descriptor, or -1 */
static void add_holder(struct search *s, struct ss_fd_fact *fact, pid_t pid, int fd)
{
	for (size_t i = 0; i < fact->holder_count; i++) {
		if (fact->holders[i].pid == pid)
			return;
	}
	if (fact->holder_count == SS_HOLDERS_MAX) {
		fact->holders_truncated = true;
		return;
	}
	if (s->last.pid != pid &&
	    !processes_read(s->facts, s->target, pid, &s->text, &s->last)) {
		s->last.pid = 0;
		return;
	}
	fact->holder_fds[fact->holder_count] = fd;
	fact->holders[fact->holder_count++] = s->last;
}

/* Reads only cached attributes: an unresponsive file server must not block us. */
static bool find_named_pipe(int fds, const char *name, struct statx *ret)
{
	return statx(fds, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		     STATX_TYPE | STATX_INO, ret) == 0 &&
	       (ret->stx_mode & S_IFMT) == S_IFIFO;
}

static bool is_file(const struct ss_fd_fact *fact, const struct statx *st)
{
	return fact->inode == st->stx_ino &&
	       fact->device == ((uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor);
}

/* Those of the process that threads wait for have been read. A path is read again: its file is
   looked at. */
static bool is_known(const struct search *s, pid_t pid, const char *name,
		     char link[LINK_MAX])
{
	const struct ss_fd_fact *fact =
		pid == s->target->pid ?
			ss_facts_find_fd(s->facts, (int)ss_scan_pid(name)) :
			NULL;

	size_t size = fact && fact->name ? strlen(fact->name) + 1 : 0;

	if (size == 0 || size > LINK_MAX || fact->name[0] == '/')
		return false;
	memcpy(link, fact->name, size);
	return true;
}

static bool read_link(int fds, const char *name, char link[LINK_MAX])
{
	ssize_t size = readlinkat(fds, name, link, LINK_MAX - 1);

	link[SS_MAX(size, (ssize_t)0)] = '\0';
	return size > 0;
}

static void compare_link(struct search *s, int fds, const char *name, pid_t pid)
{
	char link[LINK_MAX];
	struct statx pipe;
	struct stat st;

	if (!is_known(s, pid, name, link) && !read_link(fds, name, link))
		return;
	bool named = s->named && link[0] == '/' && find_named_pipe(fds, name, &pipe);
	for (size_t i = 0; i < s->items.count; i++) {
		struct peer_end *item = &s->items.items[i];
		if (item->link ? strcmp(link, item->link) != 0 :
				 !named || !is_file(item->fact, &pipe))
			continue;
		if (item->mode != 0 &&
		    (fstatat(fds, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		     !(st.st_mode & item->mode)))
			continue;
		if (is_ours(s, pid))
			item->ours = pid;
		else
			add_holder(s, item->fact, pid, (int)ss_scan_pid(name));
	}
}

/* If no other process has the other end, the thread waits for us. */
static void add_ours(struct search *s)
{
	for (size_t i = 0; i < s->items.count; i++) {
		struct peer_end *item = &s->items.items[i];
		if (item->ours && item->fact->holder_count == 0)
			add_holder(s, item->fact, item->ours, -1);
	}
}

/* Whether a process is known for each item. Others that inherited the same end, such as
   that of a pipe by which a process wakes itself, are of less interest. */
static bool is_answered(const struct search *s)
{
	for (size_t i = 0; i < s->items.count; i++) {
		if (s->items.items[i].fact->holder_count == 0)
			return false;
	}
	return s->items.count > 0;
}

static bool is_late(struct search *s)
{
	uint64_t end_ns = s->others >= NEAREST && is_answered(s) ? s->more_ns : s->end_ns;
	bool late = ss_clock_ns(CLOCK_THREAD_CPUTIME_ID) > end_ns;

	s->incomplete |= late;
	return late;
}

static void search_process(struct search *s, pid_t pid)
{
	char path[32];
	unsigned links = 0;

	(void)snprintf(path, sizeof(path), "%d/fd", pid); /* fits */
	DIR *dir = ss_io_open_directory(s->target->procfs_fd, path);
	int errnum = errno;
	if (!dir) {
		s->incomplete |= errnum != ENOENT && errnum != ESRCH; /* it has ended */
		return;
	}
	for (const struct dirent *entry; (entry = readdir(dir));) {
		if (entry->d_name[0] == '.')
			continue;
		if (++links % LINKS_AT_ONCE == 0 && is_late(s))
			break;
		compare_link(s, dirfd(dir), entry->d_name, pid);
	}
	(void)closedir(dir); /* only read from */
}

static void list_processes(struct search *s)
{
	DIR *dir = ss_io_open_directory(s->target->procfs_fd, ".");

	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		pid_t pid = ss_scan_pid(entry->d_name);
		pid_t *slot = pid > 0 ? ss_vector_push(&s->pids) : NULL;
		if (slot)
			*slot = pid;
	}
	if (dir)
		(void)closedir(dir); /* only read from */
	else
		s->incomplete = true;
	if (s->pids.count > 1)
		qsort(s->pids.items, s->pids.count, sizeof(pid_t), ss_compare_pids);
}

static size_t count_before(const struct search *s)
{
	size_t own = 0;

	while (own < s->pids.count && s->pids.items[own] < s->target->pid)
		own++;
	return own;
}

/* A UNIX socket held by another process usually has no third holder. A pipe may have
   many, and children may have inherited descriptors of the process. */
static bool is_done(const struct search *s)
{
	for (size_t i = 0; i < s->items.count; i++) {
		const struct ss_fd_fact *fact = s->items.items[i].fact;
		const struct ss_process_fact *last =
			fact->holder_count ? &fact->holders[fact->holder_count - 1] :
					     NULL;
		if (fact->kind == SS_FD_PIPE || !last || last->pid == s->target->pid)
			return false;
	}
	return true;
}

/* Returns false when the search is complete. */
static bool search_next(struct search *s, pid_t pid)
{
	if (is_late(s))
		return false;
	search_process(s, pid);
	return !is_done(s);
}

static pid_t parent_of(struct search *s)
{
	struct ss_stat stat;

	return ss_target_read_stat(s->target, s->target->live, &s->text, &stat) ?
		       stat.parent :
		       0;
}

/* Of the processes from *earlier on downwards and from *later on upwards, the one whose id
   is next to that of the target. */
static pid_t take_nearest(const struct search *s, size_t *earlier, size_t *later)
{
	const pid_t *pids = s->pids.items;
	pid_t own = s->target->pid;

	if (*later == s->pids.count ||
	    (*earlier > 0 && own - pids[*earlier - 1] < pids[*later] - own))
		return pids[--*earlier];
	return pids[(*later)++];
}

/* Searches the parent first, which has the other ends of what it gave to the process.
   Then those that were started at about the same time: children, the rest of a pipeline. */
static void search_others(struct search *s)
{
	pid_t parent = parent_of(s);

	if ((parent > 0 && !search_next(s, parent)) || is_late(s))
		return;
	list_processes(s);
	size_t earlier = count_before(s);
	size_t later = earlier;
	while (earlier > 0 || later < s->pids.count) {
		pid_t pid = take_nearest(s, &earlier, &later);
		if (pid == s->target->pid || pid == parent)
			continue;
		if (!search_next(s, pid))
			return;
		s->others++;
	}
}

typedef bool visit_link(void *data, pid_t pid, const char *fd);

/* Calls visit for each descriptor of the process that has this link, until it returns false. Returns
   what it returned last, or true. */
static bool visit_links(struct search *s, pid_t pid, const char *wanted,
			visit_link *visit, void *data)
{
	char path[32];
	char link[PATH_MAX];
	unsigned links = 0;
	bool more = true;

	(void)snprintf(path, sizeof(path), "%d/fd", pid); /* fits */
	DIR *dir = ss_io_open_directory(s->target->procfs_fd, path);
	int errnum = errno;
	s->incomplete |= !dir && errnum != ENOENT && errnum != ESRCH;
	for (const struct dirent *entry; dir && more && (entry = readdir(dir));) {
		if (++links % LINKS_AT_ONCE == 0 && is_late(s))
			break;
		ssize_t size =
			readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		if (size <= 0)
			continue;
		link[size] = '\0';
		more = strcmp(link, wanted) != 0 || visit(data, pid, entry->d_name);
	}
	if (dir)
		(void)closedir(dir); /* only read from */
	return more;
}

bool ss_holders_visit(const struct ss_target *target, const char *link, pid_t first,
		      uint64_t *spent_ns, visit_link *visit, void *data)
{
	struct search s = { .target = target };
	uint64_t begin = ss_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	s.end_ns = begin + VISIT_NS - SS_MIN(*spent_ns, (uint64_t)VISIT_NS);
	bool more = first <= 0 || visit_links(&s, first, link, visit, data);
	if (more)
		list_processes(&s);
	/* Usually it was started shortly before the waiter. */
	size_t own = count_before(&s);
	for (size_t i = 0; i < s.pids.count && more && !is_late(&s); i++) {
		size_t at = i < own ? own - 1 - i : i;
		more = visit_links(&s, s.pids.items[at], link, visit, data);
	}
	*spent_ns += ss_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	ss_vector_free(&s.pids);
	return !s.incomplete;
}

/* Whether the process still has that end open. */
static bool holds(const struct search *s, pid_t pid, int fd, const struct peer_end *item)
{
	char path[48];
	char link[LINK_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%d/fd/%d", pid, fd); /* fits */
	ssize_t size = readlinkat(s->target->procfs_fd, path, link, sizeof(link) - 1);
	if (size <= 0)
		return false;
	link[size] = '\0';
	return strcmp(link, item->link) == 0 &&
	       (item->mode == 0 ||
		(fstatat(s->target->procfs_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		 (st.st_mode & item->mode)));
}

/* Whether both are the same socket with the same other end. */
static bool is_same(struct search *s, struct ss_fd_fact *fact,
		    const struct ss_fd_fact *then, struct peer_end *ret)
{
	return fact->kind == then->kind && fact->inode != 0 &&
	       fact->inode == then->inode &&
	       fact->socket.peer_inode == then->socket.peer_inode &&
	       describe(s->facts, fact, ret) && ret->link;
}

/* A pipe often has several holders, and each child gets it: there may be others by now. What was
   searched for in vain is not searched for in each capture. */
static void confirm(struct search *s, struct ss_fd_fact *fact,
		    const struct ss_fd_fact *then)
{
	struct peer_end item;

	if ((then->holder_count == 0 && !then->holders_truncated) ||
	    !is_same(s, fact, then, &item))
		return;
	for (size_t i = 0; i < then->holder_count; i++) {
		pid_t pid = then->holders[i].pid;
		if (then->holder_fds[i] < 0 || is_ours(s, pid) ||
		    !holds(s, pid, then->holder_fds[i], &item)) {
			fact->holder_count = 0;
			return;
		}
		add_holder(s, fact, pid, then->holder_fds[i]);
	}
	fact->holders_kept = fact->kind == SS_FD_PIPE || then->holder_count == 0;
	fact->holders_truncated = fact->holders_kept || then->holders_truncated;
}

void ss_holders_confirm(struct ss_facts *facts, const struct ss_target *target,
			const struct ss_facts *previous)
{
	struct search s = { .facts = facts, .target = target };

	for (size_t i = 0; i < facts->fds.count; i++) {
		struct ss_fd_fact *fact = &facts->fds.items[i];
		const struct ss_fd_fact *then = ss_facts_find_fd(previous, fact->fd);
		if (fact->resolve_peers && then)
			confirm(&s, fact, then);
	}
	ss_buffer_deinit(&s.text);
}

/* Whether a process may have that end open that was not found. A named pipe is open before the call that opens
   it returns the descriptor; until then no process has one. */
static bool may_have_more(const struct search *s, const struct peer_end *item)
{
	return s->incomplete || (!item->link && item->fact->holder_count == 0);
}

/* Which descriptors are searched for */
enum pass {
	FIRST,
	AGAIN, /* those that were taken over from the previous capture */
	WHOLE, /* those of which holders are known, and perhaps not all */
};

static bool is_wanted(const struct ss_fd_fact *fact, enum pass pass)
{
	if (!fact->resolve_peers)
		return false;
	if (pass == WHOLE)
		return fact->holder_count > 0 && fact->holders_truncated;
	return fact->holders_kept == (pass == AGAIN) &&
	       (fact->holder_count == 0 || pass == AGAIN);
}

/* end_ns: of the thread's CPU time; WHOLE alone has it */
static void find(struct ss_facts *facts, const struct ss_target *target, enum pass pass,
		 uint64_t end_ns)
{
	struct search s = { .facts = facts, .target = target };

	for (size_t i = 0; i < facts->fds.count; i++) {
		struct peer_end item;
		struct ss_fd_fact *fact = &facts->fds.items[i];
		if (!is_wanted(fact, pass) || !describe(facts, fact, &item))
			continue;
		struct peer_end *slot = ss_vector_push(&s.items);
		if (!slot)
			continue;
		*slot = item;
		s.named |= !item.link;
		fact->holder_count = 0;
		fact->holders_truncated = fact->holders_kept = false;
	}
	if (s.items.count) {
		uint64_t begin = ss_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		s.end_ns = pass == WHOLE ? end_ns : begin + SCAN_NS;
		s.more_ns = pass == WHOLE ? end_ns : begin + MORE_NS;
		search_process(&s, target->pid);
		search_others(&s);
		add_ours(&s);
		for (size_t i = 0; i < s.items.count; i++)
			s.items.items[i].fact->holders_truncated |=
				may_have_more(&s, &s.items.items[i]);
	}
	ss_vector_free(&s.items);
	ss_vector_free(&s.pids);
	ss_buffer_deinit(&s.text);
}

void ss_holders_find(struct ss_facts *facts, const struct ss_target *target)
{
	struct search s = { .facts = facts, .target = target };

	for (size_t i = 0; i < facts->fds.count; i++) {
		struct ss_fd_fact *fact = &facts->fds.items[i];
		if (fact->kind == SS_FD_PIDFD && fact->info.pid > 0)
			add_holder(&s, fact, fact->info.pid, -1);
	}
	ss_buffer_deinit(&s.text);
	find(facts, target, FIRST, 0);
}

void ss_holders_find_again(struct ss_facts *facts, const struct ss_target *target)
{
	find(facts, target, AGAIN, 0);
}

void ss_holders_complete(struct ss_facts *facts, const struct ss_target *target,
			 uint64_t end_ns)
{
	find(facts, target, WHOLE, end_ns);
}
