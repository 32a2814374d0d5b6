/*
 * The registers of a thread that is stopped by ptrace(2), whose tracer is the calling thread.
 */
#ifndef SS_PROCESS_REGISTERS_H
#define SS_PROCESS_REGISTERS_H

#include <sys/types.h>

#include "arch/arch.h"

/* False: the thread is not stopped. *ret_arch: the processor whose code it executes; NULL: none
   that is supported here. */
bool ss_registers_read(pid_t tid, ss_kernel_regs *ret, const struct ss_arch **ret_arch);

/* False: the thread was killed. */
bool ss_registers_write(pid_t tid, const ss_kernel_regs *regs);

#endif
