/*
 * The pieces of the text format.
 */
#ifndef SS_REPORT_TEXT_H
#define SS_REPORT_TEXT_H

#include "report/report.h"
#include "report/weights.h"

/* "name (module)", escaped, and cut where it is long unless it shall be whole. */
void ss_report_write_function(const struct ss_profile *profile, uint64_t function,
			      const struct ss_report_options *options, FILE *out);

/* " 12.3 %" */
void ss_report_write_share(uint64_t part, uint64_t whole, FILE *out);

/* The calls as a tree, widest first, without branches below the threshold. False without
   memory. */
bool ss_report_write_tree(const struct ss_weights *weights,
			  const struct ss_report_options *options, FILE *out);

/* Samples by state, by what was waited in, and by thread. False without memory. */
bool ss_report_write_breakdown(const struct ss_profile *profile,
			       const struct ss_report_options *options, FILE *out);

#endif
