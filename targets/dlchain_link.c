/* One library of dlchain. The build compiles it once for each INDEX. */
#include "dlchain.h"

#include <poll.h>
#include <stddef.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

void JOIN(chain_, INDEX)(void *chain, void (*arrive)(void))
{
	chain_function **next = (chain_function **)chain + 1;

	if (*next) {
		(*next)(next, arrive);
	} else {
		arrive();
		for (;;)
			poll(NULL, 0, -1);
	}
	__asm__ volatile("" ::: "memory");
}
