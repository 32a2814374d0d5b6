#include "symbolize/names.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vector.h"
#include "elf/cfi_table.h"
#include "elf/debugfile.h"
#include "elf/elffile.h"
#include "elf/image.h"
#include "elf/tables.h"
#include "symbolize/symtab.h"

enum { FIRST_FD = STDERR_FILENO + 1 };

struct ss_functions {
	struct ss_image *image;
	struct ss_cfi_table table; /* empty if there is only .debug_frame */
};

/* Without DWARF, Go's own table has lines and inlined calls. */
struct go_lines {
	struct ss_image *image;
	struct ss_intern *strings;
	uint64_t data; /* 0: inlined calls are not known */
};

/* NULL: it is not a file, or no memory. */
static struct ss_image *open_image(const struct ss_elf *elf)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new(elf->path ? elf->path : "", 0, elf->size);

	if (!module || elf->fd < 0)
		return NULL;
	module->fd = fcntl(elf->fd, F_DUPFD_CLOEXEC, FIRST_FD);
	return module->fd >= 0 ? ss_image_new(module) : NULL;
}

struct ss_functions *ss_functions_new(const struct ss_elf *elf)
{
	_cleanup_(ss_functions_cleanup) struct ss_functions *functions =
		calloc(1, sizeof(*functions));

	if (!functions)
		return NULL;
	functions->image = open_image(elf);
	if (!functions->image)
		return NULL;
	(void)ss_cfi_table_find(functions->image, &functions->table);
	return take_ptr(functions);
}

void ss_functions_free(struct ss_functions *functions)
{
	if (!functions)
		return;
	ss_image_free(functions->image);
	free(functions);
}

bool ss_functions_find(struct ss_functions *functions, uint64_t address, uint64_t *ret)
{
	struct ss_cfi_entry entry;

	if (ss_cfi_entry_find(functions->image, &functions->table, address, &entry) !=
	    SS_CFI_FOUND)
		return false;
	*ret = entry.start;
	return true;
}

static void go_lines_close(struct go_lines *lines)
{
	ss_image_free(lines->image);
	ss_intern_free(lines->strings);
	*lines = (struct go_lines){};
}

static void go_lines_open(struct go_lines *lines, const struct ss_elf *elf)
{
	*lines =
		(struct go_lines){ .image = open_image(elf), .strings = ss_intern_new() };
	const struct ss_go_table *go = lines->image ? ss_go_table_of(lines->image) : NULL;
	if (go && lines->strings)
		lines->data = ss_go_table_find_data(elf, go);
	else
		go_lines_close(lines);
}

static void go_lines_find(const struct go_lines *lines, uint64_t address, unsigned flags,
			  struct ss_name *ret)
{
	struct ss_go_call calls[SS_INLINES_MAX + 1];
	const bool places = !(flags & SS_NO_SOURCE);
	const size_t count = ss_go_find_calls(lines->image, address, lines->data,
					      lines->strings, calls,
					      SS_ARRAY_SIZE(calls));

	if (count > 0 && places)
		ret->line = (struct ss_location){ .file = calls[0].file,
						  .line = calls[0].line };
	for (size_t i = 0; i + 1 < count && !(flags & SS_NO_INLINES); i++) {
		struct ss_inline *slot = &ret->inlines[ret->inline_count++];
		*slot = (struct ss_inline){ .name = calls[i].function };
		if (places)
			slot->call = (struct ss_location){ .file = calls[i + 1].file,
							   .line = calls[i + 1].line };
	}
}

