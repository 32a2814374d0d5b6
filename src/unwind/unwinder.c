#include "unwind/unwinder.h"

#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "elf/cfi_table.h"
#include "elf/elffile.h"
#include "elf/image.h"
#include "data/capture.h"
#include "data/pipeline.h"
#include "data/snapshot.h"
#include "data/gather.h"

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
	ss_hash_deinit(&images->rows.table);
	ss_vector_free(&images->rows.cached);
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

/* The image of a module. NULL: it has no bytes, or is no ELF file of a processor that is
   supported, or there is no memory. */
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

/* A .bss is one area, or a few where parts of it were protected. */
enum { BSS_AREAS_MAX = 3 };

/* Identifies all modules that have bytes. */
static void identify_modules(const struct ss_capture *capture,
			     const struct ss_session *session)
{
	for (size_t i = 0; i < capture->modules.count; i++) {
		struct ss_module_impl *module = capture->modules.items[i];
		if ((module->fd < 0 && !module->bytes) ||
		    (session && ss_session_skips(session, (int32_t)i)))
			continue;
		if (session)
			ss_session_note(session, (int32_t)i);
		ss_module_identify(module);
	}
	if (session)
		ss_session_note(session, -1);
}

bool ss_context_init(struct ss_unwind_context *ctx, const struct ss_capture *capture,
		     struct ss_images *images)
{
	*ctx = (struct ss_unwind_context){ .arch = capture->arch,
					   .capture = capture,
					   .images = images,
					   .calls.steps_left = SS_CALL_STEPS };
	ctx->modules = calloc(capture->modules.count + 1, sizeof(*ctx->modules));
	if (!ctx->modules)
		return false;
	if (!capture->modules_identified)
		identify_modules(capture, images->session);
	return true;
}

void ss_context_deinit(struct ss_unwind_context *ctx)
{
	ss_registered_deinit(&ctx->registered);
	free(ctx->modules);
	ctx->modules = NULL;
}

void ss_context_set_thread(struct ss_unwind_context *ctx,
			   const struct ss_capture_thread *thread)
{
	ctx->thread = thread;
	ss_capture_memory_init(&ctx->stacks, ctx->capture, thread);
}

static bool contains(const struct ss_module *module, uint64_t address)
{
	return address - module->base < module->size;
}

static void open_image(struct ss_unwind_context *ctx, struct ss_loaded_module *loaded)
{
	const struct ss_session *session = ctx->images->session;

	loaded->opened = true;
	loaded->module = ctx->capture->modules.items[loaded - ctx->modules];
	loaded->skipped = session &&
			  ss_session_skips(session, (int32_t)(loaded - ctx->modules));
	loaded->image = images_get(ctx->images, loaded->module);
	if (loaded->image && loaded->image->arch != ctx->arch)
		loaded->image = NULL;
	if (!loaded->image) {
		loaded->bias = ss_module_guess_bias(
			loaded->module, loaded->module->fd >= 0 || loaded->module->bytes);
		return;
	}
	loaded->bias = ss_image_bias(loaded->image, loaded->module);
	if (!loaded->skipped)
		(void)ss_cfi_table_find(loaded->image, &loaded->table); /* or empty */
}

static struct ss_loaded_module *open_module(struct ss_unwind_context *ctx,
					    const struct ss_area *area)
{
	struct ss_loaded_module *loaded = &ctx->modules[area->module];

	if (ctx->images->session)
		ss_session_note(ctx->images->session, area->module);
	if (!loaded->opened)
		open_image(ctx, loaded);
	return loaded;
}

struct ss_loaded_module *ss_context_find_module(struct ss_unwind_context *ctx,
						uint64_t address)
{
	if (ctx->last && contains(&ctx->last->module->pub, address))
		return ctx->last;
	const struct ss_area *area = ss_capture_find_area(ctx->capture, address);
	if (!area || area->module < 0)
		return NULL;
	struct ss_loaded_module *loaded = open_module(ctx, area);
	ctx->last = loaded;
	return loaded;
}

struct ss_loaded_module *ss_context_find_data(struct ss_unwind_context *ctx,
					      uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(ctx->capture, address);

	for (int i = 0; area && area->module < 0 && i < BSS_AREAS_MAX; i++) {
		bool first = area == ctx->capture->areas.items;
		area = first || area[-1].end != area->start ? NULL : area - 1;
	}
	return area && area->module >= 0 ? open_module(ctx, area) : NULL;
}

/* Past the end of a copy that was truncated there is nothing, whatever is there. */
static void note_word(struct ss_unwind_context *ctx, uint64_t address)
{
	const struct ss_stack_copy *stack = &ctx->thread->stacks[0];
	uint64_t at = address - stack->address;

	if (stack->size >= ctx->arch->word && at <= stack->size - ctx->arch->word) {
		uint64_t *slot = ss_vector_push(&ctx->words->addresses);
		ctx->words->failed |= !slot;
		if (slot)
			*slot = address;
	} else {
		ctx->words->others |= !stack->truncated || at < stack->size;
	}
}

