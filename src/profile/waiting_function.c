#include "profile/waiting_function.h"

#include "profile/label.h"

/* What waits is near the innermost frame. Without a limit, a small file whose many samples have one
   deep stack would take minutes. */
enum { FRAMES_MAX = 64 };

static uint32_t function_of(const struct ss_profile *profile, uint32_t call)
{
	uint32_t frame = ss_profile_call_at(profile, call)->frame;

	return (uint32_t)ss_profile_frame_at(profile, frame)->function;
}

static bool is_reason(const struct ss_profile_function *function)
{
	return function->is_end || function->is_origin;
}

struct ss_waiting_function ss_waiting_function_of(const struct ss_profile *profile,
						  uint32_t call)
{
	const struct ss_waiting_function none = { SS_ID_NONE, SS_ID_NONE };
	uint64_t inner = SS_ID_NONE;
	uint32_t library = SS_ID_NONE;

	for (size_t i = 0; call; call = ss_profile_call_at(profile, call)->parent) {
		uint32_t function = function_of(profile, call);
		const struct ss_profile_function *f =
			ss_profile_function_at(profile, function);
		if (is_reason(f) || i++ == FRAMES_MAX)
			return none;
		if (library == SS_ID_NONE)
			inner = f->module;
		else if (f->module != inner && !ss_label_is_of_library(f->name))
			break;
		if (f->module == inner && !f->place)
			library = function;
	}
	if (!call || library == SS_ID_NONE)
		return none;
	return (struct ss_waiting_function){ library, function_of(profile, call) };
}

uint32_t ss_waiting_function_name(const struct ss_profile *profile, uint32_t call)
{
	uint32_t found = ss_waiting_function_of(profile, call).program;

	for (size_t i = 0; call && i < FRAMES_MAX; i++) {
		uint32_t function = function_of(profile, call);
		const struct ss_profile_function *f =
			ss_profile_function_at(profile, function);
		if (f->kind != SS_FRAME_NATIVE && f->kind != SS_FRAME_JIT)
			return function;
		if (found == SS_ID_NONE && !is_reason(f) && !f->place)
			found = function;
		call = ss_profile_call_at(profile, call)->parent;
	}
	return found;
}
