/*
 * Pages of a process, each copied once, while a gather plan is executed: lists of small nodes
 * are often in few pages. Its bytes must not change meanwhile, or not matter.
 */
#ifndef SS_PROCESS_PAGE_CACHE_H
#define SS_PROCESS_PAGE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "process/process_memory.h"

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
