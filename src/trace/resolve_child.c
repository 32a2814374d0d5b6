#include "trace/resolve.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/io.h"
#include "elf/debugfile.h"
#include "elf/elffile.h"
#include "elf/go_table.h"
#include "elf/tables.h"
#include "data/session.h"
#include "symbolize/names.h"
#include "symbolize/lines.h"

enum { NOTE_MAX = 512, USDT_TYPE = 3 };

/* Where code continues that a compiler has split off. */
static const char cold_suffix[] = ".cold";

struct function {
	uint64_t start;
	uint64_t size; /* 0: not known */
	const char *name;
	unsigned type; /* STT_... */
};

struct resolver {
	const struct ss_resolve_request *request;
	struct ss_session *session;
	struct ss_pattern *patterns; /* by spec */
	size_t demangle_budget;
	struct ss_resolved resolved;
	bool no_memory;
	/* Of the current module: */
	size_t module_at;
	struct ss_module_impl *module;
	struct ss_elf *elf;
	struct ss_elf *debug;
	struct ss_elf *embedded;
	SS_VECTOR(struct function) functions;
	SS_VECTOR(struct ss_table) tables; /* own the names */
	SS_VECTOR(uint64_t) taken;	   /* addresses, of the current spec */
};

SS_DEFINE_CLEANUP(struct ss_functions, functions, ss_functions_free)

static void close_module(struct resolver *resolver);

static void resolver_deinit(struct resolver *resolver)
{
	close_module(resolver);
	for (size_t i = 0; resolver->patterns && i < resolver->request->spec_count; i++)
		ss_pattern_deinit(&resolver->patterns[i]);
	free(resolver->patterns);
	ss_session_free(resolver->session);
	ss_resolved_deinit(&resolver->resolved);
	ss_vector_free(&resolver->functions);
	ss_vector_free(&resolver->tables);
	ss_vector_free(&resolver->taken);
}

/* The answer --------------------------------------------------------------- */

static const struct ss_field probe_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_resolved_probe, flags, 0),
	SS_FIELD_INDEX(2, UNSIGNED, ss_resolved_probe, spec, SS_RESOLVE_SPECS),
	SS_FIELD_INDEX(3, UNSIGNED, ss_resolved_probe, module_index, SS_RESOLVE_MODULES),
	SS_FIELD(4, UNSIGNED, ss_resolved_probe, address, 0),
	SS_FIELD(5, UNSIGNED, ss_resolved_probe, offset, 0),
	SS_FIELD(6, UNSIGNED, ss_resolved_probe, counter, 0),
	SS_FIELD(7, TEXT, ss_resolved_probe, name, 0),
	SS_FIELD_OF(8, INDEXES, ss_resolved_probe, returns, return_count, NULL,
		    SS_RESOLVE_OFFSETS, 0),
};
static const struct ss_resolved_probe no_probe = { .name = "" };
static const struct ss_schema probe_schema =
	SS_SCHEMA(probe_fields, ss_resolved_probe, &no_probe);

static const struct ss_field note_fields[] = {
	SS_FIELD_INDEX(1, UNSIGNED, ss_resolved_note, spec, SS_RESOLVE_SPECS),
	SS_FIELD_INDEX(2, UNSIGNED, ss_resolved_note, module_index, SS_RESOLVE_MODULES),
	SS_FIELD(3, TEXT, ss_resolved_note, text, 0),
};
static const struct ss_resolved_note no_note = { .text = "" };
static const struct ss_schema note_schema =
	SS_SCHEMA(note_fields, ss_resolved_note, &no_note);

static const struct ss_field resolved_fields[] = {
	SS_FIELD_OF(1, VECTOR, ss_resolved, probes.items, probes.count, &probe_schema, 0,
		    0),
	SS_FIELD_OF(2, VECTOR, ss_resolved, notes.items, notes.count, &note_schema, 0, 0),
};
const struct ss_schema ss_resolved_schema = SS_SCHEMA(resolved_fields, ss_resolved, NULL);

void ss_resolved_deinit(struct ss_resolved *resolved)
{
	for (size_t i = 0; i < resolved->probes.count; i++) {
		free(ss_drop_const(resolved->probes.items[i].returns));
		ss_module_unref(resolved->probes.items[i].module);
	}
	for (size_t i = 0; i < resolved->notes.count; i++)
		ss_module_unref(resolved->notes.items[i].module);
	ss_vector_free(&resolved->probes);
	ss_vector_free(&resolved->notes);
	ss_intern_free(resolved->strings);
}

