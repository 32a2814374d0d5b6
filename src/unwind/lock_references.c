#include "unwind/lock_references.h"

#include <stdlib.h>
#include <string.h>

#include "model/futex.h"

enum {
	FRAME_MAX = 64 << 10,	  /* bytes of one frame that are searched */
	REFERENCES_MAX = 1 << 16, /* of all threads */
	SAVED_MAX = 8,		  /* locks in one frame; more count as its own */
	CODE_PART = 4096,
	FUNCTION_MAX = 64 << 10, /* bytes before the pc that are searched */
	CODE_MAX = 4 << 20,	 /* of all frames */
};

/* Offsets of the futex in a lock: a mutex of glibc, one of musl, the two of a rwlock. */
static const unsigned futex_offsets[] = { 0, 4, 8, 12 };

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_ids(const void *a, const void *b)
{
	const uint32_t *x = a;
	const uint32_t *y = b;

	return (*x > *y) - (*x < *y);
}

static bool add_owners(struct ss_lock_references *refs, const struct ss_lock_copy *lock,
		       const struct ss_futex *futex)
{
	for (size_t i = 0; i < SS_FUTEX_OWNERS; i++) {
		uint32_t id =
			ss_futex_owner(futex, i, lock->address, lock->bytes, lock->size);
		uint32_t *owner = id ? ss_vector_push(&refs->owners) : NULL;
		if (id && !owner)
			return false;
		if (owner)
			*owner = id;
	}
	return true;
}

bool ss_lock_references_init(struct ss_lock_references *refs,
			     const struct ss_capture *capture)
{
	*refs = (struct ss_lock_references){ .arch = capture->arch };
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		struct ss_futex futex;
		if (thread->lock.size == 0 || !ss_futex_parse(&thread->syscall, &futex))
			continue;
		uint64_t *lock = ss_vector_push(&refs->locks);
		if (!lock || !add_owners(refs, &thread->lock, &futex))
			return false;
		*lock = futex.address;
	}
	if (refs->owners.count == 0)
		return true;
	qsort(refs->locks.items, refs->locks.count, sizeof(*refs->locks.items),
	      compare_addresses);
	qsort(refs->owners.items, refs->owners.count, sizeof(*refs->owners.items),
	      compare_ids);
	return true;
}

void ss_lock_references_deinit(struct ss_lock_references *refs)
{
	ss_vector_free(&refs->locks);
	ss_vector_free(&refs->owners);
}

bool ss_lock_references_is_owner(const struct ss_lock_references *refs,
				 const struct ss_capture_thread *thread)
{
	uint32_t id = (uint32_t)(thread->inner_tid ? thread->inner_tid : thread->tid);

	return refs->owners.count > 0 &&
	       bsearch(&id, refs->owners.items, refs->owners.count, sizeof(id),
		       compare_ids);
}

void ss_lock_references_begin(struct ss_lock_references *refs,
			      const struct ss_capture_thread *thread)
{
	refs->enabled = ss_lock_references_is_owner(refs, thread);
}

/* The futex of the lock that starts at address, or 0. */
static uint64_t find_lock(const struct ss_lock_references *refs, uint64_t address)
{
	const uint64_t *locks = refs->locks.items;
	size_t count = refs->locks.count;

	/* Most words are not near a lock. */
	if (address > locks[count - 1] || address + 12 < locks[0])
		return 0;
	for (size_t i = 0; i < SS_ARRAY_SIZE(futex_offsets); i++) {
		uint64_t futex = address + futex_offsets[i];
		if (bsearch(&futex, locks, count, sizeof(futex), compare_addresses))
			return futex;
	}
	return 0;
}

/* Finds the reference of a frame to a futex, or adds it. NULL: no room. */
static struct ss_lock_reference *add_reference(struct ss_snapshot *snapshot,
					       uint64_t futex, size_t frame)
{
	size_t count = snapshot->references.count;
	uint32_t thread = (uint32_t)snapshot->threads.count - 1;

	for (size_t i = count; i > 0; i--) {
		struct ss_lock_reference *known = &snapshot->references.items[i - 1];
		if (known->thread != thread || known->frame != frame)
			break;
		if (known->futex == futex)
			return known;
	}
	struct ss_lock_reference *slot =
		count < REFERENCES_MAX ? ss_vector_push(&snapshot->references) : NULL;
	if (slot)
		*slot = (struct ss_lock_reference){ .futex = futex,
						    .thread = thread,
						    .frame = (uint32_t)frame };
	return slot;
}

/* A search through one frame. */
struct search {
	struct ss_lock_references *refs;
	struct ss_snapshot *snapshot;
	struct ss_unwind_context *ctx;
	const struct ss_unwind_frame *frame;
	const struct ss_unwind_frame *caller; /* or NULL */
	size_t index;			      /* of frame */
};

