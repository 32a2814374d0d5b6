#include "cli/escaped_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "report/escape.h"

/* LOOKAHEAD: the size of the longest character or sequence. */
enum { CHUNK = 64 << 10, LOOKAHEAD = 16 };

/* Counts leading bytes that are printable ASCII or newlines: the common case. */
static size_t plain_size(const char *text)
{
	const char *at = text;

	while ((*at >= 0x20 && *at < 0x7f) || *at == '\n')
		at++;
	return (size_t)(at - text);
}

/* ESC [ NUMBERS m changes colours and nothing else (ECMA-48, SGR). */
static size_t color_size(const char *text)
{
	if (text[0] != '\033' || text[1] != '[')
		return 0;
	size_t digits = strspn(text + 2, "0123456789;");
	return text[2 + digits] == 'm' && digits + 3 <= LOOKAHEAD ? digits + 3 : 0;
}

/* Writes one character or one sequence. Returns its size. */
static size_t write_one(const char *text, bool color, FILE *out)
{
	size_t size = *text == '\t' ? 1 : ss_escape_safe_size(text);

	if (!size && color)
		size = color_size(text);
	if (size)
		(void)fwrite_unlocked(text, 1, size,
				      out); /* the caller checks ferror() */
	else
		ss_escape_write_hex(text, 1, out);
	return size ? size : 1;
}

/* Writes text until fewer than keep bytes are left. Returns the number of bytes consumed.
   text[size] is NUL. */
static size_t write_part(const char *text, size_t size, size_t keep, bool color,
			 FILE *out)
{
	size_t at = 0;

	while (at + keep < size) {
		size_t plain = plain_size(text + at);
		(void)fwrite_unlocked(text + at, 1, plain, out); /* as above */
		at += plain;
		if (at + keep < size)
			at += write_one(text + at, color, out);
	}
	return at;
}

struct ss_error *ss_escaped_copy(int fd, bool color, FILE *out)
{
	_cleanup_free_ char *text = malloc(CHUNK + 1);
	uint64_t offset = 0;
	size_t left = 0; /* from the previous chunk */
	ssize_t count;

	if (!text)
		return ss_error_no_memory();
	do {
		count = ss_io_pread(fd, text + left, CHUNK - left, offset);
		if (count < 0)
			return ss_error_new_errno((int)-count, "cannot read the result");
		size_t size = left + (size_t)count;
		text[size] = '\0';
		offset += (uint64_t)count;
		size_t done =
			write_part(text, size, count > 0 ? LOOKAHEAD : 0, color, out);
		left = size - done;
		memmove(text, text + done, left);
	} while (count > 0);
	return NULL;
}

struct ss_error *ss_plain_copy(int fd, FILE *out)
{
	_cleanup_free_ char *bytes = malloc(CHUNK);
	uint64_t offset = 0;
	ssize_t count;

	if (!bytes)
		return ss_error_no_memory();
	while ((count = ss_io_pread(fd, bytes, CHUNK, offset)) > 0) {
		(void)fwrite_unlocked(bytes, 1, (size_t)count, out); /* as above */
		offset += (uint64_t)count;
	}
	return count < 0 ? ss_error_new_errno((int)-count, "cannot read the result") :
			   NULL;
}
