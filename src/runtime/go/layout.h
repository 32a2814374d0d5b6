/*
 * Where the runtime of Go keeps what describes a goroutine, by version. The offsets are
 * those of struct g, gobuf and m in Go's src/runtime/runtime2.go, on 64-bit processors.
 *
 * To add a version: compare these structs, and the array waitReasonStrings, with those of
 * the version before; add a row, and a reason list if it differs, to layout.c, and the
 * version to tests/e2e/test_goroutines.py.
 */
#ifndef SS_RUNTIME_GO_LAYOUT_H
#define SS_RUNTIME_GO_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* The same in all versions. */
enum {
	SS_GO_STACK_LO = 0,
	SS_GO_STACK_HI = 8,
	SS_GO_M = 48,  /* the thread (struct m) on which it is, or 0 */
	SS_GO_SP = 56, /* of gobuf: where it continues */
	SS_GO_PC = 64,
	SS_GO_SELF = 72, /* its own address */
};

struct ss_go_layout {
	unsigned first; /* Go 1.first to 1.last */
	unsigned last;
	uint32_t bp;
	uint32_t syscall_sp; /* where it entered a system call; followed by the pc */
	uint32_t status;
	uint32_t id;
	uint32_t since; /* CLOCK_MONOTONIC, or 0: when the garbage collector ran before it
			found that the goroutine waits */
	uint32_t reason;    /* one byte: index of reasons */
	uint32_t thread_id; /* of struct m */
	/* One byte: grows each time that it stops running; then, aligned, a time that changes
	   at least each eighth time. 0: not known */
	uint32_t stops;
	const char *const *reasons; /* words of the runtime; "" for 0 */
	size_t reason_count;
};

/* Bytes that are needed of struct g, and of struct m. */
enum { SS_GO_G_SIZE = 208, SS_GO_M_SIZE = 80 };

/* The layout of Go 1.minor. NULL: not known. */
const struct ss_go_layout *ss_go_layout_find(unsigned minor);

#endif
