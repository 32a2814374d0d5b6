#include "capture/stacks.h"

#include <string.h>
#include <sys/mman.h>

#include "model/futex.h"

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
	KEEP_MAX = 8 << 20,
	/* The part that is no stack. */
	LOCK = SS_STACK_COPIES,
	PIECES_EACH = 2, /* of one task in one batch: a stack and a lock */
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
			total += plan(capture, task->call.sp, max).size + SS_LOCK_MAX;
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

/* Memory that is much more than is needed now is given back. */
static void fault_in(struct ss_arena *arena, size_t size)
{
	size = SS_MIN((size + PAGE - 1) / PAGE * PAGE, arena->size);
	if (arena->ready > KEEP_MAX && size < arena->ready / 4) {
		(void)madvise(arena->bytes, arena->ready, MADV_DONTNEED); /* or keep */
		arena->ready = 0;
	}
	if (size <= arena->ready)
		return;
	arena->ready = size;
	if (madvise(arena->bytes, size, MADV_POPULATE_WRITE) == 0)
		return;
	for (size_t at = 0; at < size; at += PAGE) /* before Linux 5.14 */
		((volatile uint8_t *)arena->bytes)[at] = 0;
}

static bool make_queue(struct ss_arena *arena, size_t capacity)
{
	if (capacity <= arena->piece_capacity)
		return true;
	free(arena->pieces);
	free(arena->owners);
	free(arena->parts);
	arena->piece_capacity = capacity;
	arena->pieces = calloc(capacity, sizeof(*arena->pieces));
	arena->owners = calloc(capacity, sizeof(*arena->owners));
	arena->parts = calloc(capacity, sizeof(*arena->parts));
	if (!arena->pieces || !arena->owners || !arena->parts) {
		arena->piece_capacity = 0;
		return false;
	}
	for (size_t i = 0; i < capacity; i++) {
		arena->pieces[i] = (struct ss_piece){ .size = 1 }; /* faulted in */
		arena->owners[i] = (struct ss_task *)1;
		arena->parts[i] = 1;
	}
	return true;
}

struct ss_error *ss_arena_prepare(struct ss_arena *arena,
				  const struct ss_capture *capture,
				  const struct ss_task_list *tasks,
				  const struct ss_capture_options *options)
{
	arena->used = 0;
	if (!make_queue(arena, tasks->items.capacity * PIECES_EACH) ||
	    (!arena->bytes && !map_arena(arena, options->max_total)))
		return ss_error_no_memory();
	fault_in(arena, estimate(capture, tasks, options->max_stack));
	return NULL;
}

void ss_arena_deinit(struct ss_arena *arena)
{
	if (arena->bytes)
		(void)munmap(arena->bytes, arena->size); /* our own range */
	free(arena->pieces);
	free(arena->owners);
	free(arena->parts);
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

static void queue_piece(struct ss_arena *arena, size_t *count, struct ss_task *task,
			size_t part, const struct ss_stack_copy *copy)
{
	arena->owners[*count] = task;
	arena->parts[*count] = (uint8_t)part;
	arena->pieces[(*count)++] = (struct ss_piece){
		.address = copy->address,
		.bytes = (void *)copy->bytes,
		.size = copy->size,
	};
}

static void queue_stack(struct ss_arena *arena, size_t *count, struct ss_task *task,
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
	queue_piece(arena, count, task, which, &copy);
}

/* The futex that a thread is blocked on. */
static bool find_futex(const struct ss_task *task, struct ss_futex *ret)
{
	struct ss_syscall call = { .number = task->call.number };

	if (task->partial)
		memcpy(call.args, task->call.args, sizeof(call.args));
	else if (ss_arch_is_blocked(&task->kernel))
		ss_arch_syscall(&task->kernel, &call);
	else
		return false;
	return ss_futex_parse(&call, ret);
}

/* The lock around it, as far as it lies in the same area. */
static void queue_lock(struct ss_arena *arena, size_t *count,
		       const struct ss_capture *capture, struct ss_task *task)
{
	struct ss_futex futex;

	task->lock = (struct ss_lock_copy){ .moment = task->lock.moment };
	if (!find_futex(task, &futex) || *count == arena->piece_capacity)
		return;
	const struct ss_area *area = ss_capture_find_area(capture, futex.address);
	if (!area)
		return;
	uint64_t before = SS_MIN(futex.address - area->start, (uint64_t)SS_LOCK_REACH);
	uint64_t behind = SS_MIN(area->end - futex.address, (uint64_t)SS_LOCK_REACH);
	struct ss_stack_copy copy = { .address = futex.address - before,
				      .size = before + behind };
	if (!place(arena, &copy))
		return;
	task->lock.address = copy.address;
	task->lock.bytes = copy.bytes;
	queue_piece(arena, count, task, LOCK, &copy);
}

static void take_stack(struct ss_task *task, size_t which, struct ss_piece *piece)
{
	struct ss_stack_copy *copy = &task->stacks[which];

	if (piece->done == 0 && !task->partial) {
		copy->cut |= piece->size > PEEK_MAX;
		piece->size = SS_MIN(piece->size, (size_t)PEEK_MAX);
		ss_memory_peek(task->tid, piece);
	}
	/* What ends before its time could not be read: it was not cut. */
	copy->cut = copy->cut && piece->done == piece->size;
	copy->size = piece->done;
}

static void take_lock(struct ss_task *task, struct ss_piece *piece)
{
	if (piece->done == 0 && !task->partial)
		ss_memory_peek(task->tid, piece);
	task->lock.size = piece->done;
}

static void read_queue(struct ss_arena *arena, size_t count,
		       const struct ss_memory *memory)
{
	ss_memory_read(memory, arena->pieces, count);
	for (size_t i = 0; i < count; i++) {
		if (arena->parts[i] == LOCK)
			take_lock(arena->owners[i], &arena->pieces[i]);
		else
			take_stack(arena->owners[i], arena->parts[i], &arena->pieces[i]);
	}
}

/* Interrupted stacks below handlers on alternate ones, which the stacks that were read
   tell of. Returns the number of pieces. */
static size_t queue_alternates(struct ss_arena *arena, const struct ss_capture *capture,
			       size_t count, size_t max_stack)
{
	size_t alternates = 0;

	for (size_t i = 0; i < count; i++) {
		/* owners[] and parts[] are overwritten behind i only. */
		struct ss_task *task = arena->owners[i];
		const struct ss_stack_copy *copy = &task->stacks[0];
		uint64_t sp;
		if (arena->parts[i] != LOCK &&
		    ss_arch_find_alternate(copy->bytes,
					   SS_MIN(copy->size, (size_t)ALTERNATE_SEARCH),
					   copy->address, &sp))
			queue_stack(arena, &alternates, task, 1,
				    plan(capture, sp, max_stack));
	}
	return alternates;
}

void ss_arena_copy(struct ss_arena *arena, const struct ss_capture *capture,
		   struct ss_task_list *tasks, const struct ss_memory *memory,
		   const struct ss_capture_options *options, ss_task_predicate *wanted)
{
	size_t count = 0;

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_task *task = &tasks->items.items[i];
		if (!wanted(task))
			continue;
		if (!options->no_waits)
			queue_lock(arena, &count, capture, task);
		queue_stack(arena, &count, task, 0,
			    plan(capture, stack_pointer(task), options->max_stack));
	}
	read_queue(arena, count, memory);
	read_queue(arena, queue_alternates(arena, capture, count, options->max_stack),
		   memory);
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
