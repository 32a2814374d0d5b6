/*
 * The function table of Go's runtime (.gopclntab), which strip(1) keeps: names, as a symbol
 * table, and the offsets of the rest. Layouts: Go 1.2, 1.16, 1.18, and 1.20 to 1.27; see
 * pcHeader, functab and _func in Go's src/runtime/symtab.go, and its debug/gosym.
 */
#ifndef SS_ELF_GO_TABLE_H
#define SS_ELF_GO_TABLE_H

#include "base/intern.h"
#include "elf/elffile.h"
#include "elf/tables.h"

/* Offsets are relative to the start of the section. */
struct ss_go_table {
	uint64_t file_offset;
	uint64_t size;
	unsigned word;	    /* bytes of an entry and of an offset: 4 (1.18) or 8 */
	unsigned step;	    /* unit of program counters: the smallest instruction */
	uint64_t count;	    /* of functions */
	uint64_t text;	    /* ELF virtual address that entries are relative to, or 0 */
	uint64_t functions; /* pairs of entry and offset of a description; the last end */
	uint64_t base;	    /* that offsets of descriptions are relative to */
	uint64_t numbers;   /* that offsets of encoded numbers are relative to */
	uint64_t names;
	uint64_t names_end;
	uint64_t units;	     /* lists of files, as offsets of their paths; 0: not known */
	uint64_t files;	     /* the paths */
	uint64_t address;    /* ELF virtual address of the table */
	bool has_first_line; /* of each function: Go 1.20 */
};

/* Where the version of Go and the modules of a program are (.go.buildinfo, see Go's
   src/debug/buildinfo): offset and size in the file. Without section headers, the writable
   segments are searched. False: it is not a program of Go. */
bool ss_go_find_build_info(const struct ss_elf *elf, Elf64_Shdr *ret);

/* Without section headers, all segments are searched. False: there is none, it is corrupted, or its
   layout is unknown. */
bool ss_go_table_find(const struct ss_elf *elf, struct ss_go_table *ret);

/* Reads the names as a symbol table. False: as above, or no memory. */
bool ss_go_table_read(const struct ss_elf *elf, struct ss_table *ret);

/* The ELF virtual address of the data of functions (go:func.*), from which inlined calls are
   read. Searches writable sections. 0: not found, or older than Go 1.18. */
uint64_t ss_go_table_find_data(const struct ss_elf *elf, const struct ss_go_table *go);

struct ss_image;

/* The function table of an image, found on first use. NULL: there is none. */
const struct ss_go_table *ss_go_table_of(struct ss_image *image);

/* How far below the return address the stack pointer is, at address (ELF virtual). False: not a Go
   program, or its tables do not cover address. */
bool ss_go_find_depth(struct ss_image *image, uint64_t address, int64_t *ret);

/* One of the calls that an address is in: the function, and the place in it. */
struct ss_go_call {
	const char *function; /* NULL: not known */
	const char *file;     /* NULL: not known */
	uint32_t line;
};

/*
 * Finds the calls at address (ELF virtual): those that the compiler has inlined, from the
 * innermost one, then the function itself. data: see ss_go_table_find_data(). Strings are in the
 * pool. Returns their number, at most max; 0: not known.
 */
size_t ss_go_find_calls(struct ss_image *image, uint64_t address, uint64_t data,
			struct ss_intern *strings, struct ss_go_call *ret, size_t max);

/* Finds a function by its name, of less than 31 characters; those of the runtime are among the
   first. False: there is none. */
bool ss_go_find_function(struct ss_image *image, const char *name, uint64_t *ret_start,
			 uint64_t *ret_size);

/* Whether a function of Go begins at address (ELF virtual). */
bool ss_go_is_entry(struct ss_image *image, uint64_t address);

/* Whether the function at address (ELF virtual) is the outermost one of a stack: what is
   further out does not belong to it, or is nothing. */
bool ss_go_is_root(struct ss_image *image, uint64_t address);

/* Whether it is sigpanic(). The handler of a signal makes a fault look like a call of that
   function: it returns to the instruction that failed. */
bool ss_go_is_sigpanic(struct ss_image *image, uint64_t address);

#endif
