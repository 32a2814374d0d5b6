/*
 * A module: one ELF file (or the vDSO) as it is mapped in a process at one
 * moment, with the bytes of its file. Reference-counted and immutable once a
 * capture holds it. It knows where bytes are, not what they mean: no ELF here
 * beyond the build-id it was given.
 */
#ifndef SS_MODEL_MODULE_H
#define SS_MODEL_MODULE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "stacksnap.h"

enum { SS_BUILD_ID_MAX = 64 };

struct ss_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* in the file */
	unsigned prot;	 /* PROT_READ | PROT_WRITE | PROT_EXEC */
};

struct ss_module_impl {
	struct ss_module pub; /* must be first; its strings are owned by this object */
	atomic_uint references;
	struct ss_mapping *mappings; /* sorted by start, file-backed ones only */
	size_t mapping_count;
	uint64_t device;
	uint64_t inode;
	int fd;		/* the regular file, build-id agreed; -1: none. Owned. */
	uint8_t *bytes; /* without a file: what is mapped of it, laid out by file
			   offset (holes are zero; section headers are usually
			   missing). For the vDSO the whole ELF image. Owned. */
	size_t size;	/* of bytes */
	uint8_t build_id[SS_BUILD_ID_MAX];
	size_t build_id_size; /* 0: it has none */
};

static inline struct ss_module_impl *ss_module_impl(const struct ss_module *module)
{
	return (struct ss_module_impl *)module;
}

/* A module with one reference, fd -1 and a copy of path. NULL without memory. */
struct ss_module_impl *ss_module_new(const char *path, uint64_t base, uint64_t end);
struct ss_module_impl *ss_module_ref(struct ss_module_impl *module);
void ss_module_unref(struct ss_module_impl *module);

/* Appends a mapping. False without memory. */
bool ss_module_add_mapping(struct ss_module_impl *module, const struct ss_mapping *m);

/* Sets the build-id, binary and hexadecimal (cut to SS_BUILD_ID_MAX bytes). False
   without memory. */
bool ss_module_set_build_id(struct ss_module_impl *module, const void *id, size_t size);

/* As if none were known. */
void ss_module_clear_build_id(struct ss_module_impl *module);

/* Sets pub.problem to a formatted text; the first problem stays. */
void ss_module_set_problem(struct ss_module_impl *module, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Reads bytes of the module's file at a file offset, from fd or bytes. The count
   read (short at the end), or a negative errno; -ENODATA: there is no file. */
ssize_t ss_module_read(const struct ss_module_impl *module, uint64_t offset, void *bytes,
		       size_t size);

SS_DEFINE_CLEANUP(struct ss_module_impl, ss_module, ss_module_unref)

#endif
