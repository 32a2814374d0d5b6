/*
 * Names the frames of a snapshot and inserts the inlined ones. Every distinct address
 * is looked up once, however many frames share it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vector.h"
#include "model/session.h"
#include "model/snapshot.h"
#include "symbolize/answers.h"
#include "symbolize/demangle.h"
#include "symbolize/modules.h"
#include "symbolize/names.h"
#include "symbolize/perfmap.h"
#include "stacksnap.h"

struct inlined {
	const char *symbol;
	struct ss_location line;
};

/* Names of 240 KB have been seen. A file can make names overlap and be of any length, so
   those that are longer than usual are bounded all together. */
#define TEXT_MAX ((size_t)1 << 20)
#define TEXT_USUAL ((size_t)4096)
#define LONG_TEXTS_MAX ((size_t)64 << 20)

/* One call of ss_snapshot_symbolize(). */
struct work {
	struct ss_snapshot *snapshot;
	struct ss_session *session;
	unsigned flags;
	uint32_t process;	 /* number of its perf map, of the stack at hand */
	struct ss_names **names; /* by number of module; NULL: not looked for yet */
	struct ss_perfmaps perf_maps;
	struct ss_answers answers;
	SS_VECTOR(struct inlined) inlines;
	size_t demangle_budget;
	size_t long_texts_left; /* bytes */
};

static void work_deinit(struct work *work)
{
	free(work->names);
	ss_perfmaps_deinit(&work->perf_maps);
	ss_answers_deinit(&work->answers);
	ss_vector_free(&work->inlines);
}

/* Said of a module that was opened nowhere before: one of a recording. */
static void tell_missing(struct ss_module_impl *module)
{
	if (module->pub.path[0] != '/')
		return;
	if (module->build_id_size)
		ss_module_set_problem(module, "no file of this build was found");
	else
		ss_module_set_problem(module, "it has no build-id: its file cannot be "
					      "told from another");
}

/* The names of a frame's module, read on first use. NULL: there are none to be had. */
static struct ss_names *names_of(struct work *work, const struct ss_frame *frame)
{
	struct ss_module_impl *module = ss_module_impl(frame->module);
	bool numbered = frame->module_index >= 0 &&
			(size_t)frame->module_index < work->snapshot->modules.count;
	struct ss_names **known = numbered ? &work->names[frame->module_index] : NULL;
	struct ss_names *names = known ? *known : NULL;

	ss_session_note(work->session, frame->module_index);
	if (names)
		return names;
	if (!ss_session_skips(work->session, frame->module_index))
		names = ss_modules_find(work->session, module);
	if (names)
		ss_names_read(names, work->session, module, work->flags);
	if (names && !ss_names_found(names))
		tell_missing(module);
	if (known)
		*known = names;
	return names;
}

/* The beginning of a text, with what is left out. */
static const char *keep_start(struct work *work, const char *text, size_t size)
{
	_cleanup_free_ char *start = NULL;

	while (size && ((unsigned char)text[size] & 0xc0) == 0x80)
		size--; /* not within a letter of UTF-8 */
	if (asprintf(&start, "%.*s...(%zu more)", (int)size, text, strlen(text) - size) <
	    0)
		return NULL;
	return ss_intern_string(work->snapshot->strings, start);
}

/* The snapshot's copy of a text; of one that is too long the start, which says so. NULL
   without memory. */
static const char *keep_text(struct work *work, const char *text)
{
	size_t size = strlen(text);
	size_t max = TEXT_MAX;

	if (size > TEXT_USUAL && SS_MIN(size, TEXT_MAX) > work->long_texts_left)
		max = TEXT_USUAL;
	if (size > TEXT_USUAL && max == TEXT_MAX)
		work->long_texts_left -= SS_MIN(size, TEXT_MAX);
	return size > max ? keep_start(work, text, max) :
			    ss_intern_bytes(work->snapshot->strings, text, size);
}

/* False without memory; name may be NULL. */
static bool keep_symbol(struct work *work, const char *name, const char **ret)
{
	bool demangle = name && !(work->flags & SS_NO_DEMANGLE);
	_cleanup_free_ char *demangled =
		demangle ? ss_name_demangle(name, &work->demangle_budget) : NULL;

	if (!name)
		return true;
	*ret = keep_text(work, demangled ? demangled : name);
	return *ret != NULL;
}

