/*
 * Parsers for cgroups, mostly of version 2: /proc/PID/cgroup (cgroups(7)) and the files of a cgroup
 * (cgroup-v2.rst).
 */
#ifndef SS_PROC_CGROUP_H
#define SS_PROC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The path in the line "0::" of text. Returns false if there is no such line, or if the
   cgroup is outside of our cgroup namespace (its path contains ".."). */
bool ss_cgroup_find_path(const char *text, size_t size, const char **ret,
			 size_t *ret_size);

/* Whether a line of text, for any hierarchy, has the cgroup path or one below it. "/" is above
   all. */
bool ss_cgroup_is_below(const char *text, size_t size, const char *path);

/* Whether the cgroup is frozen, according to cgroup.events. */
bool ss_cgroup_is_frozen(const char *text, size_t size);

/* Whether cgroup.threads lists tid. */
bool ss_cgroup_has_thread(const char *text, size_t size, pid_t tid);

#endif
