/*
 * Waits for any of several file descriptors: poll(2) and select(2). The set of an epoll
 * instance is part of its descriptor.
 */
#ifndef SS_DIAGNOSE_POLL_H
#define SS_DIAGNOSE_POLL_H

#include "diagnose/diagnosis.h"

void ss_poll_fill(struct ss_diagnosis *d);
void ss_poll_fill_select(struct ss_diagnosis *d);

#endif
