/*
 * /proc/PID/auxv (proc_pid_auxv(5)): what the kernel told the program when it started it.
 */
#ifndef SS_PROC_AUXV_H
#define SS_PROC_AUXV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How many bits the words of an auxiliary vector have, in this byte order: 32 or 64, which
 * is also the class of the program; 0: unknown. It is found by the entry of the page size,
 * which every kernel writes.
 */
unsigned ss_auxv_word_bits(const void *bytes, size_t size);

/* The value of an entry (AT_...) of a vector with words of 64 bits. False: there is none. */
bool ss_auxv_find(const void *bytes, size_t size, uint64_t type, uint64_t *ret);

#endif
