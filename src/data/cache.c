#include "data/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vector.h"
#include "data/capture.h"
#include "data/pipeline.h"
#include "data/session.h"

enum {
	FILE_MAX = 1 << 20,   /* of one module */
	SAVED_MAX = 64 << 20, /* of one snapshot */
	SPARE_FILES = 32,     /* descriptors that are left for the interpretation */
	FILES_MAX = 4096,     /* in the directory: all are looked at to find the oldest */
	LEFTOVER_S = 3600,    /* a file that was never finished */
};

#define TOTAL_MAX ((uint64_t)256 << 20)

struct ss_cache {
	int directory;
	uint64_t max_bytes;
	struct ss_idtable names; /* of files, by cache_id */
};

void ss_cache_close(struct ss_cache *cache)
{
	if (!cache)
		return;
	close_cleanup(&cache->directory);
	ss_idtable_deinit(&cache->names);
	free(cache);
}

/* The directory ---------------------------------------------------------- */

static struct ss_error *refuse(const char *path, const char *why)
{
	return ss_error_new(SS_ERROR_DENIED, "%s cannot hold a cache: %s", path, why);
}

/* Whether root may create a directory there: not in the home of another user, whose other
   programs could not use a ~/.cache of root. */
static bool may_create(int parent, const char *name)
{
	const char *slash = parent == AT_FDCWD ? strrchr(name, '/') : NULL;
	_cleanup_free_ char *path = slash ? strndup(name, (size_t)(slash - name) + 1) :
					    NULL;
	struct stat st;

	if (geteuid() != 0 || parent != AT_FDCWD)
		return true; /* parent is our own */
	return stat(path ? path : ".", &st) != 0 || st.st_uid == 0;
}

/* Opens a directory, which is created if it is missing. Its last component must not be a
   symbolic link. allowed: bits of the mode that others may have. */
static struct ss_error *open_own(int parent, const char *name, const char *path,
				 mode_t forbidden, int *ret)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct stat st;

	_cleanup_close_ int fd = openat(parent, name, flags);
	int errnum = errno;
	if (fd < 0 && errnum == ENOENT && !may_create(parent, name))
		return refuse(path, "it would be in a directory of another user");
	if (fd < 0 && errnum == ENOENT && mkdirat(parent, name, 0700) == 0)
		fd = openat(parent, name, flags);
	errnum = errno;
	if (fd < 0 || fstat(fd, &st) != 0)
		return ss_error_new_errno(errnum, "%s", path);
	if (st.st_uid != geteuid())
		return refuse(path, "it belongs to another user");
	if (st.st_mode & forbidden)
		return refuse(path, "other users may write to it");
	*ret = take_fd(fd);
	return NULL;
}

/* $XDG_CACHE_HOME, which counts only if it is absolute, or ~/.cache. */
static char *default_parent(void)
{
	const char *given = secure_getenv("XDG_CACHE_HOME");
	const char *home = secure_getenv("HOME");
	char *path = NULL;

	if (given && given[0] == '/')
		return strdup(given);
	if (!home || home[0] != '/' || asprintf(&path, "%s/.cache", home) < 0)
		return NULL;
	return path;
}

static struct ss_error *open_default(int *ret)
{
	_cleanup_free_ char *parent = default_parent();
	_cleanup_close_ int fd = -1;

	if (!parent)
		return ss_error_new(SS_ERROR_SYSTEM,
				    "neither XDG_CACHE_HOME nor HOME is set");
	struct ss_error *error =
		open_own(AT_FDCWD, parent, parent, S_IWGRP | S_IWOTH, &fd);
	return error ? error : open_own(fd, "stacksnap", "stacksnap", 077, ret);
}

struct ss_error *ss_cache_open(const struct ss_cache_options *options,
			       struct ss_cache **ret)
{
	struct ss_cache_options o = {};
	_cleanup_(ss_cache_cleanup) struct ss_cache *cache = calloc(1, sizeof(*cache));
	struct ss_error *error;

	if (!cache)
		return ss_error_no_memory();
	cache->directory = -1;
	if (options)
		memcpy(&o, options, SS_MIN(options->size, sizeof(o)));
	cache->max_bytes = o.max_bytes ? o.max_bytes : TOTAL_MAX;
	error = o.directory ? open_own(AT_FDCWD, o.directory, o.directory, 077,
				       &cache->directory) :
			      open_default(&cache->directory);
	if (error)
		return error;
	*ret = take_ptr(cache);
	return NULL;
}

/* Finding ---------------------------------------------------------------- */

/* Every part is there as it is: a hash could be the same for another file. False: it
   is not a file that stays. */
static bool name_of(const struct ss_module_impl *module, uid_t uid,
		    char ret[static NAME_MAX + 1])
{
	struct stat st;
	int size;

	/* The times of a copy, and the inode of a file that a server made up, prove
	   nothing. */
	if (module->fd < 0 || module->copied || module->unverified ||
	    fstat(module->fd, &st) != 0)
		return false;
	size = snprintf(ret, NAME_MAX + 1, "%x-%lx-%lx-%lx-%lx-%lx-", uid, st.st_dev,
			st.st_ino, (uint64_t)st.st_size, ss_timespec_ns(&st.st_mtim),
			ss_timespec_ns(&st.st_ctim));
	if (size < 0 || (size_t)size + 2 * module->build_id_size > NAME_MAX)
		return false;
	for (size_t i = 0; i < module->build_id_size; i++)
		(void)sprintf(ret + size + 2 * i, "%02x", module->build_id[i]);
	return true;
}

