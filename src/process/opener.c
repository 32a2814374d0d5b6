#include "process/files.h"

#include <errno.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/search.h"

enum {
	COPY_STEP = 1 << 20,
	/* How long a child may be blocked in one call. Halved for each child that was
	   abandoned, so that all of them together do not take two seconds. */
	BLOCKED_MAX_MS = 800,
	BLOCKED_MIN_MS = 50,
	LOOK_MS = 25,
	TOTAL_MAX_MS = 15000, /* for copies from a slow server */
	/* Files on disks that a thread opens, each within a time */
	DISK_FILES_MAX = 256,
	DISK_MAX_MS = 200,
	DISK_STACK = 256 << 10,
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
	return ss_any(SS_ARRAY_SIZE(remote_types), i,
		      (uint32_t)fs.f_type == remote_types[i]);
}

/* False: the parent has ended. */
static bool send_answer(const struct ss_opener *opener, struct ss_opened *opened)
{
	struct iovec part = { opened, sizeof(*opened) };
	struct ss_child_files files = {};

	if (opened->file >= 0)
		files.items[files.count++] = opened->file;
	if (opened->image >= 0)
		files.items[files.count++] = opened->image;
	return ss_child_send(opener->socket, &part, 1, &files) >= 0;
}

static void clear(struct ss_opened *opened, size_t item)
{
	memset(opened, 0, sizeof(*opened)); /* no padding is left uninitialized */
	opened->item = (uint32_t)item;
	opened->file = opened->image = -1;
}

