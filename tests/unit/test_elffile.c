#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "elf_builder.h"
#include "symbolize_sample.h"

TEST(test_headers)
{
	struct elf_builder builder;
	uint8_t id[SS_ELF_BUILD_ID_MAX];
	uint64_t at;

	elf_builder_init(&builder);
	struct ss_elf *elf = ss_elf_from_memory(&builder, sizeof(builder));
	assert_non_null(elf);
	assert_int_equal(elf->section_count, BUILDER_COUNT);
	assert_null(ss_elf_section(elf, 0));
	assert_null(ss_elf_section(elf, BUILDER_COUNT));
	assert_non_null(ss_elf_section(elf, BUILDER_TEXT));
	assert_null(ss_elf_find_section(elf, ".symtab"));
	assert_false(ss_elf_locate(elf, 0x1000, &at));
	assert_int_equal(ss_elf_build_id(elf, id), 0);
	/* It has an address but no bytes. */
	assert_null(ss_elf_copy_section(elf, ss_elf_section(elf, BUILDER_TEXT)));
	ss_elf_free(elf);
}

TEST(test_reads_are_bounded)
{
	struct elf_builder builder;
	uint8_t bytes[16];

	elf_builder_init(&builder);
	struct ss_elf *elf = ss_elf_from_memory(&builder, sizeof(builder));
	assert_non_null(elf);
	assert_true(ss_elf_read(elf, sizeof(builder) - 16, bytes, 16));
	assert_false(ss_elf_read(elf, sizeof(builder) - 15, bytes, 16));
	assert_false(ss_elf_read(elf, UINT64_MAX, bytes, 16));
	assert_false(ss_elf_read(elf, 8, bytes, UINT64_MAX));
	assert_null(ss_elf_copy(elf, 0, UINT64_MAX));
	assert_null(ss_elf_copy(elf, UINT64_MAX - 1, 4));
	char *copy = ss_elf_copy(elf, sizeof(builder), 0);
	assert_non_null(copy);
	assert_int_equal(copy[0], '\0');
	free(copy);
	ss_elf_free(elf);
}

TEST(test_not_elf)
{
	static const char text[256] = "#!/bin/sh\n";
	int pipes[2];

	assert_null(ss_elf_from_memory(text, sizeof(text)));
	assert_null(ss_elf_from_fd(-1));
	assert_int_equal(pipe(pipes), 0);
	assert_null(ss_elf_from_fd(pipes[0]));
	(void)close(pipes[0]);
	(void)close(pipes[1]);
	ss_elf_free(NULL);
}

/* Changes each byte of the headers: no crash, and no read out of bounds. */
TEST(test_damage)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0xff };
	struct elf_builder builder;
	uint8_t id[SS_ELF_BUILD_ID_MAX];

	for (size_t i = 0; i < offsetof(struct elf_builder, symbols); i++) {
		for (size_t v = 0; v < sizeof(values); v++) {
			elf_builder_init(&builder);
			((uint8_t *)&builder)[i] = values[v];
			struct ss_elf *elf =
				ss_elf_from_memory(&builder, sizeof(builder));
			if (elf)
				(void)ss_elf_build_id(elf, id);
			ss_elf_free(elf);
		}
	}
}

TEST_WITH(test_build_id, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;
	uint8_t id[SS_ELF_BUILD_ID_MAX];

	assert_true(sample_run(sample, "cc -g -Wl,--build-id=0x0102030405060708 "
				       "sample.c -o with && "
				       "cc -Wl,--build-id=none sample.c -o without"));
	struct ss_module_impl *module = sample_module(sample, "with");
	struct ss_elf *elf = ss_elf_from_fd(module->fd);
	assert_non_null(elf);
	assert_int_equal(ss_elf_build_id(elf, id), 8);
	assert_memory_equal(id, "\1\2\3\4\5\6\7\10", 8);
	assert_non_null(ss_elf_find_section(elf, ".debug_info"));
	/* The same, found by the segments, as in a memory image. */
	elf->section_count = 0;
	assert_int_equal(ss_elf_build_id(elf, id), 8);
	ss_elf_free(elf);
	ss_module_unref(module);

	module = sample_module(sample, "without");
	assert_int_equal(module->build_id_size, 0);
	ss_module_unref(module);
}
