#include <string.h>

#include "base/search.h"
#include "data/capture.h"
#include "data/gather.h"

enum {
	ALIGNMENT = 8,
	/* Limit of pointers that all steps together read, including null pointers: 2
	   ms. */
	POINTERS_MAX = 1 << 20,
};

/* The place where the last node with such an address is remembered. */
static uint32_t *recent_of(struct ss_gather *gather, uint64_t address)
{
	return &gather->recent[(address >> 4 ^ address >> 12) % SS_GATHER_RECENT];
}

/* Whether a single node of this step has been added already: many threads call the same
   function. */
static bool is_repeated(struct ss_gather *gather, const struct ss_gather_step *step,
			const struct ss_gather_node *node)
{
	const size_t first = gather->first[step - gather->plan.steps];
	const uint32_t index = *recent_of(gather, node->address);

	return step->max_nodes == 1 && index >= first && index < gather->node_count &&
	       gather->nodes[index].address == node->address &&
	       gather->nodes[index].size >= node->size;
}

static bool has_parent(const struct ss_gather_step *step)
{
	return step->base == SS_GATHER_NODE || step->base == SS_GATHER_POINTER;
}

/* Appends a node, if the limits allow it and its range does not wrap around. */
static void add_node(struct ss_gather *gather, const struct ss_gather_node *node)
{
	size_t room = ((size_t)node->size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);

	if (node->size == 0 || node->address > UINT64_MAX - node->size)
		return;
	if (gather->node_count >= gather->node_limit ||
	    gather->used > gather->byte_limit ||
	    room > gather->byte_limit - gather->used) {
		gather->truncated = true;
		return;
	}
	*recent_of(gather, node->address) = (uint32_t)gather->node_count;
	struct ss_gather_node *added = &gather->nodes[gather->node_count++];
	*added = *node;
	added->bytes = gather->bytes + gather->used;
	gather->used += room;
}

static bool load(const struct ss_gather_node *node, uint32_t at, void *ret, size_t size)
{
	if (at > node->size || size > node->size - at)
		return false;
	memcpy(ret, node->bytes + at, size);
	return true;
}

/* Bytes at address up to the end that a node of the parent names. */
static size_t size_to_end(const struct ss_gather_step *step,
			  const struct ss_gather_node *parent, uint64_t address,
			  size_t size)
{
	uint64_t end;

	if (!parent || step->end_size == 0)
		return size;
	if (!load(parent, step->end_field, &end, sizeof(end)) || end <= address)
		return 0;
	return (size_t)SS_MIN((uint64_t)size, end - address);
}

/* The first node for a value of step->base. parent: NULL if the step has none. thread: whose
   register it is, + 1. */
static void add_root(struct ss_gather *gather, const struct ss_gather_step *step,
		     const struct ss_gather_node *parent, uint64_t value, size_t size,
		     uint32_t thread)
{
	struct ss_gather_node node = {
		.address = (value & step->mask) + (uint64_t)step->offset,
		.thread = thread,
	};

	node.seen = node.address;
	node.size = (uint32_t)size_to_end(step, parent, node.address, size);
	if ((value & step->mask) != 0 && !is_repeated(gather, step, &node))
		add_node(gather, &node);
}

/* Bytes to copy of each child of a node. 0: the count is unreadable or 0. */
static size_t child_size(const struct ss_gather_step *step,
			 const struct ss_gather_node *node)
{
	uint32_t small;
	uint64_t count;

	if (step->count_size == 0)
		return step->size;
	if (step->count_size == sizeof(small)) {
		if (!load(node, step->count_field, &small, sizeof(small)))
			return 0;
		count = small;
	} else if (!load(node, step->count_field, &count, sizeof(count))) {
		return 0;
	}
	return count > step->size / step->element ? step->size :
						    (size_t)count * step->element;
}

static void add_children(struct ss_gather *gather, const struct ss_gather_step *step,
			 const struct ss_gather_node *node)
{
	size_t size = child_size(step, node);
	uint64_t at = step->field;
	uint64_t value;

	if (node->size == 0)
		return;
	if (step->base == SS_GATHER_NODE) {
		add_root(gather, step, node, node->address, size, 0);
		return;
	}
	while (at < node->size && load(node, (uint32_t)at, &value, sizeof(value))) {
		if (gather->pointers == POINTERS_MAX) {
			gather->truncated = true;
			return;
		}
		gather->pointers++;
		add_root(gather, step, node, value, size, 0);
		if (step->stride == 0)
			return;
		at += step->stride;
	}
}

