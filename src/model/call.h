/*
 * What the arguments of system calls in which threads block are: which is a file
 * descriptor, which points to memory that says what the call waits for. One table, for
 * those who copy and for those who interpret.
 */
#ifndef SS_MODEL_CALL_H
#define SS_MODEL_CALL_H

#include "arch/arch.h"
#include "stacksnap.h"

enum ss_call_timeout {
	SS_TIMEOUT_NONE,    /* the call knows no limit */
	SS_TIMEOUT_MS,	    /* an int of milliseconds, negative: none */
	SS_TIMEOUT_SPEC,    /* points to a struct timespec, NULL: none */
	SS_TIMEOUT_VAL,	    /* points to a struct timeval, NULL: none */
	SS_TIMEOUT_REALTIME /* points to a struct timespec of CLOCK_REALTIME, NULL: none
			     */
};

/* What an argument of a call points to. */
struct ss_call_memory {
	int8_t arg; /* number of the argument + 1; 0: there is no more */
	uint8_t size;
	int8_t count_arg; /* so many of them, as this argument says, + 1; 0: one */
};

enum { SS_CALL_MEMORY = 4, SS_CALL_BYTES_MAX = 64 * 1024 };

struct ss_call {
	long number;
	enum ss_wait_kind kind;
	int8_t fd; /* number of the argument that is a file descriptor, + 1; 0: none */
	int8_t timeout; /* number of the argument that is the time limit, + 1 */
	enum ss_call_timeout timeout_type;
	struct ss_call_memory memory[SS_CALL_MEMORY];
};

/* The entry of a system call, or NULL: nothing is known of it. */
const struct ss_call *ss_call_find(long number);

/* The bytes that an entry of memory stands for, capped. */
size_t ss_call_memory_size(const struct ss_call_memory *memory,
			   const struct ss_syscall *call);

#endif
