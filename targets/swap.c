/*
 * Programs and libraries that can be replaced by another build while they run. The two
 * builds differ only in the names of their functions, which have the same length, so that
 * every frame gets a wrong name from the other file.
 *
 * swap_right [LIBRARY]		(default: no library)
 * swap_right_static [PROGRAM MS]	executes PROGRAM MS milliseconds after a tracer has
 *				detached (default: does not)
 *
 * Thread "worker" (the prefix is right_ or wrong_ by FLAVOUR, also in the library):
 *	poll, target_block, right_inner, right_outer, worker_routine, target_thread_main,
 *	start_thread, clone3
 * and with a library:
 *	poll, target_block, right_deeper, right_deep, right_inner, right_outer, ...
 * The main thread: read, target_wait, main, libc's start, _start; with PROGRAM
 * await_tracer instead of target_wait.
 */
#include "target.h"
#include "swap.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static swap_function *deep;

TARGET_FRAME static void SWAP_NAME(inner)(void)
{
	if (deep)
		deep(target_block);
	else
		target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void SWAP_NAME(outer)(void)
{
	SWAP_NAME(inner)();
	TARGET_KEEP();
}

TARGET_FRAME static void worker_routine(void *arg)
{
	(void)arg;
	SWAP_NAME(outer)();
	TARGET_KEEP();
}

#ifdef SWAP_STATIC
static bool is_traced(void)
{
	char line[128];
	bool traced = false;
	FILE *file = fopen("/proc/self/status", "re");

	if (!file)
		target_die("/proc/self/status");
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "TracerPid:", 10) == 0)
			traced = strtol(line + 10, NULL, 10) != 0;
	fclose(file);
	return traced;
}

TARGET_FRAME static void await_tracer(unsigned ms)
{
	while (!is_traced())
		;
	while (is_traced())
		;
	usleep(ms * 1000);
}
#endif

int main(int argc, char **argv)
{
	target_init();
#ifndef SWAP_STATIC
	if (argc > 1) {
		void *library = dlopen(argv[1], RTLD_NOW);
		deep = library ? (swap_function *)dlsym(library, "swap_call") : NULL;
		if (!deep) {
			fprintf(stderr, "%s\n", dlerror());
			return 99;
		}
	}
#else
	if (argc > 1) {
		target_start("worker", SYS_poll, worker_routine, NULL);
		puts("ready");
		await_tracer(target_number(argc, argv, 2, 100));
		execl(argv[1], argv[0], (char *)NULL);
		target_die(argv[1]);
	}
#endif
	target_start("worker", SYS_poll, worker_routine, NULL);
	target_wait();
	return 0;
}
