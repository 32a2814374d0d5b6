/* A version, and the memory from address 0x1000 on, which begins with the list of goroutines;
   or a Go program. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_memory.h"
#include "runtime/go/goroutines.h"

enum { BASE = 0x1000 };

static void find_program(const uint8_t *data, size_t size)
{
	_cleanup_(ss_module_cleanup) struct ss_module_impl *module =
		ss_module_new("fuzz", 0x400000, 0x600000);

	FUZZ_REQUIRE(module);
	module->bytes = malloc(size);
	FUZZ_REQUIRE(module->bytes);
	memcpy(module->bytes, data, size);
	module->size = size;
	_cleanup_(ss_image_cleanup) struct ss_image *image = ss_image_new(module);
	if (!image)
		return;
	const struct ss_go_program *program = ss_go_program_find(image);
	FUZZ_REQUIRE(ss_go_program_find(image) == program);
	if (!program)
		return;
	FUZZ_REQUIRE(program->layout || program->problem);
	fuzz_touch(program->version, strlen(program->version));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_gathered gathered = {};
	struct ss_go_goroutines found;

	if (size < 8)
		return 0;
	if (memcmp(data, "\177ELF", 4) == 0) {
		find_program(data, size);
		return 0;
	}
	const struct ss_go_program program = { .layout = ss_go_layout_find(19 +
									   data[0] % 9) };
	FUZZ_REQUIRE(program.layout);
	const struct fuzz_memory input = fuzz_memory(BASE, data + 8, size - 8);
	FUZZ_REQUIRE(
		ss_go_goroutines_read(&program, BASE, &input.memory, &gathered, &found));
	for (size_t i = 0; i < found.items.count; i++) {
		const struct ss_go_goroutine *one = &found.items.items[i];
		FUZZ_REQUIRE(one->id > 0 && one->stack_low < one->stack_high);
		FUZZ_REQUIRE(i == 0 || one->id >= found.items.items[i - 1].id);
		if (one->wait_reason)
			fuzz_touch(one->wait_reason, strlen(one->wait_reason));
	}
	FUZZ_REQUIRE(!found.problem || found.items.count == 0);
	ss_go_goroutines_deinit(&found);
	return 0;
}