static const char *keep(struct resolver *resolver, const char *text)
{
	const char *kept =
		ss_intern_bytes(resolver->resolved.strings, text,
				SS_MIN(strlen(text), (size_t)SS_RESOLVE_NAME_MAX));

	resolver->no_memory |= !kept;
	return kept;
}

static void add_probe(struct resolver *resolver, const struct ss_resolved_probe *probe,
		      const char *name)
{
	struct ss_resolved_probe *slot = ss_vector_push(&resolver->resolved.probes);

	resolver->no_memory |= !slot;
	if (!slot)
		return;
	*slot = *probe;
	slot->module_index = (uint32_t)resolver->module_at;
	slot->name = keep(resolver, name);
}

__attribute__((format(printf, 3, 4))) static void
note(struct resolver *resolver, size_t spec, const char *format, ...)
{
	struct ss_resolved_note *slot = ss_vector_push(&resolver->resolved.notes);
	char text[NOTE_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args); /* may be cut */
	va_end(args);
	resolver->no_memory |= !slot;
	if (slot)
		*slot = (struct ss_resolved_note){
			.spec = (uint32_t)spec,
			.module_index = (uint32_t)resolver->module_at,
			.text = keep(resolver, text),
		};
}

/* Code --------------------------------------------------------------------- */

static bool read_code(const struct resolver *resolver, uint64_t start, uint64_t size,
		      struct ss_code *ret)
{
	uint64_t offset;

	if (size == 0 || size > SS_CODE_SIZE_MAX ||
	    !ss_elf_locate(resolver->elf, start, &offset))
		return false;
	uint8_t *bytes = ss_elf_copy(resolver->elf, offset, size);
	return bytes && ss_code_init(ret, start, bytes, size);
}

/* The function that contains an address; by its symbol, or its unwind information. */
static bool find_function(const struct resolver *resolver, uint64_t address,
			  struct function *ret)
{
	for (size_t i = 0; i < resolver->functions.count; i++) {
		const struct function *function = &resolver->functions.items[i];
		if (address >= function->start &&
		    address - function->start < function->size) {
			*ret = *function;
			return true;
		}
	}
	_cleanup_(functions_cleanup) struct ss_functions *starts =
		ss_functions_new(resolver->elf);
	*ret = (struct function){};
	return starts && ss_functions_find(starts, address, &ret->start);
}

static bool is_cold_part(const char *name, const char *function)
{
	size_t size = strlen(function);

	return strncmp(name, function, size) == 0 &&
	       strncmp(name + size, cold_suffix, sizeof(cold_suffix) - 1) == 0;
}

static bool is_in(const struct function *function, uint64_t address)
{
	return address >= function->start && address - function->start < function->size;
}

/* Whether a jump leads to a split-off part of the same function. */
static bool stays(const struct resolver *resolver, const struct function *function,
		  uint64_t target)
{
	if (is_in(function, target))
		return true;
	for (size_t i = 0; i < resolver->functions.count; i++) {
		const struct function *part = &resolver->functions.items[i];
		if (is_in(part, target) && is_cold_part(part->name, function->name))
			return true;
	}
	return false;
}

struct returns {
	SS_VECTOR(uint64_t) addresses;
	bool failed;
};

static void add_returns(const struct resolver *resolver, const struct function *function,
			const struct ss_code *code, struct returns *returns)
{
	returns->failed |= !code->valid;
	for (size_t i = 0; i < code->exits.count && !returns->failed; i++) {
		const struct ss_code_exit *exit = &code->exits.items[i];
		if (exit->target && stays(resolver, function, exit->target))
			continue;
		uint64_t *slot = ss_vector_push(&returns->addresses);
		returns->failed |= !slot;
		if (slot)
			*slot = exit->address;
	}
}

static void find_returns(const struct resolver *resolver, const struct function *function,
			 const struct ss_code *code, struct returns *returns)
{
	add_returns(resolver, function, code, returns);
	for (size_t i = 0; i < resolver->functions.count; i++) {
		const struct function *part = &resolver->functions.items[i];
		struct ss_code more = {};
		if (!is_cold_part(part->name, function->name))
			continue;
		if (read_code(resolver, part->start, part->size, &more))
			add_returns(resolver, function, &more, returns);
		ss_code_deinit(&more);
	}
	returns->failed |= returns->addresses.count == 0 ||
			   returns->addresses.count > SS_RESOLVE_RETURNS_MAX;
}

