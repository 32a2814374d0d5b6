#include "unwind/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "elf/go_table.h"
#include "runtime/go/goroutines.h"
#include "unwind/cfi.h"
#include "data/gather.h"

enum { WORD = 8 };

bool ss_go_row_make(struct ss_image *image, uint64_t address, struct ss_cfi_row *ret)
{
	const struct ss_arch *arch = image->arch;
	int64_t depth;

	/* On processors with a link register, Go lays out its frames differently. */
	if (arch->link != SS_REG_NONE || !ss_go_find_depth(image, address, &depth))
		return false;
	*ret = (struct ss_cfi_row){ .cfa_register = arch->sp,
				    .cfa_offset = (int32_t)(depth + WORD),
				    .return_rule = SS_RETURN_SAVED,
				    .return_offset = -WORD,
				    .undefined = ~(UINT64_C(1) << arch->fp) };
	/* A frame begins with the caller's frame pointer. */
	if (depth)
		ret->saved[ret->saved_count++] =
			(struct ss_row_saved){ .reg = arch->fp, .offset = -2 * WORD };
	return true;
}

/* Unwinding by the tables of Go's runtime. */

/* Whether a frame can return to pc: goroutines return to goexit(), which has not called
   them. */
static bool is_return_address(struct ss_unwind_context *ctx, uint64_t pc)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(ctx, pc);

	return ss_context_is_return_address(ctx, pc) ||
	       (loaded && loaded->image && !loaded->skipped &&
		ss_go_is_root(loaded->image, pc - loaded->bias));
}

/* If the row does not lead to a call, or to a fault, which looks like a call of sigpanic(), the
   function has switched to another stack. */
static enum ss_step step_go(void *state, struct ss_unwind_context *ctx,
			    struct ss_unwind_frame *frame)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	const struct ss_loaded_module *loaded = ss_context_find_module(ctx, pc);
	struct ss_unwind_frame caller = *frame;
	struct ss_cfi_row row;

	(void)state;
	if (!loaded || !loaded->image || loaded->skipped ||
	    !ss_go_row_make(loaded->image, pc - loaded->bias, &row) ||
	    ss_cfi_row_apply(&row, ctx, &caller) != SS_STEP_OK)
		return SS_STEP_SKIP;
	uint64_t caller_pc = ss_regs_pc(ctx->arch, &caller.regs);
	if (!is_return_address(ctx, caller_pc) &&
	    !(ss_go_is_sigpanic(loaded->image, pc - loaded->bias) &&
	      ss_context_is_code(ctx, caller_pc)))
		return SS_STEP_SKIP;
	*frame = caller;
	return SS_STEP_OK;
}

const struct ss_unwinder ss_unwinder_go = {
	.name = "Go",
	.source = SS_FROM_CFI,
	.step = step_go,
};

/* A runtime of Go in the process. */
struct go_runtime {
	const struct ss_go_program *program;
	uint64_t list; /* its address in the process */
	uint64_t bias;
	const char *path; /* of the module */
};

struct go_runtimes {
	struct go_runtime items[SS_GO_RUNTIMES_MAX];
	size_t count;
	size_t more; /* that do not fit */
};

/* False: the module has no code of Go. */
static bool try_module(struct ss_unwind_context *ctx, const struct ss_module *module,
		       struct go_runtime *ret)
{
	struct ss_loaded_module *loaded = ss_context_find_module(ctx, module->base);
	const struct ss_go_program *program = loaded && loaded->image &&
							      !loaded->skipped ?
						      ss_go_program_find(loaded->image) :
						      NULL;

	if (program)
		*ret = (struct go_runtime){ .program = program,
					    .list = program->list + loaded->bias,
					    .bias = loaded->bias,
					    .path = module->path };
	return program != NULL;
}

/* Marks the modules that threads execute. */
static void mark_executed(const struct ss_capture *capture, bool *ret)
{
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_regs *regs = &capture->threads.items[i].regs;
		const struct ss_area *area =
			regs->valid ? ss_capture_find_area(
					      capture, ss_regs_pc(capture->arch, regs)) :
				      NULL;
		if (area && area->module >= 0)
			ret[area->module] = true;
	}
}

