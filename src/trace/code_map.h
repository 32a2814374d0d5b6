/*
 * Where a process has code: its modules, and its executable areas. Unwinding needs nothing else of
 * an address space, whose other areas change all the time while a process allocates memory.
 */
#ifndef SS_TRACE_CODE_MAP_H
#define SS_TRACE_CODE_MAP_H

#include "base/vector.h"
#include "data/capture.h"

struct ss_code_range {
	uint64_t start;
	uint64_t end;
};

/* Zeroed, it is empty. */
struct ss_code_map {
	SS_VECTOR(struct ss_code_range) ranges; /* sorted; neighbours are one */
	SS_VECTOR(struct ss_module_impl *)
	modules; /* of the capture; one reference each */
};

/* Takes the code of a capture, in place of what was there. False: no memory; it is empty. */
bool ss_code_map_set(struct ss_code_map *map, const struct ss_capture *capture);
void ss_code_map_deinit(struct ss_code_map *map);

/* Whether a capture has the same code, with the same indexes of modules. */
bool ss_code_map_is_of(const struct ss_code_map *map, const struct ss_capture *capture);

#endif
