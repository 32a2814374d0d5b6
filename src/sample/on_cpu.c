#include "sample/gathers.h"

#include <stdlib.h>

#include "base/search.h"

static int compare_times(const void *a, const void *b)
{
	const struct ss_on_cpu_sample *x = a;
	const struct ss_on_cpu_sample *y = b;

	return (x->clock.time_ns > y->clock.time_ns) -
	       (x->clock.time_ns < y->clock.time_ns);
}

/* Without room the sample has no stack. */
static void take_stack(struct ss_on_cpu_sample *sample, const struct ss_cpu_clock *clock,
		       struct ss_arena *arena)
{
	const struct ss_clock_sample *from = &sample->clock;
	struct ss_regs regs;

	if (from->stack_size == 0)
		return;
	ss_arch_host.attach->regs(&from->kernel, &regs);
	uint8_t *bytes = ss_arena_take(arena, from->stack_size);
	if (!bytes || !ss_cpu_clock_copy_stack(clock, bytes, from->stack_size))
		return;
	sample->stack =
		(struct ss_stack_copy){ .address = ss_regs_sp(&ss_arch_host, &regs),
					.size = from->stack_size,
					.bytes = bytes,
					.truncated = from->truncated };
}

/* Without room the sample has none. */
static void take_copies(struct ss_on_cpu_sample *sample,
			const struct ss_sample_reader *reader, struct ss_arena *arena)
{
	const size_t used = arena->used;
	uint8_t *bytes = reader->is_open ? ss_arena_take(arena, SS_GATHER_RECORD_SIZE) :
					   NULL;

	if (!bytes)
		return;
	sample->copies = bytes;
	sample->copied = ss_sample_reader_find(reader, &sample->clock, bytes,
					       &sample->copies_size);
	if (!sample->copied)
		sample->copies_size = 0;
	arena->used = used + (sample->copies_size + 15) / 16 * 16;
}

bool ss_on_cpu_collect(struct ss_on_cpu *on_cpu, struct ss_cpu_clock *clock,
		       const struct ss_sample_reader *reader, struct ss_arena *arena,
		       bool (*wanted)(void *data, pid_t pid), void *data)
{
	struct ss_clock_sample sample;
	bool ok = true;

	on_cpu->samples.count = 0;
	ss_arena_empty(arena);
	while (ss_cpu_clock_next(clock, &sample)) {
		if (!ok || !wanted(data, sample.pid))
			continue;
		struct ss_on_cpu_sample *slot = ss_vector_push(&on_cpu->samples);
		ok = slot;
		if (!slot)
			continue;
		slot->clock = sample;
		take_stack(slot, clock, arena);
		take_copies(slot, reader, arena);
	}
	ss_arena_keep(arena);
	if (on_cpu->samples.count > 1)
		qsort(on_cpu->samples.items, on_cpu->samples.count,
		      sizeof(*on_cpu->samples.items), compare_times);
	return ok;
}

void ss_on_cpu_deinit(struct ss_on_cpu *on_cpu)
{
	ss_vector_free(&on_cpu->samples);
}

static bool is_in_tick(const struct ss_on_cpu_sample *items, size_t begin, size_t end,
		       const struct ss_clock_sample *sample)
{
	for (size_t i = begin; i < end; i++) {
		if (items[i].clock.cpu == sample->cpu ||
		    items[i].clock.tid == sample->tid)
			return true;
	}
	return false;
}

size_t ss_on_cpu_tick_end(const struct ss_on_cpu *on_cpu, size_t begin, uint64_t until_ns)
{
	const struct ss_on_cpu_sample *items = on_cpu->samples.items;
	size_t end = begin;

	while (end < on_cpu->samples.count && items[end].clock.time_ns < until_ns &&
	       !is_in_tick(items, begin, end, &items[end].clock))
		end++;
	return end;
}

size_t ss_on_cpu_tick_begin(const struct ss_on_cpu *on_cpu, size_t first, size_t end)
{
	const struct ss_on_cpu_sample *items = on_cpu->samples.items;
	size_t begin = end;

	while (begin > first && !is_in_tick(items, begin, end, &items[begin - 1].clock))
		begin--;
	return begin;
}

size_t ss_on_cpu_find(const struct ss_on_cpu *on_cpu, uint64_t time_ns)
{
	return ss_lower_bound(on_cpu->samples.count, i,
			      on_cpu->samples.items[i].clock.time_ns < time_ns);
}
