/*
 * Frame records: the frame pointer points to the caller's, with the return address above
 * (System V psABI 3.2.2, AAPCS64 6.4.6). All other registers are lost.
 */
#include <string.h>

#include "base/hash.h"
#include "unwind/cfi.h"
#include "unwind/unwinder.h"

/* inner: the code that the call before the return address must lead to, if that is known; or 0 */
static enum ss_step follow_record(struct ss_unwind_context *ctx,
				  struct ss_unwind_frame *frame, uint64_t inner)
{
	const uint64_t word = ctx->arch->word;
	const struct ss_arch *arch = ctx->arch;
	struct ss_regs *regs = &frame->regs;
	uint64_t fp;
	uint64_t outer;
	uint64_t pc;

	if (!ss_regs_get(regs, arch->fp, &fp) || fp < ss_regs_sp(arch, regs) ||
	    fp % word != 0 || !ss_context_read_word(ctx, fp, &outer) ||
	    !ss_context_read_word(ctx, fp + word, &pc))
		return SS_STEP_SKIP;
	/* In a program without frame pointers the register may point to any word. */
	if (pc == 0)
		return frame->links > 0 ? SS_STEP_ROOT : SS_STEP_SKIP;
	pc = ss_context_strip(ctx, pc);
	bool called = ss_context_is_return_address(ctx, pc);
	/* The first frame of a stack may return to code that has called nothing, as in
	   a goroutine. */
	bool first = !called && outer == 0 && ss_context_is_code(ctx, pc);
	if (!first && !called)
		return SS_STEP_SKIP;
	if (called && inner && ss_call_reaches(ctx, pc, inner) == SS_REACH_NO)
		return SS_STEP_SKIP;
	ss_arch_regs_blocked(arch, pc, fp + 2 * word, NULL, regs);
	ss_regs_set(regs, arch->fp, outer);
	if (!arch->fp_gives_sp)
		ss_regs_forget(regs, arch->sp);
	frame->links += first || outer != 0;
	return SS_STEP_OK;
}

/* The pc of a frame that was not called may be in a function that has no record yet. */
static enum ss_step step_frame_pointer(void *state, struct ss_unwind_context *ctx,
				       struct ss_unwind_frame *frame)
{
	(void)state;
	return follow_record(ctx, frame, ss_unwind_lookup_pc(ctx, frame));
}

const struct ss_unwinder ss_unwinder_frame_pointer = {
	.name = "frame pointer",
	.source = SS_FROM_FRAME_POINTER,
	.step = step_frame_pointer,
};

/*
 * The frame pointer of a thread that was not stopped. The kernel does not report it, and frames
 * addressed through it cannot be unwound without it.
 *
 * It is known where it must be: a function that moves the stack pointer once, by a constant, has it
 * so far above the stack pointer, behind the registers that it saved and arguments of the call that
 * it pushed. If that place is followed by a return address, from which more frames follow, if all
 * their calls enter the functions of their frames, and if no other place near it is like that, that
 * is it. Where the stack was overwritten it is not found.
 *
 * If it is not known and the thread must not be stopped, it is probably the place that the prologue
 * shows, or else the first one above the stack pointer, that is followed by the return address of a
 * call of this function. A few more frames must follow from there, each entered by a call.
 */

enum {
	WORDS_MAX = 1 << 13, /* of one frame */
	FRAMES = 3,	     /* that must follow, or the end of the stack */
	FRAMES_KNOWN = 8,    /* likewise */
	/* The first move of the stack pointer may make room for the arguments of the first call,
	   too, which it then releases. */
	RELEASED_MAX = 2, /* words */
	ARGUMENTS_MAX = 32,
	FUNCTION_MAX = 1 << 16, /* bytes of code that are searched */
	CHUNK = 1024,
};

/* Whether the call before pc calls that function. unknown: if it does not say which one it calls. */
static bool calls(struct ss_unwind_context *ctx, uint64_t pc, uint64_t function,
		  bool unknown)
{
	uint8_t code[SS_CALL_MAX];
	uint64_t callee;

	if (!ss_context_is_return_address(ctx, pc))
		return false;
	size_t n = ss_context_read_code(ctx, pc - sizeof(code), code, sizeof(code));
	return ctx->arch->call_target(code, n, pc, &callee) ? callee == function :
							      unknown;
}

