#include "arch/x86.h"

#include <elf.h>
#include <linux/audit.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

/* DWARF register numbers, System V psABI for i386, table 2.14. */
enum { EAX, ECX, EDX, EBX, ESP, EBP, ESI, EDI, EIP, REG_COUNT };

/* arch/x86/entry/syscalls/syscall_32.tbl. Several numbers may mean one call: the later one has
   other arguments, such as times of 64 bits. */
static const uint8_t syscalls[] = {
	[0] = SS_SYS_RESTART_SYSCALL,
	[2] = SS_SYS_FORK,
	[3] = SS_SYS_READ,
	[4] = SS_SYS_WRITE,
	[5] = SS_SYS_OPEN,
	[6] = SS_SYS_CLOSE,
	[7] = SS_SYS_WAIT4,
	[8] = SS_SYS_CREAT,
	[10] = SS_SYS_UNLINK,
	[11] = SS_SYS_EXECVE,
	[12] = SS_SYS_CHDIR,
	[29] = SS_SYS_PAUSE,
	[33] = SS_SYS_ACCESS,
	[36] = SS_SYS_SYNC,
	[38] = SS_SYS_RENAME,
	[39] = SS_SYS_MKDIR,
	[54] = SS_SYS_IOCTL,
	[55] = SS_SYS_FCNTL,
	[72] = SS_SYS_PAUSE,
	[85] = SS_SYS_READLINK,
	[92] = SS_SYS_TRUNCATE,
	[93] = SS_SYS_FTRUNCATE,
	[99] = SS_SYS_STATFS,
	[106] = SS_SYS_STAT,
	[107] = SS_SYS_LSTAT,
	[108] = SS_SYS_FSTAT,
	[114] = SS_SYS_WAIT4,
	[118] = SS_SYS_FSYNC,
	[119] = SS_SYS_RT_SIGRETURN,
	[120] = SS_SYS_CLONE,
	[142] = SS_SYS_SELECT,
	[143] = SS_SYS_FLOCK,
	[144] = SS_SYS_MSYNC,
	[145] = SS_SYS_READV,
	[146] = SS_SYS_WRITEV,
	[148] = SS_SYS_FDATASYNC,
	[162] = SS_SYS_NANOSLEEP,
	[168] = SS_SYS_POLL,
	[173] = SS_SYS_RT_SIGRETURN,
	[177] = SS_SYS_RT_SIGTIMEDWAIT,
	[179] = SS_SYS_RT_SIGSUSPEND,
	[180] = SS_SYS_PREAD64,
	[181] = SS_SYS_PWRITE64,
	[187] = SS_SYS_SENDFILE,
	[190] = SS_SYS_VFORK,
	[193] = SS_SYS_TRUNCATE,
	[194] = SS_SYS_FTRUNCATE,
	[195] = SS_SYS_STAT,
	[196] = SS_SYS_LSTAT,
	[197] = SS_SYS_FSTAT,
	[220] = SS_SYS_GETDENTS64,
	[221] = SS_SYS_FCNTL,
	[239] = SS_SYS_SENDFILE,
	[240] = SS_SYS_FUTEX,
	[247] = SS_SYS_IO_GETEVENTS,
	[256] = SS_SYS_EPOLL_WAIT,
	[267] = SS_SYS_CLOCK_NANOSLEEP,
	[268] = SS_SYS_STATFS,
	[279] = SS_SYS_MQ_TIMEDSEND,
	[280] = SS_SYS_MQ_TIMEDRECEIVE,
	[284] = SS_SYS_WAITID,
	[295] = SS_SYS_OPENAT,
	[296] = SS_SYS_MKDIRAT,
	[300] = SS_SYS_NEWFSTATAT,
	[301] = SS_SYS_UNLINKAT,
	[302] = SS_SYS_RENAMEAT,
	[305] = SS_SYS_READLINKAT,
	[307] = SS_SYS_FACCESSAT,
	[308] = SS_SYS_PSELECT6,
	[309] = SS_SYS_PPOLL,
	[313] = SS_SYS_SPLICE,
	[314] = SS_SYS_SYNC_FILE_RANGE,
	[315] = SS_SYS_TEE,
	[316] = SS_SYS_VMSPLICE,
	[319] = SS_SYS_EPOLL_PWAIT,
	[324] = SS_SYS_FALLOCATE,
	[333] = SS_SYS_PREADV,
	[334] = SS_SYS_PWRITEV,
	[337] = SS_SYS_RECVMMSG,
	[344] = SS_SYS_SYNCFS,
	[345] = SS_SYS_SENDMMSG,
	[353] = SS_SYS_RENAMEAT2,
	[355] = SS_SYS_GETRANDOM,
	[362] = SS_SYS_CONNECT,
	[364] = SS_SYS_ACCEPT4,
	[369] = SS_SYS_SENDTO,
	[370] = SS_SYS_SENDMSG,
	[371] = SS_SYS_RECVFROM,
	[372] = SS_SYS_RECVMSG,
	[377] = SS_SYS_COPY_FILE_RANGE,
	[378] = SS_SYS_PREADV2,
	[379] = SS_SYS_PWRITEV2,
	[383] = SS_SYS_STATX,
	[385] = SS_SYS_IO_PGETEVENTS,
	[400] = SS_SYS_MSGSND,
	[401] = SS_SYS_MSGRCV,
	[407] = SS_SYS_CLOCK_NANOSLEEP,
	[413] = SS_SYS_PSELECT6,
	[414] = SS_SYS_PPOLL,
	[416] = SS_SYS_IO_PGETEVENTS,
	[417] = SS_SYS_RECVMMSG,
	[418] = SS_SYS_MQ_TIMEDSEND,
	[419] = SS_SYS_MQ_TIMEDRECEIVE,
	[420] = SS_SYS_SEMTIMEDOP,
	[421] = SS_SYS_RT_SIGTIMEDWAIT,
	[422] = SS_SYS_FUTEX,
	[426] = SS_SYS_IO_URING_ENTER,
	[435] = SS_SYS_CLONE3,
	[437] = SS_SYS_OPENAT2,
	[439] = SS_SYS_FACCESSAT2,
	[441] = SS_SYS_EPOLL_PWAIT2,
	[449] = SS_SYS_FUTEX_WAITV,
	[455] = SS_SYS_FUTEX_WAIT,
};

