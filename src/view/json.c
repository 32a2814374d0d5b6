/*
 * stacksnap-snapshot/1, see stacksnap-json(5): one line for each document. Written
 * piece by piece (a thread's head, each frame), so that memory does not grow with
 * the number of threads.
 */
#include <inttypes.h>
#include <string.h>

#include <jansson.h>

#include "view/json_values.h"
#include "view/mode.h"
#include "view/render.h"
#include "view/stack_cache.h"

static json_t *hexadecimal(uint64_t number)
{
	char text[sizeof("0x0123456789abcdef")];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, number); /* it fits */
	return json_string_nocheck(text);
}

static json_t *count_or_null(uint32_t number)
{
	return number ? json_integer(number) : json_null();
}

static json_t *id_or_null(pid_t id)
{
	return id ? json_integer(id) : json_null();
}

static const char *source_name(enum ss_frame_source source)
{
	static const char *const names[] = {
		[SS_FROM_REGISTERS] = "registers",
		[SS_FROM_CFI] = "cfi",
		[SS_FROM_FRAME_POINTER] = "frame-pointer",
		[SS_FROM_RETURN_ADDRESS] = "return-address",
		[SS_FROM_INLINE] = "inline",
	};

	return (size_t)source < SS_ARRAY_SIZE(names) ? names[source] : "unknown";
}

static json_t *frame_value(const struct ss_frame *frame)
{
	bool placed = frame->module != NULL;
	json_t *start = frame->symbol && !frame->inlined ?
				json_integer((json_int_t)frame->symbol_offset) :
				json_null();

	/* clang-format off */
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:s,s:o,s:o,s:o}",
		"pc", hexadecimal(frame->pc),
		"module", placed ? json_integer(frame->module_index) : json_null(),
		"offset", placed ? hexadecimal(frame->offset) : json_null(),
		"symbol", ss_json_text(frame->symbol),
		"symbol_offset", start,
		"file", ss_json_text(frame->file),
		"line", count_or_null(frame->line),
		"column", count_or_null(frame->column),
		"inlined", frame->inlined,
		"signal_frame", frame->signal_frame,
		"source", source_name(frame->source),
		"lookup_offset", placed ? hexadecimal(frame->lookup_offset) : json_null(),
		"area", ss_json_text(frame->area),
		"area_offset", frame->area ? hexadecimal(frame->area_offset) :
					     json_null());
	/* clang-format on */
}

static void write_frames(const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread,
			 const struct ss_render_options *options, FILE *out)
{
	(void)options;
	for (size_t i = 0; i < thread->frame_count; i++) {
		if (i > 0)
			(void)fputc_unlocked(',', out);
		ss_json_write(frame_value(ss_snapshot_frame(snapshot, thread, i)), 0,
			      out);
	}
}

static json_t *state_value(char state)
{
	const char text[] = { state, '\0' };

	return state == '?' ? json_null() : ss_json_text(text);
}

static json_t *ns_or_null(int64_t ns)
{
	return ns >= 0 ? json_integer((json_int_t)ns) : json_null();
}

static json_t *owner_frames(const struct ss_wait *wait)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < wait->owner_frame_count; i++) {
		const struct ss_owner_frame *owner = &wait->owner_frames[i];
		(void)json_array_append_new(
			array, json_pack("{s:i,s:o,s:o}", "frame", (int)owner->frame,
					 "file", ss_json_text(owner->file), "line",
					 count_or_null(owner->line)));
	}
	return array;
}

static json_t *wait_value(const struct ss_wait *wait)
{
	if (!wait)
		return json_null();
	/* clang-format off */
	return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}",
		"kind", ss_wait_kind_name(wait->kind),
		"text", ss_json_text(wait->text),
		"syscall", ss_json_text(wait->syscall),
		"address", wait->address ? hexadecimal(wait->address) : json_null(),
		"owner_tid", count_or_null((uint32_t)wait->owner_tid),
		"owner_pid", count_or_null((uint32_t)wait->owner_pid),
		"owner_reason", ss_json_text(wait->owner_reason),
		"owner_frames", owner_frames(wait),
		"fd", wait->fd >= 0 ? json_integer(wait->fd) : json_null(),
		"object", ss_json_text(wait->object),
		"timeout_ns", ns_or_null(wait->timeout_ns),
		"left_ns", ns_or_null(wait->left_ns),
		"beyond", ss_json_text(wait->beyond));
	/* clang-format on */
}

