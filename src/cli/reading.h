/*
 * One attempt to make something of a capture: unwind, name, print, tell. What was fatal
 * to the attempts before decides how much is tried, and is told.
 */
#ifndef SS_CLI_READING_H
#define SS_CLI_READING_H

#include "cli/interpret.h"
#include "cli/sandbox.h"

/* Modules that are left out before names are given up altogether. */
enum { SS_SKIPS_MAX = 3, SS_DEATHS_MAX = SS_SKIPS_MAX + 3 };

/* Of the board's: whether anything is missing; whether threads were written that have to
   be completed (cli/need.h), and nothing else was done. */
enum ss_reading_result { SS_READING_MISSING, SS_READING_NEEDS };

enum ss_reading_step {
	SS_READING_UNWIND,
	SS_READING_SYMBOLIZE,
	SS_READING_DIAGNOSE,
	SS_READING_PRINT,
	SS_READING_STEPS,
};

struct ss_death {
	char *how;
	int32_t module; /* that is left out since; -1: none */
};

/* How much is tried. */
enum ss_level { SS_LEVEL_NAMES, SS_LEVEL_RAW, SS_LEVEL_PLACES };

struct ss_reading {
	const struct ss_interpretation *job;
	struct ss_sandbox_board *board;
	struct ss_session *session; /* of this attempt */
	enum ss_level level;
	bool may_ask;	    /* for what is missing in the capture, in place of the rest */
	bool without_waits; /* no diagnosis */
	int32_t skips[SS_SKIPS_MAX];
	size_t skip_count;
	struct ss_death deaths[SS_DEATHS_MAX];
	size_t death_count;
};

/* What it may be doing, in words, by enum ss_reading_step. */
extern const char *const ss_reading_steps[SS_READING_STEPS];

void ss_reading_deinit(struct ss_reading *reading);

/* A ss_sandbox_work; data is a struct ss_reading. Results: enum ss_reading_result. */
struct ss_error *ss_reading_work(void *data, struct ss_sandbox_board *board, FILE *out);

/* The same in this process: where there can be no other, or where nothing is left to do
   that could be fatal. */
struct ss_error *ss_reading_work_here(const struct ss_reading *reading,
				      bool *ret_missing);

#endif
