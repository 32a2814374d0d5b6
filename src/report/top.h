/*
 * The screen of "stacksnap top": functions, threads and waits of the last seconds. It is made
 * in the sandbox, as lines that fit a terminal; strings of the target are escaped.
 */
#ifndef SS_REPORT_TOP_H
#define SS_REPORT_TOP_H

#include "report/format.h"

enum ss_top_sort {
	SS_TOP_OWN = 0, /* functions: own share; threads: CPU time */
	SS_TOP_TOTAL,	/* functions: with what they call */
	SS_TOP_STATE,	/* threads: by state, then CPU time */
	SS_TOP_NAME,
};

/* The name for --sort; NULL after the last one. */
const char *ss_top_sort_name(size_t sort);

enum ss_top_part { SS_TOP_ALL = 0, SS_TOP_FUNCTIONS, SS_TOP_THREADS, SS_TOP_WAITS };

struct ss_top_view {
	unsigned lines;	  /* of the result; 0: no limit but rows */
	unsigned columns; /* 0: no limit */
	unsigned rows;	  /* of each part, without lines */
	enum ss_top_sort sort;
	enum ss_top_part part;
	bool idle;	    /* also samples and threads that sleep */
	const char *filter; /* part of a name, without regard to case; NULL: none */
	size_t skip;	    /* rows to leave out at the beginning of each part */
	bool color;
	/* What ss_format_top_waits wrote, or NULL: not known yet. Only shown, not read. */
	const char *waits;
	uint64_t waits_age_ns;
};

/* Writes the screen: a heading, and the parts. profile: the recordings of the last seconds;
   runs of threads that sleep are emptied. Errors: NO_MEMORY. */
struct ss_error *ss_top_write(struct ss_profile *profile, const struct ss_top_view *view,
			      FILE *out);

/* Writes one line for each wait of a snapshot, those for locks first. Not for users. */
extern const struct ss_format ss_format_top_waits;

#endif