static void add_if_lock(const struct search *s, uint64_t address)
{
	uint64_t futex = find_lock(s->refs, address);

	if (futex)
		(void)add_reference(s->snapshot, futex, s->index); /* or no room */
}

static bool has(const struct ss_unwind_frame *frame, unsigned reg, uint64_t expected)
{
	uint64_t value;

	return frame && ss_regs_get(&frame->regs, reg, &value) && value == expected;
}

/* In how many places a frame has saved this register value for its caller. */
static unsigned count_saved(const struct search *s, uint64_t value)
{
	unsigned count = 0;

	for (unsigned reg = 0; reg < s->refs->arch->reg_count; reg++)
		count += has(s->caller, reg, value) && !has(s->frame, reg, value);
	return count;
}

static void search_registers(const struct search *s)
{
	for (unsigned reg = 0; reg < s->refs->arch->reg_count; reg++) {
		uint64_t value;
		if (ss_regs_get(&s->frame->regs, reg, &value) &&
		    !has(s->caller, reg, value))
			add_if_lock(s, value);
	}
}

static void search_stack(const struct search *s, const struct ss_stack_copy *stack)
{
	struct {
		uint64_t word;
		unsigned left; /* copies of it that belong to the caller */
	} saved[SAVED_MAX] = {};
	uint64_t from = ss_regs_sp(s->refs->arch, &s->frame->regs);
	uint64_t end = stack->address + stack->size;

	if (!stack->bytes || from < stack->address || from >= end)
		return;
	end = SS_MIN(end, ss_regs_sp(s->refs->arch, &s->caller->regs));
	end = SS_MIN(end, from + FRAME_MAX);
	for (uint64_t at = (from + 7) & ~(uint64_t)7; at + 8 <= end; at += 8) {
		uint64_t word;
		memcpy(&word, stack->bytes + (at - stack->address), sizeof(word));
		if (find_lock(s->refs, word) == 0)
			continue;
		unsigned i = 0;
		while (i < SAVED_MAX && saved[i].word && saved[i].word != word)
			i++;
		if (i < SAVED_MAX && !saved[i].word) {
			saved[i].word = word;
			saved[i].left = count_saved(s, word);
		}
		if (i < SAVED_MAX && saved[i].left)
			saved[i].left--;
		else
			add_if_lock(s, word);
	}
}

/* Only the first call with a lock counts: later ones mostly release it on error paths. */
static void add_call(const struct search *s, uint64_t futex, uint64_t call)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(s->ctx, call);
	struct ss_lock_reference *reference =
		loaded ? add_reference(s->snapshot, futex, s->index) : NULL;

	if (!reference || reference->in_code)
		return;
	reference->in_code = true;
	reference->module_index = (int32_t)(loaded - s->ctx->modules);
	reference->call_offset = call - loaded->bias;
}

/* Searches the code of the function, up to the pc, for calls with a lock. */
static void search_code(const struct search *s)
{
	const struct ss_arch *arch = s->refs->arch;
	uint8_t code[CODE_PART];
	uint64_t end = ss_regs_pc(arch, &s->frame->regs);
	uint64_t at = 0;

	if (arch->next_argument && s->refs->code_read <= CODE_MAX)
		at = ss_context_find_function(s->ctx,
					      ss_unwind_lookup_pc(s->ctx, s->frame));
	if (at == 0)
		return;
	for (at = SS_MAX(at, end - SS_MIN(end, FUNCTION_MAX)); at < end;) {
		size_t size = SS_MIN(sizeof(code), end - at);
		size_t n = ss_context_read_code(s->ctx, at, code, size);
		uint64_t address;
		s->refs->code_read += n;
		if (n == 0 || s->refs->code_read > CODE_MAX)
			return;
		for (size_t i = 0; arch->next_argument(code, n, at, &i, &address);) {
			uint64_t futex = find_lock(s->refs, address);
			if (futex)
				add_call(s, futex, at + i);
		}
		/* A call may be split between two parts. */
		at += n < sizeof(code) ? n : n - SS_ARGUMENT_MAX;
	}
}

void ss_lock_references_add(struct ss_lock_references *refs, struct ss_snapshot *snapshot,
			    struct ss_unwind_context *ctx,
			    const struct ss_unwind_frame *frame,
			    const struct ss_unwind_frame *caller, size_t index)
{
	const struct search search = { .refs = refs,
				       .snapshot = snapshot,
				       .ctx = ctx,
				       .frame = frame,
				       .caller = caller,
				       .index = index };

	search_code(&search);
	search_registers(&search);
	for (size_t i = 0; caller && i < SS_STACK_COPIES; i++)
		search_stack(&search, &ctx->thread->stacks[i]);
}
