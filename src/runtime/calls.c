#include "runtime/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

bool ss_runtime_calls_merge(struct ss_runtime_call *calls, size_t first, size_t count)
{
	if (first == 0 || first == count ||
	    calls[first - 1].native <= calls[first].native)
		return true;
	size_t added = count - first;
	_cleanup_free_ struct ss_runtime_call *second = calloc(added, sizeof(*second));

	if (!second)
		return false;
	memcpy(second, calls + first, added * sizeof(*second));
	/* From the end on, what is further out goes to its place. */
	for (size_t at = count; added > 0;) {
		bool outer = first > 0 &&
			     calls[first - 1].native > second[added - 1].native;
		calls[--at] = outer ? calls[--first] : second[--added];
	}
	return true;
}