/* In the child. */
static int send_answers(void *data, int socket)
{
	struct ss_opener *opener = data;
	struct ss_opened opened;
	bool sent = true;

	opener->socket = socket;
	for (size_t i = 0; i < opener->count && sent; i++) {
		if (!opener->wanted[i])
			continue;
		clear(&opened, i);
		opener->work(opener, i, &opened);
		opener->files_left -= opened.file >= 0;
		sent = send_answer(opener, &opened);
		close_cleanup(&opened.file);
		close_cleanup(&opened.image);
	}
	return EXIT_SUCCESS;
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
		if (opener->socket >= 0 && !send_answer(opener, &progress))
			return EPIPE;
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
static void take_files(const struct ss_child_files *files, struct ss_opened *opened)
{
	int *const slots[] = { &opened->file, &opened->image };
	size_t used = 0;

	for (size_t i = 0; i < SS_ARRAY_SIZE(slots); i++) {
		bool sent = *slots[i] >= 0;
		*slots[i] = sent && used < files->count ? files->items[used++] : -1;
		if (sent && *slots[i] < 0)
			(void)snprintf(opened->problem, sizeof(opened->problem), "%s",
				       "too many open files (ulimit -n)"); /* fits */
	}
	while (used < files->count)
		(void)close(files->items[used++]); /* of a child that was taken over */
}

enum received { RECEIVED, NOTHING_YET, END };

static enum received receive(struct ss_opener *opener, struct ss_opened *opened)
{
	struct ss_child_files files;
	struct pollfd ready = { .fd = opener->socket, .events = POLLIN };

	int count = poll(&ready, 1, LOOK_MS);
	int errnum = errno;
	if (count == 0 || (count < 0 && errnum == EINTR))
		return NOTHING_YET;
	if (count < 0) /* refused: the next call waits */
		ss_sleep_ns(SS_NS_PER_MS);
	ssize_t n = ss_child_receive(opener->socket, opened, sizeof(*opened),
				     MSG_DONTWAIT, &files);
	errnum = errno;
	if (n < 0 && (errnum == EAGAIN || errnum == EINTR))
		return NOTHING_YET;
	if (n != sizeof(*opened))
		return END;
	opened->problem[sizeof(opened->problem) - 1] = '\0';
	take_files(&files, opened);
	return RECEIVED;
}

/* False: the child is blocked by the first item that is left. */
static bool take_answers(struct ss_opener *opener, struct ss_child *child,
			 unsigned blocked_ms)
{
	uint64_t deadline_ns = ss_now_ns() + TOTAL_MAX_MS * SS_NS_PER_MS;
	struct ss_opened opened = {};

	for (;;) {
		switch (receive(opener, &opened)) {
		case RECEIVED:
			child->was_blocked = false;
			if (opened.item < opener->count)
				take(opener, opened.item, &opened);
			if (ss_now_ns() >= deadline_ns)
				return false;
			break;
		case NOTHING_YET:
			if (ss_child_blocked_ns(child) >= blocked_ms * SS_NS_PER_MS ||
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

/* Files on disks --------------------------------------------------------- */

struct disk_file {
	size_t item;
	int path; /* O_PATH */
	int file; /* -1: not opened */
};

/* Files that a thread opens. If it blocks, they are left to it, and it frees them. */
struct disk_files {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t done;
	bool ended;
	bool abandoned;
	size_t count;
	struct disk_file files[DISK_FILES_MAX];
};

static struct disk_files *disk_files_new(void)
{
	struct disk_files *files = calloc(1, sizeof(*files));
	pthread_condattr_t attr;

	if (!files)
		return NULL;
	/* These cannot fail. */
	(void)pthread_mutex_init(&files->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&files->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	return files;
}

static void disk_files_free(struct disk_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		close_cleanup(&files->files[i].path);
		close_cleanup(&files->files[i].file);
	}
	(void)pthread_cond_destroy(&files->changed);
	(void)pthread_mutex_destroy(&files->lock);
	free(files);
}

/* The thread. */
static void *open_disk_files(void *data)
{
	struct disk_files *files = data;

	(void)pthread_mutex_lock(&files->lock);
	for (size_t i = 0; i < files->count && !files->abandoned; i++) {
		(void)pthread_mutex_unlock(&files->lock);
		int file = ss_io_reopen(files->files[i].path);
		(void)pthread_mutex_lock(&files->lock);
		files->files[i].file = file;
		files->done = i + 1;
	}
	bool abandoned = files->abandoned;
	files->ended = true;
	(void)pthread_cond_signal(&files->changed);
	(void)pthread_mutex_unlock(&files->lock);
	if (abandoned)
		disk_files_free(files);
	return NULL;
}

/* Waits until the thread has ended, or has not opened a file for long: then it is abandoned.
   Takes over the files that were opened. False: it was. */
static bool wait_for_disk_files(struct disk_files *files, struct disk_file *ret)
{
	bool late = false;

	(void)pthread_mutex_lock(&files->lock);
	while (!files->ended && !late) {
		uint64_t at_ns = ss_now_ns() + DISK_MAX_MS * SS_NS_PER_MS;
		struct timespec at = { .tv_sec = (time_t)(at_ns / SS_NS_PER_SECOND),
				       .tv_nsec = (long)(at_ns % SS_NS_PER_SECOND) };
		size_t before = files->done;
		late = pthread_cond_timedwait(&files->changed, &files->lock, &at) ==
			       ETIMEDOUT &&
		       files->done == before && !files->ended;
	}
	for (size_t i = 0; i < files->done; i++) {
		ret[i] = files->files[i];
		files->files[i].path = files->files[i].file = -1;
	}
	files->abandoned = late;
	(void)pthread_mutex_unlock(&files->lock);
	return !late;
}

/* Its signal mask is inherited: signals are for other threads. False: it cannot be started. */
static bool start_disk_thread(struct disk_files *files, pthread_t *ret)
{
	pthread_attr_t attr;
	sigset_t all;
	sigset_t old;

	if (pthread_attr_init(&attr) != 0)
		return false;
	/* These cannot fail. */
	(void)pthread_attr_setstacksize(&attr, DISK_STACK);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	int errnum = pthread_create(ret, &attr, open_disk_files, files);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return errnum == 0;
}

/* Each needs two descriptors. */
static void find_disk_files(struct ss_opener *opener, struct disk_files *files)
{
	const size_t most = SS_MIN(opener->files_left / 2, (size_t)DISK_FILES_MAX);

	for (size_t i = 0; i < opener->count && files->count < most; i++) {
		int path = opener->wanted[i] ? opener->find_on_disk(opener, i) : -1;
		if (path >= 0)
			files->files[files->count++] =
				(struct disk_file){ .item = i, .path = path, .file = -1 };
	}
}

static void take_disk_file(struct ss_opener *opener, struct disk_file *file)
{
	struct ss_opened opened;

	clear(&opened, file->item);
	if (file->file >= 0 && fstat(file->path, &opened.status) == 0) {
		opened.file = file->file;
		file->file = -1;
		take(opener, file->item, &opened);
	}
	close_cleanup(&file->path);
	close_cleanup(&file->file);
}

/* A child costs as much as opening a hundred files. */
static void run_on_disk(struct ss_opener *opener)
{
	struct disk_files *files = disk_files_new();
	_cleanup_free_ struct disk_file *opened = NULL;
	pthread_t thread;

	if (!files)
		return;
	find_disk_files(opener, files);
	opened = files->count ? calloc(files->count, sizeof(*opened)) : NULL;
	if (!opened || !start_disk_thread(files, &thread)) {
		disk_files_free(files);
		return;
	}
	const size_t count = files->count;
	for (size_t i = 0; i < count; i++)
		opened[i] = (struct disk_file){ .path = -1, .file = -1 };
	if (wait_for_disk_files(files, opened)) {
		(void)pthread_join(thread, NULL);
		disk_files_free(files);
	} else {
		(void)pthread_detach(thread);
	}
	for (size_t i = 0; i < count; i++) {
		if (opened[i].path >= 0)
			take_disk_file(opener, &opened[i]);
	}
}

static void run_here(struct ss_opener *opener)
{
	struct ss_opened opened;

	for (size_t i = 0; i < opener->count; i++) {
		if (!opener->wanted[i])
			continue;
		clear(&opened, i);
		if (!opener->child_only)
			opener->work(opener, i, &opened);
		take(opener, i, opener->child_only ? NULL : &opened);
	}
}

/* False: no child could be created, or it died. */
static bool run_once(struct ss_opener *opener, unsigned blocked_ms)
{
	const struct ss_child_options options = {
		.channel = SS_CHILD_PACKETS,
		.block_signals = true,
		.on_this_cpu = true,
		.close_files = true,
		.keep = opener->keep,
		.keep_count = SS_OPENER_KEEP_MAX,
	};
	struct ss_child child = SS_NO_CHILD;
	_cleanup_error_ struct ss_error *error =
		ss_child_start(&options, send_answers, opener, &child);

	if (error)
		return false;
	opener->socket = child.channel;
	bool blocked = !take_answers(opener, &child, blocked_ms);
	(void)ss_child_end(&child); /* or it is abandoned */
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
	if (opener->find_on_disk)
		run_on_disk(opener);
	while (find_wanted(opener) < opener->count) {
		if (!run_once(opener, blocked_ms)) {
			opener->socket = -1;
			run_here(opener);
			return;
		}
		blocked_ms = SS_MAX(blocked_ms / 2, (unsigned)BLOCKED_MIN_MS);
	}
}
