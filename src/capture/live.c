#include "capture/live.h"

#include <libunwind-ptrace.h>

struct ss_live {
	unw_addr_space_t space;
};

/* A stack that goes on for so long is a loop that the checks did not see. */
enum { FRAMES_MAX = 1 << 20 };

struct ss_live *ss_live_new(void)
{
	struct ss_live *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	live->space = unw_create_addr_space(&_UPT_accessors, 0);
	if (!live->space) {
		free(live);
		return NULL;
	}
	unw_set_caching_policy(live->space, UNW_CACHE_GLOBAL);
	return live;
}

void ss_live_free(struct ss_live *live)
{
	if (!live)
		return;
	unw_destroy_addr_space(live->space);
	free(live);
}

struct frames {
	SS_VECTOR(struct ss_live_frame) list;
	uint64_t last_sp;
};

static enum ss_end end_of_step(int step)
{
	switch (step) {
	case 0:
		return SS_END_ROOT;
	case -UNW_ENOINFO:
		return SS_END_NO_UNWIND_INFO;
	case -UNW_EBADFRAME:
		return SS_END_LOOP;
	case -UNW_EINVAL:
	case -UNW_EBADVERSION:
		return SS_END_BAD_UNWIND_INFO;
	default:
		return SS_END_UNREADABLE;
	}
}

/* Adds the frame the cursor is at. False: the stack ends here, with *end. */
static bool add_frame(struct frames *frames, unw_cursor_t *cursor, enum ss_end *end)
{
	unw_word_t pc = 0;
	unw_word_t sp = 0;
	bool signal = unw_is_signal_frame(cursor) > 0;

	*end = SS_END_UNREADABLE;
	if (unw_get_reg(cursor, UNW_REG_IP, &pc) < 0 ||
	    unw_get_reg(cursor, UNW_REG_SP, &sp) < 0)
		return false;
	*end = SS_END_ROOT;
	if (pc == 0)
		return false;
	struct ss_live_frame *frame = ss_vector_push(&frames->list);
	*end = SS_END_LOOP;
	bool after_signal = frames->list.count > 1 && frame && frame[-1].signal_frame;
	if (!frame || (frames->list.count > 1 && sp <= frames->last_sp && !after_signal))
		return false;
	*frame = (struct ss_live_frame){ .pc = pc, .signal_frame = signal };
	frames->last_sp = sp;
	return true;
}

static enum ss_end walk(struct frames *frames, unw_cursor_t *cursor, size_t max)
{
	enum ss_end end;

	while (add_frame(frames, cursor, &end)) {
		int step = unw_step(cursor);
		if (step <= 0)
			return end_of_step(step);
		if (frames->list.count >= max)
			return SS_END_FRAMES;
	}
	return end;
}

void ss_live_unwind(struct ss_live *live, struct ss_task *task, unsigned max_frames)
{
	struct frames frames = {};
	unw_cursor_t cursor;
	void *upt = _UPT_create(task->tid);

	task->live_end = SS_END_UNREADABLE;
	if (!upt)
		return;
	if (unw_init_remote(&cursor, live->space, upt) == 0)
		task->live_end = walk(&frames, &cursor,
				      max_frames ? max_frames : (size_t)FRAMES_MAX);
	_UPT_destroy(upt);
	task->live = frames.list.items;
	task->live_count = frames.list.count;
}
