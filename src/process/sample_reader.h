/*
 * Memory of the moment of a sample of the CPU clock (process/cpu_clock.h): the kernel executes a
 * program (gather_program.c) before it takes the sample of a thread that is known here, and
 * that program copies what a gather plan says. So a running thread is not stopped for it, and it
 * does not matter what the thread does afterwards.
 *
 * It needs CAP_BPF and CAP_PERFMON (or CAP_SYS_ADMIN), and Linux 5.11 (for registers 5.15, with BTF). It takes half
 * a mebibyte for each CPU, or a quarter of one for each of many. For one thread at a time.
 */
#ifndef SS_PROCESS_SAMPLE_READER_H
#define SS_PROCESS_SAMPLE_READER_H

#include "data/gather.h"
#include "data/gather_plan.h"
#include "process/cpu_clock.h"

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

struct ss_bpf_code;

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

enum { SS_SAMPLE_PROGRAMS = 16 }; /* in the life of a reader */

struct ss_sample_plan;
struct ss_sample_program;

/* Zeroed, it is closed. */
struct ss_sample_reader {
	const struct ss_cpu_clock *clock; /* borrowed; set before the first plan */
	bool tried;			  /* to open it */
	bool is_open;
	int errnum; /* why it is not open */
	struct ss_gather_maps maps;
	const uint8_t *records;
	size_t cpu_count;
	SS_VECTOR(struct ss_sample_program) programs;
	SS_VECTOR(struct ss_sample_plan *) plans; /* NULL: the place is free */
};

/* Copies what a plan says with each sample of the threads of a process: of those that have roots in the plan
   what begins at these, of all what begins at registers. Replaces the plan that *handle refers to (0:
   none); NULL removes it. The first call opens the reader. *handle is 0 if nothing is copied. Not
   to be called in a freeze. */
void ss_sample_reader_set(struct ss_sample_reader *reader, uint32_t *handle, pid_t pid,
			  const struct ss_gather_plan *plan);

/* The copies of a sample that was just read: blocks, of SS_GATHER_RECORD_SIZE bytes at most; none of a thread of
   which the plan says nothing. False: they are not known, or are not all. */
bool ss_sample_reader_find(const struct ss_sample_reader *reader,
			   const struct ss_clock_sample *sample, void *ret,
			   size_t *ret_size);

void ss_sample_reader_close(struct ss_sample_reader *reader);

#endif
