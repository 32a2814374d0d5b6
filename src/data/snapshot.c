#include "data/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/graph.h"
#include "base/scan.h"
#include "base/search.h"
#include "base/vector.h"
#include "data/capture.h"
#include "data/gather.h"
#include "data/pipeline.h"
#include "stacksnap.h"

#define SS_STRINGIFY(x) #x
#define SS_STRING(x) SS_STRINGIFY(x)

const char *ss_version(void)
{
	return SS_STRING(SS_VERSION_MAJOR) "." SS_STRING(SS_VERSION_MINOR) "." SS_STRING(
		SS_VERSION_PATCH);
}

/*
 * A snapshot of places that come from elsewhere: each is the stack of a thread, with one frame.
 */

enum { PLACES_MAX = 4 << 20, MODULES_MAX = 64 << 10 };

static bool is_module(const struct ss_module *module, const struct ss_place *place)
{
	return strcmp(module->build_id, place->build_id) == 0 &&
	       strcmp(module->path, place->path ? place->path : "") == 0;
}

/* Finds or adds the module of a place; last is that of the place before. */
static struct ss_error *find_module(struct ss_snapshot *snapshot,
				    const struct ss_place *place, size_t last,
				    size_t *ret)
{
	uint8_t id[SS_BUILD_ID_MAX];
	size_t size = 0;

	if (last < snapshot->modules.count &&
	    is_module(&snapshot->modules.items[last]->pub, place)) {
		*ret = last;
		return NULL;
	}
	for (size_t i = 0; i < snapshot->modules.count; i++) {
		if (is_module(&snapshot->modules.items[i]->pub, place)) {
			*ret = i;
			return NULL;
		}
	}
	if (!ss_scan_bytes(place->build_id, id, sizeof(id), &size) || size == 0)
		return ss_error_new(SS_ERROR_INVALID, "'%s' is not a build-id",
				    place->build_id);
	if (snapshot->modules.count >= MODULES_MAX)
		return ss_error_new(SS_ERROR_INVALID, "there are more than %d modules",
				    MODULES_MAX);
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new(place->path ? place->path : "", 0, UINT64_MAX);
	struct ss_module_impl **slot =
		module && ss_module_set_build_id(module, id, size) ?
			ss_vector_push(&snapshot->modules) :
			NULL;
	if (!slot)
		return ss_error_no_memory();
	*slot = take_ptr(module);
	*ret = snapshot->modules.count - 1;
	return NULL;
}

static bool add(struct ss_snapshot *snapshot, const struct ss_place *place, size_t module)
{
	struct ss_task *thread = ss_snapshot_add_task(snapshot, SS_TASK_THREAD);
	struct ss_stack *stack = thread ? ss_vector_push(&snapshot->stacks) : NULL;
	struct ss_frame *frame = stack ? calloc(1, sizeof(*frame)) : NULL;

	if (!frame) {
		snapshot->stacks.count -= stack != NULL;
		return false;
	}
	*frame = (struct ss_frame){
		.pc = place->offset,
		.module = &snapshot->modules.items[module]->pub,
		.module_index = (int32_t)module,
		.offset = place->offset,
		.lookup_offset = place->offset,
	};
	*stack = (struct ss_stack){ .frames = frame, .count = 1 };
	thread->frame_count = 1;
	thread->stack_id = (uint32_t)snapshot->stacks.count - 1;
	return true;
}

struct ss_error *ss_snapshot_new_places(const struct ss_place *places, size_t count,
					struct ss_snapshot **ret)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = ss_snapshot_new();
	size_t module = 0;

	if (!snapshot)
		return ss_error_no_memory();
	if (count > PLACES_MAX)
		return ss_error_new(SS_ERROR_INVALID, "there are more than %d places",
				    PLACES_MAX);
	for (size_t i = 0; i < count; i++) {
		struct ss_error *error =
			find_module(snapshot, &places[i], module, &module);
		if (error)
			return error;
		if (!add(snapshot, &places[i], module))
			return ss_error_no_memory();
	}
	*ret = take_ptr(snapshot);
	return NULL;
}

