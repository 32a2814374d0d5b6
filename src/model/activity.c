#include "model/activity.h"

const struct ss_thread_activity *ss_activity_find(const struct ss_activity *activity,
						  pid_t tid)
{
	size_t low = 0;
	size_t high = activity ? activity->threads.count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (activity->threads.items[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return activity && low < activity->threads.count &&
			       activity->threads.items[low].tid == tid ?
		       &activity->threads.items[low] :
		       NULL;
}
