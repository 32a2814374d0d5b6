#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/package.h"

static char directory[] = "/tmp/stacksnap-package-XXXXXX";

static const char *const lists[][2] = {
	{ "libc6:amd64.list", "/.\n/lib\n/lib/x86_64-linux-gnu/libc.so.6\n" },
	{ "mariadb-server-core.list",
	  "/.\n/usr\n/usr/sbin/mariadbd\n/usr/sbin/mysqld\n" },
	{ "openjdk.list", "/.\n/opt/usr/share/shop/shop\n/usr/lib/jvm/17/lib/libjvm.so\n/"
			  "opt/other/libjvm.so" },
	{ "libjvm-decoy.list", "/usr/lib/jvm/17/lib/libjvm.so.debug\n" },
	{ "libjvm.conffiles", "/usr/lib/jvm/17/lib/libjvm.so\n" },
	{ "empty.list", "" },
};

static void path_of(size_t index, char path[200])
{
	(void)snprintf(path, 200, "%s/%s", directory, lists[index][0]);
}

static int make_database(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	for (size_t i = 0; i < SS_ARRAY_SIZE(lists); i++) {
		char path[200];
		path_of(i, path);
		FILE *file = fopen(path, "w");
		if (!file || fputs(lists[i][1], file) < 0 || fclose(file) != 0)
			return -1;
	}
	return 0;
}

static int remove_database(void **state)
{
	(void)state;
	for (size_t i = 0; i < SS_ARRAY_SIZE(lists); i++) {
		char path[200];
		path_of(i, path);
		(void)unlink(path);
	}
	return rmdir(directory);
}

static void assert_package(const char *path, const char *expected)
{
	struct ss_package_query query = { .path = path };

	ss_packages_find_debug(directory, &query, 1);
	_cleanup_free_ char *name = query.package;

	if (!expected) {
		assert_null(name);
		return;
	}
	assert_non_null(name);
	assert_string_equal(name, expected);
}

static void test_packages(void **state)
{
	(void)state;
	assert_package("/usr/lib/x86_64-linux-gnu/libc.so.6", "libc6-dbg");
	assert_package("/lib/x86_64-linux-gnu/libc.so.6", "libc6-dbg");
	assert_package("/usr/sbin/mariadbd", "mariadb-server-core-dbgsym");
	assert_package("/usr/lib/jvm/17/lib/libjvm.so", "openjdk-dbgsym");
}

static void test_no_package(void **state)
{
	(void)state;
	assert_package("/usr/sbin/mariadb", NULL); /* the start of another path */
	assert_package("/sbin/mysql", NULL);
	assert_package("/usr/lib/17/lib/libjvm.so", NULL); /* its end */
	assert_package("/opt/shop/shop", NULL);
	assert_package("/", NULL);
	assert_package("", NULL);
	struct ss_package_query query = { .path = "/usr/sbin/mariadbd" };
	ss_packages_find_debug("/no/such/place", &query, 1);
	assert_null(query.package);
}

static void test_several(void **state)
{
	struct ss_package_query queries[] = {
		{ .path = "/usr/share/shop/shop" }, /* of which all lists are searched */
		{ .path = "/usr/lib/jvm/17/lib/libjvm.so" },
		{ .path = "" },
		{ .path = "/usr/sbin/mariadbd" },
		{ .path = "/usr/sbin/mysqld" }, /* in the same list, not called like it */
		{ .path = "/opt/other/mysqld" },
	};
	static const char *const expected[] = {
		NULL,
		"openjdk-dbgsym",
		NULL,
		"mariadb-server-core-dbgsym",
		"mariadb-server-core-dbgsym",
		NULL,
	};

	(void)state;
	ss_packages_find_debug(directory, queries, SS_ARRAY_SIZE(queries));
	for (size_t i = 0; i < SS_ARRAY_SIZE(queries); i++) {
		_cleanup_free_ char *name = queries[i].package;
		if (!expected[i]) {
			assert_null(name);
			continue;
		}
		assert_non_null(name);
		assert_string_equal(name, expected[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packages),
		cmocka_unit_test(test_no_package),
		cmocka_unit_test(test_several),
	};

	return cmocka_run_group_tests(tests, make_database, remove_database);
}
