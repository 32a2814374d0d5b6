/*
 * Which system calls a confined process may still make.
 */
#ifndef SS_CLI_FILTER_H
#define SS_CLI_FILTER_H

#include <stdbool.h>

/* Forbids to create, change and remove files by name, in a way that holds for openat2()
   too (Landlock, Linux 5.13). False: not to be had here. */
bool ss_filter_forbid_writing(void);

/*
 * Loads a seccomp filter: reading files, memory of its own and writing to what is open
 * are allowed. What nobody needs who means well (starting programs, sockets, touching
 * other processes) kills the process; all else fails with EPERM. openat2() keeps its
 * flags where a filter cannot see them and is allowed only if told. False: refused.
 */
bool ss_filter_load(bool openat2);

#endif
