/*
 * Why a stack ends where it ends, in words a person can act on.
 */
#ifndef SS_VIEW_END_TEXT_H
#define SS_VIEW_END_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "stacksnap.h"

/* "the copied part of the stack ended here". Never NULL, for ROOT "whole". */
const char *ss_end_text(enum ss_end end);

/* What to do about it, or nothing at all: "; --max-stack=1024 copies more".
   max_stack is what was copied of one stack at most, in bytes. */
void ss_end_write_remedy(enum ss_end end, size_t max_stack, FILE *out);

#endif
