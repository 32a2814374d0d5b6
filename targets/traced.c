/*
 * Calls functions in known numbers, each time that a line arrives on standard input:
 *
 *	many THREADS CALLS   THREADS new threads call checkpoint() CALLS times each, and one call
 *			     of scope() around all of them
 *	fork CALLS	     the same by a child process without threads
 *	spawn CALLS	     a child process executes this program, whose main thread and another
 *			     one call checkpoint() CALLS times each
 *	crowd PROCESSES	     so many child processes do that at the same time, once, and stay
 *	disperse	     until this line
 *	nest		     outer() calls inner() twice
 *	jump		     outer() is left by longjmp() from inner()
 *	hold		     outer() does not return until the next line
 *	exec		     executes itself again
 *	name		     a thread with the name "renamed" calls checkpoint() once
 *	text		     prints a hash of its code
 *
 * Prints "done" after each.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

static jmp_buf back;
static long calls;

/* The kernel emulates a nop, and executes ret step by step, which takes ten times as long. */
__attribute__((noinline)) void checkpoint(long i)
{
	__asm__ volatile("nop" ::"r"(i) : "memory");
}

static inline __attribute__((always_inline)) long always_inlined(long i)
{
	__asm__ volatile("" : "+r"(i)::"memory");
	return i * 3;
}

__attribute__((noinline)) long scope(long count)
{
	for (long i = 0; i < count; i++)
		checkpoint(i);
	return always_inlined(count);
}

__attribute__((noinline)) int inner(int mode)
{
	__asm__ volatile("" ::: "memory");
	if (mode == 1)
		longjmp(back, 1);
	if (mode == 2)
		(void)getchar();
	return mode + 1;
}

__attribute__((noinline)) int outer(int mode)
{
	int result = inner(mode);

	if (mode == 0)
		result += inner(mode);
	__asm__ volatile("" ::: "memory");
	return result;
}

static void *run(void *data)
{
	(void)data;
	scope(calls);
	return NULL;
}

static void *named(void *data)
{
	(void)data;
	prctl(PR_SET_NAME, "renamed");
	checkpoint(0);
	return NULL;
}

static void start(int count, void *(*routine)(void *))
{
	pthread_t threads[64];

	for (int i = 0; i < count && i < 64; i++) {
		if (pthread_create(&threads[i], NULL, routine, NULL) != 0)
			exit(1);
	}
	for (int i = 0; i < count && i < 64; i++)
		pthread_join(threads[i], NULL);
}

static void print_code(void)
{
	const unsigned char *at = (const unsigned char *)(uintptr_t)checkpoint;
	const unsigned char *also = (const unsigned char *)(uintptr_t)outer;

	for (int i = 0; i < 16; i++)
		printf("%02x%02x", at[i], also[i]);
	printf("\n");
}

/* The ends of two pipes: a child of the crowd says that it is there, and stays until the other one is
   closed. */
static int there[2], leave[2];

static void join_crowd(const char *there_fd, const char *leave_fd)
{
	char byte = 0;

	if (write((int)strtol(there_fd, NULL, 10), &byte, 1) != 1)
		exit(1);
	while (read((int)strtol(leave_fd, NULL, 10), &byte, 1) > 0)
		;
}

static void gather_crowd(char *program, int count)
{
	char numbers[2][16];
	char *const arguments[] = { program, "1", numbers[0], numbers[1], NULL };
	char byte;

	if (pipe(there) != 0 || pipe(leave) != 0)
		target_die("pipe");
	snprintf(numbers[0], sizeof(numbers[0]), "%d", there[1]);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", leave[0]);
	for (int i = 0; i < count; i++) {
		pid_t child = fork();
		if (child == 0) {
			close(leave[1]);
			execv("/proc/self/exe", arguments);
			_exit(1);
		}
		if (child < 0 || read(there[0], &byte, 1) != 1)
			target_die("fork");
	}
}

static void disperse_crowd(void)
{
	close(leave[1]);
	while (wait(NULL) > 0)
		;
}

static void spawn(char *program, char *count)
{
	char *const arguments[] = { program, count, NULL };
	pid_t child = fork();

	if (child == 0) {
		execv("/proc/self/exe", arguments);
		_exit(1);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		printf("spawn failed\n");
}

int main(int argc, char **argv)
{
	char line[128];
	int threads;

	if (argc > 1) {
		calls = strtol(argv[1], NULL, 10);
		scope(calls);
		start(1, run);
		if (argc > 3)
			join_crowd(argv[2], argv[3]);
		return 0;
	}
	target_init();
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "many %d %ld", &threads, &calls) == 2) {
			start(threads, run);
		} else if (sscanf(line, "fork %ld", &calls) == 1) {
			pid_t child = fork();
			if (child < 0)
				printf("fork failed\n");
			if (child == 0) {
				scope(calls);
				_exit(0);
			}
			if (child > 0)
				waitpid(child, NULL, 0);
		} else if (strncmp(line, "spawn ", 6) == 0) {
			spawn(argv[0], line + 6);
		} else if (sscanf(line, "crowd %d", &threads) == 1) {
			gather_crowd(argv[0], threads);
		} else if (strncmp(line, "disperse", 8) == 0) {
			disperse_crowd();
		} else if (strncmp(line, "nest", 4) == 0) {
			outer(0);
		} else if (strncmp(line, "jump", 4) == 0) {
			if (setjmp(back) == 0)
				outer(1);
		} else if (strncmp(line, "hold", 4) == 0) {
			outer(2);
		} else if (strncmp(line, "exec", 4) == 0) {
			execv("/proc/self/exe", argv);
		} else if (strncmp(line, "name", 4) == 0) {
			start(1, named);
		} else if (strncmp(line, "text", 4) == 0) {
			print_code();
		}
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
