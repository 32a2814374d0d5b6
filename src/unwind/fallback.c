#include "unwind/fallback.h"

enum {
	WORD = 8,
	/* How far up a return address is looked for: frames without CFI and frame
	   pointer are small (hand-written assembly, musl's system call wrappers). */
	SCAN_WORDS = 256,
	/* And so far that there is none: arguments and environment of a program. */
	END_WORDS = 1 << 18,
};

bool ss_fallback_is_return_address(struct ss_view *view, uint64_t address)
{
	uint8_t code[SS_CALL_MAX];

	if (address < sizeof(code) || !ss_view_is_code(view, address) ||
	    !ss_view_is_code(view, address - 1))
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
	    !ss_view_read_word(view, sp, &pc) || !ss_fallback_is_return_address(view, pc))
		return false;
	ss_regs_set(regs, ss_arch.pc, pc);
	ss_regs_set(regs, ss_arch.sp, sp + WORD);
	return true;
}

/* The saved frame pointer and the return address above it, System V psABI 3.2.2. The
   other registers are lost. */
static bool step_frame_pointer(struct ss_view *view, struct ss_regs *regs,
			       unsigned *links, bool *root)
{
	uint64_t fp;
	uint64_t outer;
	uint64_t pc;

	if (!ss_regs_get(regs, ss_arch.fp, &fp) || fp < ss_regs_sp(regs) ||
	    fp % WORD != 0 || !ss_view_read_word(view, fp, &outer) ||
	    !ss_view_read_word(view, fp + WORD, &pc))
		return false;
	*root = pc == 0;
	bool called = ss_fallback_is_return_address(view, pc);
	/* Below the first frame of a stack there may be code that has called nobody, as
	   in goroutines. */
	bool first = !called && outer == 0 && ss_view_is_code(view, pc);
	if (!*root && !first && !called)
		return false;
	if (!*root) {
		ss_arch_regs_partial(pc, fp + 2 * WORD, regs);
		ss_regs_set(regs, ss_arch.fp, outer);
		*links += first || outer != 0;
	}
	return true;
}

/* The next plausible return address at or above *at, among the next words. */
static bool find_return_address(struct ss_view *view, uint64_t *at, int words,
				uint64_t *ret)
{
	for (int i = 0; i < words; i++, *at += WORD) {
		if (!ss_view_read_word(view, *at, ret))
			return false;
		if (ss_fallback_is_return_address(view, *ret))
			return true;
	}
	return false;
}

static uint64_t scan_start(const struct ss_regs *regs)
{
	return (ss_regs_sp(regs) + WORD - 1) & ~(uint64_t)(WORD - 1);
}

static bool step_scan(struct ss_view *view, struct ss_regs *regs)
{
	uint64_t at = scan_start(regs);
	uint64_t pc;
	uint64_t fp;

	if (!find_return_address(view, &at, SCAN_WORDS, &pc))
		return false;
	bool fp_known = ss_regs_get(regs, ss_arch.fp, &fp);
	ss_arch_regs_partial(pc, at + WORD, regs);
	if (fp_known)
		ss_regs_set(regs, ss_arch.fp, fp);
	return true;
}

/* Whether all the rest of a stack was copied and there is no return address in it: the
   first frame of a program or thread that has no CFI to say so (musl's). */
static bool is_outermost(struct ss_view *view, const struct ss_regs *regs)
{
	uint64_t missing = view->missing;
	uint64_t at = scan_start(regs);
	uint64_t pc;

	view->missing = 0;
	bool outermost = ss_view_is_code(view, ss_regs_pc(regs)) &&
			 !find_return_address(view, &at, END_WORDS, &pc) &&
			 view->missing == at && !ss_view_was_cut(view);
	view->missing = missing; /* nobody needed what was looked for */
	return outermost;
}

bool ss_fallback_step(struct ss_view *view, struct ss_regs *regs, bool innermost,
		      unsigned *links, enum ss_frame_source *source, enum ss_end *end)
{
	bool chained = *links > 0;
	bool root = false;
	uint64_t fp;

	*end = SS_END_NO_UNWIND_INFO;
	*source = SS_FROM_RETURN_ADDRESS;
	if (innermost && step_bad_pointer(view, regs))
		return true;
	if (step_frame_pointer(view, regs, links, &root)) {
		*source = SS_FROM_FRAME_POINTER;
		*end = SS_END_ROOT;
		return !root;
	}
	/* The outermost frame pointer is zero (psABI 3.4.1), but so it is where a program
	   uses none at all, and a few functions of its libraries save what they find. */
	*links = 0;
	bool zero = !innermost && ss_regs_get(regs, ss_arch.fp, &fp) && fp == 0;
	if (!(zero && chained) && step_scan(view, regs))
		return true;
	if (zero || (!innermost && !chained && is_outermost(view, regs)))
		*end = SS_END_ROOT;
	return false;
}