struct ss_names {
	struct ss_symtab *symtab; /* NULL: not read yet */
	/* Instead: what is found at these addresses, ascending. It is kept when all are read,
	   because lookups refer to its strings. */
	struct ss_symtab *excerpt;
	uint64_t *expected;
	size_t expected_count;
	const struct ss_names_plan *plan; /* of the lookups that are made now; or NULL */
	struct ss_dwarf *dwarf;		  /* NULL: none, or not read yet */
	bool dwarf_read;
	struct go_lines go; /* without image: it has DWARF, or is not a program of Go */
	struct ss_functions *functions; /* of a module of a recording; or NULL */
	bool found;			/* a file or image of the module */
	const char *why;		/* it was not found, or NULL */
	/* Of the lookups that are made now: */
	struct ss_session *session;
	const struct ss_module_impl *module;
	unsigned flags;
	/* Of a module that is cached: */
	struct ss_lookups *lookups; /* NULL: it is not */
	struct ss_lookup_sources sources;
	int32_t cache_id;
	char *note; /* that was added; or NULL */
	bool compilers_known;
	unsigned compilers; /* 1 << enum ss_name_compiler */
	bool failed;	    /* something could not be read: its lookups are not kept */
};

/* What was looked up: flags of code, or data. */
enum { FLAGS_MASK = SS_NO_INLINES | SS_NO_SOURCE, KIND_DATA = 0x80 };

/* The files of a module while they are read; each is opened when it is needed. */
struct files {
	struct ss_session *session;
	const struct ss_module_impl *module;
	struct ss_elf *own;
	struct ss_elf *debug;
	bool debug_searched;
	const char *why; /* own was not found, or NULL */
};

struct ss_names *ss_names_new(void)
{
	return calloc(1, sizeof(struct ss_names));
}

void ss_names_free(struct ss_names *names)
{
	if (!names)
		return;
	ss_lookups_free(names->lookups); /* it refers to strings of the others */
	ss_symtab_free(names->symtab);
	ss_symtab_free(names->excerpt);
	free(names->expected);
	ss_dwarf_close(names->dwarf);
	go_lines_close(&names->go);
	ss_functions_free(names->functions);
	free(names->note);
	free(names);
}

static void files_close(struct files *files)
{
	ss_elf_free(files->own);
	ss_elf_free(files->debug);
}

static const struct ss_elf *debug_file(struct files *files)
{
	if (!files->debug_searched)
		files->debug =
			ss_debugfile_find(files->session, files->module, files->own);
	files->debug_searched = true;
	return files->debug;
}

static void files_open(struct files *files, struct ss_session *session,
		       const struct ss_module_impl *module)
{
	*files = (struct files){ .session = session, .module = module };
	if (module->fd >= 0 || module->bytes)
		files->own = ss_elf_from_module(module);
	else
		files->own = ss_debugfile_find_module(session, module, &files->why);
	/* A debug file has all names: the module is fetched only if there is none. */
	if (!files->own && module->fd < 0 && !module->bytes && !debug_file(files))
		files->own = ss_debugfile_fetch_module(session, module);
}

/* A stripped module has dynamic symbols, and possibly .gnu_debugdata or Go's tables. */
static void add_exported(struct ss_symtab *symtab, const struct files *files)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *embedded = NULL;

	if (!files->own)
		return;
	if (!ss_symtab_add(symtab, files->own, SHT_DYNSYM))
		(void)ss_symtab_add_dynamic(symtab, files->own, files->module->pub.base);
	(void)ss_symtab_add_go(symtab, files->own);
	embedded = ss_debugfile_embedded(files->own);
	if (!embedded || !ss_symtab_add(symtab, embedded, SHT_SYMTAB))
		ss_symtab_set_partial(symtab);
}

/* .symtab includes .dynsym, so that the first complete table suffices. Mixing both would
   change which of two aliases is chosen. expected: only these addresses; NULL: all. */
static struct ss_symtab *read_symbols(struct files *files, const uint64_t *expected,
				      size_t count)
{
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *symtab = ss_symtab_new();

	if (!symtab)
		return NULL;
	if (expected)
		ss_symtab_expect(symtab, expected, count);
	if ((!files->own || !ss_symtab_add(symtab, files->own, SHT_SYMTAB)) &&
	    (!debug_file(files) || !ss_symtab_add(symtab, debug_file(files), SHT_SYMTAB)))
		add_exported(symtab, files);
	return ss_symtab_build(symtab) ? take_ptr(symtab) : NULL;
}

