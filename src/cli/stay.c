#include "cli/stay.h"

void ss_stay_begin(struct ss_stay *stay)
{
	int here = sched_getcpu();
	cpu_set_t one;

	stay->known = here >= 0 && here < CPU_SETSIZE &&
		      sched_getaffinity(0, sizeof(stay->before), &stay->before) == 0;
	if (!stay->known)
		return;
	CPU_ZERO(&one);
	CPU_SET((size_t)here, &one);
	(void)sched_setaffinity(0, sizeof(one), &one); /* or as it comes: slower */
}

void ss_stay_end(const struct ss_stay *stay)
{
	/* What it was before is allowed, unless a cpuset has shrunk: then that rules. */
	if (stay->known)
		(void)sched_setaffinity(0, sizeof(stay->before), &stay->before);
}
