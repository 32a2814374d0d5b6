/*
 * Escapes what argp(3) and getopt(3) write about arguments: they quote an argument as it is,
 * and a control character in it would reach the terminal.
 */
#ifndef SS_CLI_USAGE_GUARD_H
#define SS_CLI_USAGE_GUARD_H

/* To be called before arguments are parsed. If one of them has a byte that is to be
   escaped, standard error is collected until the end of parsing or of the program. */
void ss_usage_guard_begin(int argc, char **argv);

/* To be called after arguments were parsed: standard error is as it was. */
void ss_usage_guard_end(void);

#endif
