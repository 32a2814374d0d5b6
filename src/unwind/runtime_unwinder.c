/* Unwinding of code that a runtime has made, by what it knows of that code. */
#include "unwind/unwinder.h"

static enum ss_step step(void *state, struct ss_unwind_context *ctx,
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

const struct ss_unwinder ss_unwinder_runtime = {
	.name = "runtime",
	.source = SS_FROM_CFI,
	.step = step,
};
