/*
 * A trace: sets probes, merges the rings of the CPUs in the order of time, and follows the scopes
 * of each thread.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "base/procfs.h"
#include "sample/address_space.h"
#include "process/perf.h"
#include "trace/resolve.h"
#include "trace/stacks.h"
#include "stacksnap/trace.h"
#include "trace/trace.h"

/* Frames that are so far apart are on different stacks: of coroutines, or of signal handlers. */
enum { STACK_DISTANCE = 1 << 20 };

/* Following what was mapped takes some milliseconds. */
enum { REPLACE_MS = 50, HUGE_PAGES_MAX = 256 /* bytes of the setting */ };

/* With callers, a stack is a function and its caller. Of so many calls it is kept. Unwinding takes half
   of the time, and may be so far ahead of that. */
enum { CALLER_FRAMES = 2, CALLS_MAX = 1 << 20, AHEAD_MS = 500 };

/* A key: no padding. */
struct call {
	uint64_t pc;
	uint64_t return_address;
};

/* What the kernel knows as a place. */
struct place {
	uint32_t probe;
	bool is_return;
};

/* The registers and the stack of a hit that is pending. */
struct copied {
	struct ss_regs regs;
	size_t size;
	bool truncated;
	uint8_t bytes[];
};

/* Copies of stacks that wait to be unwound. Further hits have none. */
enum { COPIED_MAX = 128 << 20, COLLECT_HITS = 64 };

struct pending {
	SS_VECTOR(struct ss_uprobe_hit) hits; /* of one CPU, in their order */
	size_t next;
};

struct ss_trace {
	struct ss_target *target; /* borrowed */
	struct ss_trace_options options;
	struct ss_address_space space;
	struct ss_resolved resolved;
	SS_VECTOR(struct ss_trace_probe) probes;
	SS_VECTOR(struct ss_trace_note) notes;
	SS_VECTOR(struct place) places;
	SS_VECTOR(struct pending) pending; /* by ring */
	struct ss_uprobes uprobes;
	bool started;
	struct ss_trace_threads threads;
	struct ss_trace_stacks stacks;
	uint64_t space_version; /* of the address space that stacks has */
	bool mapped;		/* code that the address space does not have yet */
	uint64_t replaced_ns;	/* when it was updated for that */
	size_t copied;		/* bytes */
	char faults_name[48];	/* of what stands for page faults */
	struct ss_trace_summary summary;
	uint64_t wall_offset_ns;
	uint64_t second;		 /* of max_rate: the current one, */
	uint64_t reported;		 /* and its hits */
	uint64_t hits;			 /* for every */
	struct ss_idtable calls;	 /* with callers: of struct call, */
	SS_VECTOR(uint32_t) call_stacks; /* and their stacks */
	uint64_t next_unwind_ns;	 /* when half of the time was not used for it */
	ss_trace_handler *handler;	 /* during a call */
	void *data;
	bool no_memory;
};

/* What to probe ------------------------------------------------------------- */

/* Matches without the namespaces count only if there are no others. */
static bool is_superseded(const struct ss_trace *trace,
			  const struct ss_resolved_probe *probe)
{
	if (!(probe->flags & SS_RESOLVE_SUFFIX))
		return false;
	for (size_t i = 0; i < trace->resolved.probes.count; i++) {
		const struct ss_resolved_probe *other = &trace->resolved.probes.items[i];
		if (other->spec == probe->spec && !(other->flags & SS_RESOLVE_SUFFIX))
			return true;
	}
	return false;
}

