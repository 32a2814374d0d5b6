#include "unwind/walk.h"

#include <string.h>
#include <sys/mman.h>

#include "unwind/fallback.h"
#include "unwind/guess.h"

enum {
	/* Guesses by scanning a stack may go wrong: so many in a row end it. */
	GUESSES_MAX = 16,
	/* Signal frames may lead inwards, from an alternate stack to the interrupted one;
	   made-up ones could do so in a circle. */
	INWARD_MAX = 64,
};

static bool is_sigreturn(struct ss_view *view, uint64_t pc)
{
	uint8_t code[SS_SIGRETURN_SIZE];
	size_t n = ss_view_read_code(view, pc, code, sizeof(code));

	return ss_arch_is_sigreturn(code, n);
}

/* Code that lies in no file was made by the process itself. */
static void place_in_area(struct ss_walk *walk, struct ss_frame *frame, uint64_t lookup,
			  const struct ss_area *area)
{
	bool jit = (area->prot & PROT_EXEC) && strcmp(area->name, "//anon") == 0;

	frame->area =
		ss_intern_string(walk->snapshot->strings, jit ? "[jit]" : area->name);
	frame->area_offset = frame->pc - area->start;
	frame->lookup_offset = lookup - area->start;
}

/* Appends a frame: relative to its module, and how it was found. NULL: no memory. */
static struct ss_frame *add_frame(struct ss_walk *walk, uint64_t pc,
				  enum ss_frame_source source, bool call, bool signal)
{
	struct ss_frame *frame = ss_vector_push(&walk->frames);
	uint64_t lookup = call && !signal ? pc - 1 : pc;

	if (!frame)
		return NULL;
	*frame = (struct ss_frame){
		.pc = pc, .module_index = -1, .source = source, .signal_frame = signal
	};
	struct ss_loaded *loaded = ss_view_find_module(&walk->view, lookup);
	if (loaded) {
		frame->module = &loaded->module->pub;
		frame->module_index = (int32_t)(loaded - walk->view.loaded);
		frame->offset = pc - loaded->bias;
		frame->lookup_offset = lookup - loaded->bias;
		return frame;
	}
	const struct ss_area *area = ss_capture_find_area(walk->view.capture, lookup);
	if (area)
		place_in_area(walk, frame, lookup, area);
	return frame;
}

static enum ss_end end_of_missing(const struct ss_walk *walk)
{
	return ss_view_was_cut(&walk->view) ? SS_END_LIMIT : SS_END_UNREADABLE;
}

static enum ss_end end_of_step(const struct ss_walk *walk, enum ss_step step)
{
	switch (step) {
	case SS_STEP_ROOT:
		return SS_END_ROOT;
	case SS_STEP_MISSING:
		return end_of_missing(walk);
	case SS_STEP_REGISTER:
		return SS_END_REGISTER;
	case SS_STEP_NO_INFO:
		return SS_END_NO_UNWIND_INFO;
	default:
		return SS_END_BAD_UNWIND_INFO;
	}
}

/* Where a walk is: the registers of a frame, and how its pc is to be understood. */
struct position {
	struct ss_regs regs;
	enum ss_frame_source source;
	bool call;    /* pc is a return address */
	bool signal;  /* pc is in the signal trampoline */
	bool newborn; /* the thread has not run yet */
};

/* Whether all that is known of the code at pc is that it is code. Then a frame pointer of
   zero does not say that there is no frame further out: it may be no frame pointer. */
static bool has_no_image(struct ss_walk *walk, uint64_t pc)
{
	const struct ss_loaded *loaded = ss_view_find_module(&walk->view, pc);

	return loaded && !loaded->image;
}

static bool step_without_cfi(struct ss_walk *walk, struct position *p)
{
	bool blind = has_no_image(walk, ss_regs_pc(&p->regs));

	/* C libraries have no CFI where their clone() returns twice: it cannot be right
	   for both. The new thread's stack is empty; nothing above it is to be scanned.
	 */
	if (p->newborn && !p->call) {
		walk->end = SS_END_ROOT;
		return false;
	}
	if (!ss_fallback_step(&walk->view, &p->regs, !p->call, &walk->links, &p->source,
			      &walk->end)) {
		if (walk->end == SS_END_ROOT && blind)
			walk->end = SS_END_NO_UNWIND_INFO;
		if (walk->end != SS_END_ROOT && ss_view_was_cut(&walk->view))
			walk->end = SS_END_LIMIT;
		return false;
	}
	walk->guesses += p->source == SS_FROM_RETURN_ADDRESS;
	walk->end = SS_END_NO_UNWIND_INFO;
	p->call = true;
	return walk->guesses <= GUESSES_MAX;
}

/*
 * Whether nobody has called what p's pc is said to return to: the first instruction of a
 * function, put below the first frame of a coroutine for its end (glibc's makecontext()).
 */
static bool is_made_up(struct ss_walk *walk, const struct position *p, uint64_t pc)
{
	return p->call && ss_rows_begins_at(walk->unwinder->rows, &walk->view, pc) &&
	       !ss_fallback_is_return_address(&walk->view, pc);
}

