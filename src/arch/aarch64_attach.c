/*
 * Attaching on aarch64. The kernel decides how an interrupted system call continues before
 * a tracer sees the stop (do_signal() in arch/arm64/kernel/signal.c): if it is made again, the
 * program counter is that of its svc instruction, and x0 is its first argument again. The
 * number is in x8. A tracer cannot make a call restart that has returned EINTR: its first argument
 * is lost, and whether a handler will run is not known.
 */
#include "arch/arch.h"

#if defined(__aarch64__)

#include <elf.h>
#include <string.h>

enum { INSTRUCTION = 4, X8 = 8, REGS = 33 };

static const uint32_t svc = 0xd4000001;

/* A thread that is about to enter a call for the first time looks the same. */
static bool is_blocked(const ss_kernel_regs *k)
{
	return k->code[1] == svc;
}

static void get_regs(const ss_kernel_regs *k, struct ss_regs *ret)
{
	memcpy(ret->value, &k->user, REGS * sizeof(uint64_t));
	/* As in /proc/TID/syscall */
	if (is_blocked(k))
		ret->value[ss_arch_aarch64.pc] += INSTRUCTION;
	ret->valid = (UINT64_C(1) << REGS) - 1;
}
_Static_assert(offsetof(struct user_regs_struct, pc) == (REGS - 1) * sizeof(uint64_t),
	       "by DWARF number");

static void get_syscall(const ss_kernel_regs *k, struct ss_syscall *ret)
{
	const bool in_call = is_blocked(k) || k->code[0] == svc;
	const long number = in_call ? (long)k->user.regs[X8] : -1;

	*ret = (struct ss_syscall){ .number = number,
				    .id = ss_arch_syscall_id(&ss_arch_aarch64, number) };
	memcpy(ret->args, k->user.regs, sizeof(ret->args));
}

static bool is_new(const ss_kernel_regs *k)
{
	struct ss_syscall made;

	get_syscall(k, &made);
	return !is_blocked(k) && k->user.regs[0] == 0 &&
	       (made.id == SS_SYS_CLONE || made.id == SS_SYS_CLONE3);
}

static bool is_worker(const ss_kernel_regs *k)
{
	return k->user.pc == 0 && k->user.sp == 0;
}

static uint64_t thread_pointer(const ss_kernel_regs *k)
{
	return k->tls;
}

/* uapi/asm/perf_regs.h: x0 to x29, lr, sp, pc. */
static void from_sample(const uint64_t *values, ss_kernel_regs *ret)
{
	*ret = (ss_kernel_regs){};
	memcpy(&ret->user, values, REGS * sizeof(uint64_t));
}

static bool in_syscall(const ss_kernel_regs *k, const uint8_t *code, size_t size,
		       long *ret)
{
	*ret = (long)k->user.regs[X8];
	return size >= sizeof(svc) &&
	       memcmp(code + size - sizeof(svc), &svc, sizeof(svc)) == 0;
}

static const uint8_t execute_code[] = {
	0xe0, 0x03, 0x03, 0xaa, /* mov x0, x3 */
	0xa8, 0x1b, 0x80, 0xd2, /* mov x8, #SYS_execve */
	0x01, 0x00, 0x00, 0xd4, /* svc #0 */
	0xe0, 0x0f, 0x80, 0xd2, /* mov x0, #127 */
	0xc8, 0x0b, 0x80, 0xd2, /* mov x8, #SYS_exit_group */
	0x01, 0x00, 0x00, 0xd4, /* svc #0 */
	0x00, 0x00, 0x20, 0xd4, /* brk #0 */
	0x00, 0x00, 0x20, 0xd4, /* brk #0 */
};
_Static_assert(sizeof(execute_code) % 8 == 0, "words");

static void set_execute(ss_kernel_regs *k, uint64_t path, uint64_t argv, uint64_t envp)
{
	/* The kernel writes the result of the execve(2) that is ending to x0. */
	k->user.regs[3] = path;
	k->user.regs[1] = argv;
	k->user.regs[2] = envp;
}

static const char *const safe_entries[] = { "__arm64_sys_futex+", "sys_sched_yield+",
					    NULL };

const struct ss_arch_attach ss_aarch64_attach = {
	.sets = { { NT_PRSTATUS, offsetof(ss_kernel_regs, user),
		    sizeof(struct user_regs_struct) },
		  { NT_ARM_TLS, offsetof(ss_kernel_regs, tls), sizeof(uint64_t) } },
	.code = { .at = offsetof(ss_kernel_regs, code), .size = 2 * INSTRUCTION },
	.code_before = INSTRUCTION,
	.regs = get_regs,
	.syscall = get_syscall,
	.is_blocked = is_blocked,
	.is_new = is_new,
	.is_worker = is_worker,
	.thread_pointer = thread_pointer,
	.sample_mask = (UINT64_C(1) << REGS) - 1,
	.from_sample = from_sample,
	.in_syscall = in_syscall,
	.probe_sp = "%sp",
	.probe_return = "%lr",
	.probe_args = { "%x0", "%x1", "%x2", "%x3", "%x4", "%x5" },
	.execute_code = execute_code,
	.execute_size = sizeof(execute_code),
	.set_execute = set_execute,
	.syscall_entries = (const char *const[]){ "el0_svc", NULL },
	.safe_entries = safe_entries,
};

#endif
