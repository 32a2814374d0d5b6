/*
 * Calls that are the last instruction of their function. The return address belongs to
 * the next function, so that a lookup without subtracting one finds the wrong name.
 *
 * Thread "caller":	poll, target_block, never_returns, calls_last, calls_first,
 *			thread_routine, target_thread_main, start_thread, clone3
 */
#include "target.h"

#include <sys/syscall.h>

__attribute__((noreturn)) void never_returns(void);
void calls_last(void);
void after_calls_last(void);
void calls_first(void);
void after_calls_first(void);

/* In assembly, so that no instruction follows the calls. */
__asm__(".pushsection .text\n"
	".globl calls_last\n"
	".type calls_last, @function\n"
	"calls_last:\n"
	".cfi_startproc\n"
	"sub $8, %rsp\n"
	".cfi_adjust_cfa_offset 8\n"
	"call never_returns\n"
	".cfi_endproc\n"
	".size calls_last, . - calls_last\n"
	".globl after_calls_last\n"
	".type after_calls_last, @function\n"
	"after_calls_last:\n"
	".cfi_startproc\n"
	"sub $4096, %rsp\n"
	".cfi_adjust_cfa_offset 4096\n"
	"add $4096, %rsp\n"
	".cfi_adjust_cfa_offset -4096\n"
	"ret\n"
	".cfi_endproc\n"
	".size after_calls_last, . - after_calls_last\n"
	".globl calls_first\n"
	".type calls_first, @function\n"
	"calls_first:\n"
	".cfi_startproc\n"
	"sub $24, %rsp\n"
	".cfi_adjust_cfa_offset 24\n"
	"call calls_last\n"
	".cfi_endproc\n"
	".size calls_first, . - calls_first\n"
	".globl after_calls_first\n"
	".type after_calls_first, @function\n"
	"after_calls_first:\n"
	".cfi_startproc\n"
	"ret\n"
	".cfi_endproc\n"
	".size after_calls_first, . - after_calls_first\n"
	".popsection\n");

TARGET_FRAME void never_returns(void)
{
	for (;;)
		target_block();
}

TARGET_FRAME static void thread_routine(void *arg)
{
	(void)arg;
	calls_first();
	TARGET_KEEP();
}

int main(void)
{
	target_init();
	target_start("caller", SYS_poll, thread_routine, NULL);
	target_wait();
	return 0;
}
