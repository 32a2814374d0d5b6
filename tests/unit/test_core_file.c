

#include "unit.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/core_file.h"

/* The files in the corpus of the fuzzer: a program at 0x400000 whose bytes are missing, a
   stack of 128 bytes at 0x7000, two threads. */
#define CORPUS CORPUS_DIRECTORY "/core/"

enum { STACK = 0x7000, STACK_SIZE = 128, CODE = 0x400105 };

static struct ss_core_file *open_core(const char *path)
{
	struct ss_core_file *core = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_null(ss_core_file_open(fd, &core));
	return core;
}

TEST(test_threads)
{
	_cleanup_(ss_core_file_cleanup) struct ss_core_file *core =
		open_core(CORPUS "x86_64");

	assert_ptr_equal(core->arch, &ss_arch_x86_64);
	assert_int_equal(core->threads.count, 2);
	const struct ss_capture_thread *thread = core->threads.items;
	assert_int_equal(thread->tid, 7);
	assert_int_equal(ss_regs_pc(core->arch, &thread->regs), CODE);
	assert_int_equal(ss_regs_sp(core->arch, &thread->regs), STACK + 16);
	assert_int_equal(thread->thread_pointer, 0x7777);
	assert_int_equal(thread->syscall.number, -1);
	/* A futex call that the kernel interrupted. */
	assert_int_equal(thread[1].syscall.id, SS_SYS_FUTEX);
	assert_int_equal(thread[1].syscall.args[0], STACK + 8);
	assert_int_equal(thread[1].syscall.args[1], FUTEX_WAIT_PRIVATE);
	assert_int_equal(thread[1].syscall.args[2], 2);
}

TEST(test_process)
{
	_cleanup_(ss_core_file_cleanup) struct ss_core_file *core =
		open_core(CORPUS "x86_64");

	assert_string_equal(core->name, "prog");
	assert_int_equal(core->pid, 7);
	assert_int_equal(core->crash.signal, SIGSEGV);
	assert_int_equal(core->crash.tid, 7);
	assert_true(core->crash.has_info);
	assert_int_equal(core->crash.code, SEGV_MAPERR);
	assert_int_equal(core->crash.address, 16);
	assert_int_equal(core->program_headers, 0x400040);
	assert_int_equal(core->mappings.count, 1);
	assert_string_equal(core->mappings.items[0].path, "/bin/prog");
	assert_false(core->truncated);
}

TEST(test_memory)
{
	_cleanup_(ss_core_file_cleanup) struct ss_core_file *core =
		open_core(CORPUS "x86_64");
	uint64_t words[2] = {};

	assert_int_equal(ss_core_file_read(core, STACK + 8, words, sizeof(words)),
			 sizeof(words));
	assert_int_equal(words[0], 0x400101);
	assert_int_equal(
		ss_core_file_read(core, STACK + STACK_SIZE - 8, words, sizeof(words)), 8);
	assert_int_equal(ss_core_file_read(core, STACK + STACK_SIZE, words, 8), 0);
	assert_int_equal(ss_core_file_read(core, 0x400000, words, 8), 0);
	assert_int_equal(ss_core_file_read(core, 0, words, 8), 0);
	assert_non_null(ss_core_file_find(core, 0x400fff));
	assert_null(ss_core_file_find(core, 0x401000));
}

/* On any machine. */
TEST(test_aarch64)
{
	_cleanup_(ss_core_file_cleanup) struct ss_core_file *core =
		open_core(CORPUS "aarch64");
	uint64_t value = 0;

	assert_ptr_equal(core->arch, &ss_arch_aarch64);
	const struct ss_capture_thread *thread = core->threads.items;
	assert_int_equal(ss_regs_pc(core->arch, &thread->regs), CODE);
	assert_int_equal(ss_regs_sp(core->arch, &thread->regs), STACK + 16);
	assert_true(ss_regs_get(&thread->regs, 30, &value));
	assert_int_equal(value, 30);
	assert_int_equal(thread->syscall.number, -1);
	assert_int_equal(core->crash.signal, SIGABRT);
}

/* Every prefix is read as far as it goes, or refused. */
TEST(test_truncated)
{
	uint8_t bytes[8192];
	int whole = open(CORPUS "x86_64", O_RDONLY | O_CLOEXEC);
	ssize_t size = read(whole, bytes, sizeof(bytes));

	assert_in_range(size, 1000, sizeof(bytes) - 1);
	close(whole);
	for (ssize_t part = 0; part < size; part++) {
		_cleanup_(ss_core_file_cleanup) struct ss_core_file *core = NULL;
		int fd = memfd_create("core", MFD_CLOEXEC);
		assert_int_equal(write(fd, bytes, (size_t)part), part);
		struct ss_error *error = ss_core_file_open(fd, &core);
		if (error)
			assert_int_equal(ss_error_code(error), SS_ERROR_INVALID);
		else
			assert_true(core->truncated);
		ss_error_free(error);
	}
}

/* Notes count once, however many segments refer to them. */
TEST(test_repeated_notes)
{
	uint8_t bytes[8192];
	_cleanup_(ss_core_file_cleanup) struct ss_core_file *core = NULL;
	int whole = open(CORPUS "x86_64", O_RDONLY | O_CLOEXEC);
	ssize_t size = read(whole, bytes, sizeof(bytes));
	int fd = memfd_create("core", MFD_CLOEXEC);
	Elf64_Ehdr header;
	Elf64_Phdr segments[32];

	assert_in_range(size, 1000, sizeof(bytes) - 1);
	close(whole);
	memcpy(&header, bytes, sizeof(header));
	assert_in_range(header.e_phnum, 1, 8);
	memcpy(segments, bytes + header.e_phoff, header.e_phnum * sizeof(*segments));
	size_t notes = 0;
	while (segments[notes].p_type != PT_NOTE && notes + 1 < header.e_phnum)
		notes++;
	assert_int_equal(segments[notes].p_type, PT_NOTE);
	while (header.e_phnum < 32)
		segments[header.e_phnum++] = segments[notes];
	header.e_phoff = (uint64_t)size;
	memcpy(bytes, &header, sizeof(header));
	assert_int_equal(write(fd, bytes, (size_t)size), size);
	assert_int_equal(write(fd, segments, sizeof(segments)), sizeof(segments));
	assert_null(ss_core_file_open(fd, &core));
	assert_int_equal(core->threads.count, 2);
}
