/*
 * A core file: what its headers and notes say, and the memory in its segments. The file is
 * untrusted, and may be truncated anywhere: everything that is missing is unreadable, and
 * no error. It interprets neither stacks nor modules.
 *
 * Sources: fs/binfmt_elf.c and include/linux/elfcore.h of Linux, gcore(1).
 */
#ifndef SS_CORE_CORE_FILE_H
#define SS_CORE_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "arch/arch.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/vector.h"
#include "data/capture.h"
#include "stacksnap.h"

/*
 * The bytes of a core file at any offset, also if the file is compressed.
 *
 * The contents of a compressed file are not stored: what is needed is announced and collected
 * in one pass, and the rest is discarded. So a core file of any size needs neither disk space
 * nor much memory. The beginning, where headers and notes are, needs no announcement before
 * the first pass.
 */

struct ss_core_source;

/* Owns fd, also after an error. Errors: UNSUPPORTED, NO_MEMORY. */
struct ss_error *ss_core_source_new(int fd, struct ss_core_source **ret);
void ss_core_source_free(struct ss_core_source *source);

bool ss_core_source_is_compressed(const struct ss_core_source *source);

/* The size of the core file; UINT64_MAX: not known yet, because no pass has come to the end
   of a compressed file. */
uint64_t ss_core_source_size(const struct ss_core_source *source);

/* Copies a prefix of the size bytes at offset. Returns its length, or a negative errno. */
ssize_t ss_core_source_read(struct ss_core_source *source, void *bytes, size_t size,
			    uint64_t offset);

/* Announces that size bytes at offset will be read. False without memory. */
bool ss_core_source_want(struct ss_core_source *source, uint64_t offset, uint64_t size);

/* Collects what was announced, up to max bytes. False without memory. */
bool ss_core_source_fetch(struct ss_core_source *source, uint64_t max);

SS_DEFINE_CLEANUP(struct ss_core_source, ss_core_source, ss_core_source_free)

/* A range of addresses. Sorted by address, without overlaps. */
struct ss_core_segment {
	uint64_t start;
	uint64_t end;
	uint64_t offset;  /* in the core file */
	uint64_t present; /* bytes from start on that are in the file */
	unsigned prot;	  /* PROT_READ | PROT_WRITE | PROT_EXEC */
};

/* A file that was mapped (NT_FILE). Sorted by address. */
struct ss_core_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;  /* in the mapped file */
	const char *path; /* in strings: equal paths are equal pointers */
};

struct ss_core_file {
	struct ss_core_source *source; /* owned */
	uint64_t size;		       /* UINT64_MAX: not known yet */
	const struct ss_arch *arch;
	struct ss_intern *strings;
	SS_VECTOR(struct ss_core_segment) segments;
	SS_VECTOR(struct ss_core_mapping) mappings;
	/* In the order of the file, without stacks. The system call is that which the kernel interrupted
	   for the dump. */
	SS_VECTOR(struct ss_capture_thread) threads;
	pid_t pid;
	const char *name; /* its comm; in strings; NULL: not known */
	struct ss_crash crash;
	uint64_t program_headers; /* AT_PHDR; 0: not known, also below */
	uint64_t vdso;		  /* AT_SYSINFO_EHDR */
	uint32_t selector;	  /* of the thread pointer of the last thread; 0: none */
	uint64_t notes_end;	  /* offset behind the notes that were read */
	bool truncated;		  /* the file ends before its last segment does */
};

/*
 * Reads headers and notes. fd is open for reading and can be read at any position; the
 * core file owns it, also after an error. Errors: INVALID (no core file), UNSUPPORTED
 * (its processor, or how it is compressed), NO_MEMORY.
 */
struct ss_error *ss_core_file_open(int fd, struct ss_core_file **ret);
void ss_core_file_free(struct ss_core_file *core);

/* The segment that contains address, or NULL. */
const struct ss_core_segment *ss_core_file_find(const struct ss_core_file *core,
						uint64_t address);

/* Copies a prefix of the size bytes at address and returns its length. It ends at the
   end of a segment, too. */
size_t ss_core_file_read(const struct ss_core_file *core, uint64_t address, void *bytes,
			 size_t size);

/* Announces that size bytes at address will be read. False without memory. */
bool ss_core_file_want(const struct ss_core_file *core, uint64_t address, uint64_t size);

/* Collects what was announced, and at most max bytes, if the file is compressed. False
   without memory. */
bool ss_core_file_fetch(struct ss_core_file *core, uint64_t max);

SS_DEFINE_CLEANUP(struct ss_core_file, ss_core_file, ss_core_file_free)

#endif
