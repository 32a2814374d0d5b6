#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "base/cleanup.h"

static ss_kernel_regs regs_in(long call, long result)
{
	return (ss_kernel_regs){ .orig_rax = (unsigned long)call,
				 .rax = (unsigned long)result };
}

TEST(test_registers)
{
	ss_kernel_regs kernel = { .rip = 1, .rsp = 2, .rbp = 3, .r15 = 4 };
	struct ss_regs regs;
	uint64_t value;

	ss_arch_x86_64.attach->regs(&kernel, &regs);
	assert_int_equal(ss_regs_pc(&ss_arch_x86_64, &regs), 1);
	assert_int_equal(ss_regs_sp(&ss_arch_x86_64, &regs), 2);
	assert_true(ss_regs_get(&regs, 15, &value));
	assert_int_equal(value, 4);
	assert_false(ss_regs_get(&regs, 17, &value));
	assert_false(ss_regs_get(&regs, 64, &value));
	ss_arch_regs_blocked(&ss_arch_x86_64, 8, 9, NULL, &regs);
	assert_false(ss_regs_get(&regs, ss_arch_x86_64.fp, &value));
	assert_int_equal(ss_regs_pc(&ss_arch_x86_64, &regs), 8);
}

TEST(test_samples)
{
	const struct ss_arch_attach *attach = ss_arch_x86_64.attach;
	const uint8_t entered[] = { 0xb8, 1, 0, 0, 0, 0x0f, 0x05 };
	const uint8_t other[] = { 0x90, 0x90 };
	uint64_t values[20];
	ss_kernel_regs kernel;
	long number = 0;

	assert_int_equal(__builtin_popcountll(attach->sample_mask),
			 SS_ARRAY_SIZE(values));
	for (size_t i = 0; i < SS_ARRAY_SIZE(values); i++)
		values[i] = 100 + i;
	attach->from_sample(values, &kernel);
	assert_int_equal(kernel.rax, 100);
	assert_int_equal(kernel.rsp, 107);
	assert_int_equal(kernel.rip, 108);
	assert_int_equal(kernel.r8, 112);
	assert_int_equal(kernel.r15, 119);
	assert_int_equal(kernel.orig_rax, -1);
	assert_false(attach->in_syscall(&kernel, entered, sizeof(entered), &number));
	kernel.rax = (unsigned long)-ENOSYS;
	assert_true(attach->in_syscall(&kernel, entered, sizeof(entered), &number));
	assert_int_equal(number, 1);
	assert_false(attach->in_syscall(&kernel, other, sizeof(other), &number));
	assert_false(attach->in_syscall(&kernel, entered, 1, &number));
}

TEST(test_undo_eintr)
{
	ss_kernel_regs k = regs_in(SYS_epoll_wait, -EINTR);

	k.r10 = 0xffffffff; /* -1 as an int: forever */
	assert_true(ss_arch_x86_64.attach->undo_eintr(&k));
	assert_int_equal((int64_t)k.rax, -514);
	assert_false(ss_arch_x86_64.attach->undo_eintr(&k));
	k = regs_in(SYS_epoll_wait, -EINTR);
	k.r10 = 1000;
	assert_false(ss_arch_x86_64.attach->undo_eintr(&k));
	k.r10 = UINT64_C(0xffffffff00000000); /* zero as an int */
	assert_false(ss_arch_x86_64.attach->undo_eintr(&k));
	k = regs_in(SYS_epoll_wait, 1);
	k.r10 = 0xffffffff;
	assert_false(ss_arch_x86_64.attach->undo_eintr(&k));
	k = regs_in(SYS_semop, -EINTR);
	assert_true(ss_arch_x86_64.attach->undo_eintr(&k));
	k = regs_in(SYS_semtimedop, -EINTR);
	k.r10 = 0x7fff0000;
	assert_false(ss_arch_x86_64.attach->undo_eintr(&k));
	k = regs_in(SYS_rt_sigtimedwait, -EINTR);
	assert_true(ss_arch_x86_64.attach->undo_eintr(&k));
	k = regs_in(SYS_read, -EINTR);
	assert_false(ss_arch_x86_64.attach->undo_eintr(&k));
	k = regs_in(-1, -EINTR); /* after a handler: the program's own value */
	assert_false(ss_arch_x86_64.attach->undo_eintr(&k));
	assert_int_equal((int64_t)k.rax, -EINTR);
}

