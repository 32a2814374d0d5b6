#include "base/text_stream.h"
#include "report/profile_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/snapshot.h"
#include "report/profile.h"
#include "data/recording.h"
#include "stacksnap/record.h"

void ss_load_frames_deinit(struct ss_load_frames *frames)
{
	free(frames->modules);
	free(frames->selected_modules);
	free(frames->place_frames);
	free(frames->stack_calls);
	free(frames->stack_selected);
	ss_vector_free(&frames->frames);
}

static bool translate_modules(struct ss_load_frames *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct ss_module *module =
			ss_recording_module(frames->recording, i)->module;
		frames->modules[i] =
			ss_profile_module(frames->profile, module, !frames->options->raw);
		if (frames->modules[i] == SS_ID_NONE)
			return false;
		if (frames->selected_modules && frames->options->selects_module)
			frames->selected_modules[i] = frames->options->selects_module(
				frames->options->data, module->path);
	}
	return true;
}

bool ss_load_frames_init(struct ss_load_frames *frames)
{
	size_t modules = ss_recording_module_count(frames->recording);
	size_t places = ss_recording_place_count(frames->recording);
	size_t stacks = ss_recording_stack_count(frames->recording);

	frames->modules = calloc(modules + 1, sizeof(*frames->modules));
	frames->place_frames = calloc(places + 1, sizeof(*frames->place_frames));
	frames->stack_calls = calloc(stacks + 1, sizeof(*frames->stack_calls));
	frames->stack_selected = calloc(stacks + 1, sizeof(*frames->stack_selected));
	if (frames->options->selects_module)
		frames->selected_modules =
			calloc(modules + 1, sizeof(*frames->selected_modules));
	return frames->modules && frames->place_frames && frames->stack_calls &&
	       frames->stack_selected &&
	       (frames->selected_modules || !frames->options->selects_module) &&
	       translate_modules(frames, modules);
}

static bool is_selected(const struct ss_load_frames *frames, uint32_t stack)
{
	const struct ss_recorded_stack *s = ss_recording_stack(frames->recording, stack);

	for (size_t i = 0; i < s->count; i++) {
		size_t count = 0;
		const struct ss_frame *frame =
			ss_recording_place(frames->recording, s->places[i], &count);
		if (count && frame->module_index >= 0 &&
		    frames->selected_modules[frame->module_index])
			return true;
	}
	return false;
}

bool ss_load_frames_wants(struct ss_load_frames *frames, uint32_t stack)
{
	if (!frames->selected_modules)
		return true;
	if (!frames->stack_selected[stack])
		frames->stack_selected[stack] = is_selected(frames, stack) ? 2 : 1;
	return frames->stack_selected[stack] == 2;
}

/* The label; without a name that has the build-id where the module's file is missing. All
   code of a function without a name has the label of its start. */
static char *name_of(const struct ss_frame *frame, bool raw)
{
	struct ss_frame start = *frame;

	if (frame->symbol)
		return ss_label_new(frame, false);
	if (!frame->module && frame->area) /* the offset in the area is not recorded */
		return ss_label_new_module(frame);
	if (frame->module && frame->function)
		start.offset = start.lookup_offset = frame->function;
	return raw || (frame->module && frame->module->problem) ?
		       ss_label_new_raw(&start) :
		       ss_label_new_place(&start);
}

/* From the start of the function, which may be known without a name. */
static uint64_t symbol_offset_of(const struct ss_frame *frame)
{
	const bool has_start = !frame->symbol && frame->module && frame->function &&
			       frame->function <= frame->offset;

	return has_start ? frame->offset - frame->function : frame->symbol_offset;
}

uint32_t ss_profile_add_frame(struct ss_profile *profile, const struct ss_frame *frame,
			      uint32_t module, bool raw)
{
	bool is_place = !frame->symbol && (frame->module || !frame->area);
	_cleanup_free_ char *name = name_of(frame, raw);
	_cleanup_free_ char *place = is_place ? ss_label_new_module(frame) : NULL;

	if (!name || (is_place && !place))
		return SS_ID_NONE;
	const struct ss_profile_function named = {
		.name = name,
		.place = place,
		.has_start = place && frame->module && frame->function,
		.module = module,
		.kind = frame->kind,
		.file = frame->kind != SS_FRAME_NATIVE ? frame->file : NULL,
	};
	uint32_t function = ss_profile_function(profile, &named);
	const struct ss_profile_frame key = {
		.function = function,
		.offset = frame->module ? frame->lookup_offset : frame->pc,
		.symbol_offset = symbol_offset_of(frame),
		.file = frame->file,
		.line = frame->line,
		.inlined = frame->inlined,
		.named = frame->symbol != NULL,
	};

	return function == SS_ID_NONE ? SS_ID_NONE : ss_profile_frame(profile, &key);
}

