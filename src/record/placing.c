#include "record/placing.h"

#include "capture/sampled.h"

struct placing {
	struct ss_sampler *sampler;
	struct ss_sampled *thread;
	enum ss_world_answer answer;
	uint64_t starts[SS_SAMPLER_PLACES]; /* of areas of the thread's frames */
	size_t count;
};

static void ask(struct placing *placing, uint64_t pc)
{
	placing->answer =
		SS_MIN(placing->answer, ss_world_holds(&placing->sampler->world, pc));
}

static bool is_known(const struct placing *placing, const struct ss_area *area)
{
	for (size_t i = 0; i < placing->count; i++) {
		if (placing->starts[i] == area->start)
			return true;
	}
	return false;
}

static void check_frame(struct placing *placing, uint64_t pc)
{
	const struct ss_area *area =
		ss_capture_find_area(placing->sampler->world.capture, pc);

	if (!area) {
		ask(placing, pc);
		return;
	}
	if (is_known(placing, area))
		return;
	bool fits = placing->count < SS_SAMPLER_PLACES;
	if (fits)
		placing->starts[placing->count++] = area->start;
	if (ss_sampler_proved(placing->thread, area))
		return;
	ask(placing, pc);
	/* What does not fit cannot be proved, however often it is tried. */
	placing->thread->unplaced |= fits && placing->answer != SS_WORLD_ASK_ALL;
}

enum ss_world_answer ss_placing_check(struct ss_sampler *sampler,
				      const struct ss_snapshot *snapshot, bool *proved)
{
	struct placing placing = { .sampler = sampler, .answer = SS_WORLD_YES };

	*proved = true;
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		const struct ss_thread *thread = &snapshot->threads.items[i];
		const struct ss_stack *stack = &snapshot->stacks.items[thread->stack_id];
		placing.thread = ss_sampled_find(sampler, thread->tid);
		if (!placing.thread)
			continue;
		placing.count = 0;
		for (size_t f = 0; f < stack->count && placing.answer != SS_WORLD_NO; f++)
			check_frame(&placing, stack->frames[f].pc);
		ss_sampler_remember(placing.thread, placing.starts, placing.count);
		/* The answers of now are those of then, if it has not moved at all. */
		if (placing.thread->unplaced &&
		    ss_sampled_is_still(sampler, placing.thread))
			placing.thread->unplaced = false;
		*proved &= !placing.thread->unplaced;
	}
	return placing.answer;
}
