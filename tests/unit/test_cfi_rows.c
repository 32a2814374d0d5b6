/*
 * Our CFI rows against libunwind, for the functions of real programs: both step from the
 * same artificial registers over the same artificial stack, and must agree on the result
 * and on every register that calls preserve.
 */

#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/cfi_table.h"
#include "unwind/unwinder.h"

enum { STACK_SIZE = 1 << 20, ENTRIES_MAX = 4000 };

static const uint64_t stack_start = UINT64_C(0x7ffd00000000);
static const uint64_t bias = UINT64_C(0x7f1000000000);

static const uint8_t preserved[] = {
	3, 6, 7, 12, 13, 14, 15, 16
}; /* rbx rbp rsp r12-15 pc */

struct fixture {
	struct ss_capture *capture;
	struct ss_images *images;
	void *libunwind;
	struct ss_unwind_context ctx;
	struct ss_capture_thread thread;
	uint64_t *stack;
	struct ss_loaded_module *loaded;
};

static void open_fixture(struct fixture *f, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*f = (struct fixture){ .capture = ss_capture_new() };
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	struct ss_module_impl *module = ss_module_new(path, bias, bias + (1u << 30));
	struct ss_mapping mapping = { .start = bias,
				      .end = bias + (1u << 30),
				      .prot = PROT_READ | PROT_EXEC };
	assert_true(ss_module_add_mapping(module, &mapping));
	module->fd = fd;
	module->inode = st.st_ino;
	*ss_vector_push(&f->capture->modules) = module;
	*ss_vector_push(&f->capture->areas) = (struct ss_area){ .start = bias,
								.end = bias + (1u << 30),
								.prot = mapping.prot,
								.name = path };
	f->images = ss_images_new(NULL);
	f->libunwind = ss_unwinder_libunwind.new();
	assert_non_null(f->libunwind);
	assert_true(ss_context_init(&f->ctx, f->capture, f->images));
	f->stack = malloc(STACK_SIZE);
	/* Each word is different, and in range to be a frame pointer. */
	for (size_t i = 0; i < STACK_SIZE / 8; i++)
		f->stack[i] =
			stack_start + STACK_SIZE / 2 + (i * 2654435761u % 65536) * 8;
	f->thread.stacks[0] = (struct ss_stack_copy){
		.address = stack_start,
		.size = STACK_SIZE,
		.bytes = (const uint8_t *)f->stack,
	};
	ss_context_set_thread(&f->ctx, &f->thread);
	f->loaded = ss_context_find_module(&f->ctx, bias);
	assert_non_null(f->loaded);
}

static void close_fixture(struct fixture *f)
{
	ss_context_deinit(&f->ctx);
	ss_unwinder_libunwind.free(f->libunwind);
	ss_images_free(f->images);
	ss_capture_free(f->capture);
	free(f->stack);
}

static struct ss_regs make_registers(uint64_t pc)
{
	struct ss_regs regs = {};

	for (unsigned reg = 0; reg < ss_arch_host.reg_count; reg++)
		ss_regs_set(&regs, reg, stack_start + STACK_SIZE / 4 + reg * 4096);
	ss_regs_set(&regs, ss_arch_host.sp, stack_start + STACK_SIZE / 8);
	ss_regs_set(&regs, ss_arch_host.pc, pc);
	return regs;
}

/* True: there is a row, and libunwind agrees. */
static bool compare_at(struct fixture *f, uint64_t pc)
{
	struct ss_unwind_frame ours = { .regs = make_registers(pc) };
	struct ss_unwind_frame theirs = ours;
	enum ss_step our_step = ss_unwinder_cfi.step(NULL, &f->ctx, &ours);

	if (our_step == SS_STEP_COMPLEX)
		return false;
	enum ss_step their_step =
		ss_unwinder_libunwind.step(f->libunwind, &f->ctx, &theirs);
	if (our_step != their_step)
		fail_msg("%#lx: step %d, libunwind %d", pc - f->loaded->bias, our_step,
			 their_step);
	for (size_t i = 0; our_step == SS_STEP_OK && i < sizeof(preserved); i++) {
		uint64_t a = 0;
		uint64_t b = 0;
		bool has_a = ss_regs_get(&ours.regs, preserved[i], &a);
		bool has_b = ss_regs_get(&theirs.regs, preserved[i], &b);
		if (has_a != has_b || a != b)
			fail_msg("%#lx: register %u: %d %#lx, libunwind %d %#lx",
				 pc - f->loaded->bias, preserved[i], has_a, a, has_b, b);
	}
	return true;
}

static void compare_file(const char *path)
{
	struct fixture f;
	size_t simple = 0;
	size_t total = 0;

	open_fixture(&f, path);
	assert_true(f.loaded->table.count > 0);
	const struct ss_cfi_table *table = &f.loaded->table;
	uint64_t stride = table->count / ENTRIES_MAX + 1;
	for (uint64_t i = 0; i < table->count; i += stride) {
		int32_t start;
		struct ss_cfi_entry entry;
		assert_int_equal(ss_image_read(f.loaded->image, table->entries + i * 8,
					       &start, sizeof(start)),
				 sizeof(start));
		uint64_t address = table->header + (uint64_t)(int64_t)start;
		if (ss_cfi_entry_find(f.loaded->image, table, address, &entry) !=
		    SS_CFI_FOUND)
			continue;
		uint64_t size = entry.end - entry.start;
		const uint64_t at[] = { 0,	  1,	    4,
					size / 4, size / 2, size - size / 4,
					size - 1 };
		for (size_t k = 0; k < sizeof(at) / sizeof(at[0]); k++) {
			if (at[k] >= size)
				continue;
			total++;
			simple += compare_at(&f, f.loaded->bias + entry.start + at[k]);
		}
	}
	print_message("%s: %zu of %zu addresses by our rows\n", path, simple, total);
	assert_true(total > 50);
	assert_true(simple * 100 >= total * 95);
	close_fixture(&f);
}

TEST(agrees_on_this_program)
{
	compare_file("/proc/self/exe");
}

TEST(agrees_on_libc)
{
	compare_file("/lib/x86_64-linux-gnu/libc.so.6");
}

TEST(agrees_on_libstdcxx)
{
	compare_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
}

TEST(agrees_on_a_large_program)
{
	if (access("/usr/bin/gdb", R_OK) != 0)
		skip();
	compare_file("/usr/bin/gdb");
}
