#include "arch/x86.h"

#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/ptrace.h>

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

/* arch/x86/entry/syscalls/syscall_64.tbl */
static const uint8_t syscalls[] = {
	[0] = SS_SYS_READ,
	[1] = SS_SYS_WRITE,
	[2] = SS_SYS_OPEN,
	[3] = SS_SYS_CLOSE,
	[4] = SS_SYS_STAT,
	[5] = SS_SYS_FSTAT,
	[6] = SS_SYS_LSTAT,
	[7] = SS_SYS_POLL,
	[15] = SS_SYS_RT_SIGRETURN,
	[16] = SS_SYS_IOCTL,
	[17] = SS_SYS_PREAD64,
	[18] = SS_SYS_PWRITE64,
	[19] = SS_SYS_READV,
	[20] = SS_SYS_WRITEV,
	[21] = SS_SYS_ACCESS,
	[23] = SS_SYS_SELECT,
	[26] = SS_SYS_MSYNC,
	[34] = SS_SYS_PAUSE,
	[35] = SS_SYS_NANOSLEEP,
	[40] = SS_SYS_SENDFILE,
	[42] = SS_SYS_CONNECT,
	[43] = SS_SYS_ACCEPT,
	[44] = SS_SYS_SENDTO,
	[45] = SS_SYS_RECVFROM,
	[46] = SS_SYS_SENDMSG,
	[47] = SS_SYS_RECVMSG,
	[56] = SS_SYS_CLONE,
	[57] = SS_SYS_FORK,
	[58] = SS_SYS_VFORK,
	[59] = SS_SYS_EXECVE,
	[61] = SS_SYS_WAIT4,
	[65] = SS_SYS_SEMOP,
	[69] = SS_SYS_MSGSND,
	[70] = SS_SYS_MSGRCV,
	[72] = SS_SYS_FCNTL,
	[73] = SS_SYS_FLOCK,
	[74] = SS_SYS_FSYNC,
	[75] = SS_SYS_FDATASYNC,
	[76] = SS_SYS_TRUNCATE,
	[77] = SS_SYS_FTRUNCATE,
	[80] = SS_SYS_CHDIR,
	[82] = SS_SYS_RENAME,
	[83] = SS_SYS_MKDIR,
	[85] = SS_SYS_CREAT,
	[87] = SS_SYS_UNLINK,
	[89] = SS_SYS_READLINK,
	[128] = SS_SYS_RT_SIGTIMEDWAIT,
	[130] = SS_SYS_RT_SIGSUSPEND,
	[137] = SS_SYS_STATFS,
	[162] = SS_SYS_SYNC,
	[202] = SS_SYS_FUTEX,
	[208] = SS_SYS_IO_GETEVENTS,
	[217] = SS_SYS_GETDENTS64,
	[219] = SS_SYS_RESTART_SYSCALL,
	[220] = SS_SYS_SEMTIMEDOP,
	[230] = SS_SYS_CLOCK_NANOSLEEP,
	[232] = SS_SYS_EPOLL_WAIT,
	[242] = SS_SYS_MQ_TIMEDSEND,
	[243] = SS_SYS_MQ_TIMEDRECEIVE,
	[247] = SS_SYS_WAITID,
	[257] = SS_SYS_OPENAT,
	[258] = SS_SYS_MKDIRAT,
	[262] = SS_SYS_NEWFSTATAT,
	[263] = SS_SYS_UNLINKAT,
	[264] = SS_SYS_RENAMEAT,
	[267] = SS_SYS_READLINKAT,
	[269] = SS_SYS_FACCESSAT,
	[270] = SS_SYS_PSELECT6,
	[271] = SS_SYS_PPOLL,
	[275] = SS_SYS_SPLICE,
	[276] = SS_SYS_TEE,
	[277] = SS_SYS_SYNC_FILE_RANGE,
	[278] = SS_SYS_VMSPLICE,
	[281] = SS_SYS_EPOLL_PWAIT,
	[285] = SS_SYS_FALLOCATE,
	[288] = SS_SYS_ACCEPT4,
	[295] = SS_SYS_PREADV,
	[296] = SS_SYS_PWRITEV,
	[299] = SS_SYS_RECVMMSG,
	[306] = SS_SYS_SYNCFS,
	[307] = SS_SYS_SENDMMSG,
	[316] = SS_SYS_RENAMEAT2,
	[318] = SS_SYS_GETRANDOM,
	[326] = SS_SYS_COPY_FILE_RANGE,
	[327] = SS_SYS_PREADV2,
	[328] = SS_SYS_PWRITEV2,
	[332] = SS_SYS_STATX,
	[333] = SS_SYS_IO_PGETEVENTS,
	[426] = SS_SYS_IO_URING_ENTER,
	[435] = SS_SYS_CLONE3,
	[437] = SS_SYS_OPENAT2,
	[439] = SS_SYS_FACCESSAT2,
	[441] = SS_SYS_EPOLL_PWAIT2,
	[449] = SS_SYS_FUTEX_WAITV,
	[455] = SS_SYS_FUTEX_WAIT,
};