static bool keep_line(struct work *work, struct ss_location line, struct ss_location *ret)
{
	if (work->flags & SS_NO_SOURCE)
		return true;
	*ret = line;
	if (line.file)
		ret->file = keep_text(work, line.file);
	return !line.file || ret->file;
}

/* The line of the address belongs to the innermost call; each function further out is
   where it calls the next one in. */
static bool keep_answer(struct work *work, const struct ss_name *name,
			struct ss_answer *answer)
{
	struct ss_location line = name->line;

	answer->first_inline = work->inlines.count;
	for (size_t i = 0; i < name->inline_count; i++) {
		struct inlined *inlined = ss_vector_push(&work->inlines);
		if (!inlined ||
		    !keep_symbol(work, name->inlines[i].name, &inlined->symbol) ||
		    !keep_line(work, line, &inlined->line))
			return false;
		answer->inline_count++;
		line = name->inlines[i].call;
	}
	answer->start = name->start;
	return keep_symbol(work, name->symbol, &answer->symbol) &&
	       keep_line(work, line, &answer->line);
}

/* The address in the process that a frame is looked up with. */
static uint64_t absolute_lookup(const struct ss_frame *frame)
{
	uint64_t offset = frame->module ? frame->offset : frame->area_offset;

	return frame->pc - (offset - frame->lookup_offset);
}

static uint64_t lookup_key(const struct ss_frame *frame)
{
	return frame->module ? frame->lookup_offset : absolute_lookup(frame);
}

/* An address that belongs to a file is the same in each process. */
static uint32_t process_of(const struct work *work, const struct ss_module *module)
{
	return module ? 0 : work->process;
}

/* Looks an address up that was not met before. False without memory. */
static bool add_answer(struct work *work, const struct ss_frame *frame)
{
	struct ss_answer answer = { .module = frame->module,
				    .address = lookup_key(frame),
				    .process = process_of(work, frame->module) };
	struct ss_names *names = frame->module ? names_of(work, frame) : NULL;
	struct ss_name name = {};
	struct ss_symbol symbol;

	if (names)
		ss_names_find(names, frame->lookup_offset, work->flags, &name);
	if (!name.symbol && ss_perfmaps_find(&work->perf_maps, work->process,
					     absolute_lookup(frame), &symbol)) {
		name.symbol = symbol.name;
		name.start = symbol.start;
		answer.absolute = true;
	}
	return keep_answer(work, &name, &answer) &&
	       ss_answers_add(&work->answers, &answer);
}

/* What is known of a frame; NULL: it was not met before. */
static const struct ss_answer *find_answer(const struct work *work,
					   const struct ss_frame *frame)
{
	return ss_answers_find(&work->answers, frame->module,
			       process_of(work, frame->module), lookup_key(frame));
}

/* The same, looked up if it was not. NULL: no memory. */
static const struct ss_answer *get_answer(struct work *work, const struct ss_frame *frame)
{
	const struct ss_answer *answer = find_answer(work, frame);

	if (answer || !add_answer(work, frame))
		return answer;
	return find_answer(work, frame);
}

/* Writes the inlined calls of a frame and the frame itself; the number of frames. */
static size_t write_frames(const struct work *work, const struct ss_frame *frame,
			   const struct ss_answer *answer, struct ss_frame *ret)
{
	for (size_t i = 0; i < answer->inline_count; i++) {
		const struct inlined *inlined =
			&work->inlines.items[answer->first_inline + i];
		ret[i] = *frame;
		ret[i].symbol = inlined->symbol;
		ret[i].symbol_offset = 0;
		ret[i].file = inlined->line.file;
		ret[i].line = inlined->line.line;
		ret[i].column = inlined->line.column;
		ret[i].inlined = true;
		ret[i].signal_frame = false;
		ret[i].source = SS_FROM_INLINE;
	}
	struct ss_frame *outer = &ret[answer->inline_count];
	*outer = *frame;
	outer->symbol = answer->symbol;
	uint64_t place = answer->absolute ? frame->pc : frame->offset;
	outer->symbol_offset = answer->symbol ? place - answer->start : 0;
	outer->file = answer->line.file;
	outer->line = answer->line.line;
	outer->column = answer->line.column;
	return answer->inline_count + 1;
}

