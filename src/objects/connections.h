/*
 * Connected and listening sockets of which the capture before, of a series, knows everything.
 * The end of a connection wakes up the threads that wait for its data. So what was known of the
 * socket of such a thread is still true if the thread has not run since.
 */
#ifndef SS_OBJECTS_CONNECTIONS_H
#define SS_OBJECTS_CONNECTIONS_H

#include "model/capture.h"

/* Sets the socket of those entries of facts->fds. facts->threads and capture->threads have the same order. */
void ss_connections_keep(struct ss_facts *facts, const struct ss_capture *capture,
			 const struct ss_facts *previous);

#endif
