#include "capture/extend.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/search.h"
#include "capture/still.h"
#include "data/gather.h"
#include "process/process_memory.h"
#include "data/gather_plan.h"
#include "data/pipeline.h"

enum {
	PAGE = 4096,
	/* Other memory than a stack may follow, so more is copied only if it was needed. */
	FIRST = 1 << 20,
	GROWTH = 8,
	PLAN_MS = 5000, /* for 128 MiB; a page may have been taken away */
};

struct extension {
	struct ss_capture *capture;
	const struct ss_target *target;
	const struct ss_capture_options *options;
	struct ss_process_memory memory;
	struct ss_buffer text;
	size_t left; /* of max_total */
	unsigned waits_left;
};

/* A child of the tracer may read the memory of a held process with its descriptor only: for
   Yama it is no relative of the process. */
static int open_memory(const struct ss_target *target, pid_t tid)
{
	return target->held_mem_fd >= 0 ? fcntl(target->held_mem_fd, F_DUPFD_CLOEXEC, 3) :
					  ss_target_open_task(target, tid, "mem");
}

static void extension_deinit(struct extension *e)
{
	close_cleanup(&e->memory.mem_fd);
	close_cleanup(&e->memory.pagemap_fd);
	ss_buffer_deinit(&e->text);
}

static struct ss_capture_thread *find_thread(struct ss_capture *capture, pid_t tid)
{
	size_t count = capture->threads.count;
	size_t at = ss_lower_bound(count, i, capture->threads.items[i].tid < tid);

	return at < count && capture->threads.items[at].tid == tid ?
		       &capture->threads.items[at] :
		       NULL;
}

/* The copy to make or to replace by a larger one, or NULL. */
static struct ss_stack_copy *find_slot(struct ss_capture_thread *thread, uint64_t address)
{
	struct ss_stack_copy *free = NULL;

	for (size_t i = SS_STACK_FOUND; i < SS_STACK_COPIES; i++) {
		struct ss_stack_copy *copy = &thread->stacks[i];
		/* Frames may be large. */
		if (copy->truncated && address - copy->address < copy->size + FIRST)
			return copy;
		if (!copy->bytes && !free)
			free = copy;
	}
	return free;
}

/* What to copy. size 0: nothing. */
static struct ss_stack_copy plan(const struct extension *e,
				 const struct ss_stack_copy *old, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(e->capture, address);
	size_t max = old->bytes ? old->size * GROWTH : FIRST;
	const unsigned access = PROT_READ | PROT_WRITE;

	/* A limit that the caller has set holds. */
	if (!area || area->shared || (area->prot & access) != access ||
	    e->options->max_deep <= e->options->max_stack)
		return (struct ss_stack_copy){};
	max = SS_MIN(SS_MIN(max, e->options->max_deep), old->size + e->left) / PAGE *
	      PAGE;
	uint64_t from = old->bytes ? old->address : address & ~(uint64_t)(PAGE - 1);
	size_t whole = area->end - from;
	return (struct ss_stack_copy){ .address = from,
				       .size = SS_MIN(whole, max),
				       .truncated = whole > max };
}

static bool is_still(struct extension *e, const struct ss_capture_thread *thread)
{
	return ss_still_check(&(struct ss_still){ .capture = e->capture,
						  .target = e->target,
						  .memory = &e->memory,
						  .text = &e->text,
						  .waits_left = &e->waits_left },
			      thread);
}

/* Its memory belongs to a capture that is freed with the first one. NULL: no memory. */
static struct ss_capture *allocate(struct ss_stack_copy *copy, uint8_t **absent)
{
	size_t pages = copy->size / PAGE + 2;
	size_t bitmap = (pages + 7) / 8;
	struct ss_capture *owner = ss_capture_new();
	size_t size = copy->size + (bitmap + PAGE - 1) / PAGE * PAGE;

	if (!owner)
		return NULL;
	uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED) {
		ss_capture_free(owner);
		return NULL;
	}
	owner->arena = bytes;
	owner->arena_size = size;
	copy->bytes = bytes;
	*absent = bytes + copy->size;
	return owner;
}

/* Frees the memory of a copy that a larger one replaces, if it is its own. */
static void drop(struct ss_capture *capture, const struct ss_stack_copy *copy)
{
	for (struct ss_capture **at = &capture->complement; *at;
	     at = &(*at)->complement) {
		struct ss_capture *owner = *at;
		if (!copy->bytes || owner->arena != copy->bytes ||
		    owner->threads.count > 0)
			continue;
		*at = take_ptr(owner->complement);
		ss_capture_free(owner);
		return;
	}
}