static struct ss_error *add_probes(struct ss_trace *trace)
{
	for (size_t i = 0; i < trace->resolved.probes.count; i++) {
		const struct ss_resolved_probe *from = &trace->resolved.probes.items[i];
		struct ss_trace_probe *probe = ss_vector_push(&trace->probes);
		if (!probe)
			return ss_error_no_memory();
		*probe = (struct ss_trace_probe){
			.spec = from->spec,
			.name = from->name,
			.module = &from->module->pub,
			.offset = from->address,
			.returns = from->return_count,
			.usdt = from->flags & SS_RESOLVE_USDT,
			.line = from->flags & SS_RESOLVE_LINE,
			.set = !(from->flags & SS_RESOLVE_REFUSED),
		};
	}
	for (size_t i = 0; i < trace->resolved.notes.count; i++) {
		const struct ss_resolved_note *from = &trace->resolved.notes.items[i];
		struct ss_trace_note *note = ss_vector_push(&trace->notes);
		if (!note)
			return ss_error_no_memory();
		*note = (struct ss_trace_note){ .spec = from->spec,
						.module = from->module->pub.path,
						.text = from->text };
	}
	return NULL;
}

/* Removes superseded ones; they are freed with the others. */
static void drop_superseded(struct ss_trace *trace)
{
	struct ss_resolved *resolved = &trace->resolved;
	size_t count = 0;

	for (size_t i = 0; i < resolved->probes.count; i++) {
		if (is_superseded(trace, &resolved->probes.items[i])) {
			resolved->probes.items[i].flags |= SS_RESOLVE_REFUSED;
			resolved->probes.items[i].spec = UINT32_MAX;
		}
	}
	for (size_t i = 0; i < resolved->probes.count; i++) {
		struct ss_resolved_probe *probe = &resolved->probes.items[i];
		if (probe->spec == UINT32_MAX) {
			free(ss_drop_const(probe->returns));
			ss_module_unref(probe->module);
			continue;
		}
		resolved->probes.items[count++] = *probe;
	}
	resolved->probes.count = count;
}

/* What stands for page faults, which have no probe. */
static struct ss_error *add_faults(struct ss_trace *trace)
{
	struct ss_trace_probe *probe = ss_vector_push(&trace->probes);
	struct place *place = ss_vector_push(&trace->places);

	if (!probe || !place)
		return ss_error_no_memory();
	(void)snprintf(trace->faults_name, sizeof(trace->faults_name),
		       "page fault, 1 of %" PRIu64, trace->options.faults); /* it fits */
	*probe = (struct ss_trace_probe){ .name = trace->faults_name, .set = true };
	*place = (struct place){};
	return NULL;
}

static struct ss_error *resolve(struct ss_trace *trace)
{
	const struct ss_trace_options *o = &trace->options;
	enum ss_address_space_change change;
	struct ss_error *error = ss_address_space_update(&trace->space, &change);

	if (error)
		return error;
	if (change == SS_ADDRESS_SPACE_ENDED || !trace->space.capture)
		return ss_target_missing(trace->target);
	if (o->faults)
		return add_faults(trace);
	error = ss_resolve(trace->space.capture, trace->target, o->specs, o->spec_count,
			   o->scopes, o->debug_dir, &trace->resolved);
	if (error)
		return error;
	drop_superseded(trace);
	return add_probes(trace);
}

struct ss_error *ss_trace_check(void)
{
	static const struct ss_uprobe_options options = {};
	struct ss_uprobes uprobes = {};
	struct ss_error *error = ss_uprobes_init(&uprobes, &options);

	if (!error)
		error = ss_uprobes_check();
	ss_uprobes_deinit(&uprobes);
	return error;
}

struct ss_error *ss_trace_new(struct ss_target *target,
			      const struct ss_trace_options *options,
			      struct ss_trace **ret)
{
	if (!ss_arch_is_host(target->arch))
		return ss_error_new(SS_ERROR_UNSUPPORTED,
				    "process %d runs a program of %s, which trace does "
				    "not support",
				    target->pid, target->arch->name);
	struct ss_trace *trace = calloc(1, sizeof(*trace));
	if (!trace)
		return ss_error_no_memory();
	memcpy(&trace->options, options, SS_MIN(options->size, sizeof(trace->options)));
	trace->options.args = SS_MIN(trace->options.args, (unsigned)SS_TRACE_ARGS);
	trace->options.callers &= !trace->options.faults;
	if (trace->options.callers) {
		trace->options.max_stack = 0;
		trace->options.max_frames = CALLER_FRAMES;
	}
	trace->target = target;
	ss_address_space_init(&trace->space, target);
	struct ss_error *error = resolve(trace);
	if (error)
		ss_trace_free(trace);
	else
		*ret = trace;
	return error;
}

