/*
 * Guesses: stacks of code without unwind tables, over a module with handmade functions. Only calls
 * and jumps tell which of the words on a stack are return addresses of its frames.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <elf.h>
#include <sys/mman.h>

#include "data/capture.h"
#include "data/module.h"
#include "data/session.h"
#include "unwind/unwinder.h"

#define BASE UINT64_C(0x100000)
#define OTHER UINT64_C(0x900000)
#define STACK UINT64_C(0x7fff0000)

enum {
	BODY = 0x4000,
	WORDS = 64,
	LEAF = 0x100,
	MIDDLE = 0x200,
	OUTER = 0x300,
	STRAY = 0x400
};

/* A program that consists of text. */
struct file {
	Elf64_Ehdr header;
	Elf64_Phdr program;
	uint8_t pad[0x100 - sizeof(Elf64_Ehdr) - sizeof(Elf64_Phdr)];
	uint8_t text[BODY];
};

static struct file file;
static uint64_t words[WORDS];
static struct ss_session *session;
static struct ss_capture *capture;

/* The address of a place in the text. */
static uint64_t text(uint64_t at)
{
	return BASE + offsetof(struct file, text) + at;
}

static uint64_t at(size_t index)
{
	return STACK + index * 8;
}

/* Writes "call" (0xe8) or "jmp" (0xe9), and returns the address after it. */
static uint64_t lead(uint8_t code, uint64_t from, uint64_t to)
{
	const int32_t relative = (int32_t)(to - from - 5);

	file.text[from] = code;
	memcpy(&file.text[from + 1], &relative, sizeof(relative));
	return text(from + 5);
}

/* Writes "call *%rax". */
static uint64_t call_any(uint64_t from)
{
	memcpy(&file.text[from], "\xff\xd0", 2);
	return text(from + 2);
}

static void add_area(uint64_t start, uint64_t size, unsigned prot, int32_t module)
{
	struct ss_area *area = ss_vector_push(&capture->areas);

	*area = (struct ss_area){ .start = start,
				  .end = start + size,
				  .prot = prot,
				  .module = module,
				  .name = ss_intern_string(capture->strings, "") };
}

static void add_module(uint64_t base, const char *path)
{
	struct ss_module_impl *module = ss_module_new(path, base, base + sizeof(file));
	const struct ss_mapping mapping = { .start = base, .end = base + sizeof(file) };

	assert_true(ss_module_add_mapping(module, &mapping));
	module->bytes = malloc(sizeof(file));
	memcpy(module->bytes, &file, sizeof(file));
	module->size = sizeof(file);
	add_area(base, sizeof(file), PROT_READ | PROT_EXEC,
		 (int32_t)capture->modules.count);
	*ss_vector_push(&capture->modules) = module;
}

/* A process with a thread at pc, whose stack is words. */
static void make_capture(uint64_t pc)
{
	capture = ss_capture_new();
	add_module(BASE, "/a");
	add_module(OTHER, "/b");
	add_area(STACK, 1 << 20, PROT_READ | PROT_WRITE, -1);
	struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
	*thread = (struct ss_capture_thread){ .tid = 7, .state = 'S' };
	thread->stacks[0] = (struct ss_stack_copy){ .address = STACK,
						    .size = sizeof(words),
						    .bytes = (const uint8_t *)words };
	ss_arch_regs_blocked(&ss_arch_host, pc, STACK, NULL, &thread->regs);
}

/* Whether the call before a return address leads to pc, as far as so many steps tell. */
static enum ss_reach leads_within(uint64_t return_address, uint64_t pc, uint64_t steps)
{
	struct ss_unwind_context ctx;
	struct ss_images *images = ss_images_new(session);

	make_capture(pc);
	assert_true(ss_context_init(&ctx, capture, images));
	ctx.calls.steps_left = steps;
	const enum ss_reach result = ss_call_reaches(&ctx, return_address, pc);
	ctx.calls.steps_left = 0; /* the answer is remembered */
	assert_int_equal(ss_call_reaches(&ctx, return_address, pc), result);
	ss_context_deinit(&ctx);
	ss_images_free(images);
	ss_capture_free(capture);
	return result;
}

static enum ss_reach leads(uint64_t return_address, uint64_t pc)
{
	return leads_within(return_address, pc, SS_CALL_STEPS);
}

/* Unwinds, and compares the frames. */
static void check(uint64_t fp, const uint64_t *pcs, size_t count)
{
	struct ss_snapshot *snapshot = NULL;

	make_capture(pcs[0]);
	if (fp)
		ss_regs_set(&capture->threads.items[0].regs, ss_arch_host.fp, fp);
	assert_null(ss_capture_unwind(capture, session, NULL, &snapshot));
	ss_capture_free(capture);
	const struct ss_task *thread = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0);
	assert_int_equal(thread->frame_count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ss_snapshot_frame(snapshot, thread, i)->pc, pcs[i]);
	assert_true(thread->end != SS_END_ROOT);
	ss_snapshot_free(snapshot);
}