static json_t *lines_or_null(const char *text)
{
	_cleanup_free_ char *copy = text ? strdup(text) : NULL;
	char *rest = copy;
	json_t *array = copy ? json_array() : NULL;

	if (!text)
		return json_null();
	for (char *line; array && (line = strsep(&rest, "\n"));)
		if (json_array_append_new(array, ss_json_text(line)) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *thread_value(const struct ss_thread *thread)
{
	/* clang-format off */
	return json_pack("{s:i,s:o,s:o,s:o,s:I,s:s,s:o,s:I,s:b,s:o,s:o,s:o}",
		"tid", (int)thread->tid,
		"inner_tid", id_or_null(thread->inner_tid),
		"name", ss_json_text(thread->name),
		"state", state_value(thread->state),
		"stopped_ns", (json_int_t)thread->stopped_ns,
		"end", ss_end_name(thread->end),
		"reason", ss_json_text(thread->reason),
		"stack_id", (json_int_t)thread->stack_id,
		"consistent", thread->consistent,
		"wait", wait_value(thread->wait),
		"wchan", ss_json_text(thread->wchan),
		"kernel_stack", lines_or_null(thread->kernel_stack));
	/* clang-format on */
}

static json_t *process_value(const struct ss_process *process)
{
	/* clang-format off */
	return json_pack("{s:i,s:o,s:o,s:o,s:o}",
		"pid", (int)process->pid,
		"inner_pid", id_or_null(process->inner_pid),
		"name", ss_json_text(process->name),
		"executable", ss_json_text(process->executable),
		"frozen", ss_json_text(process->frozen));
	/* clang-format on */
}

static json_t *capture_value(const struct ss_process *process)
{
	/* clang-format off */
	return json_pack("{s:I,s:s,s:I,s:I,s:b,s:I,s:I,s:I}",
		"time_ns", (json_int_t)process->time_ns,
		"mode", ss_mode_name(process->mode),
		"stopped_ns", (json_int_t)process->stopped_ns,
		"threads_stopped", (json_int_t)process->threads_stopped,
		"consistent", process->consistent,
		"copied_bytes", (json_int_t)process->copied_bytes,
		"running_stopped_ns", (json_int_t)process->running_stopped_ns,
		"threads_unseen", (json_int_t)process->threads_unseen);
	/* clang-format on */
}

static json_t *module_value(const struct ss_module *module)
{
	/* clang-format off */
	return json_pack("{s:o,s:o,s:o,s:I,s:b,s:o}",
		"path", ss_json_text(module->path),
		"build_id", ss_json_text(module->build_id),
		"base", hexadecimal(module->base),
		"size", (json_int_t)module->size,
		"deleted", module->deleted,
		"problem", ss_json_text(module->problem));
	/* clang-format on */
}

static void write_modules(const struct ss_snapshot *snapshot, FILE *out)
{
	for (size_t i = 0; i < ss_snapshot_module_count(snapshot); i++) {
		if (i > 0)
			(void)fputc_unlocked(',', out);
		ss_json_write(module_value(ss_snapshot_module(snapshot, i)), 0, out);
	}
}

static void write_threads(const struct ss_snapshot *snapshot,
			  struct ss_stack_cache *cache, FILE *out)
{
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++) {
		const struct ss_thread *thread = ss_snapshot_thread(snapshot, i);
		(void)fputs_unlocked(i > 0 ? ",{" : "{", out);
		ss_json_write(thread_value(thread), JSON_EMBED, out);
		(void)fputs_unlocked(",\"frames\":[", out);
		ss_stack_cache_write(cache, thread, out);
		(void)fputs_unlocked("]}", out);
	}
}

static struct ss_error *render_json(const struct ss_snapshot *snapshot,
				    const struct ss_render_options *options, FILE *out)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	_cleanup_(ss_stack_cache_cleanup) struct ss_stack_cache *cache =
		ss_stack_cache_new(snapshot, options, write_frames);

	if (!cache)
		return ss_error_no_memory();
	(void)fputs_unlocked("{\"schema\":\"stacksnap-snapshot/1\",\"process\":", out);
	ss_json_write(process_value(process), 0, out);
	(void)fputs_unlocked(",\"capture\":", out);
	ss_json_write(capture_value(process), 0, out);
	(void)fputs_unlocked(",\"modules\":[", out);
	write_modules(snapshot, out);
	(void)fputs_unlocked("],\"threads\":[", out);
	write_threads(snapshot, cache, out);
	(void)fputs_unlocked("],\"deadlocks\":", out);
	ss_json_write(ss_json_deadlocks(snapshot), 0, out);
	(void)fputs_unlocked(",\"circles\":", out);
	ss_json_write(ss_json_circles(snapshot), 0, out);
	(void)fputs_unlocked(",\"blockers\":", out);
	ss_json_write(ss_json_blockers(snapshot), 0, out);
	(void)fputs_unlocked(",\"problem\":", out);
	ss_json_write(ss_json_text(options->problem), JSON_ENCODE_ANY, out);
	(void)fputs_unlocked("}\n", out);
	return NULL;
}

const struct ss_renderer ss_renderer_json = {
	.name = "json",
	.summary = "for programs, see stacksnap-json(5)",
	.render = render_json,
};
