/*
 * Programs that the kernel executes, see bpf(2): their instructions, one at a time, and the maps
 * they share with this process. There is no compiler and no library: the programs are made from
 * data at run time, and small.
 *
 * Registers are those of linux/bpf.h: results in BPF_REG_0, arguments in 1 to 5, kept across calls
 * 6 to 9, and BPF_REG_10 is the end of a stack of 512 bytes.
 */
#ifndef SS_PROCESS_BPF_H
#define SS_PROCESS_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

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
void ss_bpf_jump_back(struct ss_bpf_code *code, uint8_t condition, uint8_t reg,
		      int32_t value, size_t place);

/* The system calls return a descriptor or 0, or a negative errno. */
int ss_bpf_new_map(uint32_t type, uint32_t key_size, uint32_t value_size, uint32_t count,
		   uint32_t flags);
int ss_bpf_set_element(int map_fd, const void *key, const void *value);
/* Removes an element of a hash; -ENOENT: there is none. */
int ss_bpf_remove_element(int map_fd, const void *key);
/* Loads a program for events of perf_event_open(2). */
int ss_bpf_load(const struct ss_bpf_code *code);

#endif
