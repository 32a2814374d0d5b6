#include "unwind/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/search.h"
#include "data/futex.h"
#include "elf/go_table.h"
#include "unwind/cfi.h"
#include "unwind/unwinder.h"

/*
 * The frame of a signal handler: the kernel has saved the interrupted registers in it, at
 * fixed offsets from the stack pointer of the signal trampoline.
 */

enum {
	ALIGNMENT = 16,
	/* The handler's own frame may be that large. */
	SEARCH_MAX = 64 << 10,
};

static bool has_word(struct ss_unwind_context *ctx, uint64_t address, uint64_t expected)
{
	uint64_t word;

	return ss_context_read_word(ctx, address, &word) && word == expected;
}

/*
 * If a frame record led here, sp is a lower bound. The frame pointer then points to a
 * record of the kernel, with the interrupted frame pointer and link register, which are
 * among the saved registers as well (arch/arm64/kernel/signal.c, setup_sigframe()).
 */
static bool find_base(struct ss_unwind_context *ctx, const uint16_t *offsets,
		      const struct ss_regs *regs, uint64_t *ret)
{
	const struct ss_arch *arch = ctx->arch;
	uint64_t at = ss_regs_sp(arch, regs);
	uint64_t record;
	uint64_t fp;
	uint64_t link;

	if (ss_regs_get(regs, arch->sp, ret))
		return true;
	if (arch->link == SS_REG_NONE || !ss_regs_get(regs, arch->fp, &record) ||
	    !ss_context_read_word(ctx, record, &fp) ||
	    !ss_context_read_word(ctx, record + arch->word, &link))
		return false;
	at = (at + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
	for (uint64_t end = at + SEARCH_MAX; at < end && at < record; at += ALIGNMENT) {
		*ret = at;
		if (has_word(ctx, at + offsets[arch->fp], fp) &&
		    has_word(ctx, at + offsets[arch->link], link))
			return true;
	}
	return false;
}

static enum ss_step step_signal(void *state, struct ss_unwind_context *ctx,
				struct ss_unwind_frame *frame)
{
	const struct ss_arch *arch = ctx->arch;
	struct ss_regs regs = {};
	uint64_t base;
	uint64_t value;

	(void)state;
	const struct ss_sigframe *sigframe =
		frame->signal ?
			ss_context_find_sigframe(ctx, ss_regs_pc(arch, &frame->regs)) :
			NULL;
	if (!sigframe)
		return SS_STEP_SKIP;
	if (!find_base(ctx, sigframe->regs, &frame->regs, &base))
		return SS_STEP_REGISTER;
	for (unsigned reg = 0; reg < arch->reg_count; reg++) {
		if (sigframe->regs[reg] == 0)
			continue;
		if (!ss_context_read_word(ctx, base + sigframe->regs[reg], &value))
			return SS_STEP_MISSING;
		ss_regs_set(&regs, reg, value);
	}
	frame->regs = regs;
	return SS_STEP_OK;
}

static const struct ss_unwinder unwinder_signal = {
	.name = "signal frame",
	.source = SS_FROM_CFI,
	.step = step_signal,
};

/* Unwinding of code that a runtime has made, by what it knows of that code. */

static enum ss_step step_runtime(void *state, struct ss_unwind_context *ctx,
				 struct ss_unwind_frame *frame)
{
	struct ss_runtime_frame stepped = { .thread = ctx->thread,
					    .stack = &ctx->stacks.memory,
					    .call = frame->call,
					    .regs = &frame->regs };

	(void)state;
	if (!ctx->runtimes)
		return SS_STEP_SKIP;
	switch (ss_runtimes_step(ctx->runtimes, &stepped)) {
	case SS_RUNTIME_STEP_OK:
		return SS_STEP_OK;
	case SS_RUNTIME_STEP_ROOT:
		return SS_STEP_ROOT;
	default:
		return SS_STEP_SKIP;
	}
}

static const struct ss_unwinder unwinder_runtime = {
	.name = "runtime",
	.source = SS_FROM_CFI,
	.step = step_runtime,
};

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

/*
 * Whether a thread probably waits for another one that initialises something: only stacks tell
 * which one does. pthread_once() waits while the word has the lowest bit, and counts forks
 * above the next one (glibc's pthread_once.c); Rust's Once has similar values.
 * __cxa_guard_acquire() of libstdc++ waits while a thread is at it and others wait.
 */
static bool may_initialize(const struct ss_futex *futex)
{
	enum { IN_PROGRESS = 1, STATES = 4, ONCE_MAX = 1 << 12, GUARD_WAITING = 0x10100 };

	return futex->private ?
		       futex->value % STATES == IN_PROGRESS && futex->value < ONCE_MAX :
		       futex->value == GUARD_WAITING;
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
		refs->initializing |= may_initialize(&futex);
	}
	if (refs->owners.count == 0 && !refs->initializing)
		return true;
	qsort(refs->locks.items, refs->locks.count, sizeof(*refs->locks.items),
	      ss_compare_u64);
	if (refs->owners.count)
		qsort(refs->owners.items, refs->owners.count, sizeof(*refs->owners.items),
		      ss_compare_u32);
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

	if (refs->initializing)
		return true;
	return refs->owners.count > 0 &&
	       bsearch(&id, refs->owners.items, refs->owners.count, sizeof(id),
		       ss_compare_u32);
}

