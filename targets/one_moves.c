/*
 * 50 threads that wait, of which a command moves one. Odd ones wait below a function whose frame
 * pointer is needed to unwind. Thread 0 waits for a mutex.
 *
 *	main:			__libc_start_main < main < fgets
 *	even, "here-N":		start_thread < serve < waits_here < read
 *	odd, "here-N":		start_thread < serve < waits_in_room < waits_here < read
 *	0, "here-0":		start_thread < serve < waits_for_mutex < pthread_mutex_lock
 *	moved, N:		waits_there instead of waits_here
 *	reused, N:		start_thread < serve_again < waits_here < read
 *
 * A line of stdin is a command. Its last word is printed when it has been carried out.
 *
 *	move N		to the other function
 *	name N NAME	gives a thread another name, while it sleeps
 *	own N		writes another owner into the mutex, while its waiter sleeps
 *	reuse N		ends a thread, and makes another one with the same id; "no" if that fails
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target.h"

enum { THREADS = 50, TRIES = 20000 };

struct worker {
	int index;
	pthread_t thread;
	pid_t tid;
	int wake[2]; /* a byte moves it; its end ends the thread */
};

static struct worker workers[THREADS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun;

/* False: the thread is to end. */
TARGET_FRAME bool waits_here(struct worker *worker)
{
	char byte;
	bool more = read(worker->wake[0], &byte, 1) == 1;

	TARGET_KEEP();
	return more;
}

TARGET_FRAME bool waits_there(struct worker *worker)
{
	char byte;
	bool more = read(worker->wake[0], &byte, 1) == 1;

	TARGET_KEEP();
	return more;
}

TARGET_FRAME bool waits_in_room(struct worker *worker, bool there)
{
	volatile char *room = __builtin_alloca((size_t)worker->index + 100);

	room[0] = 1;
	bool more = there ? waits_there(worker) : waits_here(worker);
	room[1] = 1;
	TARGET_KEEP();
	return more;
}

TARGET_FRAME void waits_for_mutex(void)
{
	pthread_mutex_lock(&mutex);
	TARGET_KEEP();
}

static void begin(struct worker *worker)
{
	char name[16];

	snprintf(name, sizeof(name), "here-%d", worker->index);
	pthread_setname_np(pthread_self(), name);
	worker->tid = (pid_t)syscall(SYS_gettid);
}

TARGET_FRAME void *serve(void *data)
{
	struct worker *worker = data;

	begin(worker);
	pthread_barrier_wait(&begun);
	if (worker->index == 0)
		waits_for_mutex();
	for (bool there = false;; there = !there) {
		bool more;
		if (worker->index % 2)
			more = waits_in_room(worker, there);
		else
			more = there ? waits_there(worker) : waits_here(worker);
		if (!more)
			return NULL;
	}
}

TARGET_FRAME void *serve_again(void *data)
{
	struct worker *worker = data;

	begin(worker);
	pthread_barrier_wait(&begun);
	while (waits_here(worker))
		;
	TARGET_KEEP();
	return NULL;
}

static void start(struct worker *worker, void *(*routine)(void *))
{
	if (pipe2(worker->wake, O_CLOEXEC) != 0)
		exit(2);
	pthread_barrier_init(&begun, NULL, 2);
	if (pthread_create(&worker->thread, NULL, routine, worker) != 0)
		exit(2);
	pthread_barrier_wait(&begun);
}

static void finish(struct worker *worker)
{
	close(worker->wake[1]);
	pthread_join(worker->thread, NULL);
	close(worker->wake[0]);
}

/* Makes threads until one gets that id. */
static bool reuse(struct worker *worker)
{
	pid_t wanted = worker->tid;
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	finish(worker);
	for (int i = 0; i < TRIES; i++) {
		char text[16];
		int size = snprintf(text, sizeof(text), "%d", wanted - 1);
		if (pwrite(fd, text, (size_t)size, 0) != size)
			return false;
		start(worker, serve_again);
		if (worker->tid == wanted)
			return true;
		finish(worker);
	}
	return false;
}

static void rename_thread(const struct worker *worker, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", worker->tid);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, name, strlen(name)) < 0)
		exit(2);
	close(fd);
}

static bool obey(const char *command, struct worker *worker, const char *name)
{
	if (strcmp(command, "move") == 0)
		return write(worker->wake[1], "m", 1) == 1;
	if (strcmp(command, "name") == 0)
		rename_thread(worker, name);
	else if (strcmp(command, "own") == 0)
		mutex.__data.__owner = worker->tid;
	else
		return reuse(worker);
	return true;
}

int main(void)
{
	char line[100];
	char command[16];
	char name[16];
	unsigned index;

	target_init();
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < THREADS; i++) {
		workers[i].index = i;
		start(&workers[i], serve);
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		name[0] = '\0';
		if (sscanf(line, "%15s %u %15s", command, &index, name) < 2 ||
		    index >= THREADS)
			return 2;
		puts(obey(command, &workers[index], name) ? command : "no");
		fflush(stdout);
	}
	return 0;
}
