/*
 * The ELF images of a session, one for each file, and the CFI rows that were read from
 * them. Captures of the same program share them.
 */
#ifndef SS_UNWIND_IMAGES_H
#define SS_UNWIND_IMAGES_H

#include "base/vector.h"
#include "elf/image.h"

struct ss_cfi_rows;

struct ss_images {
	SS_VECTOR(struct ss_image *) items;
	struct ss_cfi_rows *rows;
	const struct ss_session *session; /* where debug files are; NULL: nowhere */
};

/* NULL without memory. */
struct ss_images *ss_images_new(const struct ss_session *session);
void ss_images_free(struct ss_images *images);

/* The image of a module. NULL: it has no bytes, or is no ELF file of a processor that is
   supported, or there is no memory. */
struct ss_image *ss_images_get(struct ss_images *images, struct ss_module_impl *module);

#endif