/* Sets the current thread. */
static void lock_references_begin(struct ss_lock_references *refs,
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
		if (bsearch(&futex, locks, count, sizeof(futex), ss_compare_u64))
			return futex;
	}
	return 0;
}

/* Finds the reference of a frame to a futex, or adds it. address: what the frame has. NULL: no
   room. */
static struct ss_lock_reference *add_reference(struct ss_snapshot *snapshot,
					       uint64_t futex, uint64_t address,
					       size_t frame)
{
	size_t count = snapshot->references.count;
	uint32_t thread = (uint32_t)snapshot->tasks[SS_TASK_THREAD].count - 1;

	for (size_t i = count; i > 0; i--) {
		struct ss_lock_reference *known = &snapshot->references.items[i - 1];
		if (known->thread != thread || known->frame != frame)
			break;
		if (known->futex == futex) {
			known->exact |= address == futex;
			return known;
		}
	}
	struct ss_lock_reference *slot =
		count < REFERENCES_MAX ? ss_vector_push(&snapshot->references) : NULL;
	if (slot)
		*slot = (struct ss_lock_reference){ .futex = futex,
						    .thread = thread,
						    .frame = (uint32_t)frame,
						    .exact = address == futex };
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
		(void)add_reference(s->snapshot, futex, address,
				    s->index); /* or no room */
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
	const uint64_t size = s->refs->arch->word;
	uint64_t from = ss_regs_sp(s->refs->arch, &s->frame->regs);
	uint64_t end = stack->address + stack->size;

	if (!stack->bytes || from < stack->address || from >= end)
		return;
	end = SS_MIN(end, ss_regs_sp(s->refs->arch, &s->caller->regs));
	end = SS_MIN(end, from + FRAME_MAX);
	for (uint64_t at = (from + size - 1) & ~(size - 1); at + size <= end;
	     at += size) {
		const uint64_t word =
			ss_load_word(stack->bytes, at - stack->address, size);
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

/* The first call with a lock counts: later ones mostly release it. */
static void add_call(const struct search *s, uint64_t futex, uint64_t address,
		     uint64_t call)
{
	enum { CALLS_MAX = 2 };
	const struct ss_loaded_module *loaded = ss_context_find_module(s->ctx, call);
	struct ss_lock_reference *reference =
		loaded ? add_reference(s->snapshot, futex, address, s->index) : NULL;

	if (!reference)
		return;
	if (address == futex && reference->calls < CALLS_MAX)
		reference->calls++;
	if (reference->in_code)
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
				add_call(s, futex, address, at + i);
		}
		/* A call may be split between two parts. */
		at += n < sizeof(code) ? n : n - SS_ARGUMENT_MAX;
	}
}

/*
 * Adds to the snapshot the locks that a frame of its last thread refers to. index: of
 * the frame. caller: NULL if unknown. A value that the frame only preserves for its
 * caller, in a register or on the stack, counts for the caller.
 */
