/*
 * Parses decimal numbers of the command line: digits only.
 */
#ifndef SS_CLI_NUMBER_H
#define SS_CLI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
