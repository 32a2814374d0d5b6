/*
 * Copying memory of the target: many pieces in few system calls, with the
 * fallbacks where process_vm_readv is refused (a seccomp filter, an old kernel).
 */
#ifndef SS_TARGET_MEMORY_H
#define SS_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ss_target;

struct ss_piece {
	uint64_t address; /* in the target */
	void *bytes;	  /* here */
	size_t size;
	size_t done; /* out: bytes copied, a prefix; less than size where unreadable */
};

struct ss_memory {
	pid_t tid;	  /* any living thread of the process */
	int mem_fd;	  /* its /proc/…/mem, opened beforehand; or -1 */
	uint64_t program; /* that of the target, before its files were opened */
};

/* Copies each piece as far as it can be read. Allocates and opens nothing. */
void ss_memory_read(const struct ss_memory *memory, struct ss_piece *pieces,
		    size_t count);

/* The same for one piece by PTRACE_PEEKDATA: tid is stopped and ours. */
void ss_memory_peek(pid_t tid, struct ss_piece *piece);

/*
 * Whether a process still has the memory that maps_fd, of /proc/PID/maps, tells of: an
 * exec puts another in its place, and the end none. The old one may go on without the
 * process: that of a child of vfork() is its parent's, too.
 */
bool ss_memory_is_mapped(const struct ss_memory *memory, const struct ss_target *target,
			 int maps_fd);

#endif
