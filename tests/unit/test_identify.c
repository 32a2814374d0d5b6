/*
 * Which file of a module is used: one that was found by its path only if it has the
 * build-id of what is mapped.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <elf.h>
#include <unistd.h>

#include "base/io.h"
#include "elf/elffile.h"

enum { ID_SIZE = 20, ADDRESS = 0x5000 };

/* An ELF file with a build-id of equal bytes; 0: without one. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr programs[2];
	Elf64_Nhdr note;
	char name[4];
	uint8_t id[ID_SIZE];
};

static struct image make_image(uint8_t id)
{
	struct image image = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			    .e_phoff = offsetof(struct image, programs),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 2 },
		.programs = { { .p_type = PT_LOAD, .p_vaddr = ADDRESS },
			      { .p_type = PT_NOTE,
				.p_offset = offsetof(struct image, note),
				.p_vaddr = ADDRESS + offsetof(struct image, note),
				.p_filesz = sizeof(Elf64_Nhdr) + 4 + ID_SIZE } },
		.note = { .n_namesz = 4,
			  .n_descsz = ID_SIZE,
			  .n_type = id ? NT_GNU_BUILD_ID : NT_GNU_ABI_TAG },
		.name = "GNU",
	};

	memset(image.id, id, sizeof(image.id));
	return image;
}

/* A module whose file has that build-id; mapped: that of its header, or -1 for none. */
static struct ss_module_impl *make_module(uint8_t file, int mapped)
{
	struct ss_module_impl *module = ss_module_new("/lib/x", 0x1000, 0x2000);
	const struct image image = make_image(file);
	char name[] = "/tmp/stacksnap-unit-XXXXXX";

	assert_non_null(module);
	module->fd = mkstemp(name);
	assert_true(module->fd >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(ss_io_write_all(module->fd, &image, sizeof(image)), 0);
	if (mapped < 0)
		return module;
	const struct image header = make_image((uint8_t)mapped);
	module->unverified = true;
	module->header = malloc(sizeof(header));
	assert_non_null(module->header);
	memcpy(module->header, &header, sizeof(header));
	module->header_size = sizeof(header);
	return module;
}

static void expect(struct ss_module_impl *module, bool file, const char *id,
		   const char *problem)
{
	ss_module_identify(module);
	ss_module_identify(module);
	assert_int_equal(module->fd >= 0, file);
	if (id)
		assert_memory_equal(module->pub.build_id, id, strlen(id));
	else
		assert_null(module->pub.build_id);
	if (problem)
		assert_string_equal(module->pub.problem, problem);
	else
		assert_null(module->pub.problem);
	ss_module_unref(module);
}

TEST(test_verified)
{
	expect(make_module(0xab, -1), true, "abab", NULL);
	expect(make_module(0, -1), true, NULL, NULL);
	/* What the kernel says of the file is not looked for again. */
	struct ss_module_impl *known = make_module(0xab, -1);
	assert_true(ss_module_set_build_id(known, "\xcd\xcd", 2));
	expect(known, true, "cdcd", NULL);
}

TEST(test_unverified)
{
	expect(make_module(0xab, 0xab), true, "abab", NULL);
	expect(make_module(0xab, 0xcd), false, "cdcd",
	       "another build is at its path now");
	expect(make_module(0, 0xcd), false, "cdcd", "another build is at its path now");
	expect(make_module(0xab, 0), false, NULL, "another file is at its path now");
	expect(make_module(0, 0), false, NULL, "another file is at its path now");
	/* A header that could not be read decides nothing. */
	struct ss_module_impl *unread = make_module(0xab, 0xab);
	unread->header_size = 0;
	expect(unread, false, NULL, "another file is at its path now");
	/* The build-id that the kernel knows. */
	struct ss_module_impl *same = make_module(0xab, 0);
	assert_true(ss_module_set_build_id(same, make_image(0xab).id, ID_SIZE));
	expect(same, true, "abab", NULL);
	struct ss_module_impl *other = make_module(0xab, 0xab);
	assert_true(ss_module_set_build_id(other, make_image(0xcd).id, ID_SIZE));
	expect(other, false, "cdcd", "another build is at its path now");
}

/* What was copied from memory takes the place of a file that is another one. */
TEST(test_image_remains)
{
	struct ss_module_impl *module = make_module(0xab, 0xcd);
	const struct image image = make_image(0xcd);
	uint8_t id[ID_SIZE];

	module->bytes = malloc(sizeof(image));
	assert_non_null(module->bytes);
	memcpy(module->bytes, &image, sizeof(image));
	module->size = sizeof(image);
	ss_module_identify(module);
	assert_int_equal(
		ss_module_read(module, offsetof(struct image, id), id, sizeof(id)),
		ID_SIZE);
	assert_int_equal(id[0], 0xcd);
	ss_module_unref(module);
}
