#include "sample/gathers.h"

#include <string.h>
#include "data/gather.h"

struct source {
	struct ss_gather_source source; /* must be first: callbacks cast it back */
	const struct ss_process_memory *memory;
	struct ss_page_cache *pages; /* or NULL */
	const struct ss_task_list *tasks;
	ss_task_predicate *wanted;
};

static void read_pieces(const struct ss_gather_source *source, struct ss_piece *pieces,
			size_t count)
{
	const struct source *self = (const struct source *)source;

	if (self->pages)
		ss_page_cache_read(self->pages, self->memory, pieces, count);
	else
		ss_process_memory_read_present(self->memory, pieces, count);
}

static bool find_base(const struct ss_gather_source *source, size_t thread,
		      const struct ss_gather_step *step, uint64_t *ret)
{
	const struct source *self = (const struct source *)source;
	const struct ss_tracee *task = &self->tasks->items.items[thread];

	return self->wanted(task) && ss_task_find_base(task, step, ret);
}

static bool read_stack(const struct ss_gather_source *source, size_t thread,
		       uint64_t address, void *bytes, size_t size)
{
	const struct source *self = (const struct source *)source;

	return ss_task_read_stack(&self->tasks->items.items[thread], address, bytes,
				  size);
}

static bool selects(const struct ss_gather_source *source, size_t thread,
		    int32_t *ret_tid, uint64_t *ret_pointer)
{
	const struct source *self = (const struct source *)source;
	const struct ss_tracee *task = &self->tasks->items.items[thread];

	*ret_tid = task->tid;
	*ret_pointer = task->phase == SS_TASK_STOPPED ?
			       task->arch->attach->thread_pointer(&task->kernel) :
			       0;
	return self->wanted(task);
}

struct ss_error *ss_gathers_set(struct ss_gathers *gathers,
				const struct ss_gather_plan *plan)
{
	if (!plan) {
		ss_gathers_deinit(gathers);
		return NULL;
	}
	struct ss_gather_plan limited = *plan;
	limited.max_nodes = SS_MIN(plan->max_nodes, (uint32_t)SS_GATHER_NODES);
	limited.max_bytes = SS_MIN(plan->max_bytes, (uint32_t)SS_GATHER_BYTES);
	limited.max_reads = SS_MIN(plan->max_reads, (uint32_t)SS_GATHER_TURN_READS);
	ss_gathers_begin(gathers);
	/* Faulting in its memory takes milliseconds, and a process with new threads has a new
	   plan. */
	if (gathers->gather && ss_gather_set_plan(gathers->gather, &limited))
		return NULL;
	ss_gathers_deinit(gathers);
	struct ss_error *error = ss_gather_new(&limited, true, &gathers->gather);
	if (!error && !ss_gather_reads_again(gathers->gather)) {
		gathers->pages = ss_page_cache_new();
		if (!gathers->pages)
			error = ss_error_no_memory();
	}
	if (error)
		ss_gathers_deinit(gathers);
	else
		ss_gathers_begin(gathers);
	return error;
}

void ss_gathers_deinit(struct ss_gathers *gathers)
{
	ss_gather_free(gathers->gather);
	ss_page_cache_free(gathers->pages);
	*gathers = (struct ss_gathers){};
}

void ss_gathers_begin(struct ss_gathers *gathers)
{
	gathers->used = 0;
	if (gathers->gather)
		ss_gather_clear(gathers->gather);
}

static void take_turn(struct ss_gathers *gathers, const struct ss_gather_source *source)
{
	gathers->first[gathers->used++] = ss_gather_run_turn(
		gathers->gather, source, SS_GATHER_TURN_NODES, SS_GATHER_TURN_BYTES);
	gathers->first[gathers->used] = gathers->gather->node_count;
}

/* What was copied with a sample -------------------------------------------- */

struct copied_source {
	struct ss_gather_source source; /* must be first: callbacks cast it back */
	const struct ss_on_cpu_sample *sample;
	size_t *next; /* where the last block that was found ends */
};

