#include "cli/suggestion.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum { WORD_MAX = 32, LONG_WORD = 6 };

/* How many letters must be changed, added, removed or exchanged with the next one. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t before[WORD_MAX + 1] = {};
	size_t last[WORD_MAX + 1];
	size_t row[WORD_MAX + 1];
	size_t columns = strlen(b);

	for (size_t j = 0; j <= columns; j++)
		last[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		row[0] = i;
		for (size_t j = 1; j <= columns; j++) {
			row[j] = SS_MIN(last[j], row[j - 1]) + 1;
			row[j] = SS_MIN(row[j], last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				row[j] = SS_MIN(row[j], before[j - 2] + 1);
		}
		memcpy(before, last, sizeof(before));
		memcpy(last, row, sizeof(last));
	}
	return last[columns];
}

void ss_suggestion_offer(struct ss_suggestion *suggestion, const char *word)
{
	size_t length = strlen(suggestion->given);
	size_t limit = length < 2 ? 0 : length < LONG_WORD ? 1 : 2;

	if (length > WORD_MAX || strlen(word) > WORD_MAX)
		return;
	size_t distance = edit_distance(suggestion->given, word);
	if (distance > limit || (suggestion->best && distance >= suggestion->distance))
		return;
	suggestion->best = word;
	suggestion->distance = distance;
}

const char *ss_suggestion_hint(struct ss_suggestion *suggestion, const char *prefix)
{
	if (!suggestion->best)
		return NULL;
	(void)snprintf(suggestion->hint, sizeof(suggestion->hint), "did you mean %s%s?",
		       prefix, suggestion->best); /* it fits */
	return suggestion->hint;
}
