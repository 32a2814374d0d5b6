#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "elf_builder.h"
#include "data/session.h"
#include "data/snapshot.h"
#include "symbolize_sample.h"

static struct ss_session *open_session(void)
{
	struct ss_session *session = NULL;

	assert_null(ss_session_new(NULL, &session));
	return session;
}

/* A snapshot of one module; the snapshot has its only reference. */
static struct ss_snapshot *open_snapshot(struct ss_module_impl *module)
{
	struct ss_snapshot *snapshot = ss_snapshot_new();

	assert_non_null(snapshot);
	struct ss_module_impl **place = ss_vector_push(&snapshot->modules);
	assert_non_null(place);
	*place = module;
	return snapshot;
}

static struct ss_frame make_frame(const struct ss_snapshot *snapshot, uint64_t offset,
				  uint64_t back)
{
	const struct ss_module *module = &snapshot->modules.items[0]->pub;

	return (struct ss_frame){
		.pc = module->base + offset,
		.module = module,
		.offset = offset,
		.lookup_offset = offset - back,
		.source = back ? SS_FROM_CFI : SS_FROM_REGISTERS,
	};
}

static void add_thread(struct ss_snapshot *snapshot, const struct ss_frame *frames,
		       size_t count)
{
	struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);

	assert_non_null(thread);
	thread->frame_count = count;
	assert_true(ss_snapshot_add_stack(snapshot, frames, count, SS_END_ROOT,
					  &thread->stack_id));
}

TEST_WITH(test_inlines, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample, "cc -O1 -g sample.c -o prog"));
	struct ss_snapshot *snapshot = open_snapshot(sample_module(sample, "prog"));
	struct ss_session *session = open_session();
	uint64_t mark = sample_address(sample, "prog", "mark_inner");
	uint64_t outer = sample_address(sample, "prog", "outer");
	const struct ss_frame frames[] = {
		make_frame(snapshot, mark, 0),
		{ .pc = 0x1234, .module_index = -1, .area = "//anon" },
		/* A return address behind the mark, which is one byte long. */
		make_frame(snapshot, mark + 1, 1),
	};
	add_thread(snapshot, frames, SS_ARRAY_SIZE(frames));
	assert_null(ss_snapshot_symbolize(snapshot, session, 0));
	ss_session_free(session); /* the names live in the snapshot */

	const struct ss_task *thread = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0);
	assert_int_equal(thread->frame_count, 7);
	static const char *const names[] = { "inner", "middle", "outer", NULL,
					     "inner", "middle", "outer" };
	static const unsigned lines[] = { 5, 9, 13, 0, 5, 9, 13 };
	for (size_t i = 0; i < 7; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		assert_int_equal(frame->line, lines[i]);
		assert_int_equal(frame->inlined, i != 2 && i != 3 && i != 6);
		assert_int_equal(frame->source == SS_FROM_INLINE, frame->inlined);
		if (!names[i]) {
			assert_null(frame->symbol);
			assert_string_equal(frame->area, "//anon");
			continue;
		}
		assert_string_equal(frame->symbol, names[i]);
		assert_true(strstr(frame->file, "sample.c") != NULL);
		assert_true(frame->pc == frames[i < 3 ? 0 : 2].pc);
	}
	assert_true(ss_snapshot_frame(snapshot, thread, 2)->symbol_offset ==
		    mark - outer);
	assert_true(ss_snapshot_frame(snapshot, thread, 6)->symbol_offset ==
		    mark + 1 - outer);
	ss_snapshot_free(snapshot);
}

TEST_WITH(test_flags, sample_setup, sample_teardown)
{
	const struct sample *sample = *state;

	assert_true(sample_run(sample, "echo 'namespace a { int f(int x) { return x; } } "
				       "int main() { return a::f(0); }' > p.cc && "
				       "c++ -g p.cc -o prog"));
	uint64_t f = sample_address(sample, "prog", "_ZN1a1fEi");
	static const unsigned flags[] = { 0, SS_NO_DEMANGLE, SS_NO_SOURCE };
	struct ss_session *session = open_session();
	for (size_t i = 0; i < SS_ARRAY_SIZE(flags); i++) {
		struct ss_snapshot *snapshot =
			open_snapshot(sample_module(sample, "prog"));
		struct ss_frame frame = make_frame(snapshot, f + 4, 1);
		add_thread(snapshot, &frame, 1);
		assert_null(ss_snapshot_symbolize(snapshot, session, flags[i]));
		const struct ss_frame *named = ss_snapshot_frame(
			snapshot, ss_snapshot_task(snapshot, SS_TASK_THREAD, 0), 0);
		assert_string_equal(named->symbol, flags[i] == SS_NO_DEMANGLE ?
							   "_ZN1a1fEi" :
							   "a::f(int)");
		assert_int_equal(named->symbol_offset, 4);
		assert_int_equal(named->line, flags[i] == SS_NO_SOURCE ? 0 : 1);
		assert_int_equal(named->file == NULL, flags[i] == SS_NO_SOURCE);
		ss_snapshot_free(snapshot);
	}
	ss_session_free(session);
}

