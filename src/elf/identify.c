#include "elf/identify.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "elf/build_id.h"

static ssize_t read_header(void *data, uint64_t position, void *bytes, size_t size)
{
	const struct ss_module_impl *module = data;

	if (position >= module->header_size)
		return 0;
	size_t n = SS_MIN(size, module->header_size - (size_t)position);
	memcpy(bytes, module->header + position, n);
	return (ssize_t)n;
}

static ssize_t read_module(void *data, uint64_t position, void *bytes, size_t size)
{
	return ss_module_read(data, position, bytes, size);
}

/* Finds the build-id of the mapped image, without its file. */
static size_t find_mapped(struct ss_module_impl *module, uint8_t ret[SS_BUILD_ID_MAX])
{
	if (module->build_id_size) {
		memcpy(ret, module->build_id, module->build_id_size);
		return module->build_id_size;
	}
	return ss_build_id_find(read_header, module, SS_LAYOUT_MEMORY, ret,
				SS_BUILD_ID_MAX);
}

/* Closes the file unless it has the build-id of the mapped image. */
static void verify(struct ss_module_impl *module)
{
	uint8_t mapped[SS_BUILD_ID_MAX];
	uint8_t file[SS_BUILD_ID_MAX];
	size_t mapped_size = find_mapped(module, mapped);
	size_t file_size =
		ss_build_id_find(read_module, module, SS_LAYOUT_FILE, file, sizeof(file));

	if (mapped_size && mapped_size == file_size &&
	    memcmp(mapped, file, mapped_size) == 0)
		return;
	close_cleanup(&module->fd);
	module->fd = -1;
	ss_module_set_problem(module, mapped_size ? "another build is at its path now" :
						    "another file is at its path now");
	if (mapped_size && !module->build_id_size)
		(void)ss_module_set_build_id(module, mapped, mapped_size); /* or none */
}

static void identify(struct ss_module_impl *module)
{
	uint8_t id[SS_BUILD_ID_MAX];

	if (module->fd >= 0 && module->unverified)
		verify(module);
	if (module->build_id_size)
		return;
	size_t size =
		ss_build_id_find(read_module, module, SS_LAYOUT_FILE, id, sizeof(id));
	if (size)
		(void)ss_module_set_build_id(module, id, size); /* or none is known */
}

void ss_module_identify(struct ss_module_impl *module)
{
	(void)pthread_mutex_lock(&module->identify_lock); /* cannot fail */
	if (!module->identified)
		identify(module);
	module->identified = true;
	(void)pthread_mutex_unlock(&module->identify_lock);
}
