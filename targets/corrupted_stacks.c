/*
 * Threads whose stacks are corrupted or at unusual addresses. Where not noted otherwise,
 * a stack begins with poll, target_block if the thread calls block(), and ends with
 * thread_routine, target_thread_main, start_thread, clone3.
 *
 * "bad-unmapped"	a call through a pointer to unmapped memory, which raised a signal:
 * "bad-data"		the same through a pointer to data: on_signal, __restore_rt, a frame
 *			without a name, run_bad_..., and the usual end
 * "smashed"		smash, then a return address that is invalid
 * "self-frame"		self_frame (no CFI), whose saved frame pointer points to itself and
 *			whose return address is within self_frame
 * "first-frame"	first_frame (no CFI, frame pointer 0), nobody_called: like the first
 *			function of a goroutine, which was entered by a jump
 * "cfi-loop"		cfi_loop, whose CFI claims that it was called by itself, at the same
 *			place
 * "cfi-far"		cfi_far, whose CFI claims that its caller's frame is far away
 * "sp-nowhere"		sp_nowhere, with stack pointer 16, in pause()
 * "sp-last"		sp_last, whose stack pointer is at the end of the address space, and
 *			whose frame pointer is right, in poll(), then the usual end
 * "cfi-lowest"		cfi_lowest, whose CFI claims that it saved a register as far below its
 *			frame as an int reaches
 * "coroutine"		in_coroutine, coroutine, __start_context: on a stack of
 *			makecontext()
 * "mapped-stack"	the same on a stack from mmap(), between unmapped pages
 */
#include "target.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { CONTEXT_STACK = 64 << 10 };

void self_frame(void);
void first_frame(void);
void cfi_loop(void);
void cfi_far(void);
void sp_nowhere(void);
void sp_last(void);
void cfi_lowest(void);

#define FUNCTION(name, body)                                                             \
	".globl " name "\n.type " name ", @function\n" name ":\n" body ".size " name     \
	", . - " name "\n"

__asm__(".pushsection .text\n" FUNCTION(
	"self_frame",
	"push %rbp\n"
	"mov %rsp, %rbp\n"
	"mov %rbp, (%rbp)\n"
	"lea 1f(%rip), %rax\n"
	"mov %rax, 8(%rbp)\n"
	"call block\n"
	"1: jmp 1b\n") FUNCTION("nobody_called",
				"nop\n"
				"2: nop\n"
				"jmp 2b\n") FUNCTION("first_frame", "and $-16, %rsp\n"
								    "lea 2b(%rip), %rax\n"
								    "push %rax\n"
								    "push $0\n"
								    "mov %rsp, %rbp\n"
								    "call block\n"
								    "1: jmp 1b\n")
		FUNCTION("cfi_loop",
			 ".cfi_startproc\n"
			 "sub $8, %rsp\n"
			 ".cfi_def_cfa rsp, 0\n"
			 ".cfi_offset rip, 0\n"
			 "lea 1f(%rip), %rax\n"
			 "mov %rax, (%rsp)\n"
			 "call block\n"
			 "1: jmp 1b\n"
			 ".cfi_endproc\n") FUNCTION("cfi_far",
						    ".cfi_startproc\n"
						    "sub $8, %rsp\n"
						    ".cfi_def_cfa rsp, 0x70000000\n"
						    "call block\n"
						    "1: jmp 1b\n"
						    ".cfi_endproc\n")
			FUNCTION("sp_nowhere", ".cfi_startproc\n"
					       "sub $8, %rsp\n"
					       ".cfi_def_cfa_offset 16\n"
					       "call target_arrive\n"
					       "mov $16, %rsp\n"
					       "1: mov $34, %eax\n" /* pause */
					       "syscall\n"
					       "jmp 1b\n"
					       ".cfi_endproc\n")
				FUNCTION("sp_last",
					 ".cfi_startproc\n"
					 "push %rbp\n"
					 ".cfi_def_cfa rsp, 16\n"
					 ".cfi_offset rbp, -16\n"
					 "mov %rsp, %rbp\n"
					 ".cfi_def_cfa_register rbp\n"
					 "sub $64, %rsp\n"
					 "call target_arrive\n"
					 "mov $-72, %rsp\n"  /* 64 + 8 */
					 "1: mov $7, %eax\n" /* poll(NULL, 0, -1) */
					 "xor %edi, %edi\n"
					 "xor %esi, %esi\n"
					 "mov $-1, %edx\n"
					 "syscall\n"
					 "jmp 1b\n"
					 ".cfi_endproc\n")
					FUNCTION("cfi_lowest",
						 ".cfi_startproc\n"
						 "push %rbp\n"
						 ".cfi_def_cfa rsp, 16\n"
						 ".cfi_offset rbp, -16\n"
						 "mov %rsp, %rbp\n"
						 ".cfi_def_cfa_register rbp\n"
						 ".cfi_offset rbx, "
						 "-2147483648\n"
						 "sub $64, %rsp\n"
						 "call block\n"
						 "1: jmp 1b\n"
						 ".cfi_endproc\n") ".popsection\n");

