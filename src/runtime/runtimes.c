#include "runtime/runtimes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "data/gather.h"
#include "runtime/late_memory.h"

bool ss_runtime_calls_merge(struct ss_runtime_call *calls, size_t first, size_t count)
{
	if (first == 0 || first == count ||
	    calls[first - 1].native <= calls[first].native)
		return true;
	size_t added = count - first;
	_cleanup_free_ struct ss_runtime_call *second = calloc(added, sizeof(*second));

	if (!second)
		return false;
	memcpy(second, calls + first, added * sizeof(*second));
	/* From the end on, what is further out goes to its place. */
	for (size_t at = count; added > 0;) {
		bool outer = first > 0 &&
			     calls[first - 1].native > second[added - 1].native;
		calls[--at] = outer ? calls[--first] : second[--added];
	}
	return true;
}

const char *ss_runtime_describe_problem(const struct ss_runtime_process *process,
					const char *version, const char *why)
{
	char text[160];

	(void)snprintf(text, sizeof(text), "%s: %s", version, why); /* they fit */
	return ss_intern_string(process->strings, text);
}

static const struct ss_runtime *const table[] = {
	&ss_runtime_python,
	&ss_runtime_v8,
	&ss_runtime_hotspot,
	&ss_runtime_unsupported,
};

enum { RUNTIMES = SS_ARRAY_SIZE(table) };

struct ss_runtimes {
	const struct ss_capture *capture;
	struct ss_snapshot *snapshot;
	struct ss_runtimes_options options;
	struct ss_late_memory memory;
	struct ss_late_memory fresh;
	struct ss_late_memory after;
	bool limited; /* memory was not read since there is a limit */
	struct ss_runtime_process process;
	void *states[RUNTIMES]; /* NULL: not in this process */
	SS_VECTOR(struct ss_frame) frames;
	SS_VECTOR(uint32_t) map;
	SS_VECTOR(struct ss_runtime_call) calls; /* of a thread */
	/* The native frame of the first of them, and the one behind that of the last, by runtime; 0: none */
	struct {
		size_t first;
		size_t end;
	} spans[RUNTIMES];
	/* Threads whose calls must be copied with their stacks, by runtime */
	SS_VECTOR(const struct ss_capture_thread *) wanted[RUNTIMES];
};

/* A recording has many captures, with a plan for what is copied with the stacks. */
static bool is_recording(const struct ss_runtimes *runtimes)
{
	return runtimes->options.read_early != NULL;
}

static bool open_runtimes(struct ss_runtimes *runtimes)
{
	for (size_t i = 0; i < RUNTIMES; i++) {
		struct ss_runtime_info info = { .kind = table[i]->kind };
		if (!table[i]->open(&runtimes->process, &info, &runtimes->states[i]))
			return false;
		if (!runtimes->states[i] && !info.problem)
			continue;
		struct ss_runtime_info *slot =
			ss_vector_push(&runtimes->snapshot->runtimes);
		if (!slot)
			return false;
		*slot = info;
		/* A recording has read them with the last tick. */
		if (table[i]->ahead && runtimes->states[i] && !is_recording(runtimes))
			runtimes->memory.ahead = runtimes->after.ahead = true;
	}
	return true;
}

static size_t read_whole(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct ss_memory *whole = data;

	return whole->read(whole, address, bytes, size);
}

struct ss_runtimes *ss_runtimes_new(const struct ss_capture *capture,
				    struct ss_session *session,
				    struct ss_snapshot *snapshot,
				    const struct ss_runtimes_options *options)
{
	_cleanup_(ss_runtimes_cleanup) struct ss_runtimes *runtimes =
		calloc(1, sizeof(*runtimes));

	if (!runtimes)
		return NULL;
	runtimes->capture = capture;
	runtimes->snapshot = snapshot;
	runtimes->options = *options;
	if (capture->whole && !options->read) {
		runtimes->options.read = read_whole;
		runtimes->options.read_data = capture->whole;
	}
	ss_late_memory_init(&runtimes->memory, capture, session, runtimes->options.read,
			    runtimes->options.read_data);
	runtimes->memory.limited = &runtimes->limited;
	ss_late_memory_of_now(&runtimes->fresh, &runtimes->memory);
	ss_late_memory_of_after(&runtimes->after, &runtimes->memory);
	if (runtimes->options.read_early && !capture->whole)
		runtimes->memory.read = runtimes->options.read_early;
	/* A recording knows which pages the last tick has read. */
	else if (!capture->whole)
		runtimes->memory.read_ranges = runtimes->after.read_ranges =
			runtimes->options.read_ranges;
	runtimes->process = (struct ss_runtime_process){
		.capture = capture,
		.session = session,
		.kept = &session->runtime,
		.symbols = &session->module_symbols,
		.strings = snapshot->strings,
		.memory = &runtimes->memory.memory,
		.fresh = &runtimes->fresh.memory,
		.after = &runtimes->after.memory,
		.forget = runtimes->memory.read ? ss_late_memory_forget : NULL,
		.read_together = ss_late_memory_read_together,
		.limited = &runtimes->limited,
		.recording = is_recording(runtimes),
		.python_codes = &session->python_codes,
		.read_ranges = is_recording(runtimes) ? runtimes->options.read_ranges :
							NULL,
		.read_data = runtimes->options.read_data,
	};
	return open_runtimes(runtimes) ? take_ptr(runtimes) : NULL;
}

