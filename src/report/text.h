/*
 * The pieces of the text format.
 */
#ifndef SS_REPORT_TEXT_H
#define SS_REPORT_TEXT_H

#include "report/chains.h"
#include "report/condense.h"
#include "report/report.h"
#include "report/weights.h"

/* "name (module)", escaped, and cut where it is long unless it shall be whole. */
void ss_report_write_name(const struct ss_profile *profile, uint64_t function,
			  const struct ss_report_options *options, FILE *out);

/* The same, or "libc.so.6 (no names: 214 places)", where places says so. */
void ss_report_write_function(const struct ss_condensed *condensed, uint64_t function,
			      const struct ss_places *places,
			      const struct ss_report_options *options, FILE *out);

/* An empty line, and the heading. */
void ss_report_write_heading(const char *text, const struct ss_report_options *options,
			     FILE *out);

/* " 12.3 %" */
void ss_report_write_share(uint64_t part, uint64_t whole, FILE *out);

/* The calls as a tree, widest first, without branches below the threshold. weights are
   those of the condensed profile. False without memory. */
bool ss_report_write_tree(const struct ss_condensed *condensed,
			  const struct ss_weights *weights,
			  const struct ss_report_options *options, FILE *out);

/* Samples by state, and by thread, and where they are most often. False without memory.
 */
bool ss_report_write_breakdown(const struct ss_condensed *condensed,
			       const struct ss_report_options *options, FILE *out);

/* The deadlocks of snapshots: their members in order, each with what it waits for, and
   where. */
void ss_report_write_deadlocks(const struct ss_profile *profile,
			       const struct ss_chain *chains,
			       const struct ss_report_options *options, FILE *out);

/* What threads of snapshots wait for that are in none of these deadlocks. False without
   memory. */
bool ss_report_write_links(const struct ss_profile *profile,
			   const struct ss_chain *chains,
			   const struct ss_report_options *options, FILE *out);

/* Who waits on what: samples that slept in a system call. False without memory. */
bool ss_report_write_waits(const struct ss_profile *profile,
			   const struct ss_report_options *options, FILE *out);

#endif
