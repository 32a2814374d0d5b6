#include "unwind/cfi_apply.h"

static enum ss_step find_return_address(const struct ss_cfi_row *row,
					struct ss_unwind_context *ctx,
					const struct ss_unwind_frame *frame, uint64_t cfa,
					uint64_t *ret)
{
	uint64_t at = cfa + (uint64_t)(int64_t)row->return_offset;

	if (row->return_rule == SS_RETURN_SAVED) {
		if (!ss_context_read_word(ctx, at, ret))
			return SS_STEP_MISSING;
	} else if (!ss_regs_get(&frame->regs, ctx->arch->link, ret)) {
		/* A function that has made a call must have saved the return address
		   before. */
		return frame->call && !frame->signal ? SS_STEP_BAD : SS_STEP_REGISTER;
	}
	if (row->return_signed)
		*ret &= ~ctx->arch->pac_mask;
	return *ret ? SS_STEP_OK : SS_STEP_ROOT;
}

static void restore_registers(const struct ss_cfi_row *row, struct ss_unwind_context *ctx,
			      uint64_t cfa, struct ss_regs *regs)
{
	uint64_t fp = 0;
	bool fp_known = ss_regs_get(regs, ctx->arch->fp, &fp);

	regs->valid &= ~row->undefined;
	for (size_t i = 0; i < row->saved_count; i++) {
		const struct ss_row_saved *saved = &row->saved[i];
		uint64_t base = saved->from_fp ? fp : cfa;
		uint64_t value;
		if ((saved->from_fp && !fp_known) ||
		    !ss_context_read_word(ctx, base + (uint64_t)(int64_t)saved->offset,
					  &value))
			ss_regs_forget(regs, saved->reg);
		else
			ss_regs_set(regs, saved->reg, value);
	}
}

enum ss_step ss_cfi_row_apply(const struct ss_cfi_row *row, struct ss_unwind_context *ctx,
			      struct ss_unwind_frame *frame)
{
	const struct ss_arch *arch = ctx->arch;
	uint64_t cfa;
	uint64_t pc;

	if (row->return_rule == SS_RETURN_UNDEFINED)
		return SS_STEP_ROOT;
	/* If a frame pointer led to this frame, it may lead further. */
	if (!ss_regs_get(&frame->regs, row->cfa_register, &cfa))
		return row->cfa_register == arch->sp ? SS_STEP_NO_INFO : SS_STEP_REGISTER;
	cfa += (uint64_t)(int64_t)row->cfa_offset;
	if (row->cfa_saved && !ss_context_read_word(ctx, cfa, &cfa))
		return SS_STEP_MISSING;
	enum ss_step result = find_return_address(row, ctx, frame, cfa, &pc);
	if (result != SS_STEP_OK)
		return result;
	restore_registers(row, ctx, cfa, &frame->regs);
	if (arch->link != SS_REG_NONE) /* the call has overwritten it */
		ss_regs_forget(&frame->regs, arch->link);
	ss_regs_set(&frame->regs, arch->pc, pc);
	ss_regs_set(&frame->regs, arch->sp, cfa);
	return SS_STEP_OK;
}
