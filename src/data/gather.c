#include "data/gather.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/search.h"
#include "data/capture.h"
#include "data/pipeline.h"

/* NULL, or the problem with the part of a step that refers to its parent. */
static const char *check_parent(const struct ss_gather_plan *plan, size_t index)
{
	const struct ss_gather_step *step = &plan->steps[index];
	uint64_t pointer_end = (uint64_t)step->field + sizeof(uint64_t);
	uint64_t count_end = (uint64_t)step->count_field + step->count_size;

	if (step->parent >= index)
		return "its parent is not an earlier step";
	uint32_t size = plan->steps[step->parent].size;
	if (step->base == SS_GATHER_NODE && (step->stride != 0 || step->field != 0))
		return "it has a field and no pointer";
	if (step->base == SS_GATHER_POINTER && pointer_end > size)
		return "its pointer lies outside of its parent";
	if (step->stride != 0 && step->stride < sizeof(uint64_t))
		return "its stride is smaller than a pointer";
	if (step->end_size != 0 && (step->end_size != sizeof(uint64_t) ||
				    (uint64_t)step->end_field + step->end_size > size))
		return "its end lies outside of its parent";
	if (step->count_size == 0)
		return NULL;
	if (step->count_size != sizeof(uint32_t) && step->count_size != sizeof(uint64_t))
		return "its count is neither 4 nor 8 bytes";
	if (count_end > size)
		return "its count lies outside of its parent";
	return step->element == 0 ? "its elements have no size" : NULL;
}

static const char *check_step(const struct ss_gather_plan *plan, size_t index)
{
	const struct ss_gather_step *step = &plan->steps[index];
	bool has_parent = step->base == SS_GATHER_NODE || step->base == SS_GATHER_POINTER;

	if (step->base > SS_GATHER_ROOT)
		return "its base is not known";
	if (step->size == 0 || step->size > SS_GATHER_COPY_MAX)
		return "it copies nothing, or too much";
	if (step->max_nodes == 0 || step->max_nodes > SS_GATHER_NODES_MAX)
		return "it has no nodes, or too many";
	if (step->mask == 0)
		return "its mask keeps nothing";
	if (step->reserved != 0 || step->check_size > SS_GATHER_CHECK_MAX ||
	    step->check_size > step->size)
		return "it checks more than it copies, or too much";
	if (step->max_nodes > 1 && (uint64_t)step->next + sizeof(uint64_t) > step->size)
		return "the pointer to the next node lies outside of a node";
	if (has_parent)
		return check_parent(plan, index);
	return step->count_size != 0 || step->stride != 0 || step->field != 0 ||
			       step->end_size != 0 ?
		       "it has no parent to read a field of" :
		       NULL;
}

struct ss_error *ss_gather_plan_check(const struct ss_gather_plan *plan)
{
	if (plan->size != sizeof(*plan) || plan->root_count > SS_GATHER_ROOTS_MAX)
		return ss_error_new(SS_ERROR_INVALID,
				    "gather plan: made for another version");
	if (plan->step_count == 0 || plan->step_count > SS_GATHER_STEPS_MAX)
		return ss_error_new(SS_ERROR_INVALID, "gather plan: %u steps",
				    plan->step_count);
	if (plan->max_nodes == 0 || plan->max_nodes > SS_GATHER_NODES_MAX ||
	    plan->max_bytes == 0 || plan->max_bytes > SS_GATHER_BYTES_MAX ||
	    plan->max_reads == 0 || plan->max_reads > SS_GATHER_READS_MAX)
		return ss_error_new(SS_ERROR_INVALID,
				    "gather plan: a limit is 0 or too large");
	for (size_t i = 0; i < plan->step_count; i++) {
		const char *problem = check_step(plan, i);
		if (problem)
			return ss_error_new(SS_ERROR_INVALID, "gather plan: step %zu: %s",
					    i, problem);
	}
	return NULL;
}

/* More is used hardly ever: 50 threads with 50 functions of Python need 0.3 MiB of the 8 of their plan. Beyond,
   to fault in a page in the freeze takes less time than to copy what fills it, unless the memory limit of a
   cgroup makes it wait. A series and a recording use the same memory again. */
enum { READY_MAX = 2 << 20 };

/* Memory that is faulted in already: the freeze must not wait for pages. */
static void *reserve(size_t size, bool freeze)
{
	void *bytes = malloc(size);

	if (bytes && freeze) /* the compiler would make zeros a calloc() */
		memset(bytes, 0xff, SS_MIN(size, (size_t)READY_MAX));
	return bytes;
}

static bool has_checks(const struct ss_gather_plan *plan)
{
	return ss_any(plan->step_count, i, plan->steps[i].check_size > 0);
}

static int compare_tids(const void *a, const void *b, void *data)
{
	const struct ss_gather_root *roots = data;

	return SS_COMPARE(roots[*(const uint16_t *)a].tid,
			  roots[*(const uint16_t *)b].tid);
}

static int compare_pointers(const void *a, const void *b, void *data)
{
	const struct ss_gather_root *roots = data;

	return SS_COMPARE(roots[*(const uint16_t *)a].thread_pointer,
			  roots[*(const uint16_t *)b].thread_pointer);
}

static void sort_roots(struct ss_gather *gather)
{
	struct ss_gather_plan *plan = &gather->plan;

	for (size_t i = 0; i < plan->root_count; i++)
		gather->by_tid[i] = gather->by_pointer[i] = (uint16_t)i;
	qsort_r(gather->by_tid, plan->root_count, sizeof(*gather->by_tid), compare_tids,
		plan->roots);
	qsort_r(gather->by_pointer, plan->root_count, sizeof(*gather->by_pointer),
		compare_pointers, plan->roots);
}

