#include "capture/stacks.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/search.h"
#include "data/futex.h"
#include "data/gather.h"

enum {
	/* for a thread whose stack pointer is unknown before it stops */
	RUNNING_ESTIMATE = 32 * 1024,
	RUNNING_ESTIMATE_ALL = 4 << 20,
	ARENA_MIN = 1 << 20, /* less only if the user asks for it */
	ALIGNMENT = 16,
	/* bytes to copy if the area is unknown (a new stack) */
	UNKNOWN_STACK = 64 * 1024,
	/* search limit for the signal frame: handlers have few frames */
	ALTERNATE_SEARCH = 64 * 1024,
	PEEK_MAX = 64 * 1024,
	PAGE = 4096,
	SHARE_MIN = 16 * 1024,
	KEEP_MAX = 8 << 20,
	OVERFLOW_MAX = 1 << 20, /* the frame that overflowed a stack */
	/* index of the piece that is not a stack */
	LOCK = SS_STACK_COPIES,
	/* for the bitmap of absent pages; more for stacks beyond a mebibyte */
	BITMAP = 2 * ALIGNMENT,
	/* pieces per task in a batch: two stacks, their rests, another one, a lock word */
	PIECES_EACH = 6,
	SPARE = 8, /* threads that appear during the freeze, see tasks.c */
};

/* The area of the stack. A stack that has overflowed ends above sp. */
static const struct ss_area *find_stack(const struct ss_capture *capture, uint64_t sp)
{
	const struct ss_area *area = ss_capture_find_area(capture, sp);
	const unsigned access = PROT_READ | PROT_WRITE;

	if (area && (area->prot & access) == access)
		return area;
	size_t next = ss_lower_bound(capture->areas.count, i,
				     capture->areas.items[i].end <= sp);
	next += area != NULL; /* a guard page */
	const struct ss_area *above =
		next < capture->areas.count ? &capture->areas.items[next] : NULL;
	return above && above->start - sp <= OVERFLOW_MAX &&
			       (above->prot & access) == access ?
		       above :
		       area;
}

/* The range to copy for a stack pointer: from the red zone to the end of the area, at
   most max bytes. */
static struct ss_stack_copy plan(const struct ss_capture *capture, uint64_t sp,
				 size_t max)
{
	uint64_t from = sp - SS_MIN(sp, (uint64_t)capture->arch->red_zone);
	const struct ss_area *area = find_stack(capture, sp);

	if (!area)
		return (struct ss_stack_copy){ .address = from,
					       .size = SS_MIN(max, (size_t)UNKNOWN_STACK),
					       .truncated = true };
	from = SS_MAX(from, area->start);
	size_t whole = area->end - from;
	return (struct ss_stack_copy){ .address = from,
				       .size = SS_MIN(whole, max),
				       .truncated = whole > max };
}

static uint64_t stack_pointer(const struct ss_tracee *task)
{
	if (task->partial)
		return task->call.sp;
	struct ss_regs regs;
	task->arch->attach->regs(&task->kernel, &regs);
	return ss_regs_sp(task->arch, &regs);
}

static size_t estimate(const struct ss_capture *capture, const struct ss_task_list *tasks,
		       size_t max)
{
	size_t running = 0;
	size_t total = 0;

	for (size_t i = 0; i < tasks->items.count; i++) {
		const struct ss_tracee *task = &tasks->items.items[i];
		if (task->phase == SS_TASK_EXCLUDED)
			continue;
		if (task->call.sp)
			total += plan(capture, task->call.sp, max).size + SS_LOCK_MAX +
				 2 * BITMAP;
		else
			running += RUNNING_ESTIMATE;
	}
	return total + SS_MIN(running, (size_t)RUNNING_ESTIMATE_ALL);
}

/* Keeps size a multiple of ALIGNMENT, like used. */
static bool map_arena(struct ss_arena *arena, size_t size)
{
	size = SS_MAX(size & ~(size_t)(ALIGNMENT - 1), (size_t)ALIGNMENT);
	do {
		void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (bytes != MAP_FAILED) {
			arena->bytes = bytes;
			arena->size = size;
			arena->dirty = 0;
			return true;
		}
		/* RLIMIT_AS: try less */
		size = size / 2 & ~(size_t)(ALIGNMENT - 1);
	} while (size >= ARENA_MIN);
	return false;
}

