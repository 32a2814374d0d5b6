/*
 * Copying memory of the target: many pieces in few system calls, with fallbacks if
 * process_vm_readv is refused (a seccomp filter, an old kernel).
 */
#ifndef SS_PROCESS_PROCESS_MEMORY_H
#define SS_PROCESS_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "data/memory.h"

struct ss_target;

struct ss_process_memory {
	pid_t tid;	/* a living thread of the process */
	int mem_fd;	/* its /proc/…/mem; or -1 */
	int pagemap_fd; /* its /proc/…/pagemap; or -1 */
	bool no_swap;	/* pages in swap are left there, as if they were absent */
	bool ahead; /* pieces are many and close together: look at more pages at once */
	uint64_t program; /* ss_target_program() before its files were opened */
	/* CLOCK_MONOTONIC; ss_process_memory_read_present() reads nothing afterwards. 0:
	   none */
	uint64_t deadline_ns;
};

/* Copies the readable prefix of each piece. Does not allocate or open files. */
void ss_process_memory_read(const struct ss_process_memory *memory,
			    struct ss_piece *pieces, size_t count);

/*
 * The same while threads stand still: never waits for a file system or a userfaultfd(2),
 * neither of which may ever answer. Only pages are read that are in memory, or in swap.
 * At any other one a piece ends; with a bitmap for absent pages, it goes on behind that
 * page, whose bytes are 0. Without pagemap_fd all are read.
 *
 * A page could be dropped between the check and the read, but not by a thread that stands
 * still: therefore the check is a part of the freeze.
 */
void ss_process_memory_read_present(const struct ss_process_memory *memory,
				    struct ss_piece *pieces, size_t count);

/* Copies one piece with PTRACE_PEEKDATA: tid must be stopped by this thread. */
void ss_process_memory_peek(pid_t tid, struct ss_piece *piece);

/*
 * Pages of a process, each copied once, while a gather plan is executed: lists of small nodes
 * are often in few pages. Its bytes must not change meanwhile, or not matter.
 */

struct ss_page_cache;

/* Reserves and touches all memory that it needs (2 MiB). NULL without memory. */
struct ss_page_cache *ss_page_cache_new(void);
void ss_page_cache_free(struct ss_page_cache *cache);

/* Forgets all pages. */
void ss_page_cache_clear(struct ss_page_cache *cache);

/* As ss_process_memory_read_present(), of pieces without a bitmap for absent pages; sets only
   done. */
void ss_page_cache_read(struct ss_page_cache *cache,
			const struct ss_process_memory *memory, struct ss_piece *pieces,
			size_t count);

#endif
