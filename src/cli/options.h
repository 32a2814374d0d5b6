/*
 * The options of snap and hang.
 */
#ifndef SS_CLI_OPTIONS_H
#define SS_CLI_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

#include "cli/common_options.h"
#include "cli/selection.h"
#include "cli/symbol_options.h"
#include "stacksnap.h"
#include "diagnose/wait_table.h"

struct ss_options {
	struct ss_common_options common;
	struct ss_selection selection;
	bool no_group;
	bool all;    /* show idle threads, too */
	bool native; /* show the native frames of interpreters, too */
	bool no_waits;
	bool environment;  /* minidump: with environment and command line */
	size_t goroutines; /* groups to show; 0: goroutines are not read */
	size_t tasks;	   /* groups of asyncio's tasks to show; 0: they are not read */
	bool goroutines_given;
	bool tasks_given;
	bool no_cache;
	struct ss_cache *cache;	     /* owned; NULL: not open */
	struct ss_wait_table *waits; /* owned; functions that wait */
	struct ss_symbol_options symbols;
	enum ss_mode mode;
	unsigned interpret_ms; /* limit for the analysis of a capture */
	unsigned timeout_ms;   /* 0: default of the library, also below */
	size_t max_total;      /* bytes */
};

/* The parser; its input is a struct ss_options. Exits with EX_USAGE if a value is
   invalid. */
extern const struct argp ss_options_argp;

/* Those of them that apply to any capture, also to one from a core file. */
extern const struct argp ss_interpret_argp;

/* That of minidumps, which hang and diff do not write. Its input is a struct ss_options. */
extern const struct argp ss_minidump_argp;

/* Fills in the defaults. */
void ss_options_init(struct ss_options *options);
void ss_options_deinit(struct ss_options *options);

/* Refuses options about tasks, where they are not read. where: for the message, such as
   "with diff". */
void ss_options_check_tasks(const struct argp_state *state,
			    const struct ss_options *options, const char *where);

/* Opens the cache of names, if it is wanted and possible. */
void ss_options_open_cache(struct ss_options *options);

/* The limit of --max-total, or its default, in bytes. */
uint64_t ss_options_max_total(const struct ss_options *options);

/* Returns the options for a capture of all threads. */
struct ss_capture_options ss_options_capture(const struct ss_options *options);

#endif