struct ss_snapshot *ss_snapshot_new(void)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot =
		calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return NULL;
	snapshot->arch = &ss_arch_host;
	snapshot->strings = ss_intern_new();
	return snapshot->strings ? take_ptr(snapshot) : NULL;
}

void ss_snapshot_free(struct ss_snapshot *snapshot)
{
	if (!snapshot)
		return;
	for (size_t i = 0; i < snapshot->stacks.count; i++)
		free(snapshot->stacks.items[i].frames);
	ss_vector_free(&snapshot->stacks);
	for (size_t i = 0; i < SS_TASK_KINDS; i++)
		ss_vector_free(&snapshot->tasks[i]);
	ss_hash_deinit(&snapshot->stack_ids);
	for (size_t i = 0; i < snapshot->modules.count; i++)
		ss_module_unref(snapshot->modules.items[i]);
	ss_vector_free(&snapshot->modules);
	for (size_t i = 0; i < snapshot->perf_maps.count; i++)
		ss_module_unref(snapshot->perf_maps.items[i].file);
	ss_vector_free(&snapshot->perf_maps);
	ss_vector_free(&snapshot->references);
	ss_facts_unref(snapshot->facts);
	free(snapshot->waits);
	free(snapshot->descriptors);
	for (size_t i = 0; i < snapshot->blocks.count; i++)
		free(snapshot->blocks.items[i]);
	ss_vector_free(&snapshot->blocks);
	ss_vector_free(&snapshot->runtimes);
	ss_vector_free(&snapshot->runtime_locks);
	ss_vector_free(&snapshot->places);
	ss_vector_free(&snapshot->deadlocks);
	ss_vector_free(&snapshot->blockers);
	ss_vector_free(&snapshot->application_locks);
	ss_vector_free(&snapshot->cycles);
	for (size_t i = 0; i < snapshot->others.count; i++)
		ss_snapshot_free(snapshot->others.items[i]);
	ss_vector_free(&snapshot->others);
	ss_intern_free(snapshot->strings);
	free(snapshot->problem);
	free(snapshot);
}

struct ss_task *ss_snapshot_add_task(struct ss_snapshot *snapshot, enum ss_task_kind kind)
{
	struct ss_task *task = ss_vector_push(&snapshot->tasks[kind]);

	if (task)
		*task = (struct ss_task){ .kind = kind, .name = "", .state = '?' };
	return task;
}

void *ss_snapshot_alloc(struct ss_snapshot *snapshot, size_t count, size_t size)
{
	void **slot = ss_vector_push(&snapshot->blocks);

	if (!slot)
		return NULL;
	*slot = calloc(count ? count : 1, size);
	return *slot;
}

const struct ss_snapshot *ss_snapshot_related(const struct ss_snapshot *snapshot,
					      size_t index)
{
	const struct ss_snapshot *first = snapshot->first ? snapshot->first : snapshot;

	if (index == 0)
		return first;
	return index <= first->others.count ? first->others.items[index - 1] : NULL;
}

const struct ss_task *ss_snapshot_find_thread(const struct ss_snapshot *snapshot,
					      pid_t tid)
{
	const struct ss_task *threads = snapshot->tasks[SS_TASK_THREAD].items;
	const size_t count = snapshot->tasks[SS_TASK_THREAD].count;
	const struct ss_task *found = ss_search(threads, count, tid, tid);

	return found || !snapshot->not_shown ?
		       found :
		       ss_search(threads + count, snapshot->not_shown, tid, tid);
}

static bool passes(const struct ss_task *thread, ss_thread_filter *filter, void *data)
{
	const char *comm = thread->comm ? thread->comm : thread->name;

	return filter(data, thread->tid, thread->name, thread->state) ||
	       (strcmp(comm, thread->name) != 0 &&
		filter(data, thread->tid, comm, thread->state));
}

/* Threads that are moved. */
struct move {
	const struct ss_snapshot *snapshot;
	const struct ss_task *items;
	size_t count;
	const size_t *to; /* by index: the new one */
};