/* mov $__NR_rt_sigreturn, %rax (or %eax); syscall */
static const uint8_t sigreturn_rax[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t sigreturn_eax[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

static const struct ss_sigframe *find_sigframe(const uint8_t *code, size_t size)
{
	return (size >= sizeof(sigreturn_rax) &&
		memcmp(code, sigreturn_rax, sizeof(sigreturn_rax)) == 0) ||
			       (size >= sizeof(sigreturn_eax) &&
				memcmp(code, sigreturn_eax, sizeof(sigreturn_eax)) == 0) ?
		       &ss_arch_x86_64.sigframe :
		       NULL;
}

long ss_x86_entered_syscall(const uint8_t *code, size_t size, uint8_t enter0,
			    uint8_t enter1)
{
	enum { SIZE = 7 };
	int32_t number;

	if (size < SIZE)
		return -1;
	code += size - SIZE;
	if (code[0] != 0xb8 || code[5] != enter0 || code[6] != enter1)
		return -1;
	memcpy(&number, code + 1, sizeof(number));
	return number;
}

static long entered_syscall(const uint8_t *code, size_t size)
{
	return ss_x86_entered_syscall(code, size, 0x0f, 0x05);
}

/* "call rel32", "call *disp32(%rip)", or the form to which linkers relax the latter. */
static bool begins_call(const uint8_t *code, size_t size)
{
	return (size >= 1 && code[0] == 0xe8) ||
	       (size >= 2 && code[0] == 0xff && code[1] == 0x15) ||
	       (size >= 2 && code[0] == 0x67 && code[1] == 0xe8);
}

/* Decodes instructions that load a constant into rdi, the first argument (System V
   psABI 3.2.3): "lea disp32(%rip), %rdi", the same through another register, or "mov
   $imm32, %edi". Returns the length, or 0. */
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

static bool next_argument(const uint8_t *code, size_t size, uint64_t address, size_t *at,
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
	size_t expected = 2u + sib;
	if (mode == 1)
		expected += 1;
	else if (mode == 2 || (mode == 0 && (code[1] & 7) == 5))
		expected += 4;
	else if (mode == 0 && sib && length > 2 && (code[2] & 7) == 5)
		expected += 4;
	return expected == length;
}

static bool ends_with_indirect_call(const uint8_t *before, size_t size)
{
	for (size_t length = 2; length <= 7 && length <= size; length++) {
		if (is_indirect_call(before + size - length, length))
			return true;
	}
	return false;
}

static bool is_direct_call(const uint8_t *before, size_t size)
{
	return size >= 5 && before[size - 5] == 0xe8; /* call rel32 */
}

bool ss_x86_is_call(const uint8_t *before, size_t size)
{
	return is_direct_call(before, size) || ends_with_indirect_call(before, size);
}

/* "mov %r13, %rax; call *8(%rsp)" ends with the bytes of a direct call, too. */
bool ss_x86_call_target(const uint8_t *before, size_t size, uint64_t pc, uint64_t *ret)
{
	int32_t relative;

	if (!is_direct_call(before, size) || ends_with_indirect_call(before, size))
		return false;
	memcpy(&relative, before + size - sizeof(relative), sizeof(relative));
	*ret = pc + (uint64_t)(int64_t)relative;
	return true;
}

/*
 * "jmp rel32" and "jcc rel32", "jmp rel8", and "jmp r/m64" (ff /4). Not "jcc rel8": only a static function within
 * 127 bytes is reached so, but one byte in 16 looks like it. Every function would seem to jump to its
 * neighbours, and nothing could be refuted.
 */
bool ss_x86_next_jump(const uint8_t *code, size_t size, uint64_t address, size_t *at,
		      uint64_t *ret)
{
	int32_t relative;

	for (size_t i = *at; i + 1 < size; i++) {
		const uint8_t *next = code + i + 1;
		*at = i + 1;
		if (code[i] == 0xff && (*next & 0x38) == 0x20) {
			*ret = 0;
			return true;
		}
		if (code[i] == 0xeb) {
			*ret = address + i + 2 + (uint64_t)(int64_t)(int8_t)*next;
			return true;
		}
		/* The second byte of jcc tells more than the first one. */
		if ((code[i] == 0xe9 ||
		     ((code[i] & 0xf0) == 0x80 && i > 0 && code[i - 1] == 0x0f)) &&
		    size - i >= 5) {
			memcpy(&relative, next, sizeof(relative));
			*ret = address + i + 5 + (uint64_t)(int64_t)relative;
			return true;
		}
	}
	return false;
}

/* "call *disp32(%rip)" */
static bool called_slot(const uint8_t *before, size_t size, uint64_t pc, uint64_t *ret)
{
	int32_t relative;

	if (size < 6 || before[size - 6] != 0xff || before[size - 5] != 0x15)
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

/* "jmp *disp32(%rip)", in .plt.sec after endbr64, and perhaps with the prefix bnd */
static bool jump_slot(const uint8_t *code, size_t size, uint64_t address, uint64_t *ret)
{
	const uint8_t *at = code;
	const uint8_t *end = code + size;
	int32_t relative;

	(void)skip(&at, end, "\xf3\x0f\x1e\xfa", 4);
	(void)skip(&at, end, "\xf2", 1);
	if (!skip(&at, end, "\xff\x25", 2) || (size_t)(end - at) < sizeof(relative))
		return false;
	memcpy(&relative, at, sizeof(relative));
	*ret = address + (uint64_t)(at - code) + sizeof(relative) +
	       (uint64_t)(int64_t)relative;
	return true;
}

/* push of a callee-saved register: rbx, r12 to r15 */
static bool skip_push(const uint8_t **at, const uint8_t *end)
{
	if (skip(at, end, "\x53", 1))
		return true;
	if (end - *at < 2 || (*at)[0] != 0x41 || (*at)[1] < 0x54 || (*at)[1] > 0x57)
		return false;
	*at += 2;
	return true;
}

static bool frame_size(const uint8_t *code, size_t size, uint64_t *ret)
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
	/* Negative: the instruction adds to rsp. */
	*ret += moved > 0 ? (uint64_t)moved : 0;
	return moved >= 0;
}

enum move { MOVE_NONE, MOVE_SUBTRACTS, MOVE_OTHER };

/* Whether the 64-bit operation at code has rsp as its destination. SS_MOVE_MAX bytes. */
static enum move read_move(const uint8_t *code, uint64_t *ret)
{
	enum { ADD = 0, SUB = 5, RM_RSP = 0xc4, REG_RSP = 4, BASE_RBP = 5 };
	const unsigned reg = code[2] >> 3 & 7; /* or the operation */
	const bool to_rm = (code[2] & 0xc7) == RM_RSP && !(code[0] & 1);
	const bool to_reg = reg == REG_RSP && !(code[0] & 4);
	int32_t value = code[3] < 0x80 ? code[3] : code[3] - 0x100;

	if ((code[0] & 0xf8) != 0x48) /* REX.W */
		return MOVE_NONE;
	switch (code[1]) {
	case 0x01: /* add, and, sub, mov from a register */
	case 0x21:
	case 0x29:
	case 0x89:
		return to_rm ? MOVE_OTHER : MOVE_NONE;
	case 0x03: /* the same to a register */
	case 0x23:
	case 0x2b:
	case 0x8b:
		return to_reg ? MOVE_OTHER : MOVE_NONE;
	case 0x8d: /* lea, of rbp and a constant: the end of the function */
		return to_reg && !((code[2] >> 6) % 3 && (code[2] & 7) == BASE_RBP) ?
			       MOVE_OTHER :
			       MOVE_NONE;
	case 0x87: /* xchg */
		return to_rm || to_reg ? MOVE_OTHER : MOVE_NONE;
	case 0x81: /* with a constant */
		memcpy(&value, code + 3, sizeof(value));
		break;
	case 0x83:
		break;
	default:
		return MOVE_NONE;
	}
	if (!to_rm || (reg == ADD && value >= 0))
		return MOVE_NONE;
	*ret = (uint64_t)(reg == SUB ? (int64_t)value : -(int64_t)value);
	return (reg == SUB && value >= 0) || reg == ADD ? MOVE_SUBTRACTS : MOVE_OTHER;
}

static bool find_moves(const uint8_t *code, size_t size, unsigned *count, uint64_t *moved)
{
	for (size_t i = 0; i + SS_MOVE_MAX <= size; i++) {
		uint64_t by;
		enum move move = read_move(code + i, &by);
		if (move == MOVE_OTHER)
			return false;
		if (move == MOVE_SUBTRACTS) {
			++*count;
			*moved += by;
		}
	}
	return true;
}

#if defined(__x86_64__)

/* Internal to the kernel (include/linux/errno.h): how an interrupted call continues. */
enum {
	ERESTARTSYS = 512,
	ERESTARTNOINTR = 513,
	ERESTARTNOHAND = 514, /* restart, unless a handler runs */
	ERESTART_RESTARTBLOCK = 516,
};

static void get_regs(const ss_kernel_regs *k, struct ss_regs *ret)
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

/* arch/x86/include/asm/ptrace.h, user_64bit_mode(): the segments of the kernel and of Xen */
const struct ss_arch *ss_x86_executes(const ss_kernel_regs *kernel)
{
	enum { CODE_64 = 0x33, CODE_64_XEN = 0xe033 };

	/* 0: not known */
	return kernel->cs == 0 || kernel->cs == CODE_64 || kernel->cs == CODE_64_XEN ?
		       &ss_arch_x86_64 :
		       &ss_arch_i386;
}

bool ss_x86_is_worker(const ss_kernel_regs *kernel)
{
	return kernel->rip == 0 && kernel->rsp == 0;
}

static uint64_t thread_pointer(const ss_kernel_regs *k)
{
	return k->fs_base;
}

static void get_syscall(const ss_kernel_regs *k, struct ss_syscall *ret)
{
	long number = (long)k->orig_rax;

	*ret = (struct ss_syscall){ .number = number,
				    .id = ss_arch_syscall_id(&ss_arch_x86_64, number),
				    .args = { k->rdi, k->rsi, k->rdx, k->r10, k->r8,
					      k->r9 } };
}

/* The registers of a program of 32 bits have no upper halves. */
static int64_t result_of(const struct ss_arch *arch, const ss_kernel_regs *k)
{
	return arch->word == sizeof(uint32_t) ? (int32_t)k->rax : (int64_t)k->rax;
}

static long number_of(const struct ss_arch *arch, const ss_kernel_regs *k)
{
	return arch->word == sizeof(uint32_t) ? (int32_t)k->orig_rax : (long)k->orig_rax;
}

bool ss_x86_is_blocked(const struct ss_arch *arch, const ss_kernel_regs *k)
{
	const int64_t result = result_of(arch, k);

	return number_of(arch, k) >= 0 &&
	       (result == -ERESTARTSYS || result == -ERESTARTNOINTR ||
		result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK);
}

static bool is_blocked(const ss_kernel_regs *k)
{
	return ss_x86_is_blocked(&ss_arch_x86_64, k);
}

/* In the parent the call returns an id, which is never 0. */
bool ss_x86_is_new(const struct ss_arch *arch, const ss_kernel_regs *k)
{
	enum ss_syscall_id call = ss_arch_syscall_id(arch, number_of(arch, k));

	return result_of(arch, k) == 0 &&
	       (call == SS_SYS_CLONE || call == SS_SYS_CLONE3 || call == SS_SYS_FORK ||
		call == SS_SYS_VFORK);
}

static bool is_new(const ss_kernel_regs *k)
{
	return ss_x86_is_new(&ss_arch_x86_64, k);
}

/* How the arguments of a call express an infinite wait. */
enum infinite {
	ALWAYS, /* the call has no timeout */
	NULL_POINTER,
	NEGATIVE,	 /* milliseconds, an int (eventpoll.c, ep_timeout_to_timespec) */
	WITHOUT_EXT_ARG, /* flags of io_uring_enter(2): the timeout is in the ext arg */
};

/*
 * Calls that return -EINTR after any interruption. accept and recv do so only with
 * SO_RCVTIMEO, so their wait is never infinite.
 */
struct eintr_call {
	enum ss_syscall_id id;
	enum infinite infinite;
	int arg;
};

static const struct eintr_call eintr_calls[] = {
	{ SS_SYS_EPOLL_WAIT, NEGATIVE, 3 },
	{ SS_SYS_EPOLL_PWAIT, NEGATIVE, 3 },
	{ SS_SYS_EPOLL_PWAIT2, NULL_POINTER, 3 },
	{ SS_SYS_SEMOP, ALWAYS, 0 },
	{ SS_SYS_SEMTIMEDOP, NULL_POINTER, 3 },
	{ SS_SYS_RT_SIGTIMEDWAIT, NULL_POINTER, 2 },
	{ SS_SYS_IO_GETEVENTS, NULL_POINTER, 4 },
	/* It returns -EINTR only if it has submitted nothing: it can be restarted. */
	{ SS_SYS_IO_URING_ENTER, WITHOUT_EXT_ARG, 3 },
};

static bool waits_forever(const struct eintr_call *call, const struct ss_syscall *made)
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

bool ss_x86_undo_eintr(const struct ss_arch *arch, ss_kernel_regs *k)
{
	struct ss_syscall made;

	if (result_of(arch, k) != -EINTR)
		return false;
	arch->attach->syscall(k, &made);
	for (size_t i = 0; i < sizeof(eintr_calls) / sizeof(eintr_calls[0]); i++) {
		if (eintr_calls[i].id == made.id &&
		    waits_forever(&eintr_calls[i], &made)) {
			k->rax = (unsigned long long)-ERESTARTNOHAND;
			return true;
		}
	}
	return false;
}

static bool undo_eintr(ss_kernel_regs *k)
{
	return ss_x86_undo_eintr(&ss_arch_x86_64, k);
}

bool ss_x86_avoid_restart_syscall(const struct ss_arch *arch, ss_kernel_regs *k)
{
	struct ss_syscall made;

	if (result_of(arch, k) != -ERESTART_RESTARTBLOCK)
		return false;
	arch->attach->syscall(k, &made);
	/* It was let through before, and only it knows the original call. */
	if (made.number < 0 || made.id == SS_SYS_RESTART_SYSCALL)
		return false;
	k->rax = (unsigned long long)-ERESTARTNOHAND;
	return true;
}

static bool avoid_restart_syscall(ss_kernel_regs *k)
{
	return ss_x86_avoid_restart_syscall(&ss_arch_x86_64, k);
}

void ss_x86_from_sample(const uint64_t *values, ss_kernel_regs *ret)
{
	*ret = (ss_kernel_regs){
		.rax = values[0],
		.rbx = values[1],
		.rcx = values[2],
		.rdx = values[3],
		.rsi = values[4],
		.rdi = values[5],
		.rbp = values[6],
		.rsp = values[7],
		.rip = values[8],
		.eflags = values[9],
		.cs = values[10],
		.ss = values[11],
		.r8 = values[12],
		.r9 = values[13],
		.r10 = values[14],
		.r11 = values[15],
		.r12 = values[16],
		.r13 = values[17],
		.r14 = values[18],
		.r15 = values[19],
		.orig_rax = (uint64_t)-1,
	};
}

/* The entry code sets rax to -ENOSYS until there is a result (entry_64.S). */
bool ss_x86_in_syscall(const struct ss_arch *arch, const ss_kernel_regs *k,
		       const uint8_t *code, size_t size, uint8_t enter0, uint8_t enter1)
{
	return result_of(arch, k) == -ENOSYS && size >= 2 && code[size - 2] == enter0 &&
	       code[size - 1] == enter1;
}

static bool in_syscall(const ss_kernel_regs *k, const uint8_t *code, size_t size,
		       long *ret)
{
	*ret = entered_syscall(code, size);
	return ss_x86_in_syscall(&ss_arch_x86_64, k, code, size, 0x0f, 0x05);
}

static const uint8_t execute_code[] = {
	0xb8, 59,   0,	  0,	0,    /* mov $SYS_execve, %eax */
	0x0f, 0x05,		      /* syscall */
	0xbf, 127,  0,	  0,	0,    /* mov $127, %edi */
	0xb8, 231,  0,	  0,	0,    /* mov $SYS_exit_group, %eax */
	0x0f, 0x05,		      /* syscall */
	0x0f, 0x0b, 0x90, 0x90, 0x90, /* ud2 */
};
_Static_assert(sizeof(execute_code) % 8 == 0, "words");

static void set_execute(ss_kernel_regs *k, uint64_t path, uint64_t argv, uint64_t envp)
{
	k->rdi = path;
	k->rsi = argv;
	k->rdx = envp;
}

static const char *const syscall_entries[] = { "entry_SYSCALL_64", NULL };
static const char *const safe_entries[] = { "__x64_sys_futex+", "sys_sched_yield+",
					    NULL };

static const struct ss_arch_attach attach = {
	SS_X86_ATTACH,
	.regs = get_regs,
	.syscall = get_syscall,
	.is_blocked = is_blocked,
	.is_new = is_new,
	.thread_pointer = thread_pointer,
	.undo_eintr = undo_eintr,
	.avoid_restart_syscall = avoid_restart_syscall,
	.probe_sp = "%sp",
	.probe_return = "+0(%sp)",
	.probe_args = { "%di", "%si", "%dx", "%cx", "%r8", "%r9" },
	.in_syscall = in_syscall,
	.execute_code = execute_code,
	.execute_size = sizeof(execute_code),
	.set_execute = set_execute,
	.syscall_entries = syscall_entries,
	.safe_entries = safe_entries,
};
#define ATTACH &attach

#else
#define ATTACH NULL
#endif

/* struct ucontext (asm-generic): flags, link, stack; then struct sigcontext_64. The
   return address of the handler, at the start of struct rt_sigframe, was popped. */
enum { UC_STACK = 2 * 8, UC_REGS = 5 * 8 };
#define SAVED(n) (UC_REGS + (n)*8)

static const char *const reg_names[REG_COUNT] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip",
};

const struct ss_arch ss_arch_x86_64 = {
	.reg_names = reg_names,
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.audit = AUDIT_ARCH_X86_64,
	.elf_class = ELFCLASS64,
	.word = 8,
	.reg_count = REG_COUNT,
	.pc = RIP,
	.sp = RSP,
	.fp = RBP,
	.return_column = RIP,
	.link = SS_REG_NONE,
	.syscall_args = { RDI, RSI, RDX, R10, R8, R9 },
	.red_zone = 128,
	/* arch/x86/include/asm/user_64.h, struct user_regs_struct */
	.minidump = { .processor = 9,
		      .size = 1232,
		      .flags_at = 48,
		      .flags = 0x100003,
		      .regs = { [RAX] = 120, [RCX] = 128, [RDX] = 136, [RBX] = 144,
				[RSP] = 152, [RBP] = 160, [RSI] = 168, [RDI] = 176,
				[R8] = 184,  [R9] = 192,  [R10] = 200, [R11] = 208,
				[R12] = 216, [R13] = 224, [R14] = 232, [R15] = 240,
				[RIP] = 248 } },
	.core_regs = {
		.words = 27,
		.regs = { [RAX] = 11, [RDX] = 13, [RCX] = 12, [RBX] = 6, [RSI] = 14,
			  [RDI] = 15, [RBP] = 5,  [RSP] = 20, [R8] = 10, [R9] = 9,
			  [R10] = 8,  [R11] = 7,  [R12] = 4,  [R13] = 3, [R14] = 2,
			  [R15] = 1,  [RIP] = 17 },
		.syscall = 16,
		.result = 11,
		.thread_pointer = 22,
	},
	.pthread_tid = 720, /* since glibc 2.4 */
	.fp_gives_sp = true,
	.sigframe = { .stack = UC_STACK,
		      .regs = { [R8] = SAVED(0),
				[R9] = SAVED(1),
				[R10] = SAVED(2),
				[R11] = SAVED(3),
				[R12] = SAVED(4),
				[R13] = SAVED(5),
				[R14] = SAVED(6),
				[R15] = SAVED(7),
				[RDI] = SAVED(8),
				[RSI] = SAVED(9),
				[RBP] = SAVED(10),
				[RBX] = SAVED(11),
				[RDX] = SAVED(12),
				[RAX] = SAVED(13),
				[RCX] = SAVED(14),
				[RSP] = SAVED(15),
				[RIP] = SAVED(16) } },
	.syscalls = syscalls,
	.syscall_count = sizeof(syscalls),
	.find_sigframe = find_sigframe,
	.decode = ss_x86_64_decode,
	.is_call = ss_x86_is_call,
	.call_target = ss_x86_call_target,
	.next_jump = ss_x86_next_jump,
	.called_slot = called_slot,
	.jump_slot = jump_slot,
	.entered_syscall = entered_syscall,
	.next_argument = next_argument,
	.frame_size = frame_size,
	.find_moves = find_moves,
	.attach = ATTACH,
};
