#include "sample/modules.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "elf/elffile.h"

struct ss_error *ss_build_ids_read(void *data, struct ss_worker_page *page, int output)
{
	const struct ss_build_id_batch *batch = data;

	for (size_t i = 0; i < batch->count; i++) {
		struct ss_module_impl *module = batch->modules[i];
		struct ss_build_id_answer answer = { .module = (uint32_t)i };
		if (module->identified)
			continue;
		page->module = (int32_t)i;
		ss_module_identify(module);
		answer.size = (uint32_t)module->build_id_size;
		memcpy(answer.build_id, module->build_id, module->build_id_size);
		if (write(output, &answer, sizeof(answer)) != sizeof(answer))
			return ss_error_new_errno(errno, "no room for build-ids");
	}
	return NULL;
}
