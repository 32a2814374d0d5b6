/*
 * Readers of what the kernel says of cgroups of version 2, over bytes that are there
 * already: /proc/PID/cgroup (cgroups(7)) and the files of a cgroup (cgroup-v2.rst).
 */
#ifndef SS_PROC_CGROUP_H
#define SS_PROC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The path of the line "0::", size bytes of text. False: there is no such line, or the
   cgroup lies outside of our cgroup namespace (its path has ".." in it). */
bool ss_cgroup_find_path(const char *text, size_t size, const char **ret,
			 size_t *ret_size);

/* Whether cgroup.events says that all in it is frozen. */
bool ss_cgroup_is_frozen(const char *text, size_t size);

/* Whether cgroup.threads lists it. */
bool ss_cgroup_has_thread(const char *text, size_t size, pid_t tid);

#endif