void ss_runtimes_free(struct ss_runtimes *runtimes)
{
	if (!runtimes)
		return;
	for (size_t i = 0; i < RUNTIMES; i++) {
		if (runtimes->states[i])
			table[i]->close(runtimes->states[i]);
		ss_vector_free(&runtimes->wanted[i]);
	}
	ss_late_memory_deinit(&runtimes->after);
	ss_late_memory_deinit(&runtimes->memory);
	ss_vector_free(&runtimes->frames);
	ss_vector_free(&runtimes->map);
	ss_vector_free(&runtimes->calls);
	free(runtimes);
}

static bool add_call(struct ss_runtimes *runtimes, enum ss_frame_kind kind,
		     const struct ss_runtime_call *call)
{
	struct ss_frame *frame = ss_vector_push(&runtimes->frames);

	if (!frame)
		return false;
	*frame = (struct ss_frame){ .module_index = -1,
				    .symbol = call->function,
				    .file = call->file,
				    .line = call->line,
				    .inlined = call->inlined,
				    .source = SS_FROM_RUNTIME,
				    .kind = kind };
	return true;
}

/* Whether the calls are in the order of the native frames. */
static bool is_ordered(const struct ss_runtime_thread *thread)
{
	return !ss_any(thread->calls.count, i,
		       thread->calls.items[i].native >= thread->count ||
			       (i > 0 && thread->calls.items[i].native <
						 thread->calls.items[i - 1].native));
}

/* Appends a native frame. name: what a runtime calls it, or NULL. */
static bool add_native(struct ss_runtimes *runtimes, const struct ss_frame *native,
		       const struct ss_runtime_call *name, bool replaced)
{
	struct ss_frame *frame = ss_vector_push(&runtimes->frames);

	if (!frame)
		return false;
	*frame = *native;
	frame->replaced = replaced;
	if (name) {
		frame->symbol = name->function;
		frame->symbol_offset = native->pc - name->start;
	}
	return true;
}

/* Adds the calls that a runtime has found. A thread may execute code of several: Python that calls
   Java. */
static bool take_calls(struct ss_runtimes *runtimes, size_t index,
		       const struct ss_runtime_thread *thread)
{
	const size_t first = runtimes->calls.count;

	if (thread->calls.count > 0) {
		runtimes->spans[index].first = thread->calls.items[0].native;
		runtimes->spans[index].end =
			thread->calls.items[thread->calls.count - 1].native + 1;
	}
	for (size_t i = 0; i < thread->calls.count; i++) {
		struct ss_runtime_call *call = ss_vector_push(&runtimes->calls);
		if (!call)
			return false;
		*call = thread->calls.items[i];
		call->kind = table[index]->kind;
	}
	return ss_runtime_calls_merge(runtimes->calls.items, first,
				      runtimes->calls.count);
}

static bool is_own_code(const struct ss_runtimes *runtimes, size_t index,
			const struct ss_runtimes_stack *stack, size_t at)
{
	return table[index]->is_own_code && at < stack->count &&
	       table[index]->is_own_code(runtimes->states[index], stack->natives[at].pc);
}

/* Whether a native frame leads from one call of a runtime to another, in code of the runtime; or, in
   no file, from its code to a call: perf's trampolines of Python. */
