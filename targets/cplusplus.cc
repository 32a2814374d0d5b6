/*
 * C++: templates, inlined calls, lambdas in std::function, exceptions in flight.
 * Every stack begins with poll, target_block and ends with thread_routine(void*),
 * target_thread_main, start_thread, clone3. In between, innermost first (an indented name
 * is an inlined call, followed by the frame that contains it; a suffix " [clone ...]",
 * which depends on the compiler, is omitted):
 *
 * "template":	void shapes::descend<0, int>(int)
 *		void shapes::descend<1, int>(int)
 *		void shapes::descend<2, int>(int)
 *		void shapes::descend<3, int>(int)
 *		shapes::stack<char, 8ul>::run() const
 *		run_template()
 * "inline":		inner_inlined
 *			middle_inlined
 *			outer_inlined
 *		run_inline()
 * "lambda":	run_lambda()::{lambda(int)#1}::operator()(int) const
 *			the library's
 *		std::_Function_handler<...>::_M_invoke(...)
 *			the library's
 *		call_function(std::function<void (int)> const&)
 *		run_lambda()
 * "destructor" (an exception from throw_it; its unwinding runs a destructor):
 *		guard::~guard()
 *		hold_guard()
 *		run_destructor()
 * "handler" (inside the catch block):
 *		handle(std::exception const&)
 *		run_handler()
 * "terminate" (an exception reaches noexcept; all frames are still there):
 *		on_terminate()
 *		the library's, from __terminate to __cxa_throw
 *		throw_it()
 *		never_throws()
 *		run_terminate()
 * "long-names":
 *		void listed<0, 1, ..., 899>(), of more than 1,024 bytes also when mangled
 *		void doubled<names::pair<names::pair<...>, ...> >(), of 200,000 when
 *		demangled
 *		run_long_names()
 */
#include "target.h"

#include <exception>
#include <functional>
#include <utility>
#include <stdexcept>
#include <sys/syscall.h>

namespace shapes
{
template <int Level, typename T> TARGET_FRAME void descend(T value)
{
	if constexpr (Level == 0)
		target_block();
	else
		descend<Level - 1, T>(value);
	TARGET_KEEP();
}

template <typename T, unsigned long Size> struct stack {
	T items[Size];
	TARGET_FRAME void run() const
	{
		descend<3, int>(static_cast<int>(items[0]));
		TARGET_KEEP();
	}
};
} // namespace shapes

TARGET_FRAME void run_template()
{
	shapes::stack<char, 8> stack = {};

	stack.run();
	TARGET_KEEP();
}

__attribute__((always_inline)) static inline void inner_inlined()
{
	target_block();
	TARGET_KEEP();
}

__attribute__((always_inline)) static inline void middle_inlined()
{
	inner_inlined();
	TARGET_KEEP();
}

__attribute__((always_inline)) static inline void outer_inlined()
{
	middle_inlined();
	TARGET_KEEP();
}

TARGET_FRAME void run_inline()
{
	outer_inlined();
	TARGET_KEEP();
}

TARGET_FRAME void call_function(const std::function<void(int)> &function)
{
	function(1);
	TARGET_KEEP();
}

TARGET_FRAME void run_lambda()
{
	call_function([](int) __attribute__((noinline)) {
		target_block();
		TARGET_KEEP();
	});
	TARGET_KEEP();
}

TARGET_FRAME void throw_it()
{
	throw std::runtime_error("thrown by a target");
}

struct guard {
	TARGET_FRAME ~guard()
	{
		target_block();
		TARGET_KEEP();
	}
};

TARGET_FRAME void hold_guard()
{
	guard held;

	throw_it();
	TARGET_KEEP();
}

TARGET_FRAME void run_destructor()
{
	try {
		hold_guard();
	} catch (const std::exception &) {
		TARGET_KEEP();
	}
}

TARGET_FRAME void handle(const std::exception &)
{
	target_block();
	TARGET_KEEP();
}

TARGET_FRAME void run_handler()
{
	try {
		throw_it();
	} catch (const std::exception &error) {
		handle(error);
		TARGET_KEEP();
	}
}

[[noreturn]] TARGET_FRAME void on_terminate()
{
	for (;;)
		target_block();
}

TARGET_FRAME void never_throws() noexcept
{
	throw_it();
	TARGET_KEEP();
}

TARGET_FRAME void run_terminate()
{
	never_throws();
	TARGET_KEEP();
}

namespace names
{
template <typename A, typename B> struct pair {
};

template <int Level> struct nested {
	using type =
		pair<typename nested<Level - 1>::type, typename nested<Level - 1>::type>;
};

template <> struct nested<0> {
	using type = int;
};
} // namespace names

template <int... Numbers> TARGET_FRAME void listed()
{
	target_block();
	TARGET_KEEP();
}

template <int... Numbers> void call_listed(std::integer_sequence<int, Numbers...>)
{
	listed<Numbers...>();
}

template <typename T> TARGET_FRAME void doubled()
{
	call_listed(std::make_integer_sequence<int, 900>());
	TARGET_KEEP();
}

TARGET_FRAME void run_long_names()
{
	doubled<names::nested<13>::type>();
	TARGET_KEEP();
}

TARGET_FRAME void thread_routine(void *arg)
{
	reinterpret_cast<void (*)()>(arg)();
	TARGET_KEEP();
}

int main()
{
	static const struct {
		const char *name;
		void (*run)();
	} threads[] = {
		{ "template", run_template },	  { "inline", run_inline },
		{ "lambda", run_lambda },	  { "destructor", run_destructor },
		{ "handler", run_handler },	  { "terminate", run_terminate },
		{ "long-names", run_long_names },
	};

	target_init();
	std::set_terminate(on_terminate);
	for (const auto &thread : threads)
		target_start(thread.name, SYS_poll, thread_routine,
			     reinterpret_cast<void *>(thread.run));
	target_wait();
	return 0;
}
