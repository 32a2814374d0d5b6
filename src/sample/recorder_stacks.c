/*
 * The stacks of a recorded process, and the names of code that a JIT compiler made.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "data/recording_format.h"
#include "process/files.h"
#include "sample/recorder_process.h"

static const char changed_text[] = "modules were loaded or unloaded during the capture";
static const char unverified_text[] = "the thread ran before its mappings were verified";

/* Names of code that a JIT compiler made --------------------------------- */

static const uint64_t search_ns = SS_NS_PER_SECOND;

/* first: this is the first JIT frame. If the map is found only later, all its lines may
   be newer than earlier frames. */
static void find_perf_map(struct ss_recorder_perf_map *perf_map, struct ss_target *target,
			  bool first)
{
	struct ss_perf_map_file *map = &perf_map->map;
	struct stat st;

	ss_target_open_root(target);
	map->file = ss_perfmap_of(target);
	map->stable_size = first && map->file && fstat(map->file->fd, &st) == 0 ?
				   (uint64_t)st.st_size :
				   0;
}

/* For each frame that is in no module: searches for the map once a second until it is found. Not
   while a thread is stopped. */
static void perf_map_find(struct ss_recorder_perf_map *perf_map, struct ss_target *target,
			  uint64_t now_ns)
{
	if (perf_map->map.file ||
	    (perf_map->has_jit_frames && now_ns < perf_map->searched_ns + search_ns))
		return;
	perf_map->searched_ns = now_ns;
	find_perf_map(perf_map, target, !perf_map->has_jit_frames);
	perf_map->has_jit_frames = true;
}

struct ss_error *ss_recorder_perf_map_write(struct ss_recorder_perf_map *perf_map,
					    struct ss_target *target,
					    struct ss_writer *writer, uint32_t process)
{
	/* Some programs write it on a signal or when they exit. */
	if (!perf_map->map.file && perf_map->has_jit_frames)
		find_perf_map(perf_map, target, false);
	return perf_map->map.file ? ss_writer_perf_map(writer, process, &perf_map->map) :
				    NULL;
}

void ss_recorder_perf_map_deinit(struct ss_recorder_perf_map *perf_map)
{
	ss_module_unref(perf_map->map.file);
	*perf_map = (struct ss_recorder_perf_map){};
}

/* Stacks ---------------------------------------------------------------- */

/* .NET keeps compiled code in such a file. */
static bool is_jit(const struct ss_module_impl *module, const struct ss_area *area)
{
	return module ? strncmp(module->pub.path, "/memfd:doublemapper", 19) == 0 :
			area != NULL;
}

static struct ss_frame_record record_of_call(const struct ss_unwound *unwound,
					     const struct ss_unwound_call *call)
{
	return (struct ss_frame_record){
		.module = SS_ID_NONE,
		.flags = SS_FROM_RUNTIME << SS_FRAME_SOURCE_SHIFT,
		.kind = (enum ss_frame_kind)call->kind,
		.function = ss_unwound_text(unwound, call->function),
		.file = ss_unwound_text(unwound, call->file),
		.line = call->line,
	};
}

/* A frame as it is recorded. False: its module was unloaded meanwhile. */
static bool place_frame(struct ss_recorder_process *process,
			const struct ss_capture *capture,
			const struct ss_unwound *unwound,
			const struct ss_unwound_frame *frame, struct ss_frame_record *ret)
{
	uint64_t lookup = frame->pc - (frame->flags & SS_FRAME_CALL ? 1 : 0);
	const struct ss_module_impl *module = NULL;
	const struct ss_area *area = NULL;

	if (ss_frame_flags_source(frame->flags) == SS_FROM_RUNTIME) {
		*ret = record_of_call(unwound, &unwound->calls.items[frame->pc]);
		return true;
	}
	if (frame->module >= 0)
		module = capture->modules.items[frame->module];
	else
		area = ss_capture_find_area(capture, lookup);
	*ret = (struct ss_frame_record){ .module = SS_ID_NONE,
					 .flags = frame->flags,
					 .value = frame->pc,
					 .area = area ? ss_area_label(area) : NULL,
					 .process = process->handle };
	/* Reading takes time: do not do it while a late thread may stop. */
	if (is_jit(module, area) && !process->sampler.late)
		perf_map_find(&process->perf_map, process->target, process->now_ns);
	if (!module)
		return true;
	const struct ss_module_entry *tracked =
		ss_module_set_find(&process->modules, module);
	if (!tracked)
		return false;
	ret->module = process->recorded_modules.items[tracked->id].handle;
	ret->value -= process->options->unwinder->modules.items[tracked->id].bias;
	return ret->module != SS_ID_NONE;
}

static uint32_t write_stack(struct ss_recorder_process *process,
			    const struct ss_capture *capture,
			    const struct ss_unwound *unwound,
			    const struct ss_unwound_stack *stack, const char *reason)
{
	const struct ss_unwound_frame *frames = ss_unwound_frames(unwound, stack);

	process->frames.count = 0;
	for (size_t i = 0; i < stack->count; i++) {
		struct ss_frame_record *frame = ss_vector_push(&process->frames);
		if (!frame)
			return SS_ID_NONE;
		if (!place_frame(process, capture, unwound, &frames[i], frame))
			return ss_writer_stack(process->options->writer, NULL, 0,
					       SS_END_UNREADABLE, changed_text);
	}
	return ss_writer_stack(process->options->writer, process->frames.items,
			       process->frames.count, (enum ss_end)stack->end, reason);
}

uint32_t ss_recorder_stack_of(struct ss_recorder_process *process,
			      const struct ss_capture *capture,
			      const struct ss_unwound *unwound, size_t index)
{
	const struct ss_unwound_thread *thread = &unwound->threads.items[index];
	const struct ss_unwound_stack *stack = &unwound->stacks.items[thread->stack];
	const char *reason = capture->threads.items[index].reason;
	uint32_t *slot = &process->stacks.items[thread->stack];

	reason = reason ? reason : ss_unwound_text(unwound, thread->reason);
	if (reason)
		return write_stack(process, capture, unwound, stack, reason);
	if (*slot == SS_ID_NONE)
		*slot = write_stack(process, capture, unwound, stack, NULL);
	return *slot;
}

uint32_t ss_recorder_no_stack(struct ss_recorder_process *process, bool stale)
{
	return ss_writer_stack(process->options->writer, NULL, 0, SS_END_UNREADABLE,
			       stale ? changed_text : unverified_text);
}

bool ss_recorder_stacks_begin(struct ss_recorder_process *process, size_t count)
{
	if (!ss_vector_reserve(&process->stacks, count + 1))
		return false;
	for (size_t i = 0; i < count; i++)
		process->stacks.items[i] = SS_ID_NONE;
	return true;
}
