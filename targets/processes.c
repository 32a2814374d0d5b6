/*
 * Processes that wait for each other.
 *
 * processes KIND [DIRECTORY]
 *
 * KIND		this process			its child (processes-b)
 * flock	holds DIRECTORY/a, wants b	holds DIRECTORY/b, wants a
 * several	the same, with two threads	the same
 * mutex	holds locks[0], wants [1]	holds locks[1], wants [0]
 * robust	the same with robust mutexes	the same
 * rwlock	the same with write locks	the same
 * pipes	reads from its child		reads from this process
 * chain	see below			wants DIRECTORY/b of its own child
 * foreign	reads standard input		wants locks[0] of another child
 *
 * The locks are in shared memory. Each process prints "ready", itself or by this process,
 * and then waits in wait_next.
 *
 * chain: thread holds-lock holds a mutex and reads from a pipe to which only the child can
 * write; wants-lock waits for the mutex; the main thread reads standard input. The child of
 * the child (processes-c) sleeps in pause.
 *
 * foreign: each child is the first process of its own pid namespace, with id 1, which needs
 * root. The other child (processes-c) sleeps in pause.
 */
#include "target.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct shared {
	pthread_mutex_t mutexes[2];
	pthread_rwlock_t rwlocks[2];
	pthread_barrier_t both;
	pid_t foreign[2];
};

static struct shared *shared;
static const char *kind;
static const char *directory = ".";
static int pipes[2][2]; /* process I reads from pipes[I] */
static pthread_mutex_t chain_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_kind(const char *name)
{
	return strcmp(kind, name) == 0;
}

static void make_shared(void)
{
	pthread_mutexattr_t mutex;
	pthread_rwlockattr_t rwlock;
	pthread_barrierattr_t barrier;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		target_die("mmap");
	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	if (is_kind("robust"))
		pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
	pthread_rwlockattr_init(&rwlock);
	pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
	pthread_barrierattr_init(&barrier);
	pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
	for (int i = 0; i < 2; i++) {
		pthread_mutex_init(&shared->mutexes[i], &mutex);
		pthread_rwlock_init(&shared->rwlocks[i], &rwlock);
	}
	pthread_barrier_init(&shared->both, &barrier, 2);
}

/* A separate open file description, because it owns the lock. */
static int open_file(unsigned number)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%c", directory, 'a' + (int)number);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		target_die("open");
	return fd;
}

static void take(unsigned number, int file)
{
	char byte;

	if (is_kind("mutex") || is_kind("robust") || is_kind("foreign"))
		pthread_mutex_lock(&shared->mutexes[number]);
	else if (is_kind("rwlock"))
		pthread_rwlock_wrlock(&shared->rwlocks[number]);
	else if (!is_kind("pipes"))
		flock(file, LOCK_EX);
	else if (read(pipes[!number][0], &byte, 1) < 0)
		target_die("read");
}

TARGET_FRAME static void wait_next(unsigned number, int file)
{
	take(number, file);
	TARGET_KEEP();
}

static void die_with_parent(const char *name)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
}

/* Takes its own lock and waits for the other one. */
static void run(unsigned number)
{
	int files[2] = { open_file(0), open_file(1) };

	close(pipes[number][1]);
	close(pipes[!number][0]);
	if (!is_kind("pipes"))
		take(number, files[number]);
	pthread_barrier_wait(&shared->both);
	if (number == 0)
		puts("ready");
	wait_next(!number, files[!number]);
}

/* Starts the child and the child's child, which locks the file before this function
   returns. */
TARGET_FRAME static void run_chain(void)
{
	die_with_parent("processes-b");
	close(pipes[0][0]);
	if (fork() == 0) {
		die_with_parent("processes-c");
		close(pipes[0][1]);
		flock(open_file(1), LOCK_EX);
		pthread_barrier_wait(&shared->both);
		for (;;)
			pause();
	}
	pthread_barrier_wait(&shared->both);
	wait_next(1, open_file(1));
	TARGET_KEEP();
}

/* Starts a child with id 1; a process between them waits for it. */
static void begin_foreign(unsigned number)
{
	if (fork() != 0)
		return;
	die_with_parent("processes-d");
	if (unshare(CLONE_NEWPID) != 0)
		target_die("unshare");
	pid_t child = fork();
	if (child != 0) {
		shared->foreign[number] = child;
		pthread_barrier_wait(&shared->both);
		for (;;)
			pause();
	}
	die_with_parent(number ? "processes-c" : "processes-b");
	if (number == 0)
		wait_next(0, -1);
	pthread_mutex_lock(&shared->mutexes[0]);
	pthread_barrier_wait(&shared->both);
	for (;;)
		pause();
}

/* The second child takes the lock before the first one is started. */
static int run_foreign(void)
{
	pthread_barrier_t *both = &shared->both;
	pthread_barrierattr_t attr;

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_destroy(both);
	pthread_barrier_init(both, &attr, 3);
	begin_foreign(1);
	pthread_barrier_wait(both);
	pthread_barrier_destroy(both);
	pthread_barrier_init(both, &attr, 2);
	begin_foreign(0);
	pthread_barrier_wait(both);
	printf("child-pid %d\n", shared->foreign[0]);
	target_wait();
	return 0;
}

static void hold_lock(void *arg)
{
	char byte;

	(void)arg;
	pthread_mutex_lock(&chain_lock);
	target_arrive();
	if (read(pipes[0][0], &byte, 1) < 0)
		target_die("read");
}

static void want_lock(void *arg)
{
	(void)arg;
	target_arrive();
	pthread_mutex_lock(&chain_lock);
	TARGET_KEEP();
}

static void block(void *arg)
{
	(void)arg;
	target_arrive();
	target_block();
}

int main(int argc, char **argv)
{
	target_init();
	kind = argc > 1 ? argv[1] : "mutex";
	directory = argc > 2 ? argv[2] : ".";
	make_shared();
	if (pipe2(pipes[0], O_CLOEXEC) != 0 || pipe2(pipes[1], O_CLOEXEC) != 0)
		target_die("pipe2");
	if (is_kind("foreign"))
		return run_foreign();
	pid_t child = fork();
	if (child < 0)
		target_die("fork");
	if (child == 0 && is_kind("chain")) {
		run_chain();
	} else if (child == 0) {
		die_with_parent("processes-b");
		run(1);
	}
	printf("child-pid %d\n", child);
	if (is_kind("chain")) {
		close(pipes[0][1]);
		target_start("holds-lock", SYS_read, hold_lock, NULL);
		target_start("wants-lock", SYS_futex, want_lock, NULL);
		target_wait();
		return 0;
	}
	if (is_kind("several"))
		target_start("second", SYS_poll, block, NULL);
	run(0);
	return 0;
}
