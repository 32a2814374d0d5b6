#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/io.h"
#include "data/cache.h"
#include "data/capture.h"
#include "data/pipeline.h"
#include "data/session.h"

struct fixture {
	char directory[64]; /* of the test */
	char path[80];	    /* of the cache */
	struct ss_capture *capture;
	struct ss_module_impl *module;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char file[80];

	assert_non_null(f);
	strcpy(f->directory, "/tmp/stacksnap-cache-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	(void)snprintf(f->path, sizeof(f->path), "%s/cache", f->directory);
	(void)snprintf(file, sizeof(file), "%s/module", f->directory);
	f->capture = ss_capture_new();
	f->module = ss_module_new(file, 0x1000, 0x2000);
	assert_non_null(f->capture);
	assert_non_null(f->module);
	f->module->fd = open(file, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(f->module->fd >= 0);
	assert_true(ss_module_set_build_id(f->module, "\x12\x34", 2));
	struct ss_module_impl **slot = ss_vector_push(&f->capture->modules);
	assert_non_null(slot);
	*slot = f->module;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[96];

	ss_capture_free(f->capture);
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->directory);
	(void)!system(command);
	free(f);
	return 0;
}

static struct ss_cache *open_cache(const struct fixture *f, uint64_t max_bytes)
{
	const struct ss_cache_options options = { .size = sizeof(options),
						  .directory = f->path,
						  .max_bytes = max_bytes };
	struct ss_cache *cache = NULL;

