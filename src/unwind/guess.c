#include "unwind/guess.h"

#include "unwind/fallback.h"

enum {
	WORD = 8,
	WORDS_MAX = 1 << 13, /* of one frame */
	FRAMES = 3,	     /* that must follow, or the end of the stack */
};

/* Whether it is that function which the call before pc has called. */
static bool has_called(struct ss_view *view, uint64_t pc, uint64_t function)
{
	uint8_t code[SS_CALL_MAX];
	uint64_t callee;

	if (!ss_fallback_is_return_address(view, pc))
		return false;
	size_t n = ss_view_read_code(view, pc - sizeof(code), code, sizeof(code));
	return ss_arch_call_target(code, n, pc, &callee) && callee == function;
}

static bool leads_on(struct ss_rows *rows, struct ss_view *view, struct ss_regs regs)
{
	for (unsigned i = 0; i < FRAMES; i++) {
		enum ss_step result = ss_rows_step(rows, view, &regs, true);
		if (result != SS_STEP_OK)
			return result == SS_STEP_ROOT;
		if (!ss_fallback_is_return_address(view, ss_regs_pc(&regs)))
			return false;
	}
	return true;
}

/* Whether frames follow if the frame pointer is that; then it is set. */
static bool try_place(struct ss_rows *rows, struct ss_view *view, struct ss_regs *regs,
		      bool call, uint64_t place)
{
	struct ss_regs guess = *regs;
	uint64_t pc;

	ss_regs_set(&guess, ss_arch.fp, place);
	if (!ss_view_read_word(view, place + WORD, &pc) ||
	    !ss_fallback_is_return_address(view, pc) ||
	    ss_rows_step(rows, view, &guess, call) != SS_STEP_OK ||
	    ss_regs_pc(&guess) != pc || !leads_on(rows, view, guess))
		return false;
	ss_regs_set(regs, ss_arch.fp, place);
	return true;
}

bool ss_guess_frame_pointer(struct ss_rows *rows, struct ss_view *view,
			    struct ss_regs *regs, bool call)
{
	uint64_t function = ss_view_find_function(view, ss_regs_pc(regs) - call);
	uint64_t sp = ss_regs_sp(regs);
	uint64_t at = (sp + WORD - 1) & ~(uint64_t)(WORD - 1);
	uint8_t code[SS_PROLOGUE_MAX];
	uint64_t size;
	uint64_t pc;

	if (function == 0)
		return false;
	size_t n = ss_view_read_code(view, function, code, sizeof(code));
	if (ss_arch_frame_size(code, n, &size) &&
	    try_place(rows, view, regs, call, sp + size))
		return true;
	for (unsigned i = 0; i < WORDS_MAX; i++, at += WORD) {
		if (!ss_view_read_word(view, at + WORD, &pc))
			return false;
		if (has_called(view, pc, function) &&
		    try_place(rows, view, regs, call, at))
			return true;
	}
	return false;
}
