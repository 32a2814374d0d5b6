/*
 * The three standard streams, before anything else is opened.
 */
#ifndef SS_CLI_STREAMS_H
#define SS_CLI_STREAMS_H

/*
 * Fills descriptors 0 to 2 where they are closed, so that no file opened later
 * becomes "standard output". What is filled cannot be written to: using it fails.
 * Also arranges that help texts that could not be written end with a failure.
 */
void ss_streams_prepare(void);

#endif
