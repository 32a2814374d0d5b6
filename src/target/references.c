#include "target/references.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

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

static bool mark_word(void *data, uint64_t word)
{
	struct marker *m = data;

	if (word - m->low >= m->high - m->low)
		find_interval(m, word);
	return true;
}

/* Called with words of a capture until it says that there is enough. */
typedef bool word_visitor(void *data, uint64_t word);

static bool visit_stack(const struct ss_stack_copy *stack, word_visitor *visit,
			void *data)
{
	for (size_t at = (8 - stack->address % 8) % 8; at + 8 <= stack->size; at += 8) {
		uint64_t word;
		memcpy(&word, stack->bytes + at, sizeof(word));
		if (!visit(data, word))
			return false;
	}
	return true;
}

static bool visit_thread(const struct ss_capture_thread *thread, word_visitor *visit,
			 void *data)
{
	uint64_t value;

	for (unsigned reg = 0; reg < ss_arch.reg_count; reg++) {
		if (ss_regs_get(&thread->regs, reg, &value) && !visit(data, value))
			return false;
	}
	for (size_t s = 0; s < SS_STACK_COPIES; s++) {
		if (!visit_stack(&thread->stacks[s], visit, data))
			return false;
	}
	if (thread->lock.size > 0 && !visit(data, thread->lock.address))
		return false;
	for (size_t f = 0; f < thread->live_count; f++) {
		if (!visit(data, thread->live[f].pc))
			return false;
	}
	return true;
}

static void visit_words(const struct ss_capture *capture, word_visitor *visit, void *data)
{
	for (size_t i = 0; i < capture->threads.count; i++) {
		if (!visit_thread(&capture->threads.items[i], visit, data))
			return;
	}
}

void ss_references_mark(const struct ss_capture *capture, bool *wanted)
{
	struct marker m = { .capture = capture, .wanted = wanted };

	visit_words(capture, mark_word, &m);
}

/* The interval of addresses without such code that the last word fell into. */
struct jit_finder {
	const struct ss_capture *capture;
	uint64_t low;
	uint64_t high;
	bool found;
};

/* A file that is none of code: .NET puts what it compiles into such. */
static bool is_no_elf(const struct ss_module_impl *module)
{
	char magic[SELFMAG];

	return ss_module_read(module, 0, magic, sizeof(magic)) == sizeof(magic) &&
	       memcmp(magic, ELFMAG, sizeof(magic)) != 0;
}

/* The page for system calls of old is the kernel's. */
static bool is_jit(const struct ss_capture *capture, const struct ss_area *area)
{
	if (!(area->prot & PROT_EXEC) || strcmp(area->name, "[vsyscall]") == 0)
		return false;
	return area->module < 0 || is_no_elf(capture->modules.items[area->module]);
}

static bool find_jit(void *data, uint64_t word)
{
	struct jit_finder *finder = data;

	if (word - finder->low < finder->high - finder->low)
		return true;
	const struct ss_area *area = ss_capture_find_area(finder->capture, word);
	if (!area)
		return true;
	finder->found = is_jit(finder->capture, area);
	finder->low = area->start;
	finder->high = area->end;
	return !finder->found;
}

/* Most processes have none, and their stacks need not be looked through. */
static bool has_jit(const struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->areas.count; i++) {
		if (is_jit(capture, &capture->areas.items[i]))
			return true;
	}
	return false;
}

bool ss_references_find_jit(const struct ss_capture *capture)
{
	struct jit_finder finder = { .capture = capture };

	if (has_jit(capture))
		visit_words(capture, find_jit, &finder);
	return finder.found;
}