static void move_indexes(const struct move *move, const size_t *indexes, size_t count)
{
	size_t *items = ss_drop_const(indexes);

	for (size_t i = 0; i < count; i++)
		items[i] = move->to[items[i]];
}

static void move_refs(const struct move *move, const struct ss_thread_ref *refs,
		      size_t count)
{
	struct ss_thread_ref *items = ss_drop_const(refs);

	for (size_t i = 0; i < count; i++) {
		if (items[i].snapshot == move->snapshot)
			items[i].thread =
				&move->items[move->to[items[i].thread - move->items]];
	}
}

static void move_chains(const struct move *move, const struct ss_snapshot *process)
{
	for (size_t i = 0; i < process->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_wait *wait = process->tasks[SS_TASK_THREAD].items[i].wait;
		if (wait)
			move_refs(move, wait->chain, wait->chain_length);
	}
}

/* Changes all that refers to threads of the snapshot, before they are moved. */
static void move_references(struct ss_snapshot *snapshot, const struct move *move)
{
	move_chains(move, snapshot);
	for (size_t i = 0; i < snapshot->others.count; i++)
		move_chains(move, snapshot->others.items[i]);
	for (size_t i = 0; i < snapshot->cycles.count; i++)
		move_refs(move, snapshot->cycles.items[i].members,
			  snapshot->cycles.items[i].count);
	for (size_t i = 0; i < snapshot->deadlocks.count; i++)
		move_indexes(move, snapshot->deadlocks.items[i].threads,
			     snapshot->deadlocks.items[i].count);
	for (size_t i = 0; i < snapshot->blockers.count; i++)
		snapshot->blockers.items[i].thread =
			move->to[snapshot->blockers.items[i].thread];
	for (size_t i = 0; i < snapshot->application_locks.count; i++) {
		const struct ss_application_lock *lock =
			&snapshot->application_locks.items[i];
		move_indexes(move, lock->suspects, lock->suspect_count);
		move_indexes(move, lock->client_suspects, lock->client_suspect_count);
	}
}

bool ss_snapshot_select(struct ss_snapshot *snapshot, ss_thread_filter *filter,
			void *data)
{
	struct ss_task *items = snapshot->tasks[SS_TASK_THREAD].items;
	const size_t count = snapshot->tasks[SS_TASK_THREAD].count;
	_cleanup_free_ struct ss_task *moved = calloc(count + 1, sizeof(*moved));
	_cleanup_free_ size_t *to = calloc(count + 1, sizeof(*to));
	_cleanup_free_ bool *selected = calloc(count + 1, sizeof(*selected));
	size_t shown = 0;

	if (!moved || !to || !selected)
		return false;
	for (size_t i = 0; i < count; i++) {
		selected[i] = passes(&items[i], filter, data);
		if (selected[i])
			to[i] = shown++;
	}
	for (size_t i = 0, next = shown; i < count; i++) {
		if (!selected[i])
			to[i] = next++;
		moved[to[i]] = items[i];
	}
	const struct move move = { snapshot, items, count, to };
	move_references(snapshot, &move);
	if (count)
		memcpy(items, moved, count * sizeof(*items));
	snapshot->tasks[SS_TASK_THREAD].count = shown;
	snapshot->not_shown = count - shown;
	snapshot->process.threads_left_out += (unsigned)snapshot->not_shown;
	return true;
}

/* Frames without a name yet have no symbol, file and line; strings are interned. */
static bool same_frame(const struct ss_frame *a, const struct ss_frame *b)
{
	return a->pc == b->pc && a->module == b->module &&
	       a->signal_frame == b->signal_frame && a->source == b->source &&
	       a->omitted == b->omitted && a->kind == b->kind &&
	       a->replaced == b->replaced && a->symbol == b->symbol &&
	       a->file == b->file && a->line == b->line;
}

static bool same_frames(const struct ss_frame *a, const struct ss_frame *b, size_t count)
{
	return ss_all(count, i, same_frame(&a[i], &b[i]));
}

