/* How samples of the CPUs are grouped into ticks. */

#include "unit.h"

#include "base/cleanup.h"
#include "sample/gathers.h"

static const struct {
	int cpu;
	pid_t tid;
	uint64_t time_ns;
} made[] = {
	{ 0, 11, 100 }, { 1, 12, 103 }, /* a tick */
	{ 0, 11, 200 },			/* the same thread and CPU */
	{ 1, 11, 203 },			/* the thread has moved */
	{ 1, 12, 204 },			/* another thread, the same CPU */
	{ 2, 13, 205 },			/* in the same tick */
	{ 0, 14, 300 },
};

TEST(test_ticks)
{
	struct ss_on_cpu on_cpu = {};

	for (size_t i = 0; i < SS_ARRAY_SIZE(made); i++) {
		struct ss_on_cpu_sample *sample = ss_vector_push(&on_cpu.samples);
		assert_non_null(sample);
		sample->clock.cpu = made[i].cpu;
		sample->clock.tid = made[i].tid;
		sample->clock.time_ns = made[i].time_ns;
	}
	assert_int_equal(ss_on_cpu_tick_end(&on_cpu, 0, 150), 2);
	assert_int_equal(ss_on_cpu_tick_end(&on_cpu, 0, 50), 0);
	assert_int_equal(ss_on_cpu_tick_end(&on_cpu, 0, 103), 1);
	assert_int_equal(ss_on_cpu_tick_end(&on_cpu, 0, UINT64_MAX), 2);
	assert_int_equal(ss_on_cpu_tick_end(&on_cpu, 2, UINT64_MAX), 3);
	assert_int_equal(ss_on_cpu_tick_end(&on_cpu, 3, UINT64_MAX), 4);
	assert_int_equal(ss_on_cpu_tick_end(&on_cpu, 4, 250), 6);
	assert_int_equal(ss_on_cpu_tick_end(&on_cpu, 6, UINT64_MAX), 7);
	assert_int_equal(ss_on_cpu_tick_end(&on_cpu, 7, UINT64_MAX), 7);
	/* Backwards: the last samples before an index. */
	assert_int_equal(ss_on_cpu_tick_begin(&on_cpu, 0, 0), 0);
	assert_int_equal(ss_on_cpu_tick_begin(&on_cpu, 0, 2), 0);
	assert_int_equal(ss_on_cpu_tick_begin(&on_cpu, 0, 3), 1);
	assert_int_equal(ss_on_cpu_tick_begin(&on_cpu, 0, 6), 4);
	assert_int_equal(ss_on_cpu_tick_begin(&on_cpu, 0, 7), 4);
	/* Those of the tick before are not used again. */
	assert_int_equal(ss_on_cpu_tick_begin(&on_cpu, 5, 6), 5);
	assert_int_equal(ss_on_cpu_tick_begin(&on_cpu, 6, 6), 6);
	assert_int_equal(ss_on_cpu_tick_begin(&on_cpu, 3, 6), 4);
	assert_int_equal(ss_on_cpu_find(&on_cpu, 0), 0);
	assert_int_equal(ss_on_cpu_find(&on_cpu, 103), 1);
	assert_int_equal(ss_on_cpu_find(&on_cpu, 104), 2);
	assert_int_equal(ss_on_cpu_find(&on_cpu, UINT64_MAX), 7);
	ss_on_cpu_deinit(&on_cpu);
}
