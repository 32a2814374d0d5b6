#include "cli/package.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "profile/label.h"

static const char usr[] = "/usr";

enum {
	LIST_MAX = 16 << 20, /* bytes; the longest list of Debian 12 has 3 MB */
	WORD_MAX = 32,
	WORD_WHOLE = 5, /* letters of a word that is not shortened */
};

SS_DEFINE_CLEANUP(DIR, directory, (void)closedir)

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

/* Whether a line of size bytes is path. Lists have paths from before /lib became a link to
   /usr/lib. */
static bool is_path(const char *line, size_t size, const char *path)
{
	size_t skip = size > strlen(usr) && memcmp(line, usr, strlen(usr)) == 0 ?
			      strlen(usr) :
			      0;

	return size - skip == strlen(path) && memcmp(line + skip, path, size - skip) == 0;
}

static bool has_path(const struct ss_buffer *list, const char *path)
{
	const char *at = list->bytes;
	const char *end = at ? at + list->size : NULL;

	while (at && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t size = (size_t)((newline ? newline : end) - at);
		if (is_path(at, size, path))
			return true;
		at += size + 1;
	}
	return false;
}

static bool is_list(const char *name)
{
	size_t size = strlen(name);

	return size > strlen(".list") &&
	       strcmp(name + size - strlen(".list"), ".list") == 0;
}

/* Searches the lists whose names begin with word, or the others. Returns the name of the list
   with that path; NULL: none. */
static char *find_list(const char *database, const char *path, const char *word,
		       bool others)
{
	_cleanup_(directory_cleanup)
		DIR *directory = ss_io_open_directory(AT_FDCWD, database);
	_cleanup_buffer_ struct ss_buffer list = {};
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (!is_list(entry->d_name) ||
		    (strncmp(entry->d_name, word, strlen(word)) == 0) == others)
			continue;
		if (ss_io_read_path(dirfd(directory), entry->d_name, LIST_MAX, &list) ==
			    0 &&
		    has_path(&list, path))
			return strdup(entry->d_name);
	}
	return NULL;
}

char *ss_package_find_debug(const char *database, const char *path)
{
	bool in_usr = strncmp(path, "/usr/", strlen("/usr/")) == 0;
	const char *rest = in_usr ? path + strlen(usr) : path;
	char word[WORD_MAX];
	char *name = NULL;

	if (path[0] != '/')
		return NULL;
	set_word(path, word);
	_cleanup_free_ char *list = find_list(database, rest, word, false);
	/* Programs that no package installed are usually elsewhere. */
	if (!list && in_usr && strncmp(path, "/usr/local/", 11) != 0)
		list = find_list(database, rest, word, true);
	if (!list)
		return NULL;
	list[strcspn(list, ":")] = '\0'; /* the architecture */
	if (is_list(list))
		list[strlen(list) - strlen(".list")] = '\0';
	/* Debian builds NAME-dbgsym for every package, except for that of the C library. */
	if (asprintf(&name, "%s-%s", list,
		     strcmp(list, "libc6") == 0 ? "dbg" : "dbgsym") < 0)
		return NULL;
	return name;
}
