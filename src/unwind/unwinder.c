#include "unwind/unwinder.h"

#include <string.h>
#include <sys/mman.h>

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

enum {
	WORD = 8,
	PAGE = 4096,
	/* libgcc's writable data: 8 KiB in all versions for 64 bits */
	DATA_MAX = 4 * PAGE,
	OBJECTS_MAX = 1024,
	SECTION_MAX = 64 << 10, /* of one object: hundreds of functions */
	NODES_MAX = 4096,
	BYTES_MAX = 8 << 20,
	READS_MAX = 256,
	CIE_LENGTH_MAX = 256,
};

/* struct object of libgcc's unwind-dw2-fde.h, up to GCC 12 (Debian 12). From GCC 13 on
   there is a tree in its place. */
enum {
	OBJECT_FRAMES = 24, /* the section; if it was used: a sorted vector */
	OBJECT_NEXT = 40,
	OBJECT_SIZE = 48,
};

static bool is_libgcc(const struct ss_module_impl *module)
{
	const char *slash = strrchr(module->pub.path, '/');

	return slash && strncmp(slash, "/libgcc_s.so", strlen("/libgcc_s.so")) == 0;
}

/* The data of libgcc that can be written, which has the heads of the lists. */
static const struct ss_area *find_data(const struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->areas.count; i++) {
		const struct ss_area *area = &capture->areas.items[i];
		if ((area->prot & PROT_WRITE) && !area->shared && area->module >= 0 &&
		    is_libgcc(capture->modules.items[area->module]))
			return area;
	}
	return NULL;
}

static bool has_jit_code(const struct ss_snapshot *snapshot)
{
	for (size_t t = 0; t < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); t++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, t);
		for (size_t i = 0; i < thread->frame_count; i++) {
			const struct ss_frame *frame =
				ss_snapshot_frame(snapshot, thread, i);
			if (!frame->module && frame->area &&
			    strcmp(frame->area, "[jit]") == 0)
				return true;
		}
	}
	return false;
}

/* The start of .bss, where the heads are. What precedes it are pointers to elsewhere. */
static uint64_t find_bss(const struct ss_capture *capture, const struct ss_area *data)
{
	struct ss_module_impl *module = capture->modules.items[data->module];
	_cleanup_(ss_image_cleanup) struct ss_image *image = ss_image_new(module);

	for (size_t i = 0; image && i < image->segment_count; i++) {
		const struct ss_segment *segment = &image->segments[i];
		uint64_t end =
			segment->address + segment->size + ss_image_bias(image, module);
		if ((segment->flags & PF_W) && end >= data->start && end < data->end)
			return (end + WORD - 1) & ~(uint64_t)(WORD - 1);
	}
	return data->start;
}

static void make_plan(const struct ss_capture *capture, const struct ss_area *data,
		      struct ss_gather_plan *ret)
{
	uint64_t start = find_bss(capture, data);
	const struct ss_gather_step steps[] = {
		{ .base = SS_GATHER_ADDRESS,
		  .address = start,
		  .size = (uint32_t)SS_MIN(data->end - start, (uint64_t)DATA_MAX),
		  .max_nodes = 1 },
		/* Each word may be the head of a list. */
		{ .base = SS_GATHER_POINTER,
		  .parent = 0,
		  .stride = WORD,
		  .size = OBJECT_SIZE,
		  .next = OBJECT_NEXT,
		  .max_nodes = OBJECTS_MAX },
		{ .base = SS_GATHER_POINTER,
		  .parent = 1,
		  .field = OBJECT_FRAMES,
		  .size = SECTION_MAX,
		  .max_nodes = 1 },
		/* The first word of a vector. */
		{ .base = SS_GATHER_POINTER,
		  .parent = 2,
		  .size = SECTION_MAX,
		  .max_nodes = 1 },
	};

	*ret = (struct ss_gather_plan){ .size = sizeof(*ret),
					.step_count = SS_ARRAY_SIZE(steps),
					.max_nodes = NODES_MAX,
					.max_bytes = BYTES_MAX,
					.max_reads = READS_MAX };
	for (size_t i = 0; i < SS_ARRAY_SIZE(steps); i++) {
		ret->steps[i] = steps[i];
		ret->steps[i].mask = UINT64_MAX;
	}
}

/* Whether a thread that has run since, or may have, is in JIT code. */
static bool is_stale(const struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->threads.count; i++) {
		if (capture->threads.items[i].stopped_ns > 0)
			return true;
	}
	return false;
}

/* Whether a section begins with a CIE. */
static bool is_section(const struct ss_memory *memory, uint64_t address)
{
	uint8_t head[9]; /* length, 0, version */
	uint32_t length;
	uint32_t id;

	if (!ss_memory_read(memory, address, head, sizeof(head)))
		return false;
	memcpy(&length, head, sizeof(length));
	memcpy(&id, head + sizeof(length), sizeof(id));
	return length >= 9 && length <= CIE_LENGTH_MAX && id == 0 &&
	       (head[8] == 1 || head[8] == 3);
}

