/* Samples of the CPU that this program runs on. */

#include "unit.h"

#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/perf.h"

static void spin(uint64_t ns)
{
	for (uint64_t end = ss_now_ns() + ns; ss_now_ns() < end;)
		;
}

TEST(test_own_samples)
{
	enum { TRIES = 1000 };
	struct ss_cpu_sampler sampler = {};
	struct ss_cpu_sample sample;
	uint64_t begin_ns = ss_now_ns();
	unsigned own = 0;

	if (!ss_cpu_sampler_start(&sampler, sched_getcpu(), 4)) {
		assert_true(sampler.refused);
		ss_cpu_sampler_deinit(&sampler);
		skip();
	}
	for (int i = 0; i < TRIES && own == 0; i++) {
		assert_true(ss_cpu_sampler_start(&sampler, sched_getcpu(), 4));
		spin(10 * SS_CPU_PERIOD_NS);
		while (ss_cpu_sampler_next(&sampler, &sample)) {
			uint64_t near =
				sample.kernel.rsp - (uintptr_t)__builtin_frame_address(0);
			if (sample.tid != gettid())
				continue;
			assert_true(near + (1 << 20) < 2 << 20);
			assert_true(sample.time_ns > begin_ns);
			assert_true(sample.time_ns <= ss_now_ns());
			own++;
		}
	}
	assert_true(own > 0);
	ss_cpu_sampler_deinit(&sampler);
}

TEST(test_no_such_cpu)
{
	struct ss_cpu_sampler sampler = {};
	struct ss_cpu_sample sample;

	assert_false(ss_cpu_sampler_start(&sampler, 1 << 20, 1));
	assert_false(ss_cpu_sampler_next(&sampler, &sample));
	ss_cpu_sampler_wait(&sampler, 1000);
	ss_cpu_sampler_deinit(&sampler);
}
