/*
 * Recordings of processes with very many modules and very long paths: no list is searched
 * linearly for each module, and what is written fits into chunks.
 *
 * ctest: long-with-sanitizers
 */
#include "record_sample.h"

#include "base/error.h"
#include "base/vector.h"
#include "data/capture.h"
#include "data/snapshot.h"
#include "sample/modules.h"
#include "stacksnap.h"
#include "data/recording.h"
#include "stacksnap/record.h"

/* More than Linux lets a process map. A quadratic algorithm would take minutes. */
enum { TRACKED = 1000000, RECORDED = 200000, FRAMES = 500000 };

/* Together several times the maximum size of a chunk. */
enum { LONG_PATHS = 12000, PATH_SIZE = 4000 };

struct watched {
	size_t loaded;
	size_t unloaded;
};

static void update(struct ss_module_set *set, const struct ss_capture *capture,
		   struct watched *watched)
{
	assert_true(ss_module_set_update(set, capture));
	for (size_t i = 0; i < set->items.count; i++) {
		struct ss_module_entry *entry = &set->items.items[i];
		if (entry->state == SS_MODULE_LOADED)
			entry->id = (uint32_t)entry->module->pub.base;
		watched->loaded += entry->state == SS_MODULE_LOADED;
		watched->unloaded += entry->state == SS_MODULE_UNLOADED;
	}
	ss_module_set_settle(set);
}

/* The objects are not in the order of their bases. */
TEST(test_tracked)
{
	struct ss_module_impl *modules = calloc(TRACKED, sizeof(*modules));
	struct ss_module_impl **items = calloc(TRACKED, sizeof(struct ss_module_impl *));
	struct ss_capture capture = {};
	struct ss_module_set list = {};
	struct watched watched = {};

	for (size_t i = 0; i < TRACKED; i++) {
		items[i] = &modules[i * 7 % TRACKED];
		items[i]->pub.base = i;
		atomic_init(&items[i]->references, 1);
	}
	capture.modules.items = items;
	capture.modules.count = TRACKED - 1;
	update(&list, &capture, &watched);
	assert_true(watched.loaded == TRACKED - 1 && watched.unloaded == 0);
	update(&list, &capture, &watched);
	assert_true(watched.loaded == TRACKED - 1 && watched.unloaded == 0);
	/* The first one is unloaded, the last one is loaded. */
	capture.modules.items++;
	update(&list, &capture, &watched);
	assert_true(watched.loaded == TRACKED && watched.unloaded == 1);
	assert_null(ss_module_set_find(&list, items[0]));
	for (size_t i = 1; i < TRACKED; i++) {
		const struct ss_module_entry *found = ss_module_set_find(&list, items[i]);
		assert_true(found && found->module == items[i] && found->id == i);
	}
	update(&list, NULL, &watched);
	assert_true(watched.unloaded == TRACKED && list.items.count == 0);
	ss_module_set_deinit(&list);
	free(items);
	free(modules);
}

static void add_modules(struct ss_snapshot *snapshot)
{
	for (uint64_t i = 0; i < RECORDED; i++) {
		struct ss_module_impl **slot = ss_vector_push(&snapshot->modules);
		assert_non_null(slot);
		*slot = ss_module_new("/lib/many.so", i << 16, (i << 16) + 4096);
		assert_non_null(*slot);
	}
}

/* All frames are in two of the modules, which have a load bias. */
static void add_thread(struct ss_snapshot *snapshot)
{
	struct ss_frame *frames = calloc(FRAMES, sizeof(*frames));
	struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);

	assert_true(frames && thread);
	for (size_t i = 0; i < FRAMES; i++) {
		int32_t index = i % 2 ? 5 : RECORDED - 1;
		frames[i] = (struct ss_frame){
			.module = &snapshot->modules.items[index]->pub,
			.module_index = index,
			.pc = ((uint64_t)index << 16) + 0x10,
			.offset = 0x30,
			.lookup_offset = 0x30,
		};
	}
	*thread = (struct ss_task){ .tid = 43, .name = "t", .state = 'S' };
	assert_true(ss_snapshot_add_stack(snapshot, frames, FRAMES, SS_END_ROOT,
					  &thread->stack_id));
	free(frames);
}

TEST(test_snapshot)
{
	struct ss_snapshot *snapshot = ss_snapshot_new();
	struct ss_recording *recording = NULL;
	int fd = memfd_create("recording", MFD_CLOEXEC);

	snapshot->process.pid = 42;
	snapshot->process.name = "many";
	add_modules(snapshot);
	add_thread(snapshot);
	assert_null(ss_snapshot_record(snapshot, NULL, dup(fd)));
	ss_snapshot_free(snapshot);
	assert_null(ss_recording_open_fd(fd, &recording));
	assert_null(ss_recording_info(recording)->problem);
	assert_int_equal(ss_recording_module_count(recording), RECORDED);
	assert_int_equal(ss_recording_stack(recording, 0)->count, FRAMES);
	for (size_t i = 0; i < RECORDED; i++) {
		bool framed = i == 5 || i == RECORDED - 1;
		assert_int_equal(ss_recording_module(recording, i)->bias,
				 (i << 16) - (framed ? 0x20 : 0));
	}
	ss_recording_close(recording);
}

/* All are loaded at once, and defined again by the next segment. */
TEST(test_long_paths)
{
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS };
	struct sample_recording s = {};
	struct ss_summary summary = { .reason = SS_RECORDING_STOPPED };
	struct ss_recording *recording = NULL;
	const uint64_t offsets[] = { 1, 2 };
	char path[PATH_SIZE];

	sample_open(&s, &options);
	(void)memset(path, 'd', sizeof(path));
	for (unsigned i = 0; i < LONG_PATHS; i++) {
		struct ss_module module = { .path = path,
					    .base = (uint64_t)i << 32,
					    .size = 4096 };
		(void)snprintf(path + PATH_SIZE - 16, 16, "/%u", i);
		assert_int_not_equal(ss_writer_add_module(s.writer, s.process, &module,
							  module.base, 2),
				     SS_ID_NONE);
	}
	struct ss_sample_record sample = {
		.thread = ss_writer_add_thread(s.writer, s.process, 43, "t", 3),
		.stack = sample_stack(&s, offsets, 2),
		.call = SS_ID_NONE,
		.state = 'S',
	};
	for (uint64_t tick = 0; tick < 2; tick++) {
		const struct ss_tick_record t = { .monotonic_ns = tick };
		assert_null(ss_writer_tick(s.writer, &t, &sample, 1));
		assert_null(ss_writer_roll(s.writer, tick, tick, &sample, 1));
	}
	assert_null(ss_writer_finish(s.writer, &summary));
	assert_null(ss_recording_open_fd(dup(s.fd), &recording));
	assert_null(ss_recording_info(recording)->problem);
	assert_int_equal(ss_recording_module_count(recording),
			 LONG_PATHS + SAMPLE_MODULES);
	assert_int_equal(ss_recording_info(recording)->samples, 2);
	ss_recording_close(recording);
	sample_close(&s);
}
