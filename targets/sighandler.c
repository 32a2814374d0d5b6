/*
 * Threads that are in a signal handler. Each stack begins with poll, target_block,
 * on_signal and the signal frame (__restore_rt), and ends with thread_routine,
 * target_thread_main, start_thread, clone3. In between:
 *
 * "normal"	(a signal while the thread spins; handler on the thread's stack)
 *		spin, run_normal
 * "altstack"	(the same; handler on an alternate stack)
 *		spin, run_altstack
 * "first-insn"	(a fault at the first instruction of a function: looking up the interrupted
 *		pc minus one would find the function before it)
 *		fault_at_once, run_first_insn
 * "null-call"	(a call through a null pointer: the pc is not mapped)
 *		a frame without a name at pc 0, run_null_call
 * "nested"	(a signal within a handler; the second handler on the alternate stack)
 *		spin, on_outer_signal, the signal frame, spin, run_nested
 */
#include "target.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static atomic_bool never;

/* Spins forever, which the compiler cannot know. */
TARGET_FRAME static void spin(void)
{
	target_arrive();
	while (!atomic_load_explicit(&never, memory_order_relaxed))
		;
	TARGET_KEEP();
}

void fault_before(void);
void fault_at_once(void);

#if defined(__x86_64__) || defined(__i386__)
#define UNDEFINED "ud2"
#else
#define UNDEFINED "udf #0"
#endif

__asm__(".pushsection .text\n"
	".globl fault_before\n"
	".type fault_before, %function\n"
	"fault_before:\n"
	".cfi_startproc\n"
	"nop\n"
	"nop\n"
	".cfi_endproc\n"
	".size fault_before, . - fault_before\n"
	".globl fault_at_once\n"
	".type fault_at_once, %function\n"
	"fault_at_once:\n"
	".cfi_startproc\n"
	UNDEFINED "\n"
	"ret\n"
	".cfi_endproc\n"
	".size fault_at_once, . - fault_at_once\n"
	".popsection\n");

static void (*volatile null_function)(void);

TARGET_FRAME static void run_normal(void)
{
	spin();
	TARGET_KEEP();
}

static void use_altstack(void)
{
	stack_t stack = { .ss_size = 128 << 10 };

	stack.ss_sp = malloc(stack.ss_size);
	if (!stack.ss_sp || sigaltstack(&stack, NULL) < 0)
		target_die("sigaltstack");
}

TARGET_FRAME static void run_altstack(void)
{
	use_altstack();
	spin();
	TARGET_KEEP();
}

TARGET_FRAME static void run_first_insn(void)
{
	fault_at_once();
	TARGET_KEEP();
}

TARGET_FRAME static void run_null_call(void)
{
	null_function();
	TARGET_KEEP();
}

TARGET_FRAME static void run_nested(void)
{
	use_altstack();
	spin();
	TARGET_KEEP();
}

static atomic_bool outer_runs;

TARGET_FRAME static void on_outer_signal(int number)
{
	(void)number;
	atomic_store(&outer_runs, true);
	spin();
	TARGET_KEEP();
}

TARGET_FRAME static void on_signal(int number)
{
	(void)number;
	target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void thread_routine(void *arg)
{
	((void (*)(void))arg)();
	TARGET_KEEP();
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	if (sigaction(number, &action, NULL) < 0)
		target_die("sigaction");
}

/* The thread spins, receives the signal and sleeps in the handler. */
static void start_and_signal(const char *name, void (*run)(void), int number)
{
	struct target_thread *thread = target_start(name, -1, thread_routine, run);

	target_signal(thread, number);
	target_await_syscall(thread, SYS_poll);
}

int main(void)
{
	struct target_thread *nested;

	target_init();
	handle(SIGUSR1, on_signal, 0);
	handle(SIGUSR2, on_signal, SA_ONSTACK);
	handle(SIGHUP, on_outer_signal, 0);
	handle(SIGILL, on_signal, 0);
	handle(SIGSEGV, on_signal, 0);
	start_and_signal("normal", run_normal, SIGUSR1);
	start_and_signal("altstack", run_altstack, SIGUSR2);
	target_start("first-insn", SYS_poll, thread_routine, run_first_insn);
	target_start("null-call", SYS_poll, thread_routine, run_null_call);
	nested = target_start("nested", -1, thread_routine, run_nested);
	target_signal(nested, SIGHUP);
	while (!atomic_load(&outer_runs))
		;
	target_signal(nested, SIGUSR2);
	target_await_syscall(nested, SYS_poll);
	target_wait();
	return 0;
}
