/*
 * Locks of the C++ library. Threads first and second deadlock: first holds one with
 * std::scoped_lock and waits for two with std::lock_guard; second holds two with
 * std::unique_lock and waits for shared, which first holds with std::unique_lock.
 *
 * Thread		waits in
 *	first		std::mutex::lock, lock_two, first_routine, target_thread_main
 *	second		std::shared_mutex::lock_shared, read_shared, second_routine, ...
 *	signalled	std::condition_variable::wait, await_signal, signalled_routine, ...
 *	once-first	target_block, in std::call_once
 *	once-second	std::call_once, await_once, once_routine, ...
 *	static-first	target_block, in the initialisation of a static variable
 *	static-second	__cxa_guard_acquire, use_static, static_routine, ...
 */
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include <sys/syscall.h>

#include "target.h"

namespace app
{
std::mutex one, two, three;
std::shared_mutex shared;
std::condition_variable signalled;
std::once_flag once;
} // namespace app

static std::mutex ready;
static std::condition_variable arrived;
static int holders;

/* Returns when both threads hold their locks. */
static void meet()
{
	std::unique_lock lock(ready);
	if (++holders == 2)
		arrived.notify_all();
	arrived.wait(lock, [] { return holders == 2; });
}

TARGET_FRAME static void lock_two()
{
	std::lock_guard guard(app::two);
	TARGET_KEEP();
}

static void first_routine(void *)
{
	std::scoped_lock one(app::one);
	std::unique_lock shared(app::shared);
	meet();
	target_arrive();
	lock_two();
}

TARGET_FRAME static void read_shared()
{
	std::shared_lock lock(app::shared);
	TARGET_KEEP();
}

static void second_routine(void *)
{
	std::unique_lock lock(app::two);
	meet();
	target_arrive();
	read_shared();
}

TARGET_FRAME static void await_signal()
{
	std::unique_lock lock(app::three);
	target_arrive();
	for (;;)
		app::signalled.wait(lock);
}

static void signalled_routine(void *)
{
	await_signal();
}

static void once_routine(void *)
{
	target_arrive();
	std::call_once(app::once, [] { target_block(); });
	TARGET_KEEP();
}

struct Slow {
	Slow()
	{
		target_block();
	}
};

TARGET_FRAME static void use_static()
{
	target_arrive();
	static Slow slow;
	TARGET_KEEP();
}

static void static_routine(void *)
{
	use_static();
}

int main()
{
	target_init();
	struct target_thread *first =
		target_begin("first", SYS_futex, first_routine, nullptr);
	struct target_thread *second =
		target_begin("second", SYS_futex, second_routine, nullptr);
	target_await(first);
	target_await(second);
	target_start("signalled", SYS_futex, signalled_routine, nullptr);
	target_start("once-first", SYS_poll, once_routine, nullptr);
	target_start("once-second", SYS_futex, once_routine, nullptr);
	target_start("static-first", SYS_poll, static_routine, nullptr);
	target_start("static-second", SYS_futex, static_routine, nullptr);
	target_wait();
}