static bool is_between(const struct ss_runtimes *runtimes,
		       const struct ss_runtimes_stack *stack, size_t at)
{
	const bool stub = stack->frames[at].module_index < 0;

	for (size_t i = 0; i < RUNTIMES; i++) {
		const size_t end = runtimes->spans[i].end;
		/* Also the one that leads to the outermost call. */
		if (end == 0 || at <= runtimes->spans[i].first ||
		    (stub ? at > end : at + 1 >= end))
			continue;
		if (stub ? is_own_code(runtimes, i, stack, at - 1) &&
				    is_own_code(runtimes, i, stack, at + 1) :
			   is_own_code(runtimes, i, stack, at))
			return true;
	}
	return false;
}

/* Puts the calls where their native frames are. end: where those of other stacks begin. */
static bool merge(struct ss_runtimes *runtimes, const struct ss_runtimes_stack *stack,
		  size_t end)
{
	size_t at = 0;

	runtimes->frames.count = runtimes->map.count = 0;
	for (size_t i = 0; i < stack->count; i++) {
		uint32_t *map = ss_vector_push(&runtimes->map);
		const struct ss_runtime_call *name = NULL;
		bool replaced = false;
		if (!map)
			return false;
		*map = i < end ? (uint32_t)runtimes->frames.count : UINT32_MAX;
		if (i >= end)
			continue;
		for (;
		     at < runtimes->calls.count && runtimes->calls.items[at].native == i;
		     at++) {
			const struct ss_runtime_call *call = &runtimes->calls.items[at];
			if (call->stub)
				name = call;
			else if (!add_call(runtimes, call->kind, call))
				return false;
			replaced |= !call->stub;
		}
		replaced = replaced || is_between(runtimes, stack, i);
		if ((!replaced || runtimes->options.native) &&
		    !add_native(runtimes, &stack->frames[i], name, replaced))
			return false;
	}
	return true;
}

static bool is_unmoved(const struct ss_runtimes *runtimes,
		       const struct ss_capture_thread *thread)
{
	return runtimes->options.check &&
	       runtimes->options.check(runtimes->options.read_data, thread->tid);
}

/* *late: memory was used that was read after the capture, which is allowed for a thread that has
   not moved. */
static bool walk_once(struct ss_runtimes *runtimes, size_t index,
		      struct ss_runtime_thread *thread, bool unmoved, bool *late)
{
	struct ss_late_memory memory;

	thread->calls.count = 0;
	thread->end = 0;
	thread->problem = NULL;
	thread->missing = false;
	ss_late_memory_of_thread(&memory, &runtimes->memory, thread->thread, unmoved);
	memory.used = late;
	thread->memory = &memory.memory;
	bool ok = table[index]->walk(runtimes->states[index], thread);
	thread->memory = NULL;
	return ok;
}

/* Walks a thread with memory of its moment only. */
static bool walk(struct ss_runtimes *runtimes, size_t index,
		 struct ss_runtime_thread *thread)
{
	const bool core = runtimes->capture->process.mode == SS_MODE_CORE;
	bool unmoved = core ||
		       (!is_recording(runtimes) && is_unmoved(runtimes, thread->thread));
	bool late = false;

	if (!walk_once(runtimes, index, thread, unmoved, &late))
		return false;
	/* A recording asks only for what its plan has not copied: each time costs a message. */
	if (is_recording(runtimes) && thread->problem && thread->missing &&
	    is_unmoved(runtimes, thread->thread)) {
		unmoved = true;
		if (!walk_once(runtimes, index, thread, true, &late))
			return false;
	}
	if (late && !core && !is_unmoved(runtimes, thread->thread)) {
		thread->problem = "it ran while they were read";
		thread->missing = true;
	} else if (thread->problem && thread->missing && !unmoved) {
		thread->problem = "it runs, and they were not copied with its stack";
	}
	if (thread->problem && thread->missing) {
		const struct ss_capture_thread **slot =
			ss_vector_push(&runtimes->wanted[index]);
		if (!slot)
			return false;
		*slot = thread->thread;
	}
	return true;
}

enum ss_runtime_step ss_runtimes_step(struct ss_runtimes *runtimes,
				      struct ss_runtime_frame *frame)
{
	enum ss_runtime_step step = SS_RUNTIME_STEP_NONE;

	for (size_t i = 0; i < RUNTIMES && step == SS_RUNTIME_STEP_NONE; i++) {
		if (runtimes->states[i] && table[i]->step)
			step = table[i]->step(runtimes->states[i], frame);
	}
	return step;
}

bool ss_runtimes_apply(struct ss_runtimes *runtimes,
		       const struct ss_capture_thread *thread,
		       const struct ss_runtimes_stack *stack,
		       struct ss_runtimes_frames *ret)
{
	size_t end = stack->count;

