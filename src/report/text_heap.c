/*
 * A census of a heap for people.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "report/print.h"
#include "report/text.h"
#include "data/heap.h"

enum { NAME_COLUMN = 24, SIZE_COLUMN = 12, COUNT_COLUMN = 14 };

static void write_title(const char *title, const struct ss_format_options *options,
			FILE *out)
{
	(void)fputc_unlocked('\n', out);
	ss_style_print(SS_STYLE_STRONG, options->color, out, "%s", title);
	(void)fputc_unlocked('\n', out);
}

/* "mariadbd (4711): 312.4 MiB in use in 1,203,112 allocations; read in 0.45 s, nothing was
   stopped" */
static void write_summary(const struct ss_heap_input *input,
			  const struct ss_format_options *options, FILE *out)
{
	const struct ss_heap *heap = input->heap;

	ss_style_write(SS_STYLE_STRONG, options->color, out);
	ss_escape_write(heap->process->name, NULL, out);
	(void)fprintf(out, " (%d): %s in use", heap->process->pid,
		      ss_quantity_size(heap->used_bytes).text);
	ss_style_write(SS_STYLE_NONE, options->color, out);
	(void)fprintf(out, " in %s of malloc in ",
		      ss_quantity_things(heap->used_count, "allocation").text);
	ss_escape_write(heap->allocator, NULL, out);
	(void)fprintf(out, "; read in %s, no thread was stopped\n",
		      ss_quantity_time(input->read_ns).text);
	if (!heap->other)
		return;
	(void)fputs_unlocked("Allocations of ", out);
	ss_escape_write(heap->other, NULL, out);
	(void)fputs_unlocked(" are not counted.\n", out);
}

static void write_arena(const struct ss_heap_arena *arena, FILE *out)
{
	if (arena->main)
		(void)fprintf(out, "  %-*s", NAME_COLUMN, "main");
	else
		(void)fprintf(out, "  0x%-*" PRIx64, NAME_COLUMN - 2, arena->address);
	(void)fprintf(out, "%*s%*s%*s%*s%*s%*s\n", SIZE_COLUMN,
		      ss_quantity_size(arena->used_bytes).text, COUNT_COLUMN,
		      ss_quantity_count(arena->used_count).text, SIZE_COLUMN,
		      ss_quantity_size(arena->cached_bytes).text, SIZE_COLUMN,
		      ss_quantity_size(arena->free_bytes).text, SIZE_COLUMN,
		      ss_quantity_size(arena->top_bytes).text, SIZE_COLUMN,
		      ss_quantity_size(arena->size).text);
	if (arena->problem && arena->unread_bytes) {
		(void)fprintf(out, "    %s not counted: %s\n",
			      ss_quantity_size(arena->unread_bytes).text, arena->problem);
	} else if (arena->problem) {
		(void)fprintf(out, "    %s\n", arena->problem);
	}
}

static void write_arenas(const struct ss_heap *heap,
			 const struct ss_format_options *options, FILE *out)
{
	write_title("Arenas", options, out);
	(void)fprintf(out, "  %-*s%*s%*s%*s%*s%*s%*s\n", NAME_COLUMN, "", SIZE_COLUMN,
		      "in use", COUNT_COLUMN, "allocations", SIZE_COLUMN, "cached",
		      SIZE_COLUMN, "free", SIZE_COLUMN, "at the end", SIZE_COLUMN,
		      "total");
	for (size_t i = 0; i < heap->arena_count; i++)
		write_arena(&heap->arenas[i], out);
	(void)fprintf(out, "  %-*s%*s%*s\n", NAME_COLUMN, "separate mappings",
		      SIZE_COLUMN, ss_quantity_size(heap->mapped_bytes).text,
		      COUNT_COLUMN, ss_quantity_count(heap->mapped_count).text);
	if (heap->counted && (heap->counted_maps != heap->mapped_count ||
			      heap->counted_map_bytes != heap->mapped_bytes))
		(void)fprintf(out, "    malloc itself counts %s of these, with %s\n",
			      ss_quantity_count(heap->counted_maps).text,
			      ss_quantity_size(heap->counted_map_bytes).text);
}

static void write_rest(size_t shown, size_t count, const char *thing, FILE *out)
{
	if (shown == count)
		return;
	(void)fprintf(out, "  and %s more\n",
		      ss_quantity_things(count - shown, thing).text);
}

