/*
 * Finds the places of probes, by a confined child: this side reads no file. What the child
 * answers is untrusted; at worst a probe lies elsewhere in the files of the target.
 */
#ifndef SS_TRACE_RESOLVE_H
#define SS_TRACE_RESOLVE_H

#include "base/buffer.h"
#include "base/vector.h"
#include "data/capture.h"
#include "process/target.h"
#include "trace/resolve_child.h"

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