static bool has_dwarf(const struct ss_elf *elf)
{
	return elf && (ss_elf_find_section(elf, ".debug_info") ||
		       ss_elf_find_section(elf, ".zdebug_info"));
}

static struct ss_dwarf *read_dwarf(struct files *files)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *alternate = NULL;
	const struct ss_elf *elf = has_dwarf(files->own) ? files->own : debug_file(files);

	if (!has_dwarf(elf))
		return NULL;
	alternate = ss_debugfile_find_alternate(files->session, elf);
	/* A child is replaced if it dies. */
	return ss_dwarf_open(elf, alternate, files->session->module_at != NULL);
}

static bool needs_dwarf(unsigned flags)
{
	return (flags & (SS_NO_INLINES | SS_NO_SOURCE)) != (SS_NO_INLINES | SS_NO_SOURCE);
}

/* With many addresses, the index of all symbols is found faster. */
enum { EXPECTED_MAX = 1024 };

/* Asks for the addresses that will be looked up. */
static void read_plan(struct ss_names *names)
{
	struct ss_names_addresses addresses = {};
	size_t count = 0;

	if (names->plan &&
	    names->plan->list(names->plan->data, names->module, &addresses) &&
	    addresses.list.count > 0) {
		uint64_t *items = addresses.list.items;
		qsort(items, addresses.list.count, sizeof(*items), ss_compare_u64);
		for (size_t i = 0; i < addresses.list.count; i++) {
			if (i == 0 || items[i] != items[i - 1])
				items[count++] = items[i];
		}
	}
	if (count > 0 && count <= EXPECTED_MAX) {
		names->expected = take_ptr(addresses.list.items);
		names->expected_count = count;
	}
	ss_vector_free(&addresses.list);
}

static bool is_expected(const struct ss_names *names, uint64_t address)
{
	const uint64_t *items = names->expected;
	size_t at = ss_lower_bound(names->expected_count, i, items[i] < address);

	return at < names->expected_count && items[at] == address;
}

static void add_symbols(struct ss_names *names, struct files *files, bool all)
{
	if (!all && !names->excerpt)
		read_plan(names);
	if (!all && !names->excerpt && names->expected)
		names->excerpt =
			read_symbols(files, names->expected, names->expected_count);
	if (!names->excerpt || all)
		names->symtab = read_symbols(files, NULL, 0);
	names->failed |= !names->symtab && !names->excerpt;
}

/* all: not only the symbols at the expected addresses */
static void read_files(struct ss_names *names, bool all)
{
	bool symbols = !names->symtab && (all || !names->excerpt);
	bool dwarf = needs_dwarf(names->flags) && !names->dwarf_read;
	struct files files;

	if (!symbols && !dwarf)
		return;
	files_open(&files, names->session, names->module);
	if (symbols)
		add_symbols(names, &files, all);
	if (!names->functions && names->module->fd < 0 && files.own)
		names->functions = ss_functions_new(files.own);
	if (dwarf) {
		names->dwarf = read_dwarf(&files);
		names->dwarf_read = true;
		if (!names->dwarf && files.own)
			go_lines_open(&names->go, files.own);
		names->failed |= !names->dwarf &&
				 (has_dwarf(files.own) || has_dwarf(files.debug));
	}
	names->found |= files.own || files.debug;
	names->why = files.why;
	files_close(&files);
}

static unsigned find_compilers(const struct ss_elf *elf)
{
	unsigned found = 0;

	if (!elf)
		return 0;
	if (ss_elf_find_section(elf, ".debug-ghc-link-info"))
		found |= 1u << SS_COMPILER_GHC;
	if (ss_table_has_name(elf, SHT_DYNSYM, "__gnat_") ||
	    ss_table_has_name(elf, SHT_SYMTAB, "__gnat_"))
		found |= 1u << SS_COMPILER_GNAT;
	return found;
}

