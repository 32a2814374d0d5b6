#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "model/futex.h"
#include "model/session.h"
#include "model/snapshot.h"
#include "unwind/cfi_step.h"
#include "unwind/dwarf.h"
#include "unwind/fallback.h"

enum {
	FRAMES_MAX = 4 << 20, /* no limit means this: a stack of 64 MiB of bare calls */
	/* Guesses by scanning a stack may go wrong: so many in a row end it. */
	GUESSES_MAX = 16,
	/* Signal frames may lead inwards, from an alternate stack to the interrupted one;
	   made-up ones could do so in a circle. */
	INWARD_MAX = 64,
};

/* What the session keeps for this room. */
struct unwinder {
	struct ss_dwarf *dwarf;
	struct ss_rows *rows;
	struct ss_images *images;
};

struct walk {
	struct ss_snapshot *snapshot;
	struct ss_view view;
	const struct unwinder *unwinder;
	SS_VECTOR(struct ss_frame) frames; /* of the thread at hand */
	size_t max_frames;
	const char *frames_reason;
	unsigned guesses;
	unsigned inward;
	enum ss_end end;
};

static void unwinder_free(void *data)
{
	struct unwinder *unwinder = data;

	ss_dwarf_free(unwinder->dwarf);
	ss_rows_free(unwinder->rows);
	ss_images_free(unwinder->images);
	free(unwinder);
}

static struct unwinder *get_unwinder(struct ss_session *session)
{
	if (session->unwind.data)
		return session->unwind.data;
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));
	if (!unwinder)
		return NULL;
	unwinder->dwarf = ss_dwarf_new();
	unwinder->rows = ss_rows_new();
	unwinder->images = ss_images_new(session);
	if (!unwinder->dwarf || !unwinder->rows || !unwinder->images) {
		unwinder_free(unwinder);
		return NULL;
	}
	session->unwind =
		(struct ss_session_slot){ .data = unwinder, .free = unwinder_free };
	return unwinder;
}

static bool is_sigreturn(struct ss_view *view, uint64_t pc)
{
	uint8_t code[SS_SIGRETURN_SIZE];
	size_t n = ss_view_read_code(view, pc, code, sizeof(code));

	return ss_arch_is_sigreturn(code, n);
}

/* Code that lies in no file was made by the process itself. */
static void place_in_area(struct walk *walk, struct ss_frame *frame, uint64_t lookup,
			  const struct ss_area *area)
{
	bool jit = (area->prot & PROT_EXEC) && strcmp(area->name, "//anon") == 0;

	frame->area =
		ss_intern_string(walk->snapshot->strings, jit ? "[jit]" : area->name);
	frame->area_offset = frame->pc - area->start;
	frame->lookup_offset = lookup - area->start;
}

/* Appends a frame: relative to its module, and how it was found. NULL: no memory. */
static struct ss_frame *add_frame(struct walk *walk, uint64_t pc,
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

static enum ss_end end_of_missing(const struct walk *walk)
{
	return ss_view_was_cut(&walk->view) ? SS_END_LIMIT : SS_END_UNREADABLE;
}

static enum ss_end end_of_step(const struct walk *walk, enum ss_step step)
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
	bool call;   /* pc is a return address */
	bool signal; /* pc is in the signal trampoline */
};

/* Whether all that is known of the code at pc is that it is code. Then a frame pointer of
   zero does not say that there is no frame further out: it may be no frame pointer. */
static bool has_no_image(struct walk *walk, uint64_t pc)
{
	const struct ss_loaded *loaded = ss_view_find_module(&walk->view, pc);

	return loaded && !loaded->image;
}

