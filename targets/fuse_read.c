/*
 * A thread that reads a file of a FUSE file system, which never answers. As many of them
 * do, the file system ends an interrupted read with EINTR. The server is a child; the
 * mount is in a namespace of its own. Needs root and /dev/fuse.
 *
 * Thread reader: the libc's frames of read, thread_routine, target_thread_main,
 * start_thread, clone3.
 * At the end of standard input, prints "EINTRS OTHERS": how often the read returned EINTR,
 * and how often otherwise.
 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILE_NODE = 2, REQUEST_BYTES = FUSE_MIN_READ_BUFFER + 4096 };

static int device, file;
static atomic_ulong eintrs, others;

static void reply(uint64_t unique, int error, void *data, size_t size)
{
	struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + size),
					  .error = error,
					  .unique = unique };
	struct iovec parts[] = { { &header, sizeof(header) }, { data, size } };

	/* The kernel may have dropped the request. */
	if (writev(device, parts, size ? 2 : 1) < 0 && errno != ENOENT)
		_exit(1);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){ .ino = node,
				   .size = node == FILE_NODE ? 4096 : 0,
				   .nlink = 1,
				   .mode = node == FILE_NODE ? S_IFREG | 0600 :
							       S_IFDIR | 0700 };
}

static void serve(const struct fuse_in_header *in)
{
	const void *body = in + 1;

	switch (in->opcode) {
	case FUSE_INIT: {
		const struct fuse_init_in *asked = body;
		struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
					     .minor = FUSE_KERNEL_MINOR_VERSION,
					     .max_readahead = asked->max_readahead,
					     .max_write = 4096 };
		reply(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_LOOKUP: {
		struct fuse_entry_out out = { .nodeid = FILE_NODE,
					      .entry_valid = 3600,
					      .attr_valid = 3600,
					      .attr = attributes(FILE_NODE) };
		reply(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_GETATTR: {
		struct fuse_attr_out out = { .attr_valid = 3600,
					     .attr = attributes(in->nodeid) };
		reply(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_OPEN: {
		struct fuse_open_out out = { .fh = 1, .open_flags = FOPEN_DIRECT_IO };
		reply(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_READ: /* never */
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		break;
	case FUSE_INTERRUPT:
		reply(((const struct fuse_interrupt_in *)body)->unique, -EINTR, NULL, 0);
		break;
	default:
		reply(in->unique, -ENOSYS, NULL, 0);
		break;
	}
}

static void run_server(void)
{
	static uint64_t request[REQUEST_BYTES / sizeof(uint64_t)];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (read(device, request, sizeof(request)) > 0)
			serve((const void *)request);
		else if (errno != EINTR && errno != ENOENT)
			_exit(0);
	}
}

static int checked(int value, const char *what)
{
	if (value < 0)
		target_die(what);
	return value;
}

static void mount_file_system(const char *directory)
{
	char options[128];

	checked(unshare(CLONE_NEWNS), "unshare");
	checked(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
	device = checked(open("/dev/fuse", O_RDWR | O_CLOEXEC), "/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0",
		 device);
	checked(mount("target", directory, "fuse", MS_NOSUID | MS_NODEV, options),
		"mount");
}

TARGET_FRAME static void thread_routine(void *arg)
{
	char byte;

	(void)arg;
	target_arrive();
	for (;;) {
		if (read(file, &byte, 1) < 0 && errno == EINTR)
			atomic_fetch_add(&eintrs, 1);
		else
			atomic_fetch_add(&others, 1);
		TARGET_KEEP();
	}
}

int main(void)
{
	char directory[] = "/tmp/stacksnap-fuse-XXXXXX";
	char path[64];

	target_init();
	if (!mkdtemp(directory))
		target_die("mkdtemp");
	mount_file_system(directory);
	pid_t server = checked(fork(), "fork");
	if (server == 0)
		run_server();
	/* With a descriptor of its own it could not be killed: it would wait for itself. */
	close(device);
	snprintf(path, sizeof(path), "%s/file", directory);
	file = checked(open(path, O_RDONLY), path);
	umount2(directory, MNT_DETACH);
	rmdir(directory);
	target_start("reader", SYS_read, thread_routine, NULL);
	target_wait();
	printf("%lu %lu\n", eintrs, others);
	fflush(stdout);
	kill(server, SIGKILL);
	_exit(0);
}