/* Probes ------------------------------------------------------------------- */

static bool is_taken(struct resolver *resolver, uint64_t address)
{
	for (size_t i = 0; i < resolver->taken.count; i++) {
		if (resolver->taken.items[i] == address)
			return true;
	}
	uint64_t *slot = ss_vector_push(&resolver->taken);
	if (slot)
		*slot = address;
	return !slot;
}

/* Those that are in the file. */
static void set_returns(struct resolver *resolver, struct ss_resolved_probe *probe,
			const struct returns *returns)
{
	size_t *offsets = calloc(returns->addresses.count + 1, sizeof(*offsets));

	resolver->no_memory |= !offsets;
	for (size_t i = 0; offsets && i < returns->addresses.count; i++) {
		uint64_t offset;
		if (ss_elf_locate(resolver->elf, returns->addresses.items[i], &offset))
			offsets[probe->return_count++] = offset;
	}
	probe->returns = offsets;
}

static void add_function(struct resolver *resolver, size_t spec,
			 const struct function *function, unsigned flags,
			 const char *shown)
{
	struct ss_resolved_probe probe = {
		.flags = flags,
		.spec = (uint32_t)spec,
		.address = function->start,
	};
	struct returns returns = {};
	struct ss_code code = {};
	uint64_t size = function->size ? function->size : SS_PROLOGUE_MAX;

	if (function->type == STT_GNU_IFUNC) {
		note(resolver, spec,
		     "%s is chosen among several implementations when the program is "
		     "loaded (ifunc): name one of these, such as *%s_*",
		     shown, shown);
		return;
	}
	if (resolver->resolved.probes.count >= SS_RESOLVE_FUNCTIONS_MAX ||
	    is_taken(resolver, function->start))
		return;
	bool read = read_code(resolver, function->start, size, &code);
	uint64_t address = read ? ss_code_choose(&code, function->start) : 0;
	if (address && resolver->request->scopes) {
		if (function->size)
			find_returns(resolver, function, &code, &returns);
		if (!function->size || returns.failed) {
			probe.flags |= SS_RESOLVE_NO_RETURNS;
			returns.addresses.count = 0;
		}
	}
	if (!address || !ss_elf_locate(resolver->elf, address, &probe.offset)) {
		probe.flags |= SS_RESOLVE_REFUSED;
		note(resolver, spec,
		     "%s cannot be probed: its code is not in the file, or begins with "
		     "only a nop of five bytes",
		     shown);
	}
	if (returns.addresses.count)
		set_returns(resolver, &probe, &returns);
	add_probe(resolver, &probe, shown);
	ss_vector_free(&returns.addresses);
	ss_code_deinit(&code);
}

/* A probe within a function, where an instruction begins. */
static void add_place(struct resolver *resolver, size_t spec, uint64_t address,
		      uint64_t counter, unsigned flags, const char *name)
{
	struct ss_resolved_probe probe = {
		.flags = flags,
		.spec = (uint32_t)spec,
		.address = address,
	};
	struct function function;
	struct ss_code code = {};
	uint64_t at = 0;

	if (resolver->resolved.probes.count >= SS_RESOLVE_FUNCTIONS_MAX ||
	    is_taken(resolver, address))
		return;
	bool known = find_function(resolver, address, &function);
	/* Without a size: from the start of the function to the probe and a bit further. */
	bool whole = known && function.size;
	if (known &&
	    read_code(resolver, function.start,
		      whole ? function.size : address - function.start + SS_PROLOGUE_MAX,
		      &code)) {
		code.valid |= !whole; /* cut anywhere */
		if (ss_code_is_boundary(&code, address))
			at = ss_code_choose(&code, address);
	}
	ss_code_deinit(&code);
	if (!at) {
		note(resolver, spec,
		     "%s cannot be probed: no instruction is known to begin there, or it "
		     "is a nop of five bytes",
		     name);
		probe.flags |= SS_RESOLVE_REFUSED;
	} else if (!ss_elf_locate(resolver->elf, at, &probe.offset) ||
		   (counter && !ss_elf_locate(resolver->elf, counter, &probe.counter))) {
		probe.flags |= SS_RESOLVE_REFUSED;
	}
	add_probe(resolver, &probe, name);
}

