#include "unwind/held.h"

#include <stdlib.h>
#include <string.h>

#include "model/futex.h"

enum {
	FRAME_MAX = 64 << 10,	  /* bytes of one frame that are looked at */
	REFERENCES_MAX = 1 << 16, /* of all threads */
	SAVED_MAX = 8,		  /* locks in one frame; more are taken for its own */
	CODE_PART = 4096,
	FUNCTION_MAX = 64 << 10, /* bytes before the pc that are looked at */
	CODE_MAX = 4 << 20,	 /* of all frames */
};

/* How far behind its begin the futex of a lock lies: a mutex of glibc; one of musl; the
   two of a rwlock. */
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

static bool add_owners(struct ss_held *held, const struct ss_lock_copy *lock,
		       const struct ss_futex *futex)
{
	for (size_t i = 0; i < SS_FUTEX_OWNERS; i++) {
		uint32_t id =
			ss_futex_owner(futex, i, lock->address, lock->bytes, lock->size);
		uint32_t *owner = id ? ss_vector_push(&held->owners) : NULL;
		if (id && !owner)
			return false;
		if (owner)
			*owner = id;
	}
	return true;
}

bool ss_held_init(struct ss_held *held, const struct ss_capture *capture)
{
	*held = (struct ss_held){};
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		struct ss_futex futex;
		if (thread->lock.size == 0 || !ss_futex_parse(&thread->syscall, &futex))
			continue;
		uint64_t *lock = ss_vector_push(&held->locks);
		if (!lock || !add_owners(held, &thread->lock, &futex))
			return false;
		*lock = futex.address;
	}
	if (held->owners.count == 0)
		return true;
	qsort(held->locks.items, held->locks.count, sizeof(*held->locks.items),
	      compare_addresses);
	qsort(held->owners.items, held->owners.count, sizeof(*held->owners.items),
	      compare_ids);
	return true;
}

void ss_held_deinit(struct ss_held *held)
{
	ss_vector_free(&held->locks);
	ss_vector_free(&held->owners);
}

void ss_held_begin(struct ss_held *held, const struct ss_capture_thread *thread)
{
	uint32_t id = (uint32_t)(thread->inner_tid ? thread->inner_tid : thread->tid);

	held->looks = held->owners.count > 0 &&
		      bsearch(&id, held->owners.items, held->owners.count, sizeof(id),
			      compare_ids);
}

/* The futex of the lock that begins at that address, or 0. */
static uint64_t find_lock(const struct ss_held *held, uint64_t address)
{
	const uint64_t *locks = held->locks.items;
	size_t count = held->locks.count;

	/* Few words come near to a lock. */
	if (address > locks[count - 1] || address + 12 < locks[0])
		return 0;
	for (size_t i = 0; i < SS_ARRAY_SIZE(futex_offsets); i++) {
		uint64_t futex = address + futex_offsets[i];
		if (bsearch(&futex, locks, count, sizeof(futex), compare_addresses))
			return futex;
	}
	return 0;
}

/* What is known of a reference already, or a new one. NULL: no room. */
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
	if (slot) /* without it there is less to be said */
		*slot = (struct ss_lock_reference){ .futex = futex,
						    .thread = thread,
						    .frame = (uint32_t)frame };
	return slot;
}

static bool has(const struct ss_regs *regs, unsigned reg, uint64_t wanted)
{
	uint64_t value;

	return regs && ss_regs_get(regs, reg, &value) && value == wanted;
}

/* In how many places a frame has saved that value of a register for its caller. */
static unsigned count_saved(const struct ss_held_frame *frame, uint64_t value)
{
	unsigned count = 0;

	for (unsigned reg = 0; reg < ss_arch.reg_count; reg++)
		count += has(frame->next, reg, value) && !has(frame->regs, reg, value);
	return count;
}

