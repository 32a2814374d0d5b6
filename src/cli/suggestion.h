/*
 * "Did you mean": which of some words was probably meant.
 */
#ifndef SS_CLI_SUGGESTION_H
#define SS_CLI_SUGGESTION_H

#include <stddef.h>

/* Zeroed but for given, there is none. */
struct ss_suggestion {
	const char *given;
	const char *best; /* NULL: no word is similar */
	size_t distance;  /* of best */
	char hint[64];	  /* set by ss_suggestion_hint() */
};

/* Offers a word, which must outlive the suggestion. */
void ss_suggestion_offer(struct ss_suggestion *suggestion, const char *word);

/* "did you mean PREFIXWORD?"; NULL: there is no such word. */
const char *ss_suggestion_hint(struct ss_suggestion *suggestion, const char *prefix);

#endif
