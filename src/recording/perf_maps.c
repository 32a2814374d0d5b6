/*
 * The perf maps in a recording, as files of the snapshot whose places are symbolized.
 */
#include <string.h>

#include "recording/recording.h"

/* The map of a process, created at the first call. NULL without memory. */
static struct ss_recorded_perf_map *map_of(struct ss_recording *recording,
					   uint32_t process)
{
	while (recording->perf_map_numbers.count <= process) {
		if (!ss_vector_push(&recording->perf_map_numbers))
			return NULL;
	}
	uint32_t *number = &recording->perf_map_numbers.items[process];
	if (*number)
		return &recording->perf_maps.items[*number - 1];
	struct ss_recorded_perf_map *map = ss_vector_push(&recording->perf_maps);
	if (map)
		*number = (uint32_t)recording->perf_maps.count;
	return map;
}

bool ss_perf_map_read(struct ss_recording *recording, const struct ss_scope *scope,
		      struct ss_cursor *cursor)
{
	size_t process = ss_cursor_index(cursor, scope->processes.items.count);
	uint64_t stable_size = ss_cursor_uleb128(cursor);
	uint64_t offset = ss_cursor_uleb128(cursor);

	if (cursor->failed)
		return false;
	size_t size = (size_t)(cursor->end - cursor->at);
	struct ss_recorded_perf_map *map =
		map_of(recording, scope->processes.items.items[process]);
	if (!map)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	if (map->full)
		return true;
	if (map->text.size == 0 || offset != map->first + map->text.size) {
		recording->perf_map_bytes -= map->text.size;
		ss_buffer_deinit(
			&map->text); /* perf_map_bytes does not count its capacity */
		map->stable_size = stable_size;
		map->first = offset;
	}
	/* Code beyond the limit has no names. */
	map->full = size > SS_PERF_MAPS_MAX - recording->perf_map_bytes;
	if (map->full)
		return true;
	ss_buffer_add(&map->text, ss_cursor_take(cursor, size), size);
	recording->perf_map_bytes += size;
	return !map->text.failed || ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
}

/* Blanks the rest of a line whose start is missing, which could be mistaken for a whole
   line. */
static void blank_rest_of_line(struct ss_recorded_perf_map *map)
{
	char *text = map->text.bytes;
	size_t count = map->first > 0 ? map->text.size : 0;

	for (size_t i = 0; i < count && text[i] != '\n'; i++)
		text[i] = '\n';
}

/* Makes a module of the part that was recorded. False without memory. */
static bool add_file(struct ss_recording *recording, struct ss_recorded_perf_map *map)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *file =
		ss_module_new("perf map", 0, 0);
	struct ss_perf_map_file *slot =
		file ? ss_vector_push(&recording->places->perf_maps) : NULL;

	if (!slot)
		return false;
	blank_rest_of_line(map);
	bool stable_size = map->stable_size > map->first;
	file->bytes = (uint8_t *)map->text.bytes;
	file->size = map->text.size;
	map->text = (struct ss_buffer){};
	slot->file = take_ptr(file);
	slot->stable_size = stable_size ? map->stable_size - map->first : 0;
	return true;
}

/* The map of a place's process; UINT32_MAX: none. */
static uint32_t find_map(const struct ss_recording *recording,
			 const struct ss_place_key *key)
{
	uint32_t process = key->process - 1;

	if (key->module != SS_ID_NONE)
		process = recording->modules.items[key->module].process;
	/* Stored as number + 1; 0, which becomes UINT32_MAX: no map. */
	return process < recording->perf_map_numbers.count ?
		       recording->perf_map_numbers.items[process] - 1 :
		       UINT32_MAX;
}

bool ss_perf_maps_complete(struct ss_recording *recording)
{
	size_t count = recording->place_ids.count;
	bool whole = true;

	if (recording->perf_maps.count == 0)
		return true;
	recording->perf_map_of = calloc(count + 1, sizeof(*recording->perf_map_of));
	for (uint32_t id = 0; recording->perf_map_of && id < count; id++) {
		struct ss_place_key key;
		size_t size;
		memcpy(&key, ss_idtable_key(&recording->place_ids, id, &size),
		       sizeof(key));
		recording->perf_map_of[id] = find_map(recording, &key);
	}
	for (size_t i = 0; i < recording->perf_maps.count && whole; i++)
		whole = add_file(recording, &recording->perf_maps.items[i]);
	recording->places->perf_map_of = recording->perf_map_of;
	return whole && recording->perf_map_of;
}

void ss_perf_maps_free(struct ss_recording *recording)
{
	for (size_t i = 0; i < recording->perf_maps.count; i++)
		ss_buffer_deinit(&recording->perf_maps.items[i].text);
	ss_vector_free(&recording->perf_maps);
	ss_vector_free(&recording->perf_map_numbers);
	free(recording->perf_map_of);
}
