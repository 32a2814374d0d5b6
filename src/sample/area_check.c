#include "sample/area_check.h"

void ss_area_check_clear(struct ss_area_check *areas)
{
	areas->verified = 0;
	areas->leaf = 0;
	areas->incomplete = false;
}

void ss_area_check_run(struct ss_area_check *areas, uint64_t pc, uint64_t leaf,
		       ss_area_check_verify *verify, void *data)
{
	areas->verified = 0;
	areas->leaf = leaf && verify(data, pc) ? leaf : 0;
	for (unsigned i = 0; i < areas->count; i++) {
		if ((areas->leaf && areas->starts[i] == areas->leaf) ||
		    verify(data, areas->starts[i]))
			areas->verified |= 1u << i;
	}
}

bool ss_area_check_contains(const struct ss_area_check *areas, uint64_t start)
{
	if (areas->leaf && start == areas->leaf)
		return true;
	for (unsigned i = 0; i < areas->count; i++) {
		if (areas->starts[i] == start)
			return areas->verified >> i & 1;
	}
	return false;
}

static void add(struct ss_area_check *areas, uint64_t start)
{
	for (unsigned i = 0; i < areas->count; i++) {
		if (areas->starts[i] == start)
			return;
	}
	if (areas->count < SS_AREA_CHECK_MAX)
		areas->starts[areas->count++] = start;
}

void ss_area_check_remember(struct ss_area_check *areas, const uint64_t *starts,
			    size_t count)
{
	const struct ss_area_check before = *areas;

	areas->count = areas->verified = 0;
	for (size_t i = 0; i < count; i++)
		add(areas, starts[i]);
	for (unsigned i = 0; i < before.count; i++)
		add(areas, before.starts[i]);
}
