/*
 * Recordings are merged into a profile; one may claim anything.
 */
#include "record_sample.h"

#include "base/error.h"
#include "profile/load.h"
#include "stacksnap.h"

enum { TICKS = 4 };

static void add_goroutine(struct sample_recording *s, uint64_t tick, uint32_t stack)
{
	const struct ss_goroutine goroutine = { .id = 7, .status = SS_GOROUTINE_WAITING };
	const struct ss_written_goroutine written = { .tick = tick,
						      .process = s->process,
						      .thread = SS_ID_NONE,
						      .stack = stack,
						      .goroutine = &goroutine };

	ss_writer_goroutine(s->writer, &written);
}

/* The runs of a goroutine follow each other, whatever the order of its ticks is. */
static void test_goroutine_order(void **state)
{
	const uint64_t claimed[] = { 1, 0, 1, 3, 2 };
	const struct ss_writer_options options = { .period_ns = SAMPLE_PERIOD_NS,
						   .machine = "x86_64",
						   .host = "h" };
	const struct ss_load_options load = { .size = sizeof(load) };
	struct sample_recording s = {};
	struct ss_recording *recording = NULL;
	struct ss_profile *profile = ss_profile_new();
	struct ss_summary summary = {};
	const uint64_t offset = 16;

	(void)state;
	assert_non_null(profile);
	sample_open(&s, &options);
	uint32_t thread = ss_writer_add_thread(s.writer, s.process, 43, "t", 1);
	uint32_t stack = sample_stack(&s, &offset, 1);
	const struct ss_sample_record sample = {
		.thread = thread, .stack = stack, .call = SS_ID_NONE, .state = 'S'
	};
	for (uint64_t i = 0; i < SS_ARRAY_SIZE(claimed); i++)
		add_goroutine(&s, claimed[i], stack);
	for (uint64_t i = 0; i < TICKS; i++) {
		const struct ss_tick_record tick = {
			.monotonic_ns = (i + 1) * SAMPLE_PERIOD_NS,
			.wall_ns = (i + 1) * SAMPLE_PERIOD_NS
		};
		assert_null(ss_writer_tick(s.writer, &tick, &sample, 1));
	}
	assert_null(ss_writer_finish(s.writer, &summary));
	assert_null(ss_recording_open_fd(copy_of(s.fd, size_of(s.fd)), &recording));
	assert_int_equal(ss_recording_goroutine_count(recording), SS_ARRAY_SIZE(claimed));
	assert_null(ss_load_recording(profile, recording, "file", &load));
	assert_int_equal(profile->threads.count, 2);
	const struct ss_profile_thread *goroutine = &profile->threads.items[1];
	assert_int_equal(goroutine->goroutine, 7);
	assert_int_equal(goroutine->runs.count, 2);
	assert_int_equal(goroutine->runs.items[0].tick, 1);
	assert_int_equal(goroutine->runs.items[0].count, 1);
	assert_int_equal(goroutine->runs.items[1].tick, 3);
	assert_int_equal(profile->notes.count, 1);
	assert_string_equal(profile->notes.items[0],
			    "file: 3 more goroutines are not counted");
	ss_profile_free(profile);
	ss_recording_close(recording);
	sample_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goroutine_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
