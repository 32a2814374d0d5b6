/*
 * Code without unwind tables that takes as long as possible to search for the calls and jumps that
 * may have led to the innermost frames.
 *
 * hostile_calls [THREADS]
 *
 * Threads "hostile": [code without a function], and nothing that is true: the stack has only return
 * addresses of calls that lead elsewhere.
 */
#include "target.h"

#include <stdint.h>
#include <sys/syscall.h>

enum { CALL = 5, CALLS = 512, SITE = 16, SITES = 256, WORDS = 600 };

/* clang-format off */
__asm__(
	".text\n"
	".p2align 16\n"
	"blocks:\n" /* of 64 KiB, of jumps to other modules */
	".rept 16\n"
	"	.rept 13107\n"
	"	.byte 0xe9\n"
	"	.long 0x20000000\n"
	"	.endr\n"
	"	nop\n"
	".endr\n"
	"calls:\n" /* of each block */
	".set number, 0\n"
	".rept 512\n"
	"	.byte 0xe8\n"
	"	.long blocks + (number % 16) * 65536 - . - 4\n"
	"	.set number, number + 1\n"
	".endr\n"
	".p2align 4\n"
	"sites:\n"
	".rept 256\n"
	"	syscall\n"
	"	ud2\n"
	"	.p2align 4\n"
	".endr\n");
/* clang-format on */

extern const char calls[] __attribute__((visibility("hidden")));
extern const char sites[] __attribute__((visibility("hidden")));

static void hostile_routine(void *site)
{
	volatile uint64_t words[WORDS];

	for (size_t i = 0; i < WORDS; i++)
		words[i] = (uintptr_t)calls + CALL * (1 + i % CALLS);
	target_arrive();
	__asm__ volatile("mov %0, %%rsp\n"
			 "xor %%ebp, %%ebp\n"
			 "jmp *%1\n"
			 :
			 : "r"(words), "r"(site), "a"((long)SYS_pause)
			 : "memory");
}

int main(int argc, char **argv)
{
	const unsigned count = target_number(argc, argv, 1, SITES);

	target_init();
	for (unsigned i = 0; i < count; i++)
		target_start("hostile", SYS_pause, hostile_routine,
			     (void *)(uintptr_t)(sites + i % SITES * SITE));
	target_wait();
	return 0;
}