static bool is_own_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* -1: there is none. */
static int open_entry(const struct ss_cache *cache, const char *name)
{
	_cleanup_close_ int fd = openat(cache->directory, name,
					O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0 || !is_own_file(&st) || st.st_size > FILE_MAX)
		return -1;
	return take_fd(fd);
}

static bool are_files_left(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       (rlim_t)fd + SPARE_FILES < limit.rlim_cur;
}

/* False: too many files are open. */
static bool attach(struct ss_cache *cache, struct ss_module_impl *module, uid_t uid)
{
	char name[NAME_MAX + 1];

	close_cleanup(&module->cached);
	module->cached = module->cache_id = -1;
	if (!name_of(module, uid, name))
		return true;
	uint32_t id = ss_idtable_add(&cache->names, name, strlen(name) + 1, NULL);
	if (id > INT32_MAX)
		return true;
	module->cache_id = (int32_t)id;
	_cleanup_close_ int fd = open_entry(cache, name);
	if (fd >= 0 && !are_files_left(fd))
		return false;
	module->cached = take_fd(fd);
	return true;
}

void ss_cache_attach(struct ss_cache *cache, struct ss_capture *capture, uid_t uid)
{
	if (!cache || !capture)
		return;
	for (size_t i = 0; i < capture->modules.count; i++) {
		if (!attach(cache, capture->modules.items[i], uid))
			return;
	}
	for (size_t i = 0; i < capture->others.count; i++)
		ss_cache_attach(cache, capture->others.items[i], uid);
}

/* Keeping ----------------------------------------------------------------- */

struct entry {
	char *name;
	uint64_t size;
	int64_t time_s; /* of the last change */
};

struct listing {
	SS_VECTOR(struct entry) items;
	uint64_t total;
};

static void listing_deinit(struct listing *listing)
{
	for (size_t i = 0; i < listing->items.count; i++)
		free(listing->items.items[i].name);
	ss_vector_free(&listing->items);
}

static void list(const struct ss_cache *cache, struct listing *ret)
{
	DIR *dir = ss_io_open_directory(cache->directory, ".");
	int64_t now_s = (int64_t)(ss_clock_ns(CLOCK_REALTIME) / SS_NS_PER_SECOND);

	for (const struct dirent *item; dir && (item = readdir(dir));) {
		bool is_new = ss_new_file_is_temporary(item->d_name);
		struct stat st;
		if (item->d_name[0] == '.' ||
		    fstatat(cache->directory, item->d_name, &st, AT_SYMLINK_NOFOLLOW) !=
			    0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (is_new && now_s - st.st_mtime > LEFTOVER_S)
			(void)unlinkat(cache->directory, item->d_name, 0);
		struct entry *slot = is_new ? NULL : ss_vector_push(&ret->items);
		if (!slot)
			continue;
		*slot = (struct entry){ strdup(item->d_name), (uint64_t)st.st_size,
					st.st_mtime };
		ret->total += slot->size;
	}
	if (dir)
		(void)closedir(dir); /* only read from */
}

SS_DEFINE_COMPARE(compare_times, struct entry, time_s)

/* Whether the files are so few that they cannot be too much. */
static bool are_few(const struct ss_cache *cache)
{
	DIR *dir = ss_io_open_directory(cache->directory, ".");
	size_t count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		(void)closedir(dir); /* only read from */
	return count <= FILES_MAX / 4 && count * FILE_MAX <= cache->max_bytes;
}

/* Removes the oldest files while there is too much. */
static void prune(const struct ss_cache *cache)
{
	__attribute__((cleanup(listing_deinit))) struct listing all = {};

	if (are_few(cache))
		return;
	list(cache, &all);
	size_t left = all.items.count;
	if (left == 0 || (all.total <= cache->max_bytes && left <= FILES_MAX))
		return;
	qsort(all.items.items, all.items.count, sizeof(*all.items.items), compare_times);
	for (size_t i = 0; i < all.items.count; i++) {
		const struct entry *item = &all.items.items[i];
		if (all.total <= cache->max_bytes && left <= FILES_MAX / 4 * 3)
			return;
		if (item->name && unlinkat(cache->directory, item->name, 0) == 0) {
			all.total -= item->size;
			left--;
		}
	}
}

static void write_entry(const struct ss_cache *cache, const char *name, const void *bytes,
			size_t size)
{
	_cleanup_(ss_new_file_deinit) struct ss_new_file file;

	if (ss_new_file_create(cache->directory, name, &file) == 0 &&
	    ss_io_write_all(file.fd, bytes, size) == 0)
		(void)ss_new_file_publish(&file, true); /* or it is looked up anew */
}

/* The bytes of the item at *at, which is moved behind it. False: there is none. */
static bool next_item(int fd, uint64_t *at, struct ss_saved_item *ret, void *bytes)
{
	if (ss_io_pread(fd, ret, sizeof(*ret), *at) != sizeof(*ret) ||
	    ret->size > FILE_MAX)
		return false;
	if (ss_io_pread(fd, bytes, ret->size, *at + sizeof(*ret)) != ret->size)
		return false;
	*at += sizeof(*ret) + ret->size;
	return *at <= SAVED_MAX;
}

/* As it is if all names were in the cache. */
static bool is_empty(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_size == 0;
}

void ss_cache_store(struct ss_cache *cache, int fd)
{
	_cleanup_free_ void *bytes = is_empty(fd) ? NULL : malloc(FILE_MAX);
	struct ss_saved_item item;
	uint64_t at = 0;

	while (bytes && next_item(fd, &at, &item, bytes)) {
		if (item.cache_id < cache->names.count)
			write_entry(cache,
				    ss_idtable_key(&cache->names, item.cache_id, NULL),
				    bytes, item.size);
	}
	if (at > 0)
		prune(cache);
}
