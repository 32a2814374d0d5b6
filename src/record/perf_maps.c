/*
 * The perf maps in a recording: they become files, so to speak, of the snapshot that names
 * are looked up in.
 */
#include <string.h>

#include "record/recording.h"

/* That of a process, which may be new; NULL without memory. */
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
	uint64_t settled = ss_cursor_number(cursor);
	uint64_t offset = ss_cursor_number(cursor);

	if (cursor->failed)
		return false;
	size_t size = (size_t)(cursor->end - cursor->at);
	struct ss_recorded_perf_map *map =
		map_of(recording, scope->processes.items.items[process]);
	if (!map)
		return ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
	if (map->full)
		return true;
	if (map->text.count == 0 || offset != map->first + map->text.count) {
		recording->perf_map_bytes -= map->text.count;
		ss_bytes_free(&map->text); /* its capacity is not in perf_map_bytes */
		map->settled = settled;
		map->first = offset;
	}
	/* What is too much has no names. */
	map->full = size > SS_PERF_MAPS_MAX - recording->perf_map_bytes;
	if (map->full)
		return true;
	ss_bytes_put(&map->text, ss_cursor_take(cursor, size), size);
	recording->perf_map_bytes += size;
	return !map->text.failed || ss_recording_refuse(recording, SS_CHUNK_NO_MEMORY);
}

/* Where it begins within a line, which must not be taken for another. */
static void blank_rest_of_line(struct ss_recorded_perf_map *map)
{
	uint8_t *text = map->text.items;
	size_t count = map->first > 0 ? map->text.count : 0;

	for (size_t i = 0; i < count && text[i] != '\n'; i++)
		text[i] = '\n';
}

/* As a file of which a part is read. False without memory. */
static bool add_file(struct ss_recording *recording, struct ss_recorded_perf_map *map)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *file =
		ss_module_new("perf map", 0, 0);
	struct ss_perf_map_file *slot =
		file ? ss_vector_push(&recording->places->perf_maps) : NULL;

	if (!slot)
		return false;
	blank_rest_of_line(map);
	bool settled = map->settled > map->first;
	file->bytes = map->text.items;
	file->size = map->text.count;
	map->text = (struct ss_bytes){};
	slot->file = take_ptr(file);
	slot->settled = settled ? map->settled - map->first : 0;
	return true;
}

/* The map of the process that a place belongs to; UINT32_MAX: there is none. */
static uint32_t find_map(const struct ss_recording *recording,
			 const struct ss_place_key *key)
{
	uint32_t process = key->process - 1;

	if (key->module != SS_ID_NONE)
		process = recording->modules.items[key->module].process;
	/* 0 - 1 is none, of those without a map too. */
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
		ss_bytes_free(&recording->perf_maps.items[i].text);
	ss_vector_free(&recording->perf_maps);
	ss_vector_free(&recording->perf_map_numbers);
	free(recording->perf_map_of);
}