/* A memfd of that size, open for reading and writing; *reading: the same, read-only.
   -1: failed (RLIMIT_FSIZE). */
static int make_file(size_t size, int *reading)
{
	_cleanup_close_ int fd = memfd_create("stacks", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return -1;
	*reading = ss_io_reopen(fd);
	return *reading < 0 ? -1 : take_fd(fd);
}

struct ss_error *ss_arena_share(struct ss_arena *arena, size_t size)
{
	_cleanup_close_ int reading = -1;
	_cleanup_close_ int fd = make_file(size, &reading);
	int flags = MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (bytes == MAP_FAILED)
		return ss_error_no_memory();
	if (fd >= 0) /* a child maps it for reading only */
		(void)madvise(bytes, size, MADV_DONTFORK);
	arena->bytes = bytes;
	arena->size = size;
	arena->shared = true;
	arena->shared_fd = take_fd(reading);
	return NULL;
}

/* Releases memory if much more is allocated than needed. */
static void fault_in(struct ss_arena *arena, size_t size)
{
	size = SS_MIN((size + PAGE - 1) / PAGE * PAGE, arena->size);
	if (arena->ready > KEEP_MAX && size < arena->ready / 4 && arena->kept == 0) {
		(void)madvise(arena->bytes, arena->ready, /* on failure, keep it */
			      arena->shared ? MADV_REMOVE : MADV_DONTNEED);
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

/* ready: so many entries are faulted in now, not during the freeze */
static bool make_queue(struct ss_arena *arena, size_t capacity, size_t ready)
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
	/* memset(0) after calloc() would be optimized away. */
	memset(arena->pieces, 0xff, ready * sizeof(*arena->pieces));
	memset(arena->owners, 0xff, ready * sizeof(*arena->owners));
	memset(arena->parts, 0xff, ready * sizeof(*arena->parts));
	return true;
}

/* Takes the memory of the previous capture of a series. */
static void take_kept(struct ss_arena *arena, struct ss_kept_files *kept, size_t size)
{
	if (!kept || !kept->scratch || arena->bytes)
		return;
	if (kept->scratch_size > size) /* another limit than then */
		(void)munmap(kept->scratch, kept->scratch_size); /* our mapping */
	else
		*arena = (struct ss_arena){ .bytes = kept->scratch,
					    .size = kept->scratch_size,
					    .ready = kept->scratch_ready,
					    .dirty = kept->scratch_size };
	kept->scratch = NULL;
}

struct ss_error *ss_arena_prepare(struct ss_arena *arena,
				  const struct ss_capture *capture,
				  const struct ss_task_list *tasks,
				  const struct ss_capture_options *options,
				  struct ss_kept_files *kept)
{
	size_t capacity = tasks->items.capacity;
	size_t ready = SS_MIN(tasks->items.count + SPARE, capacity);

	take_kept(arena, kept, options->max_total);
	arena->used = arena->kept;
	if (!make_queue(arena, capacity * PIECES_EACH, ready * PIECES_EACH) ||
	    (!arena->bytes && !map_arena(arena, options->max_total)))
		return ss_error_no_memory();
	fault_in(arena, arena->kept + estimate(capture, tasks, options->max_stack));
	return NULL;
}

void ss_arena_deinit(struct ss_arena *arena)
{
	if (arena->bytes)
		(void)munmap(arena->bytes, arena->size); /* cannot fail: our mapping */
	if (arena->shared)
		close_cleanup(&arena->shared_fd);
	free(arena->pieces);
	free(arena->owners);
	free(arena->parts);
	*arena = (struct ss_arena){};
}

/* Places a copy in the arena. Returns false if it is full. */
static bool place(struct ss_arena *arena, struct ss_stack_copy *copy)
{
	size_t taken = arena->used + arena->reserved;
	size_t left = arena->size - SS_MIN(taken, arena->size);

	if (copy->size > left) {
		copy->size = left;
		copy->truncated = true;
	}
	copy->bytes = arena->bytes + arena->used;
	arena->used += (copy->size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	return copy->size > 0;
}

/* Whether nothing was written yet to the last copy that was placed. From now on something
   may be. */
static bool take_zeroed(struct ss_arena *arena, const uint8_t *bytes)
{
	bool zeroed = (size_t)(bytes - arena->bytes) >= arena->dirty;

	arena->dirty = SS_MAX(arena->dirty, arena->used);
	return zeroed;
}

void ss_arena_empty(struct ss_arena *arena)
{
	arena->used = arena->kept = 0;
}

void ss_arena_keep(struct ss_arena *arena)
{
	arena->kept = arena->used;
}

uint8_t *ss_arena_take(struct ss_arena *arena, size_t size)
{
	struct ss_stack_copy copy = { .size = size };

	if (!place(arena, &copy) || copy.size < size)
		return NULL;
	(void)take_zeroed(arena, copy.bytes);
	return arena->bytes + (copy.bytes - arena->bytes);
}

/* Whether the area is private anonymous memory. Its pages may be absent because they were
   never used. */
static bool is_sparse(const struct ss_area *area)
{
	return area && !area->shared &&
	       (strcmp(area->name, "//anon") == 0 || area->name[0] == '[');
}

/* An empty bitmap for the pages of a copy, or NULL if the arena is full. */
static uint8_t *place_bitmap(struct ss_arena *arena, const struct ss_stack_copy *copy)
{
	size_t pages = (copy->address % PAGE + copy->size + PAGE - 1) / PAGE;
	size_t size = (pages + 7) / 8;
	struct ss_stack_copy bitmap = { .size = size };

	if (!place(arena, &bitmap) || bitmap.size < size)
		return NULL;
	uint8_t *bytes = arena->bytes + (bitmap.bytes - arena->bytes);
	(void)take_zeroed(arena, bytes);
	memset(bytes, 0, size);
	return bytes;
}

static void queue_piece(struct ss_arena *arena, size_t *count, struct ss_tracee *task,
			size_t part, const struct ss_stack_copy *copy, bool sparse)
{
	bool zeroed = take_zeroed(arena, copy->bytes);

	arena->owners[*count] = task;
	arena->parts[*count] = (uint8_t)part;
	arena->pieces[(*count)++] = (struct ss_piece){
		.address = copy->address,
		.bytes = arena->bytes + (copy->bytes - arena->bytes),
		.size = copy->size,
		.absent = sparse ? place_bitmap(arena, copy) : NULL,
		.zeroed = zeroed,
	};
}

static void queue_stack(struct ss_arena *arena, const struct ss_capture *capture,
			size_t *count, struct ss_tracee *task, size_t which,
			struct ss_stack_copy copy)
{
	if (*count == arena->piece_capacity)
		return;
	size_t full_size = copy.size;
	bool placed = place(arena, &copy);
	if (copy.size < full_size)
		task->reason = SS_TOTAL_REASON;
	if (!placed)
		return;
	task->stacks[which] = copy;
	const struct ss_area *area =
		ss_capture_find_area(capture, copy.address + capture->arch->red_zone);
	queue_piece(arena, count, task, which, &copy, is_sparse(area));
}

/* The futex on which a thread is blocked. */
static bool find_futex(const struct ss_tracee *task, struct ss_futex *ret)
{
	struct ss_syscall call = {
		.number = task->call.number,
		.id = ss_arch_syscall_id(task->arch, task->call.number),
	};

	if (task->partial)
		memcpy(call.args, task->call.args, sizeof(call.args));
	else if (task->arch->attach->is_blocked(&task->kernel))
		task->arch->attach->syscall(&task->kernel, &call);
	else
		return false;
	return ss_futex_parse(&call, ret);
}

/* Queues the memory around the futex, within its area. */
static void queue_lock(struct ss_arena *arena, size_t *count,
		       const struct ss_capture *capture, struct ss_tracee *task)
{
	struct ss_futex futex;

	task->lock = (struct ss_lock_copy){ .freeze_round = task->lock.freeze_round };
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
	/* What is around the futex may be on a page that was never touched. */
	queue_piece(arena, count, task, LOCK, &copy, true);
}

/* PTRACE_PEEKDATA, where process_vm_readv(2) is refused. */
static bool may_peek(const struct ss_tracee *task, const struct ss_piece *piece)
{
	return piece->done == 0 && !task->partial && piece->end == SS_PIECE_UNREADABLE;
}

static void take_stack(const struct ss_capture *capture, struct ss_tracee *task,
		       size_t which, struct ss_piece *piece)
{
	struct ss_stack_copy *copy = &task->stacks[which];

	/* Of an unknown area it is not known whether there is any memory. */
	if (piece->end == SS_PIECE_ABSENT &&
	    ss_capture_find_area(capture, copy->address + capture->arch->red_zone))
		task->reason = SS_ABSENT_REASON;
	if (piece->end == SS_PIECE_LATE)
		task->reason = "the time limit (--timeout) was reached while its stack "
			       "was copied";
	if (may_peek(task, piece)) {
		copy->truncated |= piece->size > PEEK_MAX;
		piece->size = SS_MIN(piece->size, (size_t)PEEK_MAX);
		ss_process_memory_peek(task->tid, piece);
	}
	/* A short read ends at unreadable memory: the copy is not truncated. */
	copy->truncated = (copy->truncated && piece->done == piece->size) ||
			  piece->end == SS_PIECE_LATE;
	copy->size = piece->done;
	copy->absent = piece->has_absent ? piece->absent : NULL;
}

/* If the page of the futex is absent, nothing is known of the lock. */
static void take_lock(struct ss_tracee *task, struct ss_piece *piece)
{
	struct ss_futex futex;

	if (may_peek(task, piece))
		ss_process_memory_peek(task->tid, piece);
	task->lock.size = piece->done;
	if (piece->has_absent && find_futex(task, &futex)) {
		uint64_t page = futex.address / PAGE - piece->address / PAGE;
		if (piece->absent[page / 8] >> page % 8 & 1)
			task->lock.size = 0;
	}
}

/* Reads the pieces from first on. */
static void read_queue(struct ss_arena *arena, const struct ss_capture *capture,
		       size_t first, size_t count, const struct ss_process_memory *memory)
{
	ss_process_memory_read_present(memory, arena->pieces + first, count - first);
	for (size_t i = first; i < count; i++) {
		if (arena->parts[i] == LOCK)
			take_lock(arena->owners[i], &arena->pieces[i]);
		else
			take_stack(capture, arena->owners[i], arena->parts[i],
				   &arena->pieces[i]);
	}
}

/* Whether the previous capture of a series has searched the same part of the stack in vain. The
   kernel writes a signal frame only when the thread runs. */
static bool has_no_alternate(const struct ss_tracee *task)
{
	const struct ss_stack_copy *copy = &task->stacks[SS_STACK_SP];
	const struct ss_stack_copy *then =
		task->before && task->not_run ? task->before->stacks : NULL;

	return then && !then[SS_STACK_INTERRUPTED].bytes &&
	       then[SS_STACK_SP].address == copy->address &&
	       then[SS_STACK_SP].size == copy->size;
}

/* Finds, in the copies, signal handlers that run on alternate stacks, and queues the
   stacks they interrupted. */
static void queue_alternates(struct ss_arena *arena, const struct ss_capture *capture,
			     size_t *count, size_t max_stack)
{
	size_t copied = *count;

	for (size_t i = 0; i < copied; i++) {
		struct ss_tracee *task = arena->owners[i];
		const struct ss_stack_copy *copy = &task->stacks[SS_STACK_SP];
		uint64_t sp;
		if (arena->parts[i] == SS_STACK_SP && !has_no_alternate(task) &&
		    ss_arch_find_alternate(task->arch, copy->bytes,
					   SS_MIN(copy->size, (size_t)ALTERNATE_SEARCH),
					   copy->address, &sp))
			queue_stack(arena, capture, count, task, SS_STACK_INTERRUPTED,
				    plan(capture, sp, max_stack));
	}
}

/* Whether nothing but one stack is in an area: then it ends where the area ends. A stack
   has inaccessible memory below it. */
static bool is_stack(const struct ss_capture *capture, const struct ss_area *area)
{
	const struct ss_area *below = area - 1;

	if (!is_sparse(area) ||
	    (area->prot & (PROT_READ | PROT_WRITE)) != (PROT_READ | PROT_WRITE))
		return false;
	return strcmp(area->name, "[stack]") == 0 ||
	       (area > capture->areas.items && below->end == area->start &&
		(below->prot & (PROT_READ | PROT_WRITE)) == 0);
}

/* Queues what follows a copy of a deep stack. Not part of the first copy, so that deep
   stacks do not use up the total limit. */
static void queue_rest(struct ss_arena *arena, const struct ss_capture *capture,
		       size_t *count, struct ss_tracee *task, size_t which, size_t max)
{
	struct ss_stack_copy *copy = &task->stacks[which];
	uint64_t from = copy->address + copy->size;
	const struct ss_area *area =
		ss_capture_find_area(capture, copy->address + capture->arch->red_zone);
	bool any = copy->truncated && copy->size > 0 && copy->size < max && area &&
		   from < area->end && is_stack(capture, area) &&
		   *count < arena->piece_capacity && arena->used < arena->size;

	if (!any)
		return;
	struct ss_stack_copy rest = {
		.address = from,
		.size = (size_t)SS_MIN(area->end - from, (uint64_t)(max - copy->size)),
	};
	rest.truncated = from + rest.size < area->end;
	size_t full_size = rest.size;
	bool placed = place(arena, &rest);
	if (rest.size < full_size)
		task->reason = SS_TOTAL_REASON;
	if (!placed)
		return;
	copy->truncated = false;
	task->stacks[which + SS_STACK_SP_REST] = rest;
	queue_piece(arena, count, task, which + SS_STACK_SP_REST, &rest, true);
}

static const struct ss_area *find_main_stack(const struct ss_capture *capture)
{
	for (size_t i = capture->areas.count; i > 0; i--) {
		const struct ss_area *area = &capture->areas.items[i - 1];
		if (strcmp(area->name, "[stack]") == 0)
			return area;
	}
	return NULL;
}

/*
 * Queues the outermost part of the stack on which the kernel started the main thread, if it
 * runs on another one: a runtime (SBCL's, say) may have called its first function there.
 */
static void queue_main_stack(struct ss_arena *arena, const struct ss_capture *capture,
			     size_t *count, struct ss_tracee *task, size_t max_stack)
{
	const struct ss_area *area = find_main_stack(capture);

	for (size_t i = SS_STACK_SP; area && i <= SS_STACK_INTERRUPTED; i++) {
		const struct ss_stack_copy *copy = &task->stacks[i];
		if (copy->size && copy->address >= area->start &&
		    copy->address < area->end)
			area = NULL;
	}
	if (!area)
		return;
	size_t size = (size_t)SS_MIN(area->end - area->start, (uint64_t)max_stack);
	queue_stack(arena, capture, count, task, SS_STACK_OTHER,
		    (struct ss_stack_copy){ .address = area->end - size, .size = size });
}

/* Queues the stack that a running thread has left for another one, if the frame pointer
   still refers to it. */
static void queue_left_stack(struct ss_arena *arena, const struct ss_capture *capture,
			     size_t *count, struct ss_tracee *task, size_t max_stack)
{
	const struct ss_stack_copy *copy = &task->stacks[SS_STACK_SP];
	struct ss_regs regs;
	uint64_t fp;

	if (task->partial || task->stacks[SS_STACK_OTHER].bytes)
		return;
	task->arch->attach->regs(&task->kernel, &regs);
	if (!ss_regs_get(&regs, task->arch->fp, &fp) || fp == 0)
		return;
	const struct ss_area *area = ss_capture_find_area(capture, fp);
	if (area &&
	    area != ss_capture_find_area(capture, ss_regs_sp(task->arch, &regs)) &&
	    is_stack(capture, area) && fp - copy->address >= copy->size)
		queue_stack(arena, capture, count, task, SS_STACK_OTHER,
			    plan(capture, fp, max_stack));
}

static void queue_rests(struct ss_arena *arena, const struct ss_capture *capture,
			size_t *count, const struct ss_capture_options *options)
{
	size_t copied = *count;

	for (size_t i = 0; i < copied; i++) {
		if (arena->parts[i] > SS_STACK_INTERRUPTED)
			continue;
		queue_rest(arena, capture, count, arena->owners[i], arena->parts[i],
			   options->max_deep);
		if (arena->parts[i] == SS_STACK_SP &&
		    arena->owners[i]->tid == capture->process.pid)
			queue_main_stack(arena, capture, count, arena->owners[i],
					 options->max_stack);
		if (arena->parts[i] == SS_STACK_SP)
			queue_left_stack(arena, capture, count, arena->owners[i],
					 options->max_stack);
	}
}

void ss_arena_copy(struct ss_arena *arena, const struct ss_capture *capture,
		   struct ss_task_list *tasks, const struct ss_process_memory *memory,
		   const struct ss_capture_options *options, ss_task_predicate *predicate)
{
	size_t count = 0;
	size_t done;
	size_t pending = 0; /* threads that are copied later */
	/* No thread is left without the innermost part of its stack. */
	size_t share = SS_MAX(arena->size / (tasks->items.count + 1), (size_t)SHARE_MIN);
	size_t max = SS_MIN(share, options->max_stack);

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		pending += !predicate(task) && !task->stacks[SS_STACK_SP].bytes;
		if (!predicate(task))
			continue;
		if (!options->no_waits)
			queue_lock(arena, &count, capture, task);
		queue_stack(arena, capture, &count, task, SS_STACK_SP,
			    plan(capture, stack_pointer(task), max));
	}
	read_queue(arena, capture, 0, count, memory);
	done = count;
	queue_alternates(arena, capture, &count, max);
	read_queue(arena, capture, done, count, memory);
	done = count;
	arena->reserved = SS_MIN(pending * max, arena->size);
	queue_rests(arena, capture, &count, options);
	arena->reserved = 0;
	read_queue(arena, capture, done, count, memory);
}

bool ss_task_read_stack(const struct ss_tracee *task, uint64_t address, void *bytes,
			size_t size)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &task->stacks[i];
		if (!copy->bytes || copy->absent || address < copy->address ||
		    address - copy->address > copy->size ||
		    size > copy->size - (address - copy->address))
			continue;
		memcpy(bytes, copy->bytes + (address - copy->address), size);
		return true;
	}
	return false;
}

