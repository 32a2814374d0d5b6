/*
 * A process that crashes at the end of a path through its functions, for signatures.
 *
 * crash_paths SEED
 *
 * The seed decides about the path and its end (a bad address, abort(3), a division by zero),
 * which are printed first, such as "3 1 1 2 abort". The stack is the end, step_2, step_1, step_1,
 * step_3, main: each function has one call site.
 */
#include "target.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FUNCTIONS = 6, LENGTH_MAX = 6, ENDS = 3 };

static unsigned path[LENGTH_MAX];
static unsigned length;
static unsigned end;
static volatile int zero;

TARGET_FRAME static void end_address(void)
{
	*(volatile int *)(uintptr_t)(16 + zero) = 1;
	TARGET_KEEP();
}

TARGET_FRAME static void end_abort(void)
{
	abort();
}

TARGET_FRAME static void end_division(void)
{
	zero = (int)length / zero;
	TARGET_KEEP();
}

static void (*const ends[ENDS])(void) = { end_address, end_abort, end_division };
static const char *const end_names[ENDS] = { "address", "abort", "division" };

static void (*const steps[FUNCTIONS])(unsigned at);

static void (*next(unsigned at))(unsigned)
{
	return at < length ? steps[path[at]] : NULL;
}

#define STEP(n)                                                                          \
	TARGET_FRAME static void step_##n(unsigned at)                                   \
	{                                                                                \
		void (*volatile step)(unsigned) = next(at + 1);                          \
		if (step)                                                                \
			step(at + 1);                                                    \
		else                                                                     \
			ends[end]();                                                     \
		TARGET_KEEP();                                                           \
	}

STEP(0)
STEP(1)
STEP(2)
STEP(3)
STEP(4)
STEP(5)

static void (*const steps[FUNCTIONS])(unsigned at) = { step_0, step_1, step_2,
						       step_3, step_4, step_5 };

/* Numerical Recipes; its low bits are poor. */
static unsigned draw(unsigned *state, unsigned limit)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 16) % limit;
}

int main(int argc, char **argv)
{
	unsigned state = target_number(argc, argv, 1, 0);

	target_init();
	length = 2 + draw(&state, LENGTH_MAX - 1);
	for (unsigned i = 0; i < length; i++) {
		path[i] = draw(&state, FUNCTIONS);
		printf("%u ", path[i]);
	}
	end = draw(&state, ENDS);
	printf("%s\n", end_names[end]);
	next(0)(0);
	return 1;
}
