#include "symbolize/places.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/demangle.h"

/* Entries of DWARF that are visited: some seconds. Code is nested at most some dozens deep. */
enum { ENTRIES_MAX = 1 << 23, DEPTH_MAX = 200 };

static bool next_unit(Dwarf *dwarf, Dwarf_Off *offset, Dwarf_Die *ret)
{
	Dwarf_Off next;
	size_t header;

	while (dwarf_next_unit(dwarf, *offset, &next, &header, NULL, NULL, NULL, NULL,
			       NULL, NULL) == 0 &&
	       next > *offset) {
		bool found = dwarf_offdie(dwarf, *offset + header, ret) &&
			     dwarf_tag(ret) == DW_TAG_compile_unit;
		*offset = next;
		if (found)
			return true;
	}
	return false;
}

/* Lines -------------------------------------------------------------------- */

/* Whether a path ends in these parts. */
static bool is_file(const char *path, const char *wanted)
{
	size_t size = strlen(path);
	size_t end = strlen(wanted);

	return size >= end && strcmp(path + size - end, wanted) == 0 &&
	       (size == end || path[size - end - 1] == '/');
}

struct lines {
	const char *file;
	uint32_t line;
	uint32_t next; /* the nearest line behind it that has code */
	bool any;
	ss_line_found *found;
	void *data;
};

static bool has_file(Dwarf_Die *unit, const char *wanted)
{
	Dwarf_Files *files = NULL;
	size_t count = 0;

	if (dwarf_getsrcfiles(unit, &files, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *path = dwarf_filesrc(files, i, NULL, NULL);
		if (path && is_file(path, wanted))
			return true;
	}
	return false;
}

static void search_lines(struct lines *lines, Dwarf_Die *unit)
{
	Dwarf_Lines *all = NULL;
	size_t count = 0;
	bool within = false; /* the row before is of the line, too */

	if (dwarf_getsrclines(unit, &all, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *row = dwarf_onesrcline(all, i);
		const char *path = dwarf_linesrc(row, NULL, NULL);
		Dwarf_Addr address = 0;
		bool statement = false;
		bool end = false;
		int number = 0;
		if (!path || dwarf_lineno(row, &number) != 0 || number <= 0 ||
		    !is_file(path, lines->file) ||
		    dwarf_lineendsequence(row, &end) != 0 || end ||
		    dwarf_linebeginstatement(row, &statement) != 0) {
			within = false;
			continue;
		}
		uint32_t line = (uint32_t)number;
		if (line > lines->line && (!lines->next || line < lines->next))
			lines->next = line;
		bool same = line == lines->line;
		if (same && statement && !within && dwarf_lineaddr(row, &address) == 0) {
			lines->any = true;
			lines->found(lines->data, address, path, line);
		}
		within = same;
	}
}

uint32_t ss_dwarf_find_line(struct ss_dwarf *dwarf, const char *file, uint32_t line,
			    ss_line_found *found, void *data)
{
	struct lines lines = { .file = file, .line = line, .found = found, .data = data };
	Dwarf_Off offset = 0;
	Dwarf_Die unit;

	while (next_unit(ss_dwarf_handle(dwarf), &offset, &unit)) {
		if (has_file(&unit, file))
			search_lines(&lines, &unit);
	}
	return lines.any ? 0 : lines.next;
}

/* Inlined calls ------------------------------------------------------------ */

struct inlined {
	Dwarf *dwarf;
	ss_inlined_wanted *wanted;
	ss_inlined_found *found;
	void *data;
	size_t entries;
	size_t budget;	    /* of the demangler */
	Dwarf_Files *files; /* of the current unit */
	Dwarf_Off last;	    /* the function that was looked at last, */
	bool last_wanted;
};

/* The linkage name, demangled, or the name. The caller frees it. */
static char *read_name(struct inlined *inlined, Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	const char *linkage = NULL;
	char *result = NULL;

	if (dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute))
		linkage = dwarf_formstring(&attribute);
	if (linkage)
		result = ss_name_demangle(linkage, &inlined->budget);
	if (!result)
		linkage = dwarf_diename(function);
	return result || !linkage ? result : strdup(linkage);
}

static void visit_call(struct inlined *inlined, Dwarf_Die *call)
{
	Dwarf_Attribute attribute;
	Dwarf_Die function;
	Dwarf_Word number = 0;
	Dwarf_Word file = 0;

	if (!dwarf_attr(call, DW_AT_abstract_origin, &attribute) ||
	    !dwarf_formref_die(&attribute, &function))
		return;
	Dwarf_Off offset = dwarf_dieoffset(&function);
	if (offset == inlined->last && !inlined->last_wanted)
		return;
	char *name = read_name(inlined, &function);
	inlined->last = offset;
	inlined->last_wanted = name && inlined->wanted(inlined->data, name);
	if (inlined->last_wanted) {
		if (dwarf_attr(call, DW_AT_call_line, &attribute))
			(void)dwarf_formudata(&attribute, &number); /* or 0 */
		if (dwarf_attr(call, DW_AT_call_file, &attribute))
			(void)dwarf_formudata(&attribute, &file); /* or 0 */
		inlined->found(inlined->data, name,
			       inlined->files ?
				       dwarf_filesrc(inlined->files, file, NULL, NULL) :
				       NULL,
			       (uint32_t)number);
	}
	free(name);
}

static bool has_code(unsigned tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_inlined_subroutine || tag == DW_TAG_namespace ||
	       tag == DW_TAG_module;
}

static void visit_children(struct inlined *inlined, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);
		if (++inlined->entries > ENTRIES_MAX)
			return;
		if (tag == DW_TAG_inlined_subroutine)
			visit_call(inlined, &die);
		if (has_code((unsigned)tag))
			visit_children(inlined, &die, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

void ss_dwarf_find_inlined(struct ss_dwarf *dwarf, ss_inlined_wanted *wanted,
			   ss_inlined_found *found, void *data)
{
	struct inlined inlined = {
		.dwarf = ss_dwarf_handle(dwarf),
		.wanted = wanted,
		.found = found,
		.data = data,
		.budget = SS_DEMANGLE_BUDGET,
	};
	Dwarf_Off offset = 0;
	Dwarf_Die unit;

	while (next_unit(inlined.dwarf, &offset, &unit) &&
	       inlined.entries <= ENTRIES_MAX) {
		size_t count;
		inlined.files = NULL;
		(void)dwarf_getsrcfiles(&unit, &inlined.files, &count); /* or NULL */
		visit_children(&inlined, &unit, 0);
	}
}
