/*
 * One thread in each kind of wait for another thread. The only deadlock is that of two
 * threads that join each other.
 *
 * lockwaits [NAME]
 *
 * Thread				waits in		for
 *	reads-pipe (or NAME)		read			a pipe; holds held_lock, and
 *								held_shared as writer
 *	wants-mutex			pthread_mutex_lock	held_lock of reads-pipe
 *	wants-timed			pthread_mutex_timedlock	the same
 *	wants-behind			pthread_mutex_lock	second_lock of wants-mutex
 *	wants-read			pthread_rwlock_rdlock	held_shared
 *	wants-write			pthread_rwlock_wrlock	the same
 *	wants-read-held			pthread_rwlock_wrlock	read_shared; main is a reader
 *	nobody-signals			pthread_cond_wait	lonely_cond
 *	timed-cond			pthread_cond_timedwait	timed_cond, of CLOCK_REALTIME
 *	clock-cond			pthread_cond_timedwait	clock_cond, of CLOCK_MONOTONIC
 *	timed-futex			syscall			timed_word, for an hour
 *	sem-waiter			sem_wait		empty_sem
 *	barrier-waiter			pthread_barrier_wait	wide_barrier, as first of three
 *	joins-reader			pthread_join		the end of reads-pipe
 *	join-a, join-b			pthread_join		each other
 *	once-first			poll			in the function of once
 *	once-second			pthread_once		once
 *	ended-lock			pthread_mutex_lock	ended_lock, whose owner exited
 *	ended-pi			pthread_mutex_lock	ended_pi, a PI mutex, likewise
 *	writes-stream			putc			the stream of locks-stream
 *	locks-stream			poll			in flockfile's critical section
 *
 * With a second argument, the recursion of the stream's lock is counted from 0.
 *
 * The caller of the libc's function is wait_NAME (such as wait_mutex) or target_block.
 * Stacks end as in every target.
 */
#include "target.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* FUTEX_WAIT | FUTEX_PRIVATE_FLAG; musl-gcc has no linux/futex.h */
enum { WAIT_PRIVATE = 128 };

pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t second_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t ended_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t ended_pi;
pthread_rwlock_t held_shared = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t read_shared = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t lonely_cond = PTHREAD_COND_INITIALIZER;
pthread_cond_t timed_cond = PTHREAD_COND_INITIALIZER;
pthread_cond_t clock_cond;
unsigned timed_word;
pthread_mutex_t cond_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t timed_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_barrier_t wide_barrier;
pthread_once_t once = PTHREAD_ONCE_INIT;
sem_t empty_sem;

static FILE *stream;
static bool count_from_zero;
static int ends[2];
static pthread_t reader;
static pthread_t joiners[2];
static pthread_barrier_t both_known;

TARGET_FRAME static void wait_pipe(void *arg)
{
	char byte;

	(void)arg;
	reader = pthread_self();
	pthread_mutex_lock(&held_lock);
	pthread_rwlock_wrlock(&held_shared);
	target_arrive();
	if (read(ends[0], &byte, 1) < 0)
		target_die("read");
	TARGET_KEEP();
}

