#include "arch/arch.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

/* DWARF register numbers, System V psABI for x86-64, table 3.36. */
enum {
	RAX,
	RDX,
	RCX,
	RBX,
	RSI,
	RDI,
	RBP,
	RSP,
	R8,
	R9,
	R10,
	R11,
	R12,
	R13,
	R14,
	R15,
	RIP,
	REG_COUNT,
};

/* Kernel-internal (include/linux/errno.h): restart, unless a handler runs. */
enum { ERESTARTNOHAND = 514 };

const struct ss_arch ss_arch = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.elf_class = ELFCLASS64,
	.pc = RIP,
	.sp = RSP,
	.fp = RBP,
	.reg_count = REG_COUNT,
	.red_zone = 128,
};

void ss_arch_regs(const ss_kernel_regs *k, struct ss_regs *ret)
{
	const uint64_t values[REG_COUNT] = {
		[RAX] = k->rax, [RDX] = k->rdx, [RCX] = k->rcx, [RBX] = k->rbx,
		[RSI] = k->rsi, [RDI] = k->rdi, [RBP] = k->rbp, [RSP] = k->rsp,
		[R8] = k->r8,	[R9] = k->r9,	[R10] = k->r10, [R11] = k->r11,
		[R12] = k->r12, [R13] = k->r13, [R14] = k->r14, [R15] = k->r15,
		[RIP] = k->rip,
	};

	memcpy(ret->value, values, sizeof(values));
	ret->valid = (UINT64_C(1) << REG_COUNT) - 1;
}

uint64_t ss_arch_thread_pointer(const ss_kernel_regs *k)
{
	return k->fs_base;
}

void ss_arch_regs_partial(uint64_t pc, uint64_t sp, struct ss_regs *ret)
{
	ret->valid = 0;
	ss_regs_set(ret, RIP, pc);
	ss_regs_set(ret, RSP, sp);
}

void ss_arch_syscall(const ss_kernel_regs *k, struct ss_syscall *ret)
{
	*ret = (struct ss_syscall){ .number = (long)k->orig_rax,
				    .args = { k->rdi, k->rsi, k->rdx, k->r10, k->r8,
					      k->r9 } };
}

/*
 * Calls that answer -EINTR to any interruption and take their timeout as a
 * pointer (NULL: for ever) or as milliseconds (negative: for ever). accept and
 * recv are in that group only with SO_RCVTIMEO, so never infinite.
 */
struct eintr_call {
	long number;
	int timeout_arg; /* -1: the call has none */
	bool is_pointer;
};

static const struct eintr_call eintr_calls[] = {
	{ SYS_epoll_wait, 3, false },  { SYS_epoll_pwait, 3, false },
	{ SYS_epoll_pwait2, 3, true }, { SYS_semop, -1, false },
	{ SYS_semtimedop, 3, true },   { SYS_rt_sigtimedwait, 2, true },
	{ SYS_io_getevents, 4, true },
};

static bool waits_for_ever(const struct eintr_call *call, const struct ss_syscall *made)
{
	if (call->timeout_arg < 0)
		return true;
	uint64_t timeout = made->args[call->timeout_arg];
	/* Any negative int is "for ever" to epoll (eventpoll.c, ep_timeout_to_timespec).
	 */
	return call->is_pointer ? timeout == 0 : (int32_t)(uint32_t)timeout < 0;
}

bool ss_arch_cure_eintr(ss_kernel_regs *k)
{
	struct ss_syscall made;

	if ((int64_t)k->rax != -EINTR)
		return false;
	ss_arch_syscall(k, &made);
	for (size_t i = 0; i < sizeof(eintr_calls) / sizeof(eintr_calls[0]); i++) {
		if (eintr_calls[i].number == made.number &&
		    waits_for_ever(&eintr_calls[i], &made)) {
			k->rax = (unsigned long long)-ERESTARTNOHAND;
			return true;
		}
	}
	return false;
}

/* Offsets in 8-byte words from uc_stack, kernel's struct ucontext (asm-generic) and
   struct sigcontext_64: ss_sp, ss_flags, ss_size, then the registers from r8 on. */
enum { UC_STACK_SIZE = 2, UC_RSP = 3 + 15, UC_WORDS = UC_RSP + 1 };

enum { ALTERNATE_MIN = 2048, ALTERNATE_MAX = 64 << 20 };

bool ss_arch_find_alternate(const uint8_t *bytes, size_t size, uint64_t address,
			    uint64_t *ret)
{
	size_t first = (8 - address % 8) % 8;

	for (size_t at = first; at + UC_WORDS * 8 <= size; at += 8) {
		uint64_t words[UC_WORDS];
		uint64_t here = address + at;
		memcpy(words, bytes + at, 8);
		if (words[0] == 0 || words[0] > here || here - words[0] >= ALTERNATE_MAX)
			continue;
		memcpy(words, bytes + at, sizeof(words));
		uint64_t stack_size = words[UC_STACK_SIZE];
		if (stack_size < ALTERNATE_MIN || stack_size > ALTERNATE_MAX ||
		    here - words[0] >= stack_size || words[1] >> 32)
			continue;
		/* The interrupted stack is another one, or nothing has to be looked for.
		 */
		if (words[UC_RSP] - words[0] < stack_size || words[UC_RSP] == 0)
			continue;
		*ret = words[UC_RSP];
		return true;
	}
	return false;
}

/* mov $__NR_rt_sigreturn, %rax (or %eax); syscall */
static const uint8_t sigreturn_rax[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t sigreturn_eax[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

bool ss_arch_is_sigreturn(const uint8_t *code, size_t size)
{
	return (size >= sizeof(sigreturn_rax) &&
		memcmp(code, sigreturn_rax, sizeof(sigreturn_rax)) == 0) ||
	       (size >= sizeof(sigreturn_eax) &&
		memcmp(code, sigreturn_eax, sizeof(sigreturn_eax)) == 0);
}

/* ModRM byte of "call r/m64" (ff /2), and the length of that instruction. */
static bool is_indirect_call(const uint8_t *code, size_t length)
{
	if (code[0] != 0xff || (code[1] & 0x38) != 0x10)
		return false;
	unsigned mode = code[1] >> 6;
	bool sib = mode != 3 && (code[1] & 7) == 4;
	size_t wanted = 2u + sib;
	if (mode == 1)
		wanted += 1;
	else if (mode == 2 || (mode == 0 && (code[1] & 7) == 5))
		wanted += 4;
	else if (mode == 0 && sib && length > 2 && (code[2] & 7) == 5)
		wanted += 4;
	return wanted == length;
}

bool ss_arch_is_call(const uint8_t *before, size_t size)
{
	if (size >= 5 && before[size - 5] == 0xe8) /* call rel32 */
		return true;
	for (size_t length = 2; length <= 7 && length <= size; length++) {
		if (is_indirect_call(before + size - length, length))
			return true;
	}
	return false;
}
