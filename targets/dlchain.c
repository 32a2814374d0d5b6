/*
 * A chain of calls through shared libraries that were loaded with dlopen().
 *
 * dlchain [COUNT [DIRECTORY]]	loads DIRECTORY/libchain_INDEX.so for INDEX 0 to COUNT-1
 *				(default: 200, chain/ beside this program)
 *
 * With another DIRECTORY the libraries may be copies of the first 200, whose functions are
 * chain_0 to chain_199 repeatedly.
 *
 * Thread "chain":
 *	poll
 *	chain_COUNT-1, ..., chain_1, chain_0	each in the library of its index
 *	thread_routine
 *	target_thread_main, start_thread, clone3
 */
#include "target.h"
#include "dlchain.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIBRARIES = 200 };

static char directory[PATH_MAX];

static chain_function *load(unsigned index)
{
	char path[PATH_MAX + 64], name[32];

	snprintf(path, sizeof(path), "%s/libchain_%u.so", directory, index);
	snprintf(name, sizeof(name), "chain_%u", index % LIBRARIES);
	void *library = dlopen(path, RTLD_NOW);
	chain_function *function = library ? (chain_function *)dlsym(library, name) :
					     NULL;
	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		exit(99);
	}
	return function;
}

TARGET_FRAME static void thread_routine(void *arg)
{
	chain_function **chain = arg;

	chain[0](chain, target_arrive);
	TARGET_KEEP();
}

static void find_directory(int argc, char **argv)
{
	if (argc > 2) {
		snprintf(directory, sizeof(directory), "%s", argv[2]);
		return;
	}
	if (readlink("/proc/self/exe", directory, sizeof(directory) - 1) < 0)
		target_die("readlink");
	snprintf(strrchr(directory, '/'), sizeof("/chain"), "/chain");
}

int main(int argc, char **argv)
{
	unsigned count = target_number(argc, argv, 1, LIBRARIES);
	chain_function **chain = calloc(count + 1, sizeof(*chain));

	target_init();
	if (!chain)
		target_die("calloc");
	find_directory(argc, argv);
	for (unsigned i = 0; i < count; i++)
		chain[i] = load(i);
	target_start("chain", SYS_poll, thread_routine, chain);
	target_wait();
	return 0;
}
