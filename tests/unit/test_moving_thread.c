/*
 * The recorder and a thread that moves data in a system call, which a stop would end early: once it has
 * been seen in one it is not stopped when it runs in user space, since it may be about to make the next.
 * The race is forced: the thread is where it is told to be.
 */
#include "capture_child.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/clock.h"
#include "sample/sampler.h"

enum { MIB = 1 << 20 };

/* Shared with the child. */
static struct shared {
	atomic_bool moves;
	atomic_bool spins;
	atomic_ulong calls;
	atomic_ulong cuts;
} * shared;

static void move(int ready)
{
	char *bytes = malloc(MIB);

	say_ready(ready);
	for (;;) {
		atomic_store(&shared->spins, !atomic_load(&shared->moves));
		if (atomic_load(&shared->spins))
			continue;
		ssize_t moved = getrandom(bytes, MIB, 0);
		atomic_fetch_add(&shared->calls, 1);
		if (moved != MIB)
			atomic_fetch_add(&shared->cuts, 1);
	}
}

static void await_call(void)
{
	unsigned long before = atomic_load(&shared->calls);

	while (atomic_load(&shared->calls) == before)
		ss_sleep_ns(SS_NS_PER_MS / 10);
}

static const struct ss_capture_thread *tick(struct ss_sampler *sampler)
{
	struct ss_tick found;

	assert_null(ss_sampler_tick(sampler, &found));
	assert_non_null(found.capture);
	assert_int_equal(found.capture->threads.count, 1);
	return &found.capture->threads.items[0];
}

TEST(test_stop_between_calls)
{
	const struct ss_capture_options options = { .size = sizeof(options),
						    .timeout_ms = 1000,
						    .max_stack = 64 << 10,
						    .max_total = 1 << 20 };
	_cleanup_(ss_target_cleanup) struct ss_target *target = NULL;
	struct ss_arena arena = {};
	struct ss_sampler sampler;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	pid_t child = start(move);
	assert_null(ss_target_open(child, &target));
	ss_sampler_init(&sampler, target, &options, &arena, &ss_process_access);
	/* Not known yet: it is stopped. */
	while (sampler.thread_stops == 0)
		(void)tick(&sampler);
	struct ss_sampled_thread *thread = ss_thread_list_find(&sampler.threads, child);
	assert_int_equal(thread->moved_data_ns, 0);
	if (sampler.look.cpus.refused) { /* where it runs is not seen */
		ss_sampler_deinit(&sampler);
		ss_arena_deinit(&arena);
		stop(child);
		skip();
	}
	atomic_store(&shared->moves, true);
	await_call();
	while (!thread->moved_data_ns)
		(void)tick(&sampler);
	atomic_store(&shared->moves, false);
	while (!atomic_load(&shared->spins))
		;
	const uint64_t stops = sampler.thread_stops;
	for (int i = 0; i < 20; i++) {
		/* It was not stopped for too long either, however busy the machine is. */
		sampler.limit = (struct ss_stop_limit){ .most = 1 };
		ss_thread_list_find(&sampler.threads, child)->stopped_ns = 0;
		assert_int_equal(tick(&sampler)->end, SS_END_RUNNABLE);
	}
	/* As long as it is seen in such calls, that stays so, although no stop is prepared. */
	const uint64_t moved_ns = thread->moved_data_ns -= SS_NS_PER_SECOND;
	atomic_store(&shared->moves, true);
	await_call();
	while (thread->moved_data_ns == moved_ns)
		(void)tick(&sampler);
	atomic_store(&shared->moves, false);
	while (!atomic_load(&shared->spins))
		;
	assert_int_equal(sampler.thread_stops, stops);
	assert_int_equal(atomic_load(&shared->cuts), 0);
	/* After a while it is as any other. */
	thread->moved_data_ns -= 60 * SS_NS_PER_SECOND;
	while (sampler.thread_stops == stops)
		(void)tick(&sampler);
	ss_sampler_deinit(&sampler);
	ss_arena_deinit(&arena);
	stop(child);
	assert_int_equal(munmap(shared, sizeof(*shared)), 0);
}
