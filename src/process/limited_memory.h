/*
 * Memory of a live process, read on demand and within a budget, so that untrusted input
 * cannot make a reader run forever.
 */
#ifndef SS_PROCESS_LIMITED_MEMORY_H
#define SS_PROCESS_LIMITED_MEMORY_H

#include "data/memory.h"
#include "process/process_memory.h"

/* The remaining budget. Reads beyond it are short. */
struct ss_memory_budget {
	size_t bytes;
	size_t calls;
};

struct ss_limited_memory {
	struct ss_memory memory; /* first: see data/memory.h */
	const struct ss_process_memory *process;
	struct ss_memory_budget *budget;
};

/* process and budget must outlive the memory. Reads open no file. */
void ss_limited_memory_init(struct ss_limited_memory *memory,
			    const struct ss_process_memory *process,
			    struct ss_memory_budget *budget);

#endif
