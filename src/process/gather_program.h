/*
 * A gather plan (data/gather.h) as a program for the kernel (process/bpf.h), which it executes when
 * it samples a CPU: what the plan says of the thread that runs there is copied at that very moment.
 *
 * It is the caller who executes the plan afterwards: the program copies the memory that the plan
 * will ask for, as blocks with their addresses. So it need not be exact, only fast and bounded: it
 * follows each list for at most SS_GATHER_PROGRAM_NODES nodes, reads what is in memory (it cannot
 * wait for a page), and stops when the record is full. Then the record says that it was cut. The
 * record of a thread without roots is empty.
 */
#ifndef SS_PROCESS_GATHER_PROGRAM_H
#define SS_PROCESS_GATHER_PROGRAM_H

#include "data/gather.h"
#include "process/bpf.h"
#include "data/gather_plan.h"

enum {
	SS_GATHER_RECORD_SIZE = 64 << 10,
	SS_GATHER_PROGRAM_NODES = 256,
	SS_GATHER_PROGRAM_ROOTS = 2, /* of a thread: interpreters */
	SS_GATHER_PROGRAM_STEPS = 8,
};

/* What is known of a thread; or, with thread id 0, of all threads of a process that are not known. */
struct ss_gather_thread {
	uint32_t program; /* of a process: index in the array of programs */
	uint32_t reserved;
	uint64_t roots[SS_GATHER_PROGRAM_ROOTS]; /* 0: none */
};

/* A record begins with it; blocks follow, each a struct ss_gather_block and its bytes, which are
   filled up to a multiple of 8. */
struct ss_gather_record {
	uint64_t begin;	  /* a number, written before anything else */
	uint64_t end;	  /* the same, written last: the record is whole */
	uint64_t time_ns; /* CLOCK_MONOTONIC, about that of the sample */
	uint32_t tid;
	uint32_t cut;  /* there is more */
	uint64_t used; /* bytes with this header */
};

struct ss_gather_block {
	uint64_t address;
	uint64_t size;	   /* of the bytes that follow */
	uint64_t readable; /* 0: they could not be read */
};

/* The maps of the programs. */
struct ss_gather_maps {
	int records;	      /* array: record_count of each CPU, the newest ones */
	int32_t record_count; /* a power of two */
	int counters;	      /* array for each CPU: how many records it has written */
	int threads;	      /* hash: struct ss_gather_thread by ss_gather_key() */
	int programs;	      /* array */
	/* The pid namespace of this process, unless it is that of the kernel: 0 */
	uint64_t namespace_device;
	uint64_t namespace_inode;
};

static inline uint64_t ss_gather_key(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

/* The program that all events have: executes that of the process. */
void ss_gather_program_dispatch(struct ss_bpf_code *code,
				const struct ss_gather_maps *maps);

/* The program of a plan, which must be valid, for so many roots of a thread, at most
   SS_GATHER_PROGRAM_ROOTS: the kernel takes some 10 ms to check it for each. False: the plan has steps that
   it does not know: what begins at thread pointers or fixed addresses, counts, ends, several
   pointers in a node, lists in lists, more than SS_GATHER_PROGRAM_STEPS. */
bool ss_gather_program_make(struct ss_bpf_code *code, const struct ss_gather_maps *maps,
			    const struct ss_gather_plan *plan, size_t roots);

#endif
