/*
 * The limit of open files. A file is kept open for each module on a stack, and record keeps one
 * for each thread: both may be more than the usual limit of 1,024 files.
 */
#ifndef SS_CLI_FILE_LIMIT_H
#define SS_CLI_FILE_LIMIT_H

/* Raises the limit as far as that is allowed. */
void ss_file_limit_raise(void);

/* Restores the limit that this program was started with, for another program. */
void ss_file_limit_restore(void);

#endif
