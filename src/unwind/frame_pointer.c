/*
 * Frame records: the frame pointer points to the caller's, with the return address above
 * (System V psABI 3.2.2, AAPCS64 6.4.6). All other registers are lost.
 */
#include "unwind/unwinder.h"

enum { WORD = SS_REG_WORD };

static enum ss_step step(void *state, struct ss_unwind_context *ctx,
			 struct ss_unwind_frame *frame)
{
	const struct ss_arch *arch = ctx->arch;
	struct ss_regs *regs = &frame->regs;
	uint64_t fp;
	uint64_t outer;
	uint64_t pc;

	(void)state;
	if (!ss_regs_get(regs, arch->fp, &fp) || fp < ss_regs_sp(arch, regs) ||
	    fp % WORD != 0 || !ss_context_read_word(ctx, fp, &outer) ||
	    !ss_context_read_word(ctx, fp + WORD, &pc))
		return SS_STEP_SKIP;
	if (pc == 0)
		return SS_STEP_ROOT;
	pc = ss_context_strip(ctx, pc);
	bool called = ss_context_is_return_address(ctx, pc);
	/* The first frame of a stack may return to code that has called nothing, as in
	   a goroutine. */
	bool first = !called && outer == 0 && ss_context_is_code(ctx, pc);
	if (!first && !called)
		return SS_STEP_SKIP;
	ss_arch_regs_blocked(arch, pc, fp + 2 * WORD, NULL, regs);
	ss_regs_set(regs, arch->fp, outer);
	if (!arch->fp_gives_sp)
		ss_regs_forget(regs, arch->sp);
	frame->links += first || outer != 0;
	return SS_STEP_OK;
}

const struct ss_unwinder ss_unwinder_frame_pointer = {
	.name = "frame pointer",
	.source = SS_FROM_FRAME_POINTER,
	.step = step,
};
