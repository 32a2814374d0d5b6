/*
 * The frames of a stack for people.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "data/snapshot.h"
#include "report/print.h"
#include "report/names.h"
#include "report/text.h"
#include "report/profile.h"
#include "stacksnap.h"

/*
 * Finds deep recursion: a short sequence of frames that repeats many times.
 */

struct ss_repeat {
	size_t period; /* frames in the sequence */
	size_t times;  /* occurrences in a row; 0: no repetition */
};

enum {
	PERIOD_MAX = 24, /* enough for recursion through the loop of an interpreter */
	TIMES_MIN = 3,	 /* two may be a coincidence */
	HIDDEN_MIN = 6,	 /* with fewer, the gap in the numbers is not worth it */
};

static bool same_frame(const struct ss_frame *a, const struct ss_frame *b)
{
	if (a->pc != b->pc || a->inlined != b->inlined || a->module != b->module ||
	    a->signal_frame != b->signal_frame || a->kind != b->kind ||
	    (a->kind != SS_FRAME_NATIVE && (a->file != b->file || a->line != b->line)))
		return false;
	return a->symbol == b->symbol ||
	       (a->symbol && b->symbol && strcmp(a->symbol, b->symbol) == 0);
}

/* Returns how many frames, from index on, equal the frame that is period frames further
   out. */
static size_t equal_run(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			size_t index, size_t period)
{
	size_t i = index;

	while (i + period < thread->frame_count &&
	       same_frame(ss_snapshot_frame(snapshot, thread, i),
			  ss_snapshot_frame(snapshot, thread, i + period)))
		i++;
	return i - index;
}

/* Returns the repetition that begins at frame index, if it is long enough to replace it
   with one line. */
static struct ss_repeat repeat_find(const struct ss_snapshot *snapshot,
				    const struct ss_task *thread, size_t index)
{
	for (size_t period = 1; period <= PERIOD_MAX; period++) {
		size_t hidden = equal_run(snapshot, thread, index, period) / period;
		if (hidden + 1 >= TIMES_MIN && hidden * period >= HIDDEN_MIN)
			return (struct ss_repeat){ period, hidden + 1 };
	}
	return (struct ss_repeat){};
}

enum {
	SYMBOL_MAX = 160, /* bytes; C++ templates have names of up to 240 KB */
	PATH_MAX_SHOWN = 40,
	IMPORT_MAX_SHOWN = 60,
};

/* Writes a symbol, truncated unless verbose. symbol is freed; NULL: "?". */
static void write_symbol(char *symbol, bool verbose, FILE *out)
{
	_cleanup_free_ char *owned = symbol;
	size_t whole = owned ? strlen(owned) : 0;
	size_t size = verbose ? whole : ss_escape_cut(owned ? owned : "", SYMBOL_MAX);

	if (owned)
		owned[size] = '\0';
	ss_escape_write(owned ? owned : "?", NULL, out);
	if (size < whole)
		(void)fprintf(out, "...(%zu more)", whole - size);
}

static void write_called(const struct ss_frame *frame, bool verbose, FILE *out)
{
	if (frame->symbol || !frame->called)
		return;
	(void)fputs_unlocked(", called as ", out);
	write_symbol(strdup(frame->called), verbose, out);
}

static void write_name(const struct ss_frame *frame, bool verbose, FILE *out)
{
	if (frame->signal_frame) {
		(void)fputs_unlocked("<signal handler called>", out);
		return;
	}
	if (!frame->symbol) {
		ss_escape_write_owned(ss_label_new_place(frame), NULL, out);
		write_called(frame, verbose, out);
		return;
	}
	write_symbol(ss_label_new(frame, false), verbose, out);
	if (!frame->inlined && frame->kind == SS_FRAME_NATIVE)
		(void)fprintf(out, "+0x%" PRIx64, frame->symbol_offset);
}

/* Strips leading "./" and "../". Of a long path the last two components are left; all packages of a
   module of Python. */
static const char *short_path(const char *path)
{
	while (strncmp(path, "../", 3) == 0 || strncmp(path, "./", 2) == 0)
		path += path[1] == '/' ? 2 : 3;
	if (strlen(path) <= PATH_MAX_SHOWN)
		return path;
	const char *import = ss_path_import(path);
	if (import && strlen(import) <= IMPORT_MAX_SHOWN)
		return import;
	const char *base = ss_path_base(path);
	const char *parent = base > path ? base - 1 : path;
	while (parent > path && parent[-1] != '/')
		parent--;
	return parent;
}

/* Writes " at FILE:LINE", unless verbose with only the last components of a long path.
   Nothing if file is NULL. */
