#include "report/advice.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/text_stream.h"
#include "report/print.h"
#include "report/profile.h"
#include "data/pipeline.h"

static const char usr[] = "/usr";

enum {
	STATUS_BYTES = 64 << 10, /* the longest entry of Debian 12 has some thousand */
	LIST_MAX = 16 << 20,	 /* bytes; the longest list of Debian 12 has 3 MB */
	WORD_MAX = 32,
	WORD_WHOLE = 5, /* letters of a word that is not shortened */
};

/* Packages are often called like their files: the letters at the start of the file's name,
   of a long word without the last two. "mariadbd" is in "mariadb-server-core". */
static void set_word(const char *path, char word[WORD_MAX])
{
	const char *base = ss_path_base(path);
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

/* Debian builds NAME-dbgsym for every package, except for that of the C library. */
static char *name_of_debug(const char *package)
{
	char *name;

	if (asprintf(&name, "%s-%s", package,
		     strcmp(package, "libc6") == 0 ? "dbg" : "dbgsym") < 0)
		return NULL;
	return name;
}

/* The file with an entry for each package, of which a part is in memory. It has megabytes, but
   to list the directory takes five times as long. */
struct status {
	int fd;
	bool at_end;
	size_t at; /* the next entry, behind "Package: " */
	size_t size;
	char bytes[STATUS_BYTES + 1];
};

static const char separator[] = "\n\nPackage: ";

static void fill(struct status *status)
{
	status->size -= status->at;
	memmove(status->bytes, status->bytes + status->at, status->size);
	status->at = 0;
	ssize_t n = read(status->fd, status->bytes + status->size,
			 STATUS_BYTES - status->size);
	status->at_end = n <= 0;
	status->size += n > 0 ? (size_t)n : 0;
}

/* Begins at the first entry. */
static void rewind_status(struct status *status)
{
	status->at_end = lseek(status->fd, 0, SEEK_SET) != 0;
	status->at = 0;
	/* The first entry has a separator as the others have. */
	memcpy(status->bytes, "\n\n", 2);
	status->size = 2;
	fill(status);
}

/* Returns the next entry, which begins with the package's name; of one that does not fit, the
   beginning. NULL: there is none. */
static char *next_entry(struct status *status)
{
	char *next;

	while (!(next = memmem(status->bytes + status->at, status->size - status->at,
			       separator, strlen(separator))) &&
	       !status->at_end && (status->at || status->size < STATUS_BYTES))
		fill(status);
	if (!next && status->at == status->size)
		return NULL;
	char *entry = status->bytes + status->at;
	if (!next) {
		status->at = status->size;
		status->bytes[status->size] = '\0';
		return entry;
	}
	*next = '\0';
	status->at = (size_t)(next - status->bytes) + strlen(separator);
	return entry;
}

/* A query in progress. */
struct search {
	struct ss_package_query *query;
	const char *path; /* without "/usr" */
	char word[WORD_MAX];
	bool all; /* search unlikely lists as well */
};

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

struct database {
	int directory;
	struct status *status;
	struct ss_buffer list; /* the current one */
	struct search *searches;
	size_t count;
};

static void database_deinit(struct database *database)
{
	close_cleanup(&database->directory);
	if (database->status)
		close_cleanup(&database->status->fd);
	free(database->status);
	ss_buffer_deinit(&database->list);
	free(database->searches);
}

static bool database_init(struct database *database, const char *path,
			  struct ss_package_query *queries, size_t count)
{
	*database = (struct database){
		.directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.status = malloc(sizeof(*database->status)),
		.searches = calloc(count + 1, sizeof(*database->searches)),
		.count = count,
	};
	if (!database->status)
		return false;
	database->status->fd =
		openat(database->directory, "status", O_RDONLY | O_CLOEXEC);
	if (!database->searches)
		return false;
	for (size_t i = 0; i < count; i++)
		begin_search(&database->searches[i], &queries[i]);
	return database->status->fd >= 0;
}

/* A package of which several architectures can be installed has one list for each:
   NAME:ARCHITECTURE.list. */
static bool read_list(struct database *database, const char *name, const char *fields)
{
	static const char key[] = "\nArchitecture: ";
	const char *architecture = strstr(fields, key);
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "info/%s.list", name);
	if (ss_io_read_path(database->directory, path, LIST_MAX, &database->list) == 0)
		return true;
	if (!architecture)
		return false;
	architecture += strlen(key);
	(void)snprintf(path, sizeof(path), "info/%s:%.*s.list", name,
		       (int)strcspn(architecture, "\n"), architecture);
	return ss_io_read_path(database->directory, path, LIST_MAX, &database->list) == 0;
}