static int compare_sizes(const void *a, const void *b)
{
	const struct ss_heap_size *x = *(const struct ss_heap_size *const *)a;
	const struct ss_heap_size *y = *(const struct ss_heap_size *const *)b;

	return SS_COMPARE(y->bytes, x->bytes) ?: SS_COMPARE(x->min, y->min);
}

static bool write_sizes(const struct ss_heap_input *input,
			const struct ss_format_options *options, FILE *out)
{
	const struct ss_heap *heap = input->heap;
	_cleanup_free_ const struct ss_heap_size **sizes =
		calloc(heap->size_count + 1, sizeof(const struct ss_heap_size *));
	size_t rows = heap->size_count;

	if (!sizes)
		return false;
	for (size_t i = 0; i < heap->size_count; i++)
		sizes[i] = &heap->sizes[i];
	qsort(sizes, heap->size_count, sizeof(const struct ss_heap_size *),
	      compare_sizes);
	if (input->sizes)
		rows = SS_MIN(rows, (size_t)input->sizes);
	write_title("Sizes, by bytes", options, out);
	(void)fprintf(out, "%*s%*s  %s\n", SIZE_COLUMN, "bytes", COUNT_COLUMN,
		      "allocations", "bytes of each");
	for (size_t i = 0; i < rows; i++)
		(void)fprintf(out, "%*s%*s  %s to %s\n", SIZE_COLUMN,
			      ss_quantity_size(sizes[i]->bytes).text, COUNT_COLUMN,
			      ss_quantity_count(sizes[i]->count).text,
			      ss_quantity_count(sizes[i]->min).text,
			      ss_quantity_count(sizes[i]->max).text);
	write_rest(rows, heap->size_count, "size", out);
	return true;
}

static void write_classes(const struct ss_heap_input *input,
			  const struct ss_format_options *options, FILE *out)
{
	const struct ss_heap *heap = input->heap;
	size_t named = 0;
	size_t shown = 0;

	for (size_t i = 0; i < heap->class_count; i++)
		named += heap->classes[i].name != NULL;
	if (named == 0)
		return;
	write_title("C++ classes, by bytes", options, out);
	(void)fprintf(out, "%*s%*s  %s\n", SIZE_COLUMN, "bytes", COUNT_COLUMN, "objects",
		      "class");
	for (size_t i = 0; i < heap->class_count; i++) {
		const struct ss_heap_class *class = &heap->classes[i];
		if (!class->name || (input->classes && shown == input->classes))
			continue;
		shown++;
		(void)fprintf(out, "%*s%*s  ", SIZE_COLUMN,
			      ss_quantity_size(class->bytes).text, COUNT_COLUMN,
			      ss_quantity_count(class->count).text);
		ss_escape_write(class->name, NULL, out);
		(void)fputc_unlocked('\n', out);
	}
	write_rest(shown, named, "class", out);
	if (heap->classes_truncated)
		(void)fputs_unlocked("  There were too many to count all.\n", out);
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void write_error(const struct ss_heap_input *input, FILE *out)
{
	const struct ss_heap *heap = input->heap;
	uint64_t bytes = difference(heap->used_bytes, input->before->used_bytes);
	uint64_t count = difference(heap->used_count, input->before->used_count);

	(void)fputs_unlocked("\nA reading just before this one found ", out);
	if (bytes == 0 && count == 0) {
		(void)fputs_unlocked("the same.\n", out);
		return;
	}
	(void)fprintf(out, "%s%s in use (%.2f %%), in %s%s allocations.\n",
		      ss_quantity_size(bytes).text,
		      heap->used_bytes >= input->before->used_bytes ? " less" : " more",
		      100.0 * (double)bytes / (double)SS_MAX(heap->used_bytes, 1u),
		      ss_quantity_count(count).text,
		      heap->used_count >= input->before->used_count ? " fewer" : " more");
}

struct ss_error *ss_text_write_heap(const struct ss_heap_input *input,
				    const struct ss_format_options *options, FILE *out)
{
	write_summary(input, options, out);
	write_arenas(input->heap, options, out);
	if (!write_sizes(input, options, out))
		return ss_error_no_memory();
	write_classes(input, options, out);
	write_error(input, out);
	if (options->problem)
		(void)fprintf(out, "%s\n", options->problem);
	return NULL;
}