static enum ss_step step_by_cfi(struct ss_unwind_context *ctx,
				struct ss_unwind_frame *frame)
{
	return ss_unwinder_cfi.step(NULL, ctx, frame);
}

/* Generated code, such as V8's builtins, has frame records instead of CFI. */
static bool has_callers(struct ss_unwind_context *ctx, struct ss_unwind_frame frame)
{
	frame.call = true;
	for (unsigned i = 0; i < FRAMES; i++) {
		enum ss_step result = step_by_cfi(ctx, &frame);
		if (result == SS_STEP_NO_INFO)
			result = ss_unwinder_frame_pointer.step(NULL, ctx, &frame);
		if (result != SS_STEP_OK)
			return result == SS_STEP_ROOT;
		uint64_t pc = ss_regs_pc(ctx->arch, &frame.regs);
		if (!ss_context_is_return_address(ctx, pc))
			return false;
	}
	return true;
}

/* Whether each of the frames that follow was entered by a call of its function. */
static bool has_known_callers(struct ss_unwind_context *ctx, struct ss_unwind_frame frame)
{
	frame.call = true;
	for (unsigned i = 0; i < FRAMES_KNOWN; i++) {
		uint64_t function = ss_cfi_find_function(ctx, &frame);
		enum ss_step result = step_by_cfi(ctx, &frame);
		if (result != SS_STEP_OK)
			return result == SS_STEP_ROOT;
		if (!calls(ctx, ss_regs_pc(ctx->arch, &frame.regs), function, true))
			return false;
	}
	return true;
}

/* Steps to the caller if more frames follow with this frame pointer. */
static bool try_frame_pointer(struct ss_unwind_context *ctx,
			      struct ss_unwind_frame *frame, uint64_t fp)
{
	const uint64_t word = ctx->arch->word;
	struct ss_unwind_frame caller = *frame;
	uint64_t pc;

	ss_regs_set(&caller.regs, ctx->arch->fp, fp);
	if (!ss_context_read_word(ctx, fp + word, &pc) ||
	    !ss_context_is_return_address(ctx, pc) ||
	    step_by_cfi(ctx, &caller) != SS_STEP_OK ||
	    ss_regs_pc(ctx->arch, &caller.regs) != pc || !has_callers(ctx, caller))
		return false;
	*frame = caller;
	return true;
}

/* By how much a function moves the stack pointer, but for pushes. False: this is not known. */
static bool search_move(struct ss_unwind_context *ctx, uint64_t start, uint64_t end,
			uint64_t *ret)
{
	const uint64_t word = ctx->arch->word;
	uint8_t code[CHUNK];
	unsigned count = 0;

	*ret = 0;
	if (end - start > FUNCTION_MAX)
		return false;
	for (uint64_t at = start; at + SS_MOVE_MAX <= end;
	     at += sizeof(code) - SS_MOVE_MAX + 1) {
		size_t size = (size_t)SS_MIN(end - at, (uint64_t)sizeof(code));
		if (ss_context_read_code(ctx, at, code, size) != size ||
		    !ctx->arch->find_moves(code, size, &count, ret))
			return false;
	}
	return count <= 1 && *ret <= WORDS_MAX * word;
}

/* The same. Many threads wait in the same functions. */
static bool find_move(struct ss_unwind_context *ctx, uint64_t start, uint64_t end,
		      uint64_t *ret)
{
	struct ss_stack_move *move =
		&ctx->moves[ss_hash_tag(start) % SS_ARRAY_SIZE(ctx->moves)];

	if (move->start != start) {
		move->start = start;
		move->known = search_move(ctx, start, end, &move->moved);
	}
	*ret = move->moved;
	return move->known;
}

/* The size of the registers that a function has pushed after the frame pointer. False: its frame is
   of another kind. */
static bool find_pushed(struct ss_unwind_context *ctx,
			const struct ss_unwind_frame *frame, uint64_t *ret)
{
	const int word = ctx->arch->word;
	struct ss_cfi_row row;

	*ret = 0;
	if (!ss_cfi_find_row(ctx, frame, &row) || row.cfa_saved ||
	    row.cfa_register != ctx->arch->fp || row.cfa_offset != 2 * word)
		return false;
	for (size_t i = 0; i < row.saved_count; i++) {
		if (row.saved[i].from_fp || row.saved[i].offset > -2 * word)
			return false;
		*ret = SS_MAX(*ret, (uint64_t)(-(int64_t)row.saved[i].offset - 2 * word));
	}
	return *ret <= (uint64_t)(SS_ROW_SAVED_MAX * word);
}

