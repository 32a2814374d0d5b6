/*
 * Waits for any of several file descriptors: poll, select, epoll.
 */
#ifndef SS_DIAGNOSE_SETS_H
#define SS_DIAGNOSE_SETS_H

#include "diagnose/diagnosis.h"

void ss_sets_describe_poll(struct ss_diagnosis *d);
void ss_sets_describe_select(struct ss_diagnosis *d);
void ss_sets_describe_epoll(struct ss_diagnosis *d);

#endif