/* 100,000 equal frames are one look-up. */
TEST_WITH(test_deep_recursion, sample_setup, sample_teardown)
{
	enum { COUNT = 100000 };
	const struct sample *sample = *state;

	assert_true(sample_run(sample, "cc -O1 -g sample.c -o prog"));
	struct ss_snapshot *snapshot = open_snapshot(sample_module(sample, "prog"));
	struct ss_session *session = open_session();
	struct ss_frame *frames = calloc(COUNT, sizeof(*frames));
	assert_non_null(frames);
	uint64_t mark = sample_address(sample, "prog", "mark_inner");
	for (size_t i = 0; i < COUNT; i++)
		frames[i] = make_frame(snapshot, mark, 0);
	add_thread(snapshot, frames, COUNT);
	add_thread(snapshot, frames, 0);
	free(frames);
	assert_null(ss_snapshot_symbolize(snapshot, session, 0));
	assert_int_equal(ss_snapshot_task(snapshot, SS_TASK_THREAD, 0)->frame_count,
			 3 * COUNT);
	assert_int_equal(ss_snapshot_task(snapshot, SS_TASK_THREAD, 1)->frame_count, 0);
	const struct ss_stack *stack = &snapshot->stacks.items[0];
	assert_string_equal(stack->frames[3 * COUNT - 1].symbol, "outer");
	ss_snapshot_free(snapshot);
	ss_session_free(session);
}

/* Names that overlap in one text of 600 KB: each is long, all together are bounded. */
TEST_WITH(test_long_names, sample_setup, sample_teardown)
{
	enum { COUNT = 400, SIZE = 600000 };
	const struct sample *sample = *state;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/long", sample->dir);
	struct elf_builder builder;
	elf_builder_init(&builder);
	Elf64_Sym *symbols = calloc(COUNT, sizeof(*symbols));
	char *names = malloc(SIZE + 1);
	assert_non_null(symbols);
	assert_non_null(names);
	memset(names, 'x', SIZE);
	names[SIZE] = '\0';
	for (uint32_t i = 1; i < COUNT; i++)
		symbols[i] = (Elf64_Sym){ .st_name = i,
					  .st_shndx = BUILDER_TEXT,
					  .st_value = 0x1000 + i,
					  .st_size = 1 };
	builder.sections[BUILDER_SYMTAB].sh_offset = sizeof(builder);
	builder.sections[BUILDER_SYMTAB].sh_size = COUNT * sizeof(*symbols);
	builder.sections[BUILDER_STRTAB].sh_offset =
		sizeof(builder) + COUNT * sizeof(*symbols);
	builder.sections[BUILDER_STRTAB].sh_size = SIZE + 1;
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(&builder, sizeof(builder), 1, file), 1);
	assert_int_equal(fwrite(symbols, sizeof(*symbols), COUNT, file), COUNT);
	assert_int_equal(fwrite(names, SIZE + 1, 1, file), 1);
	assert_int_equal(fclose(file), 0);
	free(symbols);
	free(names);

	struct ss_snapshot *snapshot = open_snapshot(sample_module(sample, "long"));
	struct ss_session *session = open_session();
	struct ss_frame frames[COUNT - 1];
	for (size_t i = 0; i < COUNT - 1; i++)
		frames[i] = make_frame(snapshot, 0x1001 + i, 0);
	add_thread(snapshot, frames, COUNT - 1);
	assert_null(ss_snapshot_symbolize(snapshot, session, 0));
	size_t total = 0;
	for (size_t i = 0; i < COUNT - 1; i++)
		total += strlen(snapshot->stacks.items[0].frames[i].symbol);
	assert_true(total > 60 << 20);
	assert_true(total < 70 << 20);
	ss_snapshot_free(snapshot);
	ss_session_free(session);
}

TEST(test_bad_arguments)
{
	struct ss_snapshot *snapshot = ss_snapshot_new();
	struct ss_session *session = open_session();

	struct ss_error *errors[] = {
		ss_snapshot_symbolize(NULL, session, 0),
		ss_snapshot_symbolize(snapshot, NULL, 0),
		ss_snapshot_symbolize(snapshot, session, 1 << 20),
	};
	for (size_t i = 0; i < SS_ARRAY_SIZE(errors); i++) {
		assert_non_null(errors[i]);
		assert_int_equal(ss_error_code(errors[i]), SS_ERROR_INVALID);
		ss_error_free(errors[i]);
	}
	assert_null(ss_snapshot_symbolize(snapshot, session, 0));
	ss_snapshot_free(snapshot);
	ss_session_free(session);
}
