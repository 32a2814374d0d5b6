/*
 * The objects that blocked threads refer to, read after the release within limits: memory
 * of system call arguments, file descriptors, other processes.
 */
#ifndef SS_PROCESS_OBJECTS_H
#define SS_PROCESS_OBJECTS_H

#include "data/capture.h"
#include "data/facts.h"
#include "process/thread_files.h"
#include "process/process_memory.h"
#include "process/target.h"

/*
 * File descriptors of the target, limited to those that blocked threads refer to.
 */

/* Limit of descriptors read from a set (poll, select, epoll): the lowest ones. */
enum { SS_SET_SHOWN = 24 };

/* Fills facts->fds: the descriptors in the arguments of blocked threads, and those in
   their epoll sets. For sockets, sets only the protocol.
   previous: the facts of the previous capture of a series, or NULL */
void ss_descriptors_read(struct ss_facts *facts, const struct ss_target *target,
			 const struct ss_facts *previous);

/* Sets capture->facts. Skips unreadable data. facts stays NULL if memory is exhausted.
   previous: the previous capture of a series, or NULL. counters: how often threads were scheduled, if
   target->kept has none; or NULL. */
void ss_objects_collect(struct ss_capture *capture, const struct ss_target *target,
			const struct ss_process_memory *memory,
			const struct ss_capture *previous,
			const struct ss_kept_files *counters);

#endif
