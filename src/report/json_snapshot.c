/*
 * stacksnap-snapshot/1, see stacksnap-json(5): one line for each document.
 */
#include <stdlib.h>

#include "base/error.h"
#include "report/crash.h"
#include "report/group.h"
#include "report/json.h"
#include "report/names.h"
#include "report/text.h"
#include "data/heap.h"

void ss_json_frame(struct ss_json *json, const struct ss_frame *frame, bool numbered)
{
	const struct ss_module *module = frame->module;

	ss_json_open(json, NULL, '{');
	ss_json_members(json, &ss_frame_schema, frame, numbered ? SS_SHOW_NUMBERED : 0);
	if (!numbered) {
		ss_json_text(json, "module", module ? module->path : NULL);
		ss_json_text(json, "build_id", module ? module->build_id : NULL);
	}
	ss_json_close(json, '}');
}

void ss_json_frames(struct ss_json *json, const char *key,
		    const struct ss_snapshot *snapshot, const struct ss_task *task,
		    bool numbered)
{
	if (!task) {
		ss_json_null(json, key);
		return;
	}
	ss_json_open(json, key, '[');
	for (size_t i = 0; i < task->frame_count; i++)
		ss_json_frame(json, ss_snapshot_frame(snapshot, task, i), numbered);
	ss_json_close(json, ']');
}

static void write_frames(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 const struct ss_format_options *options, FILE *out)
{
	struct ss_json json = { .out = out };

	(void)options;
	for (size_t i = 0; i < thread->frame_count; i++)
		ss_json_frame(&json, ss_snapshot_frame(snapshot, thread, i), true);
}

void ss_json_waits_in(struct ss_json *json, const struct ss_snapshot *snapshot,
		      const struct ss_task *thread)
{
	size_t program = 0;
	size_t called = ss_text_find_wait(snapshot, thread, &program);

	if (called >= thread->frame_count) {
		ss_json_null(json, "waits_in");
		return;
	}
	const struct ss_frame *caller = ss_snapshot_frame(snapshot, thread, program);
	ss_json_open(json, "waits_in", '{');
	ss_json_text(json, "function",
		     ss_snapshot_frame(snapshot, thread, called)->symbol);
	ss_json_text(json, "caller", caller->symbol);
	ss_json_text(json, "file", caller->file);
	ss_json_signed_if(json, "line", caller->line, caller->line);
	ss_json_close(json, '}');
}

/* Whether another element may be written; otherwise it is counted. */
static bool has_room(struct ss_json *json)
{
	bool room = !json->max_size || (uint64_t)ftello(json->out) < json->max_size;

	json->left_out += !room;
	return room;
}

/* Equal stacks are written once if there is a limit. */
static void write_stack(struct ss_json *json, const struct ss_task *thread, bool is_crash,
			struct ss_stack_cache *cache)
{
	if (json->max_size && !is_crash && ss_stack_cache_has_written(cache, thread)) {
		ss_json_null(json, "frames");
		return;
	}
	ss_json_open(json, "frames", '[');
	ss_stack_cache_write(cache, thread, json->out);
	ss_json_close(json, ']');
}

static void write_thread(struct ss_json *json, const struct ss_snapshot *snapshot,
			 const struct ss_task *thread, struct ss_stack_cache *cache)
{
	const struct ss_crash *crash = &ss_snapshot_process(snapshot)->crash;
	bool is_crash = crash->signal && crash->tid == thread->tid;

	if (!is_crash && !has_room(json))
		return;
	_cleanup_free_ char *incomplete = ss_missing_new(snapshot, thread);
	ss_json_open(json, NULL, '{');
	ss_json_members(json, &ss_task_schema, thread,
			SS_SHOW_THREAD | SS_SHOW_CAPTURED | SS_SHOW_END | SS_SHOW_STACK);
	ss_json_text(json, "incomplete", incomplete);
	ss_json_waits_in(json, snapshot, thread);
	write_stack(json, thread, is_crash, cache);
	ss_json_close(json, '}');
}

void ss_json_doing(struct ss_json *json, const struct ss_task *const *tasks, size_t count)
{
	const struct ss_task *first = *tasks;
	const bool one = count == 1 || first->kind == SS_TASK_ASYNCIO;
	uint64_t longest = 0;

	for (size_t i = 0; i < count; i++)
		longest = SS_MAX(longest, tasks[i]->waiting_ns);
	ss_json_members(json, &ss_task_schema, first, SS_SHOW_DOING | SS_SHOW_END);
	ss_json_signed_if(json, "waiting_ns", longest, (int64_t)longest);
	ss_json_signed_if(json, "tid", first->tid && one, first->tid);
}