void ss_trace_free(struct ss_trace *trace)
{
	if (!trace)
		return;
	ss_uprobes_deinit(&trace->uprobes);
	for (size_t i = 0; i < trace->pending.count; i++) {
		struct pending *pending = &trace->pending.items[i];
		for (size_t k = pending->next; k < pending->hits.count; k++)
			free(pending->hits.items[k].data);
		ss_vector_free(&pending->hits);
	}
	ss_vector_free(&trace->pending);
	ss_trace_stacks_deinit(&trace->stacks);
	ss_idtable_deinit(&trace->calls);
	ss_vector_free(&trace->call_stacks);
	ss_vector_free(&trace->places);
	ss_vector_free(&trace->probes);
	ss_vector_free(&trace->notes);
	ss_trace_threads_deinit(&trace->threads);
	ss_resolved_deinit(&trace->resolved);
	ss_address_space_deinit(&trace->space);
	free(trace);
}

size_t ss_trace_probe_count(const struct ss_trace *trace)
{
	return trace->probes.count;
}

const struct ss_trace_probe *ss_trace_probe(const struct ss_trace *trace, size_t index)
{
	return &trace->probes.items[index];
}

size_t ss_trace_note_count(const struct ss_trace *trace)
{
	return trace->notes.count;
}

const struct ss_trace_note *ss_trace_note(const struct ss_trace *trace, size_t index)
{
	return &trace->notes.items[index];
}

size_t ss_trace_stack_count(const struct ss_trace *trace)
{
	return trace->stacks.items.count;
}

const struct ss_trace_stack *ss_trace_stack(const struct ss_trace *trace, uint32_t number)
{
	return &trace->stacks.items.items[number - 1];
}

const struct ss_trace_summary *ss_trace_summary(const struct ss_trace *trace)
{
	return &trace->summary;
}

/* Setting probes ------------------------------------------------------------ */

static struct ss_error *add_place(struct ss_trace *trace, size_t index, uint64_t offset,
				  uint64_t counter, bool is_return)
{
	struct place *place = ss_vector_push(&trace->places);

	if (!place)
		return ss_error_no_memory();
	*place = (struct place){ .probe = (uint32_t)index, .is_return = is_return };
	return ss_uprobes_add(&trace->uprobes,
			      trace->resolved.probes.items[index].module->fd, offset,
			      counter);
}

/* Functions that share code (aliases, or two specs) are probed once. */
static bool is_set(const struct ss_trace *trace, size_t index)
{
	const struct ss_resolved_probe *probe = &trace->resolved.probes.items[index];

	for (size_t i = 0; i < index; i++) {
		const struct ss_resolved_probe *other = &trace->resolved.probes.items[i];
		if (trace->probes.items[i].set && other->offset == probe->offset &&
		    other->module == probe->module)
			return true;
	}
	return false;
}

static struct ss_error *set_probe(struct ss_trace *trace, size_t index)
{
	const struct ss_resolved_probe *from = &trace->resolved.probes.items[index];
	struct ss_error *error =
		add_place(trace, index, from->offset, from->counter, false);

	for (size_t i = 0; !error && i < from->return_count; i++)
		error = add_place(trace, index, from->returns[i], 0, true);
	return error;
}

static struct ss_error *set_probes(struct ss_trace *trace)
{
	for (size_t i = 0; i < trace->probes.count; i++) {
		trace->probes.items[i].set &= !is_set(trace, i);
		struct ss_error *error =
			trace->probes.items[i].set ? set_probe(trace, i) : NULL;
		if (error)
			return error;
	}
	return trace->places.count ? NULL :
				     ss_error_new(SS_ERROR_INVALID, "nothing to probe");
}

