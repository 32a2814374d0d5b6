/* What x86_64.c and i386.c have in common: calls and jumps have the same encoding, and a tracer
   of 64 bits gets the same registers of both. */
#ifndef SS_ARCH_X86_H
#define SS_ARCH_X86_H

#include "arch/arch.h"

bool ss_x86_is_call(const uint8_t *before, size_t size);
bool ss_x86_call_target(const uint8_t *before, size_t size, uint64_t pc, uint64_t *ret);
bool ss_x86_next_jump(const uint8_t *code, size_t size, uint64_t address, size_t *at,
		      uint64_t *ret);

/* mov $number, %eax; and an instruction of two bytes that enters the kernel */
long ss_x86_entered_syscall(const uint8_t *code, size_t size, uint8_t enter0,
			    uint8_t enter1);

#if defined(__x86_64__)

/* Of struct ss_arch_attach. */
bool ss_x86_is_blocked(const struct ss_arch *arch, const ss_kernel_regs *k);
bool ss_x86_is_new(const struct ss_arch *arch, const ss_kernel_regs *k);
bool ss_x86_is_worker(const ss_kernel_regs *kernel);
const struct ss_arch *ss_x86_executes(const ss_kernel_regs *kernel);
bool ss_x86_undo_eintr(const struct ss_arch *arch, ss_kernel_regs *k);
bool ss_x86_avoid_restart_syscall(const struct ss_arch *arch, ss_kernel_regs *k);
bool ss_x86_in_syscall(const struct ss_arch *arch, const ss_kernel_regs *k,
		       const uint8_t *code, size_t size, uint8_t enter0, uint8_t enter1);

/* uapi/asm/perf_regs.h: ax to ss, then r8 to r15; without ds, es, fs and gs, which the
   kernel does not sample. */
enum { SS_X86_SAMPLE_MASK = 0xff0fff };
void ss_x86_from_sample(const uint64_t *values, ss_kernel_regs *ret);

#define SS_X86_ATTACH                                                                    \
	.sets = { { NT_PRSTATUS, 0, sizeof(ss_kernel_regs) } },                          \
	.get_regs = PTRACE_GETREGS, .set_regs = PTRACE_SETREGS,                          \
	.executes = ss_x86_executes, .is_worker = ss_x86_is_worker,                      \
	.sample_mask = SS_X86_SAMPLE_MASK, .from_sample = ss_x86_from_sample

#endif

#endif