static uint32_t translate_frame(struct ss_load_frames *frames,
				const struct ss_frame *frame)
{
	const uint32_t module = frame->module_index >= 0 ?
					frames->modules[frame->module_index] :
					SS_ID_NONE;

	return ss_profile_add_frame(frames->profile, frame, module, frames->options->raw);
}

static bool translate_place(struct ss_load_frames *frames, uint32_t place)
{
	size_t begin = frames->frames.count;
	size_t count = 0;
	const struct ss_frame *found =
		ss_recording_place(frames->recording, place, &count);

	if (begin >= SS_ID_NONE - 1)
		return false;
	for (size_t i = 0; i <= count; i++) {
		uint32_t *slot = ss_vector_push(&frames->frames);
		if (!slot)
			return false;
		*slot = i ? translate_frame(frames, &found[i - 1]) : (uint32_t)count;
		if (*slot == SS_ID_NONE)
			return false;
	}
	frames->place_frames[place] = (uint32_t)begin + 1;
	return true;
}

/* A call of what is no function. */
static uint32_t begin_with(struct ss_load_frames *frames, uint32_t parent,
			   const struct ss_profile_function *named)
{
	struct ss_profile_frame key = { .named = true };
	uint32_t function = ss_profile_function(frames->profile, named);

	if (function == SS_ID_NONE)
		return SS_ID_NONE;
	key.function = function;
	uint32_t frame = ss_profile_frame(frames->profile, &key);
	return frame == SS_ID_NONE ? SS_ID_NONE :
				     ss_profile_call(frames->profile, parent, frame);
}

/* The labels of that key, or all, separated by blanks; NULL without memory. */
static char *labels_of(const struct ss_recording_info *info, const char *key)
{
	size_t length = strlen(key);
	struct ss_text_stream text;
	bool any = false;

	if (!ss_text_stream_open(&text))
		return NULL;
	for (size_t i = 0; i < info->label_count; i++) {
		const char *label = info->labels[i];
		if (length && (strncmp(label, key, length) != 0 || label[length] != '='))
			continue;
		(void)fprintf(text.out, "%s%s", any ? " " : "", label);
		any = true;
	}
	if (!any)
		(void)fprintf(text.out, "[no label%s%s]", length ? " " : "", key);
	return ss_text_stream_close(&text);
}

/* Where a stack is from, if that is wanted; else the root. */
static uint32_t begin_origin(struct ss_load_frames *frames)
{
	const struct ss_recording_info *info = ss_recording_info(frames->recording);
	const struct ss_load_options *options = frames->options;

	if (!options->by_host && !options->by_label)
		return 0;
	_cleanup_free_ char *label = options->by_host ?
					     strdup(info->host) :
					     labels_of(info, options->by_label);
	const struct ss_profile_function origin = { .name = label,
						    .module = SS_ID_NONE,
						    .is_origin = true };
	return label ? begin_with(frames, 0, &origin) : SS_ID_NONE;
}

uint32_t ss_load_frames_unsampled(struct ss_load_frames *frames)
{
	const struct ss_profile_function named = { .name = "[not sampled]",
						   .module = SS_ID_NONE,
						   .is_origin = true };
	uint32_t call = begin_origin(frames);

	return call == SS_ID_NONE ? call : begin_with(frames, call, &named);
}

/* Also of an incomplete one the reason in brackets. */
static uint32_t begin_stack(struct ss_load_frames *frames, enum ss_end end)
{
	char name[64];
	uint32_t call = begin_origin(frames);

	if (ss_end_is_outermost(end) || call == SS_ID_NONE)
		return call;
	(void)snprintf(name, sizeof(name), "[%s]", ss_end_name(end)); /* it fits */
	const struct ss_profile_function named = { .name = name,
						   .module = SS_ID_NONE,
						   .is_end = 1 + (uint64_t)end };
	return begin_with(frames, call, &named);
}

