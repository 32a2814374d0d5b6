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

/* After a call through a bad pointer nothing has been pushed but the return address. */
static bool step_bad_pointer(struct ss_view *view, const struct ss_dwarf_frame *frame,
			     struct ss_dwarf_frame *ret)
{
	uint64_t pc;

	if (ss_view_is_code(view, frame->pc) ||
	    !ss_view_read_word(view, frame->sp, &pc) || !is_return_address(view, pc))
		return false;
	*ret = (struct ss_dwarf_frame){ .pc = pc,
					.sp = frame->sp + WORD,
					.fp = frame->fp,
					.fp_known = frame->fp_known };
	return true;
}

/* The saved frame pointer and the return address above it, System V psABI 3.2.2. */
static bool step_frame_pointer(struct ss_view *view, const struct ss_dwarf_frame *frame,
			       struct ss_dwarf_frame *ret)
{
	uint64_t fp;
	uint64_t pc;

	if (!frame->fp_known || frame->fp < frame->sp || frame->fp % WORD != 0 ||
	    !ss_view_read_word(view, frame->fp, &fp) ||
	    !ss_view_read_word(view, frame->fp + WORD, &pc))
		return false;
	if (pc != 0 && !is_return_address(view, pc))
		return false;
	*ret = (struct ss_dwarf_frame){
		.pc = pc, .sp = frame->fp + 2 * WORD, .fp = fp, .fp_known = true
	};
	return true;
}

static bool step_scan(struct ss_view *view, const struct ss_dwarf_frame *frame,
		      struct ss_dwarf_frame *ret)
{
	uint64_t at = (frame->sp + WORD - 1) & ~(uint64_t)(WORD - 1);

	for (int i = 0; i < SCAN_WORDS; i++, at += WORD) {
		uint64_t pc;
		if (!ss_view_read_word(view, at, &pc))
			return false;
		if (!is_return_address(view, pc))
			continue;
		*ret = (struct ss_dwarf_frame){ .pc = pc,
						.sp = at + WORD,
						.fp = frame->fp,
						.fp_known = frame->fp_known };
		return true;
	}
	return false;
}

bool ss_fallback_step(struct ss_view *view, const struct ss_dwarf_frame *frame,
		      bool innermost, struct ss_dwarf_frame *ret,
		      enum ss_frame_source *source, enum ss_end *end)
{
	*end = SS_END_NO_UNWIND_INFO;
	if (innermost && step_bad_pointer(view, frame, ret)) {
		*source = SS_FROM_RETURN_ADDRESS;
		return true;
	}
	if (step_frame_pointer(view, frame, ret)) {
		*source = SS_FROM_FRAME_POINTER;
		*end = SS_END_ROOT;
		return ret->pc != 0;
	}
	/* The outermost frame pointer is zero (psABI 3.4.1). */
	if (!innermost && frame->fp_known && frame->fp == 0) {
		*end = SS_END_ROOT;
		return false;
	}
	*source = SS_FROM_RETURN_ADDRESS;
	return step_scan(view, frame, ret);
}
