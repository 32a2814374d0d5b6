/*
 * Waits for other processes: children, holders of file locks, senders of signals and
 * messages.
 */
#ifndef SS_DIAGNOSE_OTHERS_H
#define SS_DIAGNOSE_OTHERS_H

#include "diagnose/diagnosis.h"

void ss_others_describe_child(struct ss_diagnosis *d);
void ss_others_describe_file_lock(struct ss_diagnosis *d);
void ss_others_describe_signal(struct ss_diagnosis *d);
void ss_others_describe_ipc(struct ss_diagnosis *d);

#endif