/* Finds the runtimes of Go: of the program, and of libraries in a program of C. A runtime has threads
   of its own, which are in its code at nearly all times, so no other library is read. False without
   memory. */
static bool find_runtimes(struct ss_unwind_context *ctx, struct go_runtimes *ret)
{
	const struct ss_capture *capture = ctx->capture;
	const char *program = capture->process.executable;
	_cleanup_free_ bool *executed =
		calloc(capture->modules.count + 1, sizeof(*executed));

	*ret = (struct go_runtimes){};
	if (!executed)
		return false;
	mark_executed(capture, executed);
	for (size_t i = 0; i < capture->modules.count; i++) {
		const struct ss_module *module = &capture->modules.items[i]->pub;
		struct go_runtime found;
		if ((!executed[i] && !(program && strcmp(module->path, program) == 0)) ||
		    !try_module(ctx, module, &found))
			continue;
		if (ret->count < SS_GO_RUNTIMES_MAX)
			ret->items[ret->count++] = found;
		else
			ret->more++;
	}
	return true;
}

bool ss_goroutines_plan(struct ss_unwind_context *ctx, struct ss_gather_plan *ret)
{
	struct go_runtimes runtimes;

	*ret = (struct ss_gather_plan){};
	if (!find_runtimes(ctx, &runtimes))
		return false;
	for (size_t i = 0; i < runtimes.count; i++) {
		const struct go_runtime *runtime = &runtimes.items[i];
		if (runtime->program->layout)
			ss_go_goroutines_plan(runtime->program, runtime->list, ret);
	}
	return ret->step_count > 0;
}

/* What threads have to do with goroutines: by stack pointer. */
struct on_cpu {
	uint64_t sp;
	pid_t tid;
	pid_t inner_tid;
};

struct goroutines {
	struct ss_walk *walk;
	const struct ss_unwind_options *options;
	struct go_runtimes runtimes;
	struct ss_buffer problem;	  /* why some are not shown */
	SS_VECTOR(struct on_cpu) threads; /* ascending by sp */
	uint64_t now_ns;		  /* CLOCK_MONOTONIC; 0: not known */
};

SS_DEFINE_COMPARE(compare_threads, struct on_cpu, sp)

static bool add_threads(struct goroutines *g)
{
	const struct ss_capture *capture = g->walk->ctx.capture;

	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		struct on_cpu *slot = ss_vector_push(&g->threads);
		if (!slot)
			return false;
		*slot = (struct on_cpu){
			.sp = thread->regs.valid ?
				      ss_regs_sp(capture->arch, &thread->regs) :
				      0,
			.tid = thread->tid,
			.inner_tid = thread->inner_tid ? thread->inner_tid : thread->tid,
		};
	}
	if (g->threads.count > 1)
		qsort(g->threads.items, g->threads.count, sizeof(*g->threads.items),
		      compare_threads);
	return true;
}

/* The thread whose stack pointer is in the stack of the goroutine, or NULL. */
static const struct on_cpu *find_by_stack(const struct goroutines *g,
					  const struct ss_go_goroutine *goroutine)
{
	size_t count = g->threads.count;
	size_t at =
		ss_lower_bound(count, i, g->threads.items[i].sp < goroutine->stack_low);

	return at < count && g->threads.items[at].sp < goroutine->stack_high ?
		       &g->threads.items[at] :
		       NULL;
}

static pid_t find_by_id(const struct goroutines *g, pid_t inner_tid)
{
	for (size_t i = 0; inner_tid && i < g->threads.count; i++) {
		if (g->threads.items[i].inner_tid == inner_tid)
			return g->threads.items[i].tid;
	}
	return 0;
}

/*
 * Goroutines were read a moment after the threads. One that then ran, or was in a system
 * call, has the stack of the thread whose stack pointer was in its stack. In C code, or in
 * the scheduler, a thread is on a stack of its own: the goroutine is then shown by itself.
 */
