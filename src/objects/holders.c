#include "objects/holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "objects/processes.h"
#include "proc/locks.h"

enum {
	SCAN_NS = 5 * 1000 * 1000,   /* of CPU time: longest look at processes, */
	FLOCK_NS = 20 * 1000 * 1000, /* and for who has an open file */
	FDINFO_MAX = 64 * 1024,
	LINKS_AT_ONCE = 64, /* of one process, until the time is looked at */
	LINK_MAX = 64,	    /* "socket:[...]"; of a path the begin will do */
};

struct sought {
	const char *link; /* as the other end's link says; kept by the facts. NULL: a
			     named pipe, which is known by its file: it has many paths */
	mode_t mode;	  /* S_IRUSR, S_IWUSR: one of these; 0: any */
	struct ss_fd_fact *fact;
};

struct search {
	struct ss_facts *facts;
	const struct ss_target *target;
	SS_VECTOR(struct sought) items;
	SS_VECTOR(pid_t) pids; /* of all processes but ours, ascending */
	struct ss_text text;
	uint64_t end_ns;
	bool named; /* one of the items is a named pipe */
	bool cut;   /* not every process could be looked at */
};

static uint64_t spent_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts); /* cannot fail: it exists */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The other end of what is only read is written to. */
static bool describe(struct ss_facts *facts, struct ss_fd_fact *fact, struct sought *ret)
{
	char link[48];

	*ret = (struct sought){ .fact = fact };
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

static void add_holder(struct search *s, struct ss_fd_fact *fact, pid_t pid)
{
	for (size_t i = 0; i < fact->holder_count; i++) {
		if (fact->holders[i].pid == pid)
			return;
	}
	if (fact->holder_count == SS_HOLDERS_MAX) {
		fact->holders_cut = true;
		return;
	}
	struct ss_process_fact holder;
	if (ss_processes_read(s->facts, pid, &s->text, &holder))
		fact->holders[fact->holder_count++] = holder;
}

/* Without a word to a server: a file system that does not answer must not hold us up. */
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

static void compare_link(struct search *s, int fds, const char *name, pid_t pid)
{
	char link[LINK_MAX];
	struct statx pipe;
	struct stat st;
	ssize_t size = readlinkat(fds, name, link, sizeof(link) - 1);

	if (size <= 0)
		return;
	link[size] = '\0';
	bool named = s->named && link[0] == '/' && find_named_pipe(fds, name, &pipe);
	for (size_t i = 0; i < s->items.count; i++) {
		const struct sought *item = &s->items.items[i];
		if (item->link ? strcmp(link, item->link) != 0 :
				 !named || !is_file(item->fact, &pipe))
			continue;
		if (item->mode == 0 ||
		    (fstatat(fds, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		     (st.st_mode & item->mode)))
			add_holder(s, item->fact, pid);
	}
}

static bool is_late(struct search *s)
{
	bool late = spent_ns() > s->end_ns;

	s->cut |= late;
	return late;
}

static void look_at_process(struct search *s, pid_t pid)
{
	char path[32];
	unsigned links = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid); /* fits */
	DIR *dir = opendir(path);
	int errnum = errno;
	if (!dir) {
		s->cut |= errnum == EACCES || errnum == EPERM; /* else it has ended */
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

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a;
	pid_t y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static void list_processes(struct search *s)
{
	DIR *dir = opendir("/proc");

	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		pid_t *slot = pid > 0 ? ss_vector_push(&s->pids) : NULL;
		if (slot)
			*slot = pid;
	}
	if (dir)
		(void)closedir(dir); /* only read from */
	if (s->pids.count > 1)
		qsort(s->pids.items, s->pids.count, sizeof(pid_t), compare_pids);
}

static size_t count_before(const struct search *s)
{
	size_t own = 0;

	while (own < s->pids.count && s->pids.items[own] < s->target->pid)
		own++;
	return own;
}

/* A UNIX socket that another process has mostly has no third one; of a pipe there may be
   many, and what the process has itself its children may have, too. */
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

/* False: it is enough. */
static bool look_at_next(struct search *s, size_t index)
{
	if (is_late(s))
		return false;
	look_at_process(s, s->pids.items[index]);
	return !is_done(s);
}

/* First those that began after the process: its children, its clients, the rest of a
   pipeline. Then those before it, the nearest first. */
static void look_at_others(struct search *s)
{
	list_processes(s);
	size_t own = count_before(s);
	for (size_t i = own; i < s->pids.count; i++) {
		if (s->pids.items[i] != s->target->pid && !look_at_next(s, i))
			return;
	}
	for (size_t i = own; i-- > 0;) {
		if (!look_at_next(s, i))
			return;
	}
}

/* Whether fdinfo says that the open file has such a lock: it lists no others'. */
static bool has_flock(struct search *s, pid_t pid, const char *name,
		      const struct ss_fd_fact *file)
{
	static const char word[] = "lock:";
	struct ss_file_lock lock;
	char path[64];

	/* A name that is longer is none that the kernel gives. */
	if (snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, name) >=
		    (int)sizeof(path) ||
	    ss_io_read_path(AT_FDCWD, path, FDINFO_MAX, &s->text) != 0)
		return false;
	for (const char *at = s->text.bytes; (at = strstr(at, word));) {
		at += strlen(word);
		const char *end = at + strcspn(at, "\n");
		at += strspn(at, " \t");
		if (ss_locks_next(&at, end, &lock) && lock.type == SS_FILE_LOCK_FLOCK &&
		    lock.inode == file->inode && lock.device == file->device)
			return true;
	}
	return false;
}

static bool holds_flock(struct search *s, pid_t pid, const struct ss_fd_fact *file)
{
	char path[32];
	char link[PATH_MAX];
	unsigned links = 0;
	bool found = false;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid); /* fits */
	DIR *dir = opendir(path);
	for (const struct dirent *entry; dir && !found && (entry = readdir(dir));) {
		if (++links % LINKS_AT_ONCE == 0 && is_late(s))
			break;
		ssize_t size =
			readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		if (size <= 0)
			continue;
		link[size] = '\0';
		found = strcmp(link, file->name) == 0 &&
			has_flock(s, pid, entry->d_name, file);
	}
	if (dir)
		(void)closedir(dir); /* only read from */
	return found;
}

