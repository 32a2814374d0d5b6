/* Unwinding by the tables of Go's runtime. */
#include "unwind/cfi_apply.h"
#include "unwind/go.h"

/* Whether a frame can return to pc: goroutines return to goexit(), which has not called
   them. */
static bool is_return_address(struct ss_unwind_context *ctx, uint64_t pc)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(ctx, pc);

	return ss_context_is_return_address(ctx, pc) ||
	       (loaded && loaded->image && !loaded->skipped &&
		ss_go_is_root(loaded->image, pc - loaded->bias));
}

/* If the row does not lead to a call, or to a fault, which looks like a call of sigpanic(), the
   function has switched to another stack. */
static enum ss_step step(void *state, struct ss_unwind_context *ctx,
			 struct ss_unwind_frame *frame)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	const struct ss_loaded_module *loaded = ss_context_find_module(ctx, pc);
	struct ss_unwind_frame caller = *frame;
	struct ss_cfi_row row;

	(void)state;
	if (!loaded || !loaded->image || loaded->skipped ||
	    !ss_go_row_make(loaded->image, pc - loaded->bias, &row) ||
	    ss_cfi_row_apply(&row, ctx, &caller) != SS_STEP_OK)
		return SS_STEP_SKIP;
	uint64_t caller_pc = ss_regs_pc(ctx->arch, &caller.regs);
	if (!is_return_address(ctx, caller_pc) &&
	    !(ss_go_is_sigpanic(loaded->image, pc - loaded->bias) &&
	      ss_context_is_code(ctx, caller_pc)))
		return SS_STEP_SKIP;
	*frame = caller;
	return SS_STEP_OK;
}

const struct ss_unwinder ss_unwinder_go = {
	.name = "Go",
	.source = SS_FROM_CFI,
	.step = step,
};
