/*
 * Captures of another processor: the recognisers of aarch64, and stacks that
 * targets/aarch64.c made under qemu-aarch64, unwound with its ELF file.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "data/capture.h"
#include "data/snapshot.h"

enum { STACK_WORDS = 4096, PAGE = 0x10000 };

static const struct ss_arch *const arch = &ss_arch_aarch64;

static size_t put(uint8_t *bytes, const uint32_t *instructions, size_t count)
{
	memcpy(bytes, instructions, count * sizeof(*instructions));
	return count * sizeof(*instructions);
}

#define CODE(...)                                                                        \
	const uint32_t instructions[] = { __VA_ARGS__ };                                 \
	uint8_t code[sizeof(instructions)];                                              \
	size_t size = put(code, instructions, SS_ARRAY_SIZE(instructions))

static bool is_call(uint32_t instruction)
{
	CODE(0xd503201f, instruction);

	return arch->is_call(code, size);
}

TEST(test_calls)
{
	uint64_t target;

	assert_true(is_call(0x94000001));  /* bl .+4 */
	assert_true(is_call(0x97ffffff));  /* bl .-4 */
	assert_true(is_call(0xd63f0000));  /* blr x0 */
	assert_true(is_call(0xd63f0260));  /* blr x19 */
	assert_true(is_call(0xd73f0a71));  /* blraa x19, x17 */
	assert_true(is_call(0xd63f0a7f));  /* blraaz x19 */
	assert_true(is_call(0xd73f0e71));  /* blrab x19, x17 */
	assert_true(is_call(0xd63f0e7f));  /* blrabz x19 */
	assert_false(is_call(0x14000001)); /* b .+4 */
	assert_false(is_call(0xd61f0000)); /* br x0 */
	assert_false(is_call(0xd65f03c0)); /* ret */
	assert_false(arch->is_call(NULL, 0));
	CODE(0xd63f0000, 0x97ffffff);
	assert_true(arch->call_target(code, size, 0x1008, &target));
	assert_int_equal(target, 0x1000);
	assert_false(arch->call_target(code, 4, 0x1004, &target));
	assert_false(arch->call_target(code, 3, 0x1003, &target));
}

static void check_flow(uint32_t instruction, enum ss_flow flow, int64_t distance)
{
	struct ss_instruction ret;
	CODE(instruction);

	assert_true(arch->decode(code, size, 0x10000, &ret));
	assert_int_equal(ret.size, 4);
	assert_int_equal(ret.flow, flow);
	assert_int_equal(ret.target, distance ? 0x10000 + (uint64_t)distance : 0);
	assert_false(ret.marker);
}

TEST(test_decode)
{
	struct ss_instruction ret;
	const uint8_t data[8] = {};

	check_flow(0x14000002, SS_FLOW_JUMP, 8);     /* b .+8 */
	check_flow(0x17ffffff, SS_FLOW_JUMP, -4);    /* b .-4 */
	check_flow(0x54000040, SS_FLOW_BRANCH, 8);   /* b.eq .+8 */
	check_flow(0x54ffffe1, SS_FLOW_BRANCH, -4);  /* b.ne .-4 */
	check_flow(0xb4000060, SS_FLOW_BRANCH, 12);  /* cbz x0, .+12 */
	check_flow(0x35ffffc1, SS_FLOW_BRANCH, -8);  /* cbnz w1, .-8 */
	check_flow(0x37080040, SS_FLOW_BRANCH, 8);   /* tbnz w0, #1, .+8 */
	check_flow(0xb607ffe0, SS_FLOW_BRANCH, -4);  /* tbz x0, #32, .-4 */
	check_flow(0xd65f03c0, SS_FLOW_RETURN, 0);   /* ret */
	check_flow(0xd65f0bff, SS_FLOW_RETURN, 0);   /* retaa */
	check_flow(0xd65f0fff, SS_FLOW_RETURN, 0);   /* retab */
	check_flow(0xd61f0200, SS_FLOW_INDIRECT, 0); /* br x16 */
	check_flow(0xd71f0a11, SS_FLOW_INDIRECT, 0); /* braa x16, x17 */
	check_flow(0x94000001, SS_FLOW_NEXT, 0);     /* bl */
	check_flow(0xd63f0000, SS_FLOW_NEXT, 0);     /* blr x0 */
	check_flow(0xd4000001, SS_FLOW_NEXT, 0);     /* svc #0 */
	check_flow(0xd503233f, SS_FLOW_NEXT, 0);     /* paciasp */
	check_flow(0xa9bf7bfd, SS_FLOW_NEXT, 0);     /* stp x29, x30, [sp, #-16]! */
	for (size_t i = 0; i < 2; i++) {
		CODE(i ? 0xd503245f : 0xd503201f); /* bti c, nop */
		assert_true(arch->decode(code, size, 0x1000, &ret));
		assert_true(ret.marker);
		assert_false(arch->decode(code, size - 1, 0x1000, &ret));
		assert_false(arch->decode(code, size, 0x1002, &ret));
	}
	assert_false(arch->decode(data, sizeof(data), 0x1000, &ret)); /* udf */
}

