#include "unwind/fallback.h"

enum {
	WORD = 8,
	/* How far up a return address is looked for: frames without CFI and frame
	   pointer are small (hand-written assembly, musl's system call wrappers). */
	SCAN_WORDS = 256,
};

/* A return address points into code, behind a call. */
static bool is_return_address(struct ss_view *view, uint64_t address)
{
	uint8_t code[SS_CALL_MAX];

	if (!ss_view_is_code(view, address) || address < sizeof(code))
		return false;
	size_t n = ss_view_read_code(view, address - sizeof(code), code, sizeof(code));
	/* Code that no file backs (a JIT's) cannot be read: that it is code must do. */
	return n == 0 || (n == sizeof(code) && ss_arch_is_call(code, n));
}

/* After a call through a bad pointer nothing has been pushed but the return address,
   and no register has changed. */
static bool step_bad_pointer(struct ss_view *view, struct ss_regs *regs)
{
	uint64_t sp = ss_regs_sp(regs);
	uint64_t pc;

	if (ss_view_is_code(view, ss_regs_pc(regs)) ||
	    !ss_view_read_word(view, sp, &pc) || !is_return_address(view, pc))
		return false;
	ss_regs_set(regs, ss_arch.pc, pc);
	ss_regs_set(regs, ss_arch.sp, sp + WORD);
	return true;
}

/* The saved frame pointer and the return address above it, System V psABI 3.2.2. The
   other registers are lost. */
static bool step_frame_pointer(struct ss_view *view, struct ss_regs *regs, bool *root)
{
	uint64_t fp;
	uint64_t outer;
	uint64_t pc;

	if (!ss_regs_get(regs, ss_arch.fp, &fp) || fp < ss_regs_sp(regs) ||
	    fp % WORD != 0 || !ss_view_read_word(view, fp, &outer) ||
	    !ss_view_read_word(view, fp + WORD, &pc))
		return false;
	*root = pc == 0;
	if (!*root && !is_return_address(view, pc))
		return false;
	if (!*root) {
		ss_arch_regs_partial(pc, fp + 2 * WORD, regs);
		ss_regs_set(regs, ss_arch.fp, outer);
	}
	return true;
}

static bool step_scan(struct ss_view *view, struct ss_regs *regs)
{
	uint64_t at = (ss_regs_sp(regs) + WORD - 1) & ~(uint64_t)(WORD - 1);

	for (int i = 0; i < SCAN_WORDS; i++, at += WORD) {
		uint64_t pc;
		uint64_t fp;
		if (!ss_view_read_word(view, at, &pc))
			return false;
		if (!is_return_address(view, pc))
			continue;
		bool fp_known = ss_regs_get(regs, ss_arch.fp, &fp);
		ss_arch_regs_partial(pc, at + WORD, regs);
		if (fp_known)
			ss_regs_set(regs, ss_arch.fp, fp);
		return true;
	}
	return false;
}

bool ss_fallback_step(struct ss_view *view, struct ss_regs *regs, bool innermost,
		      enum ss_frame_source *source, enum ss_end *end)
{
	bool root = false;
	uint64_t fp;

	bool chained = *source == SS_FROM_FRAME_POINTER;

	*end = SS_END_NO_UNWIND_INFO;
	*source = SS_FROM_RETURN_ADDRESS;
	if (innermost && step_bad_pointer(view, regs))
		return true;
	if (step_frame_pointer(view, regs, &root)) {
		*source = SS_FROM_FRAME_POINTER;
		*end = SS_END_ROOT;
		return !root;
	}
	/* The outermost frame pointer is zero (psABI 3.4.1), but so it is where a program
	   uses none at all. */
	bool zero = !innermost && ss_regs_get(regs, ss_arch.fp, &fp) && fp == 0;
	if (!(zero && chained) && step_scan(view, regs))
		return true;
	if (zero)
		*end = SS_END_ROOT;
	return false;
}
