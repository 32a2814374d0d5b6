/*
 * Sets of signals in words.
 */
#ifndef SS_DIAGNOSE_SIGNALS_H
#define SS_DIAGNOSE_SIGNALS_H

#include <stdint.h>

#include "base/words.h"

/* "HUP, INT and TERM"; bit n-1 is signal n. */
void ss_signals_write(uint64_t mask, struct ss_words *words);

#endif
