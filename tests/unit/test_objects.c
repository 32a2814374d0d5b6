/*
 * What blocked threads refer to: descriptors, sockets, owners of file locks, other
 * processes. A directory of files takes the place of /proc.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "data/futex.h"
#include "process/objects.h"

/* Above what pid_max can be: nothing of the real /proc is found by mistake. */
enum { SELF = 4190100, OTHER = 4190200, THIRD = 4190300 };

struct fixture {
	char directory[32];
	int procfs_fd;
	struct ss_target target;
	struct ss_facts *facts;
};

__attribute__((format(printf, 3, 4))) static void
write_file(const struct fixture *f, const char *path, const char *format, ...)
{
	char copy[128];
	va_list ap;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	for (char *at = copy; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		(void)mkdirat(f->procfs_fd, copy, 0755); /* or it exists */
	}
	int fd = openat(f->procfs_fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	va_start(ap, format);
	assert_true(vdprintf(fd, format, ap) >= 0);
	va_end(ap);
	(void)close(fd);
}

static void add_process(const struct fixture *f, pid_t pid, const char *name)
{
	char path[64];

	for (int task = 0; task < 2; task++) {
		char base[32] = "";
		if (task)
			(void)snprintf(base, sizeof(base), "/task/%d", pid);
		(void)snprintf(path, sizeof(path), "%d%s/stat", pid, base);
		write_file(f, path,
			   "%d (%s) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9 1 2",
			   pid, name);
		(void)snprintf(path, sizeof(path), "%d%s/status", pid, base);
		write_file(f, path, "Name:\t%s\nTgid:\t%d\nPid:\t%d\nTracerPid:\t%d\n",
			   name, pid, pid, THIRD);
	}
	(void)snprintf(path, sizeof(path), "%d/fd/.keep", pid);
	write_file(f, path, "%s", "");
}

static void add_fd(const struct fixture *f, pid_t pid, int fd, const char *link,
		   const char *fdinfo)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/fd/%d", pid, fd);
	assert_int_equal(symlinkat(link, f->procfs_fd, path), 0);
	(void)snprintf(path, sizeof(path), "%d/fdinfo/%d", pid, fd);
	write_file(f, path, "pos:\t0\nflags:\t%s\n", fdinfo);
}

