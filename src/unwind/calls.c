/*
 * Whether the call before a return address may have led to the code of an inner frame. Only a direct
 * call can refute that. It leads to the function that it calls, and to those to which that one jumps.
 *
 * Code without unwind tables does not say where its functions begin, but direct calls do: an address
 * that several calls name, or an aligned one that a single call names, is the start of a function.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/search.h"
#include "unwind/unwinder.h"

enum {
	/* Longer functions are searched up to there. */
	FUNCTION_MAX = 64 << 10,
	/* Of one whose end is not known, so much is searched for jumps. */
	UNKNOWN_MAX = 16 << 10,
	/* From a function to one to which it jumps, and so on */
	JUMPS_MAX = 4,
	/* Functions of one question: there may be that many jumps in each */
	FUNCTIONS_MAX = 32,
	/* Steps, of SS_CALL_STEPS: one is a byte that is searched. So many more takes a jump to another
	   function, for which unwind tables are looked up. */
	JUMP_STEPS = 512,
	/* And so many a byte, to find where functions begin: what is found is sorted. */
	START_STEPS = 4,
	/* Of modules with more code than that, no starts are known. */
	TEXT_MAX = 8 << 20,
	CALLED_MAX = 1 << 18,
	ALIGNMENT = 16,
	PART = 4096,
	CALL = 5, /* "call rel32" */
	JUMP_MAX = 6,
};

typedef SS_VECTOR(uint64_t) addresses;

/* How much code a module has from an address on, in the same segment; 0: it is not code. */
static uint64_t text_from(const struct ss_image *image, uint64_t address)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct ss_segment *segment = &image->segments[i];
		const uint64_t before = address - segment->address;
		if ((segment->flags & PF_X) && before < segment->size)
			return segment->size - before;
	}
	return 0;
}

static bool is_text(const struct ss_image *image, uint64_t address)
{
	return text_from(image, address) > 0;
}

/* Adds what bytes, which may be calls, would call. False: there are too many, or there is no memory. */
static bool add_called(struct ss_image *image, const struct ss_segment *segment,
		       addresses *called)
{
	uint8_t code[PART];
	uint64_t target;

	for (uint64_t at = 0; at + CALL <= segment->size; at += sizeof(code) - CALL + 1) {
		const uint64_t address = segment->address + at;
		const size_t size = ss_image_read(image, address, code, sizeof(code));
		for (size_t i = 0; i + CALL <= size; i++) {
			if (!image->arch->call_target(code + i, CALL, address + i + CALL,
						      &target) ||
			    !is_text(image, target))
				continue;
			uint64_t *slot = called->count < CALLED_MAX ?
						 ss_vector_push(called) :
						 NULL;
			if (!slot)
				return false;
			*slot = target;
		}
	}
	return true;
}

/* Keeps those that are certain, each once. */
static void choose_starts(addresses *called)
{
	size_t kept = 0;

	if (called->count)
		qsort(called->items, called->count, sizeof(*called->items),
		      ss_compare_u64);
	for (size_t i = 0, next; i < called->count; i = next) {
		const uint64_t start = called->items[i];
		for (next = i + 1; next < called->count && called->items[next] == start;)
			next++;
		if (next - i > 1 || start % ALIGNMENT == 0)
			called->items[kept++] = start;
	}
	called->count = kept;
}

/* False: too much has been searched in this process. */
static bool take_steps(struct ss_unwind_context *ctx, uint64_t steps)
{
	if (steps > ctx->calls.steps_left)
		return false;
	ctx->calls.steps_left -= steps;
	return true;
}

/* Where the functions of a module begin, ascending: ELF virtual addresses. */
static const struct ss_called *find_called(struct ss_unwind_context *ctx,
					   struct ss_image *image)
{
	static const struct ss_called none;
	addresses called = {};
	uint64_t text = 0;
	bool whole = true;

	if (image->called)
		return image->called;
	for (size_t i = 0; i < image->segment_count; i++)
		text += image->segments[i].flags & PF_X ? image->segments[i].size : 0;
	if (text <= TEXT_MAX && !take_steps(ctx, text * START_STEPS))
		return &none;
	for (size_t i = 0; i < image->segment_count && text <= TEXT_MAX && whole; i++) {
		if (image->segments[i].flags & PF_X)
			whole = add_called(image, &image->segments[i], &called);
	}
	if (whole)
		choose_starts(&called);
	else
		called.count = 0;
	image->called = malloc(sizeof(*image->called) +
			       called.count * sizeof(*image->called->starts));
	if (image->called) {
		image->called->count = called.count;
		if (called.count)
			memcpy(image->called->starts, called.items,
			       called.count * sizeof(*called.items));
	}
	ss_vector_free(&called);
	return image->called ? image->called : &none;
}

/* A question: whether a call leads to pc, in code of one module. To code of no module, as of a JIT
   compiler, only jumps lead. */
struct question {
	struct ss_unwind_context *ctx;
	struct ss_loaded_module *loaded;
	uint64_t pc;
	unsigned left; /* functions that may still be searched */
	/* They jump somewhere, or were not searched to their ends. Then the search ends. */
	bool unknown;
};

