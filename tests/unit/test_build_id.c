#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <elf.h>

#include "base/cleanup.h"
#include "elf/elffile.h"

/* An ELF image with one PT_NOTE, whose notes the tests write. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr programs[2];
	uint8_t notes[256];
};

static ssize_t read_image(void *data, uint64_t position, void *bytes, size_t size)
{
	if (position >= sizeof(struct image))
		return 0;
	size = SS_MIN(size, sizeof(struct image) - (size_t)position);
	memcpy(bytes, (uint8_t *)data + position, size);
	return (ssize_t)size;
}

static struct image make_image(void)
{
	return (struct image){
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			    .e_phoff = offsetof(struct image, programs),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 2 },
		.programs = { { .p_type = PT_LOAD, .p_vaddr = 0x5000 },
			      { .p_type = PT_NOTE,
				.p_offset = offsetof(struct image, notes),
				.p_vaddr = 0x5000 + offsetof(struct image, notes),
				.p_filesz = 256 } },
	};
}

static size_t add_note(uint8_t *at, uint32_t name, uint32_t desc, uint32_t type)
{
	Elf64_Nhdr note = { .n_namesz = name, .n_descsz = desc, .n_type = type };

	memcpy(at, &note, sizeof(note));
	memcpy(at + sizeof(note), "GNU", 4);
	return sizeof(note) + 4;
}

static size_t find(struct image *image, enum ss_build_id_layout layout, uint8_t *id,
		   size_t capacity)
{
	return ss_build_id_find(read_image, image, layout, id, capacity);
}

TEST(test_found)
{
	struct image image = make_image();
	uint8_t id[64];

	size_t at = add_note(image.notes, 4, 5, NT_GNU_ABI_TAG) + 8;
	at += add_note(image.notes + at, 4, 20, NT_GNU_BUILD_ID);
	memset(image.notes + at, 0xab, 20);
	assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 20);
	assert_int_equal(id[19], 0xab);
	assert_int_equal(find(&image, SS_LAYOUT_MEMORY, id, sizeof(id)), 20);
	assert_int_equal(find(&image, SS_LAYOUT_MEMORY, id, 3), 3);
	image.programs[1].p_filesz = at + 19; /* cut */
	assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 0);
}

TEST(test_absurd_notes)
{
	static const uint32_t sizes[] = { 256, 257, 0x7fffffff, 0xfffffff0, 0xffffffff };
	uint8_t id[64];

	for (size_t i = 0; i < SS_ARRAY_SIZE(sizes); i++) {
		struct image image = make_image();
		(void)add_note(image.notes, sizes[i], 20, NT_GNU_BUILD_ID);
		assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 0);
		(void)add_note(image.notes, 4, sizes[i], NT_GNU_BUILD_ID);
		assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 0);
		(void)add_note(image.notes, 4, sizes[i], NT_GNU_ABI_TAG);
		assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 0);
	}
}

TEST(test_absurd_headers)
{
	struct image image = make_image();
	uint8_t id[64];

	size_t at = add_note(image.notes, 4, 20, NT_GNU_BUILD_ID);
	image.programs[1].p_filesz = at + 20;
	assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 20);
	image.programs[1].p_filesz = UINT64_MAX;
	assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 20);
	image.programs[1].p_offset = UINT64_MAX;
	assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 0);
	image.header.e_phnum = UINT16_MAX; /* more than there are bytes */
	assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 0);
	image.header.e_phnum = 2;
	image.header.e_phoff = UINT64_MAX - 8;
	assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 0);
	image = make_image();
	image.header.e_ident[EI_CLASS] = ELFCLASSNONE;
	assert_int_equal(find(&image, SS_LAYOUT_FILE, id, sizeof(id)), 0);
}
