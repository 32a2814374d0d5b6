#include "unwind/images.h"

#include <string.h>

#include "unwind/cfi_rows.h"

struct ss_images *ss_images_new(const struct ss_session *session)
{
	struct ss_images *images = calloc(1, sizeof(*images));

	if (!images)
		return NULL;
	images->session = session;
	images->rows = ss_cfi_rows_new();
	if (!images->rows) {
		free(images);
		return NULL;
	}
	return images;
}

void ss_images_free(struct ss_images *images)
{
	if (!images)
		return;
	for (size_t i = 0; i < images->items.count; i++)
		ss_image_free(images->items.items[i]);
	ss_vector_free(&images->items);
	ss_cfi_rows_free(images->rows);
	free(images);
}

/* Whether two modules have the same bytes: the same build, or the same file without a
   build-id. Images from memory (the vDSO of every capture) are compared byte by byte. */
static bool same_bytes(const struct ss_module_impl *a, const struct ss_module_impl *b)
{
	if (a == b)
		return true;
	if (a->build_id_size != b->build_id_size || (a->fd < 0) != (b->fd < 0))
		return false;
	if (a->fd < 0)
		return a->bytes && b->bytes && a->size == b->size &&
		       memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
		       memcmp(a->bytes, b->bytes, a->size) == 0;
	if (a->build_id_size)
		return memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
	return a->device == b->device && a->inode == b->inode &&
	       strcmp(a->pub.path, b->pub.path) == 0;
}

struct ss_image *ss_images_get(struct ss_images *images, struct ss_module_impl *module)
{
	for (size_t i = 0; i < images->items.count; i++) {
		if (same_bytes(images->items.items[i]->module, module))
			return images->items.items[i];
	}
	struct ss_image *image = ss_image_new(module);
	struct ss_image **slot = image ? ss_vector_push(&images->items) : NULL;
	if (!slot) {
		ss_image_free(image);
		return NULL;
	}
	image->session = images->session;
	return *slot = image;
}
