#include "unwind/registered.h"

#include <string.h>
#include <sys/mman.h>

#include "elf/cfi_entry.h"
#include "elf/image.h"
#include "model/capture_memory.h"
#include "model/pipeline.h"
#include "model/snapshot.h"

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
	for (size_t t = 0; t < ss_snapshot_thread_count(snapshot); t++) {
		const struct ss_thread *thread = ss_snapshot_thread(snapshot, t);
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

enum ss_jit_plan ss_snapshot_plan_jit(const struct ss_snapshot *snapshot,
				      const struct ss_capture *capture,
				      struct ss_gather_plan *ret)
{
	_cleanup_(ss_registered_deinit) struct ss_registered registered = {};
	const struct ss_area *data = find_data(capture);

	if (!data || !has_jit_code(snapshot))
		return SS_JIT_NONE;
	make_plan(capture, data, ret);
	if (capture->gathered.blocks.count == 0)
		return SS_JIT_LOOK;
	if (!capture->gathered.late || !ss_registered_init(&registered, capture) ||
	    registered.sections.count == 0 || !is_stale(capture))
		return SS_JIT_NONE;
	return SS_JIT_CAPTURE;
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

bool ss_registered_init(struct ss_registered *registered,
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

void ss_registered_deinit(struct ss_registered *registered)
{
	ss_vector_free(&registered->sections);
}