bool ss_names_is_of(struct ss_names *names, enum ss_name_compiler compiler)
{
	struct files files;

	if (!names->compilers_known) {
		names->compilers_known = true;
		files_open(&files, names->session, names->module);
		names->compilers = find_compilers(files.own);
		if (!names->compilers)
			names->compilers = find_compilers(debug_file(&files));
		files_close(&files);
	}
	return names->compilers >> compiler & 1;
}

/* What names an address, or NULL. */
static const struct ss_symtab *index_of(struct ss_names *names, uint64_t address)
{
	if (!names->symtab && names->excerpt && is_expected(names, address))
		return names->excerpt;
	if (!names->symtab && names->excerpt)
		read_files(names, true);
	return names->symtab;
}

/* The cache ------------------------------------------------------------ */

static void identify(const struct ss_elf *elf, struct ss_lookup_file *ret)
{
	struct stat st;

	if (!elf || elf->fd < 0 || fstat(elf->fd, &st) != 0)
		return;
	*ret = (struct ss_lookup_file){ .device = st.st_dev,
					.inode = st.st_ino,
					.size = (uint64_t)st.st_size,
					.modified_ns = ss_timespec_ns(&st.st_mtim),
					.changed_ns = ss_timespec_ns(&st.st_ctim) };
}

/* Opens all files that names may come from: with other files the lookups are not valid,
   for instance because a debug file was installed. */
static bool find_sources(struct ss_names *names)
{
	struct ss_lookup_sources *sources = &names->sources;
	struct files files;

	memset(sources, 0, sizeof(*sources));
	files_open(&files, names->session, names->module);
	const struct ss_elf *debug = debug_file(&files);
	const struct ss_elf *dwarf = has_dwarf(files.own) ? files.own : debug;
	_cleanup_(ss_elf_cleanup) struct ss_elf *alternate =
		dwarf ? ss_debugfile_find_alternate(names->session, dwarf) : NULL;
	sources->build_id_size =
		SS_MIN(names->module->build_id_size, sizeof(sources->build_id));
	memcpy(sources->build_id, names->module->build_id, sources->build_id_size);
	identify(files.own, &sources->files[0]);
	identify(debug, &sources->files[1]);
	identify(alternate, &sources->files[2]);
	bool found = files.own != NULL;
	names->found |= found;
	files_close(&files);
	return found;
}

/* The bytes come from a cache, and are checked by whoever reads them. */
static void read_cached(struct ss_names *names, int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size <= 0 ||
	    st.st_size > SS_LOOKUPS_SIZE_MAX)
		return;
	size_t size = (size_t)st.st_size;
	_cleanup_free_ void *bytes = malloc(size);
	if (bytes && ss_io_pread(fd, bytes, size, 0) == (ssize_t)size)
		(void)ss_lookups_read(names->lookups, bytes, size, &names->sources);
}

/* With a file finder the files are unknown until they are fetched. */
static bool is_cached(const struct ss_names *names)
{
	return names->module->cache_id >= 0 && names->module->fd >= 0 &&
	       !names->session->files.find;
}

static void open_cache(struct ss_names *names)
{
	if (names->lookups || names->symtab || names->excerpt || !is_cached(names) ||
	    !find_sources(names))
		return;
	names->lookups = ss_lookups_new();
	names->cache_id = names->module->cache_id;
	if (names->lookups)
		read_cached(names, names->module->cached);
}

bool ss_names_save(const struct ss_names *names, int fd)
{
	_cleanup_buffer_ struct ss_buffer out = {};

	if (!names->lookups || names->failed || !ss_lookups_changed(names->lookups) ||
	    !ss_lookups_write(names->lookups, &names->sources, &out))
		return true;
	const struct ss_saved_item item = { .cache_id = (uint32_t)names->cache_id,
					    .size = (uint32_t)out.size };
	return ss_io_write_all(fd, &item, sizeof(item)) == 0 &&
	       ss_io_write_all(fd, out.bytes, out.size) == 0;
}

/* Lookups --------------------------------------------------------------- */

