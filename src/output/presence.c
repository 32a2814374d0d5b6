#include "output/presence.h"

#include "base/cleanup.h"

bool ss_presence_see(struct ss_presence *presence, size_t snapshot)
{
	if (presence->snapshots > 0 && presence->last == snapshot)
		return false;
	presence->last = snapshot;
	presence->snapshots++;
	return true;
}

void ss_presence_count(struct ss_presence *presence, size_t snapshot, size_t members,
		       bool first)
{
	bool seen = presence->last == snapshot;
	size_t count = seen ? members : 0;

	presence->most = SS_MAX(presence->most, count);
	presence->least =
		seen && presence->snapshots == 1 ? count : SS_MIN(presence->least, count);
	if (first)
		presence->before = count;
	presence->after = count;
}

void ss_presence_end(struct ss_presence *presence, size_t snapshots)
{
	/* The members were missing before the first snapshot that has some. */
	if (presence->snapshots < snapshots)
		presence->least = 0;
}

void ss_presence_write_times(struct ss_json *json, const struct ss_presence *presence)
{
	ss_json_unsigned(json, "snapshots", presence->snapshots);
	ss_json_unsigned(json, "last", presence->last);
	ss_json_unsigned(json, "least", presence->least);
	ss_json_unsigned(json, "most", presence->most);
}

void ss_presence_write_counts(struct ss_json *json, const struct ss_presence *presence)
{
	ss_json_unsigned(json, "count_first", presence->before);
	ss_json_unsigned(json, "count_last", presence->after);
}
