/*
 * Scanning of numbers in text that is not NUL-terminated: a cursor that never
 * passes its end. For the parsers of this room only.
 */
#ifndef SS_PROC_SCAN_H
#define SS_PROC_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct ss_scan {
	const char *at;
	const char *end;
};

static inline int ss_scan_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* At least one digit of base (10 or 16), value below 2^64. */
static inline bool ss_scan_number(struct ss_scan *s, unsigned base, uint64_t *ret)
{
	const char *first = s->at;
	uint64_t value = 0;

	for (; s->at < s->end; s->at++) {
		int digit = ss_scan_digit(*s->at);
		if (digit < 0 || (unsigned)digit >= base)
			break;
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	*ret = value;
	return s->at > first;
}

static inline bool ss_scan_char(struct ss_scan *s, char c)
{
	if (s->at >= s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static inline void ss_scan_spaces(struct ss_scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
		s->at++;
}

static inline bool ss_scan_text(struct ss_scan *s, const char *text)
{
	size_t size = strlen(text);

	if ((size_t)(s->end - s->at) < size || memcmp(s->at, text, size) != 0)
		return false;
	s->at += size;
	return true;
}

#endif
