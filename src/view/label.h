/*
 * What a frame is called: by its symbol, or by where it lies. Never by a bare
 * address.
 */
#ifndef SS_VIEW_LABEL_H
#define SS_VIEW_LABEL_H

#include <stdbool.h>
#include <stdio.h>

#include "stacksnap.h"
#include "view/escape.h"

/* The last part of a path; the whole of it if that would be empty. */
const char *ss_label_base(const char *path);

/* Whether a function stands between a program and what it waits in: parts of the libraries
   of C++ and Rust that are compiled into it, and the C library where it is linked
   statically. */
bool ss_label_is_of_library(const char *symbol);

/* "libc.so.6", "[jit]", "[unmapped]": the module or area a frame lies in. */
void ss_label_write_module(const struct ss_frame *frame,
			   const struct ss_substitution *substitution, FILE *out);

/* "libc.so.6+0x10e0af"; outside of modules the offset in the area, "[jit]+0x7a0", or,
   where nothing is mapped, the address. */
void ss_label_write_place(const struct ss_frame *frame,
			  const struct ss_substitution *substitution, FILE *out);

/* "libc.so.6+0x10e0ae [9fa53c...]": the address to look names up with. */
void ss_label_write_raw(const struct ss_frame *frame,
			const struct ss_substitution *substitution, FILE *out);

/* The symbol, or else the place; with raw what ss_label_write_raw() writes. */
void ss_label_write(const struct ss_frame *frame, bool raw,
		    const struct ss_substitution *substitution, FILE *out);

#endif
