#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"
#include "symbolize_sample.h"

enum { MODULES = 100 };

static const char *const present[] = { "first_function", "second_function", "absent" };
static const char *const absent[] = { "absent", "first_function" };

struct process {
	struct ss_session *session;
	struct ss_capture *capture;
	struct ss_runtime_process process;
};

/* A process with the same library many times. */
static void set_up(const struct sample *sample, struct process *ret)
{
	assert_true(sample_run(
		sample, "printf '.globl first_function\\nfirst_function: nop\\n"
			".globl second_function\\nsecond_function: nop\\n' > a.s && "
			"cc -shared -nostdlib a.s -o a.so"));
	*ret = (struct process){ .capture = ss_capture_new() };
	assert_non_null(ret->capture);
	assert_null(ss_session_new(NULL, &ret->session));
	for (int i = 0; i < MODULES; i++) {
		struct ss_module_impl **slot = ss_vector_push(&ret->capture->modules);
		assert_non_null(slot);
		*slot = sample_module(sample, "a.so");
	}
	ret->process =
		(struct ss_runtime_process){ .capture = ret->capture,
					     .session = ret->session,
					     .symbols = &ret->session->module_symbols };
}

static void tear_down(struct process *process)
{
	ss_session_free(process->session);
	ss_capture_free(process->capture);
}

static void check(const struct process *process, int32_t index)
{
	struct ss_elf_symbol found[3] = {};
	uint64_t bias = 0;

	assert_true(ss_module_symbols_find(&process->process, index, present, 3, NULL,
					   found, &bias));
	assert_int_equal(found[1].address - found[0].address, 1);
	assert_int_equal(found[2].address, 0);
	assert_false(ss_module_symbols_find(&process->process, index, absent, 2, NULL,
					    found, &bias));
}

/* The second time nothing is read, neither for symbols that are there nor for others. */
TEST_WITH(test_kept, sample_setup, sample_teardown)
{
	struct process process;

	set_up(*state, &process);
	unsigned long long begin = sample_bytes_read();
	unsigned long long cost = sample_bytes_read() - begin; /* of the question */
	check(&process, 0);
	begin = sample_bytes_read();
	for (int i = 0; i < 10; i++)
		check(&process, 0);
	unsigned long long bytes = sample_bytes_read() - begin;
	if (bytes > cost + 16) /* the number has more digits */
		fail_msg("%llu bytes were read again", bytes - cost);
	tear_down(&process);
}

/* More modules than are kept; and those are kept that the capture has no longer. */
TEST_WITH(test_many, sample_setup, sample_teardown)
{
	struct process process;

	set_up(*state, &process);
	for (int round = 0; round < 2; round++) {
		for (int32_t i = 0; i < MODULES; i++)
			check(&process, i);
	}
	for (size_t i = 0; i < MODULES; i++)
		ss_module_unref(process.capture->modules.items[i]);
	process.capture->modules.count = 0;
	tear_down(&process);
}

/* A module whose file must not be read. */
TEST_WITH(test_skipped, sample_setup, sample_teardown)
{
	const int32_t skipped[] = { 1 };
	struct ss_elf_symbol found[3];
	struct process process;
	uint64_t bias;

	set_up(*state, &process);
	check(&process, 1);
	process.session->skip_modules = skipped;
	process.session->skip_count = 1;
	assert_false(ss_module_symbols_find(&process.process, 1, present, 3, NULL, found,
					    &bias));
	check(&process, 2);
	tear_down(&process);
}
