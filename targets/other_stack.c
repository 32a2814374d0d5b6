/*
 * Stacks in several mappings, as runtimes with their own stacks have them. The other stack
 * is in the middle of a mapping of 64 MiB, so that its end is unknown.
 *
 * Thread "sleeper":	poll, target_block, 500 times descend (4 KiB each), run_there,
 *			call_on_stack, thread_routine, target_thread_main, start_thread, clone3
 * Thread "runner":	spin, 500 times descend, deep_routine, target_thread_main, ...: on the
 *			stack of the thread
 * Thread "leaf":	spin_leaf, call_on_stack, leaf_routine, target_thread_main, ...
 * Main thread:		read, target_wait, wait_there, call_on_stack, main, ...
 */
#include "target.h"

#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { DEPTH = 500, FRAME = 4000, MAPPING = 64 << 20 };

/* Calls a function on another stack. */
void call_on_stack(void (*function)(void), void *stack);

__asm__(".text\n"
	".globl call_on_stack\n"
	".type call_on_stack, @function\n"
	"call_on_stack:\n"
	".cfi_startproc\n"
	"	push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"	mov %rsp, %rbp\n"
	".cfi_def_cfa_register %rbp\n"
	"	mov %rsi, %rsp\n"
	"	call *%rdi\n"
	"	leave\n"
	".cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size call_on_stack, . - call_on_stack\n");

static __thread bool runs;
static volatile bool go_on = true, leaf_spins;

TARGET_FRAME static void spin(void)
{
	target_arrive();
	while (go_on)
		;
}

/* Without a frame: the frame pointer is that of call_on_stack. */
TARGET_FRAME static void spin_leaf(void)
{
	leaf_spins = true;
	while (go_on)
		;
}

TARGET_FRAME static void descend(unsigned left)
{
	volatile char room[FRAME];

	room[0] = 1;
	(void)room[0];
	if (left > 1)
		descend(left - 1);
	else if (runs)
		spin();
	else
		target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void run_there(void)
{
	descend(DEPTH);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_there(void)
{
	target_wait();
	TARGET_KEEP();
}

static void *new_stack(void)
{
	char *bytes = mmap(NULL, MAPPING, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bytes == MAP_FAILED)
		target_die("mmap");
	return bytes + MAPPING / 2;
}

TARGET_FRAME static void thread_routine(void *arg)
{
	runs = arg != NULL;
	call_on_stack(run_there, new_stack());
	TARGET_KEEP();
}

/* Deep on its own stack. */
TARGET_FRAME static void deep_routine(void *arg)
{
	runs = arg != NULL;
	descend(DEPTH);
	TARGET_KEEP();
}

TARGET_FRAME static void leaf_routine(void *arg)
{
	(void)arg;
	void *stack = new_stack();
	target_arrive();
	call_on_stack(spin_leaf, stack);
	TARGET_KEEP();
}

int main(void)
{
	target_init();
	target_start("sleeper", SYS_poll, thread_routine, NULL);
	target_start("runner", -1, deep_routine, (void *)1);
	target_start("leaf", -1, leaf_routine, NULL);
	while (!leaf_spins)
		sched_yield();
	call_on_stack(wait_there, new_stack());
	return 0;
}
