#include "report/jsontext.h"

#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "view/escape.h"

static void write_plain(const char *text, FILE *out)
{
	(void)fputc_unlocked('"', out);
	(void)fputs_unlocked(text,
			     out); /* ferror() is asked at the end, here and below */
	(void)fputc_unlocked('"', out);
}

static int write_bytes(const char *bytes, size_t size, void *out)
{
	/* DEL is left as it is by Jansson, and controls terminals. */
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == 0x7f)
			(void)fputs_unlocked("\\u007f", out);
		else
			(void)fputc_unlocked(bytes[i], out);
	}
	return 0;
}

static void write_escaped(const char *text, FILE *out)
{
	_cleanup_free_ char *valid = ss_escape_invalid(text);
	json_t *value = valid ? json_string_nocheck(valid) : NULL;

	/* No parser accepts the word: better than a wrong name. */
	if (!value || json_dump_callback(value, write_bytes, out,
					 JSON_ENSURE_ASCII | JSON_ENCODE_ANY) != 0)
		(void)fputs_unlocked("out-of-memory", out);
	json_decref(value);
}

void ss_json_write_text(const char *text, FILE *out)
{
	const char *at = text;

	if (!text) {
		(void)fputs_unlocked("null", out);
		return;
	}
	while (*at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\')
		at++;
	if (*at)
		write_escaped(text, out);
	else
		write_plain(text, out);
}

void ss_json_write_member(const char *key, const char *text, FILE *out)
{
	(void)fprintf(out, "\"%s\":", key);
	ss_json_write_text(text, out);
}