static int open_below(const struct fixture *f, const char *path)
{
	int fd = openat(f->procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[32];

	assert_non_null(f);
	(void)snprintf(f->directory, sizeof(f->directory), "/tmp/stacksnap-unit-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	f->procfs_fd = open(f->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->procfs_fd >= 0);
	add_process(f, SELF, "self");
	add_process(f, OTHER, "other");
	add_process(f, THIRD, "third");
	(void)snprintf(path, sizeof(path), "%d", SELF);
	f->target = (struct ss_target){ .pid = SELF,
					.live = SELF,
					.procfs_fd = f->procfs_fd,
					.proc_fd = open_below(f, path),
					.root_fd = -1 };
	(void)snprintf(path, sizeof(path), "%d/task", SELF);
	f->target.task_fd = open_below(f, path);
	f->facts = ss_facts_new();
	assert_non_null(f->facts);
	f->facts->pid = SELF;
	*state = f;
	return 0;
}

static int delete_entry(const char *path, const struct stat *st, int kind,
			struct FTW *place)
{
	(void)st;
	(void)kind;
	(void)place;
	return remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ss_facts_unref(f->facts);
	(void)close(f->target.proc_fd);
	(void)close(f->target.task_fd);
	(void)close(f->procfs_fd);
	assert_int_equal(nftw(f->directory, delete_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(f);
	return 0;
}

static struct ss_thread_facts *add_thread(struct fixture *f, pid_t tid,
					  enum ss_syscall_id id, uint64_t arg0,
					  uint64_t arg1)
{
	struct ss_thread_facts *thread = ss_vector_push(&f->facts->threads);

	assert_non_null(thread);
	thread->tid = tid;
	thread->state = 'S';
	thread->call.id = id;
	thread->call.args[0] = arg0;
	thread->call.args[1] = arg1;
	return thread;
}

static const struct ss_fd_fact *expect_fd(const struct fixture *f, int fd,
					  enum ss_fd_kind kind)
{
	const struct ss_fd_fact *fact = ss_facts_find_fd(f->facts, fd);

	assert_non_null(fact);
	assert_int_equal(fact->kind, kind);
	return fact;
}

TEST_WITH(test_descriptors, setup, teardown)
{
	struct fixture *f = *state;
	const struct pollfd few[] = { { .fd = 7 }, { .fd = -1 }, { .fd = 9 } };
	const struct pollfd many[] = {
		{ .fd = 20 }, { .fd = 21 }, { .fd = 22 }, { .fd = 23 }, { .fd = 5 },
	};
	const uint8_t bits[] = { 0, 0x82 }; /* 9 and 15 */

	add_fd(f, SELF, 5, "pipe:[77]", "00");
	add_fd(f, SELF, 7, "anon_inode:[eventfd]", "02\neventfd-count: 2a");
	add_fd(f, SELF, 9, "anon_inode:[eventpoll]",
	       "02\ntfd: 7 events: 19 data: 7 pos:0 ino:1 sdev:e\n"
	       "tfd: 15 events: 1 data: f pos:0 ino:1 sdev:e");
	add_fd(f, SELF, 15, "/dev/pts/3", "02");
	add_fd(f, SELF, 20, "/nowhere/file", "02");
	add_fd(f, SELF, 30, "socket:[900]", "02");
	(void)add_thread(f, SELF, SS_SYS_READ, 5, 0);
	add_thread(f, SELF + 1, SS_SYS_POLL, 0, 0)->memory[0] =
		(struct ss_memory_fact){ .size = sizeof(few),
					 .bytes = (const uint8_t *)few };
	add_thread(f, SELF + 2, SS_SYS_POLL, 0, 0)->memory[0] =
		(struct ss_memory_fact){ .size = sizeof(many),
					 .bytes = (const uint8_t *)many };
	add_thread(f, SELF + 3, SS_SYS_SELECT, 16, 0)->memory[1] =
		(struct ss_memory_fact){ .size = sizeof(bits), .bytes = bits };
	add_thread(f, SELF + 4, SS_SYS_READ, 30, 0)->state = 'R';
	ss_descriptors_read(f->facts, &f->target, NULL);
	const struct ss_fd_fact *pipe = expect_fd(f, 5, SS_FD_PIPE);
	assert_int_equal(pipe->inode, 77);
	assert_true(pipe->resolve_peers);
	assert_int_equal(expect_fd(f, 7, SS_FD_EVENTFD)->info.count, 0x2a);
	const struct ss_fd_fact *epoll = expect_fd(f, 9, SS_FD_EPOLL);
	assert_int_equal(epoll->watch_count, 2);
	assert_int_equal(epoll->watches[1].fd, 15);
	assert_true(expect_fd(f, 15, SS_FD_TTY)->resolve_peers);
	/* Peers are not resolved for one of many in a poll; a closed descriptor has no
	   kind. */
	assert_false(expect_fd(f, 20, SS_FD_FILE)->resolve_peers);
	assert_false(expect_fd(f, 21, SS_FD_UNKNOWN)->resolve_peers);
	assert_null(ss_facts_find_fd(f->facts, -1));
	assert_null(ss_facts_find_fd(f->facts, 30)); /* of a thread that runs */
	assert_int_equal(f->facts->fds.count, 8);
}

/* Each number of descriptors in a set has a limit. */
TEST_WITH(test_large_sets, setup, teardown)
{
	struct fixture *f = *state;
	struct pollfd set[100];
	uint8_t bits[128];

	for (int i = 0; i < 100; i++)
		set[i] = (struct pollfd){ .fd = 1000 + i };
	memset(bits, 0xff, sizeof(bits));
	add_thread(f, SELF, SS_SYS_POLL, 0, 0)->memory[0] =
		(struct ss_memory_fact){ .size = sizeof(set),
					 .bytes = (const uint8_t *)set };
	add_thread(f, SELF + 1, SS_SYS_SELECT, 1024, 0)->memory[1] =
		(struct ss_memory_fact){ .size = sizeof(bits), .bytes = bits };
	ss_descriptors_read(f->facts, &f->target, NULL);
	assert_int_equal(f->facts->fds.count, SS_SET_SHOWN * 2);
}

TEST_WITH(test_sockets, setup, teardown)
{
	struct fixture *f = *state;
	char path[32];

	add_fd(f, SELF, 3, "socket:[900]", "02");
	add_fd(f, SELF, 4, "socket:[901]", "02");
	add_fd(f, SELF, 5, "socket:[902]", "02");
	(void)add_thread(f, SELF, SS_SYS_ACCEPT, 3, 0);
	(void)add_thread(f, SELF + 1, SS_SYS_RECVFROM, 4, 0);
	(void)add_thread(f, SELF + 2, SS_SYS_RECVFROM, 5, 0);
	(void)snprintf(path, sizeof(path), "%d/net/tcp", SELF);
	write_file(f, path,
		   "  sl  local_address rem_address   st\n"
		   "   0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 900 1 0\n");
	(void)snprintf(path, sizeof(path), "%d/net/unix", SELF);
	write_file(f, path,
		   "Num RefCount Protocol Flags Type St Inode Path\n"
		   "0: 00000002 00000000 00010000 0001 01 901 @name\n"
		   "0: 00000002 00000000 00000000 0001 03 999 /other\n");
	ss_descriptors_read(f->facts, &f->target, NULL);
	ss_sockets_read(f->facts, &f->target);
	const struct ss_socket_fact *tcp = &expect_fd(f, 3, SS_FD_SOCKET)->socket;
	assert_true(tcp->found);
	assert_int_equal(tcp->inet.local.port, 8080);
	const struct ss_socket_fact *name = &expect_fd(f, 4, SS_FD_SOCKET)->socket;
	assert_true(name->found && name->listens);
	assert_string_equal(name->path, "@name");
	assert_false(expect_fd(f, 5, SS_FD_SOCKET)->socket.found);
}

TEST_WITH(test_pipe_holders, setup, teardown)
{
	struct fixture *f = *state;

	add_fd(f, SELF, 5, "pipe:[77]", "00");
	add_fd(f, OTHER, 1, "pipe:[77]", "01");
	add_fd(f, OTHER, 2, "pipe:[77]", "01");
	add_fd(f, THIRD, 1, "pipe:[78]", "01");
	(void)add_thread(f, SELF, SS_SYS_READ, 5, 0);
	ss_descriptors_read(f->facts, &f->target, NULL);
	ss_holders_find(f->facts, &f->target);
	const struct ss_fd_fact *pipe = expect_fd(f, 5, SS_FD_PIPE);
	/* Permissions of these links allow everything, so it finds itself as well. */
	assert_int_equal(pipe->holder_count, 2);
	assert_int_equal(pipe->holders[0].pid, SELF);
	assert_int_equal(pipe->holders[1].pid, OTHER);
	assert_string_equal(pipe->holders[1].name, "other");
	assert_false(pipe->holders_truncated);
}

/* The facts of the next capture of a series, in which the thread is in the same call. Returns
   those of the previous one. */
static struct ss_facts *capture_again(struct fixture *f)
{
	struct ss_facts *before = f->facts;

	f->facts = ss_facts_new();
	assert_non_null(f->facts);
	f->facts->pid = SELF;
	(void)add_thread(f, SELF, SS_SYS_READ, 5, 0);
	ss_descriptors_read(f->facts, &f->target, before);
	ss_holders_confirm(f->facts, &f->target, before);
	ss_holders_find(f->facts, &f->target);
	return before;
}

/* In a series, holders of a pipe are only confirmed, until a search is needed. */
TEST_WITH(test_later_pipe_holder, setup, teardown)
{
	struct fixture *f = *state;

	add_fd(f, SELF, 5, "pipe:[77]", "00");
	add_fd(f, OTHER, 1, "pipe:[77]", "01");
	(void)add_thread(f, SELF, SS_SYS_READ, 5, 0);
	ss_descriptors_read(f->facts, &f->target, NULL);
	ss_holders_find(f->facts, &f->target);
	add_fd(f, THIRD, 1, "pipe:[77]", "01");
	ss_facts_unref(capture_again(f));
	const struct ss_fd_fact *pipe = expect_fd(f, 5, SS_FD_PIPE);
	assert_int_equal(pipe->holder_count, 2);
	assert_int_equal(pipe->holders[1].pid, OTHER);
	assert_true(pipe->holders_truncated);
	ss_holders_find_again(f->facts, &f->target);
	assert_int_equal(pipe->holder_count, 3);
	assert_int_equal(pipe->holders[2].pid, THIRD);
	assert_false(pipe->holders_truncated);
}

/* If one of them has closed it, all processes are searched. */
TEST_WITH(test_pipe_is_handed_on, setup, teardown)
{
	struct fixture *f = *state;
	char path[64];

	add_fd(f, SELF, 5, "pipe:[77]", "00");
	add_fd(f, OTHER, 1, "pipe:[77]", "01");
	(void)add_thread(f, SELF, SS_SYS_READ, 5, 0);
	ss_descriptors_read(f->facts, &f->target, NULL);
	ss_holders_find(f->facts, &f->target);
	add_fd(f, THIRD, 1, "pipe:[77]", "01");
	(void)snprintf(path, sizeof(path), "%d/fd/1", OTHER);
	assert_int_equal(unlinkat(f->procfs_fd, path, 0), 0);
	ss_facts_unref(capture_again(f));
	const struct ss_fd_fact *pipe = expect_fd(f, 5, SS_FD_PIPE);
	assert_int_equal(pipe->holder_count, 2);
	assert_int_equal(pipe->holders[1].pid, THIRD);
	assert_false(pipe->holders_truncated);
}

/* This process and its children may have inherited what their caller had open. */
TEST_WITH(test_own_descriptors, setup, teardown)
{
	struct fixture *f = *state;
	enum { CHILD = SELF + 1, STARTED = SELF + 2 };
	const pid_t children[] = { CHILD, STARTED };
	char path[64];

	add_process(f, getpid(), "ours");
	for (size_t i = 0; i < SS_ARRAY_SIZE(children); i++) {
		add_process(f, children[i], i ? "started" : "child");
		(void)snprintf(path, sizeof(path), "%d/stat", children[i]);
		write_file(f, path,
			   "%d (x) S %d 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9 1 2",
			   children[i], getpid());
		(void)snprintf(path, sizeof(path), "%d/exe", children[i]);
		assert_int_equal(symlinkat(i ? "/proc/self/maps" : "/proc/self/exe",
					   f->procfs_fd, path),
				 0);
		add_fd(f, children[i], 1, "pipe:[77]", "01");
	}
	add_fd(f, SELF, 5, "pipe:[77]", "00");
	add_fd(f, SELF, 6, "socket:[71]", "02");
	add_fd(f, getpid(), 1, "pipe:[77]", "01");
	add_fd(f, getpid(), 2, "socket:[72]", "02");
	(void)add_thread(f, SELF, SS_SYS_READ, 5, 0);
	(void)add_thread(f, SELF + 1, SS_SYS_READ, 6, 0);
	ss_descriptors_read(f->facts, &f->target, NULL);
	f->facts->fds.items[1].socket.peer_inode = 72;
	ss_holders_find(f->facts, &f->target);
	const struct ss_fd_fact *pipe = expect_fd(f, 5, SS_FD_PIPE);
	assert_int_equal(pipe->holder_count, 2);
	assert_int_equal(pipe->holders[0].pid, SELF);
	assert_int_equal(pipe->holders[1].pid, STARTED);
	/* Nobody else has the other end of the socket, so the thread does wait for us. */
	const struct ss_fd_fact *socket = expect_fd(f, 6, SS_FD_SOCKET);
	assert_int_equal(socket->holder_count, 1);
	assert_int_equal(socket->holders[0].pid, getpid());
}

/* The other ends of a server's connections are often in the process that started it. */
TEST_WITH(test_parent_first, setup, teardown)
{
	struct fixture *f = *state;
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/task/%d/stat", SELF, SELF);
	write_file(f, path,
		   "%d (self) S %d 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9 1 2", SELF,
		   THIRD);
	add_fd(f, SELF, 5, "socket:[71]", "02");
	add_fd(f, OTHER, 1, "socket:[72]", "02");
	add_fd(f, THIRD, 1, "socket:[72]", "02");
	(void)add_thread(f, SELF, SS_SYS_READ, 5, 0);
	ss_descriptors_read(f->facts, &f->target, NULL);
	f->facts->fds.items[0].socket.peer_inode = 72;
	ss_holders_find(f->facts, &f->target);
	const struct ss_fd_fact *fd = expect_fd(f, 5, SS_FD_SOCKET);
	/* No other process is searched. */
	assert_int_equal(fd->holder_count, 1);
	assert_int_equal(fd->holders[0].pid, THIRD);
}

/* In a pipeline the writer was started just before the reader. */
TEST_WITH(test_nearest_next, setup, teardown)
{
	struct fixture *f = *state;

	add_process(f, SELF - 1, "near");
	add_process(f, SELF - 99, "far");
	add_fd(f, SELF, 5, "socket:[71]", "02");
	add_fd(f, SELF - 1, 1, "socket:[72]", "02");
	add_fd(f, SELF - 99, 1, "socket:[72]", "02");
	add_fd(f, OTHER, 1, "socket:[72]", "02");
	(void)add_thread(f, SELF, SS_SYS_READ, 5, 0);
	ss_descriptors_read(f->facts, &f->target, NULL);
	f->facts->fds.items[0].socket.peer_inode = 72;
	ss_holders_find(f->facts, &f->target);
	const struct ss_fd_fact *fd = expect_fd(f, 5, SS_FD_SOCKET);
	assert_int_equal(fd->holder_count, 1);
	assert_int_equal(fd->holders[0].pid, SELF - 1);
}

/* A file that exists, its device and inode as /proc/locks has them. */
static void make_lock_file(const struct fixture *f, char *path, size_t size,
			   char id[static 64])
{
	struct stat st;

	write_file(f, "file", "%s", "");
	(void)snprintf(path, size, "%s/file", f->directory);
	assert_int_equal(stat(path, &st), 0);
	(void)snprintf(id, 64, "%02x:%02x:%lu", major(st.st_dev), minor(st.st_dev),
		       (unsigned long)st.st_ino);
}

TEST_WITH(test_flock_owner, setup, teardown)
{
	struct fixture *f = *state;
	char path[64];
	char id[64];
	char lock[160];

	make_lock_file(f, path, sizeof(path), id);
	add_fd(f, SELF, 5, path, "02");
	(void)snprintf(lock, sizeof(lock),
		       "02\nlock:\t1: FLOCK ADVISORY WRITE %d %s 0 EOF", OTHER, id);
	/* OTHER took it and has closed the file; THIRD has inherited it. */
	add_fd(f, THIRD, 8, path, lock);
	write_file(f, "locks",
		   "1: FLOCK  ADVISORY  WRITE %d %s 0 EOF\n"
		   "1: -> FLOCK  ADVISORY  WRITE %d %s 0 EOF\n",
		   OTHER, id, SELF, id);
	struct ss_thread_facts *thread = add_thread(f, SELF, SS_SYS_FLOCK, 5, LOCK_EX);
	ss_descriptors_read(f->facts, &f->target, NULL);
	ss_file_locks_find_owners(f->facts, &f->target);
	assert_true(thread->holder_known);
	assert_int_equal(thread->holder.pid, THIRD);
	assert_string_equal(thread->holder.name, "third");
	/* The one that took it, while it has the file. */
	add_fd(f, OTHER, 8, path, lock);
	ss_file_locks_find_owners(f->facts, &f->target);
	assert_int_equal(thread->holder.pid, OTHER);
}

TEST_WITH(test_range_owner, setup, teardown)
{
	struct fixture *f = *state;
	char path[64];
	char id[64];
	struct flock wanted = { .l_type = F_WRLCK, .l_start = 100, .l_len = 10 };

	make_lock_file(f, path, sizeof(path), id);
	add_fd(f, SELF, 5, path, "02");
	write_file(f, "locks",
		   "1: POSIX  ADVISORY  WRITE %d %s 0 99\n"
		   "2: POSIX  ADVISORY  READ %d %s 105 EOF\n",
		   OTHER, id, THIRD, id);
	struct ss_thread_facts *thread = add_thread(f, SELF, SS_SYS_FCNTL, 5, F_SETLKW);
	thread->memory[2] = (struct ss_memory_fact){ .size = sizeof(wanted),
						     .bytes = (const uint8_t *)&wanted };
	ss_descriptors_read(f->facts, &f->target, NULL);
	ss_file_locks_find_owners(f->facts, &f->target);
	assert_int_equal(thread->holder.pid, THIRD);
	/* Both are in the way of the whole file: nobody is named. */
	thread->holder = (struct ss_process_fact){};
	thread->holder_known = false;
	wanted.l_start = wanted.l_len = 0;
	ss_file_locks_find_owners(f->facts, &f->target);
	assert_false(thread->holder_known);
	assert_int_equal(thread->holder.pid, 0);
	/* Nor does a lock for reading wait for another one. */
	wanted = (struct flock){ .l_type = F_RDLCK, .l_start = 100, .l_len = 10 };
	ss_file_locks_find_owners(f->facts, &f->target);
	assert_false(thread->holder_known);
}

TEST_WITH(test_children_and_tracer, setup, teardown)
{
	struct fixture *f = *state;
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/task/%d/children", SELF, SELF);
	write_file(f, path, "%d %d 5999999 ", OTHER, THIRD);
	struct ss_thread_facts *thread = add_thread(f, SELF, SS_SYS_WAIT4, 0, 0);
	thread->state = 't';
	ss_processes_find(f->facts, &f->target);
	assert_true(f->facts->children_known);
	assert_int_equal(f->facts->children.count, 2); /* the last one has ended */
	assert_int_equal(f->facts->children.items[1].pid, THIRD);
	assert_int_equal(f->facts->children.items[1].parent_tid, SELF);
	assert_int_equal(thread->tracer.pid, THIRD);
	assert_string_equal(thread->tracer.name, "third");
}

/* A capture of the threads that the facts have. */
static struct ss_capture *make_capture(struct fixture *f)
{
	struct ss_capture *capture = ss_capture_new();

	assert_non_null(capture);
	capture->facts = ss_facts_ref(f->facts);
	capture->process.pid = SELF;
	for (size_t i = 0; i < f->facts->threads.count; i++) {
		struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
		assert_non_null(thread);
		thread->tid = f->facts->threads.items[i].tid;
	}
	return capture;
}

static struct ss_peers find_peers(struct fixture *f)
{
	struct ss_peers peers = { .pids = { SELF }, .count = 1 };
	struct ss_capture *capture = make_capture(f);

	ss_peers_find(&peers, capture, &f->target);
	ss_capture_free(capture);
	return peers;
}

TEST_WITH(test_peers, setup, teardown)
{
	struct fixture *f = *state;
	struct ss_thread_facts *thread = add_thread(f, SELF, SS_SYS_FLOCK, 5, LOCK_EX);

	assert_int_equal(find_peers(f).count, 1);
	thread->holder.pid = OTHER;
	struct ss_peers peers = find_peers(f);
	assert_int_equal(peers.count, 2);
	assert_int_equal(peers.pids[1], OTHER);
	assert_false(peers.has_cycle);
	/* A wait for itself closes a cycle. */
	thread->holder.pid = SELF;
	peers = find_peers(f);
	assert_int_equal(peers.count, 1);
	assert_true(peers.has_cycle);
	thread->holder.pid = 0;
	thread->call.id = SS_SYS_WAIT4;
	struct ss_process_fact *child = ss_vector_push(&f->facts->children);
	assert_non_null(child);
	child->pid = THIRD;
	peers = find_peers(f);
	assert_int_equal(peers.count, 2);
	assert_int_equal(peers.pids[1], THIRD);
	/* Any of two */
	child = ss_vector_push(&f->facts->children);
	assert_non_null(child);
	child->pid = OTHER;
	assert_int_equal(find_peers(f).count, 3);
}

/* A lock in shared memory whose word names a thread of another process. */
TEST_WITH(test_shared_lock, setup, teardown)
{
	static const char map[] =
		"7f0000000000-7f0000001000 rw-s 0 00:01 55 /dev/shm/x\n";
	struct fixture *f = *state;
	struct ss_thread_facts *thread =
		add_thread(f, SELF, SS_SYS_FUTEX, 0x7f0000000010, FUTEX_LOCK_PI);
	const uint32_t word = OTHER & FUTEX_TID_MASK;
	char path[32];

	thread->lock = (struct ss_memory_fact){ .address = 0x7f0000000010,
						.size = sizeof(word),
						.bytes = (const uint8_t *)&word };
	(void)snprintf(path, sizeof(path), "%d/maps", SELF);
	write_file(f, path, "%s", map);
	assert_int_equal(find_peers(f).count, 1); /* it has no such memory */
	(void)snprintf(path, sizeof(path), "%d/maps", OTHER);
	write_file(f, path, "%s", map);
	struct ss_peers peers = find_peers(f);
	assert_int_equal(peers.count, 2);
	assert_int_equal(peers.pids[1], OTHER);
	assert_int_equal(thread->sharer, OTHER);
	/* Waits that are private to the process lead nowhere. */
	thread->call.args[1] |= FUTEX_PRIVATE_FLAG;
	assert_int_equal(find_peers(f).count, 1);
}

/* Two threads, each waiting for a lock that the other one holds. */
TEST_WITH(test_unproven_cycle, setup, teardown)
{
	struct fixture *f = *state;
	const uint32_t words[2] = { SELF + 1, SELF };
	struct ss_thread_facts *threads[2];

	for (size_t i = 0; i < 2; i++) { /* threads may move */
		(void)add_thread(f, SELF + (pid_t)i, SS_SYS_FUTEX, 0x1000 + 0x100 * i,
				 FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG);
	}
	for (size_t i = 0; i < 2; i++) {
		threads[i] = &f->facts->threads.items[i];
		threads[i]->freeze_round = 2;
		threads[i]->lock =
			(struct ss_memory_fact){ .address = 0x1000 + 0x100 * i,
						 .size = sizeof(words[i]),
						 .bytes = (const uint8_t *)&words[i] };
	}
	struct ss_capture *capture = make_capture(f);
	assert_false(ss_peers_have_unproven_cycle(capture));
	threads[1]->freeze_round = 4;
	assert_true(ss_peers_have_unproven_cycle(capture));
	threads[0]->unchanged = true;
	assert_true(ss_peers_have_unproven_cycle(capture));
	threads[1]->unchanged = true;
	assert_false(ss_peers_have_unproven_cycle(capture));
	/* Without a cycle there is nothing to prove. */
	threads[1]->unchanged = false;
	threads[1]->call.args[0] = 0x1200;
	assert_false(ss_peers_have_unproven_cycle(capture));
	ss_capture_free(capture);
}

static void set_wchan(const struct fixture *f, const char *function)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/task/%d/wchan", SELF, SELF);
	write_file(f, path, "%s", function);
}

/* The kernel's function tells that a FIFO is opened. */
TEST_WITH(test_fifo, setup, teardown)
{
	struct fixture *f = *state;
	struct ss_thread_facts *thread =
		add_thread(f, SELF, SS_SYS_OPENAT, (uint64_t)AT_FDCWD, 0x1000);

	set_wchan(f, "do_sys_openat2");
	ss_wait_channels_read(f->facts, &f->target);
	assert_false(thread->opens_fifo);
	set_wchan(f, "wait_for_partner.isra.0");
	thread->call.args[2] = O_WRONLY | O_CREAT;
	ss_wait_channels_read(f->facts, &f->target);
	assert_true(thread->opens_fifo);
	assert_int_equal(thread->fifo_access, SS_ACCESS_EXCLUSIVE);
	thread->call.args[2] = O_RDONLY | O_CLOEXEC;
	ss_wait_channels_read(f->facts, &f->target);
	assert_int_equal(thread->fifo_access, SS_ACCESS_SHARED);
	assert_null(thread->mount);
}

/* A call that waits for the server of a FUSE file system, and two processes that may be it. */
TEST_WITH(test_fuse, setup, teardown)
{
	static const char path[] = "/mnt/one/file";
	static const char mounts[] = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
				     "30 22 0:52 / /mnt/one rw - fuse.x x rw\n"
				     "31 22 0:53 / /mnt/two rw - fuse.x x rw\n"
				     "32 31 8:2 / /mnt/two/ext rw - ext4 /dev/sda2 rw\n";
	struct fixture *f = *state;
	struct ss_thread_facts *thread =
		add_thread(f, SELF, SS_SYS_NEWFSTATAT, (uint64_t)AT_FDCWD, 0x1000);
	char name[32];

	(void)snprintf(name, sizeof(name), "%d/mountinfo", SELF);
	write_file(f, name, "%s", mounts);
	set_wchan(f, "request_wait_answer");
	thread->memory[1] = (struct ss_memory_fact){ .address = 0x1000,
						     .size = sizeof(path),
						     .bytes = (const uint8_t *)path };
	ss_wait_channels_read(f->facts, &f->target);
	assert_string_equal(thread->mount, "/mnt/one");
	assert_int_equal(thread->holder.pid, 0);
	add_fd(f, OTHER, 5, "/dev/fuse", "02");
	ss_wait_channels_read(f->facts, &f->target);
	assert_int_equal(thread->holder.pid, OTHER); /* the only one */
	assert_string_equal(thread->holder.name, "other");
	thread->holder.pid = 0;
	add_fd(f, THIRD, 7, "/dev/fuse", "02");
	ss_wait_channels_read(f->facts, &f->target);
	assert_int_equal(thread->holder.pid, 0);
	(void)snprintf(name, sizeof(name), "%d/fdinfo/7", THIRD);
	write_file(f, name, "pos:\t0\nflags:\t02\nfuse_connection:\t52\n");
	ss_wait_channels_read(f->facts, &f->target);
	assert_int_equal(thread->holder.pid, THIRD);
	/* A path that is not below one of several */
	thread->memory[1].size = 0;
	ss_wait_channels_read(f->facts, &f->target);
	assert_string_equal(thread->mount, "");
}
