/*
 * Starting a program that is held before its first instruction.
 */
#ifndef SS_PROCESS_SPAWN_H
#define SS_PROCESS_SPAWN_H

#include "stacksnap.h"

/*
 * Starts a program, stops it before its first instruction, and opens it as a target. argv
 * ends with NULL; argv[0] is searched in PATH. ss_target_close() kills a child that was
 * never resumed, and leaves one that runs alone. Errors: INVALID (no such program),
 * SYSTEM, NO_MEMORY, and those of ss_target_open(). *exit_status is set only if the program
 * cannot be executed.
 */
struct ss_error *ss_target_spawn(char *const argv[], struct ss_target **ret,
				 int *exit_status);

/* What a shell ends with if execvp() has failed. */
int ss_spawn_status(int errnum);

/* Lets a spawned target run. Call it from the thread that spawned it. */
struct ss_error *ss_target_resume(struct ss_target *target);

/* Waits at most timeout_ms for the end of a spawned target that was resumed, and reaps it.
   *ret is its status as waitpid(2) returns it. False: it has not ended. */
bool ss_target_wait(struct ss_target *target, unsigned timeout_ms, int *ret);

/* The process id. */
pid_t ss_target_pid(const struct ss_target *target);

#endif
