#include "target/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cpu_pin.h"
#include "base/io.h"
#include "base/own_child.h"

enum {
	FILES = 2, /* of one message */
	COPY_STEP = 1 << 20,
	/* How long a child may be blocked in one call. Halved for each child that was
	   abandoned, so that all of them together do not take two seconds. */
	BLOCKED_MAX_MS = 800,
	BLOCKED_MIN_MS = 50,
	LOOK_MS = 25,
	TOTAL_MAX_MS = 15000, /* for copies from a slow server */
	/* Descriptors reserved for after the capture: a sandbox needs four, and its
	   child needs some for the debug files of a module. */
	SPARE_FILES = 16,
};

/* Magic numbers of statfs(2). A process (FUSE) or another machine serves the files. */
static const uint32_t remote_types[] = {
	0x65735546, /* FUSE */
	0x6969,	    /* NFS */
	0x517b,	    /* SMB */
	0xff534d42, /* CIFS */
	0xfe534d42, /* SMB2 */
	0x01021997, /* 9P */
	0x00c36400, /* Ceph */
	0x5346414f, /* OpenAFS */
	0x6b414653, /* AFS */
	0x73757245, /* Coda */
	0x0bd00bd0, /* Lustre */
	0x47504653, /* GPFS */
	0x786f4256, /* VirtualBox */
	0xbacbacbc, /* VMware */
	0x013111a8, /* IBRIX */
	0xaad7aaea, /* Panasas */
};

/* How many descriptors from first on are not reserved. */
static size_t count_free(int first)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return SIZE_MAX;
	rlim_t used = (rlim_t)first + SPARE_FILES;
	return limit.rlim_cur > used ? (size_t)(limit.rlim_cur - used) : 0;
}

/* The child ------------------------------------------------------------- */

static bool is_remote(int fd, bool *ret_stacked)
{
	struct statfs fs;

	*ret_stacked = false;
	if (fstatfs(fd, &fs) != 0)
		return true;
	*ret_stacked = (uint32_t)fs.f_type == OVERLAYFS_SUPER_MAGIC;
	for (size_t i = 0; i < SS_ARRAY_SIZE(remote_types); i++) {
		if ((uint32_t)fs.f_type == remote_types[i])
			return true;
	}
	return false;
}

static void send_answer(const struct ss_opener *opener, struct ss_opened *opened)
{
	union {
		char bytes[CMSG_SPACE(FILES * sizeof(int))];
		struct cmsghdr align;
	} control = {};
	struct iovec iov = { opened, sizeof(*opened) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	int files[FILES];
	size_t count = 0;

	if (opened->file >= 0)
		files[count++] = opened->file;
	if (opened->image >= 0)
		files[count++] = opened->image;
	if (count) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *c = &control.align;
		*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
				       .cmsg_type = SCM_RIGHTS,
				       .cmsg_len = CMSG_LEN(count * sizeof(int)) };
		memcpy(CMSG_DATA(c), files, count * sizeof(int));
	}
	if (sendmsg(opener->socket, &message, MSG_NOSIGNAL) < 0)
		_exit(EXIT_FAILURE); /* the parent has ended */
}

static void clear(struct ss_opened *opened, size_t item)
{
	memset(opened, 0, sizeof(*opened)); /* no padding is left uninitialized */
	opened->item = (uint32_t)item;
	opened->file = opened->image = -1;
}

