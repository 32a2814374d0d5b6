#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "diagnose/lock.h"
#include "diagnose/wait_table.h"

static enum ss_wait_purpose find(const struct ss_wait_table *table, const char *symbol)
{
	const struct ss_wait_entry *entry = ss_wait_table_find(table, symbol);

	return entry ? entry->purpose : SS_PURPOSE_UNKNOWN;
}

static void add(struct ss_wait_table *table, const char *text)
{
	assert_null(ss_wait_table_add(table, "test", text, strlen(text)));
}

TEST(test_built_in)
{
	static const struct {
		const char *symbol;
		enum ss_wait_purpose purpose;
	} cases[] = {
		{ "MDL_context::acquire_lock(MDL_request*, double)", SS_PURPOSE_LOCK },
		{ "MDL_context::acquire_lock", SS_PURPOSE_LOCK },
		{ "_ZN11MDL_context12acquire_lockEP11MDL_requestd", SS_PURPOSE_LOCK },
		{ "_Z9lock_waitP9que_thr_t", SS_PURPOSE_LOCK },
		{ "handler::ha_index_read_map(unsigned char*)", SS_PURPOSE_LOCK },
		{ "ssux_lock_impl<true>::rd_wait()", SS_PURPOSE_LOCK },
		{ "ProcSleep", SS_PURPOSE_LOCK },
		{ "ProcSleep.cold", SS_PURPOSE_LOCK },
		{ "take_gil.isra.0", SS_PURPOSE_LOCK },
		{ "PyThread_acquire_lock_timed@@Base", SS_PURPOSE_EVENT },
		{ "VMThread::run()", SS_PURPOSE_SERVICE },
		{ "void absl::Mutex::LockSlowLoop<int>(absl::MuHow*)", SS_PURPOSE_LOCK },
		{ "void java.util.concurrent.locks.ReentrantLock.lock()",
		  SS_PURPOSE_LOCK },
		{ "java.lang.Runnable java.util.concurrent.ThreadPoolExecutor.getTask()",
		  SS_PURPOSE_IDLE },
		{ "void java.util.concurrent.locks.LockSupport.park(java.lang.Object)",
		  SS_PURPOSE_EVENT },
		{ "ProcSleeper", SS_PURPOSE_UNKNOWN },
		{ "MDL_context::acquire_locks(int)", SS_PURPOSE_UNKNOWN },
		{ "", SS_PURPOSE_UNKNOWN },
		{ "_ZN", SS_PURPOSE_UNKNOWN },
		{ "_ZN99999999999999999999999x", SS_PURPOSE_UNKNOWN },
		{ "_ZN11MDL", SS_PURPOSE_UNKNOWN },
		{ "(anonymous namespace)", SS_PURPOSE_UNKNOWN },
	};
	struct ss_wait_table *table = NULL;

	assert_null(ss_wait_table_new(&table));
	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++)
		assert_int_equal(find(table, cases[i].symbol), cases[i].purpose);
	ss_wait_table_free(table);
	ss_wait_table_free(NULL);
}

TEST(test_plain_names)
{
	static const char *const pairs[][2] = {
		{ "", "" },
		{ "poll", "poll" },
		{ "poll@@GLIBC_2.2.5", "poll" },
		{ "take_gil.isra.0", "take_gil" },
		{ "part [clone .cold]", "part" },
		{ "pool::get(int, char const*)", "pool::get" },
		{ "WatcherThread::sleep() const", "WatcherThread::sleep" },
		{ "int a.b.C.acquire(a.b.C$Node, int)", "a.b.C.acquire" },
		{ "void std::call<int (*)(int), int>(int)",
		  "std::call<int (*)(int), int>" },
		{ "unsigned long foo<unsigned char>(int)", "foo<unsigned char>" },
		{ "a::operator()(int)", "a::operator()" },
		{ "bool a::operator< <int>(a const&)", "a::operator< <int>" },
		{ "std::ostream& operator<<(std::ostream&, int)", "operator<<" },
		{ "a::operator bool() const", "a::operator bool" },
		{ "my_operator(int)", "my_operator" },
		{ "(anonymous namespace)::wait(int)", "(anonymous namespace)::wait" },
		{ "void (anonymous namespace)::wait<int>()",
		  "(anonymous namespace)::wait<int>" },
		{ "net/http.(*conn).serve", "net/http.(*conn).serve" },
		{ "<T as core::Lock>::lock", "<T as core::Lock>::lock" },
		{ "JS:*read node:fs:12:3", "JS:*read" },
		{ "a (", "a" },
		{ " (", "" },
		{ ">>(", ">>" },
		{ "operator", "operator" },
		{ "operator(", "operator" },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(pairs); i++) {
		const char *name = NULL;
		size_t size = ss_wait_table_plain_name(pairs[i][0], &name);
		char plain[300];
		(void)snprintf(plain, sizeof(plain), "%.*s", (int)size, name);
		assert_string_equal(plain, pairs[i][1]);
	}
}

