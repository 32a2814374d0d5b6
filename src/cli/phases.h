/*
 * Measures the duration of each phase, for --verbose.
 */
#ifndef SS_CLI_PHASES_H
#define SS_CLI_PHASES_H

#include <stddef.h>
#include <stdint.h>

#include "stacksnap.h"

enum ss_phase {
	SS_PHASE_OPEN,
	SS_PHASE_CAPTURE,
	SS_PHASE_UNWIND,
	SS_PHASE_SYMBOLIZE,
	SS_PHASE_DIAGNOSE,
	SS_PHASE_RENDER,
	SS_PHASE_COUNT,
};

struct ss_phases {
	uint64_t spent_ns[SS_PHASE_COUNT];
	enum ss_phase current; /* COUNT: none */
	uint64_t begun_ns;     /* CLOCK_MONOTONIC */
};

/* Ends the current phase and begins the next one (COUNT: none). */
void ss_phases_enter(struct ss_phases *phases, enum ss_phase phase);

/* Prints the times, how much was copied and which modules had problems on stderr. */
void ss_phases_print(const struct ss_phases *phases, const struct ss_snapshot *snapshot);

#endif
