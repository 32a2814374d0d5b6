/*
 * A census of a heap as JSON: see stacksnap-json(5).
 */
#include "output/json.h"
#include "output/json_document.h"

static void write_arena(struct ss_json *json, const struct ss_heap_arena *arena)
{
	ss_json_open(json, NULL, '{');
	ss_json_hex(json, "address", arena->address);
	ss_json_bool(json, "main", arena->main);
	ss_json_unsigned(json, "size", arena->size);
	ss_json_unsigned(json, "used_count", arena->used_count);
	ss_json_unsigned(json, "used_bytes", arena->used_bytes);
	ss_json_unsigned(json, "cached_count", arena->cached_count);
	ss_json_unsigned(json, "cached_bytes", arena->cached_bytes);
	ss_json_unsigned(json, "free_count", arena->free_count);
	ss_json_unsigned(json, "free_bytes", arena->free_bytes);
	ss_json_unsigned(json, "top_bytes", arena->top_bytes);
	ss_json_unsigned(json, "unread_bytes", arena->unread_bytes);
	ss_json_text(json, "problem", arena->problem);
	ss_json_close(json, '}');
}

static void write_class(struct ss_json *json, const struct ss_heap_class *class)
{
	ss_json_open(json, NULL, '{');
	ss_json_text(json, "name", class->name);
	ss_json_text(json, "module", class->module);
	ss_json_hex(json, "address", class->address);
	ss_json_unsigned(json, "count", class->count);
	ss_json_unsigned(json, "bytes", class->bytes);
	ss_json_close(json, '}');
}

static void write_totals(struct ss_json *json, const struct ss_heap *heap)
{
	ss_json_unsigned(json, "used_count", heap->used_count);
	ss_json_unsigned(json, "used_bytes", heap->used_bytes);
	ss_json_unsigned(json, "mapped_count", heap->mapped_count);
	ss_json_unsigned(json, "mapped_bytes", heap->mapped_bytes);
}

static void write_lists(struct ss_json *json, const struct ss_heap *heap)
{
	ss_json_open(json, "arenas", '[');
	for (size_t i = 0; i < heap->arena_count; i++) {
		ss_json_new_line(json);
		write_arena(json, &heap->arenas[i]);
	}
	ss_json_close(json, ']');
	ss_json_open(json, "sizes", '[');
	for (size_t i = 0; i < heap->size_count; i++) {
		const struct ss_heap_size *size = &heap->sizes[i];
		ss_json_new_line(json);
		ss_json_open(json, NULL, '{');
		ss_json_unsigned(json, "min", size->min);
		ss_json_unsigned(json, "max", size->max);
		ss_json_unsigned(json, "count", size->count);
		ss_json_unsigned(json, "bytes", size->bytes);
		ss_json_close(json, '}');
	}
	ss_json_close(json, ']');
	ss_json_open(json, "classes", '[');
	for (size_t i = 0; i < heap->class_count; i++) {
		if (!heap->classes[i].name)
			continue;
		ss_json_new_line(json);
		write_class(json, &heap->classes[i]);
	}
	ss_json_close(json, ']');
	ss_json_bool(json, "classes_truncated", heap->classes_truncated);
}

struct ss_error *ss_json_write_heap(const struct ss_heap_input *input,
				    const struct ss_format_options *options, FILE *out)
{
	const struct ss_heap *heap = input->heap;
	struct ss_json json = { .out = out };

	ss_json_open(&json, NULL, '{');
	ss_json_text(&json, "schema", "stacksnap-heap/1");
	ss_json_signed(&json, "pid", heap->process->pid);
	ss_json_text(&json, "name", heap->process->name);
	ss_json_text(&json, "allocator", heap->allocator);
	ss_json_text(&json, "other_allocator", heap->other);
	ss_json_unsigned(&json, "time_ns", heap->process->time_ns);
	ss_json_unsigned(&json, "read_ns", input->read_ns);
	write_totals(&json, heap);
	if (heap->counted) {
		ss_json_unsigned(&json, "counted_maps", heap->counted_maps);
		ss_json_unsigned(&json, "counted_map_bytes", heap->counted_map_bytes);
	} else {
		ss_json_null(&json, "counted_maps");
		ss_json_null(&json, "counted_map_bytes");
	}
	ss_json_open(&json, "before", '{');
	write_totals(&json, input->before);
	ss_json_close(&json, '}');
	write_lists(&json, heap);
	ss_json_text(&json, "problem", options->problem);
	ss_json_close(&json, '}');
	(void)fputc_unlocked('\n', out);
	return NULL;
}
