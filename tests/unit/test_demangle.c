#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <stdio.h>

#include "base/cleanup.h"
#include "symbolize/names.h"

static char *demangle(const char *name)
{
	size_t budget = SS_DEMANGLE_BUDGET;

	return ss_name_demangle(name, &budget);
}

TEST(test_languages)
{
	static const char *const pairs[][2] = {
		{ "_ZN3foo3barEi", "foo::bar(int)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back(int&&)" },
		{ "_ZZ4mainENKUlvE_clEv.cold",
		  "main::{lambda()#1}::operator()() const [clone .cold]" },
		{ "_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write" },
		{ "_RNvC6_123foo3bar", "123foo::bar" },
		{ "_D3foo3barFiZv", "foo.bar(int)" },
		{ "_Dmain", "D main" },
		/* OCaml 4.13, and 5.1 */
		{ "camlStdlib__List__iter_507", "Stdlib.List.iter" },
		{ "camlStdlib__List.iter_507", "Stdlib.List.iter" },
		{ "camlStdlib__$40_185", "Stdlib.@" },
		{ "camlA__fun_198", "A.fun_198" },
		{ "camlA__entry", "A.entry" },
		{ "camlDune__exe__Main__run_12", "Main.run" },
		{ "camlCamlinternalFormat__make_printf_inner_2481",
		  "CamlinternalFormat.make_printf_inner" },
		/* Free Pascal 3.2 */
		{ "P$A_$$_INNER$LONGINT", "A.INNER" },
		{ "P$PROGNAME$_$TOUTER_$__$$_F$LONGINT$ANSISTRING$$TOUTER",
		  "PROGNAME.TOUTER.F" },
		{ "P$PROGNAME$_$TOUTER_$_TIN_$__$$_M$array_of_ANSISTRING",
		  "PROGNAME.TOUTER.TIN.M" },
		{ "P$PROGNAME$_$TOUTER_$_F$LONGINT$ANSISTRING$$TOUTER_$$_NESTED$LONGINT",
		  "PROGNAME.TOUTER.F.NESTED" },
		{ "P$PROGNAME_$$_$plus$TOUTER$LONGINT$$TOUTER", "PROGNAME.plus" },
		{ "SYSTEM_$$_init$", "SYSTEM.init" },
		{ "SYSUTILS$_$TSTRINGHELPER_$__$$_SPLIT$array_of_CHAR$CHAR$$TSTRINGARRAY",
		  "SYSUTILS.TSTRINGHELPER.SPLIT" },
		{ "U_$SYSTEM_$$_HEAP_LOCK_USE", "SYSTEM.HEAP_LOCK_USE" },
		/* GHC 9.0 */
		{ "base_GHCziList_map_info", "GHC.List.map" },
		{ "base_GHCziBase_zpzp_info", "GHC.Base.++" },
		{ "base_GHCziBase_CZCMonad_con_info", "GHC.Base.C:Monad" },
		{ "ghczmprim_GHCziTuple_Z2T_con_info", "GHC.Tuple.(,)" },
		{ "containerszm0zi6zi4zi1_DataziMapziInternal_Bin_con_info",
		  "Data.Map.Internal.Bin" },
		{ "base_GHCziBase_zdfFunctorIO1_info", "GHC.Base.$fFunctorIO1" },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(pairs); i++) {
		_cleanup_free_ char *name = demangle(pairs[i][0]);
		assert_non_null(name);
		assert_string_equal(name, pairs[i][1]);
	}
}

TEST(test_plain_names)
{
	static const char *const names[] = {
		"",
		"main",
		"_Zap",
		"_Done",
		"_R",
		"_Z",
		"poll@@GLIBC_2.2.5",
		"_",
		"Z1fv",
		"caml_alloc_small",
		"caml_main",
		"camlA",
		"camlA__1",
		"camlA__code_begin",
		"RTTI_$SYSTEM_$$_PCHAR",
		"VMT_$P$PROGNAME$_$TOUTER_$__$$_TIN",
		"_$$_",
		"A_$$_",
		"Main_main_info",
		"SSL_get_info",
		"stg_ap_v_info",
		"base_GHCziBase_zX_info",
		"base_GHCziBase_z_info",
		"base_GHCziBase_Z9999T_info",
		"base_GHCziBase_Z",
		"g_type__foo",
		"_ada_hello",
		"$",
		"z",
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++)
		assert_null(demangle(names[i]));
}

/* Names that C may have, too */
TEST(test_compilers)
{
	static const struct {
		enum ss_name_compiler compiler;
		const char *name;
		const char *expected;
	} cases[] = {
		{ SS_COMPILER_GHC, "Main_main_info", "Main.main" },
		{ SS_COMPILER_GHC, "Main_zdwgo_info", "Main.$wgo" },
		{ SS_COMPILER_GHC, "Main_go_s1Fk_info", "Main.go" },
		{ SS_COMPILER_GHC, "stg_ap_v_info", NULL },
		{ SS_COMPILER_GHC, "main", NULL },
		{ SS_COMPILER_GNAT, "_ada_hello", "hello" },
		{ SS_COMPILER_GNAT, "hello__pkg__proc.4", "hello.pkg.proc" },
		{ SS_COMPILER_GNAT, "hello__workerTKB.1", "hello.worker" },
		{ SS_COMPILER_GNAT, "ada__text_io__put_line__2", "ada.text_io.put_line" },
		{ SS_COMPILER_GNAT, "vectors__Oadd", "vectors.\"+\"" },
		{ SS_COMPILER_GNAT, "hello___finalizer.5", NULL },
		{ SS_COMPILER_GNAT, "__gnat_raise", NULL },
		{ SS_COMPILER_GNAT, "main", NULL },
		{ SS_COMPILER_GNAT, "", NULL },
		{ SS_COMPILER_OTHER, "hello__pkg__proc", NULL },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		size_t budget = SS_DEMANGLE_BUDGET;
		_cleanup_free_ char *name =
			ss_name_demangle_of(cases[i].compiler, cases[i].name, &budget);
		if (!cases[i].expected)
			assert_null(name);
		else
			assert_string_equal(name, cases[i].expected);
	}
}

