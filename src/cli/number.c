#include "cli/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool ss_number_is_digits(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

enum ss_number_result ss_number_parse(const char *text, uint64_t min, uint64_t max,
				      uint64_t *ret)
{
	if (*text == '-' && ss_number_is_digits(text + 1))
		return SS_NUMBER_NEGATIVE;
	if (!ss_number_is_digits(text))
		return SS_NUMBER_NONE;
	errno = 0;
	unsigned long long value = strtoull(text, NULL, 10);
	if (errno == ERANGE || value < min || value > max)
		return SS_NUMBER_RANGE;
	*ret = value;
	return SS_NUMBER_OK;
}