static void write_source(const char *file, uint32_t line, bool verbose, FILE *out)
{
	if (!file)
		return;
	(void)fputs_unlocked(" at ", out);
	ss_escape_write(verbose ? file : short_path(file), NULL, out);
	if (line)
		(void)fprintf(out, ":%" PRIu32, line);
}

void ss_text_write_call(const char *function, bool of_library, const char *file,
			uint32_t line, bool verbose, FILE *out)
{
	ss_escape_write(function, NULL, out);
	if (of_library && file)
		(void)fputs_unlocked(", called", out);
	write_source(file, line, verbose, out);
}

void ss_text_write_function(const struct ss_frame *frame, const char *file, uint32_t line,
			    const struct ss_format_options *options, FILE *out)
{
	write_symbol(ss_label_new(frame, options->raw), options->verbose, out);
	if (options->raw)
		return;
	write_called(frame, options->verbose, out);
	write_source(file, line, options->verbose, out);
}

static void write_module(const struct ss_frame *frame,
			 const struct ss_format_options *options, FILE *out)
{
	if (frame->inlined)
		(void)fputs_unlocked(" [inlined]", out);
	if (frame->source == SS_FROM_RETURN_ADDRESS)
		(void)fputs_unlocked(" [heuristic]", out);
	/* Without a symbol the label contains the module already. */
	bool native = frame->kind == SS_FRAME_NATIVE;
	if ((frame->inlined && native) || (!frame->symbol && !frame->signal_frame))
		return;
	ss_style_write(SS_STYLE_FAINT, options->color, out);
	(void)fputs_unlocked(native ? " (" : " [", out);
	ss_escape_write_owned(ss_label_new_module(frame), NULL, out);
	(void)fputc_unlocked(native ? ')' : ']', out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
}

void ss_text_write_frame(const struct ss_frame *frame,
			 const struct ss_format_options *options, FILE *out)
{
	if (options->raw && frame->kind == SS_FRAME_NATIVE) {
		ss_escape_write_owned(ss_label_new_raw(frame), NULL, out);
	} else {
		write_name(frame, options->verbose, out);
		write_source(frame->file, frame->line, options->verbose, out);
		write_module(frame, options, out);
	}
	(void)fputc_unlocked('\n', out);
}

static int number_width(size_t count)
{
	int width = 1;

	for (size_t largest = count ? count - 1 : 0; largest >= 10; largest /= 10)
		width++;
	return SS_MAX(width, 2);
}

static void write_repeat(const struct ss_repeat *repeat, int width,
			 const struct ss_format_options *options, FILE *out)
{
	ss_style_write(SS_STYLE_WARN, options->color, out);
	(void)fprintf(out, "  %*s the same ", width + 1, "...");
	if (repeat->period == 1)
		(void)fputs_unlocked("frame ", out);
	else
		(void)fprintf(out, "%zu frames ", repeat->period);
	(void)fprintf(out, "%s more times (-v shows all)\n",
		      ss_quantity_count(repeat->times - 1).text);
	ss_style_write(SS_STYLE_NONE, options->color, out);
}

/* Frames of a recursion that the snapshot leaves out. */
static void write_omitted(uint32_t omitted, int width,
			  const struct ss_format_options *options, FILE *out)
{
	ss_style_print(SS_STYLE_WARN, options->color, out,
		       "  %*s %s of the recursion (-n 0 shows all); it began in:\n",
		       width + 1, "...", ss_quantity_things(omitted, "more frame").text);
}

/* Why the stack ends: the kind of end, its name in brackets, and the reason for this
   thread, or else the remedy. A complete stack may have a reason, too. */
static void write_end(const struct ss_snapshot *snapshot, const struct ss_task *thread,
		      const struct ss_format_options *options, FILE *out)
{
	if (ss_end_is_outermost(thread->end) && !thread->reason)
		return;
	ss_style_write(SS_STYLE_WARN, options->color, out);
	(void)fputs_unlocked("  -- ", out);
	if (!ss_end_is_outermost(thread->end))
		(void)fprintf(out, "%s [%s]%s", ss_end_text(thread->end),
			      ss_end_name(thread->end), thread->reason ? ": " : "");
	if (thread->reason)
		ss_escape_write(thread->reason, NULL, out);
	else
		ss_end_write_remedy(thread->end, ss_snapshot_process(snapshot)->mode,
				    thread->stopped_ns > 0, options->max_stack, out);
	(void)fputc_unlocked('\n', out);
	ss_style_write(SS_STYLE_NONE, options->color, out);
}

/* The kernel frames of a blocked thread, innermost first, above its own frames. */
static void write_kernel_stack(const struct ss_task *thread, int width,
			       const struct ss_format_options *options, FILE *out)
{
	const char *text = thread->kernel_stack ? thread->kernel_stack : thread->wchan;

	while (text && *text) {
		const char *end = strchrnul(text, '\n');
		_cleanup_free_ char *line = strndup(text, (size_t)(end - text));
		ss_style_write(SS_STYLE_FAINT, options->color, out);
		(void)fprintf(out, "  %-*s ", width + 1, "--");
		if (line)
			ss_escape_write(line, NULL, out);
		(void)fputs_unlocked(" [kernel]\n", out);
		ss_style_write(SS_STYLE_NONE, options->color, out);
		text = *end ? end + 1 : end;
	}
}

static size_t count_omitted(const struct ss_snapshot *snapshot,
			    const struct ss_task *thread)
{
	size_t omitted = 0;

	for (size_t i = 0; i < thread->frame_count; i++)
		omitted += ss_snapshot_frame(snapshot, thread, i)->omitted;
	return omitted;
}

/* Whether that is why no thread has functions of the runtime: "missing:" says it once. */
static bool is_of_all(const struct ss_snapshot *snapshot, const char *reason)
{
	for (size_t i = 0; i < ss_snapshot_runtime_count(snapshot); i++) {
		const char *problem = ss_snapshot_runtime(snapshot, i)->problem;
		if (problem && strcmp(problem, reason) == 0)
			return true;
	}
	return false;
}

/* Frames of the runtime that executes the program are shown as one line, unless there are no others. A
   compiled program has the libraries of its language inside and outside of its own frames. */
struct native {
	struct ss_languages languages;
	bool hidden;
	size_t inner; /* compiled: how many frames are hidden, from the innermost on */
	size_t outer; /* and from which one on, to the outermost; 0: none */
};

/* Fewer frames of such a library are shown. */
enum { INNER_MIN = 4, OUTER_MIN = 3 };

/* How the loader or a runtime begins a program: _start, and the main() of Rust, which calls
   std::rt::lang_start(). */
static bool is_entry(const struct ss_snapshot *snapshot, const struct ss_task *task,
		     size_t index)
{
	const char *symbol = ss_snapshot_frame(snapshot, task, index)->symbol;
	const char *inner = index ? ss_snapshot_frame(snapshot, task, index - 1)->symbol :
				    NULL;

	return symbol && (strcmp(symbol, "_start") == 0 ||
			  (strcmp(symbol, "main") == 0 && inner &&
			   strncmp(inner, "std::rt::", strlen("std::rt::")) == 0));
}

static bool is_compiled(const struct ss_snapshot *snapshot, const struct ss_task *task,
			size_t index)
{
	const struct ss_frame *frame = ss_snapshot_frame(snapshot, task, index);

	return !frame->omitted && ss_frame_is_of_c_library(frame);
}

/* Of the library's functions that lead to a wait, the one that the program has called is shown. If the
   thread runs, all are. */
static void find_compiled(const struct ss_snapshot *snapshot, const struct ss_task *task,
			  struct native *native)
{
	size_t inner = 0;
	size_t outer = task->frame_count;

	while (inner < task->frame_count && is_compiled(snapshot, task, inner))
		inner++;
	if (inner == task->frame_count)
		return;
	while (is_compiled(snapshot, task, outer - 1) ||
	       is_entry(snapshot, task, outer - 1))
		outer--;
	if (task->wait && inner > INNER_MIN)
		native->inner = inner - 1;
	if (task->frame_count - outer >= OUTER_MIN)
		native->outer = outer;
}

static bool is_native(const struct ss_snapshot *snapshot, const struct ss_task *task,
		      const struct native *native, size_t index)
{
	const struct ss_frame *frame = ss_snapshot_frame(snapshot, task, index);

	return !frame->omitted && ss_frame_is_of_runtime(frame, &native->languages);
}

static bool is_of_library(const struct native *native, const struct ss_frame *frame)
{
	return ss_frame_is_of_library(frame) ||
	       (native->languages.go && ss_frame_is_of_go_library(frame));
}

/* What calls the functions of a program in Go: a goroutine may be all of the library. */
static void find_go_callers(const struct ss_snapshot *snapshot,
			    const struct ss_task *task, struct native *native)
{
	size_t outer = task->frame_count;

	while (outer &&
	       (is_native(snapshot, task, native, outer - 1) ||
		is_of_library(native, ss_snapshot_frame(snapshot, task, outer - 1))))
		outer--;
	if (task->frame_count - outer >= OUTER_MIN)
		native->outer = outer;
}

static struct native native_find(const struct ss_snapshot *snapshot,
				 const struct ss_task *task,
				 const struct ss_format_options *options)
{
	struct native native = { .languages = ss_task_languages(snapshot, task) };
	const bool shown = options->native || options->verbose || options->raw;

	for (size_t i = 0; i < task->frame_count && !shown && !native.hidden; i++)
		native.hidden = !is_native(snapshot, task, &native, i);
	if (native.hidden && !native.languages.kinds && !native.languages.go)
		find_compiled(snapshot, task, &native);
	if (native.hidden && native.languages.go)
		find_go_callers(snapshot, task, &native);
	return native;
}

/* Where the program waits in its own language. */

/* Functions with which other functions of the library of Java wait. */
static bool parks(const struct ss_frame *frame)
{
	static const char *const starts[] = {
		"jdk.internal.misc.Unsafe.",
		"sun.misc.Unsafe.",
		"java.util.concurrent.locks.",
		"java.util.concurrent.ForkJoinPool.managedBlock",
		"java.util.concurrent.ForkJoinPool.unmanagedBlock",
	};

	return ss_any(SS_ARRAY_SIZE(starts), i,
		      strncmp(frame->symbol, starts[i], strlen(starts[i])) == 0);
}

/* "com.zaxxer.hikari." of "com.zaxxer.hikari.util.ConcurrentBag.borrow": how long the package of a lock
   is. 0: there is none. */
static size_t lock_package(const struct ss_task *thread)
{
	enum { PARTS = 3 };
	const struct ss_wait *wait = thread->wait;
	const char *at =
		wait && wait->purpose == SS_PURPOSE_LOCK ? wait->purpose_function : NULL;

	for (int i = 0; at && i < PARTS; i++) {
		at = strchr(at, '.');
		at = at ? at + 1 : NULL;
	}
	return at ? (size_t)(at - wait->purpose_function) : 0;
}

size_t ss_text_find_call(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 size_t *ret_program)
{
	const size_t package = lock_package(thread);
	size_t called = thread->frame_count;

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->kind == SS_FRAME_NATIVE || !frame->symbol)
			continue;
		const bool of_lock = package && strncmp(frame->symbol,
							thread->wait->purpose_function,
							package) == 0;
		if (!of_lock && !ss_frame_is_of_library(frame)) {
			*ret_program = i;
			return called < i ? called : i;
		}
		called = i;
	}
	/* A thread of the library, whose innermost function tells more. */
	for (size_t i = 0; i < called; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (frame->kind != SS_FRAME_NATIVE && frame->symbol && !parks(frame))
			called = i;
	}
	*ret_program = called;
	return called;
}

