#include "unit.h"

#include <string.h>

#include "base/hash.h"
#include "base/intern.h"

struct wanted {
	const uint64_t *keys;
	uint64_t key;
};

static bool is_same(const void *context, uint32_t index)
{
	const struct wanted *wanted = context;

	return wanted->keys[index] == wanted->key;
}

static uint32_t find(const struct ss_hash *table, const uint64_t *keys, uint64_t hash,
		     uint64_t key)
{
	const struct wanted wanted = { keys, key };

	return ss_hash_find(table, hash, is_same, &wanted);
}

/* Every key is found again while the table grows, and no other key is. */
static void fill(uint64_t hash_mask)
{
	static uint64_t keys[3000];
	struct ss_hash table = {};

	for (uint32_t i = 0; i < 3000; i++) {
		keys[i] = (uint64_t)i << 12;
		assert_int_equal(find(&table, keys, keys[i] & hash_mask, keys[i]),
				 SS_HASH_NONE);
		assert_true(ss_hash_reserve(&table));
		ss_hash_insert(&table, keys[i] & hash_mask, i);
	}
	assert_int_equal(table.count, 3000);
	for (uint32_t i = 0; i < 3000; i++)
		assert_int_equal(find(&table, keys, keys[i] & hash_mask, keys[i]), i);
	assert_int_equal(find(&table, keys, 1, 1), SS_HASH_NONE);
	ss_hash_deinit(&table);
	assert_int_equal(find(&table, keys, 0, 0), SS_HASH_NONE);
}

TEST(test_addresses)
{
	fill(UINT64_MAX);
}

TEST(test_equal_hashes)
{
	fill(0);
	fill(0x3000);
}

static uint64_t equal_hash(const void *key, size_t size)
{
	(void)key;
	(void)size;
	return 42;
}

/* Numbers follow the order of keys, whatever their sizes and hashes. */
static void number_keys(ss_hash_function *hash)
{
	struct ss_idtable table = { .hash = hash };
	char key[16] = "abcdefghijklmno";
	bool added;
	size_t size;

	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(ss_idtable_find(&table, key, i), SS_ID_NONE);
		assert_int_equal(ss_idtable_add(&table, key, i, &added), i);
		assert_true(added);
	}
	assert_int_equal(ss_idtable_add(&table, key, 3, &added), 3);
	assert_false(added);
	assert_int_equal(ss_idtable_add(&table, "xyz", 3, NULL), 16);
	assert_int_equal(ss_idtable_find(&table, key, 15), 15);
	assert_memory_equal(ss_idtable_key(&table, 15, &size), key, 15);
	assert_int_equal(size, 15);
	assert_memory_equal(ss_idtable_key(&table, 16, NULL), "xyz", 3);
	assert_int_equal((uintptr_t)ss_idtable_key(&table, 16, NULL) % 8, 0);
	ss_idtable_deinit(&table);
	assert_int_equal(ss_idtable_add(&table, "xyz", 3, NULL), 0);
	assert_ptr_equal(table.hash, hash);
	ss_idtable_deinit(&table);
}

TEST(test_idtable)
{
	number_keys(NULL);
	number_keys(equal_hash);
}