__attribute__((used)) TARGET_FRAME void block(void)
{
	target_block();
	TARGET_KEEP();
}

static char data[64] __attribute__((aligned(16)));
static void *nowhere;

TARGET_FRAME static void call_pointer(void *pointer)
{
	void (*volatile function)(void);

	memcpy((void *)&function, &pointer, sizeof(pointer));
	function();
	TARGET_KEEP();
}

/* The number of words between its frame and the return address is unknown, so it
   overwrites everything that it can reach of its own frame and its caller's. */
TARGET_FRAME static void smash(void)
{
	uint64_t *frame = __builtin_frame_address(0);

	frame[0] = frame[1] = UINT64_C(0x4141414141414141);
	block();
	TARGET_KEEP();
}

TARGET_FRAME static void in_coroutine(void)
{
	block();
	TARGET_KEEP();
}

TARGET_FRAME static void coroutine(void)
{
	in_coroutine();
	TARGET_KEEP();
}

static void run_on(void *stack)
{
	ucontext_t here;
	ucontext_t there;

	if (getcontext(&there) < 0)
		target_die("getcontext");
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = CONTEXT_STACK;
	there.uc_link = &here;
	makecontext(&there, coroutine, 0);
	swapcontext(&here, &there);
}

static void *map_apart(void)
{
	enum { APART = 4 << 20 };
	char *all = mmap(NULL, APART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED ||
	    mprotect(all + APART / 2, CONTEXT_STACK, PROT_READ | PROT_WRITE) < 0)
		target_die("mmap");
	return all + APART / 2;
}

TARGET_FRAME static void on_signal(int number)
{
	(void)number;
	block();
	TARGET_KEEP();
}

static char context_stack[CONTEXT_STACK] __attribute__((aligned(16)));

TARGET_FRAME static void thread_routine(void *arg)
{
	const char *what = arg;

	if (strcmp(what, "bad-unmapped") == 0)
		call_pointer(nowhere);
	else if (strcmp(what, "bad-data") == 0)
		call_pointer(data);
	else if (strcmp(what, "smashed") == 0)
		smash();
	else if (strcmp(what, "self-frame") == 0)
		self_frame();
	else if (strcmp(what, "first-frame") == 0)
		first_frame();
	else if (strcmp(what, "cfi-loop") == 0)
		cfi_loop();
	else if (strcmp(what, "cfi-far") == 0)
		cfi_far();
	else if (strcmp(what, "sp-nowhere") == 0)
		sp_nowhere();
	else if (strcmp(what, "sp-last") == 0)
		sp_last();
	else if (strcmp(what, "cfi-lowest") == 0)
		cfi_lowest();
	else if (strcmp(what, "coroutine") == 0)
		run_on(context_stack);
	else if (strcmp(what, "mapped-stack") == 0)
		run_on(map_apart());
	TARGET_KEEP();
}

int main(void)
{
	static const char *const names[] = {
		"bad-unmapped", "bad-data",  "smashed",	     "self-frame",  "cfi-loop",
		"cfi-far",	"coroutine", "mapped-stack", "first-frame", "cfi-lowest"
	};
	struct sigaction action = { .sa_handler = on_signal };

	target_init();
	if (sigaction(SIGSEGV, &action, NULL) < 0)
		target_die("sigaction");
	nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(nowhere, 4096);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		target_start(names[i], SYS_poll, thread_routine, (void *)names[i]);
	target_start("sp-nowhere", SYS_pause, thread_routine, (void *)"sp-nowhere");
	target_start("sp-last", SYS_poll, thread_routine, (void *)"sp-last");
	target_wait();
	return 0;
}
