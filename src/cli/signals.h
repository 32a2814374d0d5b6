/*
 * The signals that end a command which runs until the user stops it.
 */
#ifndef SS_CLI_SIGNALS_H
#define SS_CLI_SIGNALS_H

/* Blocks SIGINT (Ctrl-C), SIGTERM and SIGHUP, and returns a signalfd for them; -1: there is
   none. */
int ss_signals_watch(void);

#endif
