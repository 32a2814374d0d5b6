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
#include "base/hash.h"
#include "unwind/cfi.h"

enum {
	WORD = SS_REG_WORD,
	WORDS_MAX = 1 << 13, /* of one frame */
	FRAMES = 3,	     /* that must follow, or the end of the stack */
	FRAMES_KNOWN = 8,    /* likewise */
	/* The first move of the stack pointer may make room for the arguments of the first call,
	   too, which it then releases. */
	RELEASED_MAX = 2 * WORD,
	ARGUMENTS_MAX = 32 * WORD,
	FUNCTION_MAX = 1 << 16, /* bytes of code that are searched */
	CHUNK = 1024,
};

/* Whether the call before pc calls that function. */
static bool calls(struct ss_unwind_context *ctx, uint64_t pc, uint64_t function)
{
	uint8_t code[SS_CALL_MAX];
	uint64_t callee;

	if (!ss_context_is_return_address(ctx, pc))
		return false;
	size_t n = ss_context_read_code(ctx, pc - sizeof(code), code, sizeof(code));
	return ctx->arch->call_target(code, n, pc, &callee) && callee == function;
}

static enum ss_step step_by_cfi(struct ss_unwind_context *ctx,
				struct ss_unwind_frame *frame)
{
	return ss_unwinder_cfi.step(NULL, ctx, frame);
}

/* Whether the call before pc enters that function, unless it does not say which one it enters. */
static bool may_call(struct ss_unwind_context *ctx, uint64_t pc, uint64_t function)
{
	uint8_t code[SS_CALL_MAX];
	uint64_t callee;

	if (!ss_context_is_return_address(ctx, pc))
		return false;
	size_t n = ss_context_read_code(ctx, pc - sizeof(code), code, sizeof(code));
	return !ctx->arch->call_target(code, n, pc, &callee) || callee == function;
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
		if (!may_call(ctx, ss_regs_pc(ctx->arch, &frame.regs), function))
			return false;
	}
	return true;
}

/* Steps to the caller if more frames follow with this frame pointer. */
static bool try_frame_pointer(struct ss_unwind_context *ctx,
			      struct ss_unwind_frame *frame, uint64_t fp)
{
	struct ss_unwind_frame caller = *frame;
	uint64_t pc;

	ss_regs_set(&caller.regs, ctx->arch->fp, fp);
	if (!ss_context_read_word(ctx, fp + WORD, &pc) ||
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
	return count <= 1 && *ret <= (uint64_t)WORDS_MAX * WORD;
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
	struct ss_cfi_row row;

	*ret = 0;
	if (!ss_cfi_find_row(ctx, frame, &row) || row.cfa_saved ||
	    row.cfa_register != ctx->arch->fp || row.cfa_offset != 2 * WORD)
		return false;
	for (size_t i = 0; i < row.saved_count; i++) {
		if (row.saved[i].from_fp || row.saved[i].offset > -2 * WORD)
			return false;
		*ret = SS_MAX(*ret, (uint64_t)(-(int64_t)row.saved[i].offset - 2 * WORD));
	}
	return *ret <= (uint64_t)SS_ROW_SAVED_MAX * WORD;
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
	const uint64_t sp = ss_regs_sp(ctx->arch, &frame->regs);
	const uint64_t last = sp + size;
	const uint64_t pushed = SS_MIN(size, (uint64_t)ARGUMENTS_MAX);
	struct ss_unwind_frame caller;
	bool found = false;

	for (uint64_t at = sp; at <= last || at < last + (found ? ARGUMENTS_MAX : pushed);
	     at += WORD) {
		caller = *frame;
		if (!try_frame_pointer(ctx, &caller, at))
			continue;
		uint64_t pc = ss_regs_pc(ctx->arch, &caller.regs);
		bool direct = calls(ctx, pc, function);
		bool fits = at <= last ? may_call(ctx, pc, function) : direct;
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
	const uint64_t sp = ss_regs_sp(ctx->arch, &frame->regs);
	struct ss_unwind_frame caller;
	uint64_t start;
	uint64_t end;
	uint64_t moved;
	uint64_t pushed;

	(void)state;
	if (!ctx->arch->find_moves || sp % WORD != 0 ||
	    !find_pushed(ctx, frame, &pushed) ||
	    !ss_context_find_extent(ctx, ss_unwind_lookup_pc(ctx, frame), &start, &end) ||
	    !find_move(ctx, start, end, &moved))
		return SS_STEP_SKIP;
	uint64_t size = moved + pushed;
	if (sp > UINT64_MAX - size - ARGUMENTS_MAX) /* no stack ends there */
		return SS_STEP_SKIP;
	uint64_t first = sp + size - SS_MIN(moved, (uint64_t)RELEASED_MAX);
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

static enum ss_step step(void *state, struct ss_unwind_context *ctx,
			 struct ss_unwind_frame *frame)
{
	const struct ss_arch *arch = ctx->arch;
	uint64_t function =
		ss_context_find_function(ctx, ss_unwind_lookup_pc(ctx, frame));
	uint64_t sp = ss_regs_sp(arch, &frame->regs);
	uint64_t at = (sp + WORD - 1) & ~(uint64_t)(WORD - 1);
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
	for (unsigned i = 0; i < WORDS_MAX; i++, at += WORD) {
		if (!ss_context_read_word(ctx, at + WORD, &pc))
			break;
		if (calls(ctx, pc, function) && try_frame_pointer(ctx, frame, at))
			return SS_STEP_OK;
	}
	return SS_STEP_SKIP;
}

const struct ss_unwinder ss_unwinder_missing_fp = {
	.name = "CFI with a frame pointer that was searched for",
	.source = SS_FROM_RETURN_ADDRESS,
	.step = step,
};