/* The frame of a place that is not inlined; NULL: there is none. */
static const struct ss_frame *outer_frame(const struct ss_load_frames *frames,
					  uint32_t place)
{
	size_t count = 0;
	const struct ss_frame *found =
		ss_recording_place(frames->recording, place, &count);

	return count ? &found[count - 1] : NULL;
}

/* Native frames for which calls of a runtime stand. */
static bool is_replaced(const struct ss_load_frames *frames, uint32_t place)
{
	const struct ss_frame *frame = outer_frame(frames, place);

	return frame && frame->replaced;
}

static bool is_python(const struct ss_load_frames *frames, uint32_t place)
{
	const struct ss_frame *frame = outer_frame(frames, place);

	return frame && frame->kind == SS_FRAME_PYTHON;
}

/* Frames of the interpreter itself and of the C library. */
static bool is_of_interpreter(const struct ss_load_frames *frames, uint32_t place)
{
	static const struct ss_languages python = { .kinds = 1u << SS_FRAME_PYTHON };
	const struct ss_frame *frame = outer_frame(frames, place);

	return frame && (frame->replaced || ss_frame_is_of_runtime(frame, &python));
}

/*
 * Places of a stack, from start to end, that are no calls of the profile: what the interpreter of Python
 * does for the innermost function is that function, and what has called the outermost one is nothing
 * of the program. An extension, and what it calls, are shown.
 */
struct hidden {
	size_t inner_start;
	size_t inner_end;
	size_t outer_start;
	size_t outer_end;
};

static struct hidden find_hidden(const struct ss_load_frames *frames,
				 const struct ss_recorded_stack *stack)
{
	size_t first = 0;
	size_t last = stack->count;
	struct hidden hidden = {};

	while (first < stack->count && !is_python(frames, stack->places[first]))
		first++;
	if (first == stack->count || frames->options->native || frames->options->unfolded)
		return hidden;
	while (!is_python(frames, stack->places[last - 1]))
		last--;
	hidden.inner_start = hidden.inner_end = first;
	while (hidden.inner_start > 0 &&
	       is_of_interpreter(frames, stack->places[hidden.inner_start - 1]))
		hidden.inner_start--;
	hidden.outer_start = hidden.outer_end = last;
	while (hidden.outer_end < stack->count &&
	       is_of_interpreter(frames, stack->places[hidden.outer_end]))
		hidden.outer_end++;
	return hidden;
}

static bool is_hidden(const struct hidden *hidden, size_t at)
{
	return (at >= hidden->inner_start && at < hidden->inner_end) ||
	       (at >= hidden->outer_start && at < hidden->outer_end);
}

/* Adds the calls of a stack, outermost first. A full profile gets a truncated stack. */
static uint32_t translate_stack(struct ss_load_frames *frames, uint32_t stack)
{
	const struct ss_recorded_stack *s = ss_recording_stack(frames->recording, stack);
	const struct hidden hidden = find_hidden(frames, s);
	uint32_t call = begin_stack(frames, s->end);

	if (call == SS_ID_NONE && ss_profile_is_full(frames->profile)) {
		frames->truncated = true;
		return 0;
	}
	for (size_t i = s->count; i-- > 0 && call != SS_ID_NONE;) {
		uint32_t place = s->places[i];
		if (!frames->place_frames[place] && !translate_place(frames, place))
			return SS_ID_NONE;
		const uint32_t *list =
			frames->frames.items + frames->place_frames[place] - 1;
		if (is_hidden(&hidden, i) ||
		    (!frames->options->native && is_replaced(frames, place)))
			continue;
		for (size_t f = list[0]; f > 0 && call != SS_ID_NONE; f--) {
			uint32_t next = ss_profile_call(frames->profile, call, list[f]);
			if (next == SS_ID_NONE && ss_profile_is_full(frames->profile)) {
				frames->truncated = true;
				return call;
			}
			call = next;
		}
	}
	return call;
}

uint32_t ss_load_frames_call(struct ss_load_frames *frames, uint32_t stack)
{
	if (!frames->stack_calls[stack]) {
		uint32_t call = translate_stack(frames, stack);
		if (call == SS_ID_NONE)
			return SS_ID_NONE;
		frames->stack_calls[stack] = call + 1;
	}
	return frames->stack_calls[stack] - 1;
}
