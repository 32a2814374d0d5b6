/*
 * The main thread waits for a line of its standard input, each time on a stack that was mapped just
 * before, below the last one. Another thread sleeps for some milliseconds again and again.
 *
 * Main thread: read, read_there, run_there, __start_context.
 */
#include "target.h"

#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK = 256 << 10, ROOM = 1 << 30 };

/* Each below the last one, which is unmapped: so the memory map of before has that above the stack
   pointer. */
static char *map_stack(char *before)
{
	char *stack = mmap(before - STACK, STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED || munmap(before, STACK) != 0)
		target_die("stack");
	return stack;
}

static ucontext_t outer;
static bool more = true;

TARGET_FRAME static void read_there(void)
{
	char byte;

	more = read(STDIN_FILENO, &byte, 1) == 1;
	TARGET_KEEP();
}

static void run_there(void)
{
	read_there();
	TARGET_KEEP();
}

static void doze(void *arg)
{
	const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };

	(void)arg;
	target_arrive();
	for (;;)
		nanosleep(&pause, NULL);
}

int main(void)
{
	target_init();
	target_start("dozer", -1, doze, NULL);
	puts("ready");
	char *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED || munmap(room, ROOM) != 0)
		target_die("room");
	for (char *stack = map_stack(room + ROOM / 2); more;) {
		ucontext_t inner;
		stack = map_stack(stack);
		if (getcontext(&inner) != 0)
			target_die("getcontext");
		inner.uc_stack.ss_sp = stack;
		inner.uc_stack.ss_size = STACK;
		inner.uc_link = &outer;
		makecontext(&inner, run_there, 0);
		if (swapcontext(&outer, &inner) != 0)
			target_die("swapcontext");
	}
	return 0;
}