TEST(test_system_calls)
{
	{
		CODE(0xd2801168, 0xd4000001); /* mov x8, #139; svc #0 */
		assert_non_null(arch->find_sigframe(code, size));
		assert_null(arch->find_sigframe(code, size - 1));
		assert_int_equal(arch->entered_syscall(code, size), 139);
		assert_int_equal(ss_arch_restarted_call(arch, code, size),
				 SS_SYS_UNKNOWN);
	}
	CODE(0xd2800ca8, 0xd4000001); /* mov x8, #101 */
	assert_null(arch->find_sigframe(code, size));
	assert_int_equal(ss_arch_restarted_call(arch, code, size), SS_SYS_NANOSLEEP);
	assert_int_equal(arch->entered_syscall(code, 4), -1);
	assert_int_equal(ss_arch_syscall_id(arch, 98), SS_SYS_FUTEX);
	assert_int_equal(ss_arch_syscall_number(arch, SS_SYS_READ), 63);
	assert_int_equal(ss_arch_syscall_number(arch, SS_SYS_OPEN), -1);
	assert_ptr_equal(ss_arch_find_name("aarch64"), arch);
	assert_ptr_equal(ss_arch_find(EM_AARCH64, ELFCLASS64), arch);
	assert_null(ss_arch_find(EM_AARCH64, ELFCLASS32));
	assert_null(ss_arch_find_name("pdp11"));
}

TEST(test_next_argument)
{
	/* nop; adrp x1, .+0x2000; add x0, x1, #0x18; bl; adrp x0, .-0x1000; add; nop */
	CODE(0xd503201f, 0xd0000001, 0x91006020, 0x94000001, 0xf0ffffe0, 0x91006000,
	     0xd503201f);
	uint64_t ret;
	size_t at = 0;

	assert_true(arch->next_argument(code, size, 0x400ff8, &at, &ret));
	assert_int_equal(at, 12);
	assert_int_equal(ret, 0x402018);
	assert_false(arch->next_argument(code, size, 0x400ff8, &at, &ret));
	at = 0;
	assert_false(arch->next_argument(code, 15, 0x400ff8, &at, &ret));
	/* Reversed: the last instruction is a call now. */
	memcpy(code + 24, code + 12, 4);
	at = 16;
	assert_true(arch->next_argument(code, size, 0x400ff8, &at, &ret));
	assert_int_equal(ret, 0x400018);
}

/* struct dump of targets/aarch64.c */
struct dump {
	uint64_t registers[SS_REG_MAX];
	uint64_t address;
	uint64_t count;
	uint64_t words[STACK_WORDS];
};

/* Runs a target. Skips the test where it was not built or cannot run. */
static void run(const char *path, const char *argument, struct dump *ret)
{
	char command[4096];

	if (access(path, X_OK) != 0) {
		print_message("%s was not built: install clang and lld\n", path);
		skip();
	}
	if (system("qemu-aarch64 --version >/dev/null 2>&1") != 0) {
		print_message("qemu-aarch64 is missing: install qemu-user\n");
		skip();
	}
	(void)snprintf(command, sizeof(command), "qemu-aarch64 '%s' %s", path, argument);
	FILE *output = popen(command, "r");
	assert_non_null(output);
	size_t size = fread(ret, 1, sizeof(*ret), output);
	assert_int_equal(pclose(output), 0);
	assert_true(ret->count > 4 && ret->count <= STACK_WORDS);
	assert_int_equal(size, offsetof(struct dump, words) + ret->count * 8);
}

static void add_area(struct ss_capture *capture, uint64_t start, uint64_t end,
		     unsigned prot, int32_t module)
{
	*ss_vector_push(&capture->areas) = (struct ss_area){
		.start = start, .end = end, .prot = prot, .module = module, .name = ""
	};
}

/* Maps the segments of a static program as the kernel does. */
static void add_program(struct ss_capture *capture, const char *path)
{
	Elf64_Ehdr elf;
	Elf64_Phdr headers[16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &elf, sizeof(elf), 0), sizeof(elf));
	assert_in_range(elf.e_phnum, 1, SS_ARRAY_SIZE(headers));
	ssize_t size = (ssize_t)(elf.e_phnum * sizeof(*headers));
	assert_int_equal(pread(fd, headers, (size_t)size, (off_t)elf.e_phoff), size);
	struct ss_module_impl *module = NULL;
	for (size_t i = 0; i < elf.e_phnum; i++) {
		const Elf64_Phdr *header = &headers[i];
		uint64_t in_page = header->p_vaddr % PAGE;
		struct ss_mapping mapping = {
			.start = header->p_vaddr - in_page,
			.end = (header->p_vaddr + header->p_memsz + PAGE - 1) &
			       ~(uint64_t)(PAGE - 1),
			.offset = header->p_offset - in_page,
			.prot = (header->p_flags & PF_X) ? PROT_READ | PROT_EXEC :
							   PROT_READ,
		};
		if (header->p_type != PT_LOAD)
			continue;
		if (!module)
			module = ss_module_new(path, mapping.start,
					       mapping.start + (1 << 24));
		assert_true(module && ss_module_add_mapping(module, &mapping));
		add_area(capture, mapping.start, mapping.end, mapping.prot, 0);
	}
	assert_non_null(module);
	module->fd = fd;
	*ss_vector_push(&capture->modules) = module;
}