/*
 * The first place from one on where the frame pointer may be. False if it may be elsewhere: before
 * that, or behind it at another direct call of the function. size: what is below it in each frame of
 * the function. It is not farther up than that, for there it may be the one of another frame of the
 * function, with a part of the stack between them that was overwritten.
 */
static bool find_only_place(struct ss_unwind_context *ctx,
			    const struct ss_unwind_frame *frame, uint64_t function,
			    uint64_t first, uint64_t size, struct ss_unwind_frame *ret)
{
	const uint64_t word = ctx->arch->word;
	const uint64_t sp = ss_regs_sp(ctx->arch, &frame->regs);
	const uint64_t last = sp + size;
	const uint64_t arguments = ARGUMENTS_MAX * word;
	const uint64_t pushed = SS_MIN(size, arguments);
	struct ss_unwind_frame caller;
	bool found = false;

	for (uint64_t at = sp; at <= last || at < last + (found ? arguments : pushed);
	     at += word) {
		caller = *frame;
		if (!try_frame_pointer(ctx, &caller, at))
			continue;
		uint64_t pc = ss_regs_pc(ctx->arch, &caller.regs);
		bool direct = calls(ctx, pc, function, false);
		bool fits = at <= last ? calls(ctx, pc, function, true) : direct;
		if (at < first ? fits : found ? direct : !fits)
			return false;
		if (at < first || found)
			continue;
		found = true;
		*ret = caller;
	}
	return found;
}

static enum ss_step find_known(void *state, struct ss_unwind_context *ctx,
			       struct ss_unwind_frame *frame)
{
	const uint64_t word = ctx->arch->word;
	const uint64_t sp = ss_regs_sp(ctx->arch, &frame->regs);
	struct ss_unwind_frame caller;
	uint64_t start;
	uint64_t end;
	uint64_t moved;
	uint64_t pushed;

	(void)state;
	if (!ctx->arch->find_moves || sp % word != 0 ||
	    !find_pushed(ctx, frame, &pushed) ||
	    !ss_context_find_extent(ctx, ss_unwind_lookup_pc(ctx, frame), &start, &end) ||
	    !find_move(ctx, start, end, &moved))
		return SS_STEP_SKIP;
	uint64_t size = moved + pushed;
	if (sp > UINT64_MAX - size - ARGUMENTS_MAX * word) /* no stack ends there */
		return SS_STEP_SKIP;
	uint64_t first = sp + size - SS_MIN(moved, RELEASED_MAX * word);
	if (!find_only_place(ctx, frame, start, first, size, &caller) ||
	    !has_known_callers(ctx, caller))
		return SS_STEP_SKIP;
	*frame = caller;
	return SS_STEP_OK;
}

const struct ss_unwinder ss_unwinder_known_fp = {
	.name = "CFI with the frame pointer where it must be",
	.source = SS_FROM_CFI,
	.step = find_known,
};

static enum ss_step step_missing_fp(void *state, struct ss_unwind_context *ctx,
				    struct ss_unwind_frame *frame)
{
	const uint64_t word = ctx->arch->word;
	const struct ss_arch *arch = ctx->arch;
	uint64_t function =
		ss_context_find_function(ctx, ss_unwind_lookup_pc(ctx, frame));
	uint64_t sp = ss_regs_sp(arch, &frame->regs);
	uint64_t at = (sp + word - 1) & ~(word - 1);
	uint8_t code[SS_PROLOGUE_MAX];
	uint64_t size;
	uint64_t pc;

	(void)state;
	if (!ctx->thread->fragile || function == 0)
		return SS_STEP_SKIP;
	size_t n = ss_context_read_code(ctx, function, code, sizeof(code));
	if (arch->frame_size && arch->frame_size(code, n, &size) &&
	    try_frame_pointer(ctx, frame, sp + size))
		return SS_STEP_OK;
	for (unsigned i = 0; i < WORDS_MAX; i++, at += word) {
		if (!ss_context_read_word(ctx, at + word, &pc))
			break;
		if (calls(ctx, pc, function, false) && try_frame_pointer(ctx, frame, at))
			return SS_STEP_OK;
	}
	return SS_STEP_SKIP;
}

