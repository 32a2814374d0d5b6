/* A version, and the memory from address 0x1000 on, which begins with the list of goroutines and
   the map of the heap;
   or a Go program. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

static void read_ranges(void *data, struct ss_memory_range *ranges, size_t count)
{
	const struct ss_memory *memory = data;

	for (size_t i = 0; i < count; i++)
		ranges[i].done = memory->read(memory, ranges[i].address, ranges[i].bytes,
					      ranges[i].size);
}

static bool check(void *data, pid_t tid)
{
	(void)data;
	(void)tid;
	return true;
}

/* The memory is mapped, and its first word after the list leads to the heap. */
static void find_unwakeable(struct ss_go_program *program, struct fuzz_memory *input,
			    struct ss_go_goroutines *found)
{
	struct ss_area area = { .start = BASE,
				.end = BASE + input->size,
				.prot = PROT_READ | PROT_WRITE,
				.module = -1,
				.name = "" };
	struct ss_capture_thread thread = { .tid = 1 };
	struct ss_capture capture = { .arch = &ss_arch_x86_64,
				      .process = { .mode = SS_MODE_AUTO,
						   .consistent = true },
				      .not_swapped = true };

	ss_regs_set(&thread.regs, ss_arch_x86_64.sp, BASE + input->size / 2);
	capture.areas.items = &area;
	capture.threads.items = &thread;
	capture.areas.count = capture.threads.count = 1;
	program->heap[0] = BASE + 24;
	program->heap_count = 1;
	const struct ss_go_process process = { .capture = &capture,
					       .program = program,
					       .read_ranges = read_ranges,
					       .check = check,
					       .read_data = &input->memory };
	ss_go_find_unwakeable(&process, found);
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
	const unsigned minor = 19 + data[0] % 9;
	struct ss_go_program program = { .minor = minor,
					 .layout = ss_go_layout_find(minor) };
	FUZZ_REQUIRE(program.layout);
	struct fuzz_memory input = fuzz_memory(BASE, data + 8, size - 8);
	FUZZ_REQUIRE(
		ss_go_goroutines_read(&program, BASE, &input.memory, &gathered, &found));
	find_unwakeable(&program, &input, &found);
	for (size_t i = 0; i < found.items.count; i++) {
		const struct ss_go_goroutine *one = &found.items.items[i];
		FUZZ_REQUIRE(one->id > 0 && one->stack_low < one->stack_high);
		FUZZ_REQUIRE(!one->endless || one->status == SS_STATUS_WAITING);
		FUZZ_REQUIRE(i == 0 || one->id >= found.items.items[i - 1].id);
		if (one->wait_reason)
			fuzz_touch(one->wait_reason, strlen(one->wait_reason));
	}
	FUZZ_REQUIRE(!found.problem || found.items.count == 0);
	ss_go_goroutines_deinit(&found);
	return 0;
}
