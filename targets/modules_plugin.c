/*
 * A library of the target modules; compiled twice, with the name of its function as
 * PLUGIN_NAME.
 */
#include <unistd.h>

__attribute__((noinline)) long PLUGIN_NAME(int fd);

/* Blocks until there is something to read. */
long PLUGIN_NAME(int fd)
{
	char byte;
	long n = read(fd, &byte, 1);

	__asm__ volatile("" ::: "memory"); /* the call is not the last thing */
	return n;
}