/* The block of an address; *at: where it is searched, afterwards where it ends. NULL: it is not in the rest.
   What the program of a plan copies is mostly read in the same order. */
static const uint8_t *find_block(const struct ss_on_cpu_sample *sample, uint64_t address,
				 size_t size, size_t *at, size_t end)
{
	while (*at < end && end - *at >= sizeof(struct ss_gather_block)) {
		struct ss_gather_block block;
		memcpy(&block, sample->copies + *at, sizeof(block));
		const size_t begin = *at + sizeof(block);
		if (block.size > sample->copies_size - begin)
			return NULL;
		*at = begin + (block.size + 7) / 8 * 8;
		if (block.readable && block.address == address && block.size >= size)
			return sample->copies + begin;
	}
	return NULL;
}

static void read_copied(const struct ss_gather_source *source, struct ss_piece *pieces,
			size_t count)
{
	const struct copied_source *self = (const struct copied_source *)source;

	for (size_t i = 0; i < count; i++) {
		struct ss_piece *piece = &pieces[i];
		const size_t first = *self->next;
		const uint8_t *bytes = find_block(self->sample, piece->address,
						  piece->size, self->next,
						  self->sample->copies_size);
		if (!bytes) {
			*self->next = 0;
			bytes = find_block(self->sample, piece->address, piece->size,
					   self->next, first);
		}
		if (bytes)
			memcpy(piece->bytes, bytes, piece->size);
		piece->done = bytes ? piece->size : 0;
	}
}

static bool find_copied_base(const struct ss_gather_source *source, size_t thread,
			     const struct ss_gather_step *step, uint64_t *ret)
{
	const struct copied_source *self = (const struct copied_source *)source;
	struct ss_regs regs;

	(void)thread;
	ss_arch_host.attach->regs(&self->sample->clock.kernel, &regs);
	return step->base == SS_GATHER_REGISTER && ss_regs_get(&regs, step->parent, ret);
}

static bool selects_copied(const struct ss_gather_source *source, size_t thread,
			   int32_t *ret_tid, uint64_t *ret_pointer)
{
	const struct copied_source *self = (const struct copied_source *)source;

	(void)thread;
	*ret_tid = self->sample->clock.tid;
	*ret_pointer = 0;
	return true;
}

unsigned ss_gathers_take(struct ss_gathers *gathers,
			 const struct ss_on_cpu_sample *sample)
{
	size_t next = 0;
	const struct copied_source source = {
		.source = { .read = read_copied,
			    .find_base = find_copied_base,
			    .thread_count = 1,
			    .pthread_below = ss_arch_host.pthread_below,
			    .selects = selects_copied },
		.sample = sample,
		.next = &next,
	};

	if (!gathers->gather || gathers->used >= SS_GATHER_TURNS_TAKEN)
		return 0;
	take_turn(gathers, &source.source);
	return (unsigned)gathers->used;
}

void ss_gathers_run(struct ss_gathers *gathers, const struct ss_process_memory *memory,
		    struct ss_task_list *tasks, ss_task_predicate *wanted)
{
	const struct source source = {
		.source = { .read = read_pieces,
			    .find_base = find_base,
			    .thread_count = tasks->items.count,
			    .read_stack = read_stack,
			    .pthread_below = ss_arch_host.pthread_below,
			    .selects = selects },
		.memory = memory,
		.pages = gathers->pages,
		.tasks = tasks,
		.wanted = wanted,
	};
	bool any = false;

	if (!gathers->gather || gathers->used == SS_GATHER_TURNS)
		return;
	for (size_t i = 0; i < tasks->items.count; i++) {
		if (!wanted(&tasks->items.items[i]))
			continue;
		tasks->items.items[i].turn = (unsigned)gathers->used + 1;
		any = true;
	}
	if (!any)
		return;
	if (gathers->pages)
		ss_page_cache_clear(gathers->pages);
	take_turn(gathers, &source.source);
}
