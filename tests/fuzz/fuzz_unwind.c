/*
 * Unwinds one thread with its stack, its registers and the module that it runs in. The
 * input is four 16-bit numbers (pc as an offset in the module, sp and fp as offsets in the
 * stack, and a 16th of the size of the stack), the stack, and the file of the module, which
 * also determines the processor.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz.h"
#include "data/capture.h"

#define MODULE_BASE UINT64_C(0x10000000)
#define STACK_BASE UINT64_C(0x7ffff0000000)

struct input {
	uint16_t pc;
	uint16_t sp;
	uint16_t fp;
	uint16_t stack;
};

static void add_area(struct ss_capture *capture, uint64_t start, uint64_t size,
		     unsigned prot, int32_t module)
{
	struct ss_area *area = ss_vector_push(&capture->areas);

	FUZZ_REQUIRE(area);
	*area = (struct ss_area){ .start = start,
				  .end = start + (size + 4095) / 4096 * 4096,
				  .prot = prot,
				  .module = module,
				  .name = module < 0 ? "[stack]" : "fuzz" };
}

static void add_module(struct ss_capture *capture, const uint8_t *bytes, size_t size)
{
	uint64_t end = MODULE_BASE + (size + 4095) / 4096 * 4096;
	struct ss_module_impl *module = ss_module_new("fuzz", MODULE_BASE, end);
	struct ss_module_impl **slot = ss_vector_push(&capture->modules);
	struct ss_mapping mapping = { .start = MODULE_BASE,
				      .end = end,
				      .prot = PROT_READ | PROT_EXEC };

	FUZZ_REQUIRE(module && slot && ss_module_add_mapping(module, &mapping));
	module->bytes = malloc(size ? size : 1);
	FUZZ_REQUIRE(module->bytes);
	memcpy(module->bytes, bytes, size);
	module->size = size;
	*slot = module;
	add_area(capture, MODULE_BASE, size, mapping.prot, 0);
}

static const struct ss_arch *choose_arch(const uint8_t *bytes, size_t size)
{
	const struct ss_arch *arch = NULL;
	Elf64_Ehdr header;

	if (size >= sizeof(header)) {
		memcpy(&header, bytes, sizeof(header));
		arch = ss_arch_find(header.e_machine, ELFCLASS64);
	}
	return arch ? arch : &ss_arch_host;
}

/* The copy is exactly as large as the stack, so that reads beyond it are detected. */
static void add_thread(struct ss_capture *capture, const struct input *input,
		       const uint8_t *stack, size_t size)
{
	struct ss_capture_thread *thread = ss_vector_push(&capture->threads);

	FUZZ_REQUIRE(thread);
	add_area(capture, STACK_BASE, 65536, PROT_READ | PROT_WRITE, -1);
	thread->tid = 1;
	thread->state = 'S';
	thread->syscall.number = -1;
	thread->stacks[0] = (struct ss_stack_copy){ .address = STACK_BASE,
						    .size = size,
						    .bytes = stack,
						    .truncated = size % 32 == 0 };
	const struct ss_arch *arch = capture->arch;
	ss_arch_regs_blocked(arch, MODULE_BASE + input->pc, STACK_BASE + input->sp, NULL,
			     &thread->regs);
	if (arch->link != SS_REG_NONE)
		ss_regs_set(&thread->regs, arch->link, MODULE_BASE + input->fp);
	/* Unknown for a thread that was not stopped. */
	thread->fragile = input->fp % 2;
	if (!thread->fragile)
		ss_regs_set(&thread->regs, arch->fp, STACK_BASE + input->fp);
}

static void read_all(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);

		for (size_t k = 0; k < thread->frame_count; k++)
			fuzz_touch(ss_snapshot_frame(snapshot, thread, k),
				   sizeof(struct ss_frame));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .max_frames = 200 };
	struct ss_session *session = NULL;
	struct ss_snapshot *snapshot = NULL;
	struct input input;

	if (size < sizeof(input))
		return 0;
	memcpy(&input, data, sizeof(input));
	data += sizeof(input);
	size -= sizeof(input);

	size_t stack_size = SS_MIN((size_t)input.stack * 16, size);
	uint8_t *stack = malloc(stack_size ? stack_size : 1);
	struct ss_capture *capture = ss_capture_new();

	FUZZ_REQUIRE(stack && capture && !ss_session_new(NULL, &session));
	memcpy(stack, data, stack_size);
	capture->arch = choose_arch(data + stack_size, size - stack_size);
	add_module(capture, data + stack_size, size - stack_size);
	add_thread(capture, &input, stack, stack_size);
	FUZZ_REQUIRE(!ss_capture_unwind(capture, session, &options, &snapshot));
	ss_capture_free(capture);
	free(stack);
	ss_session_free(session);
	read_all(snapshot);
	ss_snapshot_free(snapshot);
	return 0;
}
