#include "symbolize/address_cache.h"

struct query {
	const struct ss_address_cache *cache;
	const struct ss_module *module;
	uint32_t process;
	uint64_t address;
};

void ss_address_cache_deinit(struct ss_address_cache *cache)
{
	ss_hash_deinit(&cache->table);
	ss_vector_free(&cache->items);
}

static uint64_t hash_of(const struct ss_module *module, uint32_t process,
			uint64_t address)
{
	return address ^ (uintptr_t)module >> 4 ^ process;
}

static bool is_same(const void *context, uint32_t index)
{
	const struct query *query = context;
	const struct ss_address_info *info = &query->cache->items.items[index];

	return info->address == query->address && info->module == query->module &&
	       info->process == query->process;
}

bool ss_address_cache_add(struct ss_address_cache *cache,
			  const struct ss_address_info *info)
{
	uint64_t hash = hash_of(info->module, info->process, info->address);
	struct ss_address_info *kept =
		ss_hash_reserve(&cache->table) ? ss_vector_push(&cache->items) : NULL;

	if (!kept)
		return false;
	*kept = *info;
	ss_hash_insert(&cache->table, hash, (uint32_t)cache->items.count - 1);
	return true;
}

const struct ss_address_info *ss_address_cache_find(const struct ss_address_cache *cache,
						    const struct ss_module *module,
						    uint32_t process, uint64_t address)
{
	const struct query query = { cache, module, process, address };
	uint32_t index = ss_hash_find(&cache->table, hash_of(module, process, address),
				      is_same, &query);

	return index == SS_HASH_NONE ? NULL : &cache->items.items[index];
}
