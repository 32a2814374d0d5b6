/*
 * A thread that makes one system call over and over, which moves much data and returns
 * early if its thread is stopped meanwhile. The other end, if there is one, is a process
 * of its own. The argument is a name of the table below.
 *
 * Thread NAME: the libc's frames of the call, call_NAME, thread_routine,
 * target_thread_main, start_thread, clone3.
 * At the end of standard input, prints "CALLS CUTS ERRORS": calls that returned, that
 * returned less than they were asked for, and that failed.
 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MIB = 1 << 20, FILE_BYTES = 16 * MIB };

static char *bytes;
static int ends[2]; /* ours, and that of the child */
static int from, to;
static atomic_ulong calls, cuts, errors;

static int checked(int value, const char *what)
{
	if (value < 0)
		target_die(what);
	return value;
}

/* clang-format off */
#define CALL(name) TARGET_FRAME static long call_##name(void)
/* clang-format on */

CALL(write_pipe)
{
	return write(ends[0], bytes, MIB);
}

CALL(writev)
{
	struct iovec parts[2] = { { bytes, MIB / 2 }, { bytes + MIB / 2, MIB / 2 } };
	return writev(ends[0], parts, 2);
}

CALL(send)
{
	return send(ends[0], bytes, MIB, 0);
}

CALL(recv_all)
{
	return recv(ends[0], bytes, MIB, MSG_WAITALL);
}

CALL(getrandom)
{
	return getrandom(bytes, MIB, 0);
}

CALL(read_zero)
{
	return read(from, bytes, FILE_BYTES);
}

CALL(copy_range)
{
	off_t in = 0;
	off_t out = 0;
	return copy_file_range(from, &in, to, &out, FILE_BYTES, 0);
}

CALL(sendfile)
{
	off_t in = 0;
	return sendfile(ends[0], from, &in, MIB);
}

#undef CALL

static int open_file(void)
{
	int fd = checked(memfd_create("moving", 0), "memfd_create");

	for (size_t done = 0; done < FILE_BYTES; done += MIB)
		checked((int)write(fd, bytes, MIB), "write");
	return fd;
}

static void prepare_pipe(void)
{
	int both[2];

	checked(pipe(both), "pipe");
	ends[0] = both[1];
	ends[1] = both[0];
}

static void prepare_sockets(void)
{
	checked(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
}

static void prepare_file_and_sockets(void)
{
	prepare_sockets();
	from = open_file();
}

static void prepare_files(void)
{
	from = open_file();
	to = open_file();
}

static void prepare_zero(void)
{
	from = checked(open("/dev/zero", O_RDONLY), "/dev/zero");
}

static const struct call {
	const char *name;
	long (*function)(void);
	long size;
	void (*prepare)(void);
	enum { NO_CHILD, READER, WRITER } child;
} table[] = {
	{ "write_pipe", call_write_pipe, MIB, prepare_pipe, READER },
	{ "writev", call_writev, MIB, prepare_sockets, READER },
	{ "send", call_send, MIB, prepare_sockets, READER },
	{ "recv_all", call_recv_all, MIB, prepare_sockets, WRITER },
	{ "getrandom", call_getrandom, MIB, NULL, NO_CHILD },
	{ "read_zero", call_read_zero, FILE_BYTES, prepare_zero, NO_CHILD },
	{ "copy_range", call_copy_range, FILE_BYTES, prepare_files, NO_CHILD },
	{ "sendfile", call_sendfile, MIB, prepare_file_and_sockets, READER },
};

TARGET_FRAME static void thread_routine(void *arg)
{
	const struct call *call = arg;

	target_arrive();
	for (;;) {
		long moved = call->function();
		atomic_fetch_add(&calls, 1);
		if (moved < 0)
			atomic_fetch_add(&errors, 1);
		else if (moved < call->size)
			atomic_fetch_add(&cuts, 1);
		TARGET_KEEP();
	}
}

/* The other end, as fast as it can. */
static void run_child(const struct call *call)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(ends[0]);
	while ((call->child == READER ? read(ends[1], bytes, MIB) :
					write(ends[1], bytes, MIB)) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	const struct call *call = NULL;

	target_init();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (argc > 1 && strcmp(argv[1], table[i].name) == 0)
			call = &table[i];
	bytes = malloc(FILE_BYTES);
	if (!call || !bytes)
		target_die("usage: moving CALL");
	memset(bytes, 1, FILE_BYTES);
	if (call->prepare)
		call->prepare();
	if (call->child != NO_CHILD && checked(fork(), "fork") == 0)
		run_child(call);
	target_start(call->name, -1, thread_routine, (void *)(uintptr_t)call);
	target_wait();
	printf("%lu %lu %lu\n", calls, cuts, errors);
	return 0;
}