/* __kernel_sigreturn: pop %eax; mov $__NR_sigreturn, %eax; int $0x80 */
static const uint8_t sigreturn_plain[] = { 0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80 };
/* __kernel_rt_sigreturn: mov $__NR_rt_sigreturn, %eax; int $0x80 */
static const uint8_t sigreturn_rt[] = { 0xb8, 173, 0, 0, 0, 0xcd, 0x80 };

/* arch/x86/include/asm/sigframe.h and uapi/asm/sigcontext.h: struct sigcontext_32 has four
   segment registers first. The return address of the handler, at the start of the frame, was
   popped. */
#define REGS_AT(at)                                                                      \
	{                                                                                \
		[EDI] = (at) + 16, [ESI] = (at) + 20, [EBP] = (at) + 24,                 \
		[ESP] = (at) + 28, [EBX] = (at) + 32, [EDX] = (at) + 36,                 \
		[ECX] = (at) + 40, [EAX] = (at) + 44, [EIP] = (at) + 56,                 \
	}

/* The number of the signal; struct sigcontext_32. */
static const struct ss_sigframe plain_sigframe = { .regs = REGS_AT(4) };

/* The number, two pointers, a siginfo of 128 bytes; struct ucontext with flags, link, stack. */
enum { UCONTEXT = 3 * 4 + 128, UC_STACK = UCONTEXT + 2 * 4, UC_REGS = UCONTEXT + 5 * 4 };

static const struct ss_sigframe *find_sigframe(const uint8_t *code, size_t size)
{
	if (size >= sizeof(sigreturn_plain) &&
	    memcmp(code, sigreturn_plain, sizeof(sigreturn_plain)) == 0)
		return &plain_sigframe;
	return size >= sizeof(sigreturn_rt) &&
			       memcmp(code, sigreturn_rt, sizeof(sigreturn_rt)) == 0 ?
		       &ss_arch_i386.sigframe :
		       NULL;
}

