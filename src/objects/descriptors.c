#include "objects/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/scan.h"
#include "model/call.h"

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

static void want_poll(struct descriptors *d, const struct ss_memory_fact *memory)
{
	size_t count = memory->size / sizeof(struct pollfd);

	for (size_t i = 0; i < count && i < SS_SET_SHOWN; i++) {
		struct pollfd item;
		memcpy(&item, memory->bytes + i * sizeof(item), sizeof(item));
		want(d, item.fd);
		if (count <= FEW)
			follow(d, item.fd);
	}
}

static void want_bits(struct descriptors *d, const struct ss_memory_fact *memory)
{
	size_t from = d->fds.count;

	for (size_t i = 0; i < memory->size && d->fds.count < from + SS_SET_SHOWN; i++) {
		for (int bit = 0; bit < 8; bit++) {
			if (memory->bytes[i] >> bit & 1)
				want(d, (int)(i * 8) + bit);
		}
	}
	for (size_t i = from; d->fds.count <= from + FEW && i < d->fds.count; i++)
		follow(d, d->fds.items[i]);
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
	if (call->kind == SS_WAIT_POLL)
		want_poll(d, &thread->memory[0]);
	for (int arg = 1; call->kind == SS_WAIT_SELECT && arg <= 3; arg++)
		want_bits(d, &thread->memory[arg]);
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

static int compare_watches(const void *a, const void *b)
{
	const struct ss_fdinfo_watch *x = a;
	const struct ss_fdinfo_watch *y = b;

	return (x->fd > y->fd) - (x->fd < y->fd);
}

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

static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a;
	int y = *(const int *)b;

	return (x > y) - (x < y);
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