static void place(const struct goroutines *g, const struct ss_go_goroutine *from,
		  struct ss_task *ret)
{
	const struct on_cpu *thread = find_by_stack(g, from);

	if (from->status != SS_STATUS_RUNNING && from->status != SS_STATUS_SYSCALL)
		return;
	ret->tid = thread ? thread->tid : find_by_id(g, from->thread);
	ret->on_thread = thread != NULL;
}

/* The stack is that of its thread. False: it is not known. */
static bool share_stack(const struct ss_snapshot *snapshot, struct ss_task *ret)
{
	const struct ss_task *thread =
		ret->on_thread ? ss_snapshot_find_thread(snapshot, ret->tid) : NULL;

	if (!thread)
		return false;
	ret->stack_id = thread->stack_id;
	ret->end = thread->end;
	ret->reason = thread->reason;
	ret->frame_count = thread->frame_count;
	return true;
}

/* Whether a goroutine continues after a call, as nearly all do; not at the start of its
   function. */
static bool is_after_call(struct ss_walk *walk, uint64_t pc)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(&walk->ctx, pc);

	return loaded && loaded->image && !loaded->skipped &&
	       !ss_go_is_entry(loaded->image, pc - loaded->bias);
}

/* False without memory. */
static bool walk_stack(struct goroutines *g, const struct ss_go_goroutine *from,
		       struct ss_task *ret)
{
	struct ss_walk *walk = g->walk;
	const struct ss_arch *arch = walk->ctx.arch;
	struct ss_capture_thread parked = { .end = SS_END_ROOT };

	if (share_stack(walk->snapshot, ret))
		return true;
	walk->frames.count = 0;
	walk->end = SS_END_RUNNING;
	if (from->pc) {
		ss_regs_set(&parked.regs, arch->pc, from->pc);
		ss_regs_set(&parked.regs, arch->sp, from->sp);
		if (from->bp)
			ss_regs_set(&parked.regs, arch->fp, from->bp);
		walk->parked = is_after_call(walk, from->pc);
		bool ok = ss_walk_thread(walk, &parked);
		walk->parked = false;
		if (!ok)
			return false;
	}
	ret->end = walk->end;
	ret->frame_count = walk->frames.count;
	return ss_snapshot_add_stack(walk->snapshot, walk->frames.items,
				     walk->frames.count, walk->end, &ret->stack_id);
}

static bool add(struct goroutines *g, const char *path,
		const struct ss_go_goroutine *from)
{
	struct ss_snapshot *snapshot = g->walk->snapshot;
	struct ss_task *slot = ss_snapshot_add_task(snapshot, SS_TASK_GOROUTINE);

	if (!slot)
		return false;
	slot->id = from->id;
	slot->status = from->status;
	slot->wait_reason = from->wait_reason;
	slot->changed = from->changed;
	slot->run_mark = from->run_mark;
	slot->endless = from->on_purpose ? SS_ENDLESS_NO : from->endless;
	slot->idle = from->idle;
	slot->runtime = path;
	if (from->since && from->since < g->now_ns)
		slot->waiting_ns = g->now_ns - from->since;
	place(g, from, slot);
	return walk_stack(g, from, slot);
}

/* Says why those of a runtime are not shown. */
static void add_problem(struct goroutines *g, const struct go_runtime *runtime,
			const char *problem)
{
	const char *version = runtime->program->version;

	ss_buffer_printf(&g->problem, "%sgoroutines", g->problem.size ? "; " : "");
	if (g->runtimes.count > 1)
		ss_buffer_printf(&g->problem, " of %s", ss_path_base(runtime->path));
	ss_buffer_printf(&g->problem, " are not shown: %s (%s)", problem,
			 *version ? version : "unknown version of Go");
}