const struct ss_unwinder ss_unwinder_missing_fp = {
	.name = "CFI with a frame pointer that was searched for",
	.source = SS_FROM_RETURN_ADDRESS,
	.searches = true,
	.step = step_missing_fp,
};

/*
 * Ways to find a caller without unwind information: a call through a bad pointer, a
 * leaf function, and last a plausible return address on the stack. Each frame found in
 * these ways is marked as heuristic.
 */

enum {
	/* How far to search for a return address: frames with neither CFI nor a frame
	   pointer are small (hand-written assembly, musl's system call wrappers). */
	SCAN_WORDS = 256,
	/* How far to search before concluding that there is none: the arguments and
	   environment of a program may follow. */
	END_WORDS = 1 << 18,
	/* Leaf functions without CFI are not longer. */
	LEAF_MAX = 64 << 10,
	/* From the first place on that may be a return address, so many more words are searched for
	   a better one. */
	BETTER_WORDS = 16,
	LINKS = 2, /* frame records that make a chain */
};

/*
 * C libraries have no CFI where their clone() returns twice: it cannot be right for both.
 * The stack of the new thread is empty, and what is above it must not be scanned.
 */
static enum ss_step step_new_thread(void *state, struct ss_unwind_context *ctx,
				    struct ss_unwind_frame *frame)
{
	(void)state;
	(void)ctx;
	return frame->new_thread && !frame->call ? SS_STEP_ROOT : SS_STEP_SKIP;
}

const struct ss_unwinder ss_unwinder_new_thread = {
	.name = "new thread",
	.source = SS_FROM_REGISTERS,
	.step = step_new_thread,
};

/* A call through a bad pointer has pushed only the return address, and changed no
   other register. */
static enum ss_step step_bad_call(void *state, struct ss_unwind_context *ctx,
				  struct ss_unwind_frame *frame)
{
	const uint64_t word = ctx->arch->word;
	const struct ss_arch *arch = ctx->arch;
	uint64_t sp = ss_regs_sp(arch, &frame->regs);
	uint64_t pc;

	(void)state;
	if (frame->call || ss_context_is_code(ctx, ss_regs_pc(arch, &frame->regs)))
		return SS_STEP_SKIP;
	bool found = arch->link == SS_REG_NONE ?
			     ss_context_read_word(ctx, sp, &pc) :
			     ss_regs_get(&frame->regs, arch->link, &pc);
	if (!found || !ss_context_is_return_address(ctx, pc))
		return SS_STEP_SKIP;
	ss_regs_set(&frame->regs, arch->pc, pc);
	if (arch->link == SS_REG_NONE)
		ss_regs_set(&frame->regs, arch->sp, sp + word);
	else
		ss_regs_forget(&frame->regs, arch->link);
	return SS_STEP_OK;
}

const struct ss_unwinder ss_unwinder_bad_call = {
	.name = "call of a bad pointer",
	.source = SS_FROM_RETURN_ADDRESS,
	.step = step_bad_call,
};

/* Whether the call before return_address calls the function that contains pc. */
static bool has_called(struct ss_unwind_context *ctx, uint64_t return_address,
		       uint64_t pc)
{
	uint8_t code[SS_CALL_MAX];
	uint64_t callee;
	size_t n = ss_context_read_code(ctx, return_address - sizeof(code), code,
					sizeof(code));

	return ctx->arch->call_target(code, n, return_address, &callee) &&
	       pc - callee < LEAF_MAX;
}

/*
 * A leaf function, or one before its prologue, whose return address is in the link
 * register. But the register may hold the return address of a call that has returned:
 * then that call is not one of this function, or the same address is in the frame
 * record.
 */
static enum ss_step step_link_register(void *state, struct ss_unwind_context *ctx,
				       struct ss_unwind_frame *frame)
{
	const uint64_t word = ctx->arch->word;
	const struct ss_arch *arch = ctx->arch;
	uint64_t saved = 0;
	uint64_t link;
	uint64_t fp;

