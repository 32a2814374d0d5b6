#include "sample/load_feed.h"

#include "base/clock.h"

int ss_load_feed_open(struct ss_load_feed *feed)
{
	return ss_mmap_events_open(&feed->events);
}

void ss_load_feed_close(struct ss_load_feed *feed)
{
	ss_mmap_events_close(&feed->events);
	ss_vector_free(&feed->readers);
}

/* It may have mapped something until now that is not known. */
static void forget(struct ss_module_loads *loads)
{
	loads->last_ns = loads->last_code_ns = loads->unknown_ns = ss_now_ns();
}

bool ss_load_feed_add(struct ss_load_feed *feed, pid_t pid, struct ss_module_loads *loads)
{
	struct ss_load_reader *slot = ss_vector_push(&feed->readers);

	if (slot)
		*slot = (struct ss_load_reader){ .pid = pid, .loads = loads };
	forget(loads);
	return slot;
}

void ss_load_feed_remove(struct ss_load_feed *feed, const struct ss_module_loads *loads)
{
	size_t kept = 0;

	for (size_t i = 0; i < feed->readers.count; i++) {
		if (feed->readers.items[i].loads != loads)
			feed->readers.items[kept++] = feed->readers.items[i];
	}
	feed->readers.count = kept;
}

bool ss_load_feed_read(struct ss_load_feed *feed)
{
	struct ss_mmap_event event;
	bool ok = true;

	while (ss_mmap_events_next(&feed->events, &event)) {
		for (size_t i = 0; i < feed->readers.count; i++) {
			if (feed->readers.items[i].pid == event.pid)
				ok &= ss_module_loads_add(feed->readers.items[i].loads,
							  &event);
		}
	}
	/* Any process may have mapped something at any time. */
	for (size_t i = 0; feed->events.lost != feed->lost && i < feed->readers.count;
	     i++)
		forget(feed->readers.items[i].loads);
	feed->lost = feed->events.lost;
	return ok;
}
