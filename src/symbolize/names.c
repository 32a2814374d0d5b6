#include "symbolize/names.h"

#include <stdbool.h>
#include <stdlib.h>

#include "elf/debugfile.h"
#include "elf/elffile.h"
#include "symbolize/symtab.h"

struct ss_names {
	struct ss_symtab *symtab; /* NULL: not read yet */
	struct ss_dwarf *dwarf;	  /* NULL: none, or not read yet */
	bool dwarf_read;
	bool found;	 /* a file or image of the module */
	const char *why; /* it was not found, or NULL */
};

/* The files of a module while they are read; each is opened when it is needed. */
struct files {
	const struct ss_session *session;
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
	ss_symtab_free(names->symtab);
	ss_dwarf_close(names->dwarf);
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

static void files_open(struct files *files, const struct ss_session *session,
		       const struct ss_module_impl *module)
{
	*files = (struct files){ .session = session, .module = module };
	if (module->fd >= 0)
		files->own = ss_elf_from_fd(module->fd);
	else if (module->bytes)
		files->own = ss_elf_from_memory(module->bytes, module->size);
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
   change which of two aliases is chosen. */
static struct ss_symtab *read_symbols(struct files *files)
{
	_cleanup_(ss_symtab_cleanup) struct ss_symtab *symtab = ss_symtab_new();

	if (!symtab)
		return NULL;
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
	return ss_dwarf_open(elf, alternate);
}

static bool needs_dwarf(unsigned flags)
{
	return (flags & (SS_NO_INLINES | SS_NO_SOURCE)) != (SS_NO_INLINES | SS_NO_SOURCE);
}

void ss_names_read(struct ss_names *names, const struct ss_session *session,
		   const struct ss_module_impl *module, unsigned flags)
{
	bool dwarf = needs_dwarf(flags) && !names->dwarf_read;
	struct files files;

	if (names->symtab && !dwarf)
		return;
	files_open(&files, session, module);
	if (!names->symtab)
		names->symtab = read_symbols(&files);
	if (dwarf) {
		names->dwarf = read_dwarf(&files);
		names->dwarf_read = true;
	}
	names->found |= files.own || files.debug;
	names->why = files.why;
	files_close(&files);
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

void ss_names_find(struct ss_names *names, uint64_t address, unsigned flags,
		   struct ss_name *ret)
{
	struct ss_symbol symbol;

	ret->symbol = NULL;
	ret->start = 0;
	ret->line = (struct ss_location){};
	ret->inline_count = 0;
	if (names->symtab && ss_symtab_find(names->symtab, address, &symbol)) {
		ret->symbol = symbol.name;
		ret->start = symbol.start;
	}
	if (names->dwarf && needs_dwarf(flags))
		find_in_dwarf(names, address, flags, ret);
}

bool ss_names_find_data(const struct ss_names *names, uint64_t address,
			struct ss_name *ret)
{
	struct ss_symbol symbol;

	if (!names->symtab || !ss_symtab_find(names->symtab, address, &symbol) ||
	    symbol.size == 0 || address - symbol.start >= symbol.size)
		return false;
	*ret = (struct ss_name){ .symbol = symbol.name, .start = symbol.start };
	return true;
}
