#include "unwind/cfi.h"

#include "unwind/cfi_apply.h"
#include "unwind/cfi_rows.h"

/* The module at pc if it has CFI that may be read, or NULL. */
static const struct ss_loaded_module *find_module(struct ss_unwind_context *ctx,
						  uint64_t pc)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(ctx, pc);

	return loaded && loaded->image && !loaded->skipped ? loaded : NULL;
}

static enum ss_cfi_found find_row(struct ss_unwind_context *ctx,
				  const struct ss_loaded_module *loaded, uint64_t pc,
				  const struct ss_cfi_row **ret)
{
	return ss_cfi_rows_find(ctx->images->rows, loaded->image, &loaded->table,
				pc - loaded->bias, ret);
}

bool ss_cfi_find_row(struct ss_unwind_context *ctx, const struct ss_unwind_frame *frame,
		     struct ss_cfi_row *ret)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	const struct ss_loaded_module *loaded = find_module(ctx, pc);
	const struct ss_cfi_row *row;

	if (!loaded || find_row(ctx, loaded, pc, &row) != SS_CFI_FOUND)
		return false;
	*ret = *row;
	return true;
}

uint64_t ss_cfi_find_function(struct ss_unwind_context *ctx,
			      const struct ss_unwind_frame *frame)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	const struct ss_loaded_module *loaded = find_module(ctx, pc);
	uint64_t start = loaded ? ss_cfi_rows_find_function(ctx->images->rows,
							    loaded->image, &loaded->table,
							    pc - loaded->bias) :
				  0;

	return start ? start + loaded->bias : 0;
}

static enum ss_step step(void *state, struct ss_unwind_context *ctx,
			 struct ss_unwind_frame *frame)
{
	uint64_t pc = ss_unwind_lookup_pc(ctx, frame);
	const struct ss_loaded_module *loaded = find_module(ctx, pc);
	const struct ss_cfi_row *row;

	(void)state;
	if (!loaded)
		return SS_STEP_NO_INFO;
	switch (find_row(ctx, loaded, pc, &row)) {
	case SS_CFI_FOUND:
		return ss_cfi_row_apply(row, ctx, frame);
	case SS_CFI_NONE:
		return SS_STEP_NO_INFO;
	default:
		return SS_STEP_COMPLEX;
	}
}

const struct ss_unwinder ss_unwinder_cfi = {
	.name = "CFI",
	.source = SS_FROM_CFI,
	.step = step,
};

bool ss_cfi_starts_at(struct ss_unwind_context *ctx, uint64_t pc)
{
	const struct ss_loaded_module *loaded = find_module(ctx, pc);
	const struct ss_cfi_row *row;

	return loaded && find_row(ctx, loaded, pc - 1, &row) == SS_CFI_NONE &&
	       find_row(ctx, loaded, pc, &row) != SS_CFI_NONE;
}