/* Goes one frame out. False: walk->end says why not. */
static bool step(struct ss_walk *walk, struct position *p)
{
	const struct ss_unwinder *unwinder = walk->unwinder;
	bool call = p->call && !p->signal;

	walk->view.missing = 0;
	enum ss_step result = ss_rows_step(unwinder->rows, &walk->view, &p->regs, call);
	bool guess = result == SS_STEP_REGISTER && walk->view.thread->fragile &&
		     ss_guess_frame_pointer(unwinder->rows, &walk->view, &p->regs, call);
	if (guess)
		result = ss_rows_step(unwinder->rows, &walk->view, &p->regs, call);
	if (result == SS_STEP_COMPLEX)
		result = ss_dwarf_step(unwinder->dwarf, &p->regs, call, p->signal);
	if (result == SS_STEP_NO_INFO)
		return step_without_cfi(walk, p);
	walk->end = end_of_step(walk, result);
	if (result != SS_STEP_OK)
		return false;
	p->source = guess ? SS_FROM_RETURN_ADDRESS : SS_FROM_CFI;
	walk->links = 0;
	p->call = !p->signal;
	return true;
}

/*
 * Whether a step from before to p led outwards. A leaf may have popped its return
 * address into a register, as vfork() does. The way from an alternate signal stack back
 * to the interrupted one may lead inwards, so often.
 */
static bool leads_outwards(struct ss_walk *walk, const struct position *p, uint64_t sp,
			   bool call, bool signal)
{
	uint64_t next = ss_regs_sp(&p->regs);

	if (next > sp || (next == sp && !call))
		return true;
	return signal && ++walk->inward <= INWARD_MAX;
}

/* Goes one frame out; looks at the one that is left, if its thread may hold a lock. */
static bool step_and_look(struct ss_walk *walk, struct position *p)
{
	if (!walk->held.looks)
		return step(walk, p);
	struct ss_regs regs = p->regs;
	bool call = p->call && !p->signal;
	bool more = step(walk, p);
	const struct ss_held_frame frame = { .regs = &regs,
					     .next = more ? &p->regs : NULL,
					     .number = walk->frames.count - 1,
					     .call = call };
	ss_held_look(&walk->held, walk->snapshot, &walk->view, &frame);
	return more;
}

static bool walk_frames(struct ss_walk *walk, struct position *p)
{
	for (;;) {
		uint64_t pc = ss_regs_pc(&p->regs);
		uint64_t sp = ss_regs_sp(&p->regs);
		bool call = p->call;
		bool signal = p->signal = is_sigreturn(&walk->view, pc);
		bool made_up = !signal && is_made_up(walk, p, pc);
		if (!add_frame(walk, pc, p->source, call && !made_up, signal))
			return false;
		if (walk->max_frames == 1 && walk->frames_reason) {
			walk->end = SS_END_FRAMES;
			return true;
		}
		if (made_up)
			walk->end = SS_END_ROOT;
		if (made_up || !step_and_look(walk, p))
			return true;
		if (!leads_outwards(walk, p, sp, call, signal)) {
			walk->end = SS_END_LOOP;
			return true;
		}
		if (walk->frames.count >= walk->max_frames) {
			walk->end = SS_END_FRAMES;
			return true;
		}
	}
}

/* False without memory. */
static bool walk_copy(struct ss_walk *walk, const struct ss_capture_thread *thread)
{
	struct position p = { .regs = thread->regs,
			      .source = SS_FROM_REGISTERS,
			      .newborn = thread->newborn };

	walk->view.thread = thread;
	ss_held_begin(&walk->held, thread);
	walk->guesses = walk->inward = walk->links = 0;
	return walk_frames(walk, &p);
}

static bool add_live_frames(struct ss_walk *walk, const struct ss_capture_thread *thread)
{
	bool call = false;

	for (size_t i = 0; i < thread->live_count; i++) {
		const struct ss_live_frame *live = &thread->live[i];
		enum ss_frame_source source = i ? SS_FROM_CFI : SS_FROM_REGISTERS;
		if (!add_frame(walk, live->pc, source, call, live->signal_frame))
			return false;
		call = !live->signal_frame;
	}
	walk->end = thread->live_end;
	return true;
}

/* What libunwind-ptrace found while the thread was stopped; or, where that did not get
   to the end, what the copy says if it leads as far: its reason says more. */
static bool take_live(struct ss_walk *walk, const struct ss_capture_thread *thread)
{
	bool whole = thread->live_end == SS_END_ROOT || thread->live_end == SS_END_FRAMES;
	size_t references = walk->snapshot->references.count;

	if (!whole && !walk_copy(walk, thread))
		return false;
	if (!whole &&
	    (walk->end == SS_END_ROOT || walk->frames.count >= thread->live_count))
		return true;
	walk->frames.count = 0;
	walk->snapshot->references.count = references; /* of other frames */
	return add_live_frames(walk, thread);
}

/* A thread whose registers are known has one frame at least, also where nothing of its
   stack could be copied (sp in a guard page, or overwritten). */
static bool can_walk(const struct ss_capture_thread *thread)
{
	return (thread->end == SS_END_ROOT || thread->end == SS_END_UNREADABLE) &&
	       thread->regs.valid != 0;
}

bool ss_walk_thread(struct ss_walk *walk, const struct ss_capture_thread *thread)
{
	walk->frames.count = 0;
	walk->end = thread->end;
	if (thread->live)
		return take_live(walk, thread);
	return !can_walk(thread) || walk_copy(walk, thread);
}
