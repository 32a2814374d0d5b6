#include "elf/file_identity.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Limit of the bytes that are hashed, so that a large file costs a tenth of a second. The
   symbol tables of programs of 100 MB have 35 MB. */
#define HASHED_MAX ((uint64_t)128 << 20)

enum { STEP = 1 << 16 };

struct hash {
	XXH3_state_t state;
	const struct ss_elf *elf;
	uint64_t left; /* of HASHED_MAX */
	uint8_t bytes[STEP];
};

static struct hash *hash_new(const struct ss_elf *elf)
{
	struct hash *hash = aligned_alloc(_Alignof(struct hash), sizeof(*hash));

	if (!hash)
		return NULL;
	hash->elf = elf;
	hash->left = HASHED_MAX;
	XXH3_INITSTATE(&hash->state);
	(void)XXH3_128bits_reset(&hash->state); /* fails without a state only */
	return hash;
}

/* False: the file is too short. */
static bool add(struct hash *hash, uint64_t offset, uint64_t size)
{
	size = SS_MIN(size, hash->left);
	hash->left -= size;
	while (size > 0) {
		uint64_t step = SS_MIN(size, (uint64_t)STEP);
		if (!ss_elf_read(hash->elf, offset, hash->bytes, step))
			return false;
		(void)XXH3_128bits_update(&hash->state, hash->bytes, (size_t)step);
		offset += step;
		size -= step;
	}
	return true;
}

/* Go keeps the names of a stripped program in .gopclntab; .gnu_debugdata has compressed
   symbols, .gnu_debuglink the checksum of the debug file. */
static bool is_named(const struct ss_elf *elf, const Elf64_Shdr *section)
{
	static const char *const names[] = {
		".gopclntab",
		".data.rel.ro.gopclntab",
		".gnu_debugdata",
		".gnu_debuglink",
	};
	const char *name = section->sh_name < elf->section_names_size ?
				   elf->section_names + section->sh_name :
				   "";

	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

static bool is_hashed(const struct ss_elf *elf, const Elf64_Shdr *section)
{
	switch (section->sh_type) {
	case SHT_SYMTAB:
	case SHT_DYNSYM:
	case SHT_STRTAB:
	case SHT_NOTE:
		return true;
	case SHT_PROGBITS:
		return is_named(elf, section);
	default:
		return false;
	}
}

static bool add_all(struct hash *hash)
{
	const struct ss_elf *elf = hash->elf;

	if (!elf->section_count)
		return add(hash, 0, elf->size);
	if (!add(hash, 0, sizeof(elf->header)) ||
	    !add(hash, elf->header.e_phoff, elf->segment_count * sizeof(Elf64_Phdr)) ||
	    !add(hash, elf->header.e_shoff, elf->section_count * sizeof(Elf64_Shdr)))
		return false;
	for (size_t i = 1; i < elf->section_count; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		if (is_hashed(elf, section) &&
		    !add(hash, section->sh_offset, section->sh_size))
			return false;
	}
	return true;
}

/* False: it cannot be read, or no memory. */
static bool hash_file(const struct ss_elf *elf, uint8_t ret[SS_FILE_HASH_SIZE])
{
	_cleanup_free_ struct hash *hash = hash_new(elf);
	XXH128_canonical_t canonical;

	if (!hash || !add_all(hash))
		return false;
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&hash->state));
	_Static_assert(sizeof(canonical) == SS_FILE_HASH_SIZE, "the size of the hash");
	memcpy(ret, &canonical, sizeof(canonical));
	return true;
}

static uint64_t modified_ns(const struct stat *status)
{
	return (uint64_t)status->st_mtim.tv_sec * 1000000000 +
	       (uint64_t)status->st_mtim.tv_nsec;
}

void ss_module_identify_file(struct ss_module_impl *module)
{
	uint8_t hash[SS_FILE_HASH_SIZE];
	struct stat status;

	if (module->build_id_size || module->pub.file.hash || module->fd < 0 ||
	    fstat(module->fd, &status) != 0)
		return;
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_fd(module->fd);
	if (!elf || !hash_file(elf, hash))
		return;
	const struct ss_file_identity identity = {
		.size = (uint64_t)status.st_size,
		.modified_ns = module->copied ? module->modified_ns :
						modified_ns(&status),
		.inode = module->copied ? module->file_inode : status.st_ino,
	};
	ss_module_set_file(module, &identity, hash);
}

const char *ss_file_identity_check(const struct ss_file_identity *identity,
				   const struct ss_elf *elf, bool copy, uint64_t *budget)
{
	uint8_t hash[SS_FILE_HASH_SIZE];
	char text[2 * SS_FILE_HASH_SIZE + 1];
	struct stat status;

	if (elf->fd < 0 || fstat(elf->fd, &status) != 0)
		return "it has no build-id, and its file cannot be examined";
	if ((uint64_t)status.st_size != identity->size)
		return "it has no build-id, and the file at its path has another size "
		       "now";
	/* The hash last: it takes time, which a hostile recording could ask for. */
	if (!copy && status.st_ino != identity->inode)
		return "it has no build-id, and the file at its path was replaced (its "
		       "inode "
		       "differs)";
	if (!copy && modified_ns(&status) != identity->modified_ns)
		return "it has no build-id, and the file at its path was modified since";
	uint64_t most = SS_MIN(elf->size, HASHED_MAX);
	if (*budget < most)
		return "it has no build-id, and too many large files were compared "
		       "already";
	*budget -= most;
	if (!hash_file(elf, hash))
		return "it has no build-id, and the file at its path cannot be read";
	ss_file_hash_text(hash, text);
	if (strcmp(text, identity->hash) != 0)
		return "it has no build-id, and the file at its path has other headers "
		       "or "
		       "symbols now";
	return NULL;
}