static void mark_thread(struct ss_gather *gather, uint16_t below, int32_t tid,
			uint64_t pointer, bool wanted)
{
	const struct ss_gather_root *roots = gather->plan.roots;
	size_t count = gather->plan.root_count;
	size_t at = ss_lower_bound(count, i, roots[gather->by_tid[i]].tid < tid);

	for (; at < count && roots[gather->by_tid[at]].tid == tid; at++)
		gather->wanted[gather->by_tid[at]] = wanted;
	if (pointer == 0)
		return;
	const uint64_t first = pointer - below;
	at = ss_lower_bound(count, i,
			    roots[gather->by_pointer[i]].thread_pointer < first);
	for (; at < count && roots[gather->by_pointer[at]].thread_pointer <= pointer;
	     at++)
		gather->wanted[gather->by_pointer[at]] = wanted;
}

static void mark_wanted(struct ss_gather *gather, const struct ss_gather_source *source)
{
	bool others = !source->selects || source->selects_others;
	uint64_t pointer = 0;
	int32_t tid = 0;

	memset(gather->wanted, others, gather->plan.root_count);
	for (size_t i = 0; source->selects && i < source->thread_count; i++) {
		if (source->selects(source, i, &tid, &pointer))
			mark_thread(gather, source->pthread_below, tid, pointer, !others);
	}
}

static void add_roots(struct ss_gather *gather, const struct ss_gather_step *step,
		      const struct ss_gather_source *source)
{
	uint64_t value;

	switch (step->base) {
	case SS_GATHER_ROOT:
		mark_wanted(gather, source);
		for (size_t i = 0; i < gather->plan.root_count; i++) {
			if (gather->wanted[i])
				add_root(gather, step, NULL,
					 gather->plan.roots[i].address, step->size, 0);
		}
		break;
	case SS_GATHER_ADDRESS:
		add_root(gather, step, NULL, step->address, step->size, 0);
		break;
	case SS_GATHER_REGISTER:
	case SS_GATHER_THREAD_POINTER:
		for (size_t i = 0; i < source->thread_count; i++) {
			if (source->find_base(source, i, step, &value))
				add_root(gather, step, NULL, value, step->size,
					 (uint32_t)i + 1);
		}
		break;
	default:
		/* Only children of the existing nodes, not of those appended here. */
		for (size_t i = gather->first[step->parent];
		     i < gather->first[step->parent + 1]; i++)
			add_children(gather, step, &gather->nodes[i]);
	}
}

static bool read_stack(const struct ss_gather_source *source,
		       const struct ss_gather_node *node)
{
	return node->thread && source->read_stack &&
	       source->read_stack(source, node->thread - 1, node->address, node->bytes,
				  node->size);
}

/* Reads the nodes from begin on. Drops nodes beyond the limit of reads. */
static void read_nodes(struct ss_gather *gather, const struct ss_gather_source *source,
		       size_t begin)
{
	while (begin < gather->node_count && read_stack(source, &gather->nodes[begin]))
		begin++;
	while (begin < gather->node_count) {
		size_t count =
			SS_MIN(gather->node_count - begin, (size_t)SS_GATHER_BATCH);
		if (gather->reads == gather->plan.max_reads) {
			gather->truncated = true;
			gather->node_count = begin;
			return;
		}
		gather->reads++;
		for (size_t i = 0; i < count; i++) {
			const struct ss_gather_node *node = &gather->nodes[begin + i];
			gather->pieces[i] = (struct ss_piece){ .address = node->address,
							       .bytes = node->bytes,
							       .size = node->size };
		}
		source->read(source, gather->pieces, count);
		for (size_t i = 0; i < count; i++) {
			struct ss_gather_node *node = &gather->nodes[begin + i];
			node->size = (uint32_t)SS_MIN(gather->pieces[i].done,
						      (size_t)node->size);
		}
		begin += count;
	}
}

/* The next node of a list. Brent's algorithm: in a cycle, the last node before a power
   of two is visited again. */
