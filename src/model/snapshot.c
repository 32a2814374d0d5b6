#include "model/snapshot.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/search.h"
#include "model/capture.h"
#include "model/gather.h"
#include "model/pipeline.h"

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
	ss_vector_free(&snapshot->threads);
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
	ss_vector_free(&snapshot->goroutines);
	ss_vector_free(&snapshot->async_tasks);
	for (size_t i = 0; i < snapshot->others.count; i++)
		ss_snapshot_free(snapshot->others.items[i]);
	ss_vector_free(&snapshot->others);
	ss_intern_free(snapshot->strings);
	free(snapshot);
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

const struct ss_thread *ss_snapshot_find_thread(const struct ss_snapshot *snapshot,
						pid_t tid)
{
	size_t low = ss_lower_bound(snapshot->threads.count, i,
				    snapshot->threads.items[i].tid < tid);

	return low < snapshot->threads.count && snapshot->threads.items[low].tid == tid ?
		       &snapshot->threads.items[low] :
		       NULL;
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
	for (size_t i = 0; i < count; i++) {
		if (!same_frame(&a[i], &b[i]))
			return false;
	}
	return true;
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

static int compare_places(const void *a, const void *b)
{
	const struct ss_lock_place *x = a;
	const struct ss_lock_place *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

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
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		struct ss_thread *thread = &snapshot->threads.items[i];
		thread->frame_count = snapshot->stacks.items[thread->stack_id].count;
	}
	for (size_t i = 0; i < snapshot->goroutines.count; i++) {
		struct ss_goroutine *goroutine = &snapshot->goroutines.items[i];
		goroutine->frame_count =
			snapshot->stacks.items[goroutine->stack_id].count;
	}
	for (size_t i = 0; i < snapshot->async_tasks.count; i++) {
		struct ss_async_task *task = &snapshot->async_tasks.items[i];
		task->frame_count = snapshot->stacks.items[task->stack_id].count;
	}
}

const struct ss_process *ss_snapshot_process(const struct ss_snapshot *snapshot)
{
	return &snapshot->process;
}

size_t ss_snapshot_thread_count(const struct ss_snapshot *snapshot)
{
	return snapshot->threads.count;
}

const struct ss_thread *ss_snapshot_thread(const struct ss_snapshot *snapshot,
					   size_t index)
{
	return &snapshot->threads.items[index];
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
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		const struct ss_thread *thread = &snapshot->threads.items[i];
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
					 const struct ss_thread *thread, size_t index)
{
	return &snapshot->stacks.items[thread->stack_id].frames[index];
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
