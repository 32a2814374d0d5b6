/* Samples of this thread in user space. */

#include "unit.h"

#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/perf.h"

enum { IN_SUCCESSION = 3, LIMIT_S = 20 };

/* Until the thread has run for so long. */
static void spin(const struct ss_user_sampler *sampler, uint64_t ns, bool in_kernel)
{
	static char bytes[1 << 20];
	uint64_t end = ss_now_ns() + LIMIT_S * SS_NS_PER_SECOND;

	while (ss_user_sampler_ran_ns(sampler, gettid()) < ns && ss_now_ns() < end) {
		if (in_kernel)
			(void)!getrandom(bytes, sizeof(bytes), 0);
		for (volatile int i = 0; !in_kernel && i < 100000; i++)
			;
	}
}

/* When this thread was seen to compute. */
static uint64_t look(bool in_kernel)
{
	struct ss_user_sampler sampler = {};

	if (!ss_user_sampler_start(&sampler, gettid())) {
		assert_true(sampler.refused);
		ss_user_sampler_deinit(&sampler);
		skip();
	}
	assert_int_equal(ss_user_sampler_seen(&sampler, gettid(), IN_SUCCESSION), 0);
	assert_true(ss_user_sampler_start(&sampler, gettid()));
	spin(&sampler, 40 * SS_USER_PERIOD_NS, in_kernel);
	uint64_t seen_ns = ss_user_sampler_seen(&sampler, gettid(), IN_SUCCESSION);
	assert_int_equal(ss_user_sampler_seen(&sampler, 1, IN_SUCCESSION), 0);
	ss_user_sampler_deinit(&sampler);
	return seen_ns;
}

TEST(test_computing)
{
	uint64_t begin_ns = ss_now_ns();

	uint64_t seen_ns = look(false);
	assert_true(seen_ns > begin_ns);
	assert_true(seen_ns <= ss_now_ns());
}

TEST(test_in_kernel)
{
	assert_int_equal(look(true), 0);
}

TEST(test_no_such_thread)
{
	struct ss_user_sampler sampler = {};

	assert_false(ss_user_sampler_start(&sampler, 1 << 30));
	assert_int_equal(ss_user_sampler_ran_ns(&sampler, 1 << 30), 0);
	ss_user_sampler_deinit(&sampler);
}
