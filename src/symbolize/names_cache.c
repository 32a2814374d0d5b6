#include "symbolize/names_cache.h"

#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/idtable.h"
#include "base/vector.h"

/* Large processes have a thousand. */
enum { MODULES_MAX = 4096 };

/* Identifies a module file. The build-id alone does not suffice, because any file can claim
   the build-id of another. Zeroed before it is filled, because it is compared as bytes. */
struct key {
	uint8_t build_id[SS_BUILD_ID_MAX];
	uint64_t build_id_size;
	uint64_t device; /* 0 to changed_ns: 0 without a file */
	uint64_t inode;
	uint64_t size;
	uint64_t changed_ns;
	uint64_t content; /* without a file: hash of the image, or of the identity */
};

struct cache {
	struct ss_idtable keys;
	SS_VECTOR(struct ss_names *) names; /* by number of the key */
};

static void cache_clear(struct cache *cache)
{
	for (size_t i = 0; i < cache->names.count; i++)
		ss_names_free(cache->names.items[i]);
	ss_vector_free(&cache->names);
	ss_idtable_deinit(&cache->keys);
}

static void cache_free(void *data)
{
	cache_clear(data);
	free(data);
}

static void cache_save(void *data, int fd)
{
	const struct cache *cache = data;

	for (size_t i = 0; i < cache->names.count; i++) {
		if (!ss_names_save(cache->names.items[i], fd))
			return;
	}
}

static void fill_key(struct key *key, const struct ss_module_impl *module)
{
	struct stat status;

	memset(key, 0, sizeof(*key));
	key->build_id_size = SS_MIN(module->build_id_size, (size_t)SS_BUILD_ID_MAX);
	memcpy(key->build_id, module->build_id, key->build_id_size);
	if (module->fd >= 0 && fstat(module->fd, &status) == 0) {
		key->device = module->copied ? module->device : status.st_dev;
		key->inode = module->copied ? module->inode : status.st_ino;
		key->size = (uint64_t)status.st_size;
		key->changed_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 +
				  (uint64_t)status.st_mtim.tv_nsec;
	} else if (module->bytes) {
		key->size = module->size;
		key->content = XXH3_64bits(module->bytes, module->size);
	} else if (module->pub.file.hash) {
		const struct ss_file_identity *file = &module->pub.file;
		uint64_t path = XXH3_64bits(module->path, strlen(module->path));
		key->inode = file->inode;
		key->size = file->size;
		key->changed_ns = file->modified_ns;
		key->content = XXH3_64bits_withSeed(module->file_hash,
						    sizeof(module->file_hash), path);
	}
}

void ss_names_cache_trim(struct ss_session *session)
{
	struct cache *cache = session->symbolize.data;

	if (cache && cache->names.count >= MODULES_MAX)
		cache_clear(cache);
}

static struct ss_names *add(struct cache *cache, const struct key *key)
{
	_cleanup_(ss_names_cleanup) struct ss_names *names = NULL;

	if (cache->names.count >= MODULES_MAX ||
	    !ss_vector_reserve(&cache->names, cache->names.count + 1))
		return NULL;
	names = ss_names_new();
	if (!names || ss_idtable_add(&cache->keys, key, sizeof(*key), NULL) == SS_ID_NONE)
		return NULL;
	cache->names.items[cache->names.count++] = names;
	return take_ptr(names);
}

struct ss_names *ss_names_cache_find(struct ss_session *session,
				     const struct ss_module_impl *module)
{
	struct key key;

	if (!session->symbolize.data)
		session->symbolize = (struct ss_session_slot){
			.data = calloc(1, sizeof(struct cache)),
			.free = cache_free,
			.save = cache_save,
		};
	struct cache *cache = session->symbolize.data;
	if (!cache)
		return NULL;
	fill_key(&key, module);
	uint32_t id = ss_idtable_find(&cache->keys, &key, sizeof(key));
	return id == SS_ID_NONE ? add(cache, &key) : cache->names.items[id];
}
