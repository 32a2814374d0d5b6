#include "unwind/unwinder.h"

#include <elf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "data/gather.h"
#include "elf/elffile.h"
#include "elf/tables.h"

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

/*
 * Lists of libgcc
 */

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

static void add_steps(struct ss_gather_plan *plan, const struct ss_gather_step *steps,
		      size_t count)
{
	const uint32_t first = plan->step_count;

	for (size_t i = 0; i < count && plan->step_count < SS_GATHER_STEPS_MAX; i++) {
		struct ss_gather_step *step = &plan->steps[plan->step_count++];
		*step = steps[i];
		step->mask = UINT64_MAX;
		if (step->base == SS_GATHER_POINTER)
			step->parent += first;
	}
}

static void plan_lists(const struct ss_capture *capture, const struct ss_area *data,
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

	add_steps(ret, steps, SS_ARRAY_SIZE(steps));
}

/* Whether a thread that has run since, or may have, is in JIT code. */
static bool is_stale(const struct ss_capture *capture)
{
	return ss_any(capture->threads.count, i,
		      capture->threads.items[i].stopped_ns > 0);
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

static bool add_lists(struct ss_registered *registered, const struct ss_capture *capture,
		      const struct ss_memory *memory)
{
	const struct ss_area *data = find_data(capture);
	size_t left = OBJECTS_MAX;
	uint64_t word;

	for (uint64_t at = data ? data->start : 0;
	     data && at < data->end && at - data->start < DATA_MAX; at += WORD) {
		if (ss_memory_read_u64(memory, at, &word) &&
		    !add_list(registered, memory, word, &left))
			return false;
	}
	return true;
}

/*
 * Images for debuggers: https://sourceware.org/gdb/current/onlinedocs/gdb.html/JIT-Interface.html
 */

static const char *const descriptor_name = "__jit_debug_descriptor";

/* struct jit_descriptor and struct jit_code_entry, on 64-bit processors. */
enum {
	DESCRIPTOR_FIRST = 16,
	DESCRIPTOR_SIZE = 24,
	ENTRY_NEXT = 0,
	ENTRY_FILE = 16,
	ENTRY_FILE_SIZE = 24,
	ENTRY_SIZE = 32,
	DESCRIPTORS_MAX = 4, /* modules with a compiler */
	IMAGES_MAX = 1024,
	IMAGE_MAX = 1 << 20,	  /* bytes */
	NAMES_SIZE_MAX = 4 << 20, /* of the text of all names */
};

struct descriptors {
	uint64_t addresses[DESCRIPTORS_MAX];
	size_t count;
};

static void find_descriptor(struct ss_module_impl *module, struct descriptors *ret)
{
	_cleanup_(ss_image_cleanup) struct ss_image *image = NULL;
	struct ss_elf_symbol symbol;

	if (ss_elf_find_symbols(module, &descriptor_name, 1, &symbol) && symbol.address)
		image = ss_image_new(module);
	if (image)
		ret->addresses[ret->count++] =
			symbol.address + ss_image_bias(image, module);
}

static void find_descriptors(const struct ss_capture *capture,
			     const struct ss_session *session, struct descriptors *ret)
{
	*ret = (struct descriptors){};
	for (size_t i = 0; i < capture->modules.count && ret->count < DESCRIPTORS_MAX;
	     i++) {
		if (session && ss_session_skips(session, (int32_t)i))
			continue;
		if (session)
			ss_session_note(session, (int32_t)i);
		find_descriptor(capture->modules.items[i], ret);
	}
	if (session)
		ss_session_note(session, -1);
}

static void plan_images(uint64_t descriptor, struct ss_gather_plan *ret)
{
	const struct ss_gather_step steps[] = {
		{ .base = SS_GATHER_ADDRESS,
		  .address = descriptor,
		  .size = DESCRIPTOR_SIZE,
		  .max_nodes = 1 },
		{ .base = SS_GATHER_POINTER,
		  .parent = 0,
		  .field = DESCRIPTOR_FIRST,
		  .size = ENTRY_SIZE,
		  .next = ENTRY_NEXT,
		  .max_nodes = IMAGES_MAX },
		{ .base = SS_GATHER_POINTER,
		  .parent = 1,
		  .field = ENTRY_FILE,
		  .size = IMAGE_MAX,
		  .count_size = WORD,
		  .count_field = ENTRY_FILE_SIZE,
		  .element = 1,
		  .max_nodes = 1 },
	};

	add_steps(ret, steps, SS_ARRAY_SIZE(steps));
}

/* Where the code is that an image describes. False: nowhere. */
static bool find_code(const struct ss_elf *elf, struct ss_jit_image *ret)
{
	const uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;

	ret->start = UINT64_MAX;
	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		uint64_t end;
		if ((section->sh_flags & flags) != flags || section->sh_addr == 0 ||
		    __builtin_add_overflow(section->sh_addr, section->sh_size, &end))
			continue;
		ret->start = SS_MIN(ret->start, section->sh_addr);
		ret->end = SS_MAX(ret->end, end);
	}
	return ret->start < ret->end;
}

