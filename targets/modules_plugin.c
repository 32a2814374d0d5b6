/*
 * A library of the target modules; compiled twice, with the name of its function as
 * PLUGIN_NAME.
 */
#include <unistd.h>

__attribute__((noinline)) long PLUGIN_NAME(int fd);

/* Blocks until there is something to read; below 0: computes for a while. */
long PLUGIN_NAME(int fd)
{
	char byte;
	long n = fd < 0 ? 0 : read(fd, &byte, 1);

	for (volatile int i = 0; i < -fd * 1000; i++)
		;

	__asm__ volatile("" ::: "memory"); /* the call is not the last thing */
	return n;
}
