/* A gather plan, followed by the memory from address 0x1000 on. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fuzz.h"
#include "fuzz_memory.h"
#include "data/capture.h"
#include "data/gather.h"

enum { BASE = 0x1000 };

struct input {
	struct ss_gather_source source;
	const uint8_t *bytes;
	size_t size;
};

static void read_input(const struct ss_gather_source *source, struct ss_piece *pieces,
		       size_t count)
{
	const struct input *input = (const struct input *)source;

	for (size_t i = 0; i < count; i++) {
		pieces[i].done = fuzz_copy(pieces[i].bytes, pieces[i].size, input->bytes,
					   input->size, pieces[i].address - BASE);
	}
}

static bool find_base(const struct ss_gather_source *source, size_t thread,
		      const struct ss_gather_step *step, uint64_t *ret)
{
	(void)source;
	*ret = BASE + 8 * thread + step->parent;
	return true;
}

static void check_blocks(const struct ss_gathered *gathered)
{
	uint64_t end = 0;

	for (size_t i = 0; i < gathered->blocks.count; i++) {
		const struct ss_memory_block *block = &gathered->blocks.items[i];
		FUZZ_REQUIRE(block->size > 0 && block->address >= end);
		end = block->address + block->size;
		fuzz_touch(block->bytes, block->size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_gather_plan plan = {};
	size_t used = SS_MIN(size, offsetof(struct ss_gather_plan, roots));
	struct input input = { .source = { .read = read_input,
					   .find_base = find_base,
					   .thread_count = 3 },
			       .bytes = data + used,
			       .size = size - used };
	struct ss_capture capture = {};
	struct ss_gather *gather = NULL;

	memcpy(&plan, data, used);
	plan.size = sizeof(plan); /* else nearly all inputs end here */
	plan.root_count %= 4;
	for (size_t i = 0; i < plan.root_count; i++)
		plan.roots[i].address = 0x1000 + 64 * i;
	plan.max_nodes %= 1 << 16;
	plan.max_bytes %=
		1 << 20; /* reserving more would take longer than everything else */
	struct ss_error *error = ss_gather_new(&plan, true, &gather);
	ss_error_free(error);
	if (error)
		return 0;
	ss_gather_run(gather, &input.source);
	FUZZ_REQUIRE(gather->node_count <= plan.max_nodes);
	FUZZ_REQUIRE(gather->used <= plan.max_bytes);
	FUZZ_REQUIRE(gather->reads <= plan.max_reads);
	ss_error_free(ss_gather_give(gather, &capture.gathered));
	check_blocks(&capture.gathered);
	ss_gathered_deinit(&capture.gathered);
	ss_gather_free(gather);
	return 0;
}
