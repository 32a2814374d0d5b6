/*
 * Arguments of blocking system calls: which one is a file descriptor, and which ones
 * point to memory that describes the wait. Capturing and interpreting use the same table.
 */
#ifndef SS_DATA_CALL_H
#define SS_DATA_CALL_H

#include "arch/arch.h"
#include "stacksnap.h"

enum ss_call_timeout {
	SS_TIMEOUT_NONE,    /* the call has no time limit */
	SS_TIMEOUT_MS,	    /* an int of milliseconds, negative: none */
	SS_TIMEOUT_SPEC,    /* points to a struct timespec, NULL: none */
	SS_TIMEOUT_VAL,	    /* points to a struct timeval, NULL: none */
	SS_TIMEOUT_REALTIME /* points to a struct timespec of CLOCK_REALTIME, NULL: none
			     */
};

/* What an argument of a call points to. */
struct ss_call_memory {
	int8_t arg; /* number of the argument + 1; 0: end of the list */
	uint8_t size;
	int8_t count_arg; /* number of the argument with their count, + 1; 0: one */
};

enum { SS_CALL_MEMORY = 4, SS_CALL_BYTES_MAX = 64 * 1024 };

struct ss_call {
	enum ss_syscall_id id;
	enum ss_wait_kind kind;
	int8_t fd;   /* number of the argument that is a file descriptor, + 1; 0: none */
	int8_t path; /* number of the argument that is a path, + 1; 0: none */
	int8_t timeout; /* number of the argument that is the time limit, + 1 */
	enum ss_call_timeout timeout_type;
	struct ss_call_memory memory[SS_CALL_MEMORY];
};

/* The entry of a system call, or NULL. */
const struct ss_call *ss_call_find(enum ss_syscall_id id);

/* Whether such a wait is for the other end of a descriptor: data, or room for data. */
bool ss_wait_kind_transfers(enum ss_wait_kind kind);

/* The size of the memory in bytes, limited to SS_CALL_BYTES_MAX. */
size_t ss_call_memory_size(const struct ss_call_memory *memory,
			   const struct ss_syscall *call);

#endif
