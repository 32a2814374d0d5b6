/*
 * Functions with very long names: the argument of a template doubles at each level, so
 * that 1 KB in the symbol table is demangled to 200 KB.
 *
 * Thread "worker":	poll, target_block, void hold<pair_of_many_types<...>>(),
 *			worker_routine, target_thread_main, start_thread, clone3
 * The main thread:	read, target_wait, main, libc's start, _start
 */
#include "target.h"

#include <sys/syscall.h>

template <class First, class Second> struct pair_of_many_types {
};

template <int level> struct tree {
	typedef typename tree<level - 1>::type below;
	typedef pair_of_many_types<below, below> type;
};

template <> struct tree<0> {
	typedef int type;
};

template <class Type> TARGET_FRAME void hold()
{
	target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void worker_routine(void *)
{
	hold<tree<13>::type>();
	TARGET_KEEP();
}

int main()
{
	target_init();
	target_start("worker", SYS_poll, worker_routine, nullptr);
	target_wait();
	return 0;
}