static bool count_frames(struct work *work, const struct ss_stack *stack, size_t *ret)
{
	size_t count = stack->count;

	for (size_t i = 0; i < stack->count; i++) {
		const struct ss_answer *answer = get_answer(work, &stack->frames[i]);
		if (!answer)
			return false;
		count += answer->inline_count;
	}
	*ret = count;
	return true;
}

/* Two passes: an array that grew would be twice as large for deep stacks. */
static bool symbolize_stack(struct work *work, struct ss_stack *stack)
{
	struct ss_frame *frames;
	size_t count = 0;
	size_t at = 0;

	if (!count_frames(work, stack, &count))
		return false;
	frames = calloc(count ? count : 1, sizeof(*frames));
	if (!frames)
		return false;
	for (size_t i = 0; i < stack->count; i++) {
		const struct ss_frame *frame = &stack->frames[i];
		/* All of them are known since the count. */
		at += write_frames(work, frame, find_answer(work, frame), &frames[at]);
	}
	free(stack->frames);
	stack->frames = frames;
	stack->count = count;
	return true;
}

/* Names the variable that a lock is, or lies in. False without memory. */
static bool symbolize_place(struct work *work, struct ss_lock_place *place)
{
	struct ss_snapshot *snapshot = work->snapshot;
	struct ss_name name;

	if (place->module_index < 0)
		return true;
	const struct ss_frame frame = {
		.module = &snapshot->modules.items[place->module_index]->pub,
		.module_index = place->module_index,
	};
	struct ss_names *names = names_of(work, &frame);
	if (!names || !ss_names_find_data(names, place->offset, &name))
		return true;
	place->symbol_address = place->address - (place->offset - name.start);
	return keep_symbol(work, name.symbol, &place->symbol);
}

/* Where a function has called another with the address of a lock. False without memory. */
static bool symbolize_call(struct work *work, struct ss_lock_reference *reference)
{
	const struct ss_frame frame = {
		.module = &work->snapshot->modules.items[reference->module_index]->pub,
		.module_index = reference->module_index,
		.lookup_offset = reference->call_offset,
	};
	const struct ss_answer *answer = get_answer(work, &frame);

	if (!answer)
		return false;
	reference->call_file = answer->line.file;
	reference->call_line = answer->line.line;
	return true;
}

struct ss_error *ss_snapshot_symbolize(struct ss_snapshot *snapshot,
				       struct ss_session *session, unsigned flags)
{
	const unsigned known = SS_NO_INLINES | SS_NO_SOURCE | SS_NO_DEMANGLE;
	__attribute__((cleanup(work_deinit))) struct work work = {
		.snapshot = snapshot,
		.session = session,
		.flags = flags,
		.demangle_budget = SS_DEMANGLE_BUDGET,
		.long_texts_left = LONG_TEXTS_MAX,
	};
	bool whole = true;

	if (!snapshot || !session)
		return ss_error_new(SS_ERROR_INVALID, "no snapshot or no session");
	if (flags & ~known)
		return ss_error_new(SS_ERROR_INVALID, "unknown flags 0x%x",
				    flags & ~known);
	ss_modules_trim(session);
	work.names = calloc(snapshot->modules.count + 1, sizeof(struct ss_names *));
	if (!work.names || !ss_perfmaps_init(&work.perf_maps, snapshot))
		return ss_error_no_memory();
	for (size_t i = 0; i < snapshot->stacks.count && whole; i++) {
		work.process = snapshot->perf_map_of ? snapshot->perf_map_of[i] : 0;
		whole = symbolize_stack(&work, &snapshot->stacks.items[i]);
	}
	for (size_t i = 0; i < snapshot->places.count && whole; i++)
		whole = symbolize_place(&work, &snapshot->places.items[i]);
	for (size_t i = 0; i < snapshot->references.count && whole; i++) {
		if (snapshot->references.items[i].in_code)
			whole = symbolize_call(&work, &snapshot->references.items[i]);
	}
	ss_snapshot_recount(snapshot);
	return whole ? NULL : ss_error_no_memory();
}
