#include "model/activity.h"

#include "base/search.h"

const struct ss_thread_activity *ss_activity_find(const struct ss_activity *activity,
						  pid_t tid)
{
	size_t low = ss_lower_bound(activity ? activity->threads.count : 0, i,
				    activity->threads.items[i].tid < tid);

	return activity && low < activity->threads.count &&
			       activity->threads.items[low].tid == tid ?
		       &activity->threads.items[low] :
		       NULL;
}