TEST(test_avoid_restart_syscall)
{
	ss_kernel_regs k = regs_in(SYS_poll, -516);

	assert_true(ss_arch_x86_64.attach->avoid_restart_syscall(&k));
	assert_int_equal((int64_t)k.rax, -514);
	assert_int_equal((int64_t)k.orig_rax, SYS_poll);
	assert_false(ss_arch_x86_64.attach->avoid_restart_syscall(&k));
	k = regs_in(SYS_restart_syscall, -516); /* the original call is not known */
	assert_false(ss_arch_x86_64.attach->avoid_restart_syscall(&k));
	k = regs_in(-1, -516); /* in user space: the program's own value */
	assert_false(ss_arch_x86_64.attach->avoid_restart_syscall(&k));
}

/* A frame as the kernel writes it for a handler on an alternate stack. */
enum { STACK = 0x10000, STACK_SIZE = 0x4000, AT = 0x13000 };

static void fill_frame(uint64_t *words, uint64_t rsp)
{
	memset(words, 0xff, 32 * sizeof(*words));
	words[2] = STACK;
	words[3] = UINT64_C(0xdeadbeef00000000); /* flags, and padding with old bytes */
	words[4] = STACK_SIZE;
	words[2 + 3 + 15] = rsp;
}

static bool find(const uint64_t *words, size_t size, uint64_t *ret)
{
	return ss_arch_find_alternate(&ss_arch_x86_64, (const uint8_t *)words, size, AT,
				      ret);
}

TEST(test_alternate_stack)
{
	uint64_t words[32];
	uint64_t sp = 7;

	fill_frame(words, 0x7fff1000);
	assert_true(find(words, sizeof(words), &sp));
	assert_int_equal(sp, 0x7fff1000);
	words[3] |= 1; /* SS_ONSTACK */
	assert_true(find(words, sizeof(words), &sp));
	words[3] |= UINT32_C(1) << 31; /* SS_AUTODISARM */
	assert_true(find(words, sizeof(words), &sp));
	words[3] |= 4;
	assert_false(find(words, sizeof(words), &sp));
	fill_frame(words, STACK + 0x100); /* interrupted on the same stack */
	assert_false(find(words, sizeof(words), &sp));
	fill_frame(words, 0);
	assert_false(find(words, sizeof(words), &sp));
	fill_frame(words, 0x7fff1000);
	words[2] = AT + 0x1000; /* the frame does not lie on it */
	assert_false(find(words, sizeof(words), &sp));
	fill_frame(words, 0x7fff1000);
	words[4] = 100; /* too small for any handler */
	assert_false(find(words, sizeof(words), &sp));
	fill_frame(words, 0x7fff1000);
	for (size_t size = 0; size < (2 + 19) * 8; size++)
		assert_false(find(words, size, &sp));
	assert_true(find(words, (2 + 19) * 8, &sp));
}

static bool is_call(const char *code, size_t size)
{
	return ss_arch_x86_64.is_call((const uint8_t *)code, size);
}
#define IS_CALL(code) is_call(code, sizeof(code) - 1)

