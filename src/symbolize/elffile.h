/*
 * Reading parts of a 64-bit little-endian ELF file that nobody vouches for: its
 * sections, segments and build-id, from a file or from memory. Every read is checked
 * against the size of the file, and nothing is mapped: the owner of the file may cut
 * it at any moment, which must be a short read here and not a SIGBUS. It knows nothing
 * of symbols and nothing of DWARF.
 */
#ifndef SS_SYMBOLIZE_ELFFILE_H
#define SS_SYMBOLIZE_ELFFILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* As model/module.h has it; longer build-ids are cut there and here alike. */
enum { SS_ELF_BUILD_ID_MAX = 64 };

/* No section is read that is longer: 30 times the largest string table known. */
#define SS_ELF_SECTION_MAX ((uint64_t)1 << 30)

struct ss_elf {
	int fd; /* -1: bytes */
	bool owns_fd;
	const uint8_t *bytes;
	void *owned_bytes;
	char *path; /* where it was opened, or NULL */
	uint64_t size;
	Elf64_Ehdr header;
	Elf64_Shdr *sections; /* may be NULL: a memory image usually has none */
	size_t section_count;
	char *section_names; /* NUL-terminated */
	size_t section_names_size;
	Elf64_Phdr *segments;
	size_t segment_count;
};

/* Reads the headers. NULL: not an ELF file of this kind, or no memory. fd and bytes
   are borrowed and must outlive the object, unless owned later. */
struct ss_elf *ss_elf_from_fd(int fd);
struct ss_elf *ss_elf_from_memory(const void *bytes, size_t size);
void ss_elf_free(struct ss_elf *elf);

/* Fills bytes with exactly size bytes at that offset of the file, or says false. */
bool ss_elf_read(const struct ss_elf *elf, uint64_t offset, void *bytes, uint64_t size);

/* The same as a malloc'd copy with a zero byte behind it. NULL: not all there, longer
   than SS_ELF_SECTION_MAX, or no memory. */
void *ss_elf_copy(const struct ss_elf *elf, uint64_t offset, uint64_t size);

/* The first section with that name (and bytes in this file), or NULL. */
const Elf64_Shdr *ss_elf_find_section(const struct ss_elf *elf, const char *name);

/* The section with that number, or NULL. */
const Elf64_Shdr *ss_elf_section(const struct ss_elf *elf, size_t index);

/* ss_elf_copy() of a section that is stored plainly. */
void *ss_elf_copy_section(const struct ss_elf *elf, const Elf64_Shdr *section);

/* File offset of size bytes at an ELF virtual address, through the segments. */
bool ss_elf_locate(const struct ss_elf *elf, uint64_t address, uint64_t *ret);

/* Copies the build-id to ret and returns its size; 0: it has none. */
size_t ss_elf_build_id(const struct ss_elf *elf, uint8_t ret[SS_ELF_BUILD_ID_MAX]);

SS_DEFINE_CLEANUP(struct ss_elf, ss_elf, ss_elf_free)

#endif
