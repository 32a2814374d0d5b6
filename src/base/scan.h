/*
 * Scans numbers in untrusted text that need not be NUL-terminated. The cursor never
 * passes the end.
 */
#ifndef SS_BASE_SCAN_H
#define SS_BASE_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

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

/* Scans an integer of at least one digit in base 10 or 16, below 2^64. */
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

/* The bytes of an even number of hexadecimal digits, at most capacity bytes. */
static inline bool ss_scan_bytes(const char *text, uint8_t *ret, size_t capacity,
				 size_t *ret_size)
{
	size_t size = strlen(text);

	if (size % 2 || size / 2 > capacity)
		return false;
	for (size_t i = 0; i < size / 2; i++) {
		int high = ss_scan_digit(text[2 * i]);
		int low = ss_scan_digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	*ret_size = size / 2;
	return true;
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

/* Whether text is a decimal number up to max and nothing else. */
static inline bool ss_scan_decimal(const char *text, uint64_t max, uint64_t *ret)
{
	struct ss_scan s = { .at = text, .end = text + strlen(text) };
	uint64_t value;

	if (!ss_scan_number(&s, 10, &value) || s.at < s.end || value > max)
		return false;
	*ret = value;
	return true;
}

/* Scans the next id of a list that is separated by spaces. False: there is none. */
static inline bool ss_scan_next_pid(struct ss_scan *s, pid_t *ret)
{
	uint64_t value;

	ss_scan_spaces(s);
	if (!ss_scan_number(s, 10, &value) || value == 0 || value > INT32_MAX)
		return false;
	*ret = (pid_t)value;
	return true;
}

/* The id in the name of a directory such as /proc/123; 0: the name is not a number. */
static inline pid_t ss_scan_pid(const char *name)
{
	uint64_t value;

	return ss_scan_decimal(name, INT32_MAX, &value) ? (pid_t)value : 0;
}

#endif