bool ss_task_find_base(const struct ss_tracee *task, const struct ss_gather_step *step,
		       uint64_t *ret)
{
	struct ss_regs regs = {};

	if (task->phase == SS_TASK_STOPPED)
		task->arch->attach->regs(&task->kernel, &regs);
	else if (ss_task_is_watched(task))
		ss_arch_regs_blocked(task->arch, task->call.pc, task->call.sp, NULL,
				     &regs);
	if (step->base == SS_GATHER_REGISTER)
		return ss_regs_get(&regs, step->parent, ret);
	if (task->phase != SS_TASK_STOPPED)
		return false;
	*ret = task->arch->attach->thread_pointer(&task->kernel);
	return true;
}

void ss_arena_give(struct ss_arena *arena, struct ss_capture *capture)
{
	size_t used = SS_MIN((arena->used + PAGE - 1) / PAGE * PAGE, arena->size);

	if (used < arena->size)
		(void)munmap(arena->bytes + used,
			     arena->size - used); /* cannot fail: our mapping */
	capture->arena = used ? take_ptr(arena->bytes) : NULL;
	capture->arena_size = used;
	arena->bytes = NULL;
	arena->size = 0;
}

static size_t bitmap_size(const struct ss_stack_copy *copy)
{
	size_t pages = (copy->address % PAGE + copy->size + PAGE - 1) / PAGE;

	return copy->absent ? (pages + 7) / 8 : 0;
}

