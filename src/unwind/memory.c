#include "unwind/memory.h"

#include <string.h>
#include <sys/mman.h>

/* A .bss is one area, or a few where parts of it were protected. */
enum { BSS_AREAS_MAX = 3 };

struct ss_images {
	SS_VECTOR(struct ss_image *) items;
	const struct ss_session *session;
};

struct ss_images *ss_images_new(const struct ss_session *session)
{
	struct ss_images *images = calloc(1, sizeof(*images));

	if (images)
		images->session = session;
	return images;
}

void ss_images_free(struct ss_images *images)
{
	if (!images)
		return;
	for (size_t i = 0; i < images->items.count; i++)
		ss_image_free(images->items.items[i]);
	ss_vector_free(&images->items);
	free(images);
}

/* The same bytes: the same build, or the same file without a build-id. What was read
   from memory (the vDSO of every capture) is compared itself. */
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

static struct ss_image *images_get(struct ss_images *images,
				   struct ss_module_impl *module)
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

bool ss_view_init(struct ss_view *view, const struct ss_capture *capture,
		  struct ss_images *images)
{
	*view = (struct ss_view){ .capture = capture, .images = images };
	view->loaded = calloc(capture->modules.count + 1, sizeof(*view->loaded));
	if (!view->loaded)
		return false;
	for (size_t i = 0; i < capture->modules.count; i++)
		view->loaded[i].module = capture->modules.items[i];
	return true;
}

void ss_view_deinit(struct ss_view *view)
{
	free(view->loaded);
	view->loaded = NULL;
}

static bool holds(const struct ss_module *module, uint64_t address)
{
	return address - module->base < module->size;
}

/*
 * Where there are no ELF headers, offsets in the file are all there is to say. If it
 * could not be read, it may have some: the offsets are mostly the addresses in it as
 * well, but programs that are linked to a fixed address are mapped just there, below 4
 * GiB.
 */
static uint64_t probable_bias(const struct ss_module_impl *module)
{
	bool has_bytes = module->fd >= 0 || module->bytes;
	const struct ss_mapping *m = &module->mappings[0];

	if (module->mapping_count == 0 || (!has_bytes && m->start <= UINT32_MAX))
		return 0;
	return m->start - m->offset;
}

static void open_image(struct ss_view *view, struct ss_loaded *loaded)
{
	const struct ss_session *session = view->images->session;

	loaded->opened = true;
	loaded->left_out = session &&
			   ss_session_skips(session, (int32_t)(loaded - view->loaded));
	loaded->image = images_get(view->images, loaded->module);
	if (!loaded->image) {
		loaded->bias = probable_bias(loaded->module);
		return;
	}
	loaded->bias = ss_image_bias(loaded->image, loaded->module);
	if (!loaded->left_out)
		(void)ss_cfi_table_find(loaded->image, &loaded->table); /* or empty */
}

static struct ss_loaded *open_loaded(struct ss_view *view, const struct ss_area *area)
{
	struct ss_loaded *loaded = &view->loaded[area->module];

	if (view->images->session)
		ss_session_note(view->images->session, area->module);
	if (!loaded->opened)
		open_image(view, loaded);
	return loaded;
}

struct ss_loaded *ss_view_find_module(struct ss_view *view, uint64_t address)
{
	if (view->last && holds(&view->last->module->pub, address))
		return (struct ss_loaded *)view->last;
	const struct ss_area *area = ss_capture_find_area(view->capture, address);
	if (!area || area->module < 0)
		return NULL;
	struct ss_loaded *loaded = open_loaded(view, area);
	view->last = loaded;
	return loaded;
}

struct ss_loaded *ss_view_find_data(struct ss_view *view, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(view->capture, address);

	for (int i = 0; area && area->module < 0 && i < BSS_AREAS_MAX; i++) {
		bool first = area == view->capture->areas.items;
		area = first || area[-1].end != area->start ? NULL : area - 1;
	}
	return area && area->module >= 0 ? open_loaded(view, area) : NULL;
}

static bool read_stack(const struct ss_capture_thread *thread, uint64_t address,
		       uint64_t *ret)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &thread->stacks[i];
		uint64_t at = address - copy->address;
		if (copy->size >= 8 && at <= copy->size - 8) {
			memcpy(ret, copy->bytes + at, 8);
			return true;
		}
	}
	return false;
}

bool ss_view_read_word(struct ss_view *view, uint64_t address, uint64_t *ret)
{
	if (read_stack(view->thread, address, ret))
		return true;
	/* The last word of a section may be cut: what is there is what is asked for. */
	*ret = 0;
	if (ss_view_read_code(view, address, ret, sizeof(*ret)) > 0)
		return true;
	view->missing = address;
	return false;
}

size_t ss_view_read_code(struct ss_view *view, uint64_t address, void *bytes, size_t size)
{
	const struct ss_loaded *loaded = ss_view_find_module(view, address);

	if (!loaded || !loaded->image)
		return 0;
	return ss_image_read(loaded->image, address - loaded->bias, bytes, size);
}

uint64_t ss_view_find_function(struct ss_view *view, uint64_t address)
{
	const struct ss_loaded *loaded = ss_view_find_module(view, address);
	uint64_t begin;
	uint64_t fde;

	if (!loaded || !loaded->image ||
	    !ss_cfi_table_search(loaded->image, &loaded->table, address - loaded->bias,
				 &begin, &fde))
		return 0;
	return begin + loaded->bias;
}

bool ss_view_is_code(struct ss_view *view, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(view->capture, address);

	return area && (area->prot & PROT_EXEC);
}

bool ss_view_was_cut(const struct ss_view *view)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &view->thread->stacks[i];
		uint64_t end = copy->address + copy->size;
		/* A frame may be large: the copy's end can be well before its start. */
		if (copy->cut && view->missing + 8 > end &&
		    view->missing < end + (UINT64_C(1) << 30))
			return true;
	}
	return false;
}
