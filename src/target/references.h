/*
 * Which modules a capture refers to. Every return address is a word of a copied
 * stack, or in a register: modules that no such word points into need not be opened.
 */
#ifndef SS_TARGET_REFERENCES_H
#define SS_TARGET_REFERENCES_H

#include "model/capture.h"

/* Sets wanted[i] for each capture->modules.items[i] that is referred to. */
void ss_references_mark(const struct ss_capture *capture, bool *wanted);

/* Whether any such word points to code that lies in no file. */
bool ss_references_find_jit(const struct ss_capture *capture);

#endif
