/*
 * Prepares the standard streams, before anything else is opened.
 */
#ifndef SS_CLI_STREAMS_H
#define SS_CLI_STREAMS_H

/*
 * Opens those of descriptors 0 to 2 that are closed, so that no other file becomes
 * "standard output". Writing to these fails. Also makes the program fail if a help text
 * could not be written.
 */
void ss_streams_prepare(void);

#endif
