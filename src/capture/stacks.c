#include "capture/stacks.h"

#include <sys/mman.h>

enum {
	/* For a thread whose stack pointer is not known before it stops. */
	RUNNING_ESTIMATE = 32 * 1024,
	RUNNING_ESTIMATE_ALL = 4 << 20,
	ARENA_MIN = 1 << 20, /* less is used only if it is asked for */
	ALIGNMENT = 16,
	/* Without an area (a stack made a moment ago) as far as this is tried. */
	UNKNOWN_STACK = 64 * 1024,
	/* A handler's frames are few: the kernel's frame is looked for so far. */
	ALTERNATE_SEARCH = 64 * 1024,
	PEEK_MAX = 64 * 1024,
	PAGE = 4096,
};

/* What is to be copied for a stack pointer: from below the red zone to the end of the
   area, or max. */
static struct ss_stack_copy plan(const struct ss_capture *capture, uint64_t sp,
				 size_t max)
{
	uint64_t from = sp - SS_MIN(sp, (uint64_t)ss_arch.red_zone);
	const struct ss_area *area = ss_capture_find_area(capture, sp);

	if (!area)
		return (struct ss_stack_copy){ .address = from,
					       .size = SS_MIN(max, (size_t)UNKNOWN_STACK),
					       .cut = true };
	from = SS_MAX(from, area->start);
	size_t whole = area->end - from;
	return (struct ss_stack_copy){ .address = from,
				       .size = SS_MIN(whole, max),
				       .cut = whole > max };
}

static uint64_t stack_pointer(const struct ss_task *task)
{
	if (task->partial)
		return task->call.sp;
	struct ss_regs regs;
	ss_arch_regs(&task->kernel, &regs);
	return ss_regs_sp(&regs);
}

static size_t estimate(const struct ss_capture *capture, const struct ss_task_list *tasks,
		       size_t max)
{
	size_t running = 0;
	size_t total = 0;

	for (size_t i = 0; i < tasks->items.count; i++) {
		const struct ss_task *task = &tasks->items.items[i];
		if (task->call.sp)
			total += plan(capture, task->call.sp, max).size;
		else
			running += RUNNING_ESTIMATE;
	}
	return total + SS_MIN(running, (size_t)RUNNING_ESTIMATE_ALL);
}

/* The size stays a multiple of ALIGNMENT, as used does. */
static bool map_arena(struct ss_arena *arena, size_t size)
{
	size = SS_MAX(size & ~(size_t)(ALIGNMENT - 1), (size_t)ALIGNMENT);
	do {
		void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (bytes != MAP_FAILED) {
			arena->bytes = bytes;
			arena->size = size;
			return true;
		}
		/* RLIMIT_AS: make do with less. */
		size = size / 2 & ~(size_t)(ALIGNMENT - 1);
	} while (size >= ARENA_MIN);
	return false;
}

static void fault_in(struct ss_arena *arena, size_t size)
{
	size = SS_MIN((size + PAGE - 1) / PAGE * PAGE, arena->size);
	if (madvise(arena->bytes, size, MADV_POPULATE_WRITE) == 0)
		return;
	for (size_t at = 0; at < size; at += PAGE) /* before Linux 5.14 */
		((volatile uint8_t *)arena->bytes)[at] = 0;
}

struct ss_error *ss_arena_prepare(struct ss_arena *arena,
				  const struct ss_capture *capture,
				  const struct ss_task_list *tasks,
				  const struct ss_capture_options *options)
{
	arena->piece_capacity = tasks->items.capacity;
	arena->pieces = calloc(arena->piece_capacity, sizeof(*arena->pieces));
	arena->owners = calloc(arena->piece_capacity, sizeof(*arena->owners));
	if (!arena->pieces || !arena->owners || !map_arena(arena, options->max_total))
		return ss_error_no_memory();
	for (size_t i = 0; i < arena->piece_capacity; i++) {
		arena->pieces[i] = (struct ss_piece){ .size = 1 }; /* faulted in */
		arena->owners[i] = (struct ss_task *)1;
	}
	fault_in(arena, estimate(capture, tasks, options->max_stack));
	return NULL;
}