	assert_null(ss_cache_open(&options, &cache));
	return cache;
}

static void expect_refused(const char *path)
{
	const struct ss_cache_options options = { .size = sizeof(options),
						  .directory = path };
	struct ss_cache *cache = NULL;
	_cleanup_error_ struct ss_error *error = ss_cache_open(&options, &cache);

	assert_non_null(error);
	assert_null(cache);
}

/* Stores one item as the child would hand it back. */
static void store(struct ss_cache *cache, uint32_t id, const void *bytes, size_t size,
		  size_t written)
{
	const struct ss_saved_item item = { .cache_id = id, .size = (uint32_t)size };
	_cleanup_close_ int fd = memfd_create("saved", MFD_CLOEXEC);

	assert_int_equal(ss_io_write_all(fd, &item, sizeof(item)), 0);
	assert_int_equal(ss_io_write_all(fd, bytes, written), 0);
	ss_cache_store(cache, fd);
}

static size_t count_files(const struct fixture *f)
{
	DIR *dir = opendir(f->path);
	size_t count = 0;

	assert_non_null(dir);
	for (const struct dirent *item; (item = readdir(dir));)
		count += item->d_name[0] != '.';
	(void)closedir(dir);
	return count;
}

/* The content of the module's cache file for this owner; "" if there is none. */
static const char *content(struct fixture *f, struct ss_cache *cache, uid_t uid)
{
	static char text[64];

	ss_cache_attach(cache, f->capture, uid);
	if (f->module->cached < 0)
		return "";
	ssize_t size = ss_io_pread(f->module->cached, text, sizeof(text) - 1, 0);
	assert_true(size >= 0);
	text[size] = '\0';
	return text;
}

TEST_WITH(test_kept, setup, teardown)
{
	struct fixture *f = *state;
	_cleanup_(ss_cache_cleanup) struct ss_cache *cache = open_cache(f, 0);

	assert_string_equal(content(f, cache, 1000), "");
	assert_int_equal(f->module->cache_id, 0);
	store(cache, 0, "first", 5, 5);
	assert_string_equal(content(f, cache, 1000), "first");
	store(cache, 0, "second", 6, 6);
	assert_string_equal(content(f, cache, 1000), "second");
	assert_int_equal(count_files(f), 1);
	/* What the processes of one user contain is not used for those of another. */
	assert_string_equal(content(f, cache, 1001), "");
	assert_int_equal(f->module->cache_id, 1);
}

/* A file that claims the same build-id, and one that was changed. */
TEST_WITH(test_other_files, setup, teardown)
{
	struct fixture *f = *state;
	_cleanup_(ss_cache_cleanup) struct ss_cache *cache = open_cache(f, 0);
	int fd = f->module->fd;
	char path[80];

	(void)content(f, cache, 0);
	store(cache, 0, "right", 5, 5);
	(void)snprintf(path, sizeof(path), "%s/other", f->directory);
	f->module->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_string_equal(content(f, cache, 0), "");
	store(cache, (uint32_t)f->module->cache_id, "wrong", 5, 5);
	close_cleanup(&f->module->fd);
	f->module->fd = fd;
	assert_string_equal(content(f, cache, 0), "right");
	f->module->copied = true;
	assert_string_equal(content(f, cache, 0), "");
	assert_int_equal(f->module->cache_id, -1);
	f->module->copied = false;
	f->module->unverified = true;
	assert_string_equal(content(f, cache, 0), "");
	f->module->unverified = false;
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	const struct timespec times[2] = { st.st_atim, { st.st_mtim.tv_sec - 1, 0 } };
	assert_int_equal(futimens(fd, times), 0);
	assert_string_equal(content(f, cache, 0), "");
}

/* The child is not trusted. */
TEST_WITH(test_hostile_items, setup, teardown)
{
	struct fixture *f = *state;
	_cleanup_(ss_cache_cleanup) struct ss_cache *cache = open_cache(f, 0);
	_cleanup_free_ char *large = calloc(1, (1 << 20) + 1);

	assert_non_null(large);
	(void)content(f, cache, 0);
	store(cache, 1, "x", 1, 1);
	store(cache, UINT32_MAX, "x", 1, 1);
	store(cache, 0, "x", 2, 1);
	store(cache, 0, large, (1 << 20) + 1, (1 << 20) + 1);
	store(cache, 0, large, UINT32_MAX, 100);
	assert_int_equal(count_files(f), 0);
	store(cache, 0, large, 1 << 20, 1 << 20);
	assert_int_equal(count_files(f), 1);
}

TEST_WITH(test_directories, setup, teardown)
{
	struct fixture *f = *state;
	char link[80];

	ss_cache_close(open_cache(f, 0));
	struct stat st;
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	(void)snprintf(link, sizeof(link), "%s/link", f->directory);
	assert_int_equal(symlink(f->path, link), 0);
	expect_refused(link);
	static const mode_t open_modes[] = { 0701, 0704, 0702, 0710, 0740, 0720, 0777 };
	for (size_t i = 0; i < SS_ARRAY_SIZE(open_modes); i++) {
		assert_int_equal(chmod(f->path, open_modes[i]), 0);
		expect_refused(f->path);
	}
	assert_int_equal(chmod(f->path, 0700), 0);
	ss_cache_close(open_cache(f, 0));
	if (geteuid() == 0) {
		assert_int_equal(chown(f->path, 65534, 65534), 0);
		expect_refused(f->path);
	}
	(void)snprintf(link, sizeof(link), "%s/missing/cache", f->directory);
	expect_refused(link);
	(void)snprintf(link, sizeof(link), "%s/module", f->directory);
	expect_refused(link);
}

/* Entries that others made: symbolic links, FIFOs, files of another user. */
TEST_WITH(test_entries, setup, teardown)
{
	struct fixture *f = *state;
	_cleanup_(ss_cache_cleanup) struct ss_cache *cache = open_cache(f, 0);
	char from[400];
	char to[80];

	(void)content(f, cache, 0);
	store(cache, 0, "right", 5, 5);
	DIR *dir = opendir(f->path);
	assert_non_null(dir);
	from[0] = '\0';
	for (const struct dirent *item; (item = readdir(dir));) {
		if (item->d_name[0] != '.')
			(void)snprintf(from, sizeof(from), "%s/%s", f->path,
				       item->d_name);
	}
	(void)closedir(dir);
	assert_non_null(strstr(from, "-1234"));
	(void)snprintf(to, sizeof(to), "%s/elsewhere", f->directory);
	if (geteuid() == 0) {
		assert_int_equal(chown(from, 65534, 65534), 0);
		assert_string_equal(content(f, cache, 0), "");
		assert_int_equal(chown(from, 0, 0), 0);
	}
	assert_int_equal(chmod(from, 0606), 0);
	assert_string_equal(content(f, cache, 0), "");
	assert_int_equal(chmod(from, 0600), 0);
	assert_string_equal(content(f, cache, 0), "right");
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(symlink(to, from), 0);
	assert_string_equal(content(f, cache, 0), "");
	store(cache, 0, "new", 3, 3); /* replaces the link, not its target */
	assert_string_equal(content(f, cache, 0), "new");
	_cleanup_close_ int fd = open(to, O_RDONLY | O_CLOEXEC);
	char text[6] = "";
	assert_int_equal(ss_io_pread(fd, text, 5, 0), 5);
	assert_string_equal(text, "right");
	assert_int_equal(unlink(from), 0);
	assert_int_equal(mkfifo(from, 0600), 0);
	assert_string_equal(content(f, cache, 0), "");
}

static void touch(const struct fixture *f, const char *name, size_t size, time_t age_s)
{
	char path[400];
	const struct timespec times[2] = { { time(NULL) - age_s, 0 },
					   { time(NULL) - age_s, 0 } };

	(void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(futimens(fd, times), 0);
}

static bool exists(const struct fixture *f, const char *name)
{
	char path[400];

	(void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
	return access(path, F_OK) == 0;
}

TEST_WITH(test_bounded, setup, teardown)
{
	struct fixture *f = *state;
	_cleanup_(ss_cache_cleanup) struct ss_cache *cache = open_cache(f, 1000);

	touch(f, "0-1", 400, 300);
	touch(f, "0-2", 400, 200);
	touch(f, "0-3", 400, 400);
	touch(f, "01.00000001.part", 0, 7200);
	touch(f, "01.00000002.part", 0, 10);
	(void)content(f, cache, 0);
	store(cache, 0, "bytes", 5, 5);
	/* The oldest is removed, and what was never finished. */
	assert_false(exists(f, "0-3"));
	assert_true(exists(f, "0-1"));
	assert_true(exists(f, "0-2"));
	assert_false(exists(f, "01.00000001.part"));
	assert_true(exists(f, "01.00000002.part"));
	assert_string_equal(content(f, cache, 0), "bytes");
}

/* Listing the directory must stay fast. */
TEST_WITH(test_many_files, setup, teardown)
{
	struct fixture *f = *state;
	_cleanup_(ss_cache_cleanup) struct ss_cache *cache = open_cache(f, 0);
	char from[96];
	char to[96];

	touch(f, "0-new", 0, 10);
	touch(f, "0-old", 0, 5000);
	for (int i = 0; i < 4200; i++) {
		(void)snprintf(from, sizeof(from), "%s/0-%s", f->path,
			       i < 1200 ? "old" : "new");
		(void)snprintf(to, sizeof(to), "%s/0-%d", f->path, i);
		assert_int_equal(link(from, to), 0);
	}
	(void)content(f, cache, 0);
	store(cache, 0, "bytes", 5, 5);
	assert_int_equal(count_files(f), 4096 / 4 * 3);
	for (int i = 1200; i < 4200; i++) {
		(void)snprintf(to, sizeof(to), "0-%d", i);
		assert_true(exists(f, to));
	}
	assert_string_equal(content(f, cache, 0), "bytes");
}
