#include "symbolize/functions.h"

#include <fcntl.h>
#include <stdlib.h>

#include "elf/cfi_entry.h"
#include "elf/image.h"

enum { FIRST_FD = STDERR_FILENO + 1 };

struct ss_functions {
	struct ss_image *image;
	struct ss_cfi_table table; /* empty if there is only .debug_frame */
};

struct ss_functions *ss_functions_new(const struct ss_elf *elf)
{
	_cleanup_(ss_functions_cleanup) struct ss_functions *functions =
		calloc(1, sizeof(*functions));
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new(elf->path ? elf->path : "", 0, elf->size);

	if (!functions || !module || elf->fd < 0)
		return NULL;
	module->fd = fcntl(elf->fd, F_DUPFD_CLOEXEC, FIRST_FD);
	functions->image = module->fd >= 0 ? ss_image_new(module) : NULL;
	if (!functions->image)
		return NULL;
	(void)ss_cfi_table_find(functions->image, &functions->table);
	return take_ptr(functions);
}

void ss_functions_free(struct ss_functions *functions)
{
	if (!functions)
		return;
	ss_image_free(functions->image);
	free(functions);
}

bool ss_functions_find(struct ss_functions *functions, uint64_t address, uint64_t *ret)
{
	struct ss_cfi_entry entry;

	if (ss_cfi_entry_find(functions->image, &functions->table, address, &entry) !=
	    SS_CFI_FOUND)
		return false;
	*ret = entry.start;
	return true;
}