static void add_next(struct ss_gather *gather, const struct ss_gather_step *step,
		     const struct ss_gather_node *node)
{
	uint64_t value;
	struct ss_gather_node next = { .index = node->index + 1,
				       .size = step->size,
				       .thread = node->thread };

	if (!load(node, step->next, &value, sizeof(value)) || (value & step->mask) == 0)
		return;
	next.address = (value & step->mask) + (uint64_t)step->offset;
	if (next.address == node->seen)
		return;
	if (next.index == step->max_nodes) {
		gather->truncated = true;
		return;
	}
	next.seen = (next.index & (next.index - 1)) == 0 ? next.address : node->seen;
	add_node(gather, &next);
}

/* All lists of a step are followed side by side: each read takes one node of each. */
static void run_step(struct ss_gather *gather, const struct ss_gather_step *step,
		     const struct ss_gather_source *source)
{
	size_t begin = gather->node_count;

	add_roots(gather, step, source);
	read_nodes(gather, source, begin);
	while (step->max_nodes > 1 && begin < gather->node_count) {
		size_t end = gather->node_count;
		for (size_t i = begin; i < end; i++)
			add_next(gather, step, &gather->nodes[i]);
		read_nodes(gather, source, end);
		begin = end;
	}
}

/* Reads the first bytes of some nodes of a step again, and marks those that changed. */
static void check_batch(struct ss_gather *gather, const struct ss_gather_step *step,
			const struct ss_gather_source *source,
			struct ss_gather_node *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		gather->pieces[i] = (struct ss_piece){
			.address = nodes[i].address,
			.bytes = gather->again + i * step->check_size,
			.size = SS_MIN(nodes[i].size, step->check_size),
		};
	source->read(source, gather->pieces, count);
	for (size_t i = 0; i < count; i++) {
		const struct ss_piece *piece = &gather->pieces[i];
		nodes[i].changed = piece->done != piece->size ||
				   (piece->size && memcmp(piece->bytes, nodes[i].bytes,
							  piece->size) != 0);
	}
}

static void check_nodes(struct ss_gather *gather, size_t index,
			const struct ss_gather_source *source)
{
	const struct ss_gather_step *step = &gather->plan.steps[index];
	size_t end = gather->first[index + 1];

	for (size_t at = gather->first[index]; at < end; at += SS_GATHER_BATCH)
		check_batch(gather, step, source, &gather->nodes[at],
			    SS_MIN(end - at, (size_t)SS_GATHER_BATCH));
}

static void run_steps(struct ss_gather *gather, const struct ss_gather_source *source,
		      bool roots_only)
{
	for (size_t i = 0; i < gather->plan.step_count; i++) {
		const struct ss_gather_step *step = &gather->plan.steps[i];
		gather->first[i] = gather->node_count;
		if (!roots_only || step->base == SS_GATHER_ROOT || has_parent(step))
			run_step(gather, step, source);
		gather->first[i + 1] = gather->node_count;
	}
	for (size_t i = 0; i < gather->plan.step_count; i++) {
		if (gather->plan.steps[i].check_size > 0)
			check_nodes(gather, i, source);
	}
}

void ss_gather_clear(struct ss_gather *gather)
{
	gather->node_count = 0;
	gather->used = 0;
	gather->truncated = false;
	gather->has_later = false;
}

void ss_gather_run(struct ss_gather *gather, const struct ss_gather_source *source)
{
	ss_gather_clear(gather);
	(void)ss_gather_run_turn(gather, source, gather->plan.max_nodes,
				 gather->plan.max_bytes);
}

size_t ss_gather_run_turn(struct ss_gather *gather, const struct ss_gather_source *source,
			  size_t max_nodes, size_t max_bytes)
{
	const size_t first = gather->node_count;

	gather->node_limit = SS_MIN(first + max_nodes, (size_t)gather->plan.max_nodes);
	gather->byte_limit =
		SS_MIN(gather->used + max_bytes, (size_t)gather->plan.max_bytes);
	gather->reads = 0;
	gather->pointers = 0;
	run_steps(gather, source, false);
	return first;
}

void ss_gather_run_more(struct ss_gather *gather, const struct ss_gather_source *source)
{
	run_steps(gather, source, true);
}

void ss_gather_run_later(struct ss_gather *gather, const struct ss_gather_source *source)
{
	gather->has_later = true;
	gather->later = gather->node_count;
	run_steps(gather, source, false);
}