static uint64_t hash_frames(const struct ss_frame *frames, size_t count, enum ss_end end)
{
	uint64_t hash = (uint64_t)end;

	for (size_t i = 0; i < count; i++) {
		const uint64_t key[] = { frames[i].pc, (uintptr_t)frames[i].symbol,
					 frames[i].line };
		size_t size = frames[i].kind == SS_FRAME_NATIVE ? sizeof(key[0]) :
								  sizeof(key);
		hash = XXH3_64bits_withSeed(key, size, hash);
	}
	return hash;
}

struct query {
	const struct ss_snapshot *snapshot;
	const struct ss_frame *frames;
	size_t count;
	enum ss_end end;
};

static bool is_same(const void *context, uint32_t id)
{
	const struct query *query = context;
	const struct ss_stack *a = &query->snapshot->stacks.items[id];

	return a->end == query->end && a->count == query->count &&
	       same_frames(a->frames, query->frames, a->count);
}

bool ss_snapshot_add_stack(struct ss_snapshot *snapshot, const struct ss_frame *frames,
			   size_t count, enum ss_end end, uint32_t *ret)
{
	const struct query query = { snapshot, frames, count, end };
	uint64_t hash = hash_frames(frames, count, end);
	uint32_t id = ss_hash_find(&snapshot->stack_ids, hash, is_same, &query);

	if (id != SS_HASH_NONE) {
		*ret = id;
		return true;
	}
	if (!ss_hash_reserve(&snapshot->stack_ids))
		return false;
	struct ss_stack *added = ss_vector_push(&snapshot->stacks);
	struct ss_frame *copy = calloc(count ? count : 1, sizeof(*copy));
	if (!added || !copy) {
		snapshot->stacks.count -= added ? 1 : 0;
		free(copy);
		return false;
	}
	if (count)
		memcpy(copy, frames, count * sizeof(*copy));
	*added = (struct ss_stack){ .frames = copy, .count = count, .end = end };
	*ret = (uint32_t)snapshot->stacks.count - 1;
	ss_hash_insert(&snapshot->stack_ids, hash, *ret);
	return true;
}

SS_DEFINE_COMPARE(compare_places, struct ss_lock_place, address)

void ss_snapshot_sort_places(struct ss_snapshot *snapshot)
{
	struct ss_lock_place *items = snapshot->places.items;
	size_t count = 0;

	if (snapshot->places.count > 1)
		qsort(items, snapshot->places.count, sizeof(*items), compare_places);
	for (size_t i = 0; i < snapshot->places.count; i++) {
		if (count == 0 || items[count - 1].address != items[i].address)
			items[count++] = items[i];
	}
	snapshot->places.count = count;
}

const struct ss_lock_place *ss_snapshot_find_place(const struct ss_snapshot *snapshot,
						   uint64_t address)
{
	const struct ss_lock_place key = { .address = address };

	return snapshot->places.count ?
		       bsearch(&key, snapshot->places.items, snapshot->places.count,
			       sizeof(key), compare_places) :
		       NULL;
}

void ss_snapshot_recount(struct ss_snapshot *snapshot)
{
	for (size_t kind = 0; kind < SS_TASK_KINDS; kind++) {
		for (size_t i = 0; i < snapshot->tasks[kind].count; i++) {
			struct ss_task *task = &snapshot->tasks[kind].items[i];
			task->frame_count = snapshot->stacks.items[task->stack_id].count;
		}
	}
}

