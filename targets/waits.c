/*
 * One thread in each kind of wait for a file descriptor, a time, a process or a message.
 * The name of a thread is the WORD in its table below; its stack is
 *	the libc's frames of the call, wait_in_WORD, target_thread_main, start_thread,
 *	clone3
 *
 * waits DIRECTORY	creates two named pipes and a file in DIRECTORY and leaves them
 *
 * Before "ready" it prints what the threads wait for: descriptors (fd-WORD), ports
 * (port-WORD) and the child's pid (child). The child is named "waits-child"; only it has
 * the other end of the pipe of read-child, and it holds locks on the file.
 */
#include "target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOUR = 3600, MANY = 3000 };

static const char *directory;
static pid_t child;
static int child_pipe;
static int file;

static int check(int result, const char *what)
{
	if (result < 0)
		target_die(what);
	return result;
}

static const char *path_of(const char *name)
{
	static __thread char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void say(const char *what, const char *word, int number)
{
	printf("%s-%s %d\n", what, word, number);
}

/* Blocks in a read() that never returns. */
#define READ(word, fd)                                                                   \
	char byte_[128];                                                                 \
	int fd_ = check((fd), word);                                                     \
	say("fd", word, fd_);                                                            \
	target_arrive();                                                                 \
	check((int)read(fd_, byte_, sizeof(byte_)), word);                               \
	TARGET_KEEP()

static int half_of_pipe(int which)
{
	int ends[2];

	check(pipe(ends), "pipe");
	return ends[which];
}

TARGET_FRAME static void wait_in_read_pipe(void *arg)
{
	(void)arg;
	READ("read-pipe", half_of_pipe(0));
}

TARGET_FRAME static void wait_in_read_child(void *arg)
{
	(void)arg;
	READ("read-child", child_pipe);
}

TARGET_FRAME static void wait_in_read_fifo(void *arg)
{
	(void)arg;
	check(mkfifo(path_of("fifo"), 0600), "mkfifo");
	READ("read-fifo", open(path_of("fifo"), O_RDWR));
}

TARGET_FRAME static void wait_in_read_event(void *arg)
{
	(void)arg;
	READ("read-event", eventfd(0, 0));
}

TARGET_FRAME static void wait_in_read_timer(void *arg)
{
	const struct itimerspec hour = { .it_value.tv_sec = HOUR,
					 .it_interval.tv_sec = 2 };
	int fd = check(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd_create");

	(void)arg;
	check(timerfd_settime(fd, 0, &hour, NULL), "timerfd_settime");
	READ("read-timer", fd);
}

TARGET_FRAME static void wait_in_read_signal(void *arg)
{
	sigset_t set;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGHUP);
	READ("read-signal", signalfd(-1, &set, 0));
}

TARGET_FRAME static void wait_in_read_inotify(void *arg)
{
	int fd = check(inotify_init1(0), "inotify_init1");

	(void)arg;
	check(inotify_add_watch(fd, "/", IN_DELETE_SELF), "inotify_add_watch");
	READ("read-inotify", fd);
}

TARGET_FRAME static void wait_in_write_pipe(void *arg)
{
	static const char bytes[4096];
	int fd = half_of_pipe(1);

	(void)arg;
	check(fcntl(fd, F_SETFL, O_NONBLOCK), "fcntl");
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	check(fcntl(fd, F_SETFL, 0), "fcntl");
	say("fd", "write-pipe", fd);
	target_arrive();
	check((int)write(fd, bytes, sizeof(bytes)), "write");
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_open_fifo(void *arg)
{
	(void)arg;
	check(mkfifo(path_of("no-writer"), 0600), "mkfifo");
	target_arrive();
	check(open(path_of("no-writer"), O_RDONLY), "open");
	TARGET_KEEP();
}

static int bound(int type, struct sockaddr_in *ret)
{
	socklen_t size = sizeof(*ret);
	int fd = check(socket(AF_INET, type, 0), "socket");

	*ret = (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	check(bind(fd, (struct sockaddr *)ret, size), "bind");
	check(getsockname(fd, (struct sockaddr *)ret, &size), "getsockname");
	return fd;
}

TARGET_FRAME static void wait_in_accept(void *arg)
{
	struct sockaddr_in address;
	int fd = bound(SOCK_STREAM, &address);

	(void)arg;
	check(listen(fd, 1), "listen");
	say("fd", "accept", fd);
	say("port", "accept", ntohs(address.sin_port));
	target_arrive();
	check(accept(fd, NULL, NULL), "accept");
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_accept_unix(void *arg)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = check(socket(AF_UNIX, SOCK_STREAM, 0), "socket");

	(void)arg;
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "waits-%d",
		 (int)getpid());
	check(bind(fd, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			       strlen(address.sun_path + 1))),
	      "bind");
	check(listen(fd, 1), "listen");
	say("fd", "accept-unix", fd);
	target_arrive();
	check(accept(fd, NULL, NULL), "accept");
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_receive_tcp(void *arg)
{
	struct sockaddr_in server;
	struct sockaddr_in client;
	char byte;
	int listener = bound(SOCK_STREAM, &server);
	int fd = bound(SOCK_STREAM, &client);

	(void)arg;
	check(listen(listener, 1), "listen");
	check(connect(fd, (struct sockaddr *)&server, sizeof(server)), "connect");
	say("fd", "receive-tcp", fd);
	say("port", "receive-tcp-here", ntohs(client.sin_port));
	say("port", "receive-tcp-there", ntohs(server.sin_port));
	target_arrive();
	check((int)recv(fd, &byte, 1, 0), "recv");
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_receive_udp(void *arg)
{
	struct sockaddr_in address;
	char byte;
	int fd = bound(SOCK_DGRAM, &address);

	(void)arg;
	say("fd", "receive-udp", fd);
	say("port", "receive-udp", ntohs(address.sin_port));
	target_arrive();
	check((int)recv(fd, &byte, 1, 0), "recv");
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_receive_unix(void *arg)
{
	int ends[2];
	char byte;

	(void)arg;
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	say("fd", "receive-unix", ends[0]);
	target_arrive();
	check((int)recv(ends[0], &byte, 1, 0), "recv");
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_poll_time(void *arg)
{
	(void)arg;
	target_arrive();
	poll(NULL, 0, HOUR * 1000);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_poll_two(void *arg)
{
	struct pollfd set[] = { { .fd = eventfd(0, 0), .events = POLLIN },
				{ .fd = -1, .events = POLLIN },
				{ .fd = half_of_pipe(0), .events = POLLIN },
				{ .events = 0 } };

	(void)arg;
	set[3].fd = set[0].fd; /* again, for errors */
	say("fd", "poll-two-event", set[0].fd);
	say("fd", "poll-two-pipe", set[2].fd);
	target_arrive();
	poll(set, 4, -1);
	TARGET_KEEP();
}

/* The set is not on the stack. */
TARGET_FRAME static void wait_in_poll_many(void *arg)
{
	struct pollfd *set = calloc(MANY, sizeof(*set));
	int fds[16];

	(void)arg;
	for (int i = 0; i < 16; i++)
		fds[i] = eventfd(0, 0);
	/* Set twice, counted once. */
	for (int i = 0; set && i < MANY; i++)
		set[i] = (struct pollfd){ .fd = fds[i % 16], .events = POLLIN };
	target_arrive();
	poll(set, MANY, -1);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_poll_pidfd(void *arg)
{
	struct pollfd set = { .fd = (int)syscall(SYS_pidfd_open, child, 0),
			      .events = POLLIN };

	(void)arg;
	say("fd", "poll-pidfd", check(set.fd, "pidfd_open"));
	target_arrive();
	poll(&set, 1, -1);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_select(void *arg)
{
	struct timeval limit = { .tv_sec = HOUR };
	fd_set set;
	int fd = eventfd(0, 0);

	(void)arg;
	FD_ZERO(&set);
	FD_SET(fd, &set);
	say("fd", "select", fd);
	target_arrive();
	select(fd + 1, &set, NULL, NULL, &limit);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_epoll(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct sockaddr_in address;
	int fd = check(epoll_create1(0), "epoll_create1");
	int listener = bound(SOCK_STREAM, &address);
	int counter = eventfd(0, 0);

	(void)arg;
	check(listen(listener, 1), "listen");
	check(epoll_ctl(fd, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
	check(epoll_ctl(fd, EPOLL_CTL_ADD, counter, &event), "epoll_ctl");
	say("fd", "epoll", fd);
	say("fd", "epoll-listener", listener);
	say("fd", "epoll-event", counter);
	say("port", "epoll", ntohs(address.sin_port));
	target_arrive();
	epoll_wait(fd, &event, 1, -1);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_sleep(void *arg)
{
	const struct timespec hour = { .tv_sec = HOUR };

	(void)arg;
	target_arrive();
	nanosleep(&hour, NULL);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_sleep_until(void *arg)
{
	struct timespec then;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &then);
	then.tv_sec += HOUR;
	target_arrive();
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_child(void *arg)
{
	(void)arg;
	target_arrive();
	waitpid(child, NULL, 0);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_child_any(void *arg)
{
	siginfo_t info;

	(void)arg;
	target_arrive();
	waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_flock(void *arg)
{
	int fd = open(path_of("file"), O_RDWR); /* a separate open file description */

	(void)arg;
	say("fd", "flock", check(fd, "open"));
	target_arrive();
	flock(fd, LOCK_EX);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_fcntl(void *arg)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 5
	};

	(void)arg;
	say("fd", "fcntl", file);
	target_arrive();
	fcntl(file, F_SETLKW, &lock);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_sigwait(void *arg)
{
	sigset_t set;
	siginfo_t info;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	target_arrive();
	sigwaitinfo(&set, &info);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_pause(void *arg)
{
	(void)arg;
	target_arrive();
	pause();
	TARGET_KEEP();
}

/* The child removes the System V objects when this process ends for any reason. */
static int semaphores;
static int messages;

TARGET_FRAME static void wait_in_semop(void *arg)
{
	struct sembuf down = { .sem_num = 0, .sem_op = -1 };

	(void)arg;
	target_arrive();
	semtimedop(semaphores, &down, 1, NULL);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_in_message(void *arg)
{
	struct {
		long type;
		char text[16];
	} message;

	(void)arg;
	target_arrive();
	msgrcv(messages, &message, sizeof(message.text), 0, 0);
	TARGET_KEEP();
}

static void run_child(int ready, pid_t parent)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10
	};
	sigset_t set;
	int number;
	int fd = open(path_of("file"), O_RDWR);

	prctl(PR_SET_NAME, "waits-child");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	check(fcntl(fd, F_SETLK, &lock), "fcntl");
	check(flock(fd, LOCK_EX), "flock");
	/* only the parent has the pipes of standard input and output */
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	check((int)write(ready, "", 1), "write");
	if (getppid() == parent)
		sigwait(&set, &number);
	semctl(semaphores, 0, IPC_RMID);
	msgctl(messages, IPC_RMID, NULL);
	_exit(0);
}

static void start_child(void)
{
	int held[2];
	int ready[2];
	pid_t parent = getpid();
	char byte;

	check(pipe(held), "pipe");
	check(pipe(ready), "pipe");
	child = check(fork(), "fork");
	if (child == 0) {
		close(held[0]);
		run_child(ready[1], parent);
	}
	close(held[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		target_die("the child");
	close(ready[0]);
	child_pipe = held[0];
	say("child", "pid", child);
}

static const struct {
	const char *name;
	void (*wait)(void *arg);
	long number;
} places[] = {
	{ "read-pipe", wait_in_read_pipe, SYS_read },
	{ "read-child", wait_in_read_child, SYS_read },
	{ "read-fifo", wait_in_read_fifo, SYS_read },
	{ "read-event", wait_in_read_event, SYS_read },
	{ "read-timer", wait_in_read_timer, SYS_read },
	{ "read-signal", wait_in_read_signal, SYS_read },
	{ "read-inotify", wait_in_read_inotify, SYS_read },
	{ "write-pipe", wait_in_write_pipe, SYS_write },
	{ "open-fifo", wait_in_open_fifo, SYS_openat },
	{ "accept", wait_in_accept, SYS_accept },
	{ "accept-unix", wait_in_accept_unix, SYS_accept },
	{ "receive-tcp", wait_in_receive_tcp, SYS_recvfrom },
	{ "receive-udp", wait_in_receive_udp, SYS_recvfrom },
	{ "receive-unix", wait_in_receive_unix, SYS_recvfrom },
	{ "poll-time", wait_in_poll_time, SYS_poll },
	{ "poll-two", wait_in_poll_two, SYS_poll },
	{ "poll-many", wait_in_poll_many, SYS_poll },
	{ "poll-pidfd", wait_in_poll_pidfd, SYS_poll },
	{ "select", wait_in_select, SYS_pselect6 },
	{ "epoll", wait_in_epoll, SYS_epoll_wait },
	{ "sleep", wait_in_sleep, SYS_clock_nanosleep },
	{ "sleep-until", wait_in_sleep_until, SYS_clock_nanosleep },
	{ "child", wait_in_child, SYS_wait4 },
	{ "child-any", wait_in_child_any, SYS_waitid },
	{ "flock", wait_in_flock, SYS_flock },
	{ "fcntl", wait_in_fcntl, SYS_fcntl },
	{ "sigwait", wait_in_sigwait, SYS_rt_sigtimedwait },
	{ "pause", wait_in_pause, SYS_pause },
	{ "semop", wait_in_semop, SYS_semtimedop },
	{ "message", wait_in_message, SYS_msgrcv },
};

int main(int argc, char **argv)
{
	target_init();
	if (argc != 2)
		target_die("waits DIRECTORY");
	directory = argv[1];
	file = check(open(path_of("file"), O_RDWR | O_CREAT, 0600), "open");
	semaphores = check(semget(IPC_PRIVATE, 1, 0600), "semget");
	messages = check(msgget(IPC_PRIVATE, 0600), "msgget");
	start_child();
	say("id", "semop", semaphores);
	say("id", "message", messages);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		target_start(places[i].name, places[i].number, places[i].wait, NULL);
	target_wait();
	return 0;
}
