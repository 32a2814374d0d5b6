#include "report/profile.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "stacksnap/record.h"

/* The name of the module or area, to be put between brackets if it has none. */
static const char *module_name(const struct ss_frame *frame, bool *ret_brackets)
{
	const char *area = frame->area && frame->area[0] ? frame->area : "[unmapped]";

	*ret_brackets = !frame->module && area[0] != '[';
	if (frame->module)
		return ss_path_base(frame->module->path);
	return *ret_brackets ? ss_path_base(area) : area;
}

static char *format(const struct ss_frame *frame, const char *rest)
{
	bool brackets = false;
	const char *name = module_name(frame, &brackets);
	char *text = NULL;
	int size = asprintf(&text, "%s%s%s%s", brackets ? "[" : "", name,
			    brackets ? "]" : "", rest);

	return size < 0 ? NULL : text;
}

char *ss_label_new_module(const struct ss_frame *frame)
{
	if (frame->kind == SS_FRAME_JIT)
		return strdup("[jit]");
	if (frame->kind != SS_FRAME_NATIVE)
		return strdup(ss_frame_kind_name(frame->kind));
	return format(frame, "");
}

char *ss_label_new_place(const struct ss_frame *frame)
{
	uint64_t offset = frame->module ? frame->offset :
			  frame->area	? frame->area_offset :
					  frame->pc;
	char rest[sizeof("+0x0123456789abcdef")];

	(void)snprintf(rest, sizeof(rest), "+0x%" PRIx64, offset); /* it fits */
	return format(frame, rest);
}

char *ss_label_new_raw(const struct ss_frame *frame)
{
	_cleanup_free_ char *rest = NULL;

	if (!frame->module)
		return ss_label_new_place(frame);
	int size = asprintf(&rest, "+0x%" PRIx64 " [%s]", frame->lookup_offset,
			    frame->module->build_id ? frame->module->build_id :
						      "no build-id");
	if (size < 0)
		rest = NULL; /* undefined after a failure */
	return rest ? format(frame, rest) : NULL;
}

char *ss_label_new(const struct ss_frame *frame, bool raw)
{
	if (raw && frame->kind == SS_FRAME_NATIVE)
		return ss_label_new_raw(frame);
	if (!frame->symbol)
		return ss_label_new_place(frame);
	return strdup(frame->symbol);
}

static bool add_roots(struct ss_profile *profile)
{
	const struct ss_profile_call call = { SS_ID_NONE, SS_ID_NONE };
	const struct ss_profile_node node = { SS_ID_NONE, SS_ID_NONE };

	return ss_vector_push(&profile->node_of) &&
	       ss_idtable_add(&profile->calls, &call, sizeof(call), NULL) == 0 &&
	       ss_idtable_add(&profile->nodes, &node, sizeof(node), NULL) == 0;
}

struct ss_profile *ss_profile_new(void)
{
	_cleanup_(ss_profile_cleanup) struct ss_profile *profile =
		calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->strings = ss_intern_new();
	return profile->strings && add_roots(profile) ? take_ptr(profile) : NULL;
}

void ss_profile_free(struct ss_profile *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < profile->recordings.count; i++)
		ss_vector_free(&profile->recordings.items[i].ticks);
	for (size_t i = 0; i < profile->recordings.count; i++)
		free(ss_drop_const(profile->recordings.items[i].labels));
	for (size_t i = 0; i < profile->threads.count; i++) {
		ss_vector_free(&profile->threads.items[i].runs);
		free(profile->threads.items[i].wait);
	}
	ss_vector_free(&profile->recordings);
	ss_vector_free(&profile->totals);
	ss_vector_free(&profile->processes);
	ss_vector_free(&profile->threads);
	ss_vector_free(&profile->modules);
	ss_vector_free(&profile->lifetimes);
	ss_vector_free(&profile->waits);
	ss_vector_free(&profile->locks);
	for (size_t i = 0; i < profile->details.count; i++)
		free(profile->details.items[i]);
	ss_vector_free(&profile->details);
	ss_idtable_deinit(&profile->probes);
	ss_vector_free(&profile->events);
	ss_vector_free(&profile->event_args);
	ss_vector_free(&profile->traces);
	ss_vector_free(&profile->notes);
	ss_vector_free(&profile->node_of);
	ss_idtable_deinit(&profile->module_keys);
	ss_idtable_deinit(&profile->functions);
	ss_idtable_deinit(&profile->frames);
	ss_idtable_deinit(&profile->calls);
	ss_idtable_deinit(&profile->nodes);
	ss_idtable_deinit(&profile->tasks);
	ss_vector_free(&profile->task_threads);
	ss_intern_free(profile->strings);
	free(profile);
}