bool ss_snapshot_check_task_cycles(struct ss_snapshot *snapshot)
{
	struct ss_task *tasks = snapshot->tasks[SS_TASK_ASYNCIO].items;
	const size_t count = snapshot->tasks[SS_TASK_ASYNCIO].count;
	_cleanup_free_ size_t *next = calloc(count + 1, sizeof(*next));
	struct ss_graph graph;

	if (!next)
		return false;
	for (size_t i = 0; i < count; i++)
		next[i] = tasks[i].in_cycle ? tasks[i].cycle_next : SS_GRAPH_NONE;
	if (!ss_graph_init(&graph, next, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		tasks[i].in_cycle = graph.cyclic[i];
		if (!graph.cyclic[i])
			tasks[i].cycle_next = 0;
	}
	ss_graph_deinit(&graph);
	return true;
}

const struct ss_process *ss_snapshot_process(const struct ss_snapshot *snapshot)
{
	return &snapshot->process;
}

size_t ss_snapshot_task_count(const struct ss_snapshot *snapshot, enum ss_task_kind kind)
{
	return snapshot->tasks[kind].count;
}

const struct ss_task *ss_snapshot_task(const struct ss_snapshot *snapshot,
				       enum ss_task_kind kind, size_t index)
{
	const struct ss_task *items = snapshot->tasks[kind].items;

	return items ? &items[index] : NULL;
}

const struct ss_task_coverage *
ss_snapshot_task_coverage(const struct ss_snapshot *snapshot, enum ss_task_kind kind)
{
	return &snapshot->coverage[kind];
}

size_t ss_snapshot_module_count(const struct ss_snapshot *snapshot)
{
	return snapshot->modules.count;
}

const struct ss_module *ss_snapshot_module(const struct ss_snapshot *snapshot,
					   size_t index)
{
	return &snapshot->modules.items[index]->pub;
}

size_t ss_snapshot_runtime_count(const struct ss_snapshot *snapshot)
{
	return snapshot->runtimes.count;
}

const struct ss_runtime_info *ss_snapshot_runtime(const struct ss_snapshot *snapshot,
						  size_t index)
{
	return &snapshot->runtimes.items[index];
}

/* Whether the plan has copied nothing, or there is another one now, or a thread that lacks
   functions was not stopped with it: it has begun to run, or waited for a CPU. */
static bool helps_again(const struct ss_snapshot *snapshot,
			const struct ss_capture *capture)
{
	if (capture->gathered.blocks.count == 0 || capture->gathered.late)
		return true;
	if (!snapshot->runtime_plan_many)
		return false;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		if (thread->native_reason && thread->stopped_ns == 0)
			return true;
	}
	return capture->plan_id != ss_gather_plan_id(&snapshot->runtime_plan);
}

bool ss_snapshot_plan_runtimes(const struct ss_snapshot *snapshot,
			       const struct ss_capture *capture,
			       struct ss_gather_plan *ret)
{
	if (snapshot->runtime_plan.step_count == 0 ||
	    capture->process.mode == SS_MODE_NO_STOP ||
	    capture->process.mode == SS_MODE_CORE || !helps_again(snapshot, capture))
		return false;
	*ret = snapshot->runtime_plan;
	return true;
}

size_t ss_snapshot_deadlock_count(const struct ss_snapshot *snapshot)
{
	return snapshot->deadlocks.count;
}

const struct ss_deadlock *ss_snapshot_deadlock(const struct ss_snapshot *snapshot,
					       size_t index)
{
	return &snapshot->deadlocks.items[index];
}

size_t ss_snapshot_blocker_count(const struct ss_snapshot *snapshot)
{
	return snapshot->blockers.count;
}

const struct ss_blocker *ss_snapshot_blocker(const struct ss_snapshot *snapshot,
					     size_t index)
{
	return &snapshot->blockers.items[index];
}

size_t ss_snapshot_application_lock_count(const struct ss_snapshot *snapshot)
{
	return snapshot->application_locks.count;
}

const struct ss_application_lock *
ss_snapshot_application_lock(const struct ss_snapshot *snapshot, size_t index)
{
	return &snapshot->application_locks.items[index];
}

const struct ss_frame *ss_snapshot_frame(const struct ss_snapshot *snapshot,
					 const struct ss_task *task, size_t index)
{
	return &snapshot->stacks.items[task->stack_id].frames[index];
}

bool ss_snapshot_crash_register(const struct ss_snapshot *snapshot, size_t index,
				struct ss_register *ret)
{
	if (!snapshot->arch || !snapshot->arch->reg_names ||
	    index >= snapshot->arch->reg_count || snapshot->process.crash.signal == 0 ||
	    !ss_regs_get(&snapshot->crash_regs, (unsigned)index, &ret->value))
		return false;
	ret->name = snapshot->arch->reg_names[index];
	return true;
}

