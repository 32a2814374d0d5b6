/*
 * A snapshot built by hand, for the tests of the formats: process "shop" with the
 * threads its test adds, in the modules "/opt/shop/shop" (the program) and
 * "/usr/lib/libc.so.6".
 */
#ifndef SS_TESTS_VIEW_SAMPLE_H
#define SS_TESTS_VIEW_SAMPLE_H

#include "unit.h"

#include <string.h>

#include "data/snapshot.h"
#include "report/format.h"

enum { SAMPLE_PROGRAM = 0, SAMPLE_LIBC = 1, SAMPLE_NOWHERE = -1 };

static inline void sample_add_module(struct ss_snapshot *snapshot, const char *path,
				     uint64_t base, const char *build_id)
{
	struct ss_module_impl *module = ss_module_new(path, base, base + 0x100000);
	struct ss_module_impl **slot = ss_vector_push(&snapshot->modules);

	assert_non_null(module);
	assert_non_null(slot);
	if (build_id)
		assert_true(ss_module_set_build_id(module, build_id, strlen(build_id)));
	*slot = module;
}

static inline struct ss_snapshot *sample_new(void)
{
	struct ss_snapshot *snapshot = ss_snapshot_new();

	assert_non_null(snapshot);
	snapshot->process = (struct ss_process){
		.pid = 100,
		.name = "shop",
		.executable = "/opt/shop/shop",
		.time_ns = 1000000000,
		.mode = SS_MODE_STOP,
		.stopped_ns = 410000,
		.running_stopped_ns = 50000,
		.threads_stopped = 1,
		.consistent = true,
	};
	sample_add_module(snapshot, "/opt/shop/shop", 0x400000, NULL);
	sample_add_module(snapshot, "/usr/lib/libc.so.6", 0x7f0000000000, "\xab\xcd");
	return snapshot;
}

/* A frame of a module (or SAMPLE_NOWHERE), offset into it, and its symbol or NULL. */
static inline struct ss_frame sample_frame(const struct ss_snapshot *snapshot, int module,
					   uint64_t offset, const char *symbol)
{
	struct ss_frame frame = { .pc = offset,
				  .module_index = -1,
				  .symbol = symbol,
				  .symbol_offset = 0x10,
				  .source = SS_FROM_CFI };

	if (module == SAMPLE_NOWHERE)
		return frame;
	frame.module = &snapshot->modules.items[module]->pub;
	frame.module_index = module;
	frame.pc = frame.module->base + offset;
	frame.offset = offset;
	frame.lookup_offset = offset - 1;
	return frame;
}

static inline struct ss_task *sample_add_thread(struct ss_snapshot *snapshot, pid_t tid,
						const char *name,
						const struct ss_frame *frames,
						size_t count, enum ss_end end)
{
	uint32_t stack_id = 0;

	assert_true(ss_snapshot_add_stack(snapshot, frames, count, end, &stack_id));
	struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);
	assert_non_null(thread);
	*thread = (struct ss_task){
		.id = (uint64_t)tid,
		.tid = tid,
		.name = name,
		.state = 'S',
		.stopped_ns = 300000,
		.end = end,
		.frame_count = count,
		.stack_id = stack_id,
		.consistent = true,
	};
	return thread;
}

/* Adds a thread that waits in a function of the program. */
static inline void sample_add_waiting(struct ss_snapshot *snapshot, pid_t tid,
				      uint64_t pc, const char *function,
				      const struct ss_wait *wait)
{
	struct ss_frame frames[] = {
		sample_frame(snapshot, SAMPLE_LIBC, pc, NULL),
		sample_frame(snapshot, SAMPLE_PROGRAM, pc, function),
	};

	frames[1].symbol_offset = pc; /* all begin at the same place */
	sample_add_thread(snapshot, tid, "w", frames, 2, SS_END_ROOT)->wait = wait;
}

/* A function of a runtime. */
static inline struct ss_frame sample_function(enum ss_frame_kind kind, const char *symbol,
					      const char *file, uint32_t line)
{
	return (struct ss_frame){ .module_index = -1,
				  .kind = kind,
				  .source = SS_FROM_RUNTIME,
				  .symbol = symbol,
				  .file = file,
				  .line = line };
}

/* What a format writes; freed by the caller. Not inlined: gcc 12 would take the
   text for a pointer to the variable it was in (-Wdangling-pointer). */
__attribute__((noinline, unused)) static char *
sample_render(const struct ss_format *format, const struct ss_snapshot *snapshot,
	      const struct ss_format_options *options)
{
	const struct ss_format_options defaults = { .size = sizeof(defaults) };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_null(format->write_snapshot(snapshot, options ? options : &defaults, out));
	assert_int_equal(fclose(out), 0);
	return text;
}

#endif