	(void)state;
	if (frame->call || arch->link == SS_REG_NONE ||
	    !ss_regs_get(&frame->regs, arch->link, &link))
		return SS_STEP_SKIP;
	if (ss_regs_get(&frame->regs, arch->fp, &fp))
		(void)ss_context_read_word(ctx, fp + word, &saved); /* or none */
	uint64_t pc = ss_context_strip(ctx, link);
	if (saved == link || !ss_context_is_return_address(ctx, pc) ||
	    !has_called(ctx, pc, ss_regs_pc(arch, &frame->regs)))
		return SS_STEP_SKIP;
	ss_regs_set(&frame->regs, arch->pc, pc);
	ss_regs_forget(&frame->regs, arch->link);
	return SS_STEP_OK;
}

const struct ss_unwinder ss_unwinder_link_register = {
	.name = "link register",
	.source = SS_FROM_RETURN_ADDRESS,
	.step = step_link_register,
};

/* Finds the next plausible return address at or above *at, within that many words. */
static bool find_return_address(struct ss_unwind_context *ctx, uint64_t *at, int words,
				uint64_t *ret)
{
	uint64_t word;

	for (int i = 0; i < words; i++, *at += ctx->arch->word) {
		if (!ss_context_read_word(ctx, *at, &word))
			return false;
		*ret = ss_context_strip(ctx, word);
		if (ss_context_is_return_address(ctx, *ret))
			return true;
	}
	return false;
}

static uint64_t scan_start(const struct ss_unwind_context *ctx,
			   const struct ss_unwind_frame *frame)
{
	const uint64_t word = ctx->arch->word;
	uint64_t sp = ss_regs_sp(ctx->arch, &frame->regs);

	return (sp + word - 1) & ~(word - 1);
}

bool ss_guess_is_confirmed(struct ss_unwind_context *ctx,
			   const struct ss_unwind_frame *frame, uint64_t inner)
{
	const enum ss_reach reach =
		ss_call_reaches(ctx, ss_regs_pc(ctx->arch, &frame->regs), inner);
	struct ss_unwind_frame next = *frame;

	if (reach < SS_REACH_MODULE)
		return false;
	next.call = true;
	for (unsigned i = 0; i < FRAMES; i++) {
		const uint64_t pc = ss_unwind_lookup_pc(ctx, &next);
		if (step_by_cfi(ctx, &next) != SS_STEP_OK)
			return i > 0 || reach == SS_REACH_YES;
		const uint64_t caller = ss_regs_pc(ctx->arch, &next.regs);
		if (!ss_context_is_return_address(ctx, caller) ||
		    ss_call_reaches(ctx, caller, pc) == SS_REACH_NO)
			return false;
	}
	return true;
}

/* A place where a return address may be. */
struct candidate {
	uint64_t at;
	uint64_t pc;
	uint64_t fp; /* of the caller, if chained */
	enum ss_reach reach;
	bool chained; /* it is above a saved frame pointer, from which more records follow */
};

/* Whether the word below a return address begins a chain of frame records. */
static bool is_chained(struct ss_unwind_context *ctx, struct candidate *candidate)
{
	const uint64_t word = ctx->arch->word;
	uint64_t at = candidate->at - word;
	uint64_t inner = candidate->pc - 1;
	uint64_t fp;
	uint64_t pc;

	if (!ss_context_read_word(ctx, at, &candidate->fp))
		return false;
	fp = candidate->fp;
	for (unsigned i = 0; i < LINKS; i++) {
		if (fp <= at || fp % word != 0 ||
		    !ss_context_read_word(ctx, fp + word, &pc))
			return false;
		pc = ss_context_strip(ctx, pc);
		if (!ss_context_is_return_address(ctx, pc) ||
		    ss_call_reaches(ctx, pc, inner) == SS_REACH_NO)
			return false;
		at = fp;
		inner = pc - 1;
		if (!ss_context_read_word(ctx, fp, &fp))
			return false;
		if (fp == 0)
			break;
	}
	return true;
}

/* The best one is the first whose call leads to the inner frame; of equal ones, the first of a chain. */
static bool is_better(const struct candidate *a, const struct candidate *b)
{
	return a->reach != b->reach ? a->reach > b->reach : a->chained && !b->chained;
}