/* Recursion through at most so many functions counts once: how deep it goes until a stack
   overflows depends on the environment and on ASLR. */
enum { PERIOD_MAX = 8 };

/* Of a stack overflow. Recursion through more functions is not recognised. */
enum { INNER_FRAMES = 200 };

typedef SS_VECTOR(XXH128_hash_t) hash_list;

/* What is the same in every process that runs this build. Code outside of files has no place
   in one; and a core file does not have the names of memory areas. */
static XXH128_hash_t hash_frame(const struct ss_frame *frame)
{
	const char *file = frame->module ? frame->module->build_id : NULL;
	uint64_t offset = frame->module ? frame->lookup_offset : 0;

	if (frame->module && !file)
		file = frame->module->path;
	if (frame->kind != SS_FRAME_NATIVE) {
		file = frame->symbol;
		offset = frame->line;
	}
	return XXH3_128bits_withSeed(file, file ? strlen(file) : 0,
				     offset ^ (frame->signal_frame ? UINT64_MAX : 0));
}

/* Drops the end of the list if it repeats what is before it. */
static void drop_repeat(hash_list *list)
{
	for (size_t period = 1; period <= PERIOD_MAX && 2 * period <= list->count;
	     period++) {
		const XXH128_hash_t *last = list->items + list->count - period;
		if (memcmp(last, last - period, period * sizeof(*last)) == 0) {
			list->count -= period;
			return;
		}
	}
}

static int compare_hashes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(XXH128_hash_t));
}

/*
 * Replaces the list by what occurs more than once at its end, sorted: the recursion, without
 * its beginning, and without the functions that it called last. Without recursion the list
 * stays. False without memory.
 */
static bool keep_recursion(hash_list *list)
{
	size_t count = SS_MIN(list->count, (size_t)INNER_FRAMES);
	size_t kept = 0;

	if (count < 2)
		return true;
	XXH128_hash_t *inner = malloc(count * sizeof(*inner));
	if (!inner)
		return false;
	memcpy(inner, list->items + list->count - count, count * sizeof(*inner));
	qsort(inner, count, sizeof(*inner), compare_hashes);
	for (size_t i = 1; i < count; i++) {
		bool repeated = compare_hashes(&inner[i], &inner[i - 1]) == 0;
		if (repeated &&
		    (kept == 0 || compare_hashes(&inner[i], &list->items[kept - 1]) != 0))
			list->items[kept++] = inner[i];
	}
	free(inner);
	if (kept)
		list->count = kept;
	return true;
}

/* Native frames that were inlined are known only with debug information, and those for which
   frames of a runtime stand are shown only on demand. */
static bool counts(const struct ss_frame *frame)
{
	return !frame->replaced && !(frame->inlined && frame->kind == SS_FRAME_NATIVE);
}

static bool is_overflow(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	const struct ss_crash *crash = &snapshot->process.crash;

	return crash->stack_overflow && crash->tid == thread->tid;
}

struct ss_error *ss_snapshot_signature(const struct ss_snapshot *snapshot,
				       const struct ss_task *thread,
				       char ret[SS_SIGNATURE_SIZE])
{
	bool overflow = is_overflow(snapshot, thread);
	bool ok = true;
	hash_list list = {};

	for (size_t i = thread->frame_count; ok && i-- > 0;) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if (!counts(frame))
			continue;
		XXH128_hash_t *slot = ss_vector_push(&list);
		if ((ok = slot != NULL))
			*slot = hash_frame(frame);
		if (!overflow)
			drop_repeat(&list);
	}
	ok = ok && (!overflow || keep_recursion(&list));
	XXH128_hash_t hash = XXH3_128bits(list.items, list.count * sizeof(*list.items));
	ss_vector_free(&list);
	if (!ok)
		return ss_error_no_memory();
	(void)snprintf(ret, SS_SIGNATURE_SIZE, "%016" PRIx64 "%016" PRIx64,
		       (uint64_t)hash.high64, (uint64_t)hash.low64);
	return NULL;
}