/* Symbols ------------------------------------------------------------------ */

static bool is_code(const struct resolver *resolver, uint64_t address)
{
	for (size_t i = 0; i < resolver->elf->segment_count; i++) {
		const Elf64_Phdr *segment = &resolver->elf->segments[i];
		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
		    address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz)
			return true;
	}
	return false;
}

static bool add_symbols(struct resolver *resolver, const struct ss_table *table)
{
	if (!ss_vector_reserve(&resolver->functions,
			       resolver->functions.count + table->count + 1))
		return false;
	for (size_t i = 0; i < table->count; i++) {
		const Elf64_Sym *symbol = &table->symbols[i];
		unsigned type = ELF64_ST_TYPE(symbol->st_info);
		if ((type != STT_FUNC && type != STT_GNU_IFUNC &&
		     !(type == STT_NOTYPE && symbol->st_size)) ||
		    symbol->st_shndx == SHN_UNDEF ||
		    symbol->st_name >= table->names_size ||
		    !is_code(resolver, symbol->st_value))
			continue;
		resolver->functions.items[resolver->functions.count++] =
			(struct function){
				.start = symbol->st_value,
				.size = symbol->st_size,
				.name = table->names + symbol->st_name,
				.type = type,
			};
	}
	return true;
}

static bool read_table(struct resolver *resolver, const struct ss_elf *elf, uint32_t type)
{
	struct ss_table *slot = ss_vector_push(&resolver->tables);

	if (!slot)
		return false;
	if (!(type ? ss_table_read(elf, type, slot) : ss_go_table_read(elf, slot))) {
		resolver->tables.count--;
		return false;
	}
	return add_symbols(resolver, slot);
}

static void read_symbols(struct resolver *resolver)
{
	resolver->debug =
		ss_debugfile_find(resolver->session, resolver->module, resolver->elf);
	if (read_table(resolver, resolver->elf, SHT_SYMTAB) ||
	    (resolver->debug && read_table(resolver, resolver->debug, SHT_SYMTAB)))
		return;
	resolver->embedded = ss_debugfile_embedded(resolver->elf);
	(void)read_table(resolver, resolver->elf,
			 SHT_DYNSYM); /* stripped: what there is */
	(void)read_table(resolver, resolver->elf, 0);
	if (resolver->embedded)
		(void)read_table(resolver, resolver->embedded, SHT_SYMTAB);
}

/* Whole matches replace those without namespaces: the parent drops these. */
static void match_function(struct resolver *resolver, size_t spec,
			   const struct function *function)
{
	const char *pattern = resolver->patterns[spec].function;
	size_t plain_size = ss_name_plain_size(function->name);
	_cleanup_free_ char *plain = NULL;
	_cleanup_free_ char *demangled = NULL;
	enum ss_pattern_match match;

	if (strstr(function->name, cold_suffix))
		return;
	if (!ss_pattern_has_wildcards(pattern) &&
	    !ss_pattern_may_match(pattern, function->name))
		return;
	demangled = ss_name_demangle(function->name, &resolver->demangle_budget);
	plain = strndup(function->name, plain_size);
	if (!plain)
		return;
	match = ss_pattern_match(pattern, plain);
	if (match != SS_PATTERN_WHOLE && demangled)
		match = SS_MAX(match, ss_pattern_match(pattern, demangled));
	if (match == SS_PATTERN_NO)
		return;
	add_function(resolver, spec, function,
		     match == SS_PATTERN_SUFFIX ? SS_RESOLVE_SUFFIX : 0,
		     demangled ? demangled : plain);
}

static void match_functions(struct resolver *resolver, size_t spec)
{
	for (size_t i = 0; i < resolver->functions.count; i++)
		match_function(resolver, spec, &resolver->functions.items[i]);
}

/* USDT (systemtap's sys/sdt.h) ---------------------------------------------- */

/* Moves addresses by as much as prelink moved the section .stapsdt.base. */
static uint64_t usdt_shift(const struct resolver *resolver, uint64_t base)
{
	const Elf64_Shdr *section = ss_elf_find_section(resolver->elf, ".stapsdt.base");

	return section ? section->sh_addr - base : 0;
}

static bool is_usdt(const struct ss_pattern *pattern, const char *provider,
		    const char *probe)
{
	return pattern->kind == SS_PATTERN_FUNCTION && pattern->scope &&
	       fnmatch(pattern->scope, provider, 0) == 0 &&
	       fnmatch(pattern->function, probe, 0) == 0;
}

