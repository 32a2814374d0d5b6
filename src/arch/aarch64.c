#include "arch/arch.h"

#include <elf.h>
#include <linux/audit.h>
#include <string.h>

/* DWARF register numbers, "DWARF for the Arm 64-bit Architecture", 4.1. */
enum {
	X0,
	X8 = 8,
	X29 = 29,
	X30, /* the link register */
	SP,
	PC,
	REG_COUNT,
};

enum { INSTRUCTION = 4 };

/* include/uapi/asm-generic/unistd.h */
static const uint8_t syscalls[] = {
	[4] = SS_SYS_IO_GETEVENTS,
	[22] = SS_SYS_EPOLL_PWAIT,
	[25] = SS_SYS_FCNTL,
	[29] = SS_SYS_IOCTL,
	[32] = SS_SYS_FLOCK,
	[34] = SS_SYS_MKDIRAT,
	[35] = SS_SYS_UNLINKAT,
	[38] = SS_SYS_RENAMEAT,
	[43] = SS_SYS_STATFS,
	[45] = SS_SYS_TRUNCATE,
	[46] = SS_SYS_FTRUNCATE,
	[47] = SS_SYS_FALLOCATE,
	[48] = SS_SYS_FACCESSAT,
	[49] = SS_SYS_CHDIR,
	[56] = SS_SYS_OPENAT,
	[57] = SS_SYS_CLOSE,
	[61] = SS_SYS_GETDENTS64,
	[63] = SS_SYS_READ,
	[64] = SS_SYS_WRITE,
	[65] = SS_SYS_READV,
	[66] = SS_SYS_WRITEV,
	[67] = SS_SYS_PREAD64,
	[68] = SS_SYS_PWRITE64,
	[69] = SS_SYS_PREADV,
	[70] = SS_SYS_PWRITEV,
	[71] = SS_SYS_SENDFILE,
	[72] = SS_SYS_PSELECT6,
	[73] = SS_SYS_PPOLL,
	[75] = SS_SYS_VMSPLICE,
	[76] = SS_SYS_SPLICE,
	[77] = SS_SYS_TEE,
	[78] = SS_SYS_READLINKAT,
	[79] = SS_SYS_NEWFSTATAT,
	[80] = SS_SYS_FSTAT,
	[81] = SS_SYS_SYNC,
	[82] = SS_SYS_FSYNC,
	[83] = SS_SYS_FDATASYNC,
	[84] = SS_SYS_SYNC_FILE_RANGE,
	[95] = SS_SYS_WAITID,
	[98] = SS_SYS_FUTEX,
	[101] = SS_SYS_NANOSLEEP,
	[115] = SS_SYS_CLOCK_NANOSLEEP,
	[128] = SS_SYS_RESTART_SYSCALL,
	[133] = SS_SYS_RT_SIGSUSPEND,
	[137] = SS_SYS_RT_SIGTIMEDWAIT,
	[139] = SS_SYS_RT_SIGRETURN,
	[182] = SS_SYS_MQ_TIMEDSEND,
	[183] = SS_SYS_MQ_TIMEDRECEIVE,
	[188] = SS_SYS_MSGRCV,
	[189] = SS_SYS_MSGSND,
	[192] = SS_SYS_SEMTIMEDOP,
	[193] = SS_SYS_SEMOP,
	[202] = SS_SYS_ACCEPT,
	[203] = SS_SYS_CONNECT,
	[206] = SS_SYS_SENDTO,
	[207] = SS_SYS_RECVFROM,
	[211] = SS_SYS_SENDMSG,
	[212] = SS_SYS_RECVMSG,
	[220] = SS_SYS_CLONE,
	[221] = SS_SYS_EXECVE,
	[227] = SS_SYS_MSYNC,
	[242] = SS_SYS_ACCEPT4,
	[243] = SS_SYS_RECVMMSG,
	[260] = SS_SYS_WAIT4,
	[267] = SS_SYS_SYNCFS,
	[269] = SS_SYS_SENDMMSG,
	[276] = SS_SYS_RENAMEAT2,
	[278] = SS_SYS_GETRANDOM,
	[285] = SS_SYS_COPY_FILE_RANGE,
	[286] = SS_SYS_PREADV2,
	[287] = SS_SYS_PWRITEV2,
	[291] = SS_SYS_STATX,
	[292] = SS_SYS_IO_PGETEVENTS,
	[426] = SS_SYS_IO_URING_ENTER,
	[435] = SS_SYS_CLONE3,
	[437] = SS_SYS_OPENAT2,
	[439] = SS_SYS_FACCESSAT2,
	[441] = SS_SYS_EPOLL_PWAIT2,
	[449] = SS_SYS_FUTEX_WAITV,
	[455] = SS_SYS_FUTEX_WAIT,
};

