/*
 * Modules that take each other's place: at each line of stdin the next of these steps.
 *
 * 1	module B is loaded; the main thread blocks in its function plugin_b
 * 2	B is unloaded and D loaded, where B was; blocked in plugin_d
 * 3	B is loaded again, elsewhere; blocked in plugin_b
 *
 * In each step comes the line "step N ADDRESS", ADDRESS being that of the function, and
 * then "ready". While it is blocked:
 * The main thread: read, plugin_b (or plugin_d), step, main, libc's start, _start.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target.h"

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

int main(int argc, char **argv)
{
	(void)argc;
	target_init();
	void *b = load(argv[0], "module_b");
	step(1, b, "plugin_b");
	dlclose(b);
	void *d = load(argv[0], "module_d");
	step(2, d, "plugin_d");
	b = load(argv[0], "module_b");
	step(3, b, "plugin_b");
	return 0;
}
