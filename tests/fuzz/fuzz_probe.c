/* What trace makes of names and machine code. The first byte selects: 'n', a pattern and a name, each a
   line; otherwise the code of a function. */
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "trace/resolve.h"

enum { START = 0x1000, TEXT_MAX = 4096 };

static void match(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, SS_MIN(size, (size_t)TEXT_MAX));
	char *name = text ? strchr(text, '\n') : NULL;
	struct ss_pattern pattern = {};

	if (name) {
		*name++ = '\0';
		(void)ss_pattern_match(text, name);
		(void)ss_pattern_may_match(text, name);
		(void)ss_pattern_is_module(text, name);
	}
	if (text && ss_pattern_parse(text, &pattern)) {
		FUZZ_REQUIRE(pattern.kind != SS_PATTERN_OFFSET || pattern.scope);
		fuzz_touch(pattern.function ? pattern.function : "",
			   pattern.function ? strlen(pattern.function) : 0);
		ss_pattern_deinit(&pattern);
	}
	free(text);
}

static void decode(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size + 1);
	struct ss_code code;

	if (!bytes)
		return;
	memcpy(bytes, data, size);
	if (!ss_code_init(&code, START, bytes, size))
		return;
	for (size_t i = 0; i < code.exits.count; i++) {
		uint64_t exit = code.exits.items[i].address;
		FUZZ_REQUIRE(exit >= START && exit - START < size);
		FUZZ_REQUIRE(!code.valid || ss_code_is_boundary(&code, exit));
	}
	for (size_t i = 0; i < size && code.valid; i++) {
		uint64_t chosen = ss_code_is_boundary(&code, START + i) ?
					  ss_code_choose(&code, START + i) :
					  0;
		FUZZ_REQUIRE(chosen == 0 || ss_code_is_boundary(&code, chosen));
		FUZZ_REQUIRE(chosen == 0 || chosen >= START + i);
	}
	ss_code_deinit(&code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0 && data[0] == 'n')
		match(data + 1, size - 1);
	else if (size > 0)
		decode(data + 1, size - 1);
	return 0;
}