static int clear(void **state)
{
	(void)state;
	memset(words, 0, sizeof(words));
	memset(&file, 0, sizeof(file));
	memset(file.text, 0x90, sizeof(file.text));
	file.header =
		(Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			      .e_machine = EM_X86_64,
			      .e_phoff = offsetof(struct file, program),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 1 };
	file.program = (Elf64_Phdr){ .p_type = PT_LOAD,
				     .p_flags = PF_R | PF_X,
				     .p_filesz = sizeof(file),
				     .p_memsz = sizeof(file) };
	return 0;
}

TEST_WITH(test_direct_calls, clear, NULL)
{
	const uint64_t leaf = lead(0xe8, MIDDLE + 8, LEAF);
	const uint64_t middle = lead(0xe8, OUTER + 8, MIDDLE);
	const uint64_t any = call_any(STRAY + 8);

	assert_int_equal(leads(leaf, text(LEAF + 4)), SS_REACH_YES);
	assert_int_equal(leads(middle, text(MIDDLE + 4)), SS_REACH_YES);
	assert_int_equal(leads(middle, text(LEAF + 4)), SS_REACH_NO); /* before it */
	assert_int_equal(leads(leaf, text(MIDDLE + 4)),
			 SS_REACH_NO); /* MIDDLE is called */
	assert_int_equal(leads(leaf, text(OUTER + 4)), SS_REACH_NO);
	assert_int_equal(leads(any, text(LEAF + 4)), SS_REACH_UNKNOWN);
	/* Code of no file, as of a JIT compiler */
	assert_int_equal(leads(leaf, STACK + (2 << 20)), SS_REACH_NO);
	assert_int_equal(leads(any, STACK + (2 << 20)), SS_REACH_UNKNOWN);
}

/* What was not searched is not refuted. */
TEST_WITH(test_limit, clear, NULL)
{
	const uint64_t stray = lead(0xe8, STRAY, OUTER);

	(void)lead(0xe8, STRAY + 0x10, LEAF);
	(void)lead(0xe9, OUTER + 0x20, MIDDLE);
	(void)lead(0xe8, STRAY + 0x20, MIDDLE);
	assert_int_equal(leads(stray, text(LEAF + 4)), SS_REACH_NO);
	for (uint64_t steps = 0; steps < sizeof(file); steps += 64)
		assert_int_equal(leads_within(stray, text(LEAF + 4), steps),
				 SS_REACH_UNKNOWN);
}

/* Nor is what a function of unknown end would lead to. */
TEST_WITH(test_unknown_ends, clear, NULL)
{
	const uint64_t elsewhere = STACK + (2 << 20);
	const uint64_t first = lead(0xe8, STRAY, -UINT64_C(0x80));

	assert_int_equal(leads(first, elsewhere), SS_REACH_UNKNOWN);
	const uint64_t last = lead(0xe8, STRAY + 0x10, BODY - 0x100);
	assert_int_equal(leads(first, elsewhere), SS_REACH_NO);
	assert_int_equal(leads(last, elsewhere), SS_REACH_NO);
	/* Too few steps to find where functions begin */
	assert_int_equal(leads_within(last, elsewhere, 1000), SS_REACH_UNKNOWN);
}

/* A call that is found once may be bytes of other instructions. */
TEST_WITH(test_starts, clear, NULL)
{
	const uint64_t leaf = lead(0xe8, STRAY, LEAF);

	(void)lead(0xe8, STRAY + 0x20, LEAF + 0x24);
	assert_int_equal(leads(leaf, text(LEAF + 0x40)), SS_REACH_YES);
	(void)lead(0xe8, STRAY + 0x40, LEAF + 0x24);
	assert_int_equal(leads(leaf, text(LEAF + 0x40)), SS_REACH_NO);
}

TEST_WITH(test_jumps, clear, NULL)
{
	const uint64_t near = lead(0xe8, STRAY, OUTER);
	const uint64_t twice = lead(0xe8, STRAY + 0x10, MIDDLE);
	const uint64_t open = lead(0xe8, STRAY + 0x20, 0x1000);

	(void)lead(0xe8, STRAY + 0x30, LEAF);
	(void)lead(0xe9, OUTER + 0x20, LEAF);
	(void)lead(0xe9, MIDDLE + 0x20, OUTER);
	memcpy(&file.text[0x1010], "\xff\xe0", 2); /* jmp *%rax */
	assert_int_equal(leads(near, text(LEAF + 4)), SS_REACH_YES);
	assert_int_equal(leads(twice, text(LEAF + 4)), SS_REACH_YES);
	assert_int_equal(leads(near, text(MIDDLE + 4)), SS_REACH_NO);
	assert_int_equal(leads(open, text(LEAF + 4)), SS_REACH_UNKNOWN);
}