size_t ss_text_find_wait(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 size_t *ret_program)
{
	const struct ss_wait *wait = thread->wait;
	const bool called = wait && wait->kind != SS_WAIT_STOPPED &&
			    wait->kind != SS_WAIT_PTRACE &&
			    wait->kind != SS_WAIT_PAGE_FAULT;

	return called ? ss_text_find_call(snapshot, thread, ret_program) :
			thread->frame_count;
}

/* Of functions of the language's library that lead to a wait, the one that the program has called is
   shown; of a thread of the library, the one that tells most. */
static size_t count_inner(const struct ss_snapshot *snapshot, const struct ss_task *task,
			  const struct native *native)
{
	bool library = false;
	size_t program = 0;
	size_t count = 0;

	for (; count < task->frame_count; count++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, task, count);
		if (!is_native(snapshot, task, native, count) &&
		    (frame->omitted || !is_of_library(native, frame)))
			break;
		library = !is_native(snapshot, task, native, count);
	}
	const bool lock = task->wait && task->wait->purpose == SS_PURPOSE_LOCK;
	if (count < task->frame_count && !lock)
		return count - library;
	const size_t called = native->languages.go ?
				      task->frame_count :
				      ss_text_find_wait(snapshot, task, &program);
	if (called < task->frame_count)
		return SS_MAX(called, count < task->frame_count ? count - library : 0);
	return count < task->frame_count ? count - library : 0;
}

