/*
 * For the tests of symbolize/: a directory that goes away, a small program built in it
 * whose lines and inlined calls are known, and the ELF of this very test.
 */
#ifndef SS_TESTS_SYMBOLIZE_SAMPLE_H
#define SS_TESTS_SYMBOLIZE_SAMPLE_H

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/module.h"
#include "elf/elffile.h"
#include "elf/tables.h"
#include "symbolize/lines.h"

/* mark_inner is in inner (line 5), called in middle (line 9), called in outer (13). */
static const char sample_source[] =
	"int sink;\n"
	"static inline __attribute__((always_inline)) void inner(void)\n"
	"{\n"
	"	sink++;\n"
	"	__asm__ volatile(\".globl mark_inner\\nmark_inner: nop\");\n"
	"}\n"
	"static inline __attribute__((always_inline)) void middle(void)\n"
	"{\n"
	"	inner();\n"
	"}\n"
	"__attribute__((noinline)) void outer(void)\n"
	"{\n"
	"	middle();\n"
	"	sink++;\n"
	"}\n"
	"int main(void)\n"
	"{\n"
	"	outer();\n"
	"	return sink;\n"
	"}\n";

struct sample {
	char dir[64];
};

/* Runs a command with the directory as its working directory; true: exit status 0. */
__attribute__((format(printf, 2, 3), unused)) static bool
sample_run(const struct sample *sample, const char *format, ...)
{
	char command[2048];
	int at = snprintf(command, sizeof(command), "cd %s && { ", sample->dir);
	va_list ap;

	va_start(ap, format);
	at += vsnprintf(command + at, sizeof(command) - (size_t)at, format, ap);
	va_end(ap);
	if (at + 24 >= (int)sizeof(command))
		return false;
	strcpy(command + at, "; } >/dev/null 2>&1");
	return system(command) == 0;
}

/* The directory with sample.c in it. */
__attribute__((unused)) static int sample_setup(void **state)
{
	struct sample *sample = calloc(1, sizeof(*sample));
	char path[128];

	if (!sample)
		return -1;
	strcpy(sample->dir, "/tmp/stacksnap-test-XXXXXX");
	if (!mkdtemp(sample->dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/sample.c", sample->dir);
	FILE *file = fopen(path, "w");
	if (!file || fputs(sample_source, file) < 0 || fclose(file) != 0)
		return -1;
	*state = sample;
	return 0;
}

__attribute__((unused)) static int sample_teardown(void **state)
{
	struct sample *sample = *state;
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", sample->dir);
	free(sample);
	return system(command);
}

/* A module on a file of the directory; its path is the real one. */
__attribute__((unused)) static struct ss_module_impl *
sample_module(const struct sample *sample, const char *name)
{
	char path[PATH_MAX];
	uint8_t id[SS_ELF_BUILD_ID_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", sample->dir, name);
	struct ss_module_impl *module = ss_module_new(path, 0x10000, 0x20000);
	if (!module)
		return NULL;
	module->fd = open(path, O_RDONLY | O_CLOEXEC);
	struct ss_elf *elf = ss_elf_from_fd(module->fd);
	size_t size = elf ? ss_elf_build_id(elf, id) : 0;
	if (size)
		(void)ss_module_set_build_id(module, id, size);
	ss_elf_free(elf);
	return module;
}

/* The value of a symbol in .symtab of a file of the directory; 0: not there. */
__attribute__((unused)) static uint64_t
sample_address(const struct sample *sample, const char *name, const char *symbol)
{
	struct ss_module_impl *module = sample_module(sample, name);
	struct ss_elf *elf = ss_elf_from_fd(module->fd);
	struct ss_table table = {};
	uint64_t address = 0;

	if (elf && ss_table_read(elf, SHT_SYMTAB, &table)) {
		for (size_t i = 0; i < table.count; i++) {
			if (strcmp(table.names + table.symbols[i].st_name, symbol) == 0)
				address = table.symbols[i].st_value;
		}
	}
	ss_table_free(&table);
	ss_elf_free(elf);
	ss_module_unref(module);
	return address;
}

/* Bytes that this process has read so far. */
__attribute__((unused)) static unsigned long long sample_bytes_read(void)
{
	unsigned long long bytes = 0;
	FILE *file = fopen("/proc/self/io", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "rchar: %llu", &bytes), 1);
	(void)fclose(file);
	return bytes;
}

/* The DWARF of a file of the directory, or NULL. */
__attribute__((unused)) static struct ss_dwarf *
sample_dwarf(const struct sample *sample, const char *name, bool may_fault)
{
	struct ss_module_impl *module = sample_module(sample, name);
	struct ss_elf *elf = ss_elf_from_fd(module->fd);
	struct ss_dwarf *dwarf = elf ? ss_dwarf_open(elf, NULL, may_fault) : NULL;

	/* Neither is needed any more. */
	ss_elf_free(elf);
	ss_module_unref(module);
	return dwarf;
}

#endif
