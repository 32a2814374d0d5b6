/*
 * Scope-bound ownership: a _cleanup_ variable owns what it holds, is initialised where it is
 * declared, and gives up ownership with take_ptr().
 */
#ifndef SS_BASE_CLEANUP_H
#define SS_BASE_CLEANUP_H

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Yields the value of a pointer variable and sets the variable to NULL. */
#define take_ptr(p)                                                                      \
	({                                                                               \
		__typeof__(p) take_ptr_value_ = (p);                                     \
		(p) = NULL;                                                              \
		take_ptr_value_;                                                         \
	})

/* The same for a file descriptor; the variable is set to -1. */
#define take_fd(fd)                                                                      \
	({                                                                               \
		int take_fd_value_ = (fd);                                               \
		(fd) = -1;                                                               \
		take_fd_value_;                                                          \
	})

/* Defines NAME##_cleanup, which frees *p with FUNCTION. */
#define SS_DEFINE_CLEANUP(type, name, function)                                          \
	static inline void name##_cleanup(type **p)                                      \
	{                                                                                \
		if (*p)                                                                  \
			function(*p);                                                    \
	}

static inline void free_cleanup(void *p)
{
	free(*(void **)p);
}

static inline void close_cleanup(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* nothing was written through it */
}

#define _cleanup_free_ _cleanup_(free_cleanup)
#define _cleanup_close_ _cleanup_(close_cleanup)

/* For interfaces that do not write but lack a const. No cast drops const: -Wcast-qual would
   warn. */
static inline void *ss_drop_const(const void *p)
{
	const union {
		const void *in;
		void *out;
	} pointer = { .in = p };

	return pointer.out;
}

#define SS_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The smaller and the larger value, in the type of "1 ? a : b". Each argument is evaluated
   once. The number makes the names of the variables unique in nested calls. */
#define SS_MIN(a, b) SS_CHOOSE_(a, <, b, __COUNTER__)
#define SS_MAX(a, b) SS_CHOOSE_(a, >, b, __COUNTER__)
#define SS_CHOOSE_(a, compare, b, number) SS_CHOOSE_NUMBERED_(a, compare, b, number)
#define SS_CHOOSE_NUMBERED_(a, compare, b, number)                                       \
	({                                                                               \
		__typeof__(1 ? (a) : (b)) ss_a_##number = (a);                           \
		__typeof__(1 ? (a) : (b)) ss_b_##number = (b);                           \
		ss_a_##number compare ss_b_##number ? ss_a_##number : ss_b_##number;     \
	})

#endif