const char *ss_profile_text(struct ss_profile *profile, const char *text)
{
	return text ? ss_intern_string(profile->strings, text) : NULL;
}

/* What identifies a module; texts are interned. */
struct module_key {
	const char *path;
	const char *build_id;
	const char *problem;
	const char *hash;
	uint64_t by_file;
};

/* Modules with the same build-id are one module, whatever their paths, if the file was
   found. */
uint32_t ss_profile_module(struct ss_profile *profile, const struct ss_module *from,
			   bool with_problem)
{
	struct module_key key = {
		.path = ss_profile_text(profile, from->path),
		.build_id = ss_profile_text(profile, from->build_id),
		.problem = with_problem ? ss_profile_text(profile, from->problem) : NULL,
		.hash = ss_profile_text(profile, from->file.hash),
		.by_file = from->by_file,
	};
	const struct ss_module module = { .path = key.path,
					  .build_id = key.build_id,
					  .problem = key.problem,
					  .file.hash = key.hash,
					  .by_file = from->by_file };

	if (!key.path)
		return SS_ID_NONE;
	if (key.build_id && !key.problem)
		key.path = NULL;
	uint32_t number = ss_idtable_add(&profile->module_keys, &key, sizeof(key), NULL);
	if (number == SS_ID_NONE || number < profile->modules.count)
		return number;
	struct ss_module *slot = ss_vector_push(&profile->modules);
	if (!slot)
		return SS_ID_NONE;
	*slot = module;
	return number;
}

uint32_t ss_profile_function(struct ss_profile *profile,
			     const struct ss_profile_function *function)
{
	struct ss_profile_function key = *function;

	key.name = ss_profile_text(profile, function->name);
	key.place = ss_profile_text(profile, function->place);
	key.file = ss_profile_text(profile, function->file);
	return key.name && !key.place == !function->place &&
			       !key.file == !function->file ?
		       ss_idtable_add(&profile->functions, &key, sizeof(key), NULL) :
		       SS_ID_NONE;
}

uint32_t ss_profile_frame(struct ss_profile *profile,
			  const struct ss_profile_frame *frame)
{
	struct ss_profile_frame key = *frame;

	key.file = ss_profile_text(profile, frame->file);
	return ss_idtable_add(&profile->frames, &key, sizeof(key), NULL);
}

struct ss_frame ss_profile_frame_model(const struct ss_profile *profile,
				       const struct ss_profile_frame *frame)
{
	const struct ss_profile_function *function =
		ss_profile_function_at(profile, frame->function);
	bool placed = function->module != SS_ID_NONE;

	return (struct ss_frame){
		.pc = frame->offset,
		.module = placed ? &profile->modules.items[function->module] : NULL,
		.module_index = placed ? (int32_t)function->module : -1,
		.lookup_offset = frame->offset,
		.symbol = frame->named ? function->name : NULL,
		.symbol_offset = frame->symbol_offset,
		.file = frame->file,
		.line = (uint32_t)frame->line,
		.inlined = frame->inlined,
		.area = frame->named || function->place ? NULL : function->name,
		.kind = (enum ss_frame_kind)function->kind,
	};
}