static void lock_references_add(struct ss_lock_references *refs,
				struct ss_snapshot *snapshot,
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

enum {
	/* Return addresses found by scanning may be wrong: this many in one stack end
	   it. */
	GUESSES_MAX = 16,
	/* Signal frames may lead inwards, from an alternate stack to the interrupted one;
	   forged ones could do so in a cycle. */
	INWARD_MAX = 64,
	/* A stack that is cut in a recursion: so many of its last frames are at a few places
	   only. */
	RECURSION_FRAMES = 64,
	RECURSION_PLACES = 24,
	SKIPPED_MAX = 4 << 20, /* in all threads: some seconds */
};

/*
 * The order in which unwinders are tried, the most reliable ones first. Each is tried
 * only if after contains the result of those before it. The result is NO_INFO at first.
 */
struct policy {
	const struct ss_unwinder *unwinder;
	unsigned after; /* a set of results */
};

#define AFTER(result) (1u << SS_STEP_##result)

static const struct policy policies[] = {
	{ &unwinder_signal, AFTER(NO_INFO) },
	{ &ss_unwinder_cfi, AFTER(NO_INFO) },
	{ &ss_unwinder_registered, AFTER(NO_INFO) },
	{ &unwinder_runtime, AFTER(NO_INFO) },
	{ &ss_unwinder_known_fp, AFTER(REGISTER) },
	{ &ss_unwinder_missing_fp, AFTER(REGISTER) },
	{ &ss_unwinder_libunwind, AFTER(COMPLEX) },
	{ &ss_unwinder_go, AFTER(NO_INFO) },
	{ &ss_unwinder_new_thread, AFTER(NO_INFO) },
	{ &ss_unwinder_bad_call, AFTER(NO_INFO) },
	{ &ss_unwinder_link_register, AFTER(NO_INFO) },
	{ &ss_unwinder_frame_pointer, AFTER(NO_INFO) },
	{ &ss_unwinder_scan, AFTER(NO_INFO) },
};

_Static_assert(SS_ARRAY_SIZE(policies) <= SS_UNWINDERS_MAX, "a state for each unwinder");

bool ss_unwinders_init(struct ss_unwinders *unwinders)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(policies); i++) {
		const struct ss_unwinder *unwinder = policies[i].unwinder;
		if (!unwinder->new)
			continue;
		unwinders->states[i] = unwinder->new ();
		if (!unwinders->states[i])
			return false;
	}
	return true;
}

void ss_unwinders_deinit(struct ss_unwinders *unwinders)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(policies); i++) {
		if (unwinders->states[i])
			policies[i].unwinder->free(unwinders->states[i]);
	}
}

static void place_in_area(struct ss_walk *walk, struct ss_frame *frame, uint64_t lookup,
			  const struct ss_area *area)
{
	frame->area = ss_intern_string(walk->snapshot->strings, ss_area_label(area));
	frame->area_offset = frame->pc - area->start;
	frame->lookup_offset = lookup - area->start;
}

/* Appends a frame, relative to its module. NULL: no memory. */
static struct ss_frame *add_frame(struct ss_walk *walk, uint64_t pc, bool call,
				  bool signal)
{
	struct ss_frame *frame = ss_vector_push(&walk->frames);
	uint64_t lookup = call && !signal ? pc - 1 : pc;

	if (!frame)
		return NULL;
	*frame = (struct ss_frame){ .pc = pc,
				    .module_index = -1,
				    .source = walk->source,
				    .signal_frame = signal };
	struct ss_loaded_module *loaded = ss_context_find_module(&walk->ctx, lookup);
	if (loaded) {
		frame->module = &loaded->module->pub;
		frame->module_index = (int32_t)(loaded - walk->ctx.modules);
		frame->offset = pc - loaded->bias;
		frame->lookup_offset = lookup - loaded->bias;
		return frame;
	}
	const struct ss_area *area = ss_capture_find_area(walk->ctx.capture, lookup);
	if (area)
		place_in_area(walk, frame, lookup, area);
	return frame;
}

static bool add_native(struct ss_walk *walk, const struct ss_unwind_frame *frame)
{
	const struct ss_arch *arch = walk->ctx.arch;
	struct ss_native_frame *native = ss_vector_push(&walk->natives);

	if (!native)
		return false;
	*native = (struct ss_native_frame){ .pc = ss_regs_pc(arch, &frame->regs),
					    .sp = ss_regs_sp(arch, &frame->regs),
					    .call = frame->call && !frame->signal,
					    .guess = walk->source ==
						     SS_FROM_RETURN_ADDRESS };
	(void)ss_regs_get(&frame->regs, arch->fp, &native->fp);
	return true;
}