/* A stub of the procedure linkage table leads to another module. */
TEST_WITH(test_stubs, clear, NULL)
{
	const uint64_t stub = lead(0xe8, STRAY, LEAF);

	memcpy(&file.text[LEAF], "\xff\x25\x00\x10\x00\x00", 6);
	assert_int_equal(leads(stub, OTHER + 0x1000), SS_REACH_MODULE);
	assert_int_equal(leads(stub, text(0x3000)), SS_REACH_UNKNOWN);
	/* Without a stub a direct call stays in its module. */
	assert_int_equal(leads(lead(0xe8, STRAY, OUTER), OTHER + 0x1000), SS_REACH_NO);
}

/* Jumps in circles end. */
TEST_WITH(test_circles, clear, NULL)
{
	for (uint64_t i = 0; i < 16; i++) {
		(void)lead(0xe9, 0x1000 + i * 0x100, 0x1000 + (i + 1) % 16 * 0x100);
		(void)lead(0xe9, 0x1010 + i * 0x100, 0x1000 + (i + 2) % 16 * 0x100);
		(void)lead(0xe8, 0x3000 + i * 0x10, 0x1000 + i * 0x100);
	}
	(void)lead(0xe8, STRAY + 0x20, LEAF);
	assert_int_equal(leads(lead(0xe8, STRAY, 0x1000), text(LEAF + 4)),
			 SS_REACH_UNKNOWN);
}

/* A return address of another call is no frame, wherever it is. */
TEST_WITH(test_refuted, clear, NULL)
{
	const uint64_t leaf = lead(0xe8, MIDDLE + 8, LEAF);
	const uint64_t middle = lead(0xe8, OUTER + 8, MIDDLE);
	const uint64_t pcs[] = { text(LEAF + 4), leaf, middle };

	words[1] = middle;
	words[2] = leaf;
	words[3] = leaf;
	words[7] = middle;
	check(0, pcs, SS_ARRAY_SIZE(pcs));
}

/* A call of this function counts more than one of anything before it. */
TEST_WITH(test_direct_preferred, clear, NULL)
{
	const uint64_t leaf = lead(0xe8, MIDDLE + 8, LEAF);
	const uint64_t any = call_any(STRAY + 8);
	const uint64_t pcs[] = { text(LEAF + 4), leaf };
	const uint64_t other[] = { text(LEAF + 4), any };

	(void)lead(0xe8, OUTER, STRAY);
	words[1] = any;
	words[4] = leaf;
	check(0, pcs, SS_ARRAY_SIZE(pcs));
	words[4] = 0; /* too far */
	words[40] = leaf;
	check(0, other, SS_ARRAY_SIZE(other));
}

/* Of calls through registers, those of a chain of frame records: then the frame pointer is known. */
TEST_WITH(test_chains, clear, NULL)
{
	const uint64_t any = call_any(STRAY + 8);
	const uint64_t one = call_any(MIDDLE + 8);
	const uint64_t two = call_any(OUTER + 8);
	const uint64_t three = call_any(OUTER + 0x28);
	const uint64_t pcs[] = { text(LEAF + 4), one, two, three };

	words[1] = any;
	words[3] = at(10);
	words[4] = one;
	words[6] = any;
	words[10] = at(20);
	words[11] = two;
	words[14] = any;
	words[21] = three;
	check(0, pcs, SS_ARRAY_SIZE(pcs));
}

/* The frame pointer is that of a function further out. */
TEST_WITH(test_record_of_another_frame, clear, NULL)
{
	const uint64_t leaf = lead(0xe8, MIDDLE + 8, LEAF);
	const uint64_t middle = lead(0xe8, OUTER + 8, MIDDLE);
	const uint64_t outer = lead(0xe8, STRAY + 8, OUTER);
	const uint64_t pcs[] = { text(LEAF + 4), leaf, middle, outer };

	words[2] = leaf;
	words[6] = middle;
	words[9] = outer;
	words[8] = at(12);
	check(at(8), pcs, SS_ARRAY_SIZE(pcs));
}

static int make_session(void **state)
{
	(void)state;
	assert_null(ss_session_new(NULL, &session));
	return 0;
}

static int free_session(void **state)
{
	(void)state;
	ss_session_free(session);
	return 0;
}

TEST_GROUP(make_session, free_session)