static void find_unwakeable(const struct goroutines *g, const struct go_runtime *runtime,
			    struct ss_go_goroutines *found)
{
	const struct ss_unwind_options *options = g->options;
	const struct ss_go_process process = {
		.capture = g->walk->ctx.capture,
		.program = runtime->program,
		.bias = runtime->bias,
		.read_ranges = options->read_ranges,
		.check = options->check,
		.read_data = options->read_data,
		.whole = g->walk->ctx.capture->whole,
	};

	ss_go_find_unwakeable(&process, found);
}

/* False without memory. */
static bool walk_runtime(struct goroutines *g, const struct go_runtime *runtime)
{
	const struct ss_capture *capture = g->walk->ctx.capture;
	struct ss_snapshot *snapshot = g->walk->snapshot;
	struct ss_go_goroutines found;
	struct ss_capture_memory memory;

	if (runtime->program->problem)
		add_problem(g, runtime, runtime->program->problem);
	if (!runtime->program->layout || capture->gathered.blocks.count == 0)
		return true; /* or nobody asked for them */
	const char *path = ss_intern_string(snapshot->strings, runtime->path);
	ss_capture_memory_init(&memory, capture, NULL);
	if (!path)
		return false;
	bool ok = ss_go_goroutines_read(runtime->program, runtime->list, &memory.memory,
					&capture->gathered, &found);
	if (ok && found.problem)
		add_problem(g, runtime, found.problem);
	else if (ok && g->runtimes.count == 1 && !g->options->read_early)
		find_unwakeable(g, runtime, &found);
	snapshot->coverage[SS_TASK_GOROUTINE].unread +=
		ok && !found.problem ? found.unread : 0;
	for (size_t i = 0; ok && i < found.items.count; i++)
		ok = add(g, path, &found.items.items[i]);
	ss_go_goroutines_deinit(&found);
	return ok;
}

static int compare_goroutines(const void *a, const void *b)
{
	const struct ss_task *x = a;
	const struct ss_task *y = b;

	return SS_COMPARE(x->id, y->id) ?: strcmp(x->runtime, y->runtime);
}

/* The problem is one line, in the snapshot's strings. False without memory. */
static bool finish(struct goroutines *g)
{
	struct ss_snapshot *snapshot = g->walk->snapshot;

	if (g->runtimes.more)
		ss_buffer_printf(&g->problem,
				 "%sgoroutines of further libraries are not shown: "
				 "at most %d runtimes of Go are read",
				 g->problem.size ? "; " : "", SS_GO_RUNTIMES_MAX);
	if (g->problem.size)
		snapshot->coverage[SS_TASK_GOROUTINE].problem =
			ss_intern_string(snapshot->strings, g->problem.bytes);
	snapshot->coverage[SS_TASK_GOROUTINE].known =
		snapshot->tasks[SS_TASK_GOROUTINE].count > 0;
	if (g->runtimes.count > 1 && snapshot->tasks[SS_TASK_GOROUTINE].count > 1)
		qsort(snapshot->tasks[SS_TASK_GOROUTINE].items,
		      snapshot->tasks[SS_TASK_GOROUTINE].count,
		      sizeof(*snapshot->tasks[SS_TASK_GOROUTINE].items),
		      compare_goroutines);
	return !g->problem.failed &&
	       (g->problem.size == 0 || snapshot->coverage[SS_TASK_GOROUTINE].problem);
}

bool ss_goroutines_walk(struct ss_walk *walk, const struct ss_unwind_options *options)
{
	struct goroutines g = {
		.walk = walk,
		.options = options,
		.now_ns = walk->ctx.capture->gathered.monotonic_ns,
	};

	if (!find_runtimes(&walk->ctx, &g.runtimes))
		return false;
	if (g.runtimes.count == 0)
		return true;
	bool ok = add_threads(&g);
	for (size_t i = 0; ok && i < g.runtimes.count; i++)
		ok = walk_runtime(&g, &g.runtimes.items[i]);
	ok = ok && finish(&g);
	ss_buffer_deinit(&g.problem);
	ss_vector_free(&g.threads);
	return ok;
}