static struct ss_capture *make_capture(const char *path, const struct dump *dump)
{
	struct ss_capture *capture = ss_capture_new();

	capture->arch = arch;
	capture->process.executable = path;
	add_program(capture, path);
	uint64_t end = dump->address + dump->count * 8;
	add_area(capture, dump->address & ~(uint64_t)(PAGE - 1), end,
		 PROT_READ | PROT_WRITE, -1);
	struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
	*thread = (struct ss_capture_thread){ .tid = 7, .state = 'S' };
	thread->stacks[0] =
		(struct ss_stack_copy){ .address = dump->address,
					.size = dump->count * 8,
					.bytes = (const uint8_t *)dump->words };
	for (unsigned reg = 0; reg < arch->reg_count; reg++)
		ss_regs_set(&thread->regs, reg, dump->registers[reg]);
	return capture;
}

static void check_names(const struct ss_snapshot *snapshot, const char *const *wanted,
			size_t count)
{
	const struct ss_task *thread = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0);

	for (size_t i = 0; i < thread->frame_count && i < count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		assert_non_null(frame->symbol);
		assert_string_equal(frame->symbol, wanted[i]);
		assert_int_equal(frame->signal_frame,
				 strcmp(frame->symbol, "signal_return") == 0);
	}
	assert_int_equal(thread->frame_count, count);
	assert_string_equal(ss_end_name(thread->end), ss_end_name(SS_END_ROOT));
}

/* How the caller of leaf must have been found. */
static enum ss_frame_source wanted_source(const char *flavour)
{
	if (strcmp(flavour, "nocfi_leaf") == 0)
		return SS_FROM_RETURN_ADDRESS;
	return strncmp(flavour, "nocfi", 5) == 0 ? SS_FROM_FRAME_POINTER : SS_FROM_CFI;
}

static void check_stack(const char *flavour, bool with_signal)
{
	static const char *const plain[] = { "leaf",  "inner",	 "with_array",
					     "outer", "program", "_start" };
	static const char *const interrupted[] = {
		"leaf",	      "on_signal", "signal_return", "interrupted", "inner",
		"with_array", "outer",	   "program",	    "_start"
	};
	const char *targets = getenv("TARGETS");
	char path[2048];
	struct dump dump;
	struct ss_session *session = NULL;
	struct ss_snapshot *snapshot = NULL;

	(void)snprintf(path, sizeof(path), "%s/aarch64_%s", targets ? targets : ".",
		       flavour);
	run(path, with_signal ? "signal" : "", &dump);
	struct ss_capture *capture = make_capture(path, &dump);
	assert_null(ss_session_new(NULL, &session));
	assert_null(ss_capture_unwind(capture, session, NULL, &snapshot));
	assert_null(ss_snapshot_symbolize(snapshot, session, 0));
	if (with_signal)
		check_names(snapshot, interrupted, SS_ARRAY_SIZE(interrupted));
	else
		check_names(snapshot, plain, SS_ARRAY_SIZE(plain));
	const struct ss_task *thread = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0);
	assert_int_equal(ss_snapshot_frame(snapshot, thread, 1)->source,
			 wanted_source(flavour));
	ss_snapshot_free(snapshot);
	ss_session_free(session);
	capture->process.executable = NULL;
	ss_capture_free(capture);
}

#define STACK_TESTS(flavour)                                                             \
	TEST(test_stack_##flavour)                                                       \
	{                                                                                \
		check_stack(#flavour, false);                                            \
	}                                                                                \
	TEST(test_signal_##flavour)                                                      \
	{                                                                                \
		check_stack(#flavour, true);                                             \
	}

/* CFA by sp; by fp; with signed return addresses */
STACK_TESTS(sp)
STACK_TESTS(fp)
STACK_TESTS(pac)
/* frame records only; and a leaf function without one */
STACK_TESTS(nocfi)
STACK_TESTS(nocfi_leaf)
STACK_TESTS(nocfi_pac)

/* For the report of a crash: by DWARF number. */
TEST(test_names_of_registers)
{
	const char *const *names = ss_arch_aarch64.reg_names;

	for (unsigned i = 0; i < ss_arch_aarch64.reg_count; i++)
		assert_non_null(names[i]);
	assert_string_equal(names[0], "x0");
	assert_string_equal(names[ss_arch_aarch64.fp], "x29");
	assert_string_equal(names[ss_arch_aarch64.link], "x30");
	assert_string_equal(names[ss_arch_aarch64.sp], "sp");
	assert_string_equal(names[ss_arch_aarch64.pc], "pc");
}
