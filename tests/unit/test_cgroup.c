#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/procfs.h"

static char *path_of(const char *text)
{
	const char *path = NULL;
	size_t size = 0;

	return ss_cgroup_find_path(text, strlen(text), &path, &size) ?
		       strndup(path, size) :
		       NULL;
}

TEST(test_paths)
{
	static const struct {
		const char *text;
		const char *path;
	} cases[] = {
		{ "0::/\n", "/" },
		{ "0::/a.slice/b c:d\n", "/a.slice/b c:d" },
		{ "12:freezer:/x\n1:name=systemd:/y\n0::/z", "/z" },
		{ "0::/..a/b../...\n", "/..a/b../..." },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *path = path_of(cases[i].text);
		assert_non_null(path);
		assert_string_equal(path, cases[i].path);
	}
}

TEST(test_no_paths)
{
	static const char *const texts[] = {
		"",	      "0::",
		"0::\n",      "0:",
		"0::a\n",     "0::/..\n",
		"0::/../x\n", "0::/a/../../b\n",
		"0::/a/..\n", "12:freezer:/x\n",
		"10::/x\n",   "0::..\n",
	};
	const char *path = NULL;
	size_t size = 0;

	for (size_t i = 0; i < SS_ARRAY_SIZE(texts); i++)
		assert_false(
			ss_cgroup_find_path(texts[i], strlen(texts[i]), &path, &size));
	assert_false(ss_cgroup_find_path("0::/a\0b\n", 8, &path, &size));
}

static bool is_frozen(const char *text)
{
	return ss_cgroup_is_frozen(text, strlen(text));
}

TEST(test_events)
{
	assert_true(is_frozen("populated 1\nfrozen 1\n"));
	assert_true(is_frozen("frozen 1"));
	assert_false(is_frozen("populated 1\nfrozen 0\n"));
	assert_false(is_frozen("populated 1\nfrozen 10\n"));
	assert_false(is_frozen("unfrozen 1\n"));
	assert_false(is_frozen("frozen"));
	assert_false(is_frozen(""));
}

TEST(test_threads)
{
	static const char text[] = "12\n4711\n-5\n471100000000000000000000\n8";

	assert_true(ss_cgroup_has_thread(text, strlen(text), 12));
	assert_true(ss_cgroup_has_thread(text, strlen(text), 4711));
	assert_true(ss_cgroup_has_thread(text, strlen(text), 8));
	assert_false(ss_cgroup_has_thread(text, strlen(text), 471));
	assert_false(ss_cgroup_has_thread(text, strlen(text), 5));
	assert_false(ss_cgroup_has_thread(text, strlen(text), 0));
	assert_false(ss_cgroup_has_thread("", 0, 0));
}

static bool is_below(const char *text, const char *path)
{
	return ss_cgroup_is_below(text, strlen(text), path);
}

TEST(test_below)
{
	static const char text[] = "12:freezer:/x\n1:name=systemd:/a.slice/b:c\n0::/z\n";

	assert_true(is_below(text, "/a.slice"));
	assert_true(is_below(text, "/a.slice/"));
	assert_true(is_below(text, "/a.slice/b:c"));
	assert_true(is_below(text, "/z"));
	assert_true(is_below(text, "/"));
	assert_false(is_below(text, "/a"));
	assert_false(is_below(text, "/a.slice/b"));
	assert_false(is_below(text, "/z/y"));
	assert_false(is_below("0::/../a\n0::\n0:\n", "/"));
	assert_false(is_below("", "/"));
}