static bool has_stacks(const struct ss_trace *trace)
{
	return trace->options.max_stack || trace->options.callers;
}

static struct ss_error *begin_stacks(struct ss_trace *trace)
{
	trace->space_version = trace->space.version;
	ss_idtable_deinit(&trace->calls);
	trace->call_stacks.count = 0;
	return ss_trace_stacks_begin(&trace->stacks, trace->space.capture, trace->target,
				     &trace->options);
}

struct ss_error *ss_trace_start(struct ss_trace *trace)
{
	const struct ss_trace_options *o = &trace->options;
	const struct ss_uprobe_options options = {
		/* With scopes, entries and exits must be chosen together. */
		.every = o->faults ? o->faults :
			 o->scopes ? 0 :
				     o->every,
		.faults = o->faults > 0,
		.args = o->faults ? 0 : o->args,
		.callers = o->callers,
		.regs = o->max_stack > 0,
		.stack_max = o->max_stack,
	};
	struct ss_error *error = ss_uprobes_init(&trace->uprobes, &options);

	if (!error && !o->faults)
		error = set_probes(trace);
	if (!error && has_stacks(trace))
		error = begin_stacks(trace);
	if (!error)
		error = ss_uprobes_attach(&trace->uprobes, trace->target);
	if (error)
		return error;
	for (size_t i = 0; i < ss_uprobes_cpus(&trace->uprobes); i++) {
		if (!ss_vector_push(&trace->pending))
			return ss_error_no_memory();
	}
	trace->wall_offset_ns = ss_clock_ns(CLOCK_REALTIME) - ss_now_ns();
	trace->started = true;
	ss_uprobes_start(&trace->uprobes);
	return NULL;
}

/* Events -------------------------------------------------------------------- */

static void report(struct ss_trace *trace, struct ss_trace_thread *thread,
		   struct ss_trace_event *event)
{
	ss_trace_thread_find_name(thread, trace->target);
	event->sequence = ++trace->summary.events;
	event->time_ns = event->monotonic_ns + trace->wall_offset_ns;
	event->pid = thread->pid;
	event->tid = thread->tid;
	event->name = thread->name;
	trace->handler(trace->data, event);
}

/* Whether max_rate and every let a hit pass. */
static bool is_wanted(struct ss_trace *trace, uint64_t time_ns)
{
	const struct ss_trace_options *o = &trace->options;
	uint64_t second = time_ns / SS_NS_PER_SECOND;

	if (o->scopes && o->every > 1 && trace->hits++ % o->every != 0) {
		trace->summary.skipped++;
		return false;
	}
	if (second != trace->second) {
		trace->second = second;
		trace->reported = 0;
	}
	if (o->max_rate && trace->reported >= o->max_rate) {
		trace->summary.skipped++;
		return false;
	}
	trace->reported++;
	return true;
}

/* Unwinds with what is mapped now. */
static struct ss_error *
follow_space(struct ss_trace *trace,
	     struct ss_error *(*update)(struct ss_address_space *space,
					enum ss_address_space_change *ret))
{
	enum ss_address_space_change change;

	if (!has_stacks(trace))
		return NULL;
	struct ss_error *error = update(&trace->space, &change);
	if (!error && change != SS_ADDRESS_SPACE_ENDED && trace->space.capture &&
	    trace->space.version != trace->space_version)
		error = begin_stacks(trace);
	return error;
}

/* The hits that follow are of another program, or in a file that was mapped since. */
static void replace_space(struct ss_trace *trace)
{
	trace->replaced_ns = ss_now_ns();
	trace->mapped = false;
	/* An error: the process has ended, or stacks are missing. */
	ss_error_free(follow_space(trace, ss_address_space_update));
}

