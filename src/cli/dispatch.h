/*
 * From the arguments of the program to a command.
 */
#ifndef SS_CLI_DISPATCH_H
#define SS_CLI_DISPATCH_H

/* Runs the command that argv names, or else the default one. Returns the exit status. */
int ss_dispatch(int argc, char **argv);

#endif
