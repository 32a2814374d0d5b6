/*
 * A FUSE file system with one file, whose server stops to answer.
 *
 * hungfuse DIRECTORY FILE
 *
 * Mounts it on DIRECTORY, with a copy of FILE as the file "program", and prints "ready". Each
 * line of stdin is a command, which is printed when it has been carried out:
 *	hang	requests are received, and not answered from now on: who waits for an
 *		answer is in state D, and not even SIGKILL ends it
 *	reads	likewise, but only requests to read data (and to close a file)
 *	count	the number of requests that were not answered
 * The end of stdin, or of the process, ends the file system: all requests fail.
 *
 * It speaks the protocol of /dev/fuse itself (linux/fuse.h), because libfuse may be missing.
 * Nothing is cached, so that each open, stat and read asks the server. If the kernel refuses
 * to mount, it prints "refused ERROR" before "ready".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_NODE = 2, BUFFER = (1 << 20) + 4096, READ_MAX = 128 << 10 };

static int device;
static int content;
static uint64_t size;
static uint64_t ignored;
static int hung;
static int reads_hung;

static void answer(uint64_t unique, int error, const void *bytes, size_t count)
{
	static char out[sizeof(struct fuse_out_header) + READ_MAX];
	struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + count),
					  .error = -error,
					  .unique = unique };

	memcpy(out, &header, sizeof(header));
	if (count)
		memcpy(out + sizeof(header), bytes, count);
	(void)!write(device, out, header.len); /* the request may have been interrupted */
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = 4096 };

	attr.mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755;
	attr.size = node == FILE_NODE ? size : 0;
	return attr;
}

static void answer_lookup(const struct fuse_in_header *in)
{
	struct fuse_entry_out out = { .nodeid = FILE_NODE };

	out.attr = attributes(FILE_NODE);
	if (strcmp((const char *)(in + 1), "program") == 0)
		answer(in->unique, 0, &out, sizeof(out));
	else
		answer(in->unique, ENOENT, NULL, 0);
}

static void answer_read(const struct fuse_in_header *in)
{
	static char bytes[READ_MAX];
	const struct fuse_read_in *request = (const void *)(in + 1);
	size_t wanted = request->size < READ_MAX ? request->size : READ_MAX;
	ssize_t n = pread(content, bytes, wanted, (off_t)request->offset);

	answer(in->unique, n < 0 ? EIO : 0, bytes, n < 0 ? 0 : (size_t)n);
}

static void serve(const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = 31,
				      .max_readahead = READ_MAX,
				      .max_write = 4096 };
	struct fuse_attr_out attr = {};
	struct fuse_open_out opened = {};
	struct fuse_statfs_out fs = {};

	if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET ||
	    in->opcode == FUSE_INTERRUPT)
		return; /* these have no answer */
	if (hung ||
	    (reads_hung && (in->opcode == FUSE_READ || in->opcode == FUSE_FLUSH))) {
		ignored++;
		return;
	}
	switch (in->opcode) {
	case FUSE_INIT:
		answer(in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer_lookup(in);
		break;
	case FUSE_GETATTR:
		attr.attr = attributes(in->nodeid);
		answer(in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		answer_read(in);
		break;
	case FUSE_STATFS:
		answer(in->unique, 0, &fs, sizeof(fs));
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(in->unique, 0, NULL, 0);
		break;
	default:
		answer(in->unique, ENOSYS, NULL, 0);
		break;
	}
}

static int mount_on(const char *directory)
{
	char options[128];

	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		return -1;
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other", device,
		 getuid(), getgid());
	return mount("hungfuse", directory, "fuse.hungfuse", MS_NOSUID | MS_NODEV,
		     options);
}

static void obey(const char *command)
{
	hung |= strcmp(command, "hang\n") == 0;
	reads_hung |= strcmp(command, "reads\n") == 0;
	if (strcmp(command, "count\n") == 0)
		printf("%lu\n", (unsigned long)ignored);
	else
		printf("%s", command);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static char buffer[BUFFER];
	struct stat status;

	if (argc != 3)
		return 2;
	content = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (content < 0 || fstat(content, &status) < 0)
		return 2;
	size = (uint64_t)status.st_size;
	if (mount_on(argv[1]) < 0)
		printf("refused %s\n", strerror(errno));
	printf("ready\n");
	fflush(stdout);
	struct pollfd polled[] = { { .fd = device, .events = POLLIN },
				   { .fd = STDIN_FILENO, .events = POLLIN } };
	for (;;) {
		if (poll(polled, 2, -1) < 0)
			return 1;
		if (polled[0].revents) {
			ssize_t n = read(device, buffer, sizeof(buffer));
			if (n < 0 && errno == ENODEV)
				return 0; /* unmounted */
			if (n >= (ssize_t)sizeof(struct fuse_in_header))
				serve((const void *)buffer);
		}
		if (polled[1].revents) {
			ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer) - 1);
			if (n <= 0)
				break;
			buffer[n] = '\0';
			obey(buffer);
		}
	}
	(void)umount2(argv[1], MNT_DETACH);
	return 0;
}
