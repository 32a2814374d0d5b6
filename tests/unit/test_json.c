#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "report/json.h"

static FILE *begin(struct ss_json *json, char **text, size_t *size)
{
	*json = (struct ss_json){ .out = open_memstream(text, size) };
	assert_non_null(json->out);
	return json->out;
}

static void assert_string(const char *bytes, const char *json_text, const char *value)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	struct ss_json json;
	FILE *out = begin(&json, &text, &size);

	ss_json_text(&json, NULL, bytes);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, json_text);
	json_t *parsed = json_loads(text, JSON_DECODE_ANY, NULL);
	assert_non_null(parsed);
	assert_string_equal(json_string_value(parsed), value);
	json_decref(parsed);
}

TEST(test_strings)
{
	assert_string("", "\"\"", "");
	assert_string("a/b 'c' <d>", "\"a/b 'c' <d>\"", "a/b 'c' <d>");
	assert_string("\"\\", "\"\\\"\\\\\"", "\"\\");
	assert_string("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"", "\b\f\n\r\t");
	assert_string("\001\033\177", "\"\\u0001\\u001b\\u007f\"", "\001\033\177");
	assert_string("\xc3\xb6\xe2\x80\xae", "\"\\u00f6\\u202e\"",
		      "\xc3\xb6\xe2\x80\xae");
	assert_string("\xf0\x9f\x94\x92\xf4\x8f\xbf\xbf",
		      "\"\\ud83d\\udd12\\udbff\\udfff\"",
		      "\xf0\x9f\x94\x92\xf4\x8f\xbf\xbf");
}

/* Overlong forms, surrogates, numbers that are too large, sequences that are cut. */
TEST(test_invalid_utf8)
{
	assert_string("a\xff"
		      "b",
		      "\"a\\\\xffb\"", "a\\xffb");
	assert_string("\xc0\xaf", "\"\\\\xc0\\\\xaf\"", "\\xc0\\xaf");
	assert_string("\xed\xa0\x80", "\"\\\\xed\\\\xa0\\\\x80\"", "\\xed\\xa0\\x80");
	assert_string("\xf4\x90\x80\x80", "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"",
		      "\\xf4\\x90\\x80\\x80");
	assert_string("\xe2\x80", "\"\\\\xe2\\\\x80\"", "\\xe2\\x80");
	assert_string("\x80\n", "\"\\\\x80\\n\"", "\\x80\n");
}

TEST(test_commas_brackets_and_lines)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	struct ss_json json;
	FILE *out = begin(&json, &text, &size);

	ss_json_open(&json, NULL, '{');
	ss_json_open(&json, "empty", '[');
	ss_json_close(&json, ']');
	ss_json_open(&json, "rows", '[');
	for (unsigned i = 0; i < 2; i++) {
		ss_json_new_line(&json);
		ss_json_open(&json, NULL, '{');
		ss_json_unsigned(&json, "i", i);
		ss_json_null(&json, "none");
		ss_json_close(&json, '}');
	}
	ss_json_close(&json, ']');
	ss_json_bool(&json, "yes", true);
	ss_json_bool(&json, "no", false);
	ss_json_close(&json, '}');
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "{\"empty\":[],\"rows\":[\n{\"i\":0,\"none\":null},\n"
				  "{\"i\":1,\"none\":null}],\"yes\":true,\"no\":false}");
}

TEST(test_numbers)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	struct ss_json json;
	FILE *out = begin(&json, &text, &size);

	ss_json_open(&json, NULL, '[');
	ss_json_unsigned(&json, NULL, UINT64_MAX);
	ss_json_signed(&json, NULL, INT64_MIN);
	ss_json_hex(&json, NULL, UINT64_MAX);
	ss_json_signed_if(&json, NULL, true, -1);
	ss_json_signed_if(&json, NULL, false, -1);
	ss_json_hex_if(&json, NULL, true, 0);
	ss_json_hex_if(&json, NULL, false, 1);
	ss_json_close(&json, ']');
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "[18446744073709551615,-9223372036854775808,"
				  "\"0xffffffffffffffff\",-1,null,\"0x0\",null]");
}