void ss_names_read(struct ss_names *names, struct ss_session *session,
		   const struct ss_module_impl *module, unsigned flags)
{
	names->session = session;
	names->module = module;
	names->flags = flags;
	open_cache(names);
	if (!names->lookups)
		read_files(names, false);
}

void ss_names_set_plan(struct ss_names *names, const struct ss_names_plan *plan)
{
	names->plan = plan;
}

bool ss_names_found(const struct ss_names *names)
{
	return names->found;
}

const char *ss_names_problem(const struct ss_names *names)
{
	return names->why;
}

static void find_in_dwarf(struct ss_names *names, uint64_t address, unsigned flags,
			  struct ss_name *ret)
{
	struct ss_unit *unit = ss_dwarf_find_unit(names->dwarf, address);
	const char *function = NULL;
	uint64_t start = 0;

	if (!unit)
		return;
	if (!(flags & SS_NO_SOURCE))
		ret->line = ss_unit_find_line(unit, address);
	if (flags & SS_NO_INLINES)
		return;
	ret->inline_count = ss_unit_find_inlines(unit, address, !(flags & SS_NO_SOURCE),
						 ret->inlines, &function, &start);
	if (!ret->symbol && function) {
		ret->symbol = function;
		ret->start = start;
	}
}

static void find_in_files(struct ss_names *names, uint64_t address, unsigned flags,
			  struct ss_name *ret)
{
	const struct ss_symtab *symtab = index_of(names, address);
	struct ss_symbol symbol;

	ret->symbol = NULL;
	ret->start = 0;
	ret->line = (struct ss_location){};
	ret->inline_count = 0;
	if (symtab && ss_symtab_find(symtab, address, &symbol)) {
		ret->symbol = symbol.name;
		ret->start = symbol.start;
	}
	if (names->dwarf && needs_dwarf(flags))
		find_in_dwarf(names, address, flags, ret);
	if (names->go.image && needs_dwarf(flags))
		go_lines_find(&names->go, address, flags, ret);
}

void ss_names_find(struct ss_names *names, uint64_t address, unsigned flags,
		   struct ss_name *ret)
{
	uint8_t kind = flags & FLAGS_MASK;

	if (names->lookups && ss_lookups_find(names->lookups, address, kind, ret))
		return;
	if (names->lookups)
		read_files(names, false);
	find_in_files(names, address, flags, ret);
	if (names->lookups)
		ss_lookups_add(names->lookups, address, kind, ret);
}

bool ss_names_find_start(struct ss_names *names, uint64_t address, uint64_t *ret)
{
	return names->functions && ss_functions_find(names->functions, address, ret);
}

static void find_data_in_files(struct ss_names *names, uint64_t address,
			       struct ss_name *ret)
{
	const struct ss_symtab *symtab = index_of(names, address);
	struct ss_symbol symbol;

	*ret = (struct ss_name){};
	if (!symtab || !ss_symtab_find(symtab, address, &symbol) || symbol.size == 0 ||
	    address - symbol.start >= symbol.size)
		return;
	ret->symbol = symbol.name;
	ret->start = symbol.start;
}

bool ss_names_find_data(struct ss_names *names, uint64_t address, struct ss_name *ret)
{
	if (names->lookups && ss_lookups_find(names->lookups, address, KIND_DATA, ret))
		return ret->symbol != NULL;
	if (names->lookups)
		read_files(names, false);
	find_data_in_files(names, address, ret);
	if (names->lookups)
		ss_lookups_add(names->lookups, address, KIND_DATA, ret);
	return ret->symbol != NULL;
}

bool ss_names_find_note(struct ss_names *names, uint64_t key, const char **ret)
{
	struct ss_name name = {};

	if (!names->lookups ||
	    !ss_lookups_find(names->lookups, key, SS_LOOKUP_NOTE, &name))
		return false;
	*ret = name.symbol;
	return true;
}

