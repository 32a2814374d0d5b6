/*
 * Memory of the moment of a sample of the CPU clock (process/perf.h): the kernel executes a
 * program (gather_program.c) before it takes the sample of a thread that is known here, and
 * that program copies what a gather plan says. So a running thread is not stopped for it, and it
 * does not matter what the thread does afterwards.
 *
 * It needs CAP_BPF and CAP_PERFMON (or CAP_SYS_ADMIN), and Linux 5.11 (for registers 5.15, with BTF). It takes half
 * a mebibyte for each CPU, or a quarter of one for each of many. For one thread at a time.
 */
#ifndef SS_PROCESS_SAMPLE_READER_H
#define SS_PROCESS_SAMPLE_READER_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "data/gather.h"
#include "process/perf.h"

/*
 * Programs that the kernel executes, see bpf(2): their instructions, one at a time, and the maps
 * they share with this process. There is no compiler and no library: the programs are made from
 * data at run time, and small.
 *
 * Registers are those of linux/bpf.h: results in BPF_REG_0, arguments in 1 to 5, kept across calls
 * 6 to 9, and BPF_REG_10 is the end of a stack of 512 bytes.
 */

/* Zeroed, it is empty. */
struct ss_bpf_code {
	SS_VECTOR(struct bpf_insn) items;
	bool failed; /* no memory: it cannot be loaded */
};

void ss_bpf_code_deinit(struct ss_bpf_code *code);

/* to = value. Of map descriptors: ss_bpf_load_map(). */
void ss_bpf_set(struct ss_bpf_code *code, uint8_t to, uint64_t value);
void ss_bpf_load_map(struct ss_bpf_code *code, uint8_t to, int map_fd);
void ss_bpf_move(struct ss_bpf_code *code, uint8_t to, uint8_t from);
void ss_bpf_add(struct ss_bpf_code *code, uint8_t to, uint8_t from);
void ss_bpf_add_value(struct ss_bpf_code *code, uint8_t to, int32_t value);
/* An operation such as BPF_AND or BPF_LSH with a constant, on 64 bits. */
void ss_bpf_operate(struct ss_bpf_code *code, uint8_t operation, uint8_t to,
		    int32_t value);
/* to &= from */
void ss_bpf_and(struct ss_bpf_code *code, uint8_t to, uint8_t from);

/* Memory of the program; size: 4 or 8. */
void ss_bpf_read(struct ss_bpf_code *code, uint8_t to, uint8_t base, int offset,
		 unsigned size);
void ss_bpf_write(struct ss_bpf_code *code, uint8_t base, int offset, uint8_t from,
		  unsigned size);
void ss_bpf_write_value(struct ss_bpf_code *code, uint8_t base, int offset, int32_t value,
			unsigned size);

void ss_bpf_call(struct ss_bpf_code *code, int32_t function);
void ss_bpf_exit(struct ss_bpf_code *code);

/* Jumps forward if a condition such as BPF_JEQ holds (BPF_JA: always). Returns its place, which
   ss_bpf_land() takes: the jump then leads to the next instruction. */
size_t ss_bpf_jump(struct ss_bpf_code *code, uint8_t condition, uint8_t reg,
		   int32_t value);
void ss_bpf_land(struct ss_bpf_code *code, size_t jump);
/* Jumps back to a place: the number of instructions that were there then. */
void ss_bpf_jump_back(struct ss_bpf_code *code, size_t place);

/* The system calls return a descriptor or 0, or a negative errno. */
int ss_bpf_new_map(uint32_t type, uint32_t key_size, uint32_t value_size, uint32_t count,
		   uint32_t flags);
int ss_bpf_set_element(int map_fd, const void *key, const void *value);
/* Removes an element of a hash; -ENOENT: there is none. */
int ss_bpf_remove_element(int map_fd, const void *key);
/* Loads a program for events of perf_event_open(2). */
int ss_bpf_load(const struct ss_bpf_code *code);

/*
 * A gather plan (data/gather.h) as a program for the kernel (struct ss_bpf_code), which it executes when
 * it samples a CPU: what the plan says of the thread that runs there is copied at that very moment.
 *
 * It is the caller who executes the plan afterwards: the program copies the memory that the plan
 * will ask for, as blocks with their addresses. So it need not be exact, only fast and bounded: it
 * follows each list for at most SS_GATHER_PROGRAM_NODES nodes, reads what is in memory (it cannot
 * wait for a page), and stops when the record is full. Then the record says that it was cut. The
 * record of a thread without roots is empty.
 */

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
