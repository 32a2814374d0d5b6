#include "report/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

/* Control characters, and invisible ones that hide or reorder other characters. */
static bool unsafe(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x2069) ||
	       c == 0xfeff;
}

static bool plain(const unsigned char *text)
{
	while (*text >= 0x20 && *text < 0x7f && *text != '\\')
		text++;
	return *text == '\0';
}

static void write_hex(const unsigned char *bytes, size_t size, FILE *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		const char text[] = { '\\', 'x', digits[bytes[i] >> 4],
				      digits[bytes[i] & 15], '\0' };
		(void)fputs_unlocked(text, out);
	}
}

static const char *substitute(const struct ss_substitution *substitution, char c)
{
	const char *found = substitution ? strchr(substitution->from, c) : NULL;

	return found ? substitution->to + (found - substitution->from) : NULL;
}

void ss_escape_write(const char *text, const struct ss_substitution *substitution,
		     FILE *out)
{
	const unsigned char *at = (const unsigned char *)text;

	if (!substitution && plain(at)) {
		(void)fputs_unlocked(text, out);
		return;
	}
	while (*at) {
		uint32_t c = 0;
		size_t size = ss_utf8_decode((const char *)at, &c);
		const char *other = substitute(substitution, (char)*at);
		if (other)
			(void)fputc_unlocked(*other, out);
		else if (*at == '\\')
			(void)fputs_unlocked("\\\\", out);
		else if (size == 0 || unsafe(c))
			write_hex(at, size ? size : 1, out);
		else
			(void)fwrite_unlocked(at, 1, size, out);
		at += size ? size : 1;
	}
}

void ss_escape_write_owned(char *text, const struct ss_substitution *substitution,
			   FILE *out)
{
	_cleanup_free_ char *owned = text;

	ss_escape_write(owned ? owned : "?", substitution, out);
}

size_t ss_escape_safe_size(const char *text)
{
	uint32_t c = 0;
	size_t size = ss_utf8_decode(text, &c);

	return size && !unsafe(c) ? size : 0;
}

void ss_escape_write_hex(const char *bytes, size_t size, FILE *out)
{
	write_hex((const unsigned char *)bytes, size, out);
}

bool ss_escape_is_valid(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	uint32_t c = 0;
	size_t size = 0;

	for (; *at; at += size) {
		size = ss_utf8_decode((const char *)at, &c);
		if (size == 0)
			return false;
	}
	return true;
}

char *ss_escape_invalid(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	char *copy = NULL;
	size_t capacity = 0;
	FILE *out = open_memstream(&copy, &capacity);
	uint32_t c = 0;

	if (!out)
		return NULL;
	while (*at) {
		size_t size = ss_utf8_decode((const char *)at, &c);
		if (size == 0)
			write_hex(at, 1, out);
		else
			(void)fwrite_unlocked(at, 1, size, out);
		at += size ? size : 1;
	}
	if (fclose(out) == 0)
		return copy;
	free(copy);
	return NULL;
}

size_t ss_escape_cut(const char *text, size_t max)
{
	size_t size = strnlen(text, max + 1);

	if (size <= max)
		return size;
	size = max;
	while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
		size--;
	return size;
}
