/*
 * Loads and unloads modules at the same addresses. Each line on standard input starts the
 * next step:
 *
 * 1	loads module B and blocks the main thread in its function plugin_b
 * 2	unloads B, loads D at the address of B, and blocks in plugin_d
 * 3	loads B again at another address and blocks in plugin_b
 *
 * Each step prints "step N ADDRESS", with the address of the function, and "ready". While
 * it is blocked:
 * The main thread: read, plugin_b (or plugin_d), step, main, libc's start, _start.
 *
 * With the argument "fast", B and D alternate as fast as possible until the end of standard
 * input. The main thread is in plugin_b, run_b, main; or in plugin_d, run_d, main; or in
 * the dynamic linker.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target.h"

enum { SPIN = 300 }; /* thousands of rounds */

static void *load(const char *argv0, const char *name)
{
	char path[4096];
	const char *slash = strrchr(argv0, '/');

	snprintf(path, sizeof(path), "%.*s/%s.so", (int)(slash - argv0), argv0, name);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return handle;
}

TARGET_FRAME static void step(int number, void *handle, const char *symbol)
{
	long (*function)(int) = (long (*)(int))dlsym(handle, symbol);

	printf("step %d %p\nready\n", number, (void *)function);
	fflush(stdout);
	function(STDIN_FILENO);
	TARGET_KEEP();
}

TARGET_FRAME static void run_b(void *handle)
{
	((long (*)(int))dlsym(handle, "plugin_b"))(-SPIN);
	TARGET_KEEP();
}

TARGET_FRAME static void run_d(void *handle)
{
	((long (*)(int))dlsym(handle, "plugin_d"))(-SPIN);
	TARGET_KEEP();
}

static int take_turns(const char *argv0)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	void *handle;

	puts("ready");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0) {
		handle = load(argv0, "module_b");
		run_b(handle);
		dlclose(handle);
		handle = load(argv0, "module_d");
		run_d(handle);
		dlclose(handle);
	}
	return 0;
}

int main(int argc, char **argv)
{
	target_init();
	if (argc > 1)
		return take_turns(argv[0]);
	void *b = load(argv[0], "module_b");
	step(1, b, "plugin_b");
	dlclose(b);
	void *d = load(argv[0], "module_d");
	step(2, d, "plugin_d");
	b = load(argv[0], "module_b");
	step(3, b, "plugin_b");
	return 0;
}
