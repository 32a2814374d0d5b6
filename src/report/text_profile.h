/*
 * The parts of the format "text" for a profile. Functions that return bool return false
 * without memory.
 */
#ifndef SS_REPORT_TEXT_PROFILE_H
#define SS_REPORT_TEXT_PROFILE_H

#include "report/format.h"
#include "report/profile_condense.h"
#include "report/profile_waits.h"

/* Writes "name (module)"; a long name is truncated unless options are verbose. */
void ss_text_profile_name(const struct ss_profile *profile, uint64_t function,
			  const struct ss_format_options *options, FILE *out);

/* The same, or "libc.so.6 (no symbols: 214 addresses)" if places has several. */
void ss_text_profile_function(const struct ss_condensed *condensed, uint64_t function,
			      const struct ss_places *places,
			      const struct ss_format_options *options, FILE *out);

/* Writes an empty line and the heading. */
void ss_text_profile_heading(const char *text, const struct ss_format_options *options,
			     FILE *out);

/* " 12.3 %" */
void ss_text_profile_share(uint64_t part, uint64_t whole, FILE *out);

/* Writes the deadlocks of recorded snapshots, as ss_text_write_deadlocks(). */
bool ss_text_profile_deadlocks(const struct ss_profile *profile,
			       const struct ss_chain *chains,
			       const struct ss_format_options *options, FILE *out);

/* Writes what the other threads of recorded snapshots wait for. */
bool ss_text_profile_other_waits(const struct ss_profile *profile,
				 const struct ss_chain *chains,
				 const struct ss_format_options *options, FILE *out);

/* Writes the system calls in which threads slept, and the descriptor or futex of each. */
bool ss_text_profile_waits(const struct ss_profile *profile,
			   const struct ss_format_options *options, FILE *out);

#endif