__attribute__((noreturn)) static void run_child(struct ss_opener *opener, int socket)
{
	int keep[SS_OPENER_KEEP_MAX + 1];
	struct ss_opened opened;
	sigset_t all;

	/* Signals from the terminal are for the parent. These calls cannot fail. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	memcpy(keep, opener->keep, sizeof(opener->keep));
	keep[SS_OPENER_KEEP_MAX] = opener->socket = socket;
	ss_own_child_close_files(keep, SS_ARRAY_SIZE(keep));
	for (size_t i = 0; i < opener->count; i++) {
		if (!opener->wanted[i])
			continue;
		clear(&opened, i);
		opener->work(opener, i, &opened);
		opener->files_left -= opened.file >= 0;
		send_answer(opener, &opened);
		close_cleanup(&opened.file);
		close_cleanup(&opened.image);
	}
	_exit(EXIT_SUCCESS);
}

/* A descriptor for reading of a file in memory, as of any other file. Closes fd. */
static int reopen_copy(int fd)
{
	_cleanup_close_ int copy = fd;

	return ss_io_reopen(copy);
}

int ss_opener_put(const void *bytes, size_t size)
{
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	int result = ss_io_write_all(fd, bytes, size);
	if (result == 0)
		return reopen_copy(take_fd(fd));
	errno = -result;
	return -1;
}

/*
 * The kernel does not tell what is below an overlay, and copying all files of containers
 * would take too long. If it is a server that does not respond, this waits for it, in
 * place of the caller, who will ask it the same: for the status, and at each close.
 */
static void try_responding(int fd)
{
	struct stat status;

	(void)fstat(fd, &status); /* only the wait matters */
	(void)close(dup(fd));
}

/* 0, or an errno. */
static int copy_file(const struct ss_opener *opener, int from, uint64_t *left,
		     struct ss_opened *ret)
{
	const struct stat *st = &ret->status;
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	struct ss_opened progress;
	uint64_t done = 0;

	if (st->st_size < 0 || (uint64_t)st->st_size > *left)
		return EFBIG;
	_cleanup_close_ int copy = memfd_create("module", MFD_CLOEXEC);
	if (copy < 0)
		return errno;
	clear(&progress, opener->count);
	while (done < (uint64_t)st->st_size) {
		ssize_t n = sendfile(copy, from, NULL, COPY_STEP);
		int errnum = errno;
		if (n < 0 && errnum == EINTR)
			continue;
		if (n < 0)
			return errnum;
		if (n == 0)
			break;
		done += (uint64_t)n;
		if (opener->socket >= 0)
			send_answer(opener, &progress);
	}
	*left -= (uint64_t)st->st_size;
	/* The session's cache of names compares the time. */
	(void)futimens(copy, times);
	ret->file = reopen_copy(take_fd(copy));
	ret->copied = true;
	return ret->file < 0 ? errno : 0;
}

int ss_opener_open(const struct ss_opener *opener, int path_fd, uint64_t *left,
		   struct ss_opened *ret)
{
	if (fstat(path_fd, &ret->status) != 0)
		return errno;
	if (opener->files_left == 0)
		return EMFILE;
	bool stacked;
	bool remote = is_remote(path_fd, &stacked);
	_cleanup_close_ int fd = ss_io_reopen(path_fd);
	if (fd < 0)
		return errno;
	if (remote)
		return copy_file(opener, fd, left, ret);
	if (stacked)
		try_responding(fd);
	ret->file = take_fd(fd);
	return 0;
}

/* The caller ------------------------------------------------------------ */

static void take(struct ss_opener *opener, size_t item, struct ss_opened *opened)
{
	if (!opener->wanted[item])
		return;
	opener->wanted[item] = false;
	opener->files_left -= opened && opened->file >= 0 && opener->files_left > 0;
	opener->take(opener, item, opened);
	if (!opened)
		return;
	close_cleanup(&opened->file);
	close_cleanup(&opened->image);
}

/* The answer says which files were sent; the last ones may not have arrived. */
static void take_files(struct msghdr *message, struct ss_opened *opened)
{
	int *const slots[FILES] = { &opened->file, &opened->image };
	bool sent[FILES] = { opened->file >= 0, opened->image >= 0 };
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	size_t count = c && c->cmsg_type == SCM_RIGHTS ?
			       (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) :
			       0;
	size_t used = 0;

	opened->file = opened->image = -1;
	for (size_t i = 0; i < FILES; i++) {
		if (sent[i] && used < count)
			memcpy(slots[i], CMSG_DATA(c) + used++ * sizeof(int),
			       sizeof(int));
		else if (sent[i])
			(void)snprintf(opened->problem, sizeof(opened->problem), "%s",
				       "too many open files (ulimit -n)"); /* fits */
	}
}

enum received { RECEIVED, NOTHING_YET, END };

static enum received receive(struct ss_opener *opener, struct ss_opened *opened)
{
	union {
		char bytes[CMSG_SPACE(FILES * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { opened, sizeof(*opened) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct pollfd ready = { .fd = opener->socket, .events = POLLIN };

	int count = poll(&ready, 1, LOOK_MS);
	int errnum = errno;
	if (count == 0 || (count < 0 && errnum == EINTR))
		return NOTHING_YET;
	if (count < 0) /* refused: the next call waits */
		ss_sleep_ns(SS_NS_PER_MS);
	ssize_t n = recvmsg(opener->socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	errnum = errno;
	if (n < 0 && (errnum == EAGAIN || errnum == EINTR))
		return NOTHING_YET;
	if (n != sizeof(*opened))
		return END;
	opened->problem[sizeof(opened->problem) - 1] = '\0';
	take_files(&message, opened);
	return RECEIVED;
}

/* False: the child is blocked by the first item that is left. */
static bool take_answers(struct ss_opener *opener, pid_t pid, unsigned blocked_ms)
{
	struct ss_own_child child = { .pid = pid };
	uint64_t deadline_ns = ss_now_ns() + TOTAL_MAX_MS * SS_NS_PER_MS;
	struct ss_opened opened = {};

	for (;;) {
		switch (receive(opener, &opened)) {
		case RECEIVED:
			child.was_blocked = false;
			if (opened.item < opener->count)
				take(opener, opened.item, &opened);
			if (ss_now_ns() >= deadline_ns)
				return false;
			break;
		case NOTHING_YET:
			if (ss_own_child_blocked_ns(&child) >=
				    blocked_ms * SS_NS_PER_MS ||
			    ss_now_ns() >= deadline_ns)
				return false;
			break;
		case END:
			return true; /* or it has died */
		}
	}
}

/* The first wanted item; or count. */
static size_t find_wanted(const struct ss_opener *opener)
{
	size_t i = 0;

	while (i < opener->count && !opener->wanted[i])
		i++;
	return i;
}

/* A child costs as much as opening a hundred files. */
static void run_what_cannot_block(struct ss_opener *opener)
{
	struct ss_opened opened;

	for (size_t i = 0; i < opener->count; i++) {
		if (!opener->wanted[i])
			continue;
		clear(&opened, i);
		if (opener->try_here(opener, i, &opened))
			take(opener, i, &opened);
	}
}

static void run_here(struct ss_opener *opener)
{
	struct ss_opened opened;

	for (size_t i = 0; i < opener->count; i++) {
		if (!opener->wanted[i])
			continue;
		clear(&opened, i);
		opener->work(opener, i, &opened);
		take(opener, i, &opened);
	}
}

/* False: no child could be created, or it died. */
static bool run_once(struct ss_opener *opener, unsigned blocked_ms)
{
	int pair[2] = { -1, -1 };
	struct ss_cpu_pin pin;
	int status;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	_cleanup_close_ int ours = pair[0];
	_cleanup_close_ int theirs = pair[1];
	ss_cpu_pin_begin(&pin);
	pid_t pid = fork();
	ss_cpu_pin_end(&pin);
	if (pid == 0)
		run_child(opener, theirs);
	if (pid < 0)
		return false;
	close_cleanup(&theirs);
	theirs = -1;
	opener->socket = ours;
	bool blocked = !take_answers(opener, pid, blocked_ms);
	(void)ss_own_child_end(pid, &status); /* or it is abandoned */
	size_t next = find_wanted(opener);
	if (blocked && next < opener->count)
		take(opener, next, NULL);
	return blocked || next == opener->count;
}

void ss_opener_run(struct ss_opener *opener)
{
	unsigned blocked_ms = BLOCKED_MAX_MS;
	int first = dup(STDERR_FILENO);

	opener->files_left = count_free(first + 1); /* with a socket's two descriptors */
	close_cleanup(&first);
	opener->socket = -1;
	if (opener->try_here)
		run_what_cannot_block(opener);
	while (find_wanted(opener) < opener->count) {
		if (!run_once(opener, blocked_ms)) {
			opener->socket = -1;
			run_here(opener);
			return;
		}
		blocked_ms = SS_MAX(blocked_ms / 2, (unsigned)BLOCKED_MIN_MS);
	}
}
