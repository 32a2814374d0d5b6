#include "cli/package.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "profile/label.h"

static const char usr[] = "/usr";

enum {
	LIST_MAX = 16 << 20, /* bytes; the longest list of Debian 12 has 3 MB */
	WORD_MAX = 32,
	WORD_WHOLE = 5, /* letters of a word that is not shortened */
};

/* Packages are often called like their files: the letters at the start of the file's name,
   of a long word without the last two. "mariadbd" is in "mariadb-server-core". */
static void set_word(const char *path, char word[WORD_MAX])
{
	const char *base = ss_label_base(path);
	size_t size = 0;

	while (size < WORD_MAX - 1 && isalpha((unsigned char)base[size]))
		size++;
	size -= size > WORD_WHOLE ? 2 : 0;
	(void)snprintf(word, WORD_MAX, "%.*s", (int)size, base);
}

/* Whether the list of a package probably has the path: see set_word(), or its own name
   begins with a word of the path, such as "openjdk". */
static bool is_likely(const char *list, const char *path, const char *word)
{
	size_t size = 0;

	if (strncmp(list, word, strlen(word)) == 0)
		return true;
	while (isalpha((unsigned char)list[size]))
		size++;
	return size >= WORD_WHOLE && memmem(path, strlen(path), list, size);
}

/* Whether a list has the path as a line. Lists have paths from before /lib became a link to
   /usr/lib, and others. */
static bool has_path(const struct ss_buffer *list, const char *path)
{
	size_t size = strlen(path);
	const char *at = list->bytes;
	const char *end = at ? at + list->size : NULL;

	for (; at && (at = memmem(at, (size_t)(end - at), path, size)); at += size) {
		const char *begin = at;
		if ((size_t)(begin - list->bytes) >= strlen(usr) &&
		    memcmp(begin - strlen(usr), usr, strlen(usr)) == 0)
			begin -= strlen(usr);
		if ((begin == list->bytes || begin[-1] == '\n') &&
		    (at + size == end || at[size] == '\n'))
			return true;
	}
	return false;
}

static bool is_list(const char *name)
{
	size_t size = strlen(name);

	return size > strlen(".list") &&
	       strcmp(name + size - strlen(".list"), ".list") == 0;
}

/* Debian builds NAME-dbgsym for every package, except for that of the C library. */
static char *name_of_debug(const char *list)
{
	size_t size = SS_MIN(strcspn(list, ":"), strlen(list) - strlen(".list"));
	bool is_libc = size == strlen("libc6") && memcmp(list, "libc6", size) == 0;
	char *name;

	if (asprintf(&name, "%.*s-%s", (int)size, list, is_libc ? "dbg" : "dbgsym") < 0)
		return NULL;
	return name;
}

/* A query in progress. */
struct search {
	struct ss_package_query *query;
	const char *path; /* without "/usr" */
	char word[WORD_MAX];
	bool all; /* search unlikely lists as well */
};

struct database {
	DIR *directory;
	struct ss_buffer names; /* of the lists, NUL-terminated each */
	struct ss_buffer list;	/* the current one */
	struct search *searches;
	size_t count;
};

static void database_deinit(struct database *database)
{
	if (database->directory)
		(void)closedir(database->directory); /* only read from */
	ss_buffer_deinit(&database->names);
	ss_buffer_deinit(&database->list);
	free(database->searches);
}

static void begin_search(struct search *search, struct ss_package_query *query)
{
	const char *path = query->path;
	bool in_usr = strncmp(path, "/usr/", strlen("/usr/")) == 0;

	search->query = query;
	search->path = in_usr ? path + strlen(usr) : path;
	/* Programs that no package installed are usually elsewhere. */
	search->all = in_usr && strncmp(path, "/usr/local/", 11) != 0;
	set_word(path, search->word);
}

/* Searches a list for what is not found yet, if it is likely or not to have it. Returns whether
   something is left to be found. */
static bool search_list(struct database *database, const char *name, bool likely)
{
	bool is_read = false;
	bool left = false;

	for (size_t i = 0; i < database->count; i++) {
		struct search *search = &database->searches[i];
		if (search->query->package || search->query->path[0] != '/' ||
		    !(likely || search->all))
			continue;
		left = true;
		if (is_likely(name, search->path, search->word) != likely)
			continue;
		if (!is_read && ss_io_read_path(dirfd(database->directory), name,
						LIST_MAX, &database->list) != 0)
			return true;
		is_read = true;
		if (has_path(&database->list, search->path))
			search->query->package = name_of_debug(name);
	}
	return left;
}

static void search_unlikely(struct database *database)
{
	const char *at = database->names.bytes;
	const char *end = at ? at + database->names.size : NULL;

	while (at < end && search_list(database, at, false))
		at += strlen(at) + 1;
}

uint64_t ss_packages_version(const char *database)
{
	struct stat st;

	if (stat(database, &st) != 0)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * SS_NS_PER_SECOND +
	       (uint64_t)st.st_mtim.tv_nsec;
}

void ss_packages_find_debug(const char *path, struct ss_package_query *queries,
			    size_t count)
{
	__attribute__((cleanup(database_deinit))) struct database database = {
		.directory = ss_io_open_directory(AT_FDCWD, path),
		.searches = calloc(count + 1, sizeof(*database.searches)),
		.count = count,
	};

	if (!database.directory || !database.searches || count == 0)
		return;
	for (size_t i = 0; i < count; i++)
		begin_search(&database.searches[i], &queries[i]);
	bool left = true;
	for (const struct dirent *entry; left && (entry = readdir(database.directory));) {
		if (!is_list(entry->d_name))
			continue;
		left = search_list(&database, entry->d_name, true);
		ss_buffer_add(&database.names, entry->d_name, strlen(entry->d_name) + 1);
	}
	if (left && !database.names.failed)
		search_unlikely(&database);
}