/* A task of asyncio, or goroutines that do the same. */
static void write_tasks(struct ss_json *json, const struct ss_snapshot *snapshot,
			const struct ss_task *const *tasks, size_t count)
{
	const struct ss_task *first = *tasks;

	if (!has_room(json))
		return;
	ss_json_open(json, NULL, '{');
	if (first->kind == SS_TASK_ASYNCIO) {
		ss_json_members(json, &ss_task_schema, first,
				SS_SHOW_OBJECT | SS_SHOW_AWAITED);
		ss_json_bool(json, "awaits_all",
			     first->awaited_count && first->awaits_all);
	} else {
		ss_json_unsigned(json, "count", count);
		ss_json_open(json, "ids", '[');
		for (size_t i = 0; i < count && (i == 0 || has_room(json)); i++)
			ss_json_unsigned(json, NULL, tasks[i]->id);
		ss_json_close(json, ']');
	}
	ss_json_doing(json, tasks, count);
	ss_json_members(json, &ss_task_schema, first, SS_SHOW_STACK);
	ss_json_frames(json, "frames", snapshot, first, true);
	ss_json_close(json, '}');
}

/* Arrays; goroutines are null if there is no Go program, or it was not looked at. */
bool ss_json_tasks(struct ss_json *json, const struct ss_snapshot *snapshot, bool blocked)
{
	const struct ss_task_coverage *go =
		ss_snapshot_task_coverage(snapshot, SS_TASK_GOROUTINE);
	const struct ss_task_coverage *asyncio =
		ss_snapshot_task_coverage(snapshot, SS_TASK_ASYNCIO);
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_GOROUTINE, true);

	if (!grouping)
		return false;
	if (grouping->count == 0) {
		ss_json_null(json, "goroutines");
	} else {
		ss_json_open(json, "goroutines", '[');
		for (size_t i = 0; i < grouping->count; i++) {
			const struct ss_group *group = &grouping->groups[i];
			if (!blocked || (*group->members)->blocked ||
			    (*group->members)->endless)
				write_tasks(json, snapshot, group->members, group->count);
		}
		ss_json_close(json, ']');
	}
	ss_json_unsigned(json, "goroutines_unread", go->unread);
	ss_json_text(json, "goroutines_problem", go->problem);
	ss_json_open(json, "tasks", '[');
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO); i++) {
		const struct ss_task *task =
			ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, i);
		write_tasks(json, snapshot, &task, 1);
	}
	ss_json_close(json, ']');
	ss_json_unsigned(json, "tasks_changed", asyncio->changed);
	ss_json_unsigned(json, "tasks_unread", asyncio->unread);
	ss_json_text(json, "tasks_problem", asyncio->problem);
	return true;
}

void ss_json_process(struct ss_json *json, const struct ss_process *process)
{
	ss_json_struct(json, "process", &ss_process_schema, process, SS_SHOW_PROCESS);
}

static void write_signature(struct ss_json *json, const struct ss_snapshot *snapshot)
{
	const struct ss_task *thread = ss_signature_thread(snapshot);
	char exact[SS_SIGNATURE_SIZE] = "";
	_cleanup_free_ char *readable = thread ? ss_signature_new(snapshot, thread) :
						 NULL;

	ss_json_text(json, "signature", readable && *readable ? readable : NULL);
	_cleanup_error_ struct ss_error *error =
		thread ? ss_snapshot_signature(snapshot, thread, exact) : NULL;
	ss_json_text(json, "stack_hash", thread && !error ? exact : NULL);
}

static void write_crash(struct ss_json *json, const struct ss_snapshot *snapshot)
{
	const struct ss_crash *crash = &ss_snapshot_process(snapshot)->crash;
	char name[32];

	if (crash->signal == 0) {
		ss_json_null(json, "crash");
		return;
	}
	ss_crash_name(crash->signal, name, sizeof(name));
	ss_json_open(json, "crash", '{');
	ss_json_members(json, &ss_crash_schema, crash, 0);
	ss_json_text(json, "name", name);
	write_signature(json, snapshot);
	ss_json_open(json, "registers", '{');
	struct ss_register reg;
	for (size_t i = 0; ss_snapshot_crash_register(snapshot, i, &reg); i++)
		ss_json_hex(json, reg.name, reg.value);
	ss_json_close(json, '}');
	ss_json_close(json, '}');
}

static void write_capture(struct ss_json *json, const struct ss_snapshot *snapshot)
{
	ss_json_open(json, "capture", '{');
	ss_json_members(json, &ss_process_schema, ss_snapshot_process(snapshot),
			SS_SHOW_TIME | SS_SHOW_CAPTURE | SS_SHOW_SINGLE);
	write_crash(json, snapshot);
	ss_json_close(json, '}');
}

