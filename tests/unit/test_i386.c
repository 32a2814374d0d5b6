/* Recognisers of i386, the calls that stand for several, and its structs in ELF files. */
#include <elf.h>
#include <string.h>

#include "arch/arch.h"
#include "elf/records.h"
#include "unit.h"

static const struct ss_arch *const arch = &ss_arch_i386;

TEST(test_table)
{
	assert_ptr_equal(ss_arch_find(EM_386, ELFCLASS32), arch);
	assert_null(ss_arch_find(EM_X86_64, ELFCLASS32)); /* x32 */
	assert_int_equal(ss_arch_syscall_id(arch, 240), SS_SYS_FUTEX);
	assert_int_equal(ss_arch_syscall_id(arch, 422), SS_SYS_FUTEX);
	assert_int_equal(ss_arch_syscall_id(arch, 0), SS_SYS_RESTART_SYSCALL);
	assert_int_equal(ss_arch_syscall_id(arch, 3), SS_SYS_READ);
	assert_int_equal(ss_arch_syscall_id(arch, 7), SS_SYS_WAIT4);
}

/* Linux 6.1: arch/x86/entry/vdso/vdso32/sigreturn.S */
TEST(test_signal_frames)
{
	const uint8_t plain[] = { 0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80 };
	const uint8_t rt[] = { 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80 };
	const struct ss_sigframe *frame = arch->find_sigframe(plain, sizeof(plain));

	assert_non_null(frame);
	assert_int_equal(frame->regs[arch->pc], 60);
	assert_int_equal(frame->regs[arch->sp], 32);
	assert_null(arch->find_sigframe(plain, sizeof(plain) - 1));
	frame = arch->find_sigframe(rt, sizeof(rt));
	assert_ptr_equal(frame, &arch->sigframe);
	assert_int_equal(frame->regs[arch->pc], 216);
	assert_null(arch->find_sigframe(rt, sizeof(rt) - 1));
}

TEST(test_code)
{
	const uint8_t vdso[] = { 0x65, 0xff, 0x15, 0x10, 0, 0, 0 }; /* call *%gs:0x10 */
	const uint8_t back[] = { 0xe8, 0xf0, 0xff, 0xff, 0xff };
	const uint8_t stub[] = { 0xf3, 0x0f, 0x1e, 0xfb, 0xff, 0xa3, 0x0c, 0, 0, 0 };
	const uint8_t slot[] = { 0xff, 0x25, 0x0c, 0xa0, 0x04, 0x08 };
	const uint8_t push[] = { 0x68, 0x10, 0xa0, 0x04, 0x08, 0xe8 };
	uint64_t value;
	size_t at = 0;

	assert_true(arch->is_call(vdso, sizeof(vdso)));
	assert_true(arch->call_target(back, sizeof(back), 8, &value));
	assert_int_equal(value, 0xfffffff8); /* not beyond 32 bits */
	assert_true(arch->jump_slot(stub, sizeof(stub), 0, &value));
	assert_int_equal(value, SS_SLOT_IN_GOT | 0xc);
	assert_true(arch->jump_slot(slot, sizeof(slot), 0, &value));
	assert_int_equal(value, 0x804a00c);
	assert_true(arch->next_argument(push, sizeof(push), 0, &at, &value));
	assert_int_equal(value, 0x804a010);
}

static size_t length_of(const char *code, size_t size)
{
	struct ss_instruction ret;

	return ss_i386_decode((const uint8_t *)code, size, 0, &ret) ? ret.size : 0;
}
#define LENGTH(code) length_of(code, sizeof(code) - 1)

TEST(test_instructions)
{
	assert_int_equal(LENGTH("\x40"), 1);		     /* inc %eax */
	assert_int_equal(LENGTH("\x60"), 1);		     /* pusha */
	assert_int_equal(LENGTH("\xa1\x10\x00\x00\x00"), 5); /* mov 0x10,%eax */
	assert_int_equal(LENGTH("\xc5\x06"), 2);	     /* lds (%esi),%eax */
	assert_int_equal(LENGTH("\xc5\xf8\x77"), 3);	     /* vzeroupper */
	assert_int_equal(LENGTH("\x67\x8b\x07"), 0);	     /* mov (%bx),%eax */
	assert_int_equal(LENGTH("\x65\xa1\x14\x00\x00\x00"), 6);
}