static size_t count_run(const struct ss_snapshot *snapshot, const struct ss_task *task,
			const struct native *native, size_t index)
{
	size_t count = 0;

	while (index + count < task->frame_count &&
	       is_native(snapshot, task, native, index + count))
		count++;
	return count;
}

/* How many frames from index on are hidden. If the thread runs, the innermost one tells what it does,
   and a single one is as good as the line that would replace it. */
static size_t count_native(const struct ss_snapshot *snapshot, const struct ss_task *task,
			   const struct native *native, size_t index)
{
	const bool runs = task->kind == SS_TASK_THREAD && !task->wait;

	if (index == 0 && native->inner)
		return native->inner;
	if (native->outer && index == native->outer)
		return task->frame_count - index;
	if (!native->hidden || (index == 0 && runs))
		return 0;
	const size_t count = count_run(snapshot, task, native, index);
	const size_t inner = index == 0 && task->kind != SS_TASK_ASYNCIO ?
				     count_inner(snapshot, task, native) :
				     0;
	return inner > count ? inner : count == 1 && !native->languages.go ? 0 : count;
}

static void write_native(size_t count, size_t number, int width, bool of_runtime,
			 const struct ss_format_options *options, FILE *out)
{
	const char *what = of_runtime ? "runtime frame" : "native frame";

	ss_style_print(SS_STYLE_FAINT, options->color, out, "  #%-*zu [%s]\n", width,
		       number, ss_quantity_things(count, what).text);
}

