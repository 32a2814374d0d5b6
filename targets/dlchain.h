/* The call from one library of dlchain to the next. */
#ifndef DLCHAIN_H
#define DLCHAIN_H

/* chain: the functions from this one on, NULL at the end; arrive: before the sleep. */
typedef void chain_function(void *chain, void (*arrive)(void));

#endif