/* mov $number, %eax; int $0x80. Mostly the call is in the vDSO, without the number. */
static long entered_syscall(const uint8_t *code, size_t size)
{
	return ss_x86_entered_syscall(code, size, 0xcd, 0x80);
}

static bool call_target(const uint8_t *before, size_t size, uint64_t pc, uint64_t *ret)
{
	if (!ss_x86_call_target(before, size, pc, ret))
		return false;
	*ret = (uint32_t)*ret;
	return true;
}

static bool next_jump(const uint8_t *code, size_t size, uint64_t address, size_t *at,
		      uint64_t *ret)
{
	if (!ss_x86_next_jump(code, size, address, at, ret))
		return false;
	*ret = (uint32_t)*ret;
	return true;
}

static uint64_t absolute_at(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* A slot that code addresses by a constant; or, if it is position-independent, by ebx, which has
   the address of the global offset table. bytes: after the opcode ff */
static bool find_slot(const uint8_t *bytes, uint8_t absolute, uint8_t by_ebx,
		      uint64_t *ret)
{
	if (bytes[0] != absolute && bytes[0] != by_ebx)
		return false;
	*ret = absolute_at(bytes + 1);
	if (bytes[0] == by_ebx)
		*ret = SS_SLOT_IN_GOT | *ret;
	return true;
}

/* "call *abs32", "call *disp32(%ebx)" */
static bool called_slot(const uint8_t *before, size_t size, uint64_t pc, uint64_t *ret)
{
	(void)pc;
	return size >= 6 && before[size - 6] == 0xff &&
	       find_slot(before + size - 5, 0x15, 0x93, ret);
}

/* The same with "jmp", after endbr32 in .plt.sec */
static bool jump_slot(const uint8_t *code, size_t size, uint64_t address, uint64_t *ret)
{
	static const uint8_t endbr32[] = { 0xf3, 0x0f, 0x1e, 0xfb };
	size_t at = size >= sizeof(endbr32) &&
				    memcmp(code, endbr32, sizeof(endbr32)) == 0 ?
			    sizeof(endbr32) :
			    0;

	(void)address;
	return size >= at + 6 && code[at] == 0xff &&
	       find_slot(code + at + 1, 0x25, 0xa3, ret);
}

/* Instructions that make a constant the first argument: "push $imm32", or "movl $imm32,
   (%esp)". Returns the length, or 0. */
static size_t read_argument(const uint8_t *code, size_t size, uint64_t *ret)
{
	if (size >= 5 && code[0] == 0x68) {
		*ret = absolute_at(code + 1);
		return 5;
	}
	if (size < 7 || code[0] != 0xc7 || code[1] != 0x04 || code[2] != 0x24)
		return 0;
	*ret = absolute_at(code + 3);
	return 7;
}

static bool next_argument(const uint8_t *code, size_t size, uint64_t address, size_t *at,
			  uint64_t *ret)
{
	(void)address;
	for (size_t i = *at; i < size; i++) {
		size_t length = read_argument(code + i, size - i, ret);
		*at = i + length;
		if (length && *at < size && code[*at] == 0xe8)
			return true;
	}
	return false;
}

/*
 * socketcall(2) and ipc(2) stand for the calls that they make. Each is shown as the one of its own
 * that means the same.
 */

/* Arguments of socketcall(2) are in memory. Its calls that may wait, by linux/net.h; accept4(2)
   with flags of 0 is accept(2), and so on. */
static const struct {
	uint16_t number;
	uint8_t args;
} socket_calls[] = {
	[3] = { 362, 3 },  /* connect */
	[5] = { 364, 3 },  /* accept */
	[9] = { 369, 4 },  /* send: sendto */
	[10] = { 371, 4 }, /* recv: recvfrom */
	[11] = { 369, 6 }, /* sendto */
	[12] = { 371, 6 }, /* recvfrom */
	[16] = { 370, 3 }, /* sendmsg */
	[17] = { 372, 3 }, /* recvmsg */
	[18] = { 364, 4 }, /* accept4 */
	[19] = { 337, 5 }, /* recvmmsg */
	[20] = { 345, 4 }, /* sendmmsg */
};

static void unfold_socketcall(struct ss_syscall *call, ss_arch_reader *read, void *data)
{
	const uint64_t which = call->args[0];
	uint32_t args[SS_SYSCALL_ARGS] = {};

	if (which >= sizeof(socket_calls) / sizeof(socket_calls[0]) ||
	    !socket_calls[which].number || !read ||
	    !read(data, call->args[1], args, socket_calls[which].args * sizeof(args[0])))
		return;
	call->number = socket_calls[which].number;
	for (size_t i = 0; i < SS_SYSCALL_ARGS; i++)
		call->args[i] = args[i];
}

/* ipc(call, first, second, third, pointer, fifth), by linux/ipc.h. A semtimedop(2) with a time limit,
   of 32 bits here, stays as it is. */
static void unfold_ipc(struct ss_syscall *call)
{
	enum { SEMOP = 1, SEMTIMEDOP = 4, MSGSND = 11, MSGRCV = 12, VERSION = 16 };
	enum { SEMTIMEDOP_NUMBER = 420, MSGSND_NUMBER = 400, MSGRCV_NUMBER = 401 };
	const uint64_t *a = call->args;
	const struct ss_syscall semop = { .number = SEMTIMEDOP_NUMBER,
					  .args = { a[1], a[4], a[2] } };
	const struct ss_syscall send = { .number = MSGSND_NUMBER,
					 .args = { a[1], a[4], a[2], a[3] } };
	/* In version 0, buffer and type are in memory. */
	const bool old = a[0] >> VERSION == 0;
	const struct ss_syscall receive = { .number = MSGRCV_NUMBER,
					    .args = { a[1], old ? 0 : a[4], a[2],
						      old ? 0 : a[5], a[3] } };

	if (a[0] == SEMOP || (a[0] == SEMTIMEDOP && a[5] == 0))
		*call = semop;
	else if (a[0] == MSGSND)
		*call = send;
	else if ((a[0] & 0xffff) == MSGRCV)
		*call = receive;
}

/* select(2) of old: a pointer to the five arguments. */
static void unfold_select(struct ss_syscall *call, ss_arch_reader *read, void *data)
{
	uint32_t args[5];

	if (!read || !read(data, call->args[0], args, sizeof(args)))
		return;
	*call = (struct ss_syscall){ .number = 142 /* _newselect */ };
	for (size_t i = 0; i < 5; i++)
		call->args[i] = args[i];
}

static void unfold(struct ss_syscall *call, ss_arch_reader *read, void *data)
{
	enum { SELECT = 82, SOCKETCALL = 102, IPC = 117 };

	if (call->number == SOCKETCALL)
		unfold_socketcall(call, read, data);
	else if (call->number == IPC)
		unfold_ipc(call);
	else if (call->number == SELECT)
		unfold_select(call, read, data);
	call->id = ss_arch_syscall_id(&ss_arch_i386, call->number);
}

#if defined(__x86_64__)

static void get_regs(const ss_kernel_regs *k, struct ss_regs *ret)
{
	const uint64_t values[REG_COUNT] = {
		[EAX] = k->rax, [ECX] = k->rcx, [EDX] = k->rdx,
		[EBX] = k->rbx, [ESP] = k->rsp, [EBP] = k->rbp,
		[ESI] = k->rsi, [EDI] = k->rdi, [EIP] = k->rip,
	};

	for (size_t i = 0; i < REG_COUNT; i++)
		ret->value[i] = (uint32_t)values[i];
	ret->valid = (UINT64_C(1) << REG_COUNT) - 1;
}

static uint64_t thread_pointer(const ss_kernel_regs *k)
{
	return k->gs_base;
}

static void get_syscall(const ss_kernel_regs *k, struct ss_syscall *ret)
{
	const uint64_t args[SS_SYSCALL_ARGS] = { k->rbx, k->rcx, k->rdx,
						 k->rsi, k->rdi, k->rbp };

	*ret = (struct ss_syscall){ .number = (int32_t)k->orig_rax };
	for (size_t i = 0; i < SS_SYSCALL_ARGS; i++)
		ret->args[i] = (uint32_t)args[i];
	unfold(ret, NULL, NULL);
}

static bool is_blocked(const ss_kernel_regs *k)
{
	return ss_x86_is_blocked(&ss_arch_i386, k);
}

static bool is_new(const ss_kernel_regs *k)
{
	return ss_x86_is_new(&ss_arch_i386, k);
}

static bool undo_eintr(ss_kernel_regs *k)
{
	return ss_x86_undo_eintr(&ss_arch_i386, k);
}

static bool avoid_restart_syscall(ss_kernel_regs *k)
{
	return ss_x86_avoid_restart_syscall(&ss_arch_i386, k);
}

/* int $0x80, also where the vDSO has entered by another instruction */
static bool in_syscall(const ss_kernel_regs *k, const uint8_t *code, size_t size,
		       long *ret)
{
	*ret = entered_syscall(code, size);
	return ss_x86_in_syscall(&ss_arch_i386, k, code, size, 0xcd, 0x80);
}

static const uint8_t execute_code[] = {
	0xb8, 11,   0,	  0,	0,    /* mov $__NR_execve, %eax */
	0xcd, 0x80,		      /* int $0x80 */
	0xbb, 127,  0,	  0,	0,    /* mov $127, %ebx */
	0xb8, 252,  0,	  0,	0,    /* mov $__NR_exit_group, %eax */
	0xcd, 0x80,		      /* int $0x80 */
	0x0f, 0x0b, 0x90, 0x90, 0x90, /* ud2 */
};
_Static_assert(sizeof(execute_code) % 8 == 0, "words");

static void set_execute(ss_kernel_regs *k, uint64_t path, uint64_t argv, uint64_t envp)
{
	k->rbx = path;
	k->rcx = argv;
	k->rdx = envp;
}

static const char *const syscall_entries[] = { "entry_SYSENTER_compat",
					       "entry_SYSCALL_compat", "entry_INT80",
					       "asm_int80_emulation", NULL };
static const char *const safe_entries[] = { "sys_futex+", "sys_futex_time32+",
					    "sys_sched_yield+", NULL };

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
	.probe_args = { "+4(%sp)", "+8(%sp)", "+12(%sp)", "+16(%sp)", "+20(%sp)",
			"+24(%sp)" },
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

static const char *const reg_names[REG_COUNT] = { "eax", "ecx", "edx", "ebx", "esp",
						  "ebp", "esi", "edi", "eip" };

const struct ss_arch ss_arch_i386 = {
	.reg_names = reg_names,
	.name = "i386",
	.elf_machine = EM_386,
	.audit = AUDIT_ARCH_I386,
	.elf_class = ELFCLASS32,
	.word = 4,
	.reg_count = REG_COUNT,
	.pc = EIP,
	.sp = ESP,
	.fp = EBP,
	.return_column = EIP,
	.link = SS_REG_NONE,
	.syscall_args = { EBX, ECX, EDX, ESI, EDI, EBP },
	/* struct user_regs_struct of i386 */
	.core_regs = { .words = 17,
		       .regs = { [EBX] = 1,
				 [ECX] = 2,
				 [EDX] = 3,
				 [ESI] = 4,
				 [EDI] = 5,
				 [EBP] = 6,
				 [EAX] = 7,
				 [EIP] = 13,
				 [ESP] = 16 },
		       .syscall = 12,
		       .result = 7,
		       .thread_pointer_selector = 11 },
	.pthread_tid = 104,
	.fp_gives_sp = true,
	.sigframe = { .stack = UC_STACK, .regs = REGS_AT(UC_REGS) },
	.syscalls = syscalls,
	.syscall_count = sizeof(syscalls),
	.unfold = unfold,
	.find_sigframe = find_sigframe,
	.decode = ss_i386_decode,
	.is_call = ss_x86_is_call,
	.call_target = call_target,
	.next_jump = next_jump,
	.called_slot = called_slot,
	.jump_slot = jump_slot,
	.entered_syscall = entered_syscall,
	.next_argument = next_argument,
	.attach = ATTACH,
};
