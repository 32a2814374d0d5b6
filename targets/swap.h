/* The two builds of swap: SWAP_FLAVOUR is right or wrong. */
#ifndef SWAP_H
#define SWAP_H

#define SWAP_JOIN_(a, b) a##_##b
#define SWAP_JOIN(a, b) SWAP_JOIN_(a, b)
#define SWAP_NAME(name) SWAP_JOIN(SWAP_FLAVOUR, name)

/* What the library does: it sleeps in the function that it is given. */
typedef void swap_function(void (*sleep)(void));

#endif