static uint32_t instruction_at(const uint8_t *code)
{
	uint32_t instruction;

	memcpy(&instruction, code, sizeof(instruction));
	return instruction;
}

/* mov x8, #__NR_rt_sigreturn; svc #0 */
static const struct ss_sigframe *find_sigframe(const uint8_t *code, size_t size)
{
	return size >= 2 * INSTRUCTION && instruction_at(code) == 0xd2801168 &&
			       instruction_at(code + INSTRUCTION) == 0xd4000001 ?
		       &ss_arch_aarch64.sigframe :
		       NULL;
}

/* A signed field of an instruction: bits from low on, in instructions from this one. */
static uint64_t field_target(uint32_t instruction, unsigned low, unsigned bits,
			     uint64_t address)
{
	const int32_t distance = (int32_t)(instruction << (32 - low - bits)) >>
				 (32 - bits);

	return address + (uint64_t)((int64_t)distance * INSTRUCTION);
}

static bool is_bl(uint32_t instruction)
{
	return (instruction & 0xfc000000) == 0x94000000;
}

/* bl, blr, and blraa, blraaz, blrab, blrabz */
static bool is_call(const uint8_t *before, size_t size)
{
	if (size < INSTRUCTION)
		return false;
	uint32_t last = instruction_at(before + size - INSTRUCTION);
	return is_bl(last) || (last & 0xfffffc1f) == 0xd63f0000 ||
	       (last & 0xfefff800) == 0xd63f0800;
}

static bool call_target(const uint8_t *before, size_t size, uint64_t pc, uint64_t *ret)
{
	if (size < INSTRUCTION)
		return false;
	uint32_t last = instruction_at(before + size - INSTRUCTION);
	*ret = field_target(last, 0, 26, pc - INSTRUCTION);
	return is_bl(last);
}

/* Arm Architecture Reference Manual, C4.1.66, Branches; C6.2 */
static bool decode(const uint8_t *code, size_t size, uint64_t address,
		   struct ss_instruction *ret)
{
	if (size < INSTRUCTION || address % INSTRUCTION)
		return false;
	const uint32_t i = instruction_at(code);
	struct ss_instruction found = { .size = INSTRUCTION };

	if ((i & 0x9e000000) == 0) /* reserved: udf, or data; with bit 31 set, SME */
		return false;
	if ((i & 0xfc000000) == 0x14000000) { /* b */
		found.flow = SS_FLOW_JUMP;
		found.target = field_target(i, 0, 26, address);
	} else if ((i & 0xff000000) == 0x54000000 || /* b.cond, bc.cond */
		   (i & 0x7e000000) == 0x34000000) { /* cbz, cbnz */
		found.flow = SS_FLOW_BRANCH;
		found.target = field_target(i, 5, 19, address);
	} else if ((i & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		found.flow = SS_FLOW_BRANCH;
		found.target = field_target(i, 5, 14, address);
	} else if ((i & 0xfffffc1f) == 0xd65f0000 || /* ret */
		   (i & 0xfffffbff) == 0xd65f0bff) { /* retaa, retab */
		found.flow = SS_FLOW_RETURN;
	} else if ((i & 0xfffffc1f) == 0xd61f0000 || /* br */
		   (i & 0xfefff800) == 0xd61f0800) { /* braa, braaz, brab, brabz */
		found.flow = SS_FLOW_INDIRECT;
	}
	found.marker = i == 0xd503201f ||	       /* nop */
		       (i & 0xffffff3f) == 0xd503241f; /* bti */
	*ret = found;
	return true;
}

/* mov x8, #number; svc #0 */
static long entered_syscall(const uint8_t *code, size_t size)
{
	if (size < 2 * INSTRUCTION)
		return -1;
	uint32_t move = instruction_at(code + size - 2 * INSTRUCTION);
	if (instruction_at(code + size - INSTRUCTION) != 0xd4000001 ||
	    (move & 0xffe0001f) != (0xd2800000 | X8))
		return -1;
	return (long)(move >> 5 & 0xffff);
}

/* adrp xN, page; add x0, xN, #offset; bl. The first argument is in x0 (AAPCS64). */
static bool next_argument(const uint8_t *code, size_t size, uint64_t address, size_t *at,
			  uint64_t *ret)
{
	enum { PAGE = 4096, CALL = 2 * INSTRUCTION };

	for (size_t i = (*at + INSTRUCTION - 1) / INSTRUCTION * INSTRUCTION;
	     i + CALL + INSTRUCTION <= size; i += INSTRUCTION) {
		uint32_t adrp = instruction_at(code + i);
		uint32_t add = instruction_at(code + i + INSTRUCTION);
		if ((adrp & 0x9f000000) != 0x90000000 ||
		    (add & 0xffc0001f) != (0x91000000 | X0) ||
		    (add >> 5 & 31) != (adrp & 31) ||
		    !is_bl(instruction_at(code + i + CALL)))
			continue;
		/* 19 bits and, below them, 2: signed, in pages from this one. */
		uint32_t bits = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
		int64_t pages = (int32_t)(bits << 11) >> 11;
		*ret = ((address + i) & ~(uint64_t)(PAGE - 1)) +
		       (uint64_t)(pages * PAGE) + (add >> 10 & 0xfff);
		*at = i + CALL;
		return true;
	}
	return false;
}

/* struct rt_sigframe: siginfo, then struct ucontext with flags, link, stack, a mask of 128
   bytes; then struct sigcontext, aligned: fault_address, x0 to x30, sp, pc. */
enum { UC = 128, UC_STACK = UC + 16, UC_REGS = UC + 176 + 8 };
#define SAVED(n) (UC_REGS + (n)*8)

static const char *const reg_names[REG_COUNT] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",  "x10",
	"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
	"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  "pc",
};

