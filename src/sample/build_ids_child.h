/*
 * The side of build_ids.c that runs in a confined child: it reads ELF files.
 */
#ifndef SS_SAMPLE_BUILD_IDS_CHILD_H
#define SS_SAMPLE_BUILD_IDS_CHILD_H

#include "data/module.h"
#include "sandbox/child.h"

struct ss_build_id_batch {
	struct ss_module_impl *const *modules;
	size_t count;
};

/* What the child writes for each module of the batch that is not identified. */
struct ss_build_id_answer {
	uint32_t module; /* its index in the batch */
	uint32_t size;	 /* 0: it has no build-id */
	uint8_t build_id[SS_BUILD_ID_MAX];
};

/* An ss_child_work; data is a struct ss_build_id_batch. */
struct ss_error *ss_build_ids_read(void *data, struct ss_child_page *page, int output);

#endif