/* The first start above an address, or UINT64_MAX. */
static uint64_t next_called(const struct question *q, uint64_t address)
{
	const struct ss_called *called = find_called(q->ctx, q->loaded->image);
	size_t low = 0;
	size_t high = called->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (called->starts[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < called->count ? called->starts[low] : UINT64_MAX;
}

/* Whether two addresses may be in one function. */
static bool is_one_function(struct question *q, uint64_t a, uint64_t b)
{
	const uint64_t low = SS_MIN(a, b);
	const uint64_t high = SS_MAX(a, b);
	uint64_t start;
	uint64_t end;

	if (ss_context_find_extent(q->ctx, low, &start, &end))
		return high < end;
	if (find_called(q->ctx, q->loaded->image)->count == 0) {
		q->unknown |= high - low < FUNCTION_MAX;
		return false;
	}
	return high - low < FUNCTION_MAX &&
	       ss_context_find_function(q->ctx, high) <= low &&
	       next_called(q, low - q->loaded->bias) > high - q->loaded->bias;
}

/* How much code of a function is searched, from its start on. */
static size_t size_of(struct question *q, uint64_t function)
{
	const uint64_t at = function - q->loaded->bias;
	uint64_t start;
	uint64_t end;

	if (ss_context_find_extent(q->ctx, function, &start, &end)) {
		q->unknown |= end - function > FUNCTION_MAX;
		return (size_t)SS_MIN(end - function, (uint64_t)FUNCTION_MAX);
	}
	end = next_called(q, at);
	if (end == UINT64_MAX) {
		const uint64_t text = text_from(q->loaded->image, at);
		/* Without starts: too much has been searched before. */
		q->unknown |= !q->loaded->image->called || text > UNKNOWN_MAX;
		return (size_t)SS_MIN(text, (uint64_t)UNKNOWN_MAX);
	}
	q->unknown |= end - at > FUNCTION_MAX;
	return (size_t)SS_MIN(end - at, (uint64_t)FUNCTION_MAX);
}

static bool reaches(struct question *q, uint64_t function, unsigned depth);

/* The same by the jumps in a part of a function. */
static bool jumps_reach(struct question *q, const uint8_t *code, size_t size,
			uint64_t address, uint64_t function, uint64_t end, unsigned depth)
{
	size_t at = 0;
	uint64_t target;

	q->unknown |= !take_steps(q->ctx, size);
	while (!q->unknown &&
	       q->ctx->arch->next_jump(code, size, address, &at, &target)) {
		if (target >= function && target < end)
			continue;
		q->unknown |= target == 0 || !take_steps(q->ctx, JUMP_STEPS);
		if (q->unknown)
			return false;
		if (is_one_function(q, target, q->pc))
			return true;
		if (is_text(q->loaded->image, target - q->loaded->bias) &&
		    reaches(q, target, depth + 1))
			return true;
	}
	return false;
}

/* Whether the function that begins there is that of pc, or jumps to it. */
static bool reaches(struct question *q, uint64_t function, unsigned depth)
{
	uint8_t code[PART];

	if (function <= q->pc && is_one_function(q, function, q->pc))
		return true;
	q->unknown |= depth > JUMPS_MAX || q->left == 0;
	if (q->unknown)
		return false;
	q->left--;
	const uint64_t end = function + size_of(q, function);
	/* A jump may be in two parts. */
	for (uint64_t at = function; at < end && !q->unknown;
	     at += sizeof(code) - JUMP_MAX + 1) {
		const size_t wanted = (size_t)SS_MIN(end - at, (uint64_t)sizeof(code));
		const size_t size = ss_context_read_code(q->ctx, at, code, wanted);
		q->unknown |= size < wanted;
		if (jumps_reach(q, code, size, at, function, end, depth))
			return true;
		if (wanted < sizeof(code))
			break;
	}
	return false;
}

/* Whether the code at an address is a stub of the procedure linkage table. */
static bool is_stub(struct ss_unwind_context *ctx, uint64_t address)
{
	uint8_t code[16];
	uint64_t slot;

	return ctx->arch->jump_slot &&
	       ctx->arch->jump_slot(
		       code, ss_context_read_code(ctx, address, code, sizeof(code)),
		       address, &slot);
}

/* The same as ss_call_reaches(), of a call of a constant address. */
static enum ss_reach search(struct ss_unwind_context *ctx, uint64_t callee, uint64_t pc)
{
	struct ss_loaded_module *inner = ss_context_find_module(ctx, pc);
	struct ss_loaded_module *called = ss_context_find_module(ctx, callee);

	if ((inner && (!inner->image || inner->skipped)) || !called || !called->image ||
	    called->skipped || !take_steps(ctx, JUMP_STEPS))
		return SS_REACH_UNKNOWN;
	if (is_stub(ctx, callee))
		return !inner || inner == called ? SS_REACH_UNKNOWN : SS_REACH_MODULE;
	struct question q = {
		.ctx = ctx, .loaded = called, .pc = pc, .left = FUNCTIONS_MAX
	};
	if (reaches(&q, callee, 0))
		return SS_REACH_YES;
	return q.unknown ? SS_REACH_UNKNOWN : SS_REACH_NO;
}

enum ss_reach ss_call_reaches(struct ss_unwind_context *ctx, uint64_t return_address,
			      uint64_t pc)
{
	uint8_t before[SS_CALL_MAX];
	const size_t n = ss_context_read_code(ctx, return_address - sizeof(before),
					      before, sizeof(before));
	uint64_t callee;

	if (!ctx->arch->next_jump ||
	    !ctx->arch->call_target(before, n, return_address, &callee))
		return SS_REACH_UNKNOWN;
	struct ss_call_answer *answer =
		&ctx->calls.answers[ss_hash_tag(31 * callee + pc) % SS_CALL_ANSWERS];
	if (!answer->known || answer->callee != callee || answer->pc != pc)
		*answer = (struct ss_call_answer){ .callee = callee,
						   .pc = pc,
						   .reach = search(ctx, callee, pc),
						   .known = true };
	return answer->reach;
}
