/*
 * What a thread blocked in a system call waits for. The table in model/call.c assigns a
 * kind to each call; call.c has one entry for each kind.
 *
 * To add a system call: give it a name in arch/syscall.h and a line in the table of
 * model/call.c. To add a kind of wait: add it to enum ss_wait_kind, its name to
 * diagnose/names.c, its function to the table in call.c, its words to output/wait_text.c,
 * and to stacksnap-json(5). A wait that only the stack reveals (of a lock, a runtime, an
 * application) is a class in diagnose/lock.h.
 */
#ifndef SS_DIAGNOSE_CALL_H
#define SS_DIAGNOSE_CALL_H

#include "diagnose/diagnosis.h"

/* Fills in the wait of a thread whose system call is known. */
void ss_call_fill(struct ss_diagnosis *d);

#endif
