/*
 * Threads of a pool that wait for a lock, and one that holds it and waits for something.
 *
 * pools KIND [FOLLOWERS]	(default: 2)
 *
 * Thread leader holds turn, threads follower-I wait for it. All are in serve(), which
 * calls a function of its own for the lock (wait_for_turn) and for what comes next:
 *	accept		accept() of a socket that listens
 *	epoll		epoll_wait() on such a socket and a pipe
 *	job		a condition variable
 *	datagram	recv() of a UDP socket without a peer
 *	answer		recv() of a connected socket: the other end may never answer
 * In KIND inverted, thread leader waits in consume() for a condition variable that thread
 * follower-0 would signal in produce(), which needs turn first: both are stuck.
 * In KIND processes, leader and followers are processes with one thread each, which wait
 * for a lock on a file and in accept(). "process PID" tells each of them; the first one is the leader.
 */
#include "target.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 16 };

static const char *kind;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int fd;
static int lock_fd = -1;

static int listen_anywhere(int type)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int made = socket(AF_INET, type, 0);

	if (made < 0 || bind(made, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    (type == SOCK_STREAM && listen(made, 1) < 0))
		target_die("socket");
	return made;
}

static void watch(int epoll, int watched)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, watched, &event) < 0)
		target_die("epoll_ctl");
}

static void open_fd(void)
{
	int ends[2];

	if (strcmp(kind, "answer") == 0) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
			target_die("socketpair");
		fd = ends[0];
	} else if (strcmp(kind, "epoll") == 0) {
		if (pipe(ends) < 0 || (fd = epoll_create1(0)) < 0)
			target_die("epoll");
		watch(fd, listen_anywhere(SOCK_STREAM));
		watch(fd, ends[0]);
	} else {
		fd = listen_anywhere(strcmp(kind, "datagram") == 0 ? SOCK_DGRAM :
								     SOCK_STREAM);
	}
}

TARGET_FRAME static void wait_for_turn(void)
{
	if (lock_fd >= 0)
		flock(lock_fd, LOCK_EX);
	else
		pthread_mutex_lock(&turn);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_for_job(void)
{
	pthread_mutex_lock(&queue);
	for (;;)
		pthread_cond_wait(&filled, &queue);
}

TARGET_FRAME static void wait_for_next(void)
{
	struct epoll_event event;
	char byte;

	if (strcmp(kind, "job") == 0)
		wait_for_job();
	else if (strcmp(kind, "epoll") == 0)
		epoll_wait(fd, &event, 1, -1);
	else if (strcmp(kind, "answer") == 0 || strcmp(kind, "datagram") == 0)
		recv(fd, &byte, 1, 0);
	else
		accept(fd, NULL, NULL);
	TARGET_KEEP();
}

TARGET_FRAME static void serve(void *arg)
{
	(void)arg;
	target_arrive();
	for (;;) {
		wait_for_turn();
		wait_for_next();
		pthread_mutex_unlock(&turn);
	}
}

TARGET_FRAME static void consume(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&turn);
	target_arrive();
	wait_for_job();
}

TARGET_FRAME static void produce(void *arg)
{
	(void)arg;
	target_arrive();
	wait_for_turn();
	pthread_cond_signal(&filled);
	TARGET_KEEP();
}

static long leader_call(void)
{
	if (strcmp(kind, "job") == 0 || strcmp(kind, "inverted") == 0)
		return SYS_futex;
	if (strcmp(kind, "epoll") == 0)
		return SYS_epoll_wait;
	return strcmp(kind, "accept") == 0 ? SYS_accept : SYS_recvfrom;
}

static void serve_alone(const char *path)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	lock_fd = open(path, O_RDWR);
	if (lock_fd < 0)
		target_die("open");
	wait_for_turn();
	wait_for_next();
	_exit(0);
}

static void start_processes(unsigned count)
{
	char path[] = "/tmp/stacksnap-pools-XXXXXX";
	int made = mkstemp(path);

	if (made < 0)
		target_die("mkstemp");
	for (unsigned i = 0; i < count; i++) {
		pid_t child = fork();
		if (child == 0)
			serve_alone(path);
		printf("process %d\n", child);
		/* until it sleeps in one of its two calls */
		for (;;) {
			char name[64];
			long number = -1;
			snprintf(name, sizeof(name), "/proc/%d/syscall", child);
			FILE *file = fopen(name, "r");
			if (!file)
				target_die("syscall");
			if (fscanf(file, "%ld", &number) != 1)
				number = -1;
			fclose(file);
			if (number == SYS_flock || number == SYS_accept)
				break;
			sched_yield();
		}
	}
	unlink(path);
}

int main(int argc, char **argv)
{
	unsigned count = target_number(argc, argv, 2, 2);
	char name[32];

	target_init();
	kind = argc > 1 ? argv[1] : "accept";
	if (count > MOST)
		return 64;
	if (strcmp(kind, "processes") == 0) {
		fd = listen_anywhere(SOCK_STREAM);
		start_processes(count + 1);
	} else if (strcmp(kind, "inverted") == 0) {
		target_start("leader", leader_call(), consume, NULL);
		target_start("follower-0", SYS_futex, produce, NULL);
	} else {
		open_fd();
		target_start("leader", leader_call(), serve, NULL);
		for (unsigned i = 0; i < count; i++) {
			snprintf(name, sizeof(name), "follower-%u", i);
			target_start(name, SYS_futex, serve, NULL);
		}
	}
	target_wait();
	return 0;
}
