#include "base/cpu_pin.h"

void ss_cpu_pin_begin(struct ss_cpu_pin *pin)
{
	int cpu = sched_getcpu();
	cpu_set_t one;

	pin->pinned = cpu >= 0 && cpu < CPU_SETSIZE &&
		      sched_getaffinity(0, sizeof(pin->saved), &pin->saved) == 0;
	if (!pin->pinned)
		return;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one); /* an optimisation only */
}

void ss_cpu_pin_end(const struct ss_cpu_pin *pin)
{
	/* Fails only if the cpuset has shrunk since: then the cpuset applies. */
	if (pin->pinned)
		(void)sched_setaffinity(0, sizeof(pin->saved), &pin->saved);
}
