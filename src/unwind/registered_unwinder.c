/* Unwinding by the tables that JIT compilers have registered. */
#include "elf/cfi_entry.h"
#include "unwind/cfi_apply.h"

static enum ss_step step(void *state, struct ss_unwind_context *ctx,
			 struct ss_unwind_frame *frame)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	struct ss_cfi_entry entry;
	struct ss_cfi_row row;

	(void)state;
	if (ctx->registered.sections.count == 0 || ss_context_find_module(ctx, pc))
		return SS_STEP_SKIP;
	for (size_t i = 0; i < ctx->registered.sections.count; i++) {
		enum ss_cfi_found found = ss_cfi_entry_find_in_memory(
			&ctx->stacks.memory, ctx->registered.sections.items[i], pc,
			&entry);
		if (found == SS_CFI_FOUND && ss_cfi_row_make(ctx->arch, &entry, pc, &row))
			return ss_cfi_row_apply(&row, ctx, frame);
	}
	return SS_STEP_SKIP;
}

const struct ss_unwinder ss_unwinder_registered = {
	.name = "registered CFI",
	.source = SS_FROM_CFI,
	.step = step,
};
