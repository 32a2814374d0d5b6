/*
 * The lock that a thread waits for is copied with its stack; and what the arguments of
 * a call say about a futex.
 */
#include "capture_child.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "data/futex.h"

enum { PAGE = 4096 };

static pthread_mutex_t *shared; /* where the children's mutex lies, in this process too */

static void wait_for_itself(int ready)
{
	say_ready(ready);
	(void)pthread_mutex_lock(shared);
	(void)pthread_mutex_lock(shared);
}

static void await_call(pid_t pid, long number)
{
	char path[64];
	char text[64];
	long now = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	while (now != number) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		ssize_t n = read(fd, text, sizeof(text) - 1);
		(void)close(fd);
		text[n > 0 ? n : 0] = '\0';
		if (sscanf(text, "%ld", &now) != 1)
			now = -1;
		(void)sched_yield();
	}
}

/* At the end of a page behind which there is nothing, and at the start of one. */
static void map_mutex(bool at_end)
{
	uint8_t *pages =
		mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	shared = (void *)(at_end ? pages + 2 * PAGE - sizeof(*shared) : pages + PAGE);
	assert_int_equal(pthread_mutex_init(shared, NULL), 0);
}

static void check_mode(pid_t child, enum ss_mode mode)
{
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = mode };
	enum ss_error_code code = 0;
	struct ss_capture *capture = take(child, &options, &code);
	const struct ss_lock_copy *lock;
	pthread_mutex_t mutex;

	assert_non_null(capture);
	lock = &find_thread(capture, child)->lock;
	assert_true(lock->address <= (uintptr_t)shared);
	size_t before = (uintptr_t)shared - lock->address;
	assert_true(lock->size >= before + sizeof(mutex));
	assert_true(lock->size <= SS_LOCK_MAX);
	memcpy(&mutex, lock->bytes + before, sizeof(mutex));
	assert_int_equal(mutex.__data.__lock, 2);
	assert_int_equal(mutex.__data.__owner, child);
	if (mode == SS_MODE_STOP)
		assert_int_equal(lock->freeze_round, 2);
	ss_capture_free(capture);
}

TEST(test_copy)
{
	for (int at_end = 0; at_end < 2; at_end++) {
		map_mutex(at_end);
		pid_t child = start(wait_for_itself);
		await_call(child, SYS_futex);
		check_mode(child, SS_MODE_STOP);
		check_mode(child, SS_MODE_LIVE);
		await_call(child, SYS_futex); /* it was stopped */
		check_mode(child, SS_MODE_NO_STOP);
		stop(child);
	}
}

TEST(test_no_lock)
{
	enum ss_error_code code = 0;
	pid_t child = start(sleepers);
	struct ss_capture *capture = take(child, NULL, &code);

	assert_non_null(capture);
	assert_int_equal(find_thread(capture, child)->lock.size, 0);
	ss_capture_free(capture);
	stop(child);
}

static bool parse(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		  struct ss_futex *ret)
{
	const struct ss_syscall call = { .number = number,
					 .id = ss_arch_syscall_id(&ss_arch_host, number),
					 .args = { a, b, c, d } };

	return ss_futex_parse(&call, ret);
}

TEST(test_calls)
{
	struct ss_futex futex;

	assert_true(parse(SYS_futex, 0x1000, FUTEX_WAIT_PRIVATE, 2, 0, &futex));
	assert_int_equal(futex.address, 0x1000);
	assert_int_equal(futex.value, 2);
	assert_int_equal(futex.operation, FUTEX_WAIT);
	assert_true(futex.private && !futex.timed && !futex.restarted && futex.relative);
	assert_true(parse(SYS_futex, 0x1004, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0,
			  0x7f0, &futex));
	assert_true(futex.operation == FUTEX_WAIT_BITSET && futex.timed &&
		    !futex.private);
	assert_true(futex.timeout_arg == 3 && !futex.relative &&
		    futex.clock == CLOCK_REALTIME);
	assert_true(parse(SYS_futex, 0x1000, FUTEX_LOCK_PI, 0, 0, &futex));
	assert_true(!futex.relative && futex.clock == CLOCK_REALTIME);
	assert_true(parse(SYS_futex, 0x1000, FUTEX_LOCK_PI2, 0, 0, &futex));
	assert_int_equal(futex.clock, CLOCK_MONOTONIC);
	assert_true(parse(ss_arch_syscall_number(&ss_arch_host, SS_SYS_FUTEX_WAIT),
			  0x1000, 7, UINT32_MAX, 128 | FUTEX_32, &futex));
	assert_true(futex.private && futex.value == 7 && futex.timeout_arg == 4);
	assert_false(parse(SYS_futex, 0x1000, FUTEX_WAKE, 1, 0, &futex));
	assert_false(parse(SYS_futex, 0x1001, FUTEX_WAIT, 1, 0, &futex));
	assert_false(parse(SYS_futex, 0, FUTEX_WAIT, 1, 0, &futex));
	assert_false(parse(SYS_read, 0x1000, FUTEX_WAIT, 1, 0, &futex));
	assert_false(parse(-1, 0x1000, FUTEX_WAIT, 1, 0, &futex));
	/* a sleep that goes on, whose arguments are two pointers; a futex that does */
	assert_false(parse(SYS_restart_syscall, 0x1000, 0x2000, 0, 0, &futex));
	assert_true(parse(SYS_restart_syscall, 0x1000, 393, 0, 0x3000, &futex));
	assert_true(futex.restarted && futex.timed);
}
