/*
 * The diagnosis of one thread while it is put together: what is known of it, and the
 * words that are being found. Each kind of wait has a function that fills in the wait;
 * it never asks anything of the process.
 */
#ifndef SS_DIAGNOSE_DIAGNOSIS_H
#define SS_DIAGNOSE_DIAGNOSIS_H

#include "base/words.h"
#include "model/snapshot.h"

struct ss_diagnosis {
	struct ss_snapshot *snapshot;
	const struct ss_thread *thread;
	const struct ss_thread_facts *facts; /* of that thread; never NULL */
	struct ss_words text;		     /* becomes wait->text */
	struct ss_wait *wait;		     /* kind OTHER, fd -1 and so on at first */
};

/* A string that lives as long as the snapshot. NULL without memory (or for NULL). */
const char *ss_diagnosis_keep(struct ss_diagnosis *d, const char *text);

#endif