TEST(test_own)
{
	struct ss_wait_table *table = NULL;

	assert_null(ss_wait_table_new(&table));
	add(table, "# mine\n\n  lock\tpool::*::get*   a connection \r\nidle ProcSleep");
	assert_int_equal(find(table, "pool::db::getOne(int)"), SS_PURPOSE_LOCK);
	assert_string_equal(ss_wait_table_find(table, "pool::db::get")->words,
			    "a connection");
	assert_int_equal(find(table, "pool::get"), SS_PURPOSE_UNKNOWN);
	assert_int_equal(find(table, "ProcSleep"), SS_PURPOSE_IDLE);
	add(table, "event pool::db::getOne\nlock (anonymous namespace)::wait\n");
	assert_int_equal(find(table, "pool::db::getOne()"), SS_PURPOSE_EVENT);
	assert_int_equal(find(table, "(anonymous namespace)::wait(int)"),
			 SS_PURPOSE_UNKNOWN); /* a space ends the name */
	add(table, "lock *pool*");
	assert_int_equal(find(table, "pool::db::getOne()"), SS_PURPOSE_LOCK);
	ss_wait_table_free(table);
}

TEST(test_added)
{
	struct ss_wait_table *table = NULL;
	struct ss_wait_table *copy = NULL;
	char *text = NULL;

	assert_null(ss_wait_table_new(&table));
	assert_null(ss_wait_table_added(table, &text));
	assert_null(text);
	add(table, "#\nlock b   b b \n\nidle *a*\nevent b\n");
	assert_null(ss_wait_table_added(table, &text));
	assert_string_equal(text, "lock b b b\nidle *a*\nevent b\n");
	assert_null(ss_wait_table_new(&copy));
	add(copy, text);
	assert_int_equal(find(copy, "b"), SS_PURPOSE_EVENT);
	assert_int_equal(find(copy, "bar"), SS_PURPOSE_IDLE);
	free(text);
	ss_wait_table_free(table);
	ss_wait_table_free(copy);
}

TEST(test_refused)
{
	static const char *const texts[] = {
		"lock",	   "locks f",	      "lock *",
		"lock **", "lock *a*b*c*d*e", "lock f\nwait g"
	};
	char symbol[4096];
	char line[300] = "lock ";
	struct ss_wait_table *table = NULL;

	assert_null(ss_wait_table_new(&table));
	for (size_t i = 0; i < SS_ARRAY_SIZE(texts); i++) {
		struct ss_error *error =
			ss_wait_table_add(table, "FILE", texts[i], strlen(texts[i]));
		assert_int_equal(ss_error_code(error), SS_ERROR_INVALID);
		assert_non_null(strstr(ss_error_message(error),
				       i == 5 ? "FILE, line 2: " : "FILE, line 1: "));
		assert_non_null(ss_error_remedy(error));
		ss_error_free(error);
	}
	memset(line + 5, 'x', 257);
	struct ss_error *error = ss_wait_table_add(table, "FILE", line, strlen(line));
	assert_int_equal(ss_error_code(error), SS_ERROR_INVALID);
	ss_error_free(error);
	error = ss_wait_table_add(table, "FILE", "\0", 1);
	assert_int_equal(ss_error_code(error), SS_ERROR_INVALID);
	ss_error_free(error);
	/* A name that is too long is not searched for. */
	memset(symbol, 'a', sizeof(symbol) - 1);
	symbol[sizeof(symbol) - 1] = '\0';
	add(table, "lock a*a*a*a*b");
	assert_null(ss_wait_table_find(table, symbol));
	ss_wait_table_free(table);
}