	*ret = (struct ss_runtimes_frames){};
	runtimes->calls.count = 0;
	for (size_t i = 0; i < RUNTIMES; i++) {
		struct ss_runtime_thread walked = { .thread = thread,
						    .frames = stack->natives,
						    .count = stack->count,
						    .complete = stack->complete };
		runtimes->spans[i].first = runtimes->spans[i].end = 0;
		if (!runtimes->states[i] || stack->count == 0)
			continue;
		bool ok = walk(runtimes, i, &walked);
		if (ok && !walked.problem && !is_ordered(&walked))
			walked.problem = "they are not in the order of the native frames";
		if (walked.problem)
			ret->reason = walked.problem;
		else if (ok)
			ok = take_calls(runtimes, i, &walked);
		if (!walked.problem && walked.end > 0)
			end = SS_MIN(end, walked.end);
		ss_vector_free(&walked.calls);
		if (!ok)
			return false;
	}
	if (runtimes->calls.count == 0)
		return true;
	if (!merge(runtimes, stack, end))
		return false;
	ret->items = runtimes->frames.items;
	ret->count = runtimes->frames.count;
	ret->map = runtimes->map.items;
	ret->ended = end < stack->count;
	return true;
}

bool ss_runtimes_skip(struct ss_runtimes *runtimes,
		      const struct ss_capture_thread *thread)
{
	return !ss_any(RUNTIMES, i,
		       runtimes->states[i] && table[i]->skip &&
			       !table[i]->skip(runtimes->states[i], thread));
}

/* An owner that has not run since the capture owned the lock then, if it does now. */
static bool add_lock(struct ss_runtimes *runtimes, enum ss_frame_kind kind,
		     const struct ss_runtime_found_lock *found)
{
	const bool core = runtimes->capture->process.mode == SS_MODE_CORE;
	const bool may_ask = !is_recording(runtimes); /* it has no owners */
	bool proven = found->owner &&
		      (core || !found->late || found->cyclic || found->lasting ||
		       (may_ask && is_unmoved(runtimes, found->owner)));

	if (found->waiter && found->late && !core && !found->cyclic && !found->waited &&
	    !(may_ask && is_unmoved(runtimes, found->waiter)))
		return true;
	if (found->only_owned && !proven)
		return true;
	struct ss_runtime_lock *lock = ss_vector_push(&runtimes->snapshot->runtime_locks);
	if (!lock)
		return false;
	*lock = (struct ss_runtime_lock){ .kind = kind,
					  .type = found->type,
					  .address = found->address,
					  .start = found->start,
					  .end = found->end,
					  .owner = proven ? found->owner->tid : 0,
					  .cyclic = found->cyclic };
	return true;
}

static bool add_locks_of(struct ss_runtimes *runtimes, size_t index)
{
	_cleanup_free_ struct ss_runtime_found_lock *locks =
		calloc(SS_RUNTIME_LOCKS_MAX, sizeof(*locks));
	struct ss_capture_memory copied;

	if (!locks)
		return false;
	ss_capture_memory_init(&copied, runtimes->capture, NULL);
	size_t count =
		table[index]->locks(runtimes->states[index], &copied.memory, locks);
	for (size_t i = 0; i < count; i++) {
		if (!add_lock(runtimes, table[index]->kind, &locks[i]))
			return false;
	}
	return true;
}

/* The lock that a backend of PostgreSQL waits for. It is the same as in the capture if its thread has not
   run since. */
static bool add_application_lock(struct ss_runtimes *runtimes)
{
	const struct ss_capture *capture = runtimes->capture;
	struct ss_postgres_lock found;

	if (is_recording(runtimes) || capture->threads.count != 1 ||
	    !ss_postgres_find_lock(&runtimes->process, &found) ||
	    (capture->process.mode != SS_MODE_CORE &&
	     !is_unmoved(runtimes, &capture->threads.items[0])))
		return true;
	struct ss_runtime_lock *lock = ss_vector_push(&runtimes->snapshot->runtime_locks);
	if (lock)
		*lock = (struct ss_runtime_lock){ .address = found.address,
						  .waiter = capture->threads.items[0].tid,
						  .process = found.holder };
	return lock != NULL;
}

