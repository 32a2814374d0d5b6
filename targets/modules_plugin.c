/*
 * A library of target modules. It is compiled twice, with PLUGIN_NAME as the name of its
 * function.
 */
#include <unistd.h>

__attribute__((noinline)) long PLUGIN_NAME(int fd);

/* Blocks until fd is readable; fd < 0: computes for a while. */
long PLUGIN_NAME(int fd)
{
	char byte;
	long n = fd < 0 ? 0 : read(fd, &byte, 1);

	for (volatile int i = 0; i < -fd * 1000; i++)
		;

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return n;
}
