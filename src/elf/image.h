/*
 * The ELF image of a module for unwinders: segments and unwind tables. Bytes are read in
 * small chunks on first use, and cached. Files are never mapped: the target may truncate
 * them at any time.
 */
#ifndef SS_ELF_IMAGE_H
#define SS_ELF_IMAGE_H

#include <elf.h>

#include "arch/arch.h"
#include "base/vector.h"
#include "elf/go_table.h"
#include "elf/records.h"
#include "data/module.h"
#include "data/session.h"

enum { SS_SEGMENTS_MAX = 64, SS_IMAGE_CHUNK = 1024, SS_IMAGE_GROUP = 16 };

struct ss_segment {
	uint64_t address; /* ELF virtual */
	uint64_t offset;  /* in the file */
	uint64_t size;	  /* in the file */
	uint32_t flags;	  /* PF_... */
};

/* Consecutive parts of a file. What an unwinder reads is scattered: a page for each part, and for
   what refers to them, would take longer than the system calls that read them. */
struct ss_image_group {
	uint8_t *chunks[SS_IMAGE_GROUP];
	uint16_t sizes[SS_IMAGE_GROUP];
};

/* Where an FDE is: an ELF virtual address, in .debug_frame an offset. */
struct ss_cfi_place {
	uint64_t start; /* of its code */
	uint64_t fde;
};

/* The FDEs of a section without a binary search table, see elf/cfi_table.h. */
struct ss_cfi_index {
	SS_VECTOR(struct ss_cfi_place) entries; /* sorted by start */
	uint8_t *bytes;				/* of .debug_frame; NULL: .eh_frame */
	size_t size;
	uint8_t word; /* bytes of an address in it */
};

void ss_cfi_index_free(struct ss_cfi_index *index);

struct ss_go_program;

/* Where functions begin, according to the calls of the module: see unwind/calls.c. */
struct ss_called {
	size_t count;
	uint64_t starts[]; /* ELF virtual addresses, ascending */
};

struct ss_image {
	struct ss_module_impl *module; /* one reference */
	const struct ss_arch *arch;
	struct ss_segment segments[SS_SEGMENTS_MAX];
	size_t segment_count;
	uint64_t low; /* lowest and highest ELF virtual address */
	uint64_t high;
	uint64_t frame_header; /* ELF virtual address of .eh_frame_hdr; 0: none */
	uint64_t frame_header_size;
	uint64_t dynamic_offset;	/* of the dynamic section in the file */
	uint64_t dynamic_size;		/* 0: none */
	struct ss_image_group **groups; /* by file offset; NULL: nothing was read */
	size_t chunk_count;		/* of the file */
	struct ss_cfi_index *cfi_index; /* built on first use; or NULL */
	bool cfi_index_tried;
	bool table_sorted; /* of .eh_frame_hdr; valid if table_checked */
	bool table_checked;
	struct ss_cfi_index *debug_index; /* of .debug_frame; the same */
	bool debug_index_tried;
	struct ss_go_table go; /* if has_go, which is valid if go_tried */
	bool has_go;
	bool go_tried;
	struct ss_go_program
		*go_program;	  /* see runtime/go/goroutines.h; NULL: not known */
	struct ss_called *called; /* found on first use; or NULL */
	const struct ss_session *session; /* where debug files are; NULL: nowhere */
};

/* Reads the headers. NULL: no bytes, no ELF of a supported processor, no memory. */
struct ss_image *ss_image_new(struct ss_module_impl *module);
void ss_image_free(struct ss_image *image);

/* Copies bytes at an ELF virtual address of a read-only segment; the bytes of writable
   segments differ in memory. Returns the number of bytes, which is less at the end of
   the segment. */
size_t ss_image_read(struct ss_image *image, uint64_t address, void *bytes, size_t size);

/* The same at an offset of the file, within its segments. */
size_t ss_image_read_at(struct ss_image *image, uint64_t offset, void *bytes,
			size_t size);

/* Copies count structs at an ELF virtual address. False: they are not there. */
bool ss_image_read_records(struct ss_image *image, enum ss_elf_record record,
			   uint64_t address, void *ret, size_t count);

/* The load bias of a module with this image: what to subtract from an address in the
   process to get the ELF virtual address. */
uint64_t ss_image_bias(const struct ss_image *image, const struct ss_module_impl *module);

/* Finds the name of the symbol whose address the loader writes into the slot at an ELF virtual
   address. False: there is none, or the name has no room. */
bool ss_image_find_import(struct ss_image *image, uint64_t slot, char *name, size_t size);

SS_DEFINE_CLEANUP(struct ss_image, ss_image, ss_image_free)

#endif