static size_t aligned(size_t size)
{
	return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static bool is_equal(const struct ss_stack_copy *a, const struct ss_stack_copy *b)
{
	if (a->address != b->address || a->size != b->size || !a->bytes != !b->bytes ||
	    !a->absent != !b->absent || a->truncated != b->truncated)
		return false;
	return !a->bytes ||
	       (memcmp(a->bytes, b->bytes, a->size) == 0 &&
		(!a->absent || memcmp(a->absent, b->absent, bitmap_size(a)) == 0));
}

static bool have_equal_stacks(const struct ss_capture_thread *a,
			      const struct ss_capture_thread *b)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++)
		if (!is_equal(&a->stacks[i], &b->stacks[i]))
			return false;
	return true;
}

static const uint8_t *move_bytes(uint8_t **at, const uint8_t *bytes, size_t size)
{
	const uint8_t *to = *at;

	if (!bytes)
		return NULL;
	memcpy(*at, bytes, size);
	*at += aligned(size);
	return to;
}

/* Returns the size of its new block; 0: it has the one of before, which has the stacks: later ones
   of a capture that was completed are in its complements. */
static size_t find_block(const struct ss_capture_thread *thread,
			 const struct ss_capture *previous,
			 const struct ss_capture_thread *before)
{
	size_t size = 0;

	if (!previous->complement && before && before->block &&
	    have_equal_stacks(thread, before))
		return 0;
	for (size_t i = 0; i < SS_STACK_COPIES; i++)
		size += aligned(thread->stacks[i].size) +
			aligned(bitmap_size(&thread->stacks[i]));
	return size + 1;
}