pid_t ss_holders_find_flock(const struct ss_target *target, const struct ss_fd_fact *file,
			    pid_t named, uint64_t *spent)
{
	struct search s = { .target = target };
	uint64_t begin = spent_ns();
	pid_t found = 0;

	s.end_ns = begin + FLOCK_NS - SS_MIN(*spent, (uint64_t)FLOCK_NS);
	if (named > 0 && holds_flock(&s, named, file))
		found = named;
	if (!found)
		list_processes(&s);
	/* Mostly it began shortly before. */
	size_t own = count_before(&s);
	for (size_t i = 0; i < s.pids.count && !found && !is_late(&s); i++) {
		size_t at = i < own ? own - 1 - i : i;
		if (holds_flock(&s, s.pids.items[at], file))
			found = s.pids.items[at];
	}
	*spent += spent_ns() - begin;
	ss_vector_free(&s.pids);
	ss_text_free(&s.text);
	return found;
}

void ss_holders_find(struct ss_facts *facts, const struct ss_target *target)
{
	struct search s = { .facts = facts, .target = target };

	for (size_t i = 0; i < facts->fds.count; i++) {
		struct sought item;
		struct ss_fd_fact *fact = &facts->fds.items[i];
		if (fact->kind == SS_FD_PIDFD && fact->info.pid > 0)
			add_holder(&s, fact, fact->info.pid);
		if (!fact->followed || !describe(facts, fact, &item))
			continue;
		struct sought *slot = ss_vector_push(&s.items);
		if (slot)
			*slot = item;
		s.named |= slot && !item.link;
	}
	if (s.items.count) {
		s.end_ns = spent_ns() + SCAN_NS;
		look_at_process(&s, target->pid);
		look_at_others(&s);
		for (size_t i = 0; i < s.items.count; i++)
			s.items.items[i].fact->holders_cut |= s.cut;
	}
	ss_vector_free(&s.items);
	ss_vector_free(&s.pids);
	ss_text_free(&s.text);
}
