/*
 * The frame pointer of a thread that was not stopped. The kernel does not report it,
 * and frames addressed through it cannot be unwound without it. Usually the function's
 * prologue shows how far above the stack pointer it is; otherwise it is the first place
 * above the stack pointer that is followed by the return address of a call of this
 * function. A few more frames must follow from there, each entered by a call.
 */
#include "unwind/cfi.h"

enum {
	WORD = SS_REG_WORD,
	WORDS_MAX = 1 << 13, /* of one frame */
	FRAMES = 3,	     /* that must follow, or the end of the stack */
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