static enum ss_end end_of_step(const struct ss_walk *walk, enum ss_step step)
{
	bool truncated = ss_context_was_truncated(&walk->ctx);

	switch (step) {
	case SS_STEP_ROOT:
		return walk->searched ? SS_END_GUESSED : SS_END_ROOT;
	case SS_STEP_MISSING:
		return truncated ? SS_END_LIMIT : SS_END_UNREADABLE;
	case SS_STEP_REGISTER:
		return SS_END_REGISTER;
	case SS_STEP_NO_INFO:
		return truncated ? SS_END_LIMIT : SS_END_NO_UNWIND_INFO;
	default:
		return SS_END_BAD_UNWIND_INFO;
	}
}

/*
 * Whether the return address pc was not pushed by a call: it is the first instruction of a
 * function. glibc's makecontext() puts the address of the function that ends a coroutine
 * below the coroutine's first frame.
 */
static bool is_forged(struct ss_walk *walk, const struct ss_unwind_frame *frame,
		      uint64_t pc)
{
	return frame->call && !ss_context_is_return_address(&walk->ctx, pc) &&
	       ss_cfi_starts_at(&walk->ctx, pc);
}

/* Whether the last frame is of the function of which Go makes a fault look like a call. */
static bool is_after_fault(struct ss_walk *walk)
{
	size_t count = walk->natives.count;
	uint64_t pc = count ? walk->natives.items[count - 1].pc : 0;
	const struct ss_loaded_module *loaded = ss_context_find_module(&walk->ctx, pc);

	return loaded && loaded->image && !loaded->skipped &&
	       ss_go_is_sigpanic(loaded->image, pc - loaded->bias);
}

static void take_step(struct ss_walk *walk, const struct ss_unwinder *unwinder,
		      struct ss_unwind_frame *frame, uint64_t inner)
{
	walk->guesses += unwinder->source == SS_FROM_RETURN_ADDRESS;
	walk->searched |= unwinder->searches;
	walk->guessed |= unwinder == &ss_unwinder_scan &&
			 !ss_guess_is_confirmed(&walk->ctx, frame, inner);
	/* What follows from a guess is one. */
	walk->source = walk->guessed ? SS_FROM_RETURN_ADDRESS : unwinder->source;
	walk->end =
		SS_END_NO_UNWIND_INFO; /* if it is a guess too many, or not plausible */
	frame->call = !frame->signal;
	if (unwinder->source != SS_FROM_FRAME_POINTER)
		frame->links = 0;
}

/*
 * Without unwind information a frame pointer of zero means the outermost frame. That does
 * not hold if the file of the code could not be read: it may not use frame pointers.
 */
static bool is_root(struct ss_walk *walk, const struct ss_unwinder *unwinder, uint64_t pc)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(&walk->ctx, pc);

	return (unwinder->source != SS_FROM_FRAME_POINTER &&
		unwinder->source != SS_FROM_RETURN_ADDRESS) ||
	       !loaded || loaded->image;
}

/* After a guess: whether the frame is of a function that may have called the inner one. */
static bool is_plausible(struct ss_walk *walk, const struct ss_unwind_frame *frame,
			 uint64_t inner)
{
	const uint64_t pc = ss_regs_pc(walk->ctx.arch, &frame->regs);

	return ss_context_find_sigframe(&walk->ctx, pc) || is_forged(walk, frame, pc) ||
	       (ss_context_is_return_address(&walk->ctx, pc) &&
		ss_call_reaches(&walk->ctx, pc, inner) != SS_REACH_NO);
}

