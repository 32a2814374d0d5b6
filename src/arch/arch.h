/*
 * The processor: kernel register set, DWARF numbers, syscall arguments, and the
 * cure for EINTR. One file per processor implements this header; the build picks
 * it. Nothing outside arch/ has an #if on the processor.
 */
#ifndef SS_ARCH_ARCH_H
#define SS_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

enum { SS_REG_MAX = 33, SS_SYSCALL_ARGS = 6 };

/* Registers by DWARF number (x86-64: System V psABI, table 3.36). */
struct ss_regs {
	uint64_t value[SS_REG_MAX];
	uint64_t valid; /* bit n: value[n] is known */
};

/* A system call in which a thread is blocked. */
struct ss_syscall {
	long number; /* -1: none */
	uint64_t args[SS_SYSCALL_ARGS];
};

struct ss_arch {
	const char *name;
	uint16_t elf_machine; /* EM_... */
	uint8_t elf_class;    /* ELFCLASS... */
	uint8_t pc;	      /* DWARF numbers */
	uint8_t sp;
	uint8_t fp;
	uint8_t reg_count;
	uint16_t red_zone; /* bytes below sp that a leaf function may use */
};

extern const struct ss_arch ss_arch;

/* The kernel's register set (NT_PRSTATUS) of a stopped thread. */
typedef struct user_regs_struct ss_kernel_regs;

void ss_arch_regs(const ss_kernel_regs *kernel, struct ss_regs *ret);

/* The system call in which the thread stood when it was stopped; number -1: it
   was in user space. */
void ss_arch_syscall(const ss_kernel_regs *kernel, struct ss_syscall *ret);

/* Whether the stop interrupted a wait in that system call, which it will make again:
   otherwise the call is about to return. */
bool ss_arch_is_blocked(const ss_kernel_regs *kernel);

/* Whether the thread has just been made, by clone(2) or the like, and has not run yet. */
bool ss_arch_is_newborn(const ss_kernel_regs *kernel);

/* Whether these are the registers of a thread that the kernel made for itself within the
   process: it has never been outside of the kernel. */
bool ss_arch_is_worker(const ss_kernel_regs *kernel);

/* What thread-local storage is reached by: the pthread_t of glibc and musl. */
uint64_t ss_arch_thread_pointer(const ss_kernel_regs *kernel);

/* Only pc and sp are known. */
void ss_arch_regs_partial(uint64_t pc, uint64_t sp, struct ss_regs *ret);

/* The same for a thread in a system call, if call.number is not -1: the kernel keeps
   the registers of its arguments as they were. */
void ss_arch_regs_blocked(uint64_t pc, uint64_t sp, const struct ss_syscall *call,
			  struct ss_regs *ret);

/*
 * Some calls return EINTR after any interruption, also by ptrace. Where the
 * thread is in such a call, with an infinite wait and -EINTR as its result,
 * this rewrites the result to -ERESTARTNOHAND: the kernel then restarts the call,
 * or returns EINTR if a signal handler really runs. True: kernel was changed and
 * must be written back. Follows arch/x86/kernel/signal.c, signal(7).
 */
bool ss_arch_cure_eintr(ss_kernel_regs *kernel);

/*
 * Looks for the frame that the kernel pushes for a signal handler on an alternate
 * stack (struct rt_sigframe), in size bytes of a stack that begin at address. True:
 * *ret is the interrupted stack pointer.
 */
bool ss_arch_find_alternate(const uint8_t *bytes, size_t size, uint64_t address,
			    uint64_t *ret);

/* Whether code is the signal trampoline to which a handler returns. */
bool ss_arch_is_sigreturn(const uint8_t *code, size_t size);
enum { SS_SIGRETURN_SIZE = 9 };

/*
 * The call that goes on as restart_syscall(2) after a stop: code is what precedes the
 * program counter, where C libraries load the number right before they enter the
 * kernel. -1: that cannot be told, or it is none of the calls that are restarted so.
 */
long ss_arch_restarted_call(const uint8_t *code, size_t size);
enum { SS_RESTARTED_SIZE = 7 };

/*
 * Finds, from *at on in size bytes of code that lie at address, the next call with a
 * constant address as its first argument, as that of a global is. True: *ret is that
 * address, *at is where the call is. What is looked for is SS_ARGUMENT_MAX bytes long at
 * most.
 */
bool ss_arch_next_argument(const uint8_t *code, size_t size, uint64_t address, size_t *at,
			   uint64_t *ret);
enum { SS_ARGUMENT_MAX = 12 };

/* Whether the bytes before a return address end in a call instruction. */
bool ss_arch_is_call(const uint8_t *before, size_t size);
enum { SS_CALL_MAX = 8 };

/*
 * How far below the frame pointer a function has its stack pointer, as its first
 * instructions say: it keeps the caller's frame pointer there and then moves by a constant.
 * False: they do not say.
 */
bool ss_arch_frame_size(const uint8_t *code, size_t size, uint64_t *ret);
enum { SS_PROLOGUE_MAX = 32 };

/* The address that a call instruction which ends the bytes before pc calls. False: it does
   not say, or is none. */
bool ss_arch_call_target(const uint8_t *before, size_t size, uint64_t pc, uint64_t *ret);

static inline bool ss_regs_get(const struct ss_regs *regs, unsigned reg, uint64_t *ret)
{
	if (reg >= SS_REG_MAX || !(regs->valid >> reg & 1))
		return false;
	*ret = regs->value[reg];
	return true;
}

static inline void ss_regs_set(struct ss_regs *regs, unsigned reg, uint64_t value)
{
	regs->value[reg] = value;
	regs->valid |= UINT64_C(1) << reg;
}

static inline uint64_t ss_regs_pc(const struct ss_regs *regs)
{
	return regs->value[ss_arch.pc];
}

static inline uint64_t ss_regs_sp(const struct ss_regs *regs)
{
	return regs->value[ss_arch.sp];
}

#endif