/* One that cannot be read is left out. False without memory. */
static bool add_image(struct ss_registered *registered, const struct ss_memory *memory,
		      uint64_t address, uint64_t size)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = NULL;
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new("[jit]", 0, 0);
	struct ss_jit_image image = {};

	if (!module)
		return false;
	module->bytes = malloc(size);
	if (!module->bytes)
		return false;
	module->size = size;
	if (ss_memory_read(memory, address, module->bytes, size))
		elf = ss_elf_from_module(module);
	if (!elf || !find_code(elf, &image))
		return true;
	struct ss_jit_image *slot = ss_vector_push(&registered->images);
	if (!slot)
		return false;
	*slot = image;
	slot->frames = ss_cfi_index_debug_frame(module);
	slot->module = take_ptr(module);
	return true;
}

bool ss_registered_add_images(struct ss_registered *registered,
			      const struct ss_memory *memory, uint64_t descriptor)
{
	size_t left = BYTES_MAX;
	uint64_t entry;

	if (!ss_memory_read_u64(memory, descriptor + DESCRIPTOR_FIRST, &entry))
		return true;
	for (size_t i = 0; entry && i < IMAGES_MAX; i++) {
		uint8_t bytes[ENTRY_SIZE];
		if (!ss_memory_read(memory, entry, bytes, sizeof(bytes)))
			return true;
		const uint64_t size = ss_load_u64(bytes, ENTRY_FILE_SIZE);
		if (size > left)
			return true;
		left -= size;
		if (size >= sizeof(Elf64_Ehdr) && size <= IMAGE_MAX &&
		    !add_image(registered, memory, ss_load_u64(bytes, ENTRY_FILE), size))
			return false;
		entry = ss_load_u64(bytes, ENTRY_NEXT);
	}
	return true;
}

bool ss_registered_open(struct ss_registered *registered,
			const struct ss_capture *capture,
			const struct ss_session *session)
{
	struct ss_capture_memory memory;
	struct descriptors descriptors;

	if (registered->opened)
		return true;
	registered->opened = true;
	if (capture->gathered.blocks.count == 0)
		return true;
	ss_capture_memory_init(&memory, capture, NULL);
	find_descriptors(capture, session, &descriptors);
	bool ok = add_lists(registered, capture, &memory.memory);
	for (size_t i = 0; ok && i < descriptors.count; i++)
		ok = ss_registered_add_images(registered, &memory.memory,
					      descriptors.addresses[i]);
	return ok;
}

void ss_registered_deinit(struct ss_registered *registered)
{
	for (size_t i = 0; i < registered->images.count; i++) {
		ss_module_unref(registered->images.items[i].module);
		ss_cfi_index_free(registered->images.items[i].frames);
	}
	ss_vector_free(&registered->images);
	ss_vector_free(&registered->sections);
}

