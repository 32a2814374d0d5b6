#include "unwind/goroutines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "runtime/go/goroutines.h"
#include "unwind/go.h"

/* NULL: it is no Go program. */
static const struct ss_go_program *try_module(struct ss_unwind_context *ctx,
					      uint64_t address, uint64_t *ret_list)
{
	struct ss_loaded_module *loaded = ss_context_find_module(ctx, address);
	const struct ss_go_program *program = loaded && loaded->image &&
							      !loaded->skipped ?
						      ss_go_program_find(loaded->image) :
						      NULL;

	if (program)
		*ret_list = program->list + loaded->bias;
	return program;
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

/* The program, or a library of Go in a program of C: of several libraries the first one. Go's
   runtime has threads of its own, which are in code of it at nearly all times, so no other
   library is read. NULL: there is no Go. */
static const struct ss_go_program *find_program(struct ss_unwind_context *ctx,
						uint64_t *ret_list)
{
	const struct ss_capture *capture = ctx->capture;
	const char *path = capture->process.executable;
	const struct ss_go_program *program = NULL;

	for (size_t i = 0; path && !program && i < capture->modules.count; i++) {
		const struct ss_module *module = &capture->modules.items[i]->pub;
		if (strcmp(module->path, path) == 0)
			program = try_module(ctx, module->base, ret_list);
	}
	if (program)
		return program;
	_cleanup_free_ bool *executed =
		calloc(capture->modules.count + 1, sizeof(*executed));
	if (!executed)
		return NULL;
	mark_executed(capture, executed);
	for (size_t i = 0; !program && i < capture->modules.count; i++) {
		if (executed[i])
			program = try_module(ctx, capture->modules.items[i]->pub.base,
					     ret_list);
	}
	return program;
}

bool ss_goroutines_plan(struct ss_unwind_context *ctx, struct ss_gather_plan *ret)
{
	uint64_t list;
	const struct ss_go_program *program = find_program(ctx, &list);

	if (!program || !program->layout)
		return false;
	ss_go_goroutines_plan(program, list, ret);
	return true;
}

/* What threads have to do with goroutines: by stack pointer. */
struct on_cpu {
	uint64_t sp;
	pid_t tid;
	pid_t inner_tid;
};

struct goroutines {
	struct ss_walk *walk;
	struct ss_go_goroutines found;
	SS_VECTOR(struct on_cpu) threads; /* ascending by sp */
	uint64_t now_ns;		  /* CLOCK_MONOTONIC; 0: not known */
};

static int compare_threads(const void *a, const void *b)
{
	const struct on_cpu *x = a;
	const struct on_cpu *y = b;

	return (x->sp > y->sp) - (x->sp < y->sp);
}

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
		  struct ss_goroutine *ret)
{
	const struct on_cpu *thread = find_by_stack(g, from);

	if (from->status != SS_GOROUTINE_RUNNING && from->status != SS_GOROUTINE_SYSCALL)
		return;
	ret->tid = thread ? thread->tid : find_by_id(g, from->thread);
	ret->on_thread = thread != NULL;
}

/* The stack is that of its thread. False: it is not known. */
static bool share_stack(const struct ss_snapshot *snapshot, struct ss_goroutine *ret)
{
	const struct ss_thread *thread =
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
		       struct ss_goroutine *ret)
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

static bool add(struct goroutines *g, const struct ss_go_goroutine *from)
{
	struct ss_snapshot *snapshot = g->walk->snapshot;
	struct ss_goroutine *slot = ss_vector_push(&snapshot->goroutines);

	if (!slot)
		return false;
	*slot = (struct ss_goroutine){
		.id = from->id,
		.status = from->status,
		.wait_reason = from->wait_reason,
		.changed = from->changed,
		.run_mark = from->run_mark,
	};
	if (from->since && from->since < g->now_ns)
		slot->waiting_ns = g->now_ns - from->since;
	place(g, from, slot);
	return walk_stack(g, from, slot);
}

/* One line, in the snapshot's strings. False without memory. */
static bool set_problem(struct ss_snapshot *snapshot, const struct ss_go_program *program,
			const char *problem)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "goroutines are not shown: %s (%s)", problem,
		       *program->version ? program->version : "unknown version of Go");
	snapshot->goroutine_problem = ss_intern_string(snapshot->strings, text);
	return snapshot->goroutine_problem != NULL;
}

static bool walk_all(struct goroutines *g, const struct ss_go_program *program)
{
	struct ss_snapshot *snapshot = g->walk->snapshot;

	if (g->found.problem)
		return set_problem(snapshot, program, g->found.problem);
	snapshot->goroutines_unread = g->found.unread;
	if (!add_threads(g))
		return false;
	for (size_t i = 0; i < g->found.items.count; i++) {
		if (!add(g, &g->found.items.items[i]))
			return false;
	}
	return true;
}

bool ss_goroutines_walk(struct ss_walk *walk)
{
	const struct ss_capture *capture = walk->ctx.capture;
	const struct ss_gathered *gathered = &capture->gathered;
	struct goroutines g = { .walk = walk, .now_ns = gathered->monotonic_ns };
	struct ss_capture_memory memory;
	uint64_t list;
	const struct ss_go_program *program = find_program(&walk->ctx, &list);

	if (!program)
		return true;
	if (program->problem)
		return set_problem(walk->snapshot, program, program->problem);
	if (gathered->blocks.count == 0) /* nobody asked for them */
		return true;
	ss_capture_memory_init(&memory, capture, NULL);
	bool ok = ss_go_goroutines_read(program, list, &memory.memory, gathered,
					&g.found) &&
		  walk_all(&g, program);
	ss_go_goroutines_deinit(&g.found);
	ss_vector_free(&g.threads);
	return ok;
}
