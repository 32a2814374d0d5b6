/*
 * Values of options: numbers, durations, times.
 */
#ifndef SS_CLI_ARGUMENTS_H
#define SS_CLI_ARGUMENTS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"

/* Parses decimal numbers of the command line: digits only. */

enum ss_number_result {
	SS_NUMBER_OK = 0,
	SS_NUMBER_NONE,	    /* not a number */
	SS_NUMBER_NEGATIVE, /* a negative number */
	SS_NUMBER_RANGE,    /* not in [min, max] */
};

/* Parses the whole text. Sets *ret only if the result is OK. */
enum ss_number_result ss_number_parse(const char *text, uint64_t min, uint64_t max,
				      uint64_t *ret);

/* Whether text consists of digits only. */
bool ss_number_is_digits(const char *text);

/*
 * Parses times in a recording: seconds since its start ("12.5"), or wall times ("11:45:06",
 * "2026-11-21 11:45:06.5", or with "T" for the space).
 */

struct ss_time_argument {
	bool is_set;
	bool is_relative;
	bool has_date;
	struct tm clock;      /* local time; without a date, the date of the start */
	uint64_t nanoseconds; /* since the start, or within the second */
};

/* Returns false if text is not a time. */
bool ss_time_argument_parse(const char *text, struct ss_time_argument *ret);

/* Returns the wall time of the argument for a recording that started at begin_ns; 0 if it is
   not set. Without a date it is the first such time not before the second of the start. */
uint64_t ss_time_argument_resolve(const struct ss_time_argument *argument,
				  uint64_t begin_ns);

/* For parsers of options, which exit with EX_USAGE if text is wrong: a decimal number from min to max; a
   duration in nanoseconds; text for a place in a vector, which is NULL without memory. */
uint64_t ss_argument_number(const char *name, const char *text, uint64_t min,
			    uint64_t max);
uint64_t ss_argument_duration(const char *name, const char *text);
void ss_argument_add(const char **slot, const char *text);

/* The error of a file that cannot be opened. If its name is a number, the remedy is "stacksnap", the
   command what ("record "; or "") and the number. */
struct ss_error *ss_argument_open_error(int errnum, const char *path, const char *what);

/* A POSIX extended regular expression. False: text is none; why says so. */
enum { SS_REGEX_WHY_MAX = 200 };
bool ss_regex_compile(const char *text, regex_t *ret, char why[SS_REGEX_WHY_MAX]);

enum ss_color { SS_COLOR_AUTO = 0, SS_COLOR_ALWAYS, SS_COLOR_NEVER };

/* The value of --color. Exits with EX_USAGE if it is invalid. */
enum ss_color ss_options_parse_color(const char *name);

/* The values of --color; NULL after the last one. */
const char *ss_options_color_name(size_t index);

#endif
