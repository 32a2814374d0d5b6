/*
 * The modules that a capture refers to. Every return address is in a copied stack or
 * register, so modules without a pointer to them need not be opened.
 */
#ifndef SS_PROCESS_REFERENCES_H
#define SS_PROCESS_REFERENCES_H

#include "data/capture.h"

/* Sets referenced[i] if there is a pointer to capture->modules.items[i]. If the previous capture
   of a series has the same modules, threads that have the same stack in it are left out.
   previous: or NULL */
void ss_references_mark(const struct ss_capture *capture,
			const struct ss_capture *previous, bool *referenced);

/* Whether a word points to code outside of files. */
bool ss_references_find_jit(const struct ss_capture *capture);

#endif