static bool step_without_cfi(struct walk *walk, struct position *p)
{
	bool blind = has_no_image(walk, ss_regs_pc(&p->regs));

	if (!ss_fallback_step(&walk->view, &p->regs, !p->call, &p->source, &walk->end)) {
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

/* Goes one frame out. False: walk->end says why not. */
static bool step(struct walk *walk, struct position *p)
{
	const struct unwinder *unwinder = walk->unwinder;
	bool call = p->call && !p->signal;

	walk->view.missing = 0;
	enum ss_step result = ss_rows_step(unwinder->rows, &walk->view, &p->regs, call);
	if (result == SS_STEP_COMPLEX)
		result = ss_dwarf_step(unwinder->dwarf, &p->regs, call, p->signal);
	if (result == SS_STEP_NO_INFO)
		return step_without_cfi(walk, p);
	walk->end = end_of_step(walk, result);
	if (result != SS_STEP_OK)
		return false;
	p->source = SS_FROM_CFI;
	p->call = !p->signal;
	return true;
}

/*
 * Whether a step from before to p led outwards. A leaf may have popped its return
 * address into a register, as vfork() does. The way from an alternate signal stack back
 * to the interrupted one may lead inwards, so often.
 */
static bool leads_outwards(struct walk *walk, const struct position *p, uint64_t sp,
			   bool call, bool signal)
{
	uint64_t next = ss_regs_sp(&p->regs);

	if (next > sp || (next == sp && !call))
		return true;
	return signal && ++walk->inward <= INWARD_MAX;
}

static bool walk_frames(struct walk *walk, struct position *p)
{
	for (;;) {
		uint64_t pc = ss_regs_pc(&p->regs);
		uint64_t sp = ss_regs_sp(&p->regs);
		bool call = p->call;
		bool signal = p->signal = is_sigreturn(&walk->view, pc);
		if (!add_frame(walk, pc, p->source, call, signal))
			return false;
		if (walk->max_frames == 1 && walk->frames_reason) {
			walk->end = SS_END_FRAMES;
			return true;
		}
		if (!step(walk, p))
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
static bool walk_thread(struct walk *walk, const struct ss_capture_thread *thread)
{
	struct position p = { .regs = thread->regs, .source = SS_FROM_REGISTERS };

	walk->view.thread = thread;
	walk->guesses = walk->inward = 0;
	return walk_frames(walk, &p);
}

static bool add_live_frames(struct walk *walk, const struct ss_capture_thread *thread)
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
   to the end, what the copy says if it leads further. */
static bool take_live(struct walk *walk, const struct ss_capture_thread *thread)
{
	bool whole = thread->live_end == SS_END_ROOT || thread->live_end == SS_END_FRAMES;

	if (!whole && !walk_thread(walk, thread))
		return false;
	if (!whole &&
	    (walk->end == SS_END_ROOT || walk->frames.count > thread->live_count))
		return true;
	walk->frames.count = 0;
	return add_live_frames(walk, thread);
}

static const char *intern_or_null(struct ss_snapshot *snapshot, const char *text)
{
	return text ? ss_intern_string(snapshot->strings, text) : NULL;
}

/* A thread whose registers are known has one frame at least, also where nothing of its
   stack could be copied (sp in a guard page, or overwritten). */
static bool can_walk(const struct ss_capture_thread *thread)
{
	return (thread->end == SS_END_ROOT || thread->end == SS_END_UNREADABLE) &&
	       thread->regs.valid != 0;
}

static bool add_thread(struct walk *walk, const struct ss_capture_thread *from)
{
	struct ss_snapshot *snapshot = walk->snapshot;
	struct ss_thread *thread = ss_vector_push(&snapshot->threads);

	if (!thread)
		return false;
	*thread = (struct ss_thread){
		.tid = from->tid,
		.name = ss_intern_string(snapshot->strings, from->name),
		.state = from->state,
		.stopped_ns = from->stopped_ns,
		.reason = intern_or_null(snapshot, from->reason),
		.consistent = from->consistent,
		.thread_pointer = from->thread_pointer,
		.inner_tid = from->inner_tid,
		.wchan = intern_or_null(snapshot, from->wchan),
		.kernel_stack = intern_or_null(snapshot, from->kernel_stack),
	};
	walk->frames.count = 0;
	walk->end = from->end;
	bool ok = thread->name != NULL;
	if (from->live)
		ok = ok && take_live(walk, from);
	else if (can_walk(from))
		ok = ok && walk_thread(walk, from);
	thread->end = walk->end;
	thread->frame_count = walk->frames.count;
	if (thread->end == SS_END_FRAMES && !thread->reason)
		thread->reason = intern_or_null(snapshot, walk->frames_reason);
	return ok &&
	       ss_snapshot_add_stack(snapshot, walk->frames.items, walk->frames.count,
				     walk->end, &thread->stack_id);
}

static bool copy_process(struct ss_snapshot *snapshot, const struct ss_capture *capture)
{
	snapshot->process = capture->process;
	snapshot->facts = ss_facts_ref(capture->facts);
	snapshot->process.name = intern_or_null(snapshot, capture->process.name);
	snapshot->process.executable =
		intern_or_null(snapshot, capture->process.executable);
	for (size_t i = 0; i < capture->modules.count; i++) {
		struct ss_module_impl **slot = ss_vector_push(&snapshot->modules);
		if (!slot)
			return false;
		*slot = ss_module_ref(capture->modules.items[i]);
	}
	if (capture->perf_map)
		snapshot->perf_map = ss_module_ref(capture->perf_map);
	return true;
}

/* Notes where the lock lies that a thread waits for: symbols may name it. */
static bool add_lock_place(struct walk *walk, const struct ss_capture_thread *from)
{
	struct ss_futex futex;

	if (from->lock.size == 0 || !ss_futex_parse(&from->syscall, &futex))
		return true;
	struct ss_lock_place *place = ss_vector_push(&walk->snapshot->places);
	if (!place)
		return false;
	place->address = futex.address;
	place->module_index = -1;
	struct ss_loaded *loaded = ss_view_find_data(&walk->view, futex.address);
	if (loaded) {
		place->module_index = (int32_t)(loaded - walk->view.loaded);
		place->offset = futex.address - loaded->bias;
	}
	return true;
}

static bool walk_threads(struct walk *walk, const struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->threads.count; i++) {
		if (!add_thread(walk, &capture->threads.items[i]) ||
		    !add_lock_place(walk, &capture->threads.items[i]))
			return false;
	}
	ss_snapshot_sort_places(walk->snapshot);
	return true;
}

struct ss_error *ss_capture_unwind(const struct ss_capture *capture,
				   struct ss_session *session,
				   const struct ss_unwind_options *options,
				   struct ss_snapshot **ret)
{
	struct unwinder *unwinder = get_unwinder(session);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = ss_snapshot_new();
	struct walk walk = { .snapshot = snapshot, .max_frames = FRAMES_MAX };
	struct ss_unwind_options given = {};

	if (options)
		memcpy(&given, options, SS_MIN(options->size, sizeof(given)));
	if (!unwinder || !snapshot || !copy_process(snapshot, capture) ||
	    !ss_view_init(&walk.view, capture, unwinder->images))
		return ss_error_no_memory();
	if (given.max_frames)
		walk.max_frames = SS_MIN(given.max_frames, (unsigned)FRAMES_MAX);
	walk.frames_reason = given.frames_reason;
	walk.unwinder = unwinder;
	ss_dwarf_begin(unwinder->dwarf, &walk.view);
	bool ok = walk_threads(&walk, capture);
	ss_vector_free(&walk.frames);
	ss_view_deinit(&walk.view);
	if (!ok)
		return ss_error_no_memory();
	*ret = take_ptr(snapshot);
	return NULL;
}