/* The copy may continue others. */
static void join(struct ss_capture_thread *thread, const struct ss_stack_copy *copy)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		struct ss_stack_copy *other = &thread->stacks[i];
		uint64_t end = other->address + other->size;
		if (other != copy && other->truncated && end >= copy->address &&
		    end < copy->address + copy->size)
			other->truncated = false;
	}
}

static bool extend(struct extension *e, const struct ss_stack_request *request)
{
	struct ss_capture_thread *thread = find_thread(e->capture, request->tid);
	struct ss_stack_copy *slot = thread ? find_slot(thread, request->address) : NULL;
	uint8_t *absent;

	if (request->address == 0 || !slot || thread->live || !is_still(e, thread))
		return false;
	struct ss_stack_copy copy = plan(e, slot, request->address);
	if (copy.truncated && copy.size == (slot->size + e->left) / PAGE * PAGE)
		thread->reason = SS_TOTAL_REASON;
	if (copy.size <= slot->size || request->address - copy.address >= copy.size)
		return false;
	_cleanup_(ss_capture_cleanup) struct ss_capture *owner = allocate(&copy, &absent);
	if (!owner)
		return false;
	struct ss_piece piece = {
		.address = copy.address,
		.bytes = owner->arena,
		.size = copy.size,
		.absent = absent,
		.zeroed = true,
	};
	ss_process_memory_read_present(&e->memory, &piece, 1);
	if (piece.done == 0 || !is_still(e, thread))
		return false;
	copy.truncated &= piece.done == copy.size;
	copy.size = piece.done;
	copy.absent = piece.has_absent ? absent : NULL;
	size_t more = copy.size - SS_MIN(slot->size, copy.size);
	e->left -= SS_MIN(more, e->left);
	e->capture->process.copied_bytes += more;
	drop(e->capture, slot);
	*slot = copy;
	join(thread, slot);
	owner->complement = e->capture->complement;
	e->capture->complement = take_ptr(owner);
	return true;
}

struct ss_error *ss_extend_stacks(struct ss_capture *capture,
				  const struct ss_target *target,
				  const struct ss_capture_options *options,
				  const struct ss_stack_request *requests, size_t count,
				  size_t *ret)
{
	pid_t live = ss_target_find_live(target);
	__attribute__((cleanup(extension_deinit))) struct extension e = {
		.capture = capture,
		.target = target,
		.options = options,
		.memory = { .tid = live,
			    .mem_fd = open_memory(target, live),
			    .pagemap_fd = ss_target_open_task(target, live, "pagemap"),
			    .deadline_ns = ss_now_ns() +
					   (uint64_t)options->timeout_ms * SS_NS_PER_MS },
		.left = options->max_total -
			(size_t)SS_MIN((uint64_t)options->max_total,
				       capture->process.copied_bytes),
		.waits_left = SS_STILL_WAITS,
	};

	if (live == 0)
		return ss_target_missing(target);
	for (size_t i = 0; i < count; i++)
		*ret += extend(&e, &requests[i]);
	return NULL;
}

struct plan_source {
	struct ss_gather_source source; /* must be first: callbacks cast it back */
	const struct ss_process_memory *memory;
};

static void read_for_plan(const struct ss_gather_source *source, struct ss_piece *pieces,
			  size_t count)
{
	const struct plan_source *self = (const struct plan_source *)source;

	ss_process_memory_read_present(self->memory, pieces, count);
}

struct ss_error *ss_extend_by_plan(struct ss_capture *capture,
				   const struct ss_target *target,
				   const struct ss_gather_plan *plan)
{
	pid_t live = ss_target_find_live(target);
	__attribute__((cleanup(extension_deinit))) struct extension e = {
		.memory = { .tid = live,
			    .mem_fd = open_memory(target, live),
			    .pagemap_fd = ss_target_open_task(target, live, "pagemap"),
			    .ahead = true,
			    .deadline_ns =
				    ss_now_ns() + (uint64_t)PLAN_MS * SS_NS_PER_MS },
	};
	const struct plan_source source = { .source.read = read_for_plan,
					    .memory = &e.memory };
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = NULL;
	struct ss_gathered gathered = { .late = true };

	if (live == 0)
		return ss_target_missing(target);
	struct ss_error *error = ss_gather_new(plan, false, &gather);
	if (error)
		return error;
	gathered.monotonic_ns = ss_now_ns();
	ss_gather_run(gather, &source.source);
	error = ss_gather_give(gather, &gathered);
	if (error) {
		ss_gathered_deinit(&gathered);
		return error;
	}
	ss_gathered_deinit(&capture->gathered);
	capture->gathered = gathered;
	return NULL;
}
