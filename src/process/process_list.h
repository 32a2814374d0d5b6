/*
 * The processes of this machine, and what they were started with.
 */
#ifndef SS_PROCESS_PROCESS_LIST_H
#define SS_PROCESS_PROCESS_LIST_H

#include "stacksnap.h"

/*
 * A variable of the environment with which the process was started, to be freed; NULL: it has
 * none of that name, with fewer than 4096 bytes, or its memory does not answer within a
 * second. A child process reads it.
 */
char *ss_target_read_variable(const struct ss_target *target, const char *name);

struct ss_process_list;

struct ss_listed_process {
	pid_t pid;
	pid_t parent;		  /* 0: none in our pid namespace */
	const char *name;	  /* comm of the main thread */
	const char *executable;	  /* path as the process sees it; NULL: may not be read */
	const char *command_line; /* see ss_process_list_read_commands(), or NULL */
};

/* Returns whether to list a process, whose command_line is NULL. */
typedef bool ss_process_filter(void *data, const struct ss_listed_process *process);

/*
 * Lists the processes that filter selects, by ascending pid, without kernel threads,
 * zombies and the caller. Errors: NO_MEMORY, SYSTEM (/proc is not mounted).
 */
struct ss_error *ss_process_list_new(ss_process_filter *filter, void *data,
				     struct ss_process_list **ret);
void ss_process_list_free(struct ss_process_list *list);
size_t ss_process_list_count(const struct ss_process_list *list);
/* Valid as long as the list. index must be below the count. */
const struct ss_listed_process *ss_process_list_at(const struct ss_process_list *list,
						   size_t index);

/*
 * Whether a process is in the cgroup with that path, or below it. The path is that of
 * cgroups(7), relative to the root of a hierarchy: "/system.slice/cron.service". Of version 1
 * any hierarchy counts. False if that may not be read.
 */
bool ss_process_is_in_cgroup(pid_t pid, const char *path);

/*
 * Sets command_line: the arguments, separated by spaces, at most 4 KiB. It stays NULL if the
 * process has none, or if its memory does not answer within a second; after three such
 * processes the rest is skipped. A child process reads them.
 */
void ss_process_list_read_commands(struct ss_process_list *list);

#endif
