/*
 * Waits for other processes: children, and owners of file locks.
 */
#ifndef SS_DIAGNOSE_PROCESS_H
#define SS_DIAGNOSE_PROCESS_H

#include "diagnose/diagnosis.h"

void ss_process_fill_child(struct ss_diagnosis *d);
void ss_process_fill_file_lock(struct ss_diagnosis *d);

#endif
