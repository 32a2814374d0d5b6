#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/cleanup.h"
#include "symbolize/demangle.h"

static void test_languages(void **state)
{
	static const char *const pairs[][2] = {
		{ "_ZN3foo3barEi", "foo::bar(int)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back(int&&)" },
		{ "_ZZ4mainENKUlvE_clEv.cold",
		  "main::{lambda()#1}::operator()() const [clone .cold]" },
		{ "_Znwm@GLIBCXX_3.4", "operator new(unsigned long)@GLIBCXX_3.4" },
		{ "_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write" },
		{ "_RNvC6_123foo3bar", "123foo::bar" },
		{ "_D3foo3barFiZv", "foo.bar(int)" },
		{ "_Dmain", "D main" },
	};

	(void)state;
	for (size_t i = 0; i < SS_ARRAY_SIZE(pairs); i++) {
		_cleanup_free_ char *name = ss_name_demangle(pairs[i][0]);
		assert_non_null(name);
		assert_string_equal(name, pairs[i][1]);
	}
}

static void test_plain_names(void **state)
{
	static const char *const names[] = {
		"",	 "main", "_Zap", "_Done", "_R", "_Z", "poll@@GLIBC_2.2.5",
		"_Z@@x", "_",	 "Z1fv",
	};

	(void)state;
	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++)
		assert_null(ss_name_demangle(names[i]));
}

/* pair<S_, S_> again and again: each turn doubles the name. */
static void test_name_that_explodes(void **state)
{
	char mangled[1024] = "_Z1fSt4pairIiiE";
	size_t at = strlen(mangled);

	(void)state;
	at += (size_t)sprintf(mangled + at, "S_IS_S_E");
	for (int i = 0; i < 34; i++)
		at += (size_t)sprintf(mangled + at, "St4pairIS%c_S%c_E",
				      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i],
				      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
	/* Whatever becomes of it: soon, and within bounds. */
	free(ss_name_demangle(mangled));
	free(ss_name_demangle(
		"_RINvC1a1fTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTB_B_EB_B_EB_B_EE"));
	free(ss_name_demangle("_D1f1gFHQcQcHQeQeHQgQgHQiQiHQkQkHQmQmHQoQoHQqQqZv"));
}

static void test_deep_and_long_names(void **state)
{
	static const char letters[] = "PKRON";
	enum { SIZE = 200000 };
	_cleanup_free_ char *mangled = malloc(SIZE + 1);

	(void)state;
	assert_non_null(mangled);
	for (size_t i = 0; i < strlen(letters); i++) {
		memset(mangled, letters[i], SIZE);
		mangled[SIZE] = '\0';
		memcpy(mangled, "_Z1f", 4);
		assert_null(ss_name_demangle(mangled));
		mangled[60000] = '\0';
		free(ss_name_demangle(mangled));
		memcpy(mangled, "_R", 2);
		free(ss_name_demangle(mangled));
		memcpy(mangled, "_D1f", 4);
		free(ss_name_demangle(mangled));
		mangled[4000] = '\0';
		free(ss_name_demangle(mangled));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_languages),
		cmocka_unit_test(test_plain_names),
		cmocka_unit_test(test_name_that_explodes),
		cmocka_unit_test(test_deep_and_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
