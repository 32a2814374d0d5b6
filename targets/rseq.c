/*
 * Restartable sequences (rseq(2)): each of four threads adds one to a counter of its CPU,
 * again and again, with plain loads and stores. The kernel restarts a sequence that it
 * interrupts; otherwise additions would be lost.
 *
 * Threads "adder-I":	add_routine, target_thread_main, start_thread, clone3
 * At the end of stdin it prints "lost NUMBER ADDITIONS". The exit status is 77 if threads
 * have no restartable sequences.
 */
#include "target.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/rseq.h>

enum { ADDERS = 4, CPUS = 1024, LINE = 64 };

struct counter {
	_Alignas(LINE) volatile unsigned long value;
};

static struct counter counters[CPUS];
static atomic_bool finished;
static atomic_ulong additions;
static atomic_uint ended;

static struct rseq *own_area(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* Returns false if the sequence was interrupted before its last instruction. */
static bool add(struct rseq *area, volatile unsigned long *counter, unsigned cpu)
{
	/* clang-format off */
	__asm__ goto(
		".pushsection __rseq_cs, \"aw\"\n"
		".balign 32\n"
		"3: .long 0, 0\n"
		".quad 1f, 2f - 1f, 4f\n"
		".popsection\n"
		"leaq 3b(%%rip), %%rax\n"
		"movq %%rax, %[cs]\n"
		"1: cmpl %[cpu], %[cpu_id]\n"
		"jnz 4f\n"
		"movq (%[counter]), %%rax\n"
		"movl $64, %%ecx\n"
		"5: decl %%ecx\n"
		"jnz 5b\n"
		"incq %%rax\n"
		"movq %%rax, (%[counter])\n"
		"2:\n"
		".pushsection __rseq_abort, \"ax\"\n"
		".byte 0x0f, 0xb9, 0x3d\n"
		".long %c[signature]\n"
		"4: jmp %l[aborted]\n"
		".popsection\n"
		:
		: [cs] "m"(area->rseq_cs), [cpu_id] "m"(area->cpu_id), [cpu] "r"(cpu),
		  [counter] "r"(counter), [signature] "i"(RSEQ_SIG)
		: "memory", "cc", "rax", "rcx"
		: aborted);
	/* clang-format on */
	return true;
aborted:
	return false;
}

TARGET_FRAME static void add_routine(void *arg)
{
	struct rseq *area = own_area();
	unsigned long done = 0;

	(void)arg;
	target_arrive();
	while (!atomic_load(&finished)) {
		unsigned cpu = *(volatile unsigned *)&area->cpu_id_start;
		if (cpu < CPUS)
			done += add(area, &counters[cpu].value, cpu);
	}
	atomic_fetch_add(&additions, done);
	atomic_fetch_add(&ended, 1);
	TARGET_KEEP();
}

int main(void)
{
	unsigned long sum = 0;
	char name[32];

	target_init();
	if (__rseq_size == 0)
		return 77;
	for (int i = 0; i < ADDERS; i++) {
		snprintf(name, sizeof(name), "adder-%d", i);
		target_start(name, -1, add_routine, NULL);
	}
	target_wait();
	atomic_store(&finished, true);
	while (atomic_load(&ended) < ADDERS)
		;
	for (int i = 0; i < CPUS; i++)
		sum += counters[i].value;
	printf("lost %lu %lu\n", atomic_load(&additions) - sum, atomic_load(&additions));
	return 0;
}
