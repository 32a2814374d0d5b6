/*
 * Threads that wait under a seccomp filter.
 *
 * seccomp kill   restart_syscall(2) kills the process: a wait that the kernel continues
 *                with it must never be interrupted.
 * seccomp errno  restart_syscall(2) fails with EPERM.
 * seccomp notify mkdir(2) is emulated by a supervisor that takes 20 ms for it. A call that
 *                is interrupted after the supervisor has begun is made twice, and fails
 *                with EEXIST the second time.
 *
 * Threads of kill and errno: poll, nanosleep, clock_nanosleep, futex. Each waits again and
 * again, 50 ms each time, or, if the second argument is "mixed", 1 ms after as long a time
 * of computing, so that many stops find them on their way into the call:
 *	the libc's frames of the call, wait_in_NAME, target_thread_main, start_thread, clone3
 * Thread of notify: mkdir, with make_directory in place of wait_in_NAME.
 * At the end of stdin a line "NAME ERRORS CALLS" for each thread.
 */
#include "target.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MS_NS = 1000 * 1000, WAIT_MS = 50, EMULATION_NS = 20 * MS_NS };

static atomic_bool finished;

struct waiter {
	const char *name;
	long (*wait)(void);
	atomic_ulong errors;
	atomic_ulong calls;
	atomic_bool ended;
};

static struct timespec wait_time = { .tv_nsec = WAIT_MS * MS_NS };
static int wait_ms = WAIT_MS;
static bool mixed;

TARGET_FRAME static long wait_in_poll(void)
{
	return poll(NULL, 0, wait_ms);
}

TARGET_FRAME static long wait_in_nanosleep(void)
{
	return syscall(SYS_nanosleep, &wait_time, NULL);
}

TARGET_FRAME static long wait_in_clock_nanosleep(void)
{
	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &wait_time, NULL);
}

TARGET_FRAME static long wait_in_futex(void)
{
	static uint32_t word;
	long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait_time);

	return result < 0 && errno == ETIMEDOUT ? 0 : result;
}

static char directory[] = "/tmp/stacksnap-seccomp-XXXXXX";

TARGET_FRAME static long make_directory(void)
{
	static unsigned long number;
	char path[128];

	snprintf(path, sizeof(path), "%s/%lu", directory, number++);
	long result = syscall(SYS_mkdir, path, 0700);
	rmdir(path);
	return result;
}

static struct waiter waiters[] = {
	{ .name = "poll", .wait = wait_in_poll },
	{ .name = "nanosleep", .wait = wait_in_nanosleep },
	{ .name = "clock_nanosleep", .wait = wait_in_clock_nanosleep },
	{ .name = "futex", .wait = wait_in_futex },
};
static struct waiter maker = { .name = "mkdir", .wait = make_directory };

static atomic_int listener = -1;
static int install(long number, uint32_t action, unsigned flags);

static void compute(void)
{
	struct timespec begin;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (mixed &&
	       (now.tv_sec - begin.tv_sec) * 1000L * MS_NS + now.tv_nsec - begin.tv_nsec <
		       MS_NS);
}

static void run(void *arg)
{
	struct waiter *waiter = arg;

	/* For this thread only: the supervisor must not be filtered. */
	if (waiter == &maker)
		atomic_store(&listener, install(SYS_mkdir, SECCOMP_RET_USER_NOTIF,
						SECCOMP_FILTER_FLAG_NEW_LISTENER));
	target_arrive();
	while (!atomic_load(&finished)) {
		compute();
		atomic_fetch_add(&waiter->errors, waiter->wait() < 0);
		atomic_fetch_add(&waiter->calls, 1);
	}
	atomic_store(&waiter->ended, true);
}

/* Applies action to that call and allows all others. Returns the descriptor of the
   listener, if flags ask for one. */
static int install(long number, uint32_t action, unsigned flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		target_die("prctl");
	long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (result < 0)
		target_die("seccomp");
	return (int)result;
}

/* A separate process, which makes the calls in place of the target. */
static void supervise(int fd)
{
	const struct timespec delay = { .tv_nsec = EMULATION_NS };
	struct seccomp_notif request = {};

	while (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &request) == 0 || errno == EINTR ||
	       errno == ENOENT) {
		struct seccomp_notif_resp answer = { .id = request.id };
		char path[128] = "";
		char memory[64];
		if (request.id == 0)
			continue;
		snprintf(memory, sizeof(memory), "/proc/%u/mem", request.pid);
		FILE *file = fopen(memory, "r");
		if (file && fseek(file, (long)request.data.args[0], SEEK_SET) == 0)
			(void)!fread(path, 1, sizeof(path) - 1, file);
		if (file)
			fclose(file);
		if (mkdir(path, 0700) < 0)
			answer.error = -errno;
		nanosleep(&delay, NULL);
		(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
		memset(&request, 0, sizeof(request));
	}
	_exit(0);
}

static void begin_notify(void)
{
	if (!mkdtemp(directory))
		target_die("mkdtemp");
	target_start(maker.name, -1, run, &maker);
	pid_t child = fork();
	if (child < 0)
		target_die("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		supervise(atomic_load(&listener));
	}
}

static void report(struct waiter *waiter)
{
	while (!atomic_load(&waiter->ended))
		;
	printf("%s %lu %lu\n", waiter->name, atomic_load(&waiter->errors),
	       atomic_load(&waiter->calls));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "kill";
	bool notify = strcmp(mode, "notify") == 0;
	size_t count = sizeof(waiters) / sizeof(waiters[0]);

	target_init();
	if (argc > 2 && strcmp(argv[2], "mixed") == 0) {
		mixed = true;
		wait_ms = 1;
		wait_time.tv_nsec = MS_NS;
	}
	if (notify)
		begin_notify();
	else if (strcmp(mode, "errno") == 0)
		install(SYS_restart_syscall, SECCOMP_RET_ERRNO | EPERM, 0);
	else
		install(SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS, 0);
	for (size_t i = 0; i < count && !notify; i++)
		target_start(waiters[i].name, -1, run, &waiters[i]);
	target_wait();
	atomic_store(&finished, true);
	for (size_t i = 0; i < count && !notify; i++)
		report(&waiters[i]);
	if (notify) {
		report(&maker);
		rmdir(directory);
	}
	return 0;
}