uint32_t ss_profile_call(struct ss_profile *profile, uint32_t parent, uint32_t frame)
{
	const struct ss_profile_call key = { parent, frame };
	uint32_t call = ss_profile_is_full(profile) ?
				ss_idtable_find(&profile->calls, &key, sizeof(key)) :
				ss_idtable_add(&profile->calls, &key, sizeof(key), NULL);

	if (call == SS_ID_NONE || call < profile->node_of.count)
		return call;
	const struct ss_profile_node node = {
		profile->node_of.items[parent],
		(uint32_t)ss_profile_frame_at(profile, frame)->function,
	};
	uint32_t *node_of = ss_vector_push(&profile->node_of);
	if (!node_of)
		return SS_ID_NONE;
	*node_of = ss_idtable_add(&profile->nodes, &node, sizeof(node), NULL);
	return *node_of == SS_ID_NONE ? SS_ID_NONE : call;
}

static bool continues(const struct ss_profile_run *last, const struct ss_profile_run *run)
{
	return !run->event && last->tick + last->count == run->tick &&
	       last->call == run->call && last->state == run->state &&
	       last->wait == run->wait && last->argument == run->argument &&
	       last->detail == run->detail;
}

bool ss_profile_sample(struct ss_profile *profile, uint32_t thread,
		       const struct ss_profile_run *run)
{
	struct ss_profile_thread *t = &profile->threads.items[thread];
	struct ss_profile_run *last = t->runs.count ? &t->runs.items[t->runs.count - 1] :
						      NULL;

	if (!last || !continues(last, run)) {
		last = ss_vector_push(&t->runs);
		if (!last)
			return false;
		*last = *run;
	} else {
		last->count += run->count;
		last->cpu_ns += run->cpu_ns;
		last->ready_ns += run->ready_ns;
	}
	profile->samples += run->count;
	return true;
}

void ss_profile_weigh(struct ss_profile *profile, bool by_time)
{
	profile->by_time = by_time;
	profile->weight = 0;
	for (size_t t = 0; t < profile->threads.count; t++) {
		const struct ss_profile_thread *thread = &profile->threads.items[t];
		for (size_t r = 0; r < thread->runs.count; r++)
			profile->weight +=
				ss_profile_weight(profile, &thread->runs.items[r]);
	}
}

bool ss_profile_is_trace(const struct ss_profile *profile)
{
	return ss_all(profile->recordings.count, i,
		      profile->recordings.items[i].scope == SS_SCOPE_EVENTS);
}

bool ss_profile_note(struct ss_profile *profile, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	int size = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (size < 0) {
		text = NULL;
		return false;
	}
	const char **note = ss_vector_push(&profile->notes);
	if (!note)
		return false;
	*note = ss_profile_text(profile, text);
	if (!*note)
		profile->notes.count--;
	return *note;
}

static uint64_t last_step(const struct ss_profile_recording *recording)
{
	size_t count = recording->ticks.count;

	if (recording->period_ns)
		return recording->period_ns;
	return count > 1 ?
		       (recording->ticks.items[count - 1] - recording->ticks.items[0]) /
			       (count - 1) :
		       1000000; /* a snapshot has no duration: one that is visible */
}

uint64_t ss_profile_run_end(const struct ss_profile_recording *recording,
			    const struct ss_profile_run *run)
{
	size_t end = (size_t)run->tick + run->count;
	size_t count = recording->ticks.count;

	return end < count ? recording->ticks.items[end] :
			     recording->ticks.items[count - 1] + last_step(recording);
}

uint64_t ss_profile_duration(const struct ss_profile *profile)
{
	uint64_t end = 0;

	for (size_t i = 0; i < profile->recordings.count; i++) {
		const struct ss_profile_recording *r = &profile->recordings.items[i];
		if (r->ticks.count)
			end = SS_MAX(end,
				     r->ticks.items[r->ticks.count - 1] + last_step(r));
	}
	return end;
}
