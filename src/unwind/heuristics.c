/*
 * Ways to find a caller without unwind information: a call through a bad pointer, a
 * leaf function, and last a plausible return address on the stack. Each frame found in
 * these ways is marked as heuristic.
 */
#include <string.h>

#include "unwind/unwinder.h"

enum {
	WORD = SS_REG_WORD,
	/* How far to search for a return address: frames with neither CFI nor a frame
	   pointer are small (hand-written assembly, musl's system call wrappers). */
	SCAN_WORDS = 256,
	/* How far to search before concluding that there is none: the arguments and
	   environment of a program may follow. */
	END_WORDS = 1 << 18,
	/* Leaf functions without CFI are not longer. */
	LEAF_MAX = 64 << 10,
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
		ss_regs_set(&frame->regs, arch->sp, sp + WORD);
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
	const struct ss_arch *arch = ctx->arch;
	uint64_t saved = 0;
	uint64_t link;
	uint64_t fp;

	(void)state;
	if (frame->call || arch->link == SS_REG_NONE ||
	    !ss_regs_get(&frame->regs, arch->link, &link))
		return SS_STEP_SKIP;
	if (ss_regs_get(&frame->regs, arch->fp, &fp))
		(void)ss_context_read_word(ctx, fp + WORD, &saved); /* or none */
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

	for (int i = 0; i < words; i++, *at += WORD) {
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
	uint64_t sp = ss_regs_sp(ctx->arch, &frame->regs);

	return (sp + WORD - 1) & ~(uint64_t)(WORD - 1);
}

static bool scan(struct ss_unwind_context *ctx, struct ss_unwind_frame *frame)
{
	const struct ss_arch *arch = ctx->arch;
	uint64_t at = scan_start(ctx, frame);
	uint64_t pc;
	uint64_t fp;

	if (!find_return_address(ctx, &at, SCAN_WORDS, &pc))
		return false;
	bool fp_known = ss_regs_get(&frame->regs, arch->fp, &fp);
	ss_arch_regs_blocked(arch, pc, at + WORD, NULL, &frame->regs);
	if (fp_known)
		ss_regs_set(&frame->regs, arch->fp, fp);
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
	uint64_t missing = ctx->missing;
	uint64_t at = scan_start(ctx, frame);
	uint64_t pc;

	ctx->missing = 0;
	bool found = find_return_address(ctx, &at, END_WORDS, &pc);
	while (!found && is_gap(ctx, at)) {
		at += WORD;
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
	.step = step_scan,
};