#if defined(__aarch64__)
#define ATTACH &ss_aarch64_attach
#else
#define ATTACH NULL
#endif

const struct ss_arch ss_arch_aarch64 = {
	.name = "aarch64",
	.elf_machine = EM_AARCH64,
	.audit = AUDIT_ARCH_AARCH64,
	.elf_class = ELFCLASS64,
	.word = 8,
	.reg_names = reg_names,
	.reg_count = REG_COUNT,
	.pc = PC,
	.sp = SP,
	.fp = X29,
	.return_column = X30,
	.link = X30,
	.syscall_args = { X0, 1, 2, 3, 4, 5 },
	.pthread_below = 4096,
	.pthread_tid = 208, /* after 24 words of padding and a list */
	/* Linux: addresses have 48 bits, bit 55 tells user space from the kernel; see
	   Documentation/arm64/pointer-authentication.rst. */
	.pac_mask = UINT64_C(0xff7f000000000000),
	/* arch/arm64/include/uapi/asm/ptrace.h, struct user_pt_regs: x0 to x30, sp, pc,
	   pstate. The call that was interrupted is not among them. */
	.minidump = { .processor = 12,
		      .size = 912,
		      .flags_at = 0,
		      .flags = 0x400003,
		      .regs = { 8,   16,  24,  32,  40,	 48,  56,  64,	72,  80,  88,
				96,  104, 112, 120, 128, 136, 144, 152, 160, 168, 176,
				184, 192, 200, 208, 216, 224, 232, 240, 248, 256, 264 } },
	.core_regs = { .words = 34,
		       .regs = { 1,  2,	 3,  4,	 5,  6,	 7,  8,	 9,  10, 11,
				 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
				 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33 } },
	.sigframe = { .stack = UC_STACK,
		      .regs = { [0] = SAVED(0),	  [1] = SAVED(1),   [2] = SAVED(2),
				[3] = SAVED(3),	  [4] = SAVED(4),   [5] = SAVED(5),
				[6] = SAVED(6),	  [7] = SAVED(7),   [8] = SAVED(8),
				[9] = SAVED(9),	  [10] = SAVED(10), [11] = SAVED(11),
				[12] = SAVED(12), [13] = SAVED(13), [14] = SAVED(14),
				[15] = SAVED(15), [16] = SAVED(16), [17] = SAVED(17),
				[18] = SAVED(18), [19] = SAVED(19), [20] = SAVED(20),
				[21] = SAVED(21), [22] = SAVED(22), [23] = SAVED(23),
				[24] = SAVED(24), [25] = SAVED(25), [26] = SAVED(26),
				[27] = SAVED(27), [28] = SAVED(28), [29] = SAVED(29),
				[30] = SAVED(30), [31] = SAVED(31), [32] = SAVED(32) } },
	.syscalls = syscalls,
	.syscall_count = sizeof(syscalls),
	.find_sigframe = find_sigframe,
	.decode = decode,
	.is_call = is_call,
	.call_target = call_target,
	.entered_syscall = entered_syscall,
	.next_argument = next_argument,
	.attach = ATTACH,
};