TEST(test_calls)
{
	assert_true(IS_CALL("\xe8\x01\x02\x03\x04"));
	assert_true(IS_CALL("\x90\x90\x90\xe8\x01\x02\x03\x04"));
	assert_false(IS_CALL("\x01\x02\x03\x04"));
	assert_true(IS_CALL("\xff\xd0"));		      /* *%rax */
	assert_true(IS_CALL("\x41\xff\xd4"));		      /* *%r12 */
	assert_true(IS_CALL("\xff\x10"));		      /* *(%rax) */
	assert_true(IS_CALL("\xff\x50\x08"));		      /* *8(%rax) */
	assert_true(IS_CALL("\xff\x14\x24"));		      /* *(%rsp) */
	assert_true(IS_CALL("\xff\x54\x24\x08"));	      /* *8(%rsp) */
	assert_true(IS_CALL("\xff\x15\x01\x02\x03\x04"));     /* *1(%rip) */
	assert_true(IS_CALL("\xff\x90\x01\x02\x03\x04"));     /* *1(%rax) */
	assert_true(IS_CALL("\xff\x94\x24\x01\x02\x03\x04")); /* *1(%rsp) */
	assert_true(IS_CALL("\xff\x14\x25\x01\x02\x03\x04")); /* *1 */
	assert_false(IS_CALL("\xff\xe0"));		      /* jmp *%rax */
	assert_false(IS_CALL("\xff\x15\x01\x02"));
	assert_false(IS_CALL("\xd0"));
	assert_false(IS_CALL(""));
}

