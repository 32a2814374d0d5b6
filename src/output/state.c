#include "output/state.h"

#include <stddef.h>

#include "base/cleanup.h"

const char *ss_state_name(char state)
{
	static const struct {
		char state;
		const char *name;
	} names[] = {
		{ 'R', "running" }, /* or runnable: waiting for a processor */
		{ 'S', "sleeping" },
		{ 'D', "in uninterruptible sleep (D)" },
		{ 'T', "stopped by a signal" },
		{ 't', "stopped by a tracer" },
		{ 'Z', "zombie" },
		{ 'X', "dead" },
		{ 'I', "idle" },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++) {
		if (names[i].state == state)
			return names[i].name;
	}
	return "in an unknown state";
}