/* Searches the list of a package for what is not found yet, if it is likely or not to have it.
   Returns whether something is left to be found. */
static bool search_package(struct database *database, char *entry, bool likely)
{
	const char *name = strsep(&entry, "\n");
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
		if (!is_read && !read_list(database, name, entry ?: ""))
			return true;
		is_read = true;
		if (has_path(&database->list, search->path))
			search->query->package = name_of_debug(name);
	}
	return left;
}

/* The same for all packages. */
static bool search_all(struct database *database, bool likely)
{
	bool left = true;

	rewind_status(database->status);
	for (char *entry; left && (entry = next_entry(database->status));)
		left = search_package(database, entry, likely);
	return left;
}

/* Changes whenever a package is installed, upgraded or removed. 0: there is no database. */
static uint64_t packages_version(void)
{
	struct stat st;

	if (stat(SS_PACKAGE_DATABASE, &st) != 0)
		return 0;
	return ss_timespec_ns(&st.st_mtim);
}

void ss_packages_find_debug(const char *path, struct ss_package_query *queries,
			    size_t count)
{
	_cleanup_(database_deinit) struct database database;

	if (database_init(&database, path, queries, count) && count &&
	    search_all(&database, true))
		(void)search_all(&database, false);
}

enum { MODULES_MAX = 3 };

/* What is missing, as text that the confined process returns: each item ends with ITEM_END. */
#define ITEM_END "\x1e"
#define KEY_END "\x1f"

enum item {
	ITEM_RUNTIME = 'r', /* then why its functions are missing */
	ITEM_MODULE =
		'm',	 /* then a key of the module, KEY_END, and its name and remedy */
	ITEM_MORE = 'n', /* then the key of a module that is only counted */
	ITEM_DEBUGINFOD = 'd', /* which was not tried */
	ITEM_JIT = 'j',
	ITEM_KERNEL = 'k',
	ITEM_PEERS = 'p',
};

struct advice {
	const struct ss_snapshot *snapshot;
	const struct ss_advice_options *options;
	size_t *nameless; /* by module: frames without a name; owned */
	size_t nameless_jit;
	FILE *out;
};

static void count_frames(struct advice *advice, const struct ss_task *thread)
{
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame =
			ss_snapshot_frame(advice->snapshot, thread, i);
		if (frame->symbol || frame->signal_frame)
			continue;
		/* The vDSO has no file. */
		if (frame->module_index >= 0 && frame->module->path[0] == '/')
			advice->nameless[frame->module_index]++;
		else if (frame->area && strcmp(frame->area, "[jit]") == 0)
			advice->nameless_jit++;
	}
}

/* The module with the most frames without a name that was not taken yet; -1: none. */
static int take_module(struct advice *advice)
{
	int found = -1;

	for (size_t i = 0; i < ss_snapshot_module_count(advice->snapshot); i++) {
		if (advice->nameless[i] &&
		    (found < 0 || advice->nameless[i] > advice->nameless[found]))
			found = (int)i;
	}
	if (found >= 0)
		advice->nameless[found] = 0;
	return found;
}

/* The same file in all processes. */
static const char *key_of(const struct ss_module *module)
{
	return module->build_id ?: module->path;
}

/* What could separate items in a path is not part of it. */
static void write_path(const struct advice *advice, const char *path)
{
	for (; *path; path++)
		(void)fputc(strchr(ITEM_END KEY_END, *path) ? '?' : *path, advice->out);
}

static void write_module(const struct advice *advice, const struct ss_module *module,
			 const char *package)
{
	(void)fputc(ITEM_MODULE, advice->out);
	write_path(advice, key_of(module));
	(void)fputs(KEY_END, advice->out);
	write_path(advice, ss_path_base(module->path));
	if (package)
		(void)fprintf(advice->out, " (install %s)", package);
	else if (module->build_id)
		(void)fprintf(advice->out, " (build-id %s)", module->build_id);
	else
		(void)fputs(" (it has no build-id)", advice->out);
	(void)fputs(ITEM_END, advice->out);
}

