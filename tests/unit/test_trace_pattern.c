/*
 * Which functions a name means, and how long instructions are.
 */

#include "unit.h"

#include "arch/arch.h"
#include "base/cleanup.h"
#include "trace/resolve.h"

static const char push_back[] =
	"std::vector<int, std::allocator<int> >::push_back(int const&)";

TEST(test_match)
{
	static const struct {
		const char *pattern;
		const char *name;
		enum ss_pattern_match match;
	} cases[] = {
		{ "main", "main", SS_PATTERN_WHOLE },
		{ "main", "main2", SS_PATTERN_NO },
		{ "mai*", "main", SS_PATTERN_WHOLE },
		{ "std::vector<int>::push_back", push_back, SS_PATTERN_WHOLE },
		{ "std::vector::push_back", push_back, SS_PATTERN_WHOLE },
		{ "std::vector<int>::push_back(int const&)", push_back,
		  SS_PATTERN_WHOLE },
		{ "std::vector<int>::push_back(int&&)", push_back, SS_PATTERN_NO },
		{ "std::vector<long>::push_back", push_back, SS_PATTERN_NO },
		{ "vector<int>::push_back", push_back, SS_PATTERN_SUFFIX },
		{ "push_back", push_back, SS_PATTERN_SUFFIX },
		{ "back", push_back, SS_PATTERN_NO },
		{ "*::push_back", push_back, SS_PATTERN_WHOLE },
		{ "f", "void f<int>(int)", SS_PATTERN_WHOLE },
		{ "f<int>", "void f<int>(int)", SS_PATTERN_WHOLE },
		{ "a::f", "int a::f[abi:cxx11](int)", SS_PATTERN_WHOLE },
		{ "std::list<int>::clear",
		  "std::__cxx11::list<int, std::allocator<int> >::clear()",
		  SS_PATTERN_WHOLE },
		{ "A::operator()", "A::operator()(int) const", SS_PATTERN_WHOLE },
		{ "operator<<", "operator<<(A&, int)", SS_PATTERN_WHOLE },
		{ "(anonymous namespace)::f", "(anonymous namespace)::f(int)",
		  SS_PATTERN_WHOLE },
		{ "f", "(anonymous namespace)::f(int)", SS_PATTERN_SUFFIX },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		enum ss_pattern_match match =
			ss_pattern_match(cases[i].pattern, cases[i].name);
		if (match != cases[i].match)
			print_error("%s: %s: %d\n", cases[i].pattern, cases[i].name,
				    (int)match);
		assert_int_equal(match, cases[i].match);
	}
}

TEST(test_parse)
{
	struct ss_pattern pattern;

	assert_true(ss_pattern_parse("libc:malloc", &pattern));
	assert_int_equal(pattern.kind, SS_PATTERN_FUNCTION);
	assert_string_equal(pattern.scope, "libc");
	assert_string_equal(pattern.function, "malloc");
	ss_pattern_deinit(&pattern);
	assert_true(ss_pattern_parse("a.c:12", &pattern));
	assert_int_equal(pattern.kind, SS_PATTERN_LINE);
	assert_int_equal(pattern.number, 12);
	ss_pattern_deinit(&pattern);
	assert_true(ss_pattern_parse("x+0x1f", &pattern));
	assert_int_equal(pattern.kind, SS_PATTERN_OFFSET);
	assert_int_equal(pattern.number, 0x1f);
	ss_pattern_deinit(&pattern);
	assert_true(ss_pattern_parse("std::f", &pattern));
	assert_null(pattern.scope);
	assert_string_equal(pattern.function, "std::f");
	ss_pattern_deinit(&pattern);
	assert_true(ss_pattern_is_module("libc", "/lib/libc.so.6"));
	assert_false(ss_pattern_is_module("libc", "/lib/libcrypto.so.3"));
}

TEST(test_instructions)
{
	static const struct {
		uint8_t code[16];
		size_t size;
		enum ss_flow flow;
	} cases[] = {
		{ { 0xc3 }, 1, SS_FLOW_RETURN },
		{ { 0xf3, 0xc3 }, 2, SS_FLOW_RETURN },
		{ { 0xc2, 8, 0 }, 3, SS_FLOW_RETURN },
		{ { 0xf3, 0x0f, 0x1e, 0xfa }, 4, SS_FLOW_NEXT },
		{ { 0x0f, 0x1f, 0x44, 0, 0 }, 5, SS_FLOW_NEXT },
		{ { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 }, 10, SS_FLOW_NEXT },
		{ { 0x66, 0xc7, 0x05, 0, 0, 0, 0, 1, 2 }, 9, SS_FLOW_NEXT },
		{ { 0xf7, 0x04, 0x24, 1, 2, 3, 4 }, 7, SS_FLOW_NEXT },
		{ { 0xf7, 0xd8 }, 2, SS_FLOW_NEXT },
		{ { 0x0f, 0x84, 1, 0, 0, 0 }, 6, SS_FLOW_BRANCH },
		{ { 0xeb, 0xfe }, 2, SS_FLOW_JUMP },
		{ { 0xff, 0x25, 0, 0, 0, 0 }, 6, SS_FLOW_INDIRECT },
		{ { 0xc5, 0xf8, 0x77 }, 3, SS_FLOW_NEXT },
		{ { 0xc4, 0xe3, 0x7d, 0x39, 0xc1, 1 }, 6, SS_FLOW_NEXT },
		{ { 0x62, 0xf1, 0xfe, 0x28, 0x6f, 0x46, 1 }, 7, SS_FLOW_NEXT },
	};
	struct ss_instruction found;

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		assert_true(ss_x86_64_decode(cases[i].code, sizeof(cases[i].code), 0x1000,
					     &found));
		assert_int_equal(found.size, cases[i].size);
		assert_int_equal(found.flow, cases[i].flow);
		/* Cut off: never read beyond the end. */
		for (size_t size = 0; size < cases[i].size; size++)
			assert_false(ss_x86_64_decode(cases[i].code, size, 0, &found));
	}
	assert_true(ss_x86_64_decode(cases[10].code, 2, 0x1000, &found));
	assert_int_equal(found.target, 0x1000);
}