bool ss_runtimes_add_locks(struct ss_runtimes *runtimes)
{
	for (size_t i = 0; i < RUNTIMES; i++) {
		if (runtimes->states[i] && table[i]->locks && !add_locks_of(runtimes, i))
			return false;
	}
	return add_application_lock(runtimes);
}

/* Where a task is. */
struct place {
	uint64_t address;
	size_t index;
};

SS_DEFINE_COMPARE(compare_places, struct place, address)

/* "Task-9" before "Task-10" */
static int compare_names(const void *a, const void *b)
{
	const struct ss_runtime_task *x = a;
	const struct ss_runtime_task *y = b;

	return strverscmp(x->name, y->name) ?: SS_COMPARE(x->address, y->address);
}

/* Indexes of the tasks with these addresses; of tasks that have ended there are none. */
static bool set_awaited(struct ss_snapshot *snapshot,
			const struct ss_runtime_tasks *tasks,
			const struct ss_runtime_task *from, const struct place *places,
			struct ss_task *ret)
{
	const size_t count = tasks->items.count;
	size_t *indexes =
		ss_snapshot_alloc(snapshot, from->awaited_count + 1, sizeof(*indexes));

	if (!indexes)
		return false;
	for (size_t i = 0; i < from->awaited_count; i++) {
		const uint64_t address = tasks->awaited.items[from->first_awaited + i];
		const size_t at = ss_lower_bound(count, k, places[k].address < address);
		if (at < count && places[at].address == address)
			indexes[ret->awaited_count++] = places[at].index;
	}
	ret->awaited = indexes;
	return true;
}

static bool add_task(struct ss_runtimes *runtimes, enum ss_frame_kind kind,
		     const struct ss_runtime_tasks *tasks,
		     const struct ss_runtime_task *from, const struct place *places)
{
	struct ss_snapshot *snapshot = runtimes->snapshot;
	struct ss_task *slot = ss_snapshot_add_task(snapshot, SS_TASK_ASYNCIO);

	if (!slot)
		return false;
	slot->id = from->address;
	slot->name = from->name;
	slot->status = from->status;
	slot->wait_reason = from->wait_reason;
	slot->awaits_all = from->awaits_all;
	slot->object = from->object;
	slot->greenlet = from->greenlet;
	slot->endless = from->endless ? SS_ENDLESS_OBJECT : SS_ENDLESS_NO;
	slot->loop_empty = from->loop_empty && from->thread &&
			   (runtimes->capture->process.mode == SS_MODE_CORE ||
			    is_unmoved(runtimes, from->thread));
	slot->tid = from->thread ? from->thread->tid : 0;
	slot->frame_count = from->call_count;
	runtimes->frames.count = 0;
	for (size_t i = 0; i < from->call_count; i++) {
		if (!add_call(runtimes, kind, &tasks->calls.items[from->first_call + i]))
			return false;
	}
	return ss_snapshot_add_stack(snapshot, runtimes->frames.items,
				     runtimes->frames.count, SS_END_ROOT,
				     &slot->stack_id) &&
	       set_awaited(snapshot, tasks, from, places, slot);
}

static const char *describe_problem(const struct ss_snapshot *snapshot,
				    const struct ss_runtime_tasks *tasks)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%s: %s",
		       tasks->problem ? "asyncio tasks are not shown" :
					"some greenlets may be missing",
		       tasks->problem ? tasks->problem : tasks->greenlets_problem);
	return ss_intern_string(snapshot->strings, text);
}

static bool add_tasks(struct ss_runtimes *runtimes, size_t index,
		      struct ss_runtime_tasks *tasks)
{
	struct ss_snapshot *snapshot = runtimes->snapshot;
	struct ss_task_coverage *coverage = &snapshot->coverage[SS_TASK_ASYNCIO];

	if (!table[index]->tasks(runtimes->states[index], tasks))
		return false;
	_cleanup_free_ struct place *places =
		calloc(tasks->items.count + 1, sizeof(*places));
	if (!places)
		return false;
	if (tasks->items.count > 1)
		qsort(tasks->items.items, tasks->items.count, sizeof(*tasks->items.items),
		      compare_names);
	for (size_t i = 0; i < tasks->items.count; i++)
		places[i] = (struct place){ tasks->items.items[i].address,
					    snapshot->tasks[SS_TASK_ASYNCIO].count + i };
	qsort(places, tasks->items.count, sizeof(*places), compare_places);
	coverage->changed += tasks->changed;
	coverage->unread += tasks->unread;
	if (tasks->problem || tasks->greenlets_problem) {
		coverage->problem = describe_problem(snapshot, tasks);
		if (!coverage->problem)
			return false;
	}
	for (size_t i = 0; i < tasks->items.count; i++) {
		if (!add_task(runtimes, table[index]->kind, tasks, &tasks->items.items[i],
			      places))
			return false;
	}
	return true;
}