/* Steps to the caller of frame. False: walk->end says why there is none. */
static bool step(struct ss_walk *walk, struct ss_unwind_frame *frame)
{
	uint64_t pc = ss_regs_pc(walk->ctx.arch, &frame->regs);
	const uint64_t inner = ss_unwind_lookup_pc(&walk->ctx, frame);
	const bool interrupted = frame->signal; /* its caller has called nothing */
	enum ss_step result = SS_STEP_NO_INFO;

	walk->ctx.missing = 0;
	for (size_t i = 0; i < SS_ARRAY_SIZE(policies); i++) {
		const struct ss_unwinder *unwinder = policies[i].unwinder;
		if (!(policies[i].after >> result & 1))
			continue;
		enum ss_step next =
			unwinder->step(walk->unwinders->states[i], &walk->ctx, frame);
		if (next == SS_STEP_SKIP)
			continue;
		if (next == SS_STEP_OK) {
			take_step(walk, unwinder, frame, inner);
			return walk->guesses <= GUESSES_MAX &&
			       (!walk->guessed || interrupted ||
				is_plausible(walk, frame, inner));
		}
		result = next;
		if (result == SS_STEP_ROOT && !is_root(walk, unwinder, pc)) {
			result = SS_STEP_NO_INFO;
			break;
		}
	}
	walk->end = end_of_step(walk, result);
	return false;
}

/* Whether CFI led to another mapping: to the next piece of a split stack. */
static bool changes_stack(const struct ss_walk *walk, uint64_t sp, uint64_t next_sp)
{
	return walk->source == SS_FROM_CFI &&
	       ss_capture_find_area(walk->ctx.capture, sp) !=
		       ss_capture_find_area(walk->ctx.capture, next_sp);
}

/*
 * Whether a step from a frame at sp to the next one led outwards. A leaf may have popped
 * its return address into a register, as vfork() does, so that sp is the same. From an
 * alternate signal stack to the interrupted one the way may lead inwards.
 */
static bool leads_outwards(struct ss_walk *walk, const struct ss_unwind_frame *next,
			   uint64_t sp, bool call, bool signal)
{
	uint64_t next_sp = ss_regs_sp(walk->ctx.arch, &next->regs);

	if (next_sp > sp || (next_sp == sp && !call))
		return true;
	return (signal || changes_stack(walk, sp, next_sp)) &&
	       ++walk->inward <= INWARD_MAX;
}

/* Steps to the caller, and searches the frame for references to locks. */
static bool leave_frame(struct ss_walk *walk, struct ss_unwind_frame *frame)
{
	if (!walk->lock_references.enabled)
		return step(walk, frame);
	const struct ss_unwind_frame left = *frame;
	bool more = step(walk, frame);
	lock_references_add(&walk->lock_references, walk->snapshot, &walk->ctx, &left,
			    more ? frame : NULL, walk->frames.count - 1);
	return more;
}

/* Whether pc is a place of the recursion: that of one of the last frames before count. */
static bool recurs(const struct ss_walk *walk, size_t count, uint64_t pc)
{
	for (size_t i = count - RECURSION_FRAMES; i < count; i++) {
		if (walk->frames.items[i].pc == pc)
			return true;
	}
	return false;
}

static bool is_recursion(const struct ss_walk *walk)
{
	const struct ss_frame *frames = walk->frames.items;
	size_t count = walk->frames.count;
	size_t places = 0;

	if (count < RECURSION_FRAMES)
		return false;
	for (size_t i = count - RECURSION_FRAMES; i < count; i++) {
		size_t k = i + 1;
		while (k < count && frames[k].pc != frames[i].pc)
			k++;
		places += k == count; /* the last frame of its place */
	}
	return places <= RECURSION_PLACES;
}

/* Steps to the caller of frame, which is outside of it. */
static bool step_outwards(struct ss_walk *walk, struct ss_unwind_frame *frame)
{
	uint64_t sp = ss_regs_sp(walk->ctx.arch, &frame->regs);
	bool call = frame->call;

	frame->signal = false;
	return step(walk, frame) && leads_outwards(walk, frame, sp, call, false);
}

/*
 * The stack was cut in a recursion: skips the rest of that, and adds the functions that
 * began it. frame is the one after the cut. If unwinding fails before, nothing is added.
 * False without memory.
 */
static bool add_callers(struct ss_walk *walk, struct ss_unwind_frame *frame)
{
	const struct ss_arch *arch = walk->ctx.arch;
	size_t count = walk->frames.count;
	uint32_t omitted = 0;

	while (recurs(walk, count, ss_regs_pc(arch, &frame->regs))) {
		omitted++;
		if (walk->skipped++ >= SKIPPED_MAX || !step_outwards(walk, frame))
			return true;
	}
	for (size_t i = 0; i < SS_RECURSION_CALLERS_MAX; i++) {
		uint64_t pc = ss_regs_pc(arch, &frame->regs);
		struct ss_frame *added = add_native(walk, frame) ?
						 add_frame(walk, pc, frame->call, false) :
						 NULL;
		if (!added)
			return false;
		added->omitted = i == 0 ? omitted : 0;
		if (ss_context_find_sigframe(&walk->ctx, pc) ||
		    !step_outwards(walk, frame))
			return true;
	}
	return true;
}

