/*
 * The signals that end a command which runs until the user stops it.
 */
#ifndef SS_CLI_SIGNALS_H
#define SS_CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Blocks SIGINT (Ctrl-C), SIGTERM and SIGHUP, and returns a signalfd for them; -1: there is
   none. */
int ss_signals_watch(void);

/* Whether one of these signals, which are blocked, has arrived. */
bool ss_signals_are_pending(const sigset_t *signals);

#endif
