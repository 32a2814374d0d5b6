/*
 * The names of frames in every format: the function, or module and offset, never a
 * bare address. Labels are not escaped: they may contain any byte but NUL.
 */
#ifndef SS_PROFILE_LABEL_H
#define SS_PROFILE_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "stacksnap.h"

/* Returns the last component of a path; the whole path if that is empty. */
const char *ss_label_base(const char *path);

/* Whether a function of the program is library code: parts of the C++ and Rust libraries
   that are compiled into it, or a statically linked libc. */
bool ss_label_is_of_library(const char *symbol);

/* The functions below return memory for free(), or NULL if there is none. */

/* The symbol, or else the place; with raw, as ss_label_new_raw(). */
char *ss_label_new(const struct ss_frame *frame, bool raw);

/* "libc.so.6+0x10e0ae [9fa53c...]": the address to look names up with. */
char *ss_label_new_raw(const struct ss_frame *frame);

/* "libc.so.6+0x10e0af"; outside of modules the offset in the memory area, "[jit]+0x7a0",
   or, where nothing is mapped, the address. */
char *ss_label_new_place(const struct ss_frame *frame);

/* "libc.so.6", "[jit]", "[unmapped]": the module or memory area of a frame. */
char *ss_label_new_module(const struct ss_frame *frame);

#endif
