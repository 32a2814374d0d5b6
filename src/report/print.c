#include "report/print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text_stream.h"
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
	struct ss_text_stream copy;
	uint32_t c = 0;

	if (!ss_text_stream_open(&copy))
		return NULL;
	while (*at) {
		size_t size = ss_utf8_decode((const char *)at, &c);
		if (size == 0)
			write_hex(at, 1, copy.out);
		else
			(void)fwrite_unlocked(at, 1, size, copy.out);
		at += size ? size : 1;
	}
	return ss_text_stream_close(&copy);
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

void ss_style_write(enum ss_style style, bool color, FILE *out)
{
	static const char *const codes[] = {
		[SS_STYLE_NONE] = "\033[0m",
		[SS_STYLE_STRONG] = "\033[1m",
		[SS_STYLE_FAINT] = "\033[2m",
		[SS_STYLE_WARN] = "\033[33m",
	};

	if (color)
		(void)fputs_unlocked(codes[style], out);
}

void ss_style_print(enum ss_style style, bool color, FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	ss_style_write(style, color, out);
	(void)vfprintf(out, format, args);
	ss_style_write(SS_STYLE_NONE, color, out);
	va_end(args);
}

struct ss_quantity ss_quantity_count(uint64_t count)
{
	struct ss_quantity ret = {};

	if (count >= 1000)
		(void)snprintf(ret.text, sizeof(ret.text), "%.32s,%03" PRIu64,
			       ss_quantity_count(count / 1000).text, count % 1000);
	else
		(void)snprintf(ret.text, sizeof(ret.text), "%" PRIu64, count);
	return ret;
}

struct ss_quantity ss_quantity_things(uint64_t count, const char *thing)
{
	struct ss_quantity ret = {};
	size_t size = strlen(thing);
	bool hisses = size > 1 &&
		      (thing[size - 1] == 's' || strcmp(thing + size - 2, "ch") == 0);
	const char *plural = hisses ? "es" : "s";

	(void)snprintf(ret.text, sizeof(ret.text), "%.32s %.28s%s",
		       ss_quantity_count(count).text, thing, count == 1 ? "" : plural);
	return ret;
}

struct ss_quantity ss_quantity_time(uint64_t time_ns)
{
	struct ss_quantity ret = {};
	double ms = (double)time_ns / 1e6;

	if (ms >= 1000)
		(void)snprintf(ret.text, sizeof(ret.text), "%.2f s", ms / 1000);
	else
		(void)snprintf(ret.text, sizeof(ret.text), "%.*f ms", ms < 0.1 ? 3 : 2,
			       ms);
	return ret;
}

struct ss_quantity ss_quantity_date(uint64_t time_ns)
{
	enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };
	struct ss_quantity ret = {};
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	struct tm tm = {};
	char text[32] = "";

	if (localtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%F %T", &tm) > 0)
		(void)snprintf(ret.text, sizeof(ret.text), "%s.%03u", text,
			       (unsigned)(time_ns % NS_PER_S / NS_PER_MS));
	return ret;
}

struct ss_quantity ss_quantity_size(uint64_t size)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB" };
	struct ss_quantity ret = {};
	double value = (double)size;
	size_t unit = 0;

	while (value >= 1024 && unit < 3) {
		value /= 1024;
		unit++;
	}
	double rest = value - (double)(uint64_t)value;
	(void)snprintf(ret.text, sizeof(ret.text), "%.*f %s", rest > 0.05 ? 1 : 0, value,
		       units[unit]);
	return ret;
}
