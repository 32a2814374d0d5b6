#include "sample/perf_map.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "process/files.h"

static const uint64_t interval_ns = SS_NS_PER_SECOND;

/* first: this is the first JIT frame. If the map is found only later, all its lines may
   be newer than earlier frames. */
static void find(struct ss_recorder_perf_map *perf_map, struct ss_target *target,
		 bool first)
{
	struct ss_perf_map_file *map = &perf_map->map;
	struct stat st;

	ss_target_open_root(target);
	map->file = ss_perfmap_of(target);
	map->stable_size = first && map->file && fstat(map->file->fd, &st) == 0 ?
				   (uint64_t)st.st_size :
				   0;
}

void ss_recorder_perf_map_find(struct ss_recorder_perf_map *perf_map,
			       struct ss_target *target, uint64_t now_ns)
{
	if (perf_map->map.file ||
	    (perf_map->has_jit_frames && now_ns < perf_map->searched_ns + interval_ns))
		return;
	perf_map->searched_ns = now_ns;
	find(perf_map, target, !perf_map->has_jit_frames);
	perf_map->has_jit_frames = true;
}

struct ss_error *ss_recorder_perf_map_write(struct ss_recorder_perf_map *perf_map,
					    struct ss_target *target,
					    struct ss_writer *writer, uint32_t process)
{
	/* Some programs write it on a signal or when they exit. */
	if (!perf_map->map.file && perf_map->has_jit_frames)
		find(perf_map, target, false);
	return perf_map->map.file ? ss_writer_perf_map(writer, process, &perf_map->map) :
				    NULL;
}

void ss_recorder_perf_map_deinit(struct ss_recorder_perf_map *perf_map)
{
	ss_module_unref(perf_map->map.file);
	*perf_map = (struct ss_recorder_perf_map){};
}