void ss_arena_deinit(struct ss_arena *arena)
{
	if (arena->bytes)
		(void)munmap(arena->bytes, arena->size); /* our own range */
	free(arena->pieces);
	free(arena->owners);
	*arena = (struct ss_arena){};
}

/* Gives a planned copy its place. False: the arena is full. */
static bool place(struct ss_arena *arena, struct ss_stack_copy *copy)
{
	size_t left = arena->size - arena->used;

	if (copy->size > left) {
		copy->size = left;
		copy->cut = true;
	}
	copy->bytes = arena->bytes + arena->used;
	arena->used += (copy->size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	return copy->size > 0;
}

static void queue(struct ss_arena *arena, size_t *count, struct ss_task *task,
		  size_t which, struct ss_stack_copy copy)
{
	if (*count == arena->piece_capacity)
		return;
	size_t wanted_size = copy.size;
	bool placed = place(arena, &copy);
	if (copy.size < wanted_size)
		task->reason = "all stacks together reached the cap; --max-total=MIB "
			       "copies more";
	if (!placed)
		return;
	task->stacks[which] = copy;
	arena->owners[*count] = task;
	arena->pieces[(*count)++] = (struct ss_piece){
		.address = copy.address,
		.bytes = (void *)copy.bytes,
		.size = copy.size,
	};
}

static void read_queue(struct ss_arena *arena, size_t count,
		       const struct ss_memory *memory, size_t which)
{
	ss_memory_read(memory, arena->pieces, count);
	for (size_t i = 0; i < count; i++) {
		struct ss_stack_copy *copy = &arena->owners[i]->stacks[which];
		struct ss_piece *piece = &arena->pieces[i];
		if (piece->done == 0 && !arena->owners[i]->partial) {
			copy->cut |= piece->size > PEEK_MAX;
			piece->size = SS_MIN(piece->size, (size_t)PEEK_MAX);
			ss_memory_peek(arena->owners[i]->tid, piece);
		}
		/* What ends before its time could not be read: it was not cut. */
		copy->cut = copy->cut && piece->done == piece->size;
		copy->size = piece->done;
	}
}

void ss_arena_copy(struct ss_arena *arena, const struct ss_capture *capture,
		   struct ss_task_list *tasks, const struct ss_memory *memory,
		   const struct ss_capture_options *options, ss_task_predicate *wanted)
{
	size_t count = 0;

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_task *task = &tasks->items.items[i];
		if (wanted(task))
			queue(arena, &count, task, 0,
			      plan(capture, stack_pointer(task), options->max_stack));
	}
	read_queue(arena, count, memory, 0);
	size_t alternates = 0;
	for (size_t i = 0; i < count; i++) {
		/* owners[] is overwritten behind i only. */
		struct ss_task *task = arena->owners[i];
		const struct ss_stack_copy *copy = &task->stacks[0];
		uint64_t sp;
		if (ss_arch_find_alternate(copy->bytes,
					   SS_MIN(copy->size, (size_t)ALTERNATE_SEARCH),
					   copy->address, &sp))
			queue(arena, &alternates, task, 1,
			      plan(capture, sp, options->max_stack));
	}
	read_queue(arena, alternates, memory, 1);
}

void ss_arena_give(struct ss_arena *arena, struct ss_capture *capture)
{
	size_t used = SS_MIN((arena->used + PAGE - 1) / PAGE * PAGE, arena->size);

	if (used < arena->size)
		(void)munmap(arena->bytes + used, arena->size - used); /* ours */
	capture->arena = used ? take_ptr(arena->bytes) : NULL;
	capture->arena_size = used;
	arena->bytes = NULL;
	arena->size = 0;
}
