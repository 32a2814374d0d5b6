#include "symbolize/modules.h"

#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/vector.h"

/* Large processes have a thousand; the search is linear over hashes. */
enum { MODULES_MAX = 4096 };

/* What tells two module files apart. The build-id alone would not do: any file can claim
   that of another. Zeroed before it is filled, so that it compares as bytes. */
struct key {
	uint8_t build_id[SS_BUILD_ID_MAX];
	uint64_t build_id_size;
	uint64_t device; /* zeroes without a file */
	uint64_t inode;
	uint64_t size;
	uint64_t changed_ns;
	uint64_t content; /* without a file: a hash of the image */
};

struct kept {
	struct key key;
	uint64_t hash;
	struct ss_names *names;
};

struct modules {
	SS_VECTOR(struct kept) items;
};

static void modules_clear(struct modules *modules)
{
	for (size_t i = 0; i < modules->items.count; i++)
		ss_names_free(modules->items.items[i].names);
	ss_vector_free(&modules->items);
}

static void modules_free(void *data)
{
	modules_clear(data);
	free(data);
}

static void fill_key(struct key *key, const struct ss_module_impl *module)
{
	struct stat status;

	memset(key, 0, sizeof(*key));
	key->build_id_size = SS_MIN(module->build_id_size, (size_t)SS_BUILD_ID_MAX);
	memcpy(key->build_id, module->build_id, key->build_id_size);
	if (module->fd >= 0 && fstat(module->fd, &status) == 0) {
		key->device = status.st_dev;
		key->inode = status.st_ino;
		key->size = (uint64_t)status.st_size;
		key->changed_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 +
				  (uint64_t)status.st_mtim.tv_nsec;
	} else if (module->bytes) {
		key->size = module->size;
		key->content = XXH3_64bits(module->bytes, module->size);
	}
}

void ss_modules_trim(struct ss_session *session)
{
	struct modules *modules = session->symbolize.data;

	if (modules && modules->items.count >= MODULES_MAX)
		modules_clear(modules);
}

static struct ss_names *add(struct modules *modules, const struct key *key, uint64_t hash)
{
	_cleanup_(ss_names_cleanup) struct ss_names *names = NULL;
	struct kept *kept;

	if (modules->items.count >= MODULES_MAX)
		return NULL;
	names = ss_names_new();
	if (!names)
		return NULL;
	kept = ss_vector_push(&modules->items);
	if (!kept)
		return NULL;
	*kept = (struct kept){ .key = *key, .hash = hash, .names = names };
	return take_ptr(names);
}

struct ss_names *ss_modules_find(struct ss_session *session,
				 const struct ss_module_impl *module)
{
	struct key key;
	uint64_t hash;

	if (!session->symbolize.data)
		session->symbolize = (struct ss_session_slot){
			.data = calloc(1, sizeof(struct modules)),
			.free = modules_free,
		};
	struct modules *modules = session->symbolize.data;
	if (!modules)
		return NULL;
	fill_key(&key, module);
	hash = XXH3_64bits(&key, sizeof(key));
	for (size_t i = 0; i < modules->items.count; i++) {
		const struct kept *kept = &modules->items.items[i];
		if (kept->hash == hash && memcmp(&kept->key, &key, sizeof(key)) == 0)
			return kept->names;
	}
	return add(modules, &key, hash);
}
