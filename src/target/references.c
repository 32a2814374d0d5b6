#include "target/references.h"

#include <string.h>

/* The interval of addresses, a module's or the gap between two, that the last word
   fell into: the next one mostly does again. */
struct marker {
	const struct ss_capture *capture;
	bool *wanted;
	uint64_t low;
	uint64_t high;
};

/* Modules are in the order of their addresses, as maps is. */
static void find_interval(struct marker *m, uint64_t address)
{
	size_t low = 0;
	size_t high = m->capture->modules.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct ss_module *module = &m->capture->modules.items[middle]->pub;
		if (module->base + module->size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	m->low = 0;
	m->high = UINT64_MAX;
	if (low > 0) {
		const struct ss_module *below = &m->capture->modules.items[low - 1]->pub;
		m->low = below->base + below->size;
	}
	if (low == m->capture->modules.count)
		return;
	const struct ss_module *module = &m->capture->modules.items[low]->pub;
	if (address < module->base) {
		m->high = module->base;
		return;
	}
	m->wanted[low] = true;
	m->low = module->base;
	m->high = module->base + module->size;
}

static void mark_word(struct marker *m, uint64_t word)
{
	if (word - m->low >= m->high - m->low)
		find_interval(m, word);
}

static void mark_stack(struct marker *m, const struct ss_stack_copy *stack)
{
	for (size_t at = (8 - stack->address % 8) % 8; at + 8 <= stack->size; at += 8) {
		uint64_t word;
		memcpy(&word, stack->bytes + at, sizeof(word));
		mark_word(m, word);
	}
}

void ss_references_mark(const struct ss_capture *capture, bool *wanted)
{
	struct marker m = { .capture = capture, .wanted = wanted };

	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		uint64_t value;
		for (unsigned reg = 0; reg < ss_arch.reg_count; reg++) {
			if (ss_regs_get(&thread->regs, reg, &value))
				mark_word(&m, value);
		}
		for (size_t s = 0; s < SS_STACK_COPIES; s++)
			mark_stack(&m, &thread->stacks[s]);
		if (thread->lock.size > 0)
			mark_word(&m, thread->lock.address);
		for (size_t f = 0; f < thread->live_count; f++)
			mark_word(&m, thread->live[f].pc);
	}
}