struct ss_error *ss_gather_new(const struct ss_gather_plan *plan, bool freeze,
			       struct ss_gather **ret)
{
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather =
		reserve(sizeof(*gather), freeze);
	const size_t batch = (size_t)SS_GATHER_BATCH * SS_GATHER_CHECK_MAX;

	if (!gather)
		return ss_error_no_memory();
	/* Check the copy: plan may be in memory that others can write to. */
	*gather = (struct ss_gather){ .plan = *plan, .touched = freeze };
	struct ss_error *error = ss_gather_plan_check(&gather->plan);
	if (error)
		return error;
	gather->nodes = reserve(gather->plan.max_nodes * sizeof(*gather->nodes), freeze);
	gather->bytes = reserve(gather->plan.max_bytes, freeze);
	sort_roots(gather);
	bool checks = has_checks(&gather->plan);
	if (checks)
		gather->again = reserve(batch, freeze);
	if (!gather->nodes || !gather->bytes || (checks && !gather->again))
		return ss_error_no_memory();
	*ret = take_ptr(gather);
	return NULL;
}

bool ss_gather_set_plan(struct ss_gather *gather, const struct ss_gather_plan *plan)
{
	const struct ss_gather_plan copy = *plan;

	if (copy.max_nodes != gather->plan.max_nodes ||
	    copy.max_bytes != gather->plan.max_bytes || has_checks(&gather->plan))
		return false;
	struct ss_error *error = ss_gather_plan_check(&copy);
	bool valid = !error;
	ss_error_free(error);
	if (!valid || has_checks(&copy))
		return false;
	gather->plan = copy;
	sort_roots(gather);
	return true;
}

void ss_gather_free(struct ss_gather *gather)
{
	if (!gather)
		return;
	free(gather->nodes);
	free(gather->bytes);
	free(gather->again);
	free(gather);
}

/* The rest of the arrays is not used. Thread ids of roots are left out: in another pid namespace
   they depend on which threads a plan is made for. */
uint64_t ss_gather_plan_id(const struct ss_gather_plan *plan)
{
	uint64_t id = XXH3_64bits(plan, offsetof(struct ss_gather_plan, steps));

	id = XXH3_64bits_withSeed(plan->steps, plan->step_count * sizeof(*plan->steps),
				  id);
	for (uint32_t i = 0; i < plan->root_count; i++) {
		const uint64_t root[] = { plan->roots[i].address,
					  plan->roots[i].thread_pointer };
		id = XXH3_64bits_withSeed(root, sizeof(root), id);
	}
	return id;
}

bool ss_gather_reads_again(const struct ss_gather *gather)
{
	return has_checks(&gather->plan);
}

/* False without memory. */
static bool list_changed(const struct ss_gather *gather, struct ss_gathered *ret)
{
	for (size_t i = 0; i < gather->node_count; i++) {
		if (!gather->nodes[i].changed)
			continue;
		uint64_t *slot = ss_vector_push(&ret->changed);
		if (!slot)
			return false;
		*slot = gather->nodes[i].address;
	}
	if (ret->changed.count > 1)
		qsort(ret->changed.items, ret->changed.count, sizeof(uint64_t),
		      ss_compare_u64);
	return true;
}

/* Adds the nodes from first on. */
static void add_blocks(const struct ss_gather *gather, size_t first,
		       struct ss_gathered *ret)
{
	for (size_t i = first; i < gather->node_count; i++) {
		const struct ss_gather_node *node = &gather->nodes[i];
		if (node->size > 0)
			ret->blocks.items[ret->blocks.count++] =
				(struct ss_memory_block){ .address = node->address,
							  .size = node->size,
							  .bytes = node->bytes };
	}
	ret->truncated = gather->truncated;
	ss_gathered_sort(ret);
}

struct ss_error *ss_gather_give_later(struct ss_gather *gather, struct ss_gathered *ret)
{
	const size_t first = gather->has_later ? gather->later : gather->node_count;

	if (!ss_vector_reserve(&ret->blocks, gather->node_count - first))
		return ss_error_no_memory();
	add_blocks(gather, first, ret);
	gather->node_count = first;
	return NULL;
}

struct ss_error *ss_gather_give(struct ss_gather *gather, struct ss_gathered *ret)
{
	if (!ss_vector_reserve(&ret->blocks, gather->node_count) ||
	    !list_changed(gather, ret))
		return ss_error_no_memory();
	add_blocks(gather, 0, ret);
	ret->bytes = take_ptr(gather->bytes);
	return NULL;
}

static void move_blocks(struct ss_gathered *gathered, const uint8_t *from,
			const uint8_t *to)
{
	for (size_t i = 0; i < gathered->blocks.count; i++) {
		struct ss_memory_block *block = &gathered->blocks.items[i];
		block->bytes = to + (block->bytes - from);
	}
}

bool ss_gather_take_back(struct ss_gather *gather, struct ss_gathered *gathered,
			 struct ss_gathered *later)
{
	uint8_t *copy = gather->touched ? malloc(gather->used + 1) : NULL;

	if (!copy)
		return false;
	memcpy(copy, gathered->bytes, gather->used);
	move_blocks(gathered, gathered->bytes, copy);
	move_blocks(later, gathered->bytes, copy);
	gather->bytes = gathered->bytes;
	gathered->bytes = copy;
	gather->node_count = 0;
	gather->used = 0;
	gather->has_later = false;
	return true;
}
