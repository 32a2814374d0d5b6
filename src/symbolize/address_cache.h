/*
 * The symbol, source line and inlined calls of each address that was looked up. An address
 * is looked up once, however many frames share it.
 */
#ifndef SS_SYMBOLIZE_ADDRESS_CACHE_H
#define SS_SYMBOLIZE_ADDRESS_CACHE_H

#include "base/hash.h"
#include "base/vector.h"
#include "symbolize/lines.h"
#include "stacksnap.h"

/* The snapshot owns the strings. */
struct ss_address_info {
	const struct ss_module *module;
	uint64_t address; /* lookup_offset; without a module: address in the process */
	uint32_t process; /* without a module */
	const char *symbol;
	uint64_t start;
	bool absolute;	   /* start is an address of the process */
	uint64_t function; /* without a symbol: struct ss_frame */
	struct ss_location line;
	size_t first_inline; /* in the caller's list of inlined calls */
	size_t inline_count;
};

/* Zeroed: an empty cache. */
struct ss_address_cache {
	SS_VECTOR(struct ss_address_info) items; /* in the order of additions */
	struct ss_hash table;			 /* of indexes into items */
};

void ss_address_cache_deinit(struct ss_address_cache *cache);

/* Adds an address that the cache does not have. False without memory. */
bool ss_address_cache_add(struct ss_address_cache *cache,
			  const struct ss_address_info *info);

/* NULL: the cache does not have it. Valid until the next addition. */
const struct ss_address_info *ss_address_cache_find(const struct ss_address_cache *cache,
						    const struct ss_module *module,
						    uint32_t process, uint64_t address);

#endif
