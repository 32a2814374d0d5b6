#include "unit.h"

#include <stdlib.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

struct fixture {
	char path[32];
	int directory;
};

static int set_up(void **state)
{
	static struct fixture f;

	strcpy(f.path, "/tmp/new_file_XXXXXX");
	f.directory = mkdtemp(f.path) ? open(f.path, O_PATH | O_DIRECTORY) : -1;
	*state = &f;
	return f.directory < 0;
}

static unsigned count_files(const struct fixture *f)
{
	DIR *dir = ss_io_open_directory(f->directory, ".");
	unsigned count = 0;

	assert_non_null(dir);
	for (const struct dirent *item; (item = readdir(dir));)
		count += item->d_name[0] != '.';
	(void)closedir(dir);
	return count;
}

static int tear_down(void **state)
{
	const struct fixture *f = *state;

	(void)unlinkat(f->directory, "file", 0);
	(void)close(f->directory);
	return rmdir(f->path);
}

/* As if the file system had no files without a name. */
static void give_name(struct ss_new_file *file)
{
	strcpy(file->temporary, "file.00000000.part");
	(void)close(file->fd);
	file->fd =
		openat(file->directory, file->temporary, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(file->fd >= 0);
}

static void create(const struct fixture *f, bool named, const char *bytes,
		   struct ss_new_file *ret)
{
	assert_int_equal(ss_new_file_create(f->directory, "file", ret), 0);
	assert_string_equal(ret->temporary, "");
	if (named)
		give_name(ret);
	assert_int_equal(ss_io_write_all(ret->fd, bytes, strlen(bytes)), 0);
}

static void assert_contents(const struct fixture *f, const char *expected)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	assert_int_equal(ss_io_read_path(f->directory, "file", 100, &text), 0);
	assert_string_equal(text.bytes, expected);
	assert_int_equal(count_files(f), 1);
}

static void check(const struct fixture *f, bool named)
{
	struct ss_new_file file;

	create(f, named, "never", &file);
	assert_int_equal(count_files(f), named);
	ss_new_file_deinit(&file);
	assert_int_equal(count_files(f), 0);

	create(f, named, "first", &file);
	assert_int_equal(ss_new_file_publish(&file, false), 0);
	assert_contents(f, "first");
	/* As another process that has the file open. */
	assert_int_equal(ss_new_file_publish(&file, false), 0);
	ss_new_file_deinit(&file);
	assert_contents(f, "first");

	create(f, named, "second", &file);
	assert_int_equal(ss_new_file_publish(&file, false), -EEXIST);
	assert_int_equal(ss_new_file_publish(&file, true), 0);
	ss_new_file_deinit(&file);
	assert_contents(f, "second");
}

TEST_WITH(test_unnamed, set_up, tear_down)
{
	check(*state, false);
}

TEST_WITH(test_named, set_up, tear_down)
{
	check(*state, true);
}

TEST(test_errors)
{
	struct ss_new_file file;
	_cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY);

	assert_int_equal(ss_new_file_create(proc, "file", &file), -ENOENT);
	assert_int_equal(file.fd, -1);
	ss_new_file_deinit(&file);
	assert_true(ss_new_file_is_temporary("file.00000000.part"));
	assert_false(ss_new_file_is_temporary(".part"));
	assert_false(ss_new_file_is_temporary("file"));
}