static void match_usdt(struct resolver *resolver, size_t spec, const char *data,
		       size_t size)
{
	uint64_t fields[3]; /* address, base, counter */
	char name[256];

	if (size <= sizeof(fields))
		return;
	memcpy(fields, data, sizeof(fields));
	const char *provider = data + sizeof(fields);
	size_t left = size - sizeof(fields);
	size_t length = strnlen(provider, left);
	if (length + 1 >= left ||
	    strnlen(provider + length + 1, left - length - 1) == left - length - 1)
		return;
	const char *probe = provider + length + 1;
	if (!is_usdt(&resolver->patterns[spec], provider, probe))
		return;
	uint64_t shift = usdt_shift(resolver, fields[1]);
	(void)snprintf(name, sizeof(name), "%s:%s", provider, probe); /* may be cut */
	add_place(resolver, spec, fields[0] + shift, fields[2] ? fields[2] + shift : 0,
		  SS_RESOLVE_USDT, name);
}

static void match_all_usdt(struct resolver *resolver, size_t spec)
{
	const Elf64_Shdr *section = ss_elf_find_section(resolver->elf, ".note.stapsdt");
	_cleanup_free_ char *notes =
		section ? ss_elf_copy_section(resolver->elf, section) : NULL;
	uint64_t at = 0;

	while (notes && section->sh_size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr header;
		memcpy(&header, notes + at, sizeof(header));
		uint64_t data =
			at + sizeof(header) + ((uint64_t)header.n_namesz + 3) / 4 * 4;
		uint64_t next = data + ((uint64_t)header.n_descsz + 3) / 4 * 4;
		if (data > section->sh_size || header.n_descsz > section->sh_size - data)
			return;
		if (header.n_type == USDT_TYPE)
			match_usdt(resolver, spec, notes + data, header.n_descsz);
		if (next > section->sh_size)
			return;
		at = next;
	}
}

/* DWARF -------------------------------------------------------------------- */

static bool has_dwarf(const struct ss_elf *elf)
{
	return elf && ss_elf_find_section(elf, ".debug_info");
}

static struct ss_dwarf *open_dwarf(struct resolver *resolver)
{
	const struct ss_elf *elf = has_dwarf(resolver->elf) ? resolver->elf :
							      resolver->debug;

	if (!has_dwarf(elf))
		return NULL;
	_cleanup_(ss_elf_cleanup) struct ss_elf *alternate =
		ss_debugfile_find_alternate(resolver->session, elf);
	return ss_dwarf_open(elf, alternate, true);
}

struct search {
	struct resolver *resolver;
	size_t spec;
	size_t count; /* of inlined calls */
	char where[SS_RESOLVE_NAME_MAX];
};

static void found_line(void *data, uint64_t address, const char *file, uint32_t line)
{
	struct search *search = data;
	char name[SS_RESOLVE_NAME_MAX];

	(void)snprintf(name, sizeof(name), "%s:%" PRIu32, ss_path_base(file),
		       line); /* may be cut */
	add_place(search->resolver, search->spec, address, 0, SS_RESOLVE_LINE, name);
}

static void match_line(struct resolver *resolver, size_t spec, struct ss_dwarf *dwarf)
{
	const struct ss_pattern *pattern = &resolver->patterns[spec];
	struct search search = { .resolver = resolver, .spec = spec };
	uint32_t next = ss_dwarf_find_line(
		dwarf, pattern->scope, (uint32_t)pattern->number, found_line, &search);

	if (next)
		note(resolver, spec,
		     "line %lu of %s has no code; the next one that has: %" PRIu32,
		     pattern->number, pattern->scope, next);
}

static bool is_searched(void *data, const char *name)
{
	const struct search *search = data;

	return ss_pattern_match(search->resolver->patterns[search->spec].function,
				name) != SS_PATTERN_NO;
}

static void found_inlined(void *data, const char *name, const char *file, uint32_t line)
{
	struct search *search = data;

	if (search->count++ == 0)
		(void)snprintf(search->where, sizeof(search->where),
			       "%.200s, first at %.200s:%" PRIu32, name,
			       file ? ss_path_base(file) : "?", line); /* may be cut */
}

