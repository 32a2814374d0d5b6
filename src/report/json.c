#include "report/json.h"

#include <inttypes.h>

#include "base/utf8.h"

static void begin_value(struct ss_json *json, const char *key)
{
	if (json->has_previous)
		(void)fputc_unlocked(',', json->out);
	if (json->on_new_line)
		(void)fputc_unlocked('\n', json->out);
	json->has_previous = true;
	json->on_new_line = false;
	if (!key)
		return;
	(void)fputc_unlocked('"', json->out);
	(void)fputs_unlocked(key, json->out);
	(void)fputs_unlocked("\":", json->out);
}

void ss_json_open(struct ss_json *json, const char *key, char bracket)
{
	begin_value(json, key);
	(void)fputc_unlocked(bracket, json->out);
	json->has_previous = false;
}

void ss_json_close(struct ss_json *json, char bracket)
{
	(void)fputc_unlocked(bracket, json->out);
	json->has_previous = true;
}

void ss_json_new_line(struct ss_json *json)
{
	json->on_new_line = true;
}

static void write_utf16(uint32_t c, FILE *out)
{
	if (c >= 0x10000) { /* a pair of surrogates, RFC 8259 section 7 */
		(void)fprintf(out, "\\u%04" PRIx32, 0xd800 + ((c - 0x10000) >> 10));
		c = 0xdc00 + ((c - 0x10000) & 0x3ff);
	}
	(void)fprintf(out, "\\u%04" PRIx32, c);
}

static const char *short_escape(char c)
{
	static const char *const escapes[] = {
		['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
		['\n'] = "\\n", ['\r'] = "\\r",	 ['\t'] = "\\t",
	};
	unsigned char index = (unsigned char)c;

	return index < sizeof(escapes) / sizeof(*escapes) ? escapes[index] : NULL;
}

/* Writes the character at text and returns its size. */
static size_t write_special(const char *text, FILE *out)
{
	const char *escape = short_escape(*text);
	uint32_t c = 0;
	size_t size = ss_utf8_decode(text, &c);

	if (escape)
		(void)fputs_unlocked(escape, out);
	else if (size)
		write_utf16(c, out);
	else
		(void)fprintf(out, "\\\\x%02x", (unsigned char)*text);
	return size ? size : 1;
}

static bool is_plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void ss_json_text(struct ss_json *json, const char *key, const char *text)
{
	begin_value(json, key);
	if (!text) {
		(void)fputs_unlocked("null", json->out);
		return;
	}
	(void)fputc_unlocked('"', json->out);
	while (*text) {
		size_t plain = 0;
		while (is_plain(text[plain]))
			plain++;
		(void)fwrite_unlocked(text, 1, plain, json->out);
		text += plain;
		if (*text)
			text += write_special(text, json->out);
	}
	(void)fputc_unlocked('"', json->out);
}

void ss_json_signed(struct ss_json *json, const char *key, int64_t value)
{
	begin_value(json, key);
	(void)fprintf(json->out, "%" PRId64, value);
}

void ss_json_unsigned(struct ss_json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	(void)fprintf(json->out, "%" PRIu64, value);
}

void ss_json_bool(struct ss_json *json, const char *key, bool value)
{
	begin_value(json, key);
	(void)fputs_unlocked(value ? "true" : "false", json->out);
}

void ss_json_null(struct ss_json *json, const char *key)
{
	ss_json_text(json, key, NULL);
}

void ss_json_hex(struct ss_json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	(void)fprintf(json->out, "\"0x%" PRIx64 "\"", value);
}

void ss_json_signed_if(struct ss_json *json, const char *key, bool known, int64_t value)
{
	if (known)
		ss_json_signed(json, key, value);
	else
		ss_json_null(json, key);
}

void ss_json_hex_if(struct ss_json *json, const char *key, bool known, uint64_t value)
{
	if (known)
		ss_json_hex(json, key, value);
	else
		ss_json_null(json, key);
}