/* The stack of a hit with callers. 0: not known, or there was no time for it. */
static uint32_t find_caller(struct ss_trace *trace, const struct ss_uprobe_hit *hit)
{
	const struct call call = { hit->pc, hit->return_address };
	const struct ss_arch *arch = trace->stacks.capture->arch;
	const uint64_t begin_ns = ss_now_ns();
	struct ss_regs regs = {};

	uint32_t id = ss_idtable_find(&trace->calls, &call, sizeof(call));
	if (id != SS_ID_NONE)
		return trace->call_stacks.items[id];
	if (begin_ns + AHEAD_MS * SS_NS_PER_MS < trace->next_unwind_ns ||
	    trace->calls.count >= CALLS_MAX)
		return 0;
	ss_regs_set(&regs, arch->pc, hit->pc);
	ss_regs_set(&regs, arch->sp, hit->sp);
	if (arch->link != SS_REG_NONE)
		ss_regs_set(&regs, arch->link, hit->return_address);
	uint32_t stack = ss_trace_stacks_find(&trace->stacks, &regs, &call.return_address,
					      sizeof(call.return_address), true);
	trace->next_unwind_ns =
		SS_MAX(trace->next_unwind_ns, begin_ns) + 2 * (ss_now_ns() - begin_ns);
	if (!stack)
		return 0;
	uint32_t *slot = ss_vector_push(&trace->call_stacks);
	trace->no_memory |= !slot || ss_idtable_add(&trace->calls, &call, sizeof(call),
						    NULL) == SS_ID_NONE;
	if (slot)
		*slot = stack;
	return stack;
}

/* The stack of a hit; 0: it has none. A child process has the address space of its parent, until it executes a
   program. */
static uint32_t find_stack(struct ss_trace *trace, const struct ss_trace_thread *thread,
			   const struct ss_uprobe_hit *hit)
{
	const struct copied *copied = hit->data;

	const struct ss_trace_probe *probe =
		&trace->probes.items[trace->places.items[hit->place].probe];

	if (trace->options.callers ? probe->line || probe->usdt : !copied)
		return 0;
	if (thread->other_program)
		return 0;
	if (trace->mapped) {
		/* A process may map a file and hit a probe in turns. Its stacks would be wrong with
		   the areas of before. */
		if (ss_now_ns() - trace->replaced_ns < REPLACE_MS * SS_NS_PER_MS)
			return 0;
		replace_space(trace);
	}
	if (trace->options.callers)
		return find_caller(trace, hit);
	return ss_trace_stacks_find(&trace->stacks, &copied->regs, copied->bytes,
				    copied->size, copied->truncated);
}

/* Ends the innermost scope of a thread. */
static void end_scope(struct ss_trace *trace, struct ss_trace_thread *thread,
		      enum ss_trace_kind kind, uint64_t time_ns)
{
	const struct ss_trace_scope scope = thread->scopes.items[--thread->scopes.count];
	struct ss_trace_event event = {
		.kind = kind,
		.monotonic_ns = time_ns,
		.probe = scope.probe,
		.depth = (unsigned)thread->scopes.count,
		.entry = scope.sequence,
		.duration_ns = time_ns - SS_MIN(time_ns, scope.begin_ns),
		.entry_stack = scope.stack,
	};

	event.self_ns = event.duration_ns - SS_MIN(event.duration_ns, scope.inner_ns);
	if (thread->scopes.count)
		thread->scopes.items[thread->scopes.count - 1].inner_ns +=
			scope.reported ? event.duration_ns : scope.inner_ns;
	if (scope.reported)
		report(trace, thread, &event);
}

static void end_all_scopes(struct ss_trace *trace, struct ss_trace_thread *thread,
			   enum ss_trace_kind kind, uint64_t time_ns)
{
	while (thread->scopes.count)
		end_scope(trace, thread, kind, time_ns);
}

/* Whether a scope has ended, given that the stack pointer is now sp; at its own stack pointer,
   it is the one that returns or is entered again. */