/* The symbols of an image, as lines of a perf map. */
static void write_symbols(const struct ss_elf *elf, const Elf64_Shdr *table,
			  struct ss_buffer *out)
{
	const Elf64_Shdr *strings = ss_elf_section(elf, table->sh_link);
	_cleanup_free_ Elf64_Sym *symbols = ss_elf_copy_symbols(elf, table);
	_cleanup_free_ char *names = strings ? ss_elf_copy_section(elf, strings) : NULL;

	for (size_t i = 0; symbols && names && out->size < NAMES_SIZE_MAX &&
			   i < ss_elf_symbol_count(elf, table);
	     i++) {
		const Elf64_Sym *symbol = &symbols[i];
		const Elf64_Shdr *section = ss_elf_section(elf, symbol->st_shndx);
		const char *name =
			symbol->st_name < strings->sh_size ? names + symbol->st_name : "";
		const uint64_t base =
			section && elf->header.e_type == ET_REL ? section->sh_addr : 0;
		const size_t size = strnlen(name, NAME_MAX);
		if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !section || size == 0 ||
		    size == NAME_MAX || memchr(name, '\n', size) ||
		    memchr(name, '\r', size))
			continue;
		ss_buffer_printf(out, "%" PRIx64 " %" PRIx64 " %s\n",
				 base + symbol->st_value, symbol->st_size, name);
	}
}

bool ss_registered_add_names(const struct ss_registered *registered,
			     struct ss_snapshot *snapshot)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	_cleanup_(ss_module_cleanup) struct ss_module_impl *file = NULL;

	for (size_t i = 0; i < registered->images.count; i++) {
		_cleanup_(ss_elf_cleanup) struct ss_elf *elf =
			ss_elf_from_module(registered->images.items[i].module);
		size_t k = 0;
		while (elf && k < elf->section_count &&
		       elf->sections[k].sh_type != SHT_SYMTAB)
			k++;
		if (elf && k < elf->section_count)
			write_symbols(elf, &elf->sections[k], &text);
	}
	if (text.size == 0 && !text.failed)
		return true;
	file = text.failed ? NULL : ss_module_new("[jit]", 0, 0);
	struct ss_perf_map_file *slot = file ? ss_vector_push(&snapshot->perf_maps) :
					       NULL;
	if (!slot)
		return false;
	file->size = text.size;
	file->bytes = (uint8_t *)take_ptr(text.bytes);
	*slot = (struct ss_perf_map_file){ .file = take_ptr(file),
					   .stable_size = UINT64_MAX };
	return true;
}

enum ss_jit_plan ss_snapshot_plan_jit(const struct ss_snapshot *snapshot,
				      const struct ss_capture *capture,
				      const struct ss_session *session,
				      struct ss_gather_plan *ret)
{
	_cleanup_(ss_registered_deinit) struct ss_registered registered = {};
	const struct ss_area *data = NULL;
	struct descriptors descriptors;

	if (!has_jit_code(snapshot))
		return SS_JIT_NONE;
	*ret = (struct ss_gather_plan){ .size = sizeof(*ret),
					.max_nodes = NODES_MAX,
					.max_bytes = BYTES_MAX,
					.max_reads = READS_MAX };
	data = find_data(capture);
	if (data)
		plan_lists(capture, data, ret);
	if (capture->gathered.blocks.count == 0) {
		find_descriptors(capture, session, &descriptors);
		for (size_t i = 0; i < descriptors.count; i++)
			plan_images(descriptors.addresses[i], ret);
		return ret->step_count ? SS_JIT_LOOK : SS_JIT_NONE;
	}
	/* Code of lists comes and goes. */
	if (!capture->gathered.late || !data ||
	    !ss_registered_open(&registered, capture, session) ||
	    registered.sections.count == 0 || !is_stale(capture))
		return SS_JIT_NONE;
	return SS_JIT_CAPTURE;
}