TEST(test_versions)
{
	static const char *const pairs[][2] = {
		{ "poll@@GLIBC_2.2.5", "poll" },
		{ "poll@GLIBC_2.2.5", "poll" },
		{ "_Znwm@GLIBCXX_3.4", "_Znwm" },
		{ "poll", "poll" },
		{ "", "" },
		{ "@@GLIBC_2.2.5", "@@GLIBC_2.2.5" },
		{ "poll@@", "poll@@" },
		{ "load /srv/node_modules/@babel/core.js:1",
		  "load /srv/node_modules/@babel/core.js:1" },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(pairs); i++)
		assert_int_equal(ss_name_plain_size(pairs[i][0]), strlen(pairs[i][1]));
}

/* pair<S_, S_> again and again: each turn doubles the name. */
static void make_bomb(char *mangled, int turns)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *at = mangled + sprintf(mangled, "_Z1f4pairIiiE");

	for (int i = 0; i < turns; i++)
		at += sprintf(at, "S_IS%c_S%c_E", digits[i], digits[i]);
}

TEST(test_exponential_name)
{
	char mangled[1024];

	make_bomb(mangled, 10);
	_cleanup_free_ char *name = demangle(mangled);
	assert_non_null(name);
	assert_true(strlen(name) > 10000);
	make_bomb(mangled, 36);
	assert_null(demangle(mangled));
	/* Whatever becomes of these: soon, and within bounds. */
	free(demangle("_RINvC1a1fTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTB_B_EB_B_EB_B_EE"));
	free(demangle("_D1f1gFHQcQcHQeQeHQgQgHQiQiHQkQkHQmQmHQoQoHQqQqZv"));
}

/* Names of more than 1,024 bytes, as long lists of template arguments give them; those
   that would take more stack than there is stay as they are. */
TEST(test_long_names)
{
	enum { COUNT = 900 };
	_cleanup_free_ char *mangled = malloc(COUNT * 20);

	assert_non_null(mangled);
	char *at = mangled + sprintf(mangled, "_Z1fIJ");
	for (int i = 0; i < COUNT; i++)
		at += sprintf(at, "12a_class_%04d", i % 1000);
	strcpy(at, "EEvv");
	_cleanup_free_ char *name = demangle(mangled);
	assert_non_null(name);
	assert_true(strlen(mangled) > 10000 && strlen(name) > 10000);
	assert_memory_equal(name, "void f<a_class_000", 18);
	assert_string_equal(name + strlen(name) - 3, ">()");
}

static void *demangle_long_name(void *mangled)
{
	return demangle(mangled);
}

TEST(test_long_name_on_a_small_stack)
{
	enum { COUNT = 900, STACK = 256 << 10 };
	_cleanup_free_ char *mangled = malloc(COUNT * 20);
	pthread_attr_t attr;
	pthread_t thread;
	void *name = NULL;

	assert_non_null(mangled);
	char *at = mangled + sprintf(mangled, "_Z1f");
	for (int i = 0; i < COUNT; i++)
		at += sprintf(at, "12a_class_%04d", i % 1000);
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
	assert_int_equal(pthread_create(&thread, &attr, demangle_long_name, mangled), 0);
	assert_int_equal(pthread_join(thread, &name), 0);
	assert_int_equal(pthread_attr_destroy(&attr), 0);
	assert_null(name);
}

TEST(test_budget)
{
	char mangled[1024];
	size_t budget = SS_DEMANGLE_BUDGET;

	make_bomb(mangled, 36);
	for (int i = 0; i < 100; i++)
		assert_null(ss_name_demangle(mangled, &budget));
	assert_true(budget < 1000);
	budget = 0;
	assert_null(ss_name_demangle("_Z1fv", &budget));
	assert_null(ss_name_demangle("_Dmain", &budget));
}

TEST(test_deep_and_long_names)
{
	static const char letters[] = "PKRON";
	enum { SIZE = 200000 };
	_cleanup_free_ char *mangled = malloc(SIZE + 1);

	assert_non_null(mangled);
	for (size_t i = 0; i < strlen(letters); i++) {
		memset(mangled, letters[i], SIZE);
		mangled[SIZE] = '\0';
		memcpy(mangled, "_Z1f", 4);
		assert_null(demangle(mangled));
		mangled[60000] = '\0';
		free(demangle(mangled));
		memcpy(mangled, "_R", 2);
		free(demangle(mangled));
		memcpy(mangled, "_D1f", 4);
		free(demangle(mangled));
		mangled[4000] = '\0';
		free(demangle(mangled));
	}
}