static void look_at_registers(const struct ss_held *held, struct ss_snapshot *snapshot,
			      const struct ss_held_frame *frame)
{
	for (unsigned reg = 0; reg < ss_arch.reg_count; reg++) {
		uint64_t value;
		if (!ss_regs_get(frame->regs, reg, &value) ||
		    has(frame->next, reg, value))
			continue;
		uint64_t futex = find_lock(held, value);
		if (futex)
			(void)add_reference(snapshot, futex, frame->number);
	}
}

static void look_at_memory(const struct ss_held *held, struct ss_snapshot *snapshot,
			   const struct ss_stack_copy *stack,
			   const struct ss_held_frame *frame)
{
	struct {
		uint64_t word;
		unsigned left; /* that are the caller's */
	} saved[SAVED_MAX] = {};
	uint64_t from = ss_regs_sp(frame->regs);
	uint64_t end = stack->address + stack->size;

	if (!stack->bytes || from < stack->address || from >= end)
		return;
	end = SS_MIN(SS_MIN(ss_regs_sp(frame->next), end), from + FRAME_MAX);
	for (uint64_t at = (from + 7) & ~(uint64_t)7; at + 8 <= end; at += 8) {
		uint64_t word;
		memcpy(&word, stack->bytes + (at - stack->address), sizeof(word));
		uint64_t futex = find_lock(held, word);
		if (futex == 0)
			continue;
		unsigned i = 0;
		while (i < SAVED_MAX && saved[i].word && saved[i].word != word)
			i++;
		if (i < SAVED_MAX && !saved[i].word) {
			saved[i].word = word;
			saved[i].left = count_saved(frame, word);
		}
		if (i < SAVED_MAX && saved[i].left)
			saved[i].left--;
		else
			(void)add_reference(snapshot, futex, frame->number);
	}
}

/* The first call with a lock counts: those behind it mostly release it on a way out. */
static void note_call(struct ss_snapshot *snapshot, struct ss_view *view, uint64_t futex,
		      size_t frame, uint64_t call)
{
	const struct ss_loaded *loaded = ss_view_find_module(view, call);
	struct ss_lock_reference *reference =
		loaded ? add_reference(snapshot, futex, frame) : NULL;

	if (!reference || reference->in_code)
		return;
	reference->in_code = true;
	reference->module_index = (int32_t)(loaded - view->loaded);
	reference->call_offset = call - loaded->bias;
}

/* What the function has called before it came to where it is. */
static void look_at_code(struct ss_held *held, struct ss_snapshot *snapshot,
			 struct ss_view *view, const struct ss_held_frame *frame)
{
	uint8_t code[CODE_PART];
	uint64_t end = ss_regs_pc(frame->regs);
	uint64_t at = held->code_seen > CODE_MAX ?
			      0 :
			      ss_view_find_function(view, end - frame->call);

	if (at == 0)
		return;
	for (at = SS_MAX(at, end - SS_MIN(end, FUNCTION_MAX)); at < end;) {
		size_t n =
			ss_view_read_code(view, at, code, SS_MIN(sizeof(code), end - at));
		uint64_t address;
		held->code_seen += n;
		if (n == 0 || held->code_seen > CODE_MAX)
			return;
		for (size_t i = 0; ss_arch_next_argument(code, n, at, &i, &address);) {
			uint64_t futex = find_lock(held, address);
			if (futex)
				note_call(snapshot, view, futex, frame->number, at + i);
		}
		/* One may lie across the end of a part. */
		at += n < sizeof(code) ? n : n - SS_ARGUMENT_MAX;
	}
}

void ss_held_look(struct ss_held *held, struct ss_snapshot *snapshot,
		  struct ss_view *view, const struct ss_held_frame *frame)
{
	look_at_code(held, snapshot, view, frame);
	look_at_registers(held, snapshot, frame);
	for (size_t i = 0; frame->next && i < SS_STACK_COPIES; i++)
		look_at_memory(held, snapshot, &view->thread->stacks[i], frame);
}