void ss_names_add_note(struct ss_names *names, uint64_t key, const char *text)
{
	struct ss_name name = {};

	if (!names->lookups || names->note)
		return;
	names->note = text ? strdup(text) : NULL;
	name.symbol = names->note;
	if (!text || names->note)
		ss_lookups_add(names->lookups, key, SS_LOOKUP_NOTE, &name);
}

/* Large processes have a thousand. */
enum { MODULES_MAX = 4096 };

/* Identifies a module file. The build-id alone does not suffice, because any file can claim
   the build-id of another. Zeroed before it is filled, because it is compared as bytes. */
struct key {
	uint8_t build_id[SS_BUILD_ID_MAX];
	uint64_t build_id_size;
	uint64_t device; /* 0 to changed_ns: 0 without a file */
	uint64_t inode;
	uint64_t size;
	uint64_t changed_ns;
	uint64_t content; /* without a file: hash of the image, or of the identity */
};

struct cache {
	struct ss_idtable keys;
	SS_VECTOR(struct ss_names *) names; /* by number of the key */
};

static void cache_clear(struct cache *cache)
{
	for (size_t i = 0; i < cache->names.count; i++)
		ss_names_free(cache->names.items[i]);
	ss_vector_free(&cache->names);
	ss_idtable_deinit(&cache->keys);
}

static void cache_free(void *data)
{
	cache_clear(data);
	free(data);
}

static void cache_save(void *data, int fd)
{
	const struct cache *cache = data;

	for (size_t i = 0; i < cache->names.count; i++) {
		if (!ss_names_save(cache->names.items[i], fd))
			return;
	}
}

static void fill_key(struct key *key, const struct ss_module_impl *module)
{
	struct stat status;

	memset(key, 0, sizeof(*key));
	key->build_id_size = SS_MIN(module->build_id_size, (size_t)SS_BUILD_ID_MAX);
	memcpy(key->build_id, module->build_id, key->build_id_size);
	if (module->fd >= 0 && fstat(module->fd, &status) == 0) {
		key->device = module->copied ? module->device : status.st_dev;
		key->inode = module->copied ? module->inode : status.st_ino;
		key->size = (uint64_t)status.st_size;
		key->changed_ns = ss_timespec_ns(&status.st_mtim);
	} else if (module->bytes) {
		key->size = module->size;
		key->content = XXH3_64bits(module->bytes, module->size);
	} else if (module->pub.file.hash) {
		const struct ss_file_identity *file = &module->pub.file;
		uint64_t path = XXH3_64bits(module->path, strlen(module->path));
		key->inode = file->inode;
		key->size = file->size;
		key->changed_ns = file->modified_ns;
		key->content = XXH3_64bits_withSeed(module->file_hash,
						    sizeof(module->file_hash), path);
	}
}

void ss_names_cache_trim(struct ss_session *session)
{
	struct cache *cache = session->symbolize.data;

	if (cache && cache->names.count >= MODULES_MAX)
		cache_clear(cache);
}

static struct ss_names *add(struct cache *cache, const struct key *key)
{
	_cleanup_(ss_names_cleanup) struct ss_names *names = NULL;

	if (cache->names.count >= MODULES_MAX ||
	    !ss_vector_reserve(&cache->names, cache->names.count + 1))
		return NULL;
	names = ss_names_new();
	if (!names || ss_idtable_add(&cache->keys, key, sizeof(*key), NULL) == SS_ID_NONE)
		return NULL;
	cache->names.items[cache->names.count++] = names;
	return take_ptr(names);
}

struct ss_names *ss_names_cache_find(struct ss_session *session,
				     const struct ss_module_impl *module)
{
	struct key key;

	if (!session->symbolize.data)
		session->symbolize = (struct ss_session_slot){
			.data = calloc(1, sizeof(struct cache)),
			.free = cache_free,
			.save = cache_save,
		};
	struct cache *cache = session->symbolize.data;
	if (!cache)
		return NULL;
	fill_key(&key, module);
	uint32_t id = ss_idtable_find(&cache->keys, &key, sizeof(key));
	return id == SS_ID_NONE ? add(cache, &key) : cache->names.items[id];
}