static bool read_args(void *data, uint64_t address, void *bytes, size_t size)
{
	memcpy(bytes, data, size);
	return address == 0x1000;
}

TEST(test_folded_calls)
{
	uint32_t args[] = { 5, 0x2000, 100, 0x100 };
	struct ss_syscall receive = { .number = 102, .args = { 10, 0x1000 } };
	struct ss_syscall unread = { .number = 102, .args = { 10, 0x1001 } };
	struct ss_syscall semop = { .number = 117, .args = { 1, 7, 2, 0, 0x3000 } };

	arch->unfold(&receive, read_args, args);
	assert_int_equal(receive.id, SS_SYS_RECVFROM);
	assert_int_equal(receive.args[0], 5);
	assert_int_equal(receive.args[3], 0x100);
	assert_int_equal(receive.args[4], 0);
	arch->unfold(&unread, read_args, args);
	assert_int_equal(unread.number, 102);
	assert_int_equal(unread.id, SS_SYS_UNKNOWN);
	arch->unfold(&semop, NULL, NULL);
	assert_int_equal(semop.id, SS_SYS_SEMTIMEDOP);
	assert_int_equal(semop.args[0], 7);
	assert_int_equal(semop.args[1], 0x3000);
	assert_int_equal(semop.args[2], 2);
	assert_int_equal(semop.args[3], 0);
}

#if defined(__x86_64__)

/* A tracer of 64 bits may see results with or without upper halves. */
TEST(test_eintr)
{
	ss_kernel_regs k = { .orig_rax = 256, .rsi = (uint32_t)-1, .rax = (uint32_t)-4 };

	assert_true(arch->attach->undo_eintr(&k)); /* epoll_wait */
	assert_int_equal(k.rax, -514);
	assert_true(arch->attach->is_blocked(&k));
	k.rsi = 1000;
	k.rax = (uint64_t)-4;
	assert_false(arch->attach->undo_eintr(&k));
	k = (ss_kernel_regs){ .orig_rax = 117, .rbx = 1, .rax = (uint64_t)-4 };
	assert_true(arch->attach->undo_eintr(&k)); /* semop by ipc */
	k = (ss_kernel_regs){ .orig_rax = 407, .rax = (uint64_t)-516 };
	assert_true(arch->attach->avoid_restart_syscall(&k));
	k = (ss_kernel_regs){ .orig_rax = 0, .rax = (uint64_t)-516 };
	assert_false(arch->attach->avoid_restart_syscall(&k));
	k = (ss_kernel_regs){ .orig_rax = UINT32_MAX, .rax = (uint64_t)-512 };
	assert_false(arch->attach->is_blocked(&k));
}

#endif

TEST(test_records)
{
	union {
		Elf32_Sym narrow[2];
		Elf64_Sym wide[2];
	} symbols = { .narrow = { { .st_name = 1, .st_value = 2, .st_size = 3 },
				  { .st_name = 4, .st_shndx = 5, .st_info = 6 } } };
	union {
		Elf32_Rel narrow;
		Elf64_Rela wide;
	} relocation = { .narrow = { 0x1000, ELF32_R_INFO(7, 8) } };

	ss_elf_widen(ELFCLASS64, SS_ELF_SYMBOL, &symbols, 2);
	assert_int_equal(symbols.narrow[1].st_name, 4);
	ss_elf_widen(ELFCLASS32, SS_ELF_SYMBOL, &symbols, 2);
	assert_int_equal(symbols.wide[0].st_value, 2);
	assert_int_equal(symbols.wide[0].st_size, 3);
	assert_int_equal(symbols.wide[1].st_name, 4);
	assert_int_equal(symbols.wide[1].st_shndx, 5);
	assert_int_equal(symbols.wide[1].st_info, 6);
	ss_elf_widen(ELFCLASS32, SS_ELF_RELOCATION, &relocation, 1);
	assert_int_equal(relocation.wide.r_offset, 0x1000);
	assert_int_equal(ELF64_R_SYM(relocation.wide.r_info), 7);
	assert_int_equal(ELF64_R_TYPE(relocation.wide.r_info), 8);
}
