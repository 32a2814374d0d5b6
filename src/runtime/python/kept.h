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
#ifndef SS_RUNTIME_PYTHON_KEPT_H
#define SS_RUNTIME_PYTHON_KEPT_H

#include "runtime/python/code.h"
#include "runtime/runtime.h"

struct ss_python_kept;

/* Compares those whose addresses are in what the plan of the capture has copied. The result is
   valid until the next call. NULL: no memory; nothing is kept. */
struct ss_python_kept *ss_python_kept_begin(const struct ss_runtime_process *process,
					    const struct ss_python_layout *layout);

/* The code object at an address if it is the same as it was; or NULL. */
const struct ss_python_code *ss_python_kept_find(const struct ss_python_kept *kept,
						 uint64_t address);

/* Keeps a code object that was read from memory, unless it is large. */
void ss_python_kept_add(struct ss_python_kept *kept, const struct ss_memory *memory,
			const struct ss_python_code *code);

#endif
