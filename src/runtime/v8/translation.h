/*
 * What V8's deoptimizer makes of a frame of optimised code: the frames of the interpreter that
 * it stands for. Such a translation is a sequence of bytes (src/objects/deoptimization-data.cc,
 * src/deoptimizer/translation-opcode.h).
 */
#ifndef SS_RUNTIME_V8_TRANSLATION_H
#define SS_RUNTIME_V8_TRANSLATION_H

#include "runtime/v8/layout.h"

struct ss_v8_translated {
	int32_t function; /* index of a literal */
	int32_t bytecode; /* offset */
};

/*
 * Reads the functions of the translation at an index, outermost first. Builtins that continue
 * a call are left out. *count: at most max. False: it is not valid.
 */
bool ss_v8_translation_read(const struct ss_v8_layout *layout, const uint8_t *bytes,
			    size_t size, uint32_t index, struct ss_v8_translated *ret,
			    size_t max, size_t *count);

#endif
