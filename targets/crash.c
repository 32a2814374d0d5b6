/*
 * A process that a signal ends, for core files.
 *
 * crash HOW	(segv: reads address 16; abort: abort(3); overflow: endless recursion; turns:
 *		endless recursion through two functions; stop: waits)
 *
 * The main thread holds a mutex, for which two threads "waiter" wait: pthread_mutex_lock,
 * waiter, target_thread_main, start_thread, clone3. With segv the stack of the main thread is
 * read_address, fail, main; with abort it is abort and raise below fail; with overflow it is
 * recurse many times, fail, main; with turns it is even and odd in turn, fail, main, and chance
 * decides whether even, odd or leaf is the innermost.
 */
#include "target.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER;
volatile int result;

TARGET_FRAME static void waiter(void *arg)
{
	(void)arg;
	target_arrive();
	(void)pthread_mutex_lock(&stock);
	TARGET_KEEP();
}

TARGET_FRAME static void read_address(const volatile int *address)
{
	result = *address;
	TARGET_KEEP();
}

/* Not in a way that the compiler sees. */
static int (*volatile again)(int);

TARGET_FRAME static int recurse(int depth)
{
	char bytes[512];

	memset(bytes, depth, sizeof(bytes));
	__asm__ volatile("" ::"r"(bytes) : "memory");
	return again(depth + 1) + bytes[0];
}

TARGET_FRAME static void leaf(void)
{
	char bytes[256];

	memset(bytes, 1, sizeof(bytes));
	__asm__ volatile("" ::"r"(bytes) : "memory");
	TARGET_KEEP();
}

TARGET_FRAME static int odd(int depth)
{
	volatile char bytes[100];

	bytes[0] = (char)depth;
	leaf();
	return again(depth + 1) + bytes[0];
}

TARGET_FRAME static int even(int depth)
{
	volatile char bytes[200];

	bytes[0] = (char)depth;
	leaf();
	return odd(depth + 1) + bytes[0];
}

TARGET_FRAME static void fail(const char *how)
{
	if (strcmp(how, "overflow") == 0) {
		again = recurse;
		result = recurse(0);
	}
	if (strcmp(how, "turns") == 0) {
		again = even;
		result = even(0);
	}
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "segv") == 0)
		read_address((const volatile int *)(uintptr_t)16);
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "stop";

	target_init();
	(void)pthread_mutex_lock(&stock);
	for (int i = 0; i < 2; i++)
		(void)target_start("waiter", SYS_futex, waiter, NULL);
	if (strcmp(how, "stop") == 0)
		target_wait();
	fail(how);
	return 1;
}
