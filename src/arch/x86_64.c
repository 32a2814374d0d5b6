#include "arch/arch.h"

#include <elf.h>
#include <errno.h>
#include <linux/io_uring.h>
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

/* Kernel-internal (include/linux/errno.h): what an interrupted call is to do. */
enum {
	ERESTARTSYS = 512,
	ERESTARTNOINTR = 513,
	ERESTARTNOHAND = 514, /* restart, unless a handler runs */
	ERESTART_RESTARTBLOCK = 516,
};

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

bool ss_arch_is_worker(const ss_kernel_regs *kernel)
{
	return kernel->rip == 0 && kernel->rsp == 0;
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

void ss_arch_regs_blocked(uint64_t pc, uint64_t sp, const struct ss_syscall *call,
			  struct ss_regs *ret)
{
	static const unsigned registers[SS_SYSCALL_ARGS] = { RDI, RSI, RDX, R10, R8, R9 };

	ss_arch_regs_partial(pc, sp, ret);
	for (size_t i = 0; i < SS_SYSCALL_ARGS && call->number >= 0; i++)
		ss_regs_set(ret, registers[i], call->args[i]);
}

void ss_arch_syscall(const ss_kernel_regs *k, struct ss_syscall *ret)
{
	*ret = (struct ss_syscall){ .number = (long)k->orig_rax,
				    .args = { k->rdi, k->rsi, k->rdx, k->r10, k->r8,
					      k->r9 } };
}

bool ss_arch_is_blocked(const ss_kernel_regs *k)
{
	int64_t result = (int64_t)k->rax;

	return (long)k->orig_rax >= 0 &&
	       (result == -ERESTARTSYS || result == -ERESTARTNOINTR ||
		result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK);
}

/* In its maker the call returns an id, which is never 0. */
bool ss_arch_is_newborn(const ss_kernel_regs *k)
{
	long call = (long)k->orig_rax;

	return k->rax == 0 && (call == SYS_clone || call == SYS_clone3 ||
			       call == SYS_fork || call == SYS_vfork);
}

/* How a call says that it waits for ever, in the argument of that number. */
enum infinite {
	ALWAYS, /* it has no timeout */
	NULL_POINTER,
	NEGATIVE,	 /* milliseconds, an int (eventpoll.c, ep_timeout_to_timespec) */
	WITHOUT_EXT_ARG, /* flags of io_uring_enter(2): the timeout is in the ext arg */
};

/*
 * Calls that answer -EINTR to any interruption. accept and recv are among them only
 * with SO_RCVTIMEO, so never infinite.
 */
struct eintr_call {
	long number;
	enum infinite infinite;
	int arg;
};

static const struct eintr_call eintr_calls[] = {
	{ SYS_epoll_wait, NEGATIVE, 3 },
	{ SYS_epoll_pwait, NEGATIVE, 3 },
	{ SYS_epoll_pwait2, NULL_POINTER, 3 },
	{ SYS_semop, ALWAYS, 0 },
	{ SYS_semtimedop, NULL_POINTER, 3 },
	{ SYS_rt_sigtimedwait, NULL_POINTER, 2 },
	{ SYS_io_getevents, NULL_POINTER, 4 },
	/* It answers -EINTR only if it has submitted nothing: it can be made again. */
	{ SYS_io_uring_enter, WITHOUT_EXT_ARG, 3 },
};

static bool waits_for_ever(const struct eintr_call *call, const struct ss_syscall *made)
{
	uint64_t value = made->args[call->arg];

	switch (call->infinite) {
	case NULL_POINTER:
		return value == 0;
	case NEGATIVE:
		return (int32_t)(uint32_t)value < 0;
	case WITHOUT_EXT_ARG:
		return !(value & IORING_ENTER_EXT_ARG);
	default:
		return true;
	}
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

/* SS_ONSTACK, SS_DISABLE, SS_AUTODISARM. The other half of the word is padding, which
   the kernel leaves as it was. */
static const uint32_t stack_flags = 1u | 2u | 1u << 31;

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
		    here - words[0] >= stack_size || ((uint32_t)words[1] & ~stack_flags))
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

/* mov $number, %eax; syscall */
long ss_arch_restarted_call(const uint8_t *code, size_t size)
{
	static const long restarted[] = { SYS_poll, SYS_nanosleep, SYS_clock_nanosleep,
					  SYS_futex };
	uint32_t number;

	if (size < SS_RESTARTED_SIZE)
		return -1;
	code += size - SS_RESTARTED_SIZE;
	if (code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05)
		return -1;
	memcpy(&number, code + 1, sizeof(number));
	for (size_t i = 0; i < sizeof(restarted) / sizeof(restarted[0]); i++) {
		if (restarted[i] == (long)number)
			return restarted[i];
	}
	return -1;
}

/* "call rel32", "call *disp32(%rip)", or what a linker makes of the second one. */
static bool begins_call(const uint8_t *code, size_t size)
{
	return (size >= 1 && code[0] == 0xe8) ||
	       (size >= 2 && code[0] == 0xff && code[1] == 0x15) ||
	       (size >= 2 && code[0] == 0x67 && code[1] == 0xe8);
}

/* The first argument is in rdi (System V psABI 3.2.3): "lea disp32(%rip), %rdi", by way of
   another register which keeps it for later, or "mov $imm32, %edi". The length, or 0: none
   of them. */
static size_t read_argument(const uint8_t *code, size_t size, uint64_t address,
			    uint64_t *ret)
{
	uint32_t absolute;
	int32_t relative;

	if (size >= 5 && code[0] == 0xbf) {
		memcpy(&absolute, code + 1, sizeof(absolute));
		*ret = absolute;
		return 5;
	}
	/* The register is in bits 3 to 5 of the third byte, and bit 2 of the first one. */
	if (size < 7 || (code[0] & 0xfb) != 0x48 || code[1] != 0x8d ||
	    (code[2] & 0xc7) != 0x05)
		return 0;
	memcpy(&relative, code + 3, sizeof(relative));
	*ret = address + 7 + (uint64_t)(int64_t)relative;
	if (code[0] == 0x48 && code[2] == 0x3d)
		return 7;
	const uint8_t move[] = { code[0], 0x89, (uint8_t)(code[2] ^ 0xc2) };
	return size >= 10 && memcmp(code + 7, move, sizeof(move)) == 0 ? 10 : 0;
}

bool ss_arch_next_argument(const uint8_t *code, size_t size, uint64_t address, size_t *at,
			   uint64_t *ret)
{
	for (size_t i = *at; i < size; i++) {
		size_t length = read_argument(code + i, size - i, address + i, ret);
		*at = i + length;
		if (length && begins_call(code + *at, size - *at))
			return true;
	}
	return false;
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

bool ss_arch_call_target(const uint8_t *before, size_t size, uint64_t pc, uint64_t *ret)
{
	int32_t relative;

	if (size < 5 || before[size - 5] != 0xe8)
		return false;
	memcpy(&relative, before + size - sizeof(relative), sizeof(relative));
	*ret = pc + (uint64_t)(int64_t)relative;
	return true;
}

static bool skip(const uint8_t **at, const uint8_t *end, const char *bytes, size_t size)
{
	if ((size_t)(end - *at) < size || memcmp(*at, bytes, size) != 0)
		return false;
	*at += size;
	return true;
}

/* push of a register that a function keeps for its caller: rbx, r12 to r15 */
static bool skip_push(const uint8_t **at, const uint8_t *end)
{
	if (skip(at, end, "\x53", 1))
		return true;
	if (end - *at < 2 || (*at)[0] != 0x41 || (*at)[1] < 0x54 || (*at)[1] > 0x57)
		return false;
	*at += 2;
	return true;
}

bool ss_arch_frame_size(const uint8_t *code, size_t size, uint64_t *ret)
{
	const uint8_t *at = code;
	const uint8_t *end = code + size;
	int32_t moved = 0;

	(void)skip(&at, end, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	if (!skip(&at, end, "\x55\x48\x89\xe5", 4))  /* push %rbp; mov %rsp,%rbp */
		return false;
	for (*ret = 0; skip_push(&at, end);)
		*ret += 8;
	if (skip(&at, end, "\x48\x83\xec", 3) && at < end) /* sub $imm8,%rsp */
		moved = *at < 0x80 ? *at : -1;
	else if (skip(&at, end, "\x48\x81\xec", 3) && end - at >= 4) /* $imm32 */
		memcpy(&moved, at, sizeof(moved));
	/* Negative: it is an addition, of 128 for one. */
	*ret += moved > 0 ? (uint64_t)moved : 0;
	return moved >= 0;
}
