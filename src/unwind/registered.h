/*
 * The unwind information of JIT code: compilers such as LLVM's put an .eh_frame into memory
 * and tell libgcc by __register_frame(). libgcc keeps lists of what was registered, whose
 * heads are in its data, without symbols. A gather plan copies the lists.
 */
#ifndef SS_UNWIND_REGISTERED_H
#define SS_UNWIND_REGISTERED_H

#include "base/vector.h"
#include "model/capture.h"

/* Addresses of the .eh_frame sections that were registered and are in the capture. */
struct ss_registered {
	SS_VECTOR(uint64_t) sections;
};

/* False without memory. */
bool ss_registered_init(struct ss_registered *registered,
			const struct ss_capture *capture);
void ss_registered_deinit(struct ss_registered *registered);

#endif
