/*
 * Begins a new segment of a recording. Objects that still exist are defined again with
 * new numbers; the rest is dropped. This bounds the memory of a recorder and allows old
 * segments to be dropped from the file.
 */
#include <string.h>

#include "recording/define.h"

/* The tables of the previous segment. */
struct old {
	struct ss_idtable strings;
	struct ss_idtable frames;
	struct ss_idtable stacks;
	struct ss_idtable calls;
};

static void old_deinit(struct old *old)
{
	ss_idtable_deinit(&old->strings);
	ss_idtable_deinit(&old->frames);
	ss_idtable_deinit(&old->stacks);
	ss_idtable_deinit(&old->calls);
}

static struct old take_tables(struct ss_definer *definer)
{
	struct old old = { .strings = definer->strings,
			   .frames = definer->frames,
			   .stacks = definer->stacks,
			   .calls = definer->calls };

	definer->strings = (struct ss_idtable){ .hash = old.strings.hash };
	definer->frames = (struct ss_idtable){ .hash = old.frames.hash };
	definer->stacks = (struct ss_idtable){ .hash = old.stacks.hash };
	definer->calls = (struct ss_idtable){ .hash = old.calls.hash };
	definer->last.size = 0;
	definer->next_probe = 0;
	return old;
}

/* Copies a string, which has no NUL in the table; or returns NULL. */
static char *old_string(const struct old *old, uint32_t id)
{
	size_t size;

	if (id == 0)
		return NULL;
	const char *text = ss_idtable_key(&old->strings, id - 1, &size);
	return strndup(text, size);
}

/* A stack of the old tables. */
struct carried {
	uint32_t end;
	char *reason;
	SS_VECTOR(struct ss_frame_record) frames;
	SS_VECTOR(char *) texts; /* to which frames point */
};

static void carried_clear(struct carried *carried)
{
	for (size_t i = 0; i < carried->texts.count; i++)
		free(carried->texts.items[i]);
	carried->texts.count = 0;
	carried->frames.count = 0;
	free(carried->reason);
	carried->reason = NULL;
}

/* Copies a string of the old tables. False without memory. */
static bool carried_text(struct carried *carried, const struct old *old, uint32_t id,
			 const char **ret)
{
	char **slot = id ? ss_vector_push(&carried->texts) : NULL;

	if (slot)
		*slot = old_string(old, id);
	*ret = slot ? *slot : NULL;
	return *ret || !id;
}

static bool carried_add(struct carried *carried, const struct old *old, uint32_t id)
{
	struct ss_frame_record *frame = ss_vector_push(&carried->frames);
	struct ss_frame_key key;
	size_t size;

	if (!frame)
		return false;
	memcpy(&key, ss_idtable_key(&old->frames, id, &size), sizeof(key));
	*frame = (struct ss_frame_record){ .module = key.module,
					   .flags = key.flags,
					   .value = key.value,
					   .process = key.process,
					   .kind = (enum ss_frame_kind)key.kind,
					   .line = key.line };
	return carried_text(carried, old, key.area, &frame->area) &&
	       carried_text(carried, old, key.function, &frame->function) &&
	       carried_text(carried, old, key.file, &frame->file);
}

static bool carried_read(struct carried *carried, const struct old *old, uint32_t id)
{
	size_t size;
	const uint32_t *key = ss_idtable_key(&old->stacks, id, &size);

	carried_clear(carried);
	carried->end = key[SS_KEY_END];
	carried->reason = old_string(old, key[SS_KEY_REASON]);
	for (size_t i = SS_KEY_FRAMES; i < size / sizeof(*key); i++) {
		if (!carried_add(carried, old, key[i]))
			return false;
	}
	return true;
}

/* Marks what has ended but is still on a stack. */
static bool mark_needed(struct ss_definer *definer, const struct old *old,
			struct carried *carried, const struct ss_sample_record *samples,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!carried_read(carried, old, samples[i].stack))
			return false;
		for (size_t f = 0; f < carried->frames.count; f++) {
			const struct ss_frame_record *frame = &carried->frames.items[f];
			if (frame->kind != SS_FRAME_NATIVE)
				continue;
			if (frame->module != SS_ID_NONE)
				definer->modules.items.items[frame->module].needed = true;
			else
				definer->processes.items.items[frame->process].needed =
					true;
		}
	}
	return true;
}

static bool renew_list(struct ss_definer *definer, struct ss_defined_list *list,
		       enum ss_definition kind, enum ss_definition end_kind)
{
	list->next_local = 0;
	for (uint32_t i = 0; i < list->items.count; i++) {
		struct ss_defined *d = &list->items.items[i];
		bool ended = d->state == SS_DEFINED_ENDED;
		if (d->state == SS_DEFINED_FREE)
			continue;
		if (ended && !d->needed) {
			if (!ss_defined_list_forget(list, i))
				return false;
			continue;
		}
		d->needed = false;
		ss_definer_put(definer, kind, d);
		if (ended)
			ss_definer_end(definer, end_kind, i, d->end_ns);
	}
	return true;
}

static bool carry(struct ss_definer *definer, const struct old *old,
		  struct carried *carried, struct ss_sample_record *samples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ss_sample_record *s = &samples[i];
		if (!carried_read(carried, old, s->stack))
			return false;
		s->stack = ss_definer_stack(definer, carried->frames.items,
					    carried->frames.count,
					    (enum ss_end)carried->end, carried->reason);
		if (s->call == SS_ID_NONE)
			continue;
		size_t size = 0;
		const void *call = ss_idtable_key(&old->calls, s->call, &size);
		s->call = ss_definer_carry_call(definer, call, size);
	}
	return !definer->out.failed;
}

/* Marks processes that have ended and still have threads or modules. */
static void mark_processes(struct ss_definer *definer)
{
	const struct ss_defined_list *lists[] = { &definer->threads, &definer->modules };

	for (size_t l = 0; l < SS_ARRAY_SIZE(lists); l++) {
		for (size_t i = 0; i < lists[l]->items.count; i++) {
			const struct ss_defined *d = &lists[l]->items.items[i];
			if (d->state == SS_DEFINED_LIVE || d->needed)
				definer->processes.items.items[d->process].needed = true;
		}
	}
}

bool ss_definer_renew(struct ss_definer *definer, struct ss_sample_record *samples,
		      size_t count)
{
	_cleanup_(old_deinit) struct old old = take_tables(definer);
	struct carried carried = {};
	bool ok = mark_needed(definer, &old, &carried, samples, count);

	mark_processes(definer);
	ok = ok &&
	     renew_list(definer, &definer->processes, SS_DEFINE_PROCESS,
			SS_DEFINE_PROCESS_END) &&
	     renew_list(definer, &definer->threads, SS_DEFINE_THREAD,
			SS_DEFINE_THREAD_END) &&
	     renew_list(definer, &definer->modules, SS_DEFINE_MODULE,
			SS_DEFINE_MODULE_END) &&
	     carry(definer, &old, &carried, samples, count);
	carried_clear(&carried);
	ss_vector_free(&carried.frames);
	ss_vector_free(&carried.texts);
	return ok && !definer->out.failed;
}