static bool is_left(const struct ss_trace_scope *scope, uint64_t sp)
{
	return scope->sp < sp && sp - scope->sp < STACK_DISTANCE;
}

static void enter(struct ss_trace *trace, struct ss_trace_thread *thread,
		  const struct ss_uprobe_hit *hit, struct ss_trace_event *event)
{
	while (thread->scopes.count) {
		const struct ss_trace_scope *top =
			&thread->scopes.items[thread->scopes.count - 1];
		if (top->sp != hit->sp && !is_left(top, hit->sp))
			break;
		end_scope(trace, thread, SS_TRACE_LEFT, hit->time_ns);
	}
	event->kind = SS_TRACE_ENTER;
	event->depth = (unsigned)thread->scopes.count;
	bool wanted = is_wanted(trace, hit->time_ns);
	if (wanted) {
		event->stack = find_stack(trace, thread, hit);
		report(trace, thread, event);
	}
	struct ss_trace_scope *scope = ss_vector_push(&thread->scopes);
	trace->no_memory |= !scope;
	if (scope)
		*scope = (struct ss_trace_scope){ .probe = (uint32_t)event->probe,
						  .reported = wanted,
						  .sp = hit->sp,
						  .begin_ns = hit->time_ns,
						  .sequence = event->sequence,
						  .stack = event->stack };
}

static void leave(struct ss_trace *trace, struct ss_trace_thread *thread,
		  const struct ss_uprobe_hit *hit, uint32_t probe)
{
	size_t found = thread->scopes.count;

	while (found > 0 && (thread->scopes.items[found - 1].sp != hit->sp ||
			     thread->scopes.items[found - 1].probe != probe))
		found--;
	if (found == 0) {
		trace->summary.unpaired++;
		return;
	}
	while (thread->scopes.count > found)
		end_scope(trace, thread, SS_TRACE_LEFT, hit->time_ns);
	end_scope(trace, thread, SS_TRACE_EXIT, hit->time_ns);
}

/* Pages of files are in memory anyway; memory that is newer than the memory map is of none. */
static bool is_of_file(const struct ss_trace *trace, uint64_t address)
{
	const struct ss_area *area =
		trace->space.capture ?
			ss_capture_find_area(trace->space.capture, address) :
			NULL;

	return area && area->name[0] == '/' && area->name[1] != '/';
}

static void take_hit(struct ss_trace *trace, const struct ss_uprobe_hit *hit)
{
	const struct place *place = &trace->places.items[hit->place];
	struct ss_trace_thread *thread =
		ss_trace_threads_get(&trace->threads, hit->pid, hit->tid);
	struct ss_trace_event event = {
		.monotonic_ns = hit->time_ns,
		.probe = place->probe,
		.arg_count = trace->options.faults ? 1 : trace->options.args,
	};

	trace->no_memory |= !thread;
	if (!thread)
		return;
	trace->summary.read++;
	if (place->is_return) {
		leave(trace, thread, hit, place->probe);
		return;
	}
	trace->probes.items[place->probe].hits++;
	memcpy(event.args, hit->args, sizeof(event.args));
	/* Children inherit the event; their memory is not that of the process. */
	if (trace->options.faults &&
	    (hit->pid != trace->target->pid || is_of_file(trace, hit->args[0])))
		return;
	if (trace->options.scopes && trace->probes.items[place->probe].returns) {
		enter(trace, thread, hit, &event);
	} else if (is_wanted(trace, hit->time_ns)) {
		event.stack = find_stack(trace, thread, hit);
		report(trace, thread, &event);
	}
}

