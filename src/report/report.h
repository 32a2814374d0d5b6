/*
 * One output format of a report is one struct ss_reporter: a profile goes in, bytes come
 * out.
 */
#ifndef SS_REPORT_REPORT_H
#define SS_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "report/profile.h"

struct ss_report_options {
	size_t size;	  /* sizeof(struct ss_report_options) */
	bool color;	  /* text */
	bool verbose;	  /* text: nothing left out */
	bool raw;	  /* text: places are what was asked for */
	double threshold; /* text: percent below which a branch is left out */
	unsigned rows;	  /* text: of a table at most */
};

struct ss_reporter {
	const char *name;
	const char *summary; /* for the help, one line */
	bool binary;	     /* nothing for a terminal */
	bool tells;	     /* says itself what is missing */
	/* Errors: NO_MEMORY. That writing failed is left to ferror() of out. */
	struct ss_error *(*write)(const struct ss_profile *profile,
				  const struct ss_report_options *options, FILE *out);
};

extern const struct ss_reporter ss_reporter_text;
extern const struct ss_reporter ss_reporter_folded;
extern const struct ss_reporter ss_reporter_json;
extern const struct ss_reporter ss_reporter_html;
extern const struct ss_reporter ss_reporter_speedscope;
extern const struct ss_reporter ss_reporter_pprof;
extern const struct ss_reporter ss_reporter_perf;

/* The format at that place in the list, the default first; NULL at its end. */
const struct ss_reporter *ss_reporter_at(size_t index);

/* The format of that name, or NULL. */
const struct ss_reporter *ss_reporter_find(const char *name);

#endif
