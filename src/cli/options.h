/*
 * The options that several commands have. Each is described and parsed here once; a command lists the
 * tables that it offers as children.
 */
#ifndef SS_CLI_OPTIONS_H
#define SS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/targets.h"
#include "diagnose/wait_table.h"
#include "report/format.h"
#include "stacksnap.h"

/* The options of the format "rows": --batch, --label and --env. */

struct ss_row_arguments {
	const char *batch; /* NULL: the time, see ss_row_arguments_begin() */
	char time[32];
	SS_VECTOR(const char *) labels;	   /* "KEY=VALUE", in argv */
	SS_VECTOR(const char *) variables; /* names, in argv */
};

/* Their input is a struct ss_row_arguments. */
extern const struct ss_option_group ss_row_group;     /* --batch, --label */
extern const struct ss_option_group ss_label_group;   /* --label */
extern const struct ss_option_group ss_row_env_group; /* --env */

/* Sets batch if it is not given: the time of --at, or if at_ns is 0 the current one. */
void ss_row_arguments_begin(struct ss_row_arguments *arguments, uint64_t at_ns);
void ss_row_arguments_deinit(struct ss_row_arguments *arguments);

/* What rows say besides the snapshot. Owns its strings. */
struct ss_row_source {
	struct ss_row_options options;
	char *batch;
	char boot_id[64];
	SS_VECTOR(char *) labels;
};

/* Fills it in. Without memory labels are missing. */
void ss_row_source_init(struct ss_row_source *source,
			const struct ss_row_arguments *arguments);
/* Adds the variables of the environment of target. */
void ss_row_source_add(struct ss_row_source *source,
		       const struct ss_row_arguments *arguments,
		       const struct ss_target *target);
void ss_row_source_deinit(struct ss_row_source *source);

/* Options that snap, hang, record and report share. */

struct ss_common_options {
	/* Set by the command before the options are parsed; options may change the input. */
	enum ss_format_input input; /* what the command writes */
	const char *default_output; /* NULL: standard output */
	bool no_pid;		    /* --output cannot contain %p */

	const char *format_name; /* NULL: text */
	const struct ss_format *format;
	const char *output; /* pattern for ss_output_open(), or NULL: standard output */
	enum ss_color color;
	bool verbose;
	unsigned max_frames; /* 0: no limit */
	size_t max_stack;    /* bytes; 0: default of the library */
	struct ss_row_arguments rows;
};

/* Their input is a struct ss_common_options. */
extern const struct ss_option_group ss_format_group; /* --format, --json, --color */
extern const struct ss_option_group ss_common_group; /* --output, --verbose */
extern const struct ss_option_group ss_limits_group; /* --max-frames, --max-stack */

/* --format and --json alone, for commands with formats of their own; the input is a const char *,
   the name. */
extern const struct ss_option_group ss_format_name_group;

/* Whether text is written with colours. */
bool ss_options_want_color(const struct ss_common_options *options);

/* The options of commands that symbolize. */

struct ss_symbol_options {
	bool raw;
	unsigned flags;	       /* enum ss_symbolize_flags */
	const char *debug_dir; /* NULL: /usr/lib/debug */
	const char *sysroot;   /* or NULL */
	bool debuginfod;       /* download missing files */
};

/* Their input is a struct ss_symbol_options. */
extern const struct ss_option_group ss_symbols_group;
extern const struct ss_option_group ss_names_group; /* without --raw */

/*
 * Files with functions that are known to wait: those of the system and of the user, and those
 * that options name.
 */

/* The row of --wait-functions, for a member that is a struct ss_wait_table *. */
#define SS_OPTION_WAIT_FUNCTIONS(structure, member, group)                               \
	{                                                                                \
		"wait-functions", 0, "FILE",                                             \
			"Add the functions in FILE to the known functions that wait; "   \
			"see stacksnap-waits(5)",                                        \
			(group), .take = ss_wait_functions_take,                         \
				 .offset = offsetof(structure, member)                   \
	}
void ss_wait_functions_take(void *waits, const char *path);

/* Creates a table of the functions that are built in and of those in
   /etc/stacksnap/wait-functions and $XDG_CONFIG_HOME/stacksnap/wait-functions. Warns of
   files that cannot be used. Errors: NO_MEMORY. */
struct ss_error *ss_wait_functions_load(struct ss_wait_table **ret);

/* The options of snap, hang and diff; without those that select threads, because hang and
   diff observe all threads. */

struct ss_options {
	struct ss_common_options common;
	struct ss_selection selection;
	bool strict; /* an idle thread with a guessed frame is incomplete, too */
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

/* Their input is a struct ss_options. */
extern const struct ss_option_group ss_options_group;

/* Those of them that apply to any capture, also to one from a core file. */
extern const struct ss_option_group ss_interpret_group;

/* Those that only some of these commands take: hang needs waits, and neither hang nor diff
   writes minidumps. */
extern const struct ss_option_group ss_waits_group;    /* --no-waits */
extern const struct ss_option_group ss_minidump_group; /* --environment */

/* Fills in the defaults. */
void ss_options_init(struct ss_options *options);
void ss_options_deinit(struct ss_options *options);

/* Opens the cache of names, if it is wanted and possible. */
void ss_options_open_cache(struct ss_options *options);

/* The limit of --max-total, or its default, in bytes. */
uint64_t ss_options_max_total(const struct ss_options *options);

/* Returns the options for a capture of all threads. */
struct ss_capture_options ss_options_capture(const struct ss_options *options);

#endif