TEST(test_sigreturn)
{
	static const uint8_t rax[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t eax[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };

	assert_non_null(ss_arch_x86_64.find_sigframe(rax, sizeof(rax)));
	assert_null(ss_arch_x86_64.find_sigframe(rax, sizeof(rax) - 1));
	assert_non_null(ss_arch_x86_64.find_sigframe(eax, sizeof(eax)));
	assert_null(ss_arch_x86_64.find_sigframe(eax, sizeof(eax) - 1));
	assert_null(ss_arch_x86_64.find_sigframe(rax, 0));
}

TEST(test_blocked)
{
	struct user_regs_struct kernel = { .orig_rax = SYS_futex };

	for (int error = 510; error <= 517; error++) {
		kernel.rax = (unsigned long long)-error;
		assert_int_equal(ss_arch_x86_64.attach->is_blocked(&kernel),
				 (error >= 512 && error <= 514) || error == 516);
	}
	kernel.rax = 0; /* it was woken */
	assert_false(ss_arch_x86_64.attach->is_blocked(&kernel));
	kernel.rax = (unsigned long long)-512;
	kernel.orig_rax = (unsigned long long)-1; /* not in a call */
	assert_false(ss_arch_x86_64.attach->is_blocked(&kernel));
}

TEST(test_new_thread)
{
	ss_kernel_regs kernel = regs_in(SYS_clone3, 0);

	assert_true(ss_arch_x86_64.attach->is_new(&kernel));
	kernel = regs_in(SYS_clone, 0);
	assert_true(ss_arch_x86_64.attach->is_new(&kernel));
	kernel = regs_in(SYS_clone, 4711); /* who made it */
	assert_false(ss_arch_x86_64.attach->is_new(&kernel));
	kernel = regs_in(SYS_futex, 0);
	assert_false(ss_arch_x86_64.attach->is_new(&kernel));
	kernel = regs_in(-1, 0);
	assert_false(ss_arch_x86_64.attach->is_new(&kernel));
}

TEST(test_restarted_call)
{
	static const uint8_t poll[] = { 0x90, 0xb8, 7, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t sleep[] = { 0xb8, 0xe6, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t read[] = { 0xb8, 0, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t by_register[] = { 0x90, 0x90, 0x90, 0x89, 0xf8, 0x0f, 0x05 };

	assert_int_equal(ss_arch_restarted_call(&ss_arch_x86_64, poll, sizeof(poll)),
			 SS_SYS_POLL);
	assert_int_equal(ss_arch_restarted_call(&ss_arch_x86_64, sleep, sizeof(sleep)),
			 SS_SYS_CLOCK_NANOSLEEP);
	/* the kernel never continues these in that way */
	assert_int_equal(ss_arch_restarted_call(&ss_arch_x86_64, read, sizeof(read)),
			 SS_SYS_UNKNOWN);
	assert_int_equal(
		ss_arch_restarted_call(&ss_arch_x86_64, by_register, sizeof(by_register)),
		SS_SYS_UNKNOWN);
	assert_int_equal(
		ss_arch_restarted_call(&ss_arch_x86_64, sleep + 1, sizeof(sleep) - 1),
		SS_SYS_UNKNOWN);
	assert_int_equal(ss_arch_restarted_call(&ss_arch_x86_64, NULL, 0),
			 SS_SYS_UNKNOWN);
}

/* The address passed to the only such call; 0: there is none. */
static uint64_t find_argument(const void *code, size_t size, size_t *call)
{
	uint64_t ret = 0;
	uint64_t next;

	*call = 0;
	if (!ss_arch_x86_64.next_argument(code, size, 0x1000, call, &ret))
		return 0;
	size_t at = *call;
	assert_false(ss_arch_x86_64.next_argument(code, size, 0x1000, &at, &next));
	return ret;
}

/* As gcc and clang write it; the address is relative to the end of lea. */
TEST(test_next_argument)
{
	static const uint8_t optimized[] = "\x90\x48\x8d\x3d\x10\x00\x00\x00\xe8\0\0\0\0";
	static const uint8_t plain[] =
		"\x48\x8d\x05\xf0\xff\xff\xff\x48\x89\xc7\xff\x15\0\0\0\0";
	static const uint8_t kept[] =
		"\x4c\x8d\x25\xf0\xff\xff\xff\x4c\x89\xe7\xe8\0\0\0\0";
	static const uint8_t another[] =
		"\x4c\x8d\x25\xf0\xff\xff\xff\x4c\x89\xef\xe8\0\0\0\0";
	static const uint8_t fixed[] = "\x55\xbf\x80\x40\x40\x00\x67\xe8\0\0\0\0";
	static const uint8_t changed[] =
		"\x48\x8d\x3d\x10\x00\x00\x00\x48\x01\xc7\xe8\0\0\0\0";
	static const uint8_t other[] = "\x48\x8d\x35\x10\x00\x00\x00\xe8\0\0\0\0";
	size_t call;

	assert_int_equal(find_argument(optimized, sizeof(optimized) - 1, &call), 0x1018);
	assert_int_equal(call, 8);
	assert_int_equal(find_argument(plain, sizeof(plain) - 1, &call), 0xff7);
	assert_int_equal(call, 10);
	assert_int_equal(find_argument(fixed, sizeof(fixed) - 1, &call), 0x404080);
	assert_int_equal(call, 6);
	assert_int_equal(find_argument(kept, sizeof(kept) - 1, &call), 0xff7);
	assert_int_equal(find_argument(another, sizeof(another) - 1, &call), 0);
	/* An element of an array, and the second argument. */
	assert_int_equal(find_argument(changed, sizeof(changed) - 1, &call), 0);
	assert_int_equal(find_argument(other, sizeof(other) - 1, &call), 0);
	/* The code ends at any position before the end of the call. */
	for (size_t size = 0; size < 11; size++)
		assert_int_equal(find_argument(plain, size, &call), 0);
	assert_int_equal(find_argument(plain, SS_ARGUMENT_MAX, &call), 0xff7);
}

static int64_t frame_size(const char *code, size_t size)
{
	uint64_t ret;

	return ss_arch_x86_64.frame_size((const uint8_t *)code, size, &ret) ?
		       (int64_t)ret :
		       -1;
}

#define FRAME_SIZE(code) frame_size((code), sizeof(code) - 1)

TEST(test_frame_size)
{
	assert_int_equal(FRAME_SIZE("\x55\x48\x89\xe5\x5d\xc3"), 0);
	assert_int_equal(FRAME_SIZE("\x55\x48\x89\xe5\x48\x83\xec\x70\x90"), 0x70);
	assert_int_equal(FRAME_SIZE("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x81\xec\x20"
				    "\x10\x00\x00"),
			 0x1020);
	/* push %r15, %r12, %rbx */
	assert_int_equal(
		FRAME_SIZE("\x55\x48\x89\xe5\x41\x57\x41\x54\x53\x48\x83\xec\x18"), 0x30);
	/* no frame pointer; a stack that would grow upwards; truncated */
	assert_int_equal(FRAME_SIZE("\x53\x48\x83\xec\x10"), -1);
	assert_int_equal(FRAME_SIZE("\x55\x48\x89\xe5\x48\x83\xec\x80"), -1);
	assert_int_equal(FRAME_SIZE("\x55\x48\x89"), -1);
	assert_int_equal(frame_size(NULL, 0), -1);
}

/* By how much code moves the stack pointer; -1: by other sizes, too. */
static int64_t find_moves(const char *code, size_t size)
{
	unsigned count = 0;
	uint64_t moved = 0;

	if (!ss_arch_x86_64.find_moves((const uint8_t *)code, size, &count, &moved))
		return -1;
	assert_int_equal(count, moved > 0);
	return (int64_t)moved;
}

#define FIND_MOVES(code)                                                                 \
	find_moves(code "\x90\x90\x90\x90\x90\x90", sizeof(code) - 1 + SS_MOVE_MAX - 1)

TEST(test_find_moves)
{
	assert_int_equal(
		FIND_MOVES("\x55\x48\x89\xe5\x48\x83\xec\x70\x48\x83\xc4\x70\x5d"), 0x70);
	/* sub $0x120,%rsp; add $-0x80,%rsp; lea -0x28(%rbp),%rsp */
	assert_int_equal(FIND_MOVES("\x48\x81\xec\x20\x01\x00\x00"), 0x120);
	assert_int_equal(FIND_MOVES("\x48\x83\xc4\x80"), 0x80);
	assert_int_equal(FIND_MOVES("\x48\x8d\x65\xd8\xc3"), 0);
	/* sub %rax,%rsp; sub %r8,%rsp; and $-64,%rsp; mov %rax,%rsp; mov %rbp,%rsp */
	assert_int_equal(FIND_MOVES("\x48\x29\xc4"), -1);
	assert_int_equal(FIND_MOVES("\x4c\x29\xc4"), -1);
	assert_int_equal(FIND_MOVES("\x48\x83\xe4\xc0"), -1);
	assert_int_equal(FIND_MOVES("\x48\x89\xc4"), -1);
	assert_int_equal(FIND_MOVES("\x48\x89\xec"), -1);
	/* sub 8(%rdi),%rsp; mov 8(%rdi),%rsp; lea (%rsp,%rax),%rsp; xchg %rax,%rsp */
	assert_int_equal(FIND_MOVES("\x48\x2b\x67\x08"), -1);
	assert_int_equal(FIND_MOVES("\x48\x8b\x67\x08"), -1);
	assert_int_equal(FIND_MOVES("\x48\x8d\x24\x04"), -1);
	assert_int_equal(FIND_MOVES("\x48\x87\xc4"), -1);
	/* The same of other registers: sub %rax,%r12; mov %rax,%r12; mov 8(%rdi),%r12 */
	assert_int_equal(FIND_MOVES("\x49\x29\xc4"), 0);
	assert_int_equal(FIND_MOVES("\x49\x89\xc4"), 0);
	assert_int_equal(FIND_MOVES("\x4c\x8b\x67\x08"), 0);
	assert_int_equal(find_moves("\x48\x29\xc4", 3), 0);
}

TEST(test_call_target)
{
	static const uint8_t direct[] = { 0x90, 0xe8, 0xfb, 0xff, 0xff, 0xff };
	static const uint8_t indirect[] = { 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0 };
	uint64_t target = 0;

	assert_true(ss_arch_x86_64.call_target(direct, sizeof(direct), 0x1000, &target));
	assert_int_equal(target, 0xffb);
	assert_false(
		ss_arch_x86_64.call_target(indirect, sizeof(indirect), 0x1000, &target));
	assert_false(ss_arch_x86_64.call_target(direct + 2, 4, 0x1000, &target));
}

/* The bytes before the address are also those of a call rel32: mov %r13,%rax; call *8(%rsp), and
   call *disp32(%rax,%rbp,8). */
TEST(test_ambiguous_call)
{
	static const uint8_t move[] = { 0x4c, 0x89, 0xe8, 0xff, 0x54, 0x24, 0x08 };
	static const uint8_t scaled[] = { 0xff, 0x94, 0xe8, 0x10, 0x00, 0x00, 0x00 };
	uint64_t target = 0;

	assert_true(ss_arch_x86_64.is_call(move, sizeof(move)));
	assert_false(ss_arch_x86_64.call_target(move, sizeof(move), 0x1000, &target));
	assert_true(ss_arch_x86_64.is_call(scaled, sizeof(scaled)));
	assert_false(ss_arch_x86_64.call_target(scaled, sizeof(scaled), 0x1000, &target));
}

/* Calls of functions of other modules: themselves through a slot, or by way of a stub. */
TEST(test_slots)
{
	static const uint8_t call[] = { 0x90, 0xff, 0x15, 0x10, 0, 0, 0 };
	static const uint8_t stub[] = { 0xff, 0x25, 0x20, 0, 0, 0 };
	static const uint8_t checked[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff,
					   0x25, 0x20, 0,    0,	   0 };
	const struct ss_arch *arch = &ss_arch_x86_64;
	uint64_t slot = 0;

	assert_true(arch->called_slot(call, sizeof(call), 0x1000, &slot));
	assert_int_equal(slot, 0x1010);
	assert_false(arch->called_slot(call + 2, 5, 0x1000, &slot));
	assert_false(arch->called_slot(stub, sizeof(stub), 0x1000, &slot));
	assert_true(arch->jump_slot(stub, sizeof(stub), 0x2000, &slot));
	assert_int_equal(slot, 0x2026);
	assert_true(arch->jump_slot(checked, sizeof(checked), 0x2000, &slot));
	assert_int_equal(slot, 0x202b);
	assert_false(arch->jump_slot(checked, sizeof(checked) - 1, 0x2000, &slot));
	assert_false(arch->jump_slot(call, sizeof(call), 0x2000, &slot));
}

/* The kernel's header is the reference. */
TEST(test_syscall_numbers)
{
	static const struct {
		enum ss_syscall_id id;
		long number;
	} calls[] = {
		{ SS_SYS_READ, SYS_read },
		{ SS_SYS_WRITE, SYS_write },
		{ SS_SYS_OPEN, SYS_open },
		{ SS_SYS_CLOSE, SYS_close },
		{ SS_SYS_POLL, SYS_poll },
		{ SS_SYS_RT_SIGRETURN, SYS_rt_sigreturn },
		{ SS_SYS_IOCTL, SYS_ioctl },
		{ SS_SYS_PREAD64, SYS_pread64 },
		{ SS_SYS_PWRITE64, SYS_pwrite64 },
		{ SS_SYS_READV, SYS_readv },
		{ SS_SYS_WRITEV, SYS_writev },
		{ SS_SYS_SELECT, SYS_select },
		{ SS_SYS_MSYNC, SYS_msync },
		{ SS_SYS_PAUSE, SYS_pause },
		{ SS_SYS_NANOSLEEP, SYS_nanosleep },
		{ SS_SYS_SENDFILE, SYS_sendfile },
		{ SS_SYS_CONNECT, SYS_connect },
		{ SS_SYS_ACCEPT, SYS_accept },
		{ SS_SYS_SENDTO, SYS_sendto },
		{ SS_SYS_RECVFROM, SYS_recvfrom },
		{ SS_SYS_SENDMSG, SYS_sendmsg },
		{ SS_SYS_RECVMSG, SYS_recvmsg },
		{ SS_SYS_CLONE, SYS_clone },
		{ SS_SYS_FORK, SYS_fork },
		{ SS_SYS_VFORK, SYS_vfork },
		{ SS_SYS_WAIT4, SYS_wait4 },
		{ SS_SYS_SEMOP, SYS_semop },
		{ SS_SYS_MSGSND, SYS_msgsnd },
		{ SS_SYS_MSGRCV, SYS_msgrcv },
		{ SS_SYS_FCNTL, SYS_fcntl },
		{ SS_SYS_FLOCK, SYS_flock },
		{ SS_SYS_FSYNC, SYS_fsync },
		{ SS_SYS_FDATASYNC, SYS_fdatasync },
		{ SS_SYS_FTRUNCATE, SYS_ftruncate },
		{ SS_SYS_RT_SIGTIMEDWAIT, SYS_rt_sigtimedwait },
		{ SS_SYS_RT_SIGSUSPEND, SYS_rt_sigsuspend },
		{ SS_SYS_SYNC, SYS_sync },
		{ SS_SYS_FUTEX, SYS_futex },
		{ SS_SYS_IO_GETEVENTS, SYS_io_getevents },
		{ SS_SYS_GETDENTS64, SYS_getdents64 },
		{ SS_SYS_RESTART_SYSCALL, SYS_restart_syscall },
		{ SS_SYS_SEMTIMEDOP, SYS_semtimedop },
		{ SS_SYS_CLOCK_NANOSLEEP, SYS_clock_nanosleep },
		{ SS_SYS_EPOLL_WAIT, SYS_epoll_wait },
		{ SS_SYS_MQ_TIMEDSEND, SYS_mq_timedsend },
		{ SS_SYS_MQ_TIMEDRECEIVE, SYS_mq_timedreceive },
		{ SS_SYS_WAITID, SYS_waitid },
		{ SS_SYS_OPENAT, SYS_openat },
		{ SS_SYS_PSELECT6, SYS_pselect6 },
		{ SS_SYS_PPOLL, SYS_ppoll },
		{ SS_SYS_SPLICE, SYS_splice },
		{ SS_SYS_TEE, SYS_tee },
		{ SS_SYS_SYNC_FILE_RANGE, SYS_sync_file_range },
		{ SS_SYS_VMSPLICE, SYS_vmsplice },
		{ SS_SYS_EPOLL_PWAIT, SYS_epoll_pwait },
		{ SS_SYS_FALLOCATE, SYS_fallocate },
		{ SS_SYS_ACCEPT4, SYS_accept4 },
		{ SS_SYS_PREADV, SYS_preadv },
		{ SS_SYS_PWRITEV, SYS_pwritev },
		{ SS_SYS_RECVMMSG, SYS_recvmmsg },
		{ SS_SYS_SYNCFS, SYS_syncfs },
		{ SS_SYS_SENDMMSG, SYS_sendmmsg },
		{ SS_SYS_COPY_FILE_RANGE, SYS_copy_file_range },
		{ SS_SYS_PREADV2, SYS_preadv2 },
		{ SS_SYS_PWRITEV2, SYS_pwritev2 },
		{ SS_SYS_IO_PGETEVENTS, SYS_io_pgetevents },
		{ SS_SYS_IO_URING_ENTER, SYS_io_uring_enter },
		{ SS_SYS_CLONE3, SYS_clone3 },
		{ SS_SYS_EPOLL_PWAIT2, SYS_epoll_pwait2 },
		{ SS_SYS_FUTEX_WAITV, SYS_futex_waitv },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(calls); i++) {
		assert_int_equal(ss_arch_syscall_id(&ss_arch_x86_64, calls[i].number),
				 calls[i].id);
		assert_int_equal(ss_arch_syscall_number(&ss_arch_x86_64, calls[i].id),
				 calls[i].number);
	}
	assert_int_equal(ss_arch_syscall_id(&ss_arch_x86_64, -1), SS_SYS_UNKNOWN);
	assert_int_equal(ss_arch_syscall_id(&ss_arch_x86_64, 100000), SS_SYS_UNKNOWN);
	assert_int_equal(ss_arch_syscall_id(&ss_arch_x86_64, SYS_getpid), SS_SYS_UNKNOWN);
	assert_int_equal(ss_arch_syscall_number(&ss_arch_x86_64, SS_SYS_UNKNOWN), -1);
}