/* After execve() the process has one thread, and none of its old stack. */
static void take_name(struct ss_trace *trace, const struct ss_uprobe_hit *hit)
{
	for (size_t i = 0; hit->exec && i < trace->threads.items.count; i++) {
		struct ss_trace_thread *thread = &trace->threads.items.items[i];
		if (thread->pid == hit->pid)
			end_all_scopes(trace, thread, SS_TRACE_LEFT, hit->time_ns);
	}
	if (hit->exec && hit->pid == trace->target->pid)
		replace_space(trace);
	struct ss_trace_thread *thread =
		ss_trace_threads_get(&trace->threads, hit->pid, hit->tid);
	trace->no_memory |= !thread;
	if (!thread)
		return;
	thread->other_program |= hit->exec && hit->pid != trace->target->pid;
	ss_trace_thread_set_name(thread, hit->name);
}

/* It has the name of the thread that started it. */
static void take_fork(struct ss_trace *trace, const struct ss_uprobe_hit *hit)
{
	struct ss_trace_thread *parent =
		ss_trace_threads_get(&trace->threads, hit->parent_pid, hit->parent_tid);
	char name[SS_TRACE_COMM];

	trace->no_memory |= !parent;
	if (!parent)
		return;
	const bool other_program = parent->other_program;
	ss_trace_thread_find_name(parent, trace->target);
	memcpy(name, parent->name, sizeof(name));
	struct ss_trace_thread *thread =
		ss_trace_threads_get(&trace->threads, hit->pid, hit->tid);
	trace->no_memory |= !thread;
	if (!thread)
		return;
	thread->other_program = other_program;
	ss_trace_thread_set_name(thread, name);
}

/* A child process goes on in the scopes of the thread that forked it; they are not followed,
   because they were entered once only. */
static void take_exit(struct ss_trace *trace, const struct ss_uprobe_hit *hit)
{
	struct ss_trace_thread *thread =
		ss_trace_threads_get(&trace->threads, hit->pid, hit->tid);

	if (!thread)
		return;
	end_all_scopes(trace, thread, SS_TRACE_LEFT, hit->time_ns);
	ss_trace_threads_remove(&trace->threads, thread);
}

static void take(struct ss_trace *trace, const struct ss_uprobe_hit *hit)
{
	switch (hit->kind) {
	case SS_UPROBE_HIT:
		take_hit(trace, hit);
		break;
	case SS_UPROBE_NAME:
		take_name(trace, hit);
		break;
	case SS_UPROBE_EXIT:
		take_exit(trace, hit);
		break;
	case SS_UPROBE_MAP:
		trace->mapped |= hit->pid == trace->target->pid;
		break;
	case SS_UPROBE_FORK:
		take_fork(trace, hit);
		break;
	}
}

/* Without room the hit has no stack. */
static struct copied *copy_stack(struct ss_trace *trace, const struct ss_uprobe_hit *hit)
{
	if (!hit->has_regs || trace->places.items[hit->place].is_return ||
	    trace->copied + hit->stack_size > COPIED_MAX)
		return NULL;
	struct copied *copied = malloc(sizeof(*copied) + hit->stack_size);
	if (!copied)
		return NULL;
	ss_uprobes_regs(&trace->uprobes, &copied->regs);
	copied->size = hit->stack_size;
	copied->truncated = hit->truncated;
	if (!ss_uprobes_copy_stack(&trace->uprobes, copied->bytes, copied->size))
		copied->size = 0;
	trace->copied += copied->size;
	return copied;
}

static void drop_stack(struct ss_trace *trace, struct ss_uprobe_hit *hit)
{
	struct copied *copied = take_ptr(hit->data);

	if (copied)
		trace->copied -= copied->size;
	free(copied);
}

/* Moves all records out of the rings. */
static bool collect(struct ss_trace *trace)
{
	struct ss_uprobe_hit hit = {};

	while (ss_uprobes_next(&trace->uprobes, &hit)) {
		struct pending *pending = &trace->pending.items[trace->uprobes.reading];
		struct ss_uprobe_hit *slot = ss_vector_push(&pending->hits);
		if (!slot)
			return false;
		*slot = hit;
		slot->data = hit.kind == SS_UPROBE_HIT ? copy_stack(trace, &hit) : NULL;
	}
	return true;
}

