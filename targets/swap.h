/* The two builds of target swap: SWAP_FLAVOUR is right or wrong. */
#ifndef SWAP_H
#define SWAP_H

#define SWAP_JOIN_(a, b) a##_##b
#define SWAP_JOIN(a, b) SWAP_JOIN_(a, b)
#define SWAP_NAME(name) SWAP_JOIN(SWAP_FLAVOUR, name)

/* The library's function: sleeps in the function that it gets as an argument. */
typedef void swap_function(void (*sleep)(void));

#endif