/* False: there is none. */
static bool find_candidate(struct ss_unwind_context *ctx,
			   const struct ss_unwind_frame *frame, struct candidate *ret)
{
	const uint64_t word = ctx->arch->word;
	const uint64_t inner = ss_unwind_lookup_pc(ctx, frame);
	const struct ss_loaded_module *loaded = ss_context_find_module(ctx, inner);
	/* A function whose module is left out had CFI, and need not have a frame record. */
	const bool chains = !loaded || !loaded->skipped;
	struct candidate next = { .at = scan_start(ctx, frame) };
	uint64_t end = next.at + SCAN_WORDS * word;

	*ret = (struct candidate){};
	for (; next.at < end && ret->reach != SS_REACH_YES; next.at += word) {
		if (!find_return_address(ctx, &next.at, (int)((end - next.at) / word),
					 &next.pc))
			break;
		next.reach = ss_call_reaches(ctx, next.pc, inner);
		if (next.reach == SS_REACH_NO)
			continue;
		next.chained = chains && is_chained(ctx, &next);
		if (ret->reach == SS_REACH_NO)
			end = SS_MIN(end, next.at + BETTER_WORDS * word);
		if (is_better(&next, ret))
			*ret = next;
	}
	return ret->reach != SS_REACH_NO;
}

static bool scan(struct ss_unwind_context *ctx, struct ss_unwind_frame *frame)
{
	const uint64_t word = ctx->arch->word;
	const struct ss_arch *arch = ctx->arch;
	struct candidate found;
	uint64_t fp;

	if (!find_candidate(ctx, frame, &found))
		return follow_record(ctx, frame, 0) == SS_STEP_OK;
	const bool fp_known = ss_regs_get(&frame->regs, arch->fp, &fp);
	ss_arch_regs_blocked(arch, found.pc, found.at + word, NULL, &frame->regs);
	if (found.chained || fp_known)
		ss_regs_set(&frame->regs, arch->fp, found.chained ? found.fp : fp);
	return true;
}

/* Between the arguments of a program and their strings the kernel leaves a random gap, of
   which whole pages are never touched. */
static bool is_gap(const struct ss_unwind_context *ctx, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(ctx->capture, address);

	return area && strcmp(area->name, "[stack]") == 0 &&
	       ss_capture_thread_lacks(ctx->thread, address);
}

/* Whether the rest of the stack was copied and has no return address: the first frame of a
   program or thread without CFI (musl's). */
static bool is_outermost(struct ss_unwind_context *ctx,
			 const struct ss_unwind_frame *frame)
{
	const uint64_t word = ctx->arch->word;
	uint64_t missing = ctx->missing;
	uint64_t at = scan_start(ctx, frame);
	uint64_t pc;

	ctx->missing = 0;
	bool found = find_return_address(ctx, &at, END_WORDS, &pc);
	while (!found && is_gap(ctx, at)) {
		at += word;
		found = find_return_address(ctx, &at, END_WORDS, &pc);
	}
	bool outermost = ss_context_is_code(ctx, ss_regs_pc(ctx->arch, &frame->regs)) &&
			 !found && ctx->missing == at && !ss_context_was_truncated(ctx) &&
			 !ss_capture_thread_lacks(ctx->thread, at);
	ctx->missing = missing; /* the search is not the reason why the stack ends */
	return outermost;
}

/*
 * A frame pointer of zero means the outermost frame (psABI 3.4.1). But it is also zero
 * in a program that uses no frame pointers, except for a few functions of its
 * libraries, which save it as it is.
 */
static enum ss_step step_scan(void *state, struct ss_unwind_context *ctx,
			      struct ss_unwind_frame *frame)
{
	bool linked = frame->links > 0;
	uint64_t fp;
	bool zero = frame->call && ss_regs_get(&frame->regs, ctx->arch->fp, &fp) &&
		    fp == 0;

	(void)state;
	if (!(zero && linked) && scan(ctx, frame))
		return SS_STEP_OK;
	if (!zero && !(frame->call && !linked && is_outermost(ctx, frame)))
		return SS_STEP_SKIP;
	return SS_STEP_ROOT;
}

const struct ss_unwinder ss_unwinder_scan = {
	.name = "stack scan",
	.source = SS_FROM_RETURN_ADDRESS,
	.searches = true,
	.step = step_scan,
};