void ss_text_write_frames(const struct ss_snapshot *snapshot,
			  const struct ss_task *thread,
			  const struct ss_format_options *options, FILE *out)
{
	const struct native native = native_find(snapshot, thread, options);
	size_t omitted = count_omitted(snapshot, thread);
	int width = number_width(thread->frame_count + omitted);
	struct ss_repeat repeat = {};
	size_t until = 0; /* end of the first occurrence of repeat */

	write_kernel_stack(thread, width, options, out);
	omitted = 0;
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		const size_t hidden =
			repeat.times ? 0 : count_native(snapshot, thread, &native, i);
		if (hidden) {
			write_native(
				hidden, i + omitted, width,
				native.languages.go ||
					hidden > count_run(snapshot, thread, &native, i),
				options, out);
			i += hidden - 1;
			continue;
		}
		if (!options->verbose && repeat.times == 0) {
			repeat = repeat_find(snapshot, thread, i);
			until = i + repeat.period;
		}
		if (frame->omitted)
			write_omitted(frame->omitted, width, options, out);
		omitted += frame->omitted;
		(void)fprintf(out, "  #%-*zu ", width, i + omitted);
		ss_text_write_frame(frame, options, out);
		if (repeat.times && i + 1 == until) {
			write_repeat(&repeat, width, options, out);
			i += repeat.period * (repeat.times - 1);
			repeat = (struct ss_repeat){};
		}
	}
	write_end(snapshot, thread, options, out);
	if (thread->native_reason && !is_of_all(snapshot, thread->native_reason)) {
		ss_style_write(SS_STYLE_WARN, options->color, out);
		(void)fputs_unlocked("  -- native frames only: ", out);
		ss_escape_write(thread->native_reason, NULL, out);
		(void)fputc_unlocked('\n', out);
		ss_style_write(SS_STYLE_NONE, options->color, out);
	}
	if (ss_end_has_guess(snapshot, thread))
		ss_style_print(SS_STYLE_WARN, options->color, out, "%s",
			       "  -- " SS_END_GUESS_TEXT "\n");
}

/* Functions of profiles ---------------------------------------------------------- */

void ss_text_profile_share(uint64_t part, uint64_t whole, FILE *out)
{
	(void)fprintf(out, "%6.1f %%",
		      whole ? 100.0 * (double)part / (double)whole : 0.0);
}

void ss_text_profile_name(const struct ss_profile *profile, uint64_t function,
			  const struct ss_format_options *options, FILE *out)
{
	const struct ss_profile_function *f = ss_profile_function_at(profile, function);

	write_symbol(strdup(f->name), options->verbose, out);
	if (f->module == SS_ID_NONE || f->place) /* it contains the module */
		return;
	const char *base = ss_path_base(profile->modules.items[f->module].path);
	(void)fputs(" (", out);
	ss_escape_write(base, NULL, out);
	(void)fputc(')', out);
}

void ss_text_profile_function(const struct ss_condensed *condensed, uint64_t function,
			      const struct ss_places *places,
			      const struct ss_format_options *options, FILE *out)
{
	if (places->count == 1) {
		ss_text_profile_name(condensed->original, places->first, options, out);
		return;
	}
	if (places->count == 0) {
		ss_text_profile_name(&condensed->profile, function, options, out);
		return;
	}
	ss_escape_write(ss_profile_function_at(&condensed->profile, function)->name, NULL,
			out);
	(void)fprintf(out, " (no symbols: %s)",
		      ss_quantity_things(places->count, "address").text);
}

void ss_text_profile_heading(const char *text, const struct ss_format_options *options,
			     FILE *out)
{
	(void)fputc('\n', out);
	ss_style_print(SS_STYLE_STRONG, options->color, out, "%s", text);
	(void)fputc('\n', out);
}