static struct pending *find_oldest(struct ss_trace *trace)
{
	struct pending *oldest = NULL;

	for (size_t i = 0; i < trace->pending.count; i++) {
		struct pending *pending = &trace->pending.items[i];
		if (pending->next == pending->hits.count)
			continue;
		if (!oldest || pending->hits.items[pending->next].time_ns <
				       oldest->hits.items[oldest->next].time_ns)
			oldest = pending;
	}
	return oldest;
}

/* Follows what the process loads. */
static struct ss_error *update_space(struct ss_trace *trace)
{
	return follow_space(trace, ss_address_space_update_if_due);
}

/* Reports what was recorded up to a time. A record of another CPU that is older may arrive
   later only if it was being written at that time. */
static struct ss_error *merge(struct ss_trace *trace, uint64_t until_ns)
{
	struct pending *pending;
	size_t taken = 0;

	if (!collect(trace))
		return ss_error_no_memory();
	while ((pending = find_oldest(trace)) &&
	       pending->hits.items[pending->next].time_ns <= until_ns) {
		struct ss_uprobe_hit *hit = &pending->hits.items[pending->next++];
		take(trace, hit);
		drop_stack(trace, hit);
		/* Unwinding takes time, in which the rings fill. */
		if (++taken % COLLECT_HITS == 0 && !collect(trace))
			return ss_error_no_memory();
	}
	for (size_t i = 0; i < trace->pending.count; i++) {
		pending = &trace->pending.items[i];
		size_t left = pending->hits.count - pending->next;
		if (left && pending->next)
			memmove(pending->hits.items, &pending->hits.items[pending->next],
				left * sizeof(*pending->hits.items));
		pending->hits.count = left;
		pending->next = 0;
	}
	trace->summary.lost = trace->uprobes.lost;
	return trace->no_memory ? ss_error_no_memory() : NULL;
}

struct ss_error *ss_trace_read(struct ss_trace *trace, ss_trace_handler *handler,
			       void *data)
{
	uint64_t now_ns = ss_now_ns();

	trace->handler = handler;
	trace->data = data;
	trace->summary.ended = ss_target_is_exiting(trace->target);
	struct ss_error *error = trace->summary.ended ? NULL : update_space(trace);
	return error ? error : merge(trace, now_ns);
}

size_t ss_trace_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

const char *ss_trace_huge_pages_file(const struct ss_trace *trace)
{
	static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
	static const char always[] = "[always]";
	_cleanup_buffer_ struct ss_buffer text = {};

	if (ss_target_read_task(trace->target, trace->target->pid, "status", &text) &&
	    ss_status_refuses_huge_pages(text.bytes, text.size))
		return NULL;

	return ss_io_read_path(AT_FDCWD, path, HUGE_PAGES_MAX, &text) == 0 &&
			       strncmp(text.bytes, always, strlen(always)) == 0 ?
		       path :
		       NULL;
}

bool ss_trace_is_resident(const struct ss_trace *trace, uint64_t address)
{
	return ss_target_has_page(trace->target, address);
}

struct ss_error *ss_trace_end(struct ss_trace *trace, ss_trace_handler *handler,
			      void *data)
{
	trace->handler = handler;
	trace->data = data;
	if (!trace->started)
		return NULL;
	ss_uprobes_stop(&trace->uprobes);
	uint64_t now_ns = ss_now_ns();
	struct ss_error *error = merge(trace, UINT64_MAX);
	trace->summary.hits = ss_uprobes_count(&trace->uprobes);
	/* The kernel tells about lost records only with the next one that has room. */
	if (!trace->options.faults &&
	    (trace->options.every <= 1 || trace->options.scopes))
		trace->summary.lost = trace->summary.hits -
				      SS_MIN(trace->summary.hits, trace->summary.read);
	for (size_t i = 0; i < trace->threads.items.count; i++)
		end_all_scopes(trace, &trace->threads.items.items[i], SS_TRACE_OPEN,
			       now_ns);
	return error;
}