struct ss_error *ss_json_write_snapshot(const struct ss_snapshot *snapshot,
					const struct ss_format_options *options,
					FILE *out)
{
	_cleanup_(ss_stack_cache_cleanup) struct ss_stack_cache *cache =
		ss_stack_cache_new(snapshot, options, write_frames);
	struct ss_json json = { .out = out, .max_size = options->max_size };

	if (!cache)
		return ss_error_no_memory();
	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-snapshot/1");
	ss_json_process(&json, ss_snapshot_process(snapshot));
	write_capture(&json, snapshot);
	ss_json_open(&json, "modules", '[');
	for (size_t i = 0; i < ss_snapshot_module_count(snapshot); i++)
		ss_json_struct(&json, NULL, &ss_module_schema,
			       ss_snapshot_module(snapshot, i), 0);
	ss_json_close(&json, ']');
	ss_json_open(&json, "runtimes", '[');
	for (size_t i = 0; i < ss_snapshot_runtime_count(snapshot); i++)
		ss_json_struct(&json, NULL, &ss_runtime_info_schema,
			       ss_snapshot_runtime(snapshot, i), 0);
	ss_json_close(&json, ']');
	ss_json_open(&json, "threads", '[');
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++)
		write_thread(&json, snapshot,
			     ss_snapshot_task(snapshot, SS_TASK_THREAD, i), cache);
	ss_json_close(&json, ']');
	bool whole = ss_json_tasks(&json, snapshot, false);
	ss_json_deadlocks(&json, snapshot);
	ss_json_unsigned(&json, "left_out", json.left_out);
	ss_json_text(&json, "problem", options->problem);
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return whole ? NULL : ss_error_no_memory();
}

/*
 * A census of a heap as JSON: see stacksnap-json(5).
 */

static void write_arena(struct ss_json *json, const struct ss_heap_arena *arena)
{
	ss_json_open(json, NULL, '{');
	ss_json_hex(json, "address", arena->address);
	ss_json_bool(json, "main", arena->main);
	ss_json_unsigned(json, "size", arena->size);
	ss_json_unsigned(json, "used_count", arena->used_count);
	ss_json_unsigned(json, "used_bytes", arena->used_bytes);
	ss_json_unsigned(json, "cached_count", arena->cached_count);
	ss_json_unsigned(json, "cached_bytes", arena->cached_bytes);
	ss_json_unsigned(json, "free_count", arena->free_count);
	ss_json_unsigned(json, "free_bytes", arena->free_bytes);
	ss_json_unsigned(json, "top_bytes", arena->top_bytes);
	ss_json_unsigned(json, "unread_bytes", arena->unread_bytes);
	ss_json_text(json, "problem", arena->problem);
	ss_json_close(json, '}');
}

static void write_class(struct ss_json *json, const struct ss_heap_class *class)
{
	ss_json_open(json, NULL, '{');
	ss_json_text(json, "name", class->name);
	ss_json_text(json, "module", class->module);
	ss_json_hex(json, "address", class->address);
	ss_json_unsigned(json, "count", class->count);
	ss_json_unsigned(json, "bytes", class->bytes);
	ss_json_close(json, '}');
}

static void write_totals(struct ss_json *json, const struct ss_heap *heap)
{
	ss_json_unsigned(json, "used_count", heap->used_count);
	ss_json_unsigned(json, "used_bytes", heap->used_bytes);
	ss_json_unsigned(json, "mapped_count", heap->mapped_count);
	ss_json_unsigned(json, "mapped_bytes", heap->mapped_bytes);
}

static void write_lists(struct ss_json *json, const struct ss_heap *heap)
{
	ss_json_open(json, "arenas", '[');
	for (size_t i = 0; i < heap->arena_count; i++) {
		ss_json_new_line(json);
		write_arena(json, &heap->arenas[i]);
	}
	ss_json_close(json, ']');
	ss_json_open(json, "sizes", '[');
	for (size_t i = 0; i < heap->size_count; i++) {
		const struct ss_heap_size *size = &heap->sizes[i];
		ss_json_new_line(json);
		ss_json_open(json, NULL, '{');
		ss_json_unsigned(json, "min", size->min);
		ss_json_unsigned(json, "max", size->max);
		ss_json_unsigned(json, "count", size->count);
		ss_json_unsigned(json, "bytes", size->bytes);
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
	ss_json_open(json, "classes", '[');
	for (size_t i = 0; i < heap->class_count; i++) {
		if (!heap->classes[i].name)
			continue;
		ss_json_new_line(json);
		write_class(json, &heap->classes[i]);
	}
	ss_json_close(json, ']');
	ss_json_bool(json, "classes_truncated", heap->classes_truncated);
}

struct ss_error *ss_json_write_heap(const struct ss_heap_input *input,
				    const struct ss_format_options *options, FILE *out)
{
	const struct ss_heap *heap = input->heap;
	struct ss_json json = { .out = out };

	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-heap/1");
	ss_json_signed(&json, "pid", heap->process->pid);
	ss_json_text(&json, "name", heap->process->name);
	ss_json_text(&json, "allocator", heap->allocator);
	ss_json_text(&json, "other_allocator", heap->other);
	ss_json_unsigned(&json, "time_ns", heap->process->time_ns);
	ss_json_unsigned(&json, "read_ns", input->read_ns);
	write_totals(&json, heap);
	if (heap->counted) {
		ss_json_unsigned(&json, "counted_maps", heap->counted_maps);
		ss_json_unsigned(&json, "counted_map_bytes", heap->counted_map_bytes);
	} else {
		ss_json_null(&json, "counted_maps");
		ss_json_null(&json, "counted_map_bytes");
	}
	ss_json_open(&json, "before", '{');
	write_totals(&json, input->before);
	ss_json_close(&json, '}');
	write_lists(&json, heap);
	ss_json_text(&json, "problem", options->problem);
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return NULL;
}
