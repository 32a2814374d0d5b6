/*
 * A program that loads CPython only when it is told to, as one with a plugin does.
 *
 * argv[1] is the library. The main thread reads from standard input. After a line it loads the
 * library, and reads again; after another line it is in
 *     read_line -> (PyRun_SimpleString) -> waits_in_python -> <module>
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "target.h"

static const char program[] = "import os\n"
			      "def waits_in_python():\n"
			      "    while os.read(0, 1):\n"
			      "        pass\n"
			      "waits_in_python()\n";

int main(int argc, char **argv)
{
	char byte;

	if (argc < 2)
		target_die("usage: late_python LIBRARY");
	printf("ready\n");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 0;
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	if (!library)
		target_die(dlerror());
	printf("loaded\n");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 0;
	((void (*)(void))dlsym(library, "Py_Initialize"))();
	return ((int (*)(const char *))dlsym(library, "PyRun_SimpleString"))(program);
}