static bool add_section(struct ss_registered *registered, uint64_t address)
{
	for (size_t i = 0; i < registered->sections.count; i++) {
		if (registered->sections.items[i] == address)
			return true;
	}
	uint64_t *slot = ss_vector_push(&registered->sections);
	if (slot)
		*slot = address;
	return slot != NULL;
}

/* Adds the sections of a list, if it is one. */
static bool add_list(struct ss_registered *registered, const struct ss_memory *memory,
		     uint64_t object, size_t *left)
{
	for (; object && *left > 0; (*left)--) {
		uint64_t frames;
		uint64_t first;
		if (!ss_memory_read_u64(memory, object + OBJECT_FRAMES, &frames))
			return true;
		if (!is_section(memory, frames) &&
		    ss_memory_read_u64(memory, frames, &first))
			frames = first;
		if (is_section(memory, frames) && !add_section(registered, frames))
			return false;
		if (!ss_memory_read_u64(memory, object + OBJECT_NEXT, &object))
			return true;
	}
	return true;
}

/* False without memory. */
static bool registered_init(struct ss_registered *registered,
			    const struct ss_capture *capture)
{
	struct ss_capture_memory memory;
	const struct ss_area *data = capture->gathered.blocks.count ? find_data(capture) :
								      NULL;
	size_t left = OBJECTS_MAX;
	uint64_t word;

	ss_capture_memory_init(&memory, capture, NULL);
	for (uint64_t at = data ? data->start : 0;
	     data && at < data->end && at - data->start < DATA_MAX; at += WORD) {
		if (ss_memory_read_u64(&memory.memory, at, &word) &&
		    !add_list(registered, &memory.memory, word, &left))
			return false;
	}
	return true;
}

static void registered_deinit(struct ss_registered *registered)
{
	ss_vector_free(&registered->sections);
}

enum ss_jit_plan ss_snapshot_plan_jit(const struct ss_snapshot *snapshot,
				      const struct ss_capture *capture,
				      struct ss_gather_plan *ret)
{
	_cleanup_(registered_deinit) struct ss_registered registered = {};
	const struct ss_area *data = find_data(capture);

	if (!data || !has_jit_code(snapshot))
		return SS_JIT_NONE;
	make_plan(capture, data, ret);
	if (capture->gathered.blocks.count == 0)
		return SS_JIT_LOOK;
	if (!capture->gathered.late || !registered_init(&registered, capture) ||
	    registered.sections.count == 0 || !is_stale(capture))
		return SS_JIT_NONE;
	return SS_JIT_CAPTURE;
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
	if (!ctx->modules || !registered_init(&ctx->registered, capture))
		return false;
	if (!capture->modules_identified)
		identify_modules(capture, images->session);
	return true;
}

void ss_context_deinit(struct ss_unwind_context *ctx)
{
	registered_deinit(&ctx->registered);
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

	if (stack->size >= sizeof(uint64_t) && at <= stack->size - sizeof(uint64_t)) {
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
	uint64_t at = address - stack->address;

	if (ctx->words)
		note_word(ctx, address);
	/* Most reads. */
	if (stack->size >= sizeof(*ret) && at <= stack->size - sizeof(*ret) &&
	    !stack->absent) {
		memcpy(ret, stack->bytes + at, sizeof(*ret));
		return true;
	}
	if (ss_memory_read_u64(&ctx->stacks.memory, address, ret))
		return true;
	/* The last word of a section may be truncated: the rest reads as 0. */
	*ret = 0;
	if (!ss_capture_thread_lacks(ctx->thread, address) &&
	    ss_context_read_code(ctx, address, ret, sizeof(*ret)) > 0)
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

static bool is_sigreturn(struct ss_unwind_context *ctx, uint64_t pc)
{
	uint8_t code[SS_SIGRETURN_SIZE];
	size_t n = ss_context_read_code(ctx, pc, code, sizeof(code));

	return ctx->arch->is_sigreturn(code, n);
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
		fact->sigreturn = is_sigreturn(ctx, address);
		fact->return_address = is_in_code(ctx, address) &&
				       (fact->sigreturn || follows_call(ctx, address));
	}
	return fact;
}

bool ss_context_is_sigreturn(struct ss_unwind_context *ctx, uint64_t pc)
{
	return pc && find_fact(ctx, pc)->sigreturn;
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
		if (copy->truncated && ctx->missing + 8 > end &&
		    ctx->missing < end + (UINT64_C(1) << 30))
			return true;
	}
	return false;
}
