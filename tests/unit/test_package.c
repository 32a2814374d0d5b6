#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "report/advice.h"

static char directory[] = "/tmp/stacksnap-package-XXXXXX";

/* Files of the database: their names, and what is in them. */
static const char *const files[][2] = {
	{ "info/libc6:amd64.list", "/.\n/lib\n/lib/x86_64-linux-gnu/libc.so.6\n" },
	{ "info/mariadb-server-core.list",
	  "/.\n/usr\n/usr/sbin/mariadbd\n/usr/sbin/mysqld\n" },
	{ "info/openjdk.list",
	  "/.\n/opt/usr/share/shop/shop\n/usr/lib/jvm/17/lib/libjvm.so\n/"
	  "opt/other/libjvm.so" },
	{ "info/libjvm-decoy.list", "/usr/lib/jvm/17/lib/libjvm.so.debug\n" },
	{ "info/libjvm-unknown.list", "/usr/lib/jvm/17/lib/libjvm.so\n" },
	{ "info/empty.list", "" },
};

/* Entries as in the status file; the first one is at its beginning. */
static const char *const entries[] = {
	"libc6\nStatus: install ok installed\nArchitecture: i386\nVersion: 2.36\n",
	"libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.36\n",
	"libjvm-decoy\nStatus: install ok installed\nDescription: a\n Package: mysqld\n",
	"removed\nStatus: deinstall ok config-files\nArchitecture: all\n",
	"empty\nStatus: install ok installed\nArchitecture: all\n",
	"mariadb-server-core\nStatus: install ok installed\nArchitecture: amd64\n",
	"openjdk", /* at the end */
};

/* Text of package descriptions, so that the status file is read in parts. */
static void add_text(FILE *file, size_t size)
{
	for (size_t i = 0; i < size; i += 10)
		(void)fputs(" filler\n .", file);
	(void)fputs("\n", file);
}

static bool write_status(FILE *file)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(entries); i++) {
		bool is_last = i == SS_ARRAY_SIZE(entries) - 1;
		(void)fprintf(file, "%sPackage: %s", i ? "\n" : "", entries[i]);
		/* The third one is longer than what is read at a time. */
		if (!is_last)
			add_text(file, i == 2 ? 200000 : 12345 * i);
	}
	return !ferror(file);
}

static void path_of(const char *name, char path[200])
{
	(void)snprintf(path, 200, "%s/%s", directory, name);
}

static FILE *create(const char *name)
{
	char path[200];

	path_of(name, path);
	return fopen(path, "w");
}

static int make_database(void **state)
{
	char path[200];

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	path_of("info", path);
	if (mkdir(path, 0700) != 0)
		return -1;
	for (size_t i = 0; i < SS_ARRAY_SIZE(files); i++) {
		FILE *file = create(files[i][0]);
		if (!file || fputs(files[i][1], file) < 0 || fclose(file) != 0)
			return -1;
	}
	FILE *status = create("status");
	return status && write_status(status) && fclose(status) == 0 ? 0 : -1;
}

static int remove_database(void **state)
{
	char path[200];

	(void)state;
	for (size_t i = 0; i < SS_ARRAY_SIZE(files); i++) {
		path_of(files[i][0], path);
		(void)unlink(path);
	}
	path_of("info", path);
	(void)rmdir(path);
	path_of("status", path);
	(void)unlink(path);
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

TEST(test_packages)
{
	assert_package("/usr/lib/x86_64-linux-gnu/libc.so.6", "libc6-dbg");
	assert_package("/lib/x86_64-linux-gnu/libc.so.6", "libc6-dbg");
	assert_package("/usr/sbin/mariadbd", "mariadb-server-core-dbgsym");
	assert_package("/usr/lib/jvm/17/lib/libjvm.so", "openjdk-dbgsym");
}

TEST(test_no_package)
{
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

TEST(test_several)
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

TEST_GROUP(make_database, remove_database)