/* The modules that are named, and their packages. */
struct named {
	size_t modules[MODULES_MAX];
	struct ss_package_query queries[MODULES_MAX];
	size_t count;
};

/* Finding a package takes as long as a snapshot: the cache has those that were found. */
static void find_packages(const struct advice *advice, struct named *named)
{
	struct ss_session *session = advice->options->session;
	uint64_t version = packages_version();
	struct ss_package_query left[MODULES_MAX];
	size_t indexes[MODULES_MAX];
	size_t count = 0;

	for (size_t i = 0; i < named->count; i++) {
		const char *package = NULL;
		if (session &&
		    ss_session_find_note(session, advice->snapshot, named->modules[i],
					 version, &package)) {
			named->queries[i].package = package ? strdup(package) : NULL;
			continue;
		}
		indexes[count] = i;
		left[count++] = named->queries[i];
	}
	ss_packages_find_debug(SS_PACKAGE_DATABASE, left, count);
	for (size_t i = 0; i < count; i++) {
		named->queries[indexes[i]].package = left[i].package;
		if (session)
			ss_session_add_note(session, advice->snapshot,
					    named->modules[indexes[i]], version,
					    left[i].package);
	}
}

static void write_modules(struct advice *advice)
{
	struct named named = {};
	bool identified = false; /* any of them: debuginfod needs a build-id */

	for (int index; (index = take_module(advice)) >= 0;) {
		const struct ss_module *module =
			ss_snapshot_module(advice->snapshot, (size_t)index);
		identified |= module->build_id && *module->build_id;
		if (named.count == MODULES_MAX) {
			(void)fputc(ITEM_MORE, advice->out);
			write_path(advice, key_of(module));
			(void)fputs(ITEM_END, advice->out);
			continue;
		}
		named.modules[named.count] = (size_t)index;
		named.queries[named.count++].path = module->deleted ? "" : module->path;
	}
	if (named.count == 0)
		return;
	if (advice->options->packages)
		find_packages(advice, &named);
	for (size_t i = 0; i < named.count; i++) {
		write_module(advice,
			     ss_snapshot_module(advice->snapshot, named.modules[i]),
			     named.queries[i].package);
		free(named.queries[i].package);
	}
	if (identified && !advice->options->debuginfod)
		(void)fprintf(advice->out, "%c" ITEM_END, ITEM_DEBUGINFOD);
}

static bool lacks_peers(const struct ss_task *thread)
{
	const struct ss_descriptor *descriptor = thread->wait ? thread->wait->descriptor :
								NULL;

	return descriptor && descriptor->peers_searched && descriptor->peers_incomplete &&
	       descriptor->peer_count == 0;
}

/* What only root may read. */
static void write_root(struct advice *advice)
{
	bool kernel = false;
	bool peers = false;

	for (size_t i = 0; i < ss_snapshot_task_count(advice->snapshot, SS_TASK_THREAD);
	     i++) {
		const struct ss_task *thread =
			ss_snapshot_task(advice->snapshot, SS_TASK_THREAD, i);
		kernel |= thread->state == 'D' && !thread->kernel_stack;
		peers |= lacks_peers(thread);
	}
	if (advice->options->privileged)
		return;
	if (kernel)
		(void)fprintf(advice->out, "%c" ITEM_END, ITEM_KERNEL);
	if (peers)
		(void)fprintf(advice->out, "%c" ITEM_END, ITEM_PEERS);
}

/* Languages whose functions are not shown, in one line for all threads. */
static void write_runtimes(struct advice *advice)
{
	for (size_t i = 0; i < ss_snapshot_runtime_count(advice->snapshot); i++) {
		const struct ss_runtime_info *info =
			ss_snapshot_runtime(advice->snapshot, i);
		if (!info->problem)
			continue;
		(void)fprintf(advice->out, "%c%s" ITEM_END, ITEM_RUNTIME, info->problem);
	}
}

static void write_all(struct advice *advice)
{
	write_runtimes(advice);
	for (size_t i = 0; i < ss_snapshot_task_count(advice->snapshot, SS_TASK_THREAD);
	     i++)
		count_frames(advice,
			     ss_snapshot_task(advice->snapshot, SS_TASK_THREAD, i));
	write_modules(advice);
	if (advice->nameless_jit)
		(void)fprintf(advice->out, "%c" ITEM_END, ITEM_JIT);
	write_root(advice);
}

