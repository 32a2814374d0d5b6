/*
 * Numbers as people type them: decimal digits only, and nothing after them.
 */
#ifndef SS_CLI_NUMBER_H
#define SS_CLI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

enum ss_number_result {
	SS_NUMBER_OK = 0,
	SS_NUMBER_NONE,	    /* not a number */
	SS_NUMBER_NEGATIVE, /* a number below zero */
	SS_NUMBER_RANGE,    /* outside of [min, max] */
};

/* Parses text whole. *ret is set on OK only. */
enum ss_number_result ss_number_parse(const char *text, uint64_t min, uint64_t max,
				      uint64_t *ret);

/* Whether text is digits and nothing else. */
bool ss_number_is_digits(const char *text);

#endif
