#include "profile/native_reasons.h"

#include <string.h>

void ss_native_reasons_count(struct ss_native_reasons *reasons,
			     const struct ss_recorded_stack *stack)
{
	size_t at = 0;

	if (!stack->reason || stack->end != SS_END_ROOT || stack->count == 0)
		return;
	while (at < reasons->count &&
	       strcmp(reasons->items[at].reason, stack->reason) != 0)
		at++;
	if (at == SS_NATIVE_REASONS_MAX)
		return;
	reasons->items[at].reason = stack->reason;
	reasons->items[at].count++;
	if (at == reasons->count)
		reasons->count++;
}

bool ss_native_reasons_add_notes(const struct ss_native_reasons *reasons,
				 struct ss_profile *profile, const char *file)
{
	for (size_t i = 0; i < reasons->count; i++) {
		const uint64_t count = reasons->items[i].count;
		if (!ss_profile_note(profile,
				     "%s: %llu %s native frames instead of functions: %s",
				     file, (unsigned long long)count,
				     count == 1 ? "sample has" : "samples have",
				     reasons->items[i].reason))
			return false;
		profile->harmless++;
	}
	return true;
}
