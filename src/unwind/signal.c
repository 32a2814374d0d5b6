/*
 * The frame of a signal handler: the kernel has saved the interrupted registers in it, at
 * fixed offsets from the stack pointer of the signal trampoline.
 */
#include "unwind/unwinder.h"

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
static bool find_base(struct ss_unwind_context *ctx, const struct ss_regs *regs,
		      uint64_t *ret)
{
	const struct ss_arch *arch = ctx->arch;
	const uint16_t *offsets = arch->sigframe.regs;
	uint64_t at = ss_regs_sp(arch, regs);
	uint64_t record;
	uint64_t fp;
	uint64_t link;

	if (ss_regs_get(regs, arch->sp, ret))
		return true;
	if (arch->link == SS_REG_NONE || !ss_regs_get(regs, arch->fp, &record) ||
	    !ss_context_read_word(ctx, record, &fp) ||
	    !ss_context_read_word(ctx, record + SS_REG_WORD, &link))
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

static enum ss_step step(void *state, struct ss_unwind_context *ctx,
			 struct ss_unwind_frame *frame)
{
	const struct ss_arch *arch = ctx->arch;
	struct ss_regs regs = {};
	uint64_t base;
	uint64_t value;

	(void)state;
	if (!frame->signal)
		return SS_STEP_SKIP;
	if (!find_base(ctx, &frame->regs, &base))
		return SS_STEP_REGISTER;
	for (unsigned reg = 0; reg < arch->reg_count; reg++) {
		if (arch->sigframe.regs[reg] == 0)
			continue;
		if (!ss_context_read_word(ctx, base + arch->sigframe.regs[reg], &value))
			return SS_STEP_MISSING;
		ss_regs_set(&regs, reg, value);
	}
	frame->regs = regs;
	return SS_STEP_OK;
}

const struct ss_unwinder ss_unwinder_signal = {
	.name = "signal frame",
	.source = SS_FROM_CFI,
	.step = step,
};