char *ss_advice_new(const struct ss_snapshot *snapshot,
		    const struct ss_advice_options *options)
{
	_cleanup_free_ size_t *nameless =
		calloc(ss_snapshot_module_count(snapshot) + 1, sizeof(*nameless));
	struct ss_text_stream text;

	if (!nameless || !ss_text_stream_open(&text))
		return NULL;
	struct advice advice = {
		.snapshot = snapshot,
		.options = options,
		.nameless = nameless,
		.out = text.out,
	};
	write_all(&advice);
	_cleanup_free_ char *items = ss_text_stream_close(&text);
	return items && *items ? take_ptr(items) : NULL;
}

/* The line ---------------------------------------------------------------------------- */

struct line {
	char *copy; /* of the items, each NUL-terminated */
	size_t size;
	struct ss_idtable seen; /* texts of runtimes and keys of modules */
	size_t parts;
	FILE *out;
};

static bool line_init(struct line *line, const char *items, FILE *out)
{
	*line = (struct line){ .copy = strdup(items), .size = strlen(items), .out = out };
	for (size_t i = 0; line->copy && i < line->size; i++) {
		if (line->copy[i] == ITEM_END[0])
			line->copy[i] = '\0';
	}
	return line->copy != NULL;
}

static void line_deinit(struct line *line)
{
	free(line->copy);
	ss_idtable_deinit(&line->seen);
}

/* The next item of a kind, behind another one or, after NULL, the first one. Returns what follows the kind; NULL: there
   is none. */
static const char *next_item(const struct line *line, enum item kind, const char *before)
{
	const char *end = line->copy + line->size;

	for (const char *at = before ? strchr(before, '\0') + 1 : line->copy; at < end;
	     at += strlen(at) + 1) {
		if (*at == (char)kind)
			return at + 1;
	}
	return NULL;
}

/* Whether a text occurs for the first time. */
static bool is_new(struct line *line, const char *text, size_t size)
{
	bool added = false;

	(void)ss_idtable_add(&line->seen, text, size, &added);
	return added;
}

static void begin_part(struct line *line)
{
	(void)fputs(line->parts++ ? "; " : "missing: ", line->out);
}

static void write_functions(struct line *line)
{
	for (const char *item = NULL; (item = next_item(line, ITEM_RUNTIME, item));) {
		if (!is_new(line, item, strlen(item)))
			continue;
		begin_part(line);
		(void)fputs("functions of the program (", line->out);
		ss_escape_write(item, NULL, line->out);
		(void)fputc(')', line->out);
	}
}

static void write_names(struct line *line)
{
	size_t shown = 0;
	size_t rest = 0;

	for (const char *item = NULL; (item = next_item(line, ITEM_MODULE, item));) {
		size_t key = strcspn(item, KEY_END);
		if (!is_new(line, item, key))
			continue;
		if (shown == MODULES_MAX) {
			rest++;
			continue;
		}
		if (shown == 0)
			begin_part(line);
		(void)fputs(shown++ ? ", " : "names in ", line->out);
		ss_escape_write(item + key + (item[key] != '\0'), NULL, line->out);
	}
	for (const char *item = NULL; (item = next_item(line, ITEM_MORE, item));)
		rest += is_new(line, item, strlen(item));
	if (shown && rest)
		(void)fprintf(line->out, " and %zu more", rest);
	if (shown && next_item(line, ITEM_DEBUGINFOD, NULL))
		(void)fputs(", or use --debuginfod", line->out);
}

static void write_rights(struct line *line)
{
	bool kernel = next_item(line, ITEM_KERNEL, NULL);
	bool peers = next_item(line, ITEM_PEERS, NULL);

	if (!kernel && !peers)
		return;
	begin_part(line);
	(void)fprintf(line->out, "%s%s%s (run as root)", kernel ? "kernel functions" : "",
		      kernel && peers ? ", " : "",
		      peers ? "other ends of pipes and sockets" : "");
}

void ss_advice_write(const char *items, FILE *out)
{
	__attribute__((cleanup(line_deinit))) struct line line;

	if (!line_init(&line, items, out))
		return;
	write_functions(&line);
	write_names(&line);
	if (next_item(&line, ITEM_JIT, NULL)) {
		begin_part(&line);
		(void)fputs("names of JIT code (needs a perf map, see stacksnap(1))",
			    out);
	}
	write_rights(&line);
}
