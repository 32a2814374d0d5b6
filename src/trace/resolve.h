/*
 * Finds the places of probes, by a confined child: this side reads no file. What the child
 * answers is untrusted; at worst a probe lies elsewhere in the files of the target.
 */
#ifndef SS_TRACE_RESOLVE_H
#define SS_TRACE_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>

#include "arch/arch.h"
#include "base/intern.h"
#include "base/vector.h"
#include "data/capture.h"
#include "data/module.h"
#include "data/schema.h"
#include "process/target.h"
#include "sandbox/worker.h"

/*
 * The side that runs in a confined child (resolve_child.c): it reads ELF files and DWARF, and decides
 * where probes go.
 *
 * Where. At the entry of a function, behind instructions that only mark it (endbr64, nop): the
 * kernel executes most others faster. Never at a nop of five bytes: Linux 6.18 replaces it by a
 * call, which writes below the stack pointer, where leaf functions keep data.
 *
 * The end of a function is observed at its return instructions, and at jumps out of it. The
 * kernel's return probes would replace return addresses on the stack; exceptions, thread
 * cancellation and Go's stack growth then end the process.
 */

enum {
	SS_RESOLVE_FUNCTIONS_MAX = 1024,
	SS_RESOLVE_RETURNS_MAX = 256, /* of one function */
	SS_RESOLVE_NAME_MAX = 4096,
	SS_RESOLVE_OUTPUT_MAX = 16 << 20,
};

struct ss_resolve_request {
	struct ss_module_impl *const *modules;
	size_t module_count;
	const char *const *specs; /* of the user */
	size_t spec_count;
	bool scopes;	       /* find returns, too */
	const char *debug_dir; /* or NULL */
};

/* How well a probe matches its spec, and what it is. */
enum ss_resolve_flags {
	SS_RESOLVE_SUFFIX = 1 << 0, /* enum ss_pattern_match */
	SS_RESOLVE_USDT = 1 << 1,
	SS_RESOLVE_LINE = 1 << 2,
	SS_RESOLVE_INLINED = 1 << 3,
	SS_RESOLVE_NO_RETURNS = 1 << 4, /* its returns were not found */
	SS_RESOLVE_REFUSED = 1 << 5,	/* not to be probed; a note says why */
};

/* An ss_job_work; data is a struct ss_resolve_request. */
struct ss_error *ss_resolve_read(void *data, struct ss_worker_page *page, int output);

/* A function, line or USDT probe. */
struct ss_resolved_probe {
	uint32_t flags; /* enum ss_resolve_flags */
	uint32_t spec;
	uint32_t module_index;
	uint64_t address;      /* ELF virtual, of the function */
	uint64_t offset;       /* in the file, of the probe */
	uint64_t counter;      /* likewise, or 0 */
	const char *name;      /* in strings */
	const size_t *returns; /* offsets in the file; owned */
	size_t return_count;
	struct ss_module_impl *module; /* one reference; NULL in the child */
};

/* Something to say about a spec. */
struct ss_resolved_note {
	uint32_t spec;
	uint32_t module_index;
	const char *text;	       /* in strings */
	struct ss_module_impl *module; /* as above */
};

/* The answer of the child: see ss_resolved_schema. */
struct ss_resolved {
	SS_VECTOR(struct ss_resolved_probe) probes;
	SS_VECTOR(struct ss_resolved_note) notes;
	struct ss_intern *strings;
};

/* Tables that its fields have indexes of; the last one has no limit. */
enum ss_resolve_table { SS_RESOLVE_SPECS = 1, SS_RESOLVE_MODULES, SS_RESOLVE_OFFSETS };

extern const struct ss_schema ss_resolved_schema;

/* Errors: SYSTEM (the child failed), NO_MEMORY. */
struct ss_error *ss_resolve(const struct ss_capture *capture,
			    const struct ss_target *target, const char *const *specs,
			    size_t spec_count, bool scopes, const char *debug_dir,
			    struct ss_resolved *ret);

/* What a child has written to a file, as ss_resolve() reads it. Errors: SYSTEM (it is invalid),
   NO_MEMORY. */
struct ss_error *ss_resolved_read(int file, const struct ss_capture *capture,
				  size_t spec_count, struct ss_resolved *ret);
void ss_resolved_deinit(struct ss_resolved *resolved);

/*
 * The machine code of one function, decoded to see where probes may go: a breakpoint inside
 * an instruction would crash the target.
 */

enum { SS_CODE_SIZE_MAX = 4 << 20 };

struct ss_code {
	uint64_t start; /* address of the first byte */
	size_t size;
	uint8_t *bytes; /* owned */
	uint8_t *
		boundaries; /* owned; by offset: an instruction begins here (1), and is the
				target of a jump from within (2) */
	/* All instructions were decoded, and all jumps within lead to the beginning of one. */
	bool valid;
	SS_VECTOR(struct ss_code_exit)
	exits;
};

struct ss_code_exit {
	uint64_t address;
	uint64_t target; /* of a jump out of the function; 0: it returns */
};

/* Decodes size bytes, which the object then owns. False: no memory; they are freed. */
bool ss_code_init(struct ss_code *code, uint64_t start, uint8_t *bytes, size_t size);
void ss_code_deinit(struct ss_code *code);

/* Whether an instruction begins at an address. */
bool ss_code_is_boundary(const struct ss_code *code, uint64_t address);

/*
 * The best address for a probe that is to be hit when the instruction at an address is
 * executed: behind instructions that do nothing, unless a jump from within the function leads
 * there. 0: there is none, because of a nop of five bytes (see above).
 */
uint64_t ss_code_choose(const struct ss_code *code, uint64_t address);

/*
 * What functions a user means: a name as people type it, compared with linkage names and
 * demangled ones.
 *
 * C++: without parameters all overloads match; spaces, ABI tags and inline namespaces of the
 * standard library do not count; template arguments may be left out, all of them or the last
 * ones: "std::vector<int>::push_back" means
 * "std::vector<int, std::allocator<int> >::push_back(int const&)".
 */

/* How well a name matches. */
enum ss_pattern_match {
	SS_PATTERN_NO = 0,
	SS_PATTERN_SUFFIX, /* without the enclosing namespaces or classes */
	SS_PATTERN_WHOLE,
};

/* name: demangled, with parameters and possibly a result, as libiberty writes it; or a plain
   name. Wildcards (* ? [) of the pattern match the name without parameters. */
enum ss_pattern_match ss_pattern_match(const char *pattern, const char *name);

bool ss_pattern_has_wildcards(const char *pattern);

/* Whether a mangled name can match: it contains the longest identifier of the pattern. */
bool ss_pattern_may_match(const char *pattern, const char *mangled);

/* What the forms of a probe are. */
enum ss_pattern_kind {
	SS_PATTERN_FUNCTION,
	SS_PATTERN_OFFSET, /* MODULE+0xOFFSET */
	SS_PATTERN_LINE,   /* FILE:LINE */
};

struct ss_pattern {
	enum ss_pattern_kind kind;
	char *scope;	/* module, provider or file before the colon; NULL: any module */
	char *function; /* or the name of a USDT probe */
	unsigned long number; /* offset or line */
};

/* Splits what the user gave. False: no memory. */
bool ss_pattern_parse(const char *text, struct ss_pattern *ret);
void ss_pattern_deinit(struct ss_pattern *pattern);

/* Whether a module is meant: "libc.so.6", "libc", a path, or with wildcards. NULL: any. */
bool ss_pattern_is_module(const char *scope, const char *path);

#endif