static bool walk_frames(struct ss_walk *walk, struct ss_unwind_frame *frame)
{
	const struct ss_arch *arch = walk->ctx.arch;

	for (;;) {
		uint64_t pc = ss_regs_pc(arch, &frame->regs);
		uint64_t sp = ss_regs_sp(arch, &frame->regs);
		bool call = frame->call;
		bool signal = frame->signal = ss_context_find_sigframe(&walk->ctx, pc) !=
					      NULL;
		if (call && !signal && !ss_context_is_return_address(&walk->ctx, pc) &&
		    is_after_fault(walk))
			call = frame->call = false;
		bool forged = !signal && is_forged(walk, frame, pc);
		if (!add_native(walk, frame) ||
		    !add_frame(walk, pc, call && !forged, signal))
			return false;
		if (walk->max_frames == 1 && walk->frames_reason) {
			walk->end = SS_END_FRAMES;
			return true;
		}
		if (forged)
			walk->end = end_of_step(walk, SS_STEP_ROOT);
		if (forged || !leave_frame(walk, frame))
			return true;
		if (!leads_outwards(walk, frame, sp, call, signal)) {
			walk->end = SS_END_LOOP;
			return true;
		}
		if (walk->frames.count >= walk->max_frames) {
			bool added = !is_recursion(walk) || add_callers(walk, frame);
			walk->end = SS_END_FRAMES;
			return added;
		}
	}
}

/* False without memory. */
static bool walk_copy(struct ss_walk *walk, const struct ss_capture_thread *thread)
{
	struct ss_unwind_frame frame = { .regs = thread->regs,
					 .call = walk->parked,
					 .new_thread = thread->not_started };

	ss_context_set_thread(&walk->ctx, thread);
	lock_references_begin(&walk->lock_references, thread);
	walk->source = SS_FROM_REGISTERS;
	walk->guesses = walk->inward = 0;
	walk->searched = walk->guessed = false;
	return walk_frames(walk, &frame);
}

static bool add_live_frames(struct ss_walk *walk, const struct ss_capture_thread *thread)
{
	bool call = false;

	for (size_t i = 0; i < thread->live_count; i++) {
		const struct ss_live_frame *live = &thread->live[i];
		walk->source = i ? SS_FROM_CFI : SS_FROM_REGISTERS;
		if (!add_frame(walk, live->pc, call, live->signal_frame))
			return false;
		call = !live->signal_frame;
	}
	walk->end = thread->live_end;
	return true;
}

/* Takes the frames that libunwind found while the thread was stopped. If they do not
   reach the outermost frame, the copied stack is unwound as well, and used if it leads at
   least as far: its reason is more precise. */
static bool walk_live(struct ss_walk *walk, const struct ss_capture_thread *thread)
{
	bool whole = thread->live_end == SS_END_ROOT || thread->live_end == SS_END_FRAMES;
	size_t references = walk->snapshot->references.count;

	if (!whole && !walk_copy(walk, thread))
		return false;
	if (!whole &&
	    (ss_end_is_outermost(walk->end) || walk->frames.count >= thread->live_count))
		return true;
	walk->frames.count = walk->natives.count = 0;
	walk->snapshot->references.count = references; /* of other frames */
	return add_live_frames(walk, thread);
}

/* A thread with known registers has at least one frame, even if nothing of its stack could
   be copied (sp in a guard page, or corrupted). */
static bool can_walk(const struct ss_capture_thread *thread)
{
	return (thread->end == SS_END_ROOT || thread->end == SS_END_UNREADABLE) &&
	       thread->regs.valid != 0;
}

bool ss_walk_thread(struct ss_walk *walk, const struct ss_capture_thread *thread)
{
	walk->frames.count = walk->natives.count = 0;
	walk->end = thread->end;
	if (thread->live)
		return walk_live(walk, thread);
	return !can_walk(thread) || walk_copy(walk, thread);
}