/* Calls that a compiler has inlined never reach the probe. */
static void match_inlined(struct resolver *resolver, size_t spec, struct ss_dwarf *dwarf)
{
	struct search search = { .resolver = resolver, .spec = spec };

	if (ss_pattern_has_wildcards(resolver->patterns[spec].function))
		return;
	ss_dwarf_find_inlined(dwarf, is_searched, found_inlined, &search);
	if (search.count)
		note(resolver, spec,
		     "%zu %s inlined: %s; a probe of FILE:LINE sees such a call",
		     search.count,
		     search.count == 1 ? "call of it is" : "calls of it are",
		     search.where);
}

/* Modules ------------------------------------------------------------------ */

static void match_spec(struct resolver *resolver, size_t spec, struct ss_dwarf *dwarf)
{
	const struct ss_pattern *pattern = &resolver->patterns[spec];
	bool selected = ss_pattern_is_module(pattern->scope, resolver->module->pub.path);

	resolver->taken.count = 0;
	switch (pattern->kind) {
	case SS_PATTERN_OFFSET:
		if (selected)
			add_place(resolver, spec, pattern->number, 0, SS_RESOLVE_LINE,
				  resolver->request->specs[spec]);
		break;
	case SS_PATTERN_LINE:
		if (dwarf)
			match_line(resolver, spec, dwarf);
		break;
	case SS_PATTERN_FUNCTION:
		if (pattern->scope)
			match_all_usdt(resolver, spec);
		if (selected)
			match_functions(resolver, spec);
		if (selected && dwarf)
			match_inlined(resolver, spec, dwarf);
		break;
	}
}

static void close_module(struct resolver *resolver)
{
	for (size_t i = 0; i < resolver->tables.count; i++)
		ss_table_free(&resolver->tables.items[i]);
	resolver->tables.count = 0;
	resolver->functions.count = 0;
	ss_elf_free(take_ptr(resolver->elf));
	ss_elf_free(take_ptr(resolver->debug));
	ss_elf_free(take_ptr(resolver->embedded));
}

static void match_module(struct resolver *resolver)
{
	ss_module_identify(resolver->module);
	if (resolver->module->fd >= 0)
		resolver->elf = ss_elf_from_fd(resolver->module->fd);
	if (!resolver->elf)
		return;
	read_symbols(resolver);
	_cleanup_(ss_dwarf_cleanup) struct ss_dwarf *dwarf = open_dwarf(resolver);
	for (size_t i = 0; i < resolver->request->spec_count; i++)
		match_spec(resolver, i, dwarf);
}

static struct ss_error *run(struct resolver *resolver, struct ss_worker_page *page,
			    int output)
{
	const struct ss_resolve_request *request = resolver->request;

	for (size_t i = 0; i < request->spec_count; i++) {
		if (!ss_pattern_parse(request->specs[i], &resolver->patterns[i]))
			return ss_error_no_memory();
	}
	for (size_t i = 0; i < request->module_count; i++) {
		resolver->module = request->modules[i];
		resolver->module_at = i;
		page->module = (int32_t)i;
		if (resolver->module->fd >= 0 && !resolver->module->copied)
			match_module(resolver);
		close_module(resolver);
	}
	page->module = -1;
	_cleanup_buffer_ struct ss_buffer out = {};
	const struct ss_schema_writer writer = { .out = &out };
	ss_schema_write(&writer, &ss_resolved_schema, &resolver->resolved);
	if (out.failed || resolver->no_memory)
		return ss_error_no_memory();
	int result = ss_io_write_all(output, out.bytes, out.size);
	return result ? ss_error_new_errno(-result, "too many functions match") : NULL;
}

struct ss_error *ss_resolve_read(void *data, struct ss_worker_page *page, int output)
{
	struct ss_resolve_request *request = data;
	const struct ss_session_options options = { .size = sizeof(options),
						    .debug_dir = request->debug_dir };
	_cleanup_(resolver_deinit) struct resolver resolver = {
		.request = request,
		.demangle_budget = SS_DEMANGLE_BUDGET * 4,
		.patterns = calloc(request->spec_count + 1, sizeof(*resolver.patterns)),
		.resolved.strings = ss_intern_new(),
	};
	struct ss_error *error = ss_session_new(&options, &resolver.session);

	if (!error && (!resolver.patterns || !resolver.resolved.strings))
		error = ss_error_no_memory();
	return error ? error : run(&resolver, page, output);
}