/* Both or none of the two kinds of memory: what was made is freed with the capture. */
static bool make_blocks(struct ss_capture *capture, const struct ss_capture *previous,
			struct ss_stack_block **blocks)
{
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		const struct ss_capture_thread *before =
			ss_capture_find_thread(previous, thread->tid);
		size_t size = find_block(thread, previous, before);
		blocks[i] = size || !before ? ss_stack_block_new(size) :
					      ss_stack_block_ref(before->block);
		if (!blocks[i])
			return false;
		capture->own_bytes += size;
	}
	return true;
}

static void fill_block(struct ss_capture_thread *thread,
		       const struct ss_capture_thread *before,
		       struct ss_stack_block *block)
{
	uint8_t *at = block->bytes;

	thread->block = block;
	if (before && before->block == block) {
		memcpy(thread->stacks, before->stacks, sizeof(thread->stacks));
		return;
	}
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		struct ss_stack_copy *copy = &thread->stacks[i];
		size_t bitmap = bitmap_size(copy);
		copy->bytes = move_bytes(&at, copy->bytes, copy->size);
		copy->absent = move_bytes(&at, copy->absent, bitmap);
	}
}

static bool move_locks(struct ss_capture *capture)
{
	size_t size = 0;

	for (size_t i = 0; i < capture->threads.count; i++)
		size += aligned(capture->threads.items[i].lock.size);
	capture->locks = malloc(size + 1);
	if (!capture->locks)
		return false;
	capture->own_bytes += size;
	uint8_t *at = capture->locks;
	for (size_t i = 0; i < capture->threads.count; i++) {
		struct ss_lock_copy *lock = &capture->threads.items[i].lock;
		lock->bytes = move_bytes(&at, lock->bytes, lock->size);
	}
	return true;
}

bool ss_arena_hand_over(struct ss_arena *arena, struct ss_capture *capture,
			const struct ss_capture *previous, struct ss_kept_files *kept)
{
	size_t count = capture->threads.count;
	_cleanup_free_ struct ss_stack_block **blocks =
		calloc(count + 1, sizeof(*blocks));

	if (!blocks || !make_blocks(capture, previous, blocks) || !move_locks(capture)) {
		for (size_t i = 0; blocks && i < count; i++)
			ss_stack_block_unref(blocks[i]);
		capture->own_bytes = 0;
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		struct ss_capture_thread *thread = &capture->threads.items[i];
		fill_block(thread, ss_capture_find_thread(previous, thread->tid),
			   blocks[i]);
	}
	kept->scratch = arena->bytes;
	kept->scratch_size = arena->size;
	kept->scratch_ready = arena->ready;
	arena->bytes = NULL;
	arena->size = 0;
	return true;
}
