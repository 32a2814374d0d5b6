/*
 * Reads sections, segments and build-id of an untrusted little-endian ELF file or
 * memory image. Every read is checked against the size of the file, and nothing is
 * mapped: the file may be truncated at any time, which must be a short read and not a
 * SIGBUS (symbolize/lines.c has the exception). It does not interpret symbols or DWARF.
 */
#ifndef SS_ELF_ELFFILE_H
#define SS_ELF_ELFFILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "data/module.h"
#include "elf/records.h"

/*
 * The build-id of an ELF image, in a file or as it is mapped in memory. The image is
 * untrusted input. Notes: System V gABI, chapter 5.
 */

/* Reads size bytes at a position. Returns the number of bytes read, or less than 0. */
typedef ssize_t ss_build_id_reader(void *data, uint64_t position, void *bytes,
				   size_t size);

enum ss_build_id_layout {
	SS_LAYOUT_FILE,	  /* positions are file offsets */
	SS_LAYOUT_MEMORY, /* positions are relative to the lowest mapped address */
};

/* Copies at most capacity bytes of the build-id to ret and returns their number. 0: there
   is no build-id, or no ELF image of this byte order. */
size_t ss_build_id_find(ss_build_id_reader *reader, void *data,
			enum ss_build_id_layout layout, uint8_t *ret, size_t capacity);

/* The same as in data/module.h. Longer build-ids are truncated in both. */
enum { SS_ELF_BUILD_ID_MAX = 64 };

/* Longer sections are not read. 30 times the largest string table known. */
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

/* Reads the headers. NULL: not a supported ELF file, or no memory. fd and bytes are
   borrowed and must outlive the object, unless owns_fd or owned_bytes is set later. */
struct ss_elf *ss_elf_from_fd(int fd);
struct ss_elf *ss_elf_from_memory(const void *bytes, size_t size);
/* From the file of a module, or the bytes that were copied of it. */
struct ss_elf *ss_elf_from_module(const struct ss_module_impl *module);
void ss_elf_free(struct ss_elf *elf);

/* Reads exactly size bytes at an offset of the file. False: the file is too short. */
bool ss_elf_read(const struct ss_elf *elf, uint64_t offset, void *bytes, uint64_t size);

/* The same into a buffer that the caller frees, with a NUL appended. NULL: the file is
   too short, size is larger than SS_ELF_SECTION_MAX, or no memory. */
void *ss_elf_copy(const struct ss_elf *elf, uint64_t offset, uint64_t size);

/* The same for structs; the result is in Elf64_ layout. */
bool ss_elf_read_records(const struct ss_elf *elf, enum ss_elf_record record,
			 uint64_t offset, void *ret, size_t count);
void *ss_elf_copy_records(const struct ss_elf *elf, enum ss_elf_record record,
			  uint64_t offset, uint64_t count);

/* The first section with that name that has bytes in this file, or NULL. */
const Elf64_Shdr *ss_elf_find_section(const struct ss_elf *elf, const char *name);

/* The section with that index, or NULL. */
const Elf64_Shdr *ss_elf_section(const struct ss_elf *elf, size_t index);

/* ss_elf_copy() of a section. NULL also if it is compressed. */
void *ss_elf_copy_section(const struct ss_elf *elf, const Elf64_Shdr *section);

/* The same of a table of symbols. */
size_t ss_elf_symbol_count(const struct ss_elf *elf, const Elf64_Shdr *section);
Elf64_Sym *ss_elf_copy_symbols(const struct ss_elf *elf, const Elf64_Shdr *section);

/* Converts an ELF virtual address to an offset of the file, by the segments. */
bool ss_elf_locate(const struct ss_elf *elf, uint64_t address, uint64_t *ret);

/* Copies the build-id to ret and returns its size. 0: there is none. */
size_t ss_elf_build_id(const struct ss_elf *elf, uint8_t ret[SS_ELF_BUILD_ID_MAX]);

SS_DEFINE_CLEANUP(struct ss_elf, ss_elf, ss_elf_free)

/*
 * Identifies a module: its build-id, and whether the file at its path is the one that is
 * mapped. The privileged side only opens files and copies bytes.
 */

/*
 * Sets the build-id of a module that has a file or bytes. A file that turns out to be
 * of another build is closed, and pub.problem says so. The first call does the work;
 * all threads that share the module may call it.
 */
void ss_module_identify(struct ss_module_impl *module);

#endif
