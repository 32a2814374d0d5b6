#include "target/references.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "base/search.h"

enum { PAGE = 4096 };

/* The address range of the module or gap that contains the last word: usually it
   contains the next one, too. */
struct marker {
	const struct ss_capture *capture;
	bool *referenced;
	uint64_t low;
	uint64_t high;
};

/* Modules are sorted by address, as maps is. */
static void find_interval(struct marker *m, uint64_t address)
{
	struct ss_module_impl *const *modules = m->capture->modules.items;
	size_t low =
		ss_lower_bound(m->capture->modules.count, i,
			       modules[i]->pub.base + modules[i]->pub.size <= address);

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
	m->referenced[low] = true;
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

/* Called for each word of a capture until it returns false. */
typedef bool word_visitor(void *data, uint64_t word);

static bool visit_stack(const struct ss_stack_copy *stack, word_visitor *visit,
			void *data)
{
	for (size_t at = (8 - stack->address % 8) % 8; at + 8 <= stack->size; at += 8) {
		uint64_t word;
		if (stack->absent && (stack->address + at) % PAGE == 0 &&
		    ss_stack_copy_present(stack, at) == 0) {
			at += PAGE - 8;
			continue;
		}
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

	for (unsigned reg = 0; reg < ss_arch_host.reg_count; reg++) {
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

void ss_references_mark(const struct ss_capture *capture, bool *referenced)
{
	struct marker m = { .capture = capture, .referenced = referenced };

	visit_words(capture, mark_word, &m);
}

/* The address range without JIT code that contains the last word. */
struct jit_finder {
	const struct ss_capture *capture;
	uint64_t low;
	uint64_t high;
	bool found;
};

/* Whether a file is not an ELF file: .NET writes compiled code to such files. Four bytes
   are compared; nothing in them is interpreted. */
static bool is_no_elf(const struct ss_module_impl *module)
{
	char magic[SELFMAG];

	return ss_module_read(module, 0, magic, sizeof(magic)) == sizeof(magic) &&
	       memcmp(magic, ELFMAG, sizeof(magic)) != 0;
}

/* The vsyscall page belongs to the kernel. */
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

/* Most processes have no JIT code: do not search their stacks. */
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
