#include "sample/frame_check.h"

void ss_frame_check_begin(struct ss_frame_check *check, struct ss_sampler *sampler,
			  bool current)
{
	*check = (struct ss_frame_check){ .sampler = sampler,
					  .result = SS_MAPPING_SAME,
					  .verified = true,
					  .current = current };
}

void ss_frame_check_begin_thread(struct ss_frame_check *check, pid_t tid)
{
	check->thread = ss_thread_list_find(&check->sampler->threads, tid);
	check->count = 0;
}

static void verify(struct ss_frame_check *check, uint64_t pc)
{
	check->result =
		SS_MIN(check->result, ss_address_space_check(&check->sampler->space, pc));
}

static bool is_known(const struct ss_frame_check *check, uint64_t start)
{
	for (size_t i = 0; i < check->count; i++) {
		if (check->starts[i] == start)
			return true;
	}
	return false;
}

void ss_frame_check_add_frame(struct ss_frame_check *check, uint64_t pc)
{
	const struct ss_area *area =
		ss_capture_find_area(check->sampler->space.capture, pc);

	if (!check->thread || check->result == SS_MAPPING_DIFFERS)
		return;
	if (!area) {
		verify(check, pc);
		return;
	}
	if (is_known(check, area->start))
		return;
	bool fits = check->count < SS_AREA_CHECK_MAX;
	if (fits)
		check->starts[check->count++] = area->start;
	if (ss_area_check_contains(&check->thread->areas, area->start) || check->current)
		return;
	verify(check, pc);
	/* More areas than fit are never verified, and a sample of the kernel cannot be:
	   another attempt would not help. */
	check->thread->areas.incomplete |= fits && !check->thread->by_kernel &&
					   check->result != SS_MAPPING_UNKNOWN;
}

void ss_frame_check_end_thread(struct ss_frame_check *check)
{
	struct ss_sampled_thread *thread = check->thread;

	if (!thread)
		return;
	ss_area_check_remember(&thread->areas, check->starts, check->count);
	/* If the thread has not run, the current mappings are those of the capture. */
	if (thread->areas.incomplete &&
	    ss_thread_list_is_unchanged(&check->sampler->threads, thread))
		thread->areas.incomplete = false;
	check->verified &= !thread->areas.incomplete;
}
