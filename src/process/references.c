#include "process/files.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/search.h"

enum { PAGE = 4096 };

/*
 * Looks at the words of a capture that are in a range. In it there are ranges that contain many
 * words and need but one look; the last one is known.
 */
struct finder {
	const struct ss_capture *capture;
	const struct ss_capture *previous; /* its words need no look, either; or NULL */
	/* Looks at a word, and sets the last range; false: nothing more is to be found. */
	bool (*look)(struct finder *finder, uint64_t word);
	uint64_t low;
	uint64_t size;
	uint64_t last_low;
	uint64_t last_size;
	/* Modules that are not referenced are from first to end - 1. */
	size_t first;
	size_t end;
	bool *referenced;
	bool found;
	uint8_t word; /* bytes of an address */
};

static uint64_t module_end(const struct ss_module_impl *module)
{
	return module->pub.base + module->pub.size;
}

/* Sets the range in which a word may refer to a module that is not referenced yet. False: all are.
   Modules are sorted by address, as maps is. */
static bool narrow(struct finder *f)
{
	struct ss_module_impl *const *modules = f->capture->modules.items;

	while (f->first < f->end && f->referenced[f->first])
		f->first++;
	while (f->first < f->end && f->referenced[f->end - 1])
		f->end--;
	f->low = f->first < f->end ? modules[f->first]->pub.base : 0;
	f->size = f->first < f->end ? module_end(modules[f->end - 1]) - f->low : 0;
	return f->first < f->end;
}

static bool mark_module(struct finder *f, uint64_t address)
{
	struct ss_module_impl *const *modules = f->capture->modules.items;
	size_t low = ss_lower_bound(f->capture->modules.count, i,
				    module_end(modules[i]) <= address);

	f->last_low = low > 0 ? module_end(modules[low - 1]) : 0;
	f->last_size =
		(low < f->capture->modules.count ? modules[low]->pub.base : UINT64_MAX) -
		f->last_low;
	if (low == f->capture->modules.count || address < modules[low]->pub.base)
		return true;
	f->last_low = modules[low]->pub.base;
	f->last_size = modules[low]->pub.size;
	f->referenced[low] = true;
	return narrow(f);
}

static inline bool visit_word(struct finder *f, uint64_t word)
{
	return word - f->low >= f->size || word - f->last_low < f->last_size ||
	       f->look(f, word);
}

static bool visit_words(struct finder *f, const uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at + f->word <= size;) {
		bool whole = f->word == sizeof(uint64_t) && at + SS_WORDS_SIZE <= size;
		size_t end = at + (whole ? SS_WORDS_SIZE : f->word);
		if (whole && !ss_words_any(bytes + at, f->low, f->size))
			at = end;
		for (; at < end; at += f->word) {
			if (!visit_word(f, ss_load_word(bytes, at, f->word)))
				return false;
		}
	}
	return true;
}

static bool visit_stack(struct finder *f, const struct ss_stack_copy *stack)
{
	const size_t word = f->word;
	size_t size;

	for (size_t at = (word - stack->address % word) % word; at + word <= stack->size;
	     at += size) {
		size = SS_MIN(PAGE - (stack->address + at) % PAGE, stack->size - at);
		bool present = !stack->absent || (stack->address + at) % PAGE != 0 ||
			       ss_stack_copy_present(stack, at) > 0;
		if (present && !visit_words(f, stack->bytes + at, size))
			return false;
	}
	return true;
}

static bool visit_thread(struct finder *f, const struct ss_capture_thread *thread)
{
	uint64_t value;

	for (unsigned reg = 0; reg < SS_REG_MAX; reg++) {
		if (ss_regs_get(&thread->regs, reg, &value) && !visit_word(f, value))
			return false;
	}
	for (size_t s = 0; s < SS_STACK_COPIES; s++) {
		if (!visit_stack(f, &thread->stacks[s]))
			return false;
	}
	if (thread->lock.size > 0 && !visit_word(f, thread->lock.address))
		return false;
	for (size_t i = 0; i < thread->live_count; i++) {
		if (!visit_word(f, thread->live[i].pc))
			return false;
	}
	return true;
}

/* Whether the previous capture has the same words of that thread. */
static bool is_visited(const struct finder *f, const struct ss_capture_thread *thread)
{
	const struct ss_capture_thread *before =
		f->previous ? ss_capture_find_thread(f->previous, thread->tid) : NULL;

	return before && thread->block && thread->live_count == 0 &&
	       before->block == thread->block &&
	       before->lock.address == thread->lock.address &&
	       memcmp(&before->regs, &thread->regs, sizeof(thread->regs)) == 0;
}

static void visit_threads(struct finder *f)
{
	for (size_t i = 0; i < f->capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &f->capture->threads.items[i];
		if (!is_visited(f, thread) && !visit_thread(f, thread))
			return;
	}
}

static bool have_same_modules(const struct ss_capture *a, const struct ss_capture *b)
{
	size_t count = a->modules.count;

	return count == b->modules.count &&
	       (count == 0 || memcmp(a->modules.items, b->modules.items,
				     count * sizeof(*a->modules.items)) == 0);
}

/* A library with a table for debuggers, which describes objects that no stack refers to:
   runtime/python/python.h. */
static bool is_for_runtime(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && strncmp(slash + 1, "_asyncio.", strlen("_asyncio.")) == 0;
}

void ss_references_mark(const struct ss_capture *capture,
			const struct ss_capture *previous, bool *referenced)
{
	bool same = previous && have_same_modules(capture, previous);
	struct finder f = { .capture = capture,
			    .word = capture->arch->word,
			    .previous = same ? previous : NULL,
			    .look = mark_module,
			    .end = capture->modules.count,
			    .referenced = referenced };

	if (narrow(&f))
		visit_threads(&f);
	for (size_t i = 0; i < capture->modules.count; i++)
		referenced[i] |= is_for_runtime(capture->modules.items[i]->pub.path);
}

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

static bool find_jit(struct finder *f, uint64_t word)
{
	const struct ss_area *area = ss_capture_find_area(f->capture, word);

	if (!area)
		return true;
	f->found = is_jit(f->capture, area);
	f->last_low = area->start;
	f->last_size = area->end - area->start;
	return !f->found;
}

/* The range with JIT code, which is empty in most processes. */
static void find_jit_range(struct finder *f)
{
	for (size_t i = 0; i < f->capture->areas.count; i++) {
		const struct ss_area *area = &f->capture->areas.items[i];
		if (!is_jit(f->capture, area))
			continue;
		if (f->size == 0)
			f->low = area->start;
		f->size = area->end - f->low;
	}
}

bool ss_references_find_jit(const struct ss_capture *capture)
{
	struct finder f = { .capture = capture,
			    .word = capture->arch->word,
			    .look = find_jit };

	find_jit_range(&f);
	if (f.size > 0)
		visit_threads(&f);
	return f.found;
}
