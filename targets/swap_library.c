/* The library of target swap. */
#include "target.h"
#include "swap.h"

TARGET_FRAME static void SWAP_NAME(deeper)(void (*sleep)(void))
{
	sleep();
	TARGET_KEEP();
}

TARGET_FRAME void SWAP_NAME(deep)(void (*sleep)(void));

void SWAP_NAME(deep)(void (*sleep)(void))
{
	SWAP_NAME(deeper)(sleep);
	TARGET_KEEP();
}

/* the common name of both builds */
extern swap_function swap_call __attribute__((alias(SWAP_DEEP)));
