/*
 * Finds the places of probes, by a confined child: this side reads no file. What the child
 * answers is untrusted; at worst a probe lies elsewhere in the files of the target.
 */
#ifndef SS_TRACE_RESOLVE_H
#define SS_TRACE_RESOLVE_H

#include "base/buffer.h"
#include "base/vector.h"
#include "data/capture.h"
#include "data/module.h"
#include "process/target.h"
#include "sandbox/job.h"

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

/* What a record of the answer is. */
enum ss_resolve_kind {
	SS_RESOLVE_PROBE = 1, /* a function, line or USDT probe; its name follows */
	SS_RESOLVE_RETURN,    /* of the probe before */
	SS_RESOLVE_NOTE,      /* something to say about a spec; the text follows */
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

struct ss_resolve_record {
	uint32_t kind;
	uint32_t flags;
	uint32_t spec;
	uint32_t module;
	uint64_t address; /* ELF virtual, of the function */
	uint64_t offset;  /* in the file, of the probe */
	uint64_t counter; /* likewise, or 0 */
	uint32_t returns; /* how many RETURN records follow */
	uint32_t name_size;
};

/* An ss_job_work; data is a struct ss_resolve_request. */
struct ss_error *ss_resolve_read(void *data, struct ss_worker_page *page, int output);

struct ss_resolved_probe {
	uint32_t flags; /* enum ss_resolve_flags */
	uint32_t spec;
	struct ss_module_impl *module; /* one reference */
	uint64_t address;
	uint64_t offset;
	uint64_t counter;
	char *name;   /* owned */
	size_t first; /* of its returns */
	size_t returns;
};

struct ss_resolved_note {
	uint32_t spec;
	struct ss_module_impl *module; /* one reference */
	char *text;		       /* owned */
};

struct ss_resolved {
	SS_VECTOR(struct ss_resolved_probe) probes;
	SS_VECTOR(uint64_t) returns; /* offsets in the file */
	SS_VECTOR(struct ss_resolved_note) notes;
};

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

#endif
