#include "data/module.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"

struct ss_module_impl *ss_module_new(const char *path, uint64_t base, uint64_t end)
{
	struct ss_module_impl *module = calloc(1, sizeof(*module));
	char *copy = strdup(path);

	if (!module || !copy) {
		free(module);
		free(copy);
		return NULL;
	}
	module->path = copy;
	module->pub =
		(struct ss_module){ .path = copy, .base = base, .size = end - base };
	atomic_init(&module->references, 1);
	(void)pthread_mutex_init(&module->identify_lock, NULL); /* cannot fail */
	module->fd = module->cached = module->cache_id = -1;
	return module;
}

static void module_free(struct ss_module_impl *module)
{
	close_cleanup(&module->fd);
	close_cleanup(&module->cached);
	(void)pthread_mutex_destroy(
		&module->identify_lock); /* the last reference is gone */
	free(module->header);
	free(module->bytes);
	free(module->mappings);
	free(module->path);
	free(module->build_id_text);
	free(module->problem);
	free(module);
}

struct ss_module_impl *ss_module_ref(struct ss_module_impl *module)
{
	atomic_fetch_add_explicit(&module->references, 1, memory_order_relaxed);
	return module;
}

void ss_module_unref(struct ss_module_impl *module)
{
	if (module &&
	    atomic_fetch_sub_explicit(&module->references, 1, memory_order_acq_rel) == 1)
		module_free(module);
}

bool ss_module_add_mapping(struct ss_module_impl *module, const struct ss_mapping *m)
{
	size_t count = module->mapping_count;

	/* Usually about five, but a hostile process may have any number. */
	if ((count & (count - 1)) == 0) { /* the batch is full */
		struct ss_mapping *grown = reallocarray(
			module->mappings, SS_MAX(2 * count, (size_t)1), sizeof(*grown));
		if (!grown)
			return false;
		module->mappings = grown;
	}
	module->mappings[module->mapping_count++] = *m;
	module->pub.size =
		SS_MAX(module->pub.base + module->pub.size, m->end) - module->pub.base;
	return true;
}

bool ss_module_set_build_id(struct ss_module_impl *module, const void *id, size_t size)
{
	size_t used = SS_MIN(size, (size_t)SS_BUILD_ID_MAX);
	char *text = malloc(used * 2 + 1);

	if (!text)
		return false;
	memcpy(module->build_id, id, used);
	module->build_id_size = used;
	for (size_t i = 0; i < used; i++)
		(void)sprintf(text + 2 * i, "%02x", module->build_id[i]); /* has room */
	text[2 * used] = '\0';
	free(module->build_id_text);
	module->pub.build_id = module->build_id_text = text;
	return true;
}

void ss_file_hash_text(const uint8_t hash[SS_FILE_HASH_SIZE],
		       char ret[2 * SS_FILE_HASH_SIZE + 1])
{
	for (size_t i = 0; i < SS_FILE_HASH_SIZE; i++)
		(void)sprintf(ret + 2 * i, "%02x", hash[i]); /* has room */
}

void ss_module_set_file(struct ss_module_impl *module,
			const struct ss_file_identity *identity,
			const uint8_t hash[SS_FILE_HASH_SIZE])
{
	memcpy(module->file_hash, hash, SS_FILE_HASH_SIZE);
	ss_file_hash_text(hash, module->file_hash_text);
	module->pub.file = *identity;
	module->pub.file.hash = module->file_hash_text;
}

void ss_module_clear_build_id(struct ss_module_impl *module)
{
	free(take_ptr(module->build_id_text));
	module->pub.build_id = NULL;
	module->build_id_size = 0;
}

void ss_module_clear_problem(struct ss_module_impl *module)
{
	free(take_ptr(module->problem));
	module->pub.problem = NULL;
}

void ss_module_set_problem(struct ss_module_impl *module, const char *format, ...)
{
	char *text = NULL;
	va_list ap;

	if (module->pub.problem)
		return;
	va_start(ap, format);
	if (vasprintf(&text, format, ap) >= 0)
		module->pub.problem = module->problem = text;
	va_end(ap);
}

ssize_t ss_module_read(const struct ss_module_impl *module, uint64_t offset, void *bytes,
		       size_t size)
{
	if (module->fd >= 0)
		return offset > INT64_MAX ? -EINVAL :
					    ss_io_pread(module->fd, bytes, size, offset);
	if (!module->bytes)
		return -ENODATA;
	if (offset >= module->size)
		return 0;
	size_t n = SS_MIN(size, module->size - (size_t)offset);
	memcpy(bytes, module->bytes + offset, n);
	return (ssize_t)n;
}

uint64_t ss_module_guess_bias(const struct ss_module_impl *module, bool has_bytes)
{
	const struct ss_mapping *first = &module->mappings[0];

	if (module->mapping_count == 0 || (!has_bytes && first->start <= UINT32_MAX))
		return 0;
	return first->start - first->offset;
}

bool ss_path_is_sqlite(const char *path)
{
	static const char library[] = "libsqlite3.so";
	const char *slash = strrchr(path, '/');

	return slash && (strncmp(slash + 1, library, strlen(library)) == 0 ||
			 strcmp(slash + 1, "sqlite3") == 0);
}
