#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/image.h"

/* Of so many modules, each with an open file; the oldest one gives way. */
enum { KEPT_MAX = 32 };

struct kept {
	struct ss_module_impl *module; /* one reference */
	const char *const *names;
	uint64_t bias;
	struct ss_elf_symbol *symbols; /* NULL: it does not have the first one */
};

struct kept_symbols {
	struct kept items[KEPT_MAX];
	size_t next;
};

static void clear_kept(struct kept *kept)
{
	ss_module_unref(kept->module);
	free(kept->symbols);
	*kept = (struct kept){};
}

static void free_kept_symbols(void *data)
{
	struct kept_symbols *all = data;

	for (size_t i = 0; i < KEPT_MAX; i++)
		clear_kept(&all->items[i]);
	free(all);
}

static const struct kept *find_kept(const struct ss_session_slot *slot,
				    const struct ss_module_impl *module,
				    const char *const *names)
{
	const struct kept_symbols *all = slot->data;

	for (size_t i = 0; all && i < KEPT_MAX; i++) {
		const struct kept *kept = &all->items[i];
		if (kept->module == module && kept->names == names)
			return kept;
	}
	return NULL;
}

/* It is no error if it cannot be kept. symbols: NULL if there are none. */
static void keep(struct ss_session_slot *slot, struct ss_module_impl *module,
		 const char *const *names, size_t count,
		 const struct ss_elf_symbol *symbols, uint64_t bias)
{
	_cleanup_free_ struct ss_elf_symbol *copy = NULL;

	if (symbols) {
		copy = calloc(count, sizeof(*copy));
		if (!copy)
			return;
		memcpy(copy, symbols, count * sizeof(*copy));
	}
	if (!slot->data)
		*slot = (struct ss_session_slot){
			.data = calloc(1, sizeof(struct kept_symbols)),
			.free = free_kept_symbols,
		};
	struct kept_symbols *all = slot->data;
	if (!all)
		return;
	struct kept *kept = &all->items[all->next];
	all->next = (all->next + 1) % KEPT_MAX;
	clear_kept(kept);
	*kept = (struct kept){ .module = ss_module_ref(module),
			       .names = names,
			       .bias = bias,
			       .symbols = take_ptr(copy) };
}

bool ss_module_symbols_find(const struct ss_runtime_process *process, int32_t index,
			    const char *const *names, size_t count, const char *section,
			    struct ss_elf_symbol *ret, uint64_t *ret_bias)
{
	struct ss_module_impl *module = process->capture->modules.items[index];
	_cleanup_(ss_image_cleanup) struct ss_image *image = NULL;

	if (ss_session_skips(process->session, index))
		return false;
	const struct kept *kept = find_kept(process->symbols, module, names);
	if (kept) {
		if (kept->symbols)
			memcpy(ret, kept->symbols, count * sizeof(*ret));
		*ret_bias = kept->bias;
		return kept->symbols != NULL;
	}
	ss_session_note(process->session, index);
	if ((ss_elf_find_symbols(module, names, count, ret) && ret[0].address) ||
	    (section && ss_elf_find_hidden_symbols(module, section, names, count, ret)))
		image = ss_image_new(module);
	if (image)
		*ret_bias = ss_image_bias(image, module);
	ss_session_note(process->session, -1);
	keep(process->symbols, module, names, count, image ? ret : NULL,
	     image ? *ret_bias : 0);
	return image != NULL;
}

bool ss_module_section_find(const struct ss_runtime_process *process, int32_t index,
			    const char *name, struct ss_elf_symbol *ret)
{
	struct ss_module_impl *module = process->capture->modules.items[index];
	_cleanup_(ss_image_cleanup) struct ss_image *image = NULL;
	struct ss_elf_symbol found;

	if (ss_session_skips(process->session, index))
		return false;
	ss_session_note(process->session, index);
	if (ss_elf_find_section_address(module, name, &found))
		image = ss_image_new(module);
	if (image)
		found.address += ss_image_bias(image, module);
	ss_session_note(process->session, -1);
	if (image)
		*ret = found;
	return image != NULL;
}