bool ss_context_read_word(struct ss_unwind_context *ctx, uint64_t address, uint64_t *ret)
{
	const struct ss_stack_copy *stack = &ctx->thread->stacks[0];
	const size_t word = ctx->arch->word;
	uint64_t at = address - stack->address;

	if (ctx->words)
		note_word(ctx, address);
	/* Most reads. */
	if (stack->size >= word && at <= stack->size - word && !stack->absent) {
		*ret = ss_load_word(stack->bytes, at, word);
		return true;
	}
	*ret = 0;
	if (ss_memory_read(&ctx->stacks.memory, address, ret, word))
		return true;
	/* The last word of a section may be truncated: the rest reads as 0. */
	*ret = 0;
	if (!ss_capture_thread_lacks(ctx->thread, address) &&
	    ss_context_read_code(ctx, address, ret, word) > 0)
		return true;
	ctx->missing = address;
	return false;
}

size_t ss_context_read_code(struct ss_unwind_context *ctx, uint64_t address, void *bytes,
			    size_t size)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(ctx, address);

	if (!loaded || !loaded->image)
		return 0;
	return ss_image_read(loaded->image, address - loaded->bias, bytes, size);
}

uint64_t ss_context_find_function(struct ss_unwind_context *ctx, uint64_t address)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(ctx, address);
	uint64_t begin;
	uint64_t fde;

	if (!loaded || !loaded->image ||
	    !ss_cfi_table_search(loaded->image, &loaded->table, address - loaded->bias,
				 &begin, &fde))
		return 0;
	return begin + loaded->bias;
}

bool ss_context_find_extent(struct ss_unwind_context *ctx, uint64_t address,
			    uint64_t *start, uint64_t *end)
{
	const struct ss_loaded_module *loaded = ss_context_find_module(ctx, address);
	struct ss_cfi_entry entry;

	if (!loaded || !loaded->image ||
	    ss_cfi_entry_find(loaded->image, &loaded->table, address - loaded->bias,
			      &entry) != SS_CFI_FOUND)
		return false;
	*start = entry.start + loaded->bias;
	*end = entry.end + loaded->bias;
	return true;
}

bool ss_context_is_code(struct ss_unwind_context *ctx, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(ctx->capture, address);

	return area && (area->prot & PROT_EXEC);
}

static const struct ss_sigframe *find_sigframe(struct ss_unwind_context *ctx, uint64_t pc)
{
	uint8_t code[SS_SIGRETURN_SIZE];
	size_t n = ss_context_read_code(ctx, pc, code, sizeof(code));

	return ctx->arch->find_sigframe(code, n);
}

/* JIT code is in no file and cannot be read: being executable must suffice. */
static bool follows_call(struct ss_unwind_context *ctx, uint64_t address)
{
	uint8_t code[SS_CALL_MAX];
	size_t n = ss_context_read_code(ctx, address - sizeof(code), code, sizeof(code));

	return n == 0 || (n == sizeof(code) && ctx->arch->is_call(code, n));
}

/* Whether the byte at an address is code, and the one before. */
static bool is_in_code(struct ss_unwind_context *ctx, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(ctx->capture, address);

	return area && (area->prot & PROT_EXEC) && address >= SS_CALL_MAX &&
	       (address > area->start || ss_context_is_code(ctx, address - 1));
}

static struct ss_code_fact *slot_of(struct ss_unwind_context *ctx, uint64_t address)
{
	return &ctx->facts[ss_hash_tag(address) % SS_ARRAY_SIZE(ctx->facts)];
}

static const struct ss_code_fact *find_fact(struct ss_unwind_context *ctx,
					    uint64_t address)
{
	struct ss_code_fact *fact = slot_of(ctx, address);

	if (fact->address != address) {
		fact->address = address;
		fact->sigframe = find_sigframe(ctx, address);
		fact->return_address = is_in_code(ctx, address) &&
				       (fact->sigframe || follows_call(ctx, address));
	}
	return fact;
}

const struct ss_sigframe *ss_context_find_sigframe(struct ss_unwind_context *ctx,
						   uint64_t pc)
{
	return pc ? find_fact(ctx, pc)->sigframe : NULL;
}

/* Most words of a stack are no addresses of code. */
bool ss_context_is_return_address(struct ss_unwind_context *ctx, uint64_t address)
{
	return address &&
	       (slot_of(ctx, address)->address == address || is_in_code(ctx, address)) &&
	       find_fact(ctx, address)->return_address;
}

uint64_t ss_context_strip(struct ss_unwind_context *ctx, uint64_t address)
{
	uint64_t mask = ctx->arch->pac_mask;

	return (address & mask) && !ss_context_is_code(ctx, address) ? address & ~mask :
								       address;
}

bool ss_context_was_truncated(const struct ss_unwind_context *ctx)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &ctx->thread->stacks[i];
		uint64_t end = copy->address + copy->size;
		/* A frame may be large and begin well beyond the end of the copy. */
		if (copy->truncated && ctx->missing + ctx->arch->word > end &&
		    ctx->missing < end + (UINT64_C(1) << 30))
			return true;
	}
	return false;
}
