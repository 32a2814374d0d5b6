/*
 * Code objects of CPython: the name, the file and the line table of a function, from untrusted
 * memory.
 */
#ifndef SS_RUNTIME_PYTHON_CODE_H
#define SS_RUNTIME_PYTHON_CODE_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/vector.h"
#include "runtime/python/object.h"
#include "runtime/runtime.h"

/*
 * Code objects of CPython that were read for earlier captures of a session. A recording meets the
 * same ones in each tick: what they were read from is compared, all of it with one request, instead
 * of being read and decoded piece by piece.
 *
 * A code object counts if it has the same identity as when it was read, and if its strings and its
 * line table have the same bytes at the same addresses. Its identity is read last: one that was
 * executed at the moment of the capture, and has the same identity afterwards, was there in
 * between, and so were its strings.
 */

struct ss_python_kept;

/* Compares those whose addresses are in what the plan of the capture has copied. The result is
   valid until the next call. NULL: no memory; nothing is kept. */
struct ss_python_kept *ss_python_kept_begin(const struct ss_runtime_process *process,
					    const struct ss_python_layout *layout);

/* The code object at an address if it is the same as it was; or NULL. */
const struct ss_python_code *ss_python_kept_find(const struct ss_python_kept *kept,
						 uint64_t address);

enum {
	SS_PYTHON_NAME_MAX = 4096, /* characters of a name or path */
	SS_PYTHON_LINES_MAX = 4 << 20,
	SS_PYTHON_HEADER_MAX = 1024, /* bytes of a structure that are read */
};

/* What identifies a code object: if it is the same at two times, it was not replaced. */
struct ss_python_identity {
	uint64_t type;
	uint64_t filename;
	uint64_t name;
	uint64_t qualname;
	uint64_t lines;
	uint32_t first_line;
};

struct ss_python_code {
	uint64_t address;
	struct ss_python_identity identity;
	const char *name; /* qualified, if the version has that; in strings */
	const char *file;
	uint8_t *table; /* owned, unless it is kept */
	size_t table_size;
	bool valid;
	bool kept; /* its table belongs to struct ss_python_kept */
};

struct ss_python_kept;

struct ss_python_codes {
	const struct ss_python_layout *layout;
	const struct ss_memory *memory;
	/* Memory as it is now: a code object that is the same after its strings were read was
	   not replaced meanwhile. */
	const struct ss_memory *fresh;
	struct ss_intern *strings;
	struct ss_python_kept *kept; /* NULL: nothing is kept for later captures */
	SS_VECTOR(struct ss_python_code) items;
	struct ss_hash table;
};

void ss_python_codes_deinit(struct ss_python_codes *codes);

/* Reads the identity of what is at an address. False: it is no code object. */
bool ss_python_identity_read(const struct ss_python_layout *layout,
			     const struct ss_memory *memory, uint64_t address,
			     struct ss_python_identity *ret);

bool ss_python_identity_equal(const struct ss_python_identity *a,
			      const struct ss_python_identity *b);

/* Whether the type of the object at an address has this name. */
bool ss_python_has_type(const struct ss_memory *memory, uint64_t address,
			const char *name);

/* The code object at an address, read once. *ret is NULL if there is none; valid until the
   next call. False without memory. */
bool ss_python_codes_find(struct ss_python_codes *codes, uint64_t address,
			  const struct ss_python_code **ret);

/* The address of the code object of a frame. */
uint64_t ss_python_frame_code(const struct ss_python_layout *layout,
			      const uint8_t *frame);

/* The offset of the current instruction of a frame in the bytecode, in bytes; negative: none
   yet. False: it is not in that code. */
bool ss_python_offset(const struct ss_python_layout *layout, const uint8_t *frame,
		      uint64_t code, int64_t *ret);

/*
 * A line of a line table. offset: in the bytecode, in bytes, of the instruction; negative: of
 * none. 0: no line. False: the table is not valid.
 */
bool ss_python_line(enum ss_python_lines encoding, const uint8_t *table, size_t size,
		    uint32_t first_line, int64_t offset, uint32_t *ret);

/* Decodes a string object to UTF-8; with its NUL at most 4 * SS_PYTHON_NAME_MAX + 1 bytes.
   False: it is none, or too long. */
bool ss_python_string(const struct ss_python_layout *layout,
		      const struct ss_memory *memory, uint64_t address, char *ret);

/* The same of the first max characters, at most SS_PYTHON_NAME_MAX. */
bool ss_python_string_start(const struct ss_python_layout *layout,
			    const struct ss_memory *memory, uint64_t address, size_t max,
			    char *ret);

#endif