void ss_runtimes_add_tasks(struct ss_runtimes *runtimes)
{
	struct ss_snapshot *snapshot = runtimes->snapshot;
	struct ss_task_coverage *coverage = &snapshot->coverage[SS_TASK_ASYNCIO];

	/* They are close together, and each reading waits for the parent process. */
	runtimes->memory.ahead = runtimes->after.ahead = true;
	for (size_t i = 0; i < RUNTIMES; i++) {
		const size_t before = snapshot->tasks[SS_TASK_ASYNCIO].count;
		struct ss_runtime_tasks tasks = {};
		if (!runtimes->states[i] || !table[i]->tasks)
			continue;
		coverage->known = true;
		if (!add_tasks(runtimes, i, &tasks)) {
			snapshot->tasks[SS_TASK_ASYNCIO].count = before;
			coverage->unread += SS_MAX(tasks.items.count, (size_t)1);
		}
		ss_vector_free(&tasks.items);
		ss_vector_free(&tasks.calls);
		ss_vector_free(&tasks.awaited);
	}
	runtimes->memory.ahead = runtimes->after.ahead = false;
}

/* The first runtime that has a name for a thread decides. */
static void set_name(struct ss_runtimes *runtimes, const struct ss_runtime_name *from)
{
	const size_t index = (size_t)(from->thread - runtimes->capture->threads.items);
	struct ss_task *thread = &runtimes->snapshot->tasks[SS_TASK_THREAD].items[index];

	if (thread->name != thread->comm)
		return;
	if (from->name && *from->name)
		thread->name = from->name;
	thread->runtime_id = from->id;
	thread->priority = from->priority;
	thread->daemon = from->daemon;
}

void ss_runtimes_add_names(struct ss_runtimes *runtimes)
{
	/* Those of the previous capture of a series do not count. */
	for (size_t i = 0; i < runtimes->capture->threads.count; i++) {
		struct ss_task *thread =
			&runtimes->snapshot->tasks[SS_TASK_THREAD].items[i];
		thread->name = thread->comm;
		thread->runtime_id = 0;
		thread->priority = 0;
		thread->daemon = false;
	}
	runtimes->memory.ahead = runtimes->after.ahead = true;
	for (size_t i = 0; i < RUNTIMES; i++) {
		struct ss_runtime_names names = {};
		if (runtimes->states[i] && table[i]->names &&
		    table[i]->names(runtimes->states[i], &names)) {
			for (size_t k = 0; k < names.items.count; k++)
				set_name(runtimes, &names.items.items[k]);
		}
		ss_vector_free(&names.items);
	}
	runtimes->memory.ahead = runtimes->after.ahead = false;
}

void ss_runtimes_add_signals(struct ss_runtimes *runtimes)
{
	struct ss_snapshot *snapshot = runtimes->snapshot;

	if (is_recording(runtimes))
		return;
	runtimes->memory.ahead = true;
	for (size_t i = 0; i < RUNTIMES; i++) {
		for (size_t k = 0; k < snapshot->runtimes.count && runtimes->states[i] &&
				   table[i]->no_signal_code;
		     k++) {
			struct ss_runtime_info *info = &snapshot->runtimes.items[k];
			if (info->kind == table[i]->kind && !info->problem)
				info->no_signal_code =
					table[i]->no_signal_code(runtimes->states[i]);
		}
	}
	runtimes->memory.ahead = false;
}

void ss_runtimes_plan(struct ss_runtimes *runtimes)
{
	struct ss_gather_plan plan = { .size = sizeof(plan) };

	for (size_t i = 0; i < RUNTIMES; i++) {
		const struct ss_runtime_wanted wanted = {
			.threads = runtimes->wanted[i].items,
			.count = runtimes->wanted[i].count,
			.all = is_recording(runtimes) || runtimes->options.many,
			.others = !is_recording(runtimes),
		};
		if (wanted.count > 0 && table[i]->plan &&
		    table[i]->plan(runtimes->states[i], &wanted, &plan)) {
			runtimes->snapshot->runtime_plan = plan;
			runtimes->snapshot->runtime_plan_many = runtimes->options.many;
			return;
		}
	}
}
