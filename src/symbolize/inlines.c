#include "symbolize/lines.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vector.h"
#include "symbolize/symtab.h"

/* DEPTH_MAX also limits the work: without DW_AT_sibling, which Clang omits, libdw skips
   each entry once for each of its ancestors. */
enum { DEPTH_MAX = 128, VISITS_MAX = 1 << 24, SCOPES_MAX = 1 << 22 };

/* No compiler produces such units, but a tree of one-byte entries could be that large. */
enum { UNIT_SIZE_MAX = 128 << 20 };

/* A function or inlined call that has code. */
struct scope {
	Dwarf_Die die;
	uint64_t start;
	uint32_t parent; /* enclosing scope, or SS_SEGMENT_NONE */
	bool inlined;
};

struct ss_scopes {
	SS_VECTOR(struct scope) items;
	struct ss_segments segments; /* the innermost scope at an address */
};

void ss_scopes_free(struct ss_scopes *scopes)
{
	if (!scopes)
		return;
	ss_vector_free(&scopes->items);
	ss_segments_free(&scopes->segments);
	free(scopes);
}

struct level {
	Dwarf_Die die;
	uint32_t scope;
};

struct walk {
	struct ss_scopes *scopes;
	SS_VECTOR(struct ss_range) ranges;
	struct level levels[DEPTH_MAX];
	size_t depth;
};

static void walk_free(struct walk *walk)
{
	ss_vector_free(&walk->ranges);
	free(walk);
}

SS_DEFINE_CLEANUP(struct walk, walk, walk_free)

/* Adds a function or inlined call. Returns its number, or SS_SEGMENT_NONE if it has no
   code, as in abstract instances and declarations. */
static uint32_t add_scope(struct walk *walk, Dwarf_Die *die, uint32_t parent)
{
	uint32_t number = (uint32_t)walk->scopes->items.count;
	uint64_t lowest = UINT64_MAX;
	Dwarf_Addr base;
	Dwarf_Addr start;
	Dwarf_Addr end;
	ptrdiff_t next = 0;

	if (number >= SCOPES_MAX)
		return SS_SEGMENT_NONE;
	while ((next = dwarf_ranges(die, next, &base, &start, &end)) > 0) {
		struct ss_range *range = NULL;
		if (start && end > start && walk->ranges.count < SCOPES_MAX)
			range = ss_vector_push(&walk->ranges);
		if (!range)
			continue;
		*range = (struct ss_range){ start, end, number };
		lowest = SS_MIN(lowest, start);
	}
	if (lowest == UINT64_MAX)
		return SS_SEGMENT_NONE;
	struct scope *scope = ss_vector_push(&walk->scopes->items);
	if (!scope)
		return SS_SEGMENT_NONE;
	*scope = (struct scope){ .die = *die, .start = lowest, .parent = parent };
	scope->inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	return number;
}

/* Adds an entry that has code. Returns whether its children may have code. */
static bool visit(struct walk *walk, Dwarf_Die *die, uint32_t *scope)
{
	uint32_t added;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_entry_point:
		added = add_scope(walk, die, *scope);
		if (added != SS_SEGMENT_NONE)
			*scope = added;
		return added != SS_SEGMENT_NONE;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return true;
	default:
		return false;
	}
}

/* A sibling that refers backwards would be an endless loop. */
static bool next_sibling(Dwarf_Die *die)
{
	Dwarf_Die next;

	if (dwarf_siblingof(die, &next) != 0 ||
	    dwarf_dieoffset(&next) <= dwarf_dieoffset(die))
		return false;
	*die = next;
	return true;
}

static void walk_unit(struct walk *walk, Dwarf_Die *unit)
{
	size_t visits = 0;

	walk->levels[0].scope = SS_SEGMENT_NONE;
	walk->depth = dwarf_child(unit, &walk->levels[0].die) == 0 ? 1 : 0;
	while (walk->depth && visits++ < VISITS_MAX) {
		struct level *level = &walk->levels[walk->depth - 1];
		uint32_t scope = level->scope;
		Dwarf_Die child;
		if (visit(walk, &level->die, &scope) &&
		    dwarf_child(&level->die, &child) == 0) {
			/* No compiler nests this deeply, and backtracking would take
			   long. */
			if (walk->depth == DEPTH_MAX)
				return;
			walk->levels[walk->depth++] = (struct level){ child, scope };
			continue;
		}
		while (walk->depth && !next_sibling(&walk->levels[walk->depth - 1].die))
			walk->depth--;
	}
}

static bool is_walkable(Dwarf_Die *unit)
{
	Dwarf_Off start = dwarf_dieoffset(unit);
	Dwarf_Off next;
	size_t header;

	/* The header precedes the DIE and has the offset of the next unit. */
	return dwarf_cuoffset(unit) <= start &&
	       dwarf_next_unit(dwarf_cu_getdwarf(unit->cu), start - dwarf_cuoffset(unit),
			       &next, &header, NULL, NULL, NULL, NULL, NULL, NULL) == 0 &&
	       next - start <= UNIT_SIZE_MAX;
}

static struct ss_scopes *build_scopes(Dwarf_Die *unit)
{
	struct ss_scopes *scopes = calloc(1, sizeof(*scopes));
	_cleanup_(walk_cleanup) struct walk *walk = calloc(1, sizeof(*walk));

	if (!scopes || !walk || !is_walkable(unit))
		return scopes;
	walk->scopes = scopes;
	walk_unit(walk, unit);
	/* Outer scopes have lower numbers, so that of equal starts the inner one wins.
	   Without memory no inlined calls are shown. */
	if (ss_ranges_sort(walk->ranges.items, walk->ranges.count))
		(void)ss_segments_build(&scopes->segments, walk->ranges.items,
					walk->ranges.count);
	return scopes;
}

/* An integer attribute of this DIE itself; 0: it has none. */
static uint64_t number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0)
		return 0;
	return value;
}

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	if (!name)
		name = dwarf_formstring(
			dwarf_attr_integrate(die, DW_AT_name, &attribute));
	return name;
}

static struct ss_location call_of(struct ss_unit *unit, Dwarf_Die *die)
{
	uint64_t file = number_of(die, DW_AT_call_file);
	struct ss_location call = {
		.line = (uint32_t)number_of(die, DW_AT_call_line),
		.column = (uint32_t)number_of(die, DW_AT_call_column),
	};
	Dwarf_Files *files;
	size_t count;

	if (dwarf_getsrcfiles(&unit->die, &files, &count) == 0 && file < count)
		call.file = dwarf_filesrc(files, (size_t)file, NULL, NULL);
	return call;
}

size_t ss_unit_find_inlines(struct ss_unit *unit, uint64_t address, bool calls,
			    struct ss_inline ret[SS_INLINES_MAX], const char **function,
			    uint64_t *function_start)
{
	size_t count = 0;
	uint32_t number;

	if (!unit->scopes)
		unit->scopes = build_scopes(&unit->die);
	*function = NULL;
	number = unit->scopes ? ss_segments_find(&unit->scopes->segments, address) :
				SS_SEGMENT_NONE;
	while (number != SS_SEGMENT_NONE && number < unit->scopes->items.count) {
		struct scope *scope = &unit->scopes->items.items[number];
		if (!scope->inlined) {
			*function = name_of(&scope->die);
			*function_start = scope->start;
			break;
		}
		if (count < SS_INLINES_MAX) {
			struct ss_inline *found = &ret[count++];
			*found = (struct ss_inline){ .name = name_of(&scope->die) };
			if (calls)
				found->call = call_of(unit, &scope->die);
		}
		number = scope->parent;
	}
	return count;
}