TARGET_FRAME static void wait_mutex(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&second_lock);
	target_arrive();
	pthread_mutex_lock(&held_lock);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_timed(void *arg)
{
	struct timespec then;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &then);
	then.tv_sec += 7 * 24 * 3600;
	target_arrive();
	pthread_mutex_timedlock(&held_lock, &then);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_second(void *arg)
{
	(void)arg;
	target_arrive();
	pthread_mutex_lock(&second_lock);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_read(void *arg)
{
	(void)arg;
	target_arrive();
	pthread_rwlock_rdlock(&held_shared);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_write(void *arg)
{
	target_arrive();
	pthread_rwlock_wrlock(arg);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_cond(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&cond_lock);
	target_arrive();
	for (;;)
		pthread_cond_wait(&lonely_cond, &cond_lock);
}

TARGET_FRAME static void wait_timed_cond(void *arg)
{
	struct timespec then;

	clock_gettime(arg == &clock_cond ? CLOCK_MONOTONIC : CLOCK_REALTIME, &then);
	then.tv_sec += 7 * 24 * 3600;
	pthread_mutex_lock(&timed_lock);
	target_arrive();
	for (;;)
		pthread_cond_timedwait(arg, &timed_lock, &then);
}

TARGET_FRAME static void wait_timed_futex(void *arg)
{
	static const struct timespec hour = { .tv_sec = 3600 };

	(void)arg;
	target_arrive();
	syscall(SYS_futex, &timed_word, WAIT_PRIVATE, 0, &hour);
	TARGET_KEEP();
}

static void make_clock_cond(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&clock_cond, &attr);
}

TARGET_FRAME static void wait_sem(void *arg)
{
	(void)arg;
	target_arrive();
	while (sem_wait(&empty_sem) < 0 && errno == EINTR)
		;
	TARGET_KEEP();
}

TARGET_FRAME static void wait_barrier(void *arg)
{
	(void)arg;
	target_arrive();
	pthread_barrier_wait(&wide_barrier);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_join(void *arg)
{
	(void)arg;
	target_arrive();
	pthread_join(reader, NULL);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_join_other(void *arg)
{
	unsigned number = *(unsigned *)arg;

	joiners[number] = pthread_self();
	pthread_barrier_wait(&both_known);
	target_arrive();
	pthread_join(joiners[(number + 1) % 2], NULL);
	TARGET_KEEP();
}

TARGET_FRAME static void init_once(void)
{
	target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void wait_once(void *arg)
{
	(void)arg;
	target_arrive();
	pthread_once(&once, init_once);
	TARGET_KEEP();
}

static void *take_and_end(void *arg)
{
	pthread_mutex_lock(arg);
	return NULL;
}

TARGET_FRAME static void wait_ended(void *arg)
{
	target_arrive();
	pthread_mutex_lock(arg);
	TARGET_KEEP();
}

/* Locks it in a thread that exits without unlocking. */
static void let_end(pthread_mutex_t *mutex)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, take_and_end, mutex) != 0)
		target_die("pthread_create");
	pthread_join(thread, NULL);
}

static void make_ended_pi(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&ended_pi, &attr);
	let_end(&ended_pi);
}

TARGET_FRAME static void hold_stream(void *arg)
{
	(void)arg;
	flockfile(stream);
#ifdef __GLIBC__
	if (count_from_zero) /* as glibc 2.41 does: the second word of _IO_lock_t */
		((int *)stream->_lock)[1] = 0;
#endif
	target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void wait_stream(void *arg)
{
	(void)arg;
	target_arrive();
	putc('x', stream);
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	static unsigned numbers[] = { 0, 1 };
	struct target_thread *joining[2];

	target_init();
	count_from_zero = argc > 2;
	stream = tmpfile();
	if (!stream || pipe(ends) < 0)
		target_die("tmpfile, pipe");
	sem_init(&empty_sem, 0, 0);
	pthread_barrier_init(&wide_barrier, NULL, 3);
	pthread_barrier_init(&both_known, NULL, 2);
	pthread_rwlock_rdlock(&read_shared);
	target_start(argc > 1 ? argv[1] : "reads-pipe", SYS_read, wait_pipe, NULL);
	target_start("wants-mutex", SYS_futex, wait_mutex, NULL);
	target_start("wants-timed", SYS_futex, wait_timed, NULL);
	target_start("wants-behind", SYS_futex, wait_second, NULL);
	target_start("wants-read", SYS_futex, wait_read, NULL);
	target_start("wants-write", SYS_futex, wait_write, &held_shared);
	target_start("wants-read-held", SYS_futex, wait_write, &read_shared);
	target_start("nobody-signals", SYS_futex, wait_cond, NULL);
	make_clock_cond();
	target_start("timed-cond", SYS_futex, wait_timed_cond, &timed_cond);
	target_start("clock-cond", SYS_futex, wait_timed_cond, &clock_cond);
	target_start("timed-futex", SYS_futex, wait_timed_futex, NULL);
	target_start("sem-waiter", SYS_futex, wait_sem, NULL);
	target_start("barrier-waiter", SYS_futex, wait_barrier, NULL);
	target_start("joins-reader", SYS_futex, wait_join, NULL);
	for (int i = 0; i < 2; i++)
		joining[i] = target_begin(i ? "join-b" : "join-a", SYS_futex,
					  wait_join_other, &numbers[i]);
	for (int i = 0; i < 2; i++)
		target_await(joining[i]);
	target_start("once-first", SYS_poll, wait_once, NULL);
	target_start("once-second", SYS_futex, wait_once, NULL);
	let_end(&ended_lock);
	make_ended_pi();
	target_start("ended-lock", SYS_futex, wait_ended, &ended_lock);
	target_start("ended-pi", SYS_futex, wait_ended, &ended_pi);
	target_start("locks-stream", SYS_poll, hold_stream, NULL);
	target_start("writes-stream", SYS_futex, wait_stream, NULL);
	target_wait();
	_exit(0); /* exit(3) waits for the stream since glibc 2.41 */
}
