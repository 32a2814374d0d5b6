#include "elf/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/search.h"
#include "data/pipeline.h"

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

	return ss_any(SS_ARRAY_SIZE(names), i, strcmp(name, names[i]) == 0);
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

static bool add_records(struct hash *hash, enum ss_elf_record record, uint64_t offset,
			size_t count)
{
	return add(
		hash, offset,
		count * ss_elf_record_size(hash->elf->header.e_ident[EI_CLASS], record));
}

static bool add_all(struct hash *hash)
{
	const struct ss_elf *elf = hash->elf;

	if (!elf->section_count)
		return add(hash, 0, elf->size);
	if (!add_records(hash, SS_ELF_HEADER, 0, 1) ||
	    !add_records(hash, SS_ELF_SEGMENT, elf->header.e_phoff, elf->segment_count) ||
	    !add_records(hash, SS_ELF_SECTION, elf->header.e_shoff, elf->section_count))
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
						ss_timespec_ns(&status.st_mtim),
		.inode = module->copied ? module->file_inode : status.st_ino,
	};
	ss_module_set_file(module, &identity, hash);
}

/*
 * Compares a file with an identity that has a hash. NULL: it is that file. Otherwise says why
 * it is not. copy: it may be a copy, with another inode and time. budget: bytes that may still
 * be hashed.
 */
static const char *file_identity_check(const struct ss_file_identity *identity,
				       const struct ss_elf *elf, bool copy,
				       uint64_t *budget)
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
	if (!copy && ss_timespec_ns(&status.st_mtim) != identity->modified_ns)
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

/* A compressed symbol table is a few megabytes; a crafted one can expand to far more. */
#define EMBEDDED_MAX ((size_t)256 << 20)
#define EMBEDDED_MEMORY_MAX ((uint64_t)128 << 20)

enum {
	FIRST_PAGE = 4096,
	/* A shorter build-id could be guessed. */
	PROOF_ID_MIN = 8,
	PROOF_SIZE = 2 * SS_ELF_BUILD_ID_MAX + 2,
};

struct build_id {
	uint8_t bytes[SS_ELF_BUILD_ID_MAX];
	size_t size; /* 0: not known */
};

/* Opens path below the directory root, which neither ".." nor a symbolic link can
   escape. Without a root (-1) symbolic links are followed; but before Linux 5.6, or
   where a seccomp filter forbids openat2(), not in the last component. */
static int open_path(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)flags,
		.resolve = RESOLVE_NO_MAGICLINKS | (root >= 0 ? RESOLVE_IN_ROOT : 0U),
	};

	int fd = (int)syscall(SYS_openat2, root >= 0 ? root : AT_FDCWD, path, &how,
			      sizeof(how));
	if (fd < 0 && root < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open(path, flags | O_NOFOLLOW);
	return fd;
}

/* path may be from a core file, a recording or a module: untrusted. */
static int open_regular(int root, const char *path)
{
	_cleanup_close_ int fd = open_path(root, path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -1 : ss_io_reopen(fd);
}

/* proof: see ss_file_opener. NULL: there is none. */
static struct ss_elf *open_elf(const struct ss_session *session, int root,
			       const char *path, const char *proof)
{
	_cleanup_close_ int fd = open_regular(root, path);
	if (fd < 0 && (errno == EACCES || errno == EPERM) && session->files.open && proof)
		fd = session->files.open(session->files.data, path, root >= 0, proof);
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_fd(fd);

	if (!elf)
		return NULL;
	fd = -1;
	elf->owns_fd = true;
	elf->path = strdup(path);
	return elf->path ? take_ptr(elf) : NULL;
}

/* The checksum of .gnu_debuglink is the CRC-32 of xz. */
static bool has_checksum(const struct ss_elf *elf, uint32_t expected)
{
	const size_t step = 1 << 16;
	_cleanup_free_ uint8_t *bytes = malloc(step);
	uint32_t crc = 0;

	for (uint64_t at = 0; bytes && at < elf->size; at += step) {
		size_t size = (size_t)SS_MIN((uint64_t)step, elf->size - at);
		if (!ss_elf_read(elf, at, bytes, size))
			return false;
		crc = lzma_crc32(bytes, size, crc);
	}
	return bytes && crc == expected;
}

/* Compares the build-id, which is a stronger proof than a checksum and does not need the
   whole file. The checksum is for modules without a build-id. */
static bool matches(const struct ss_elf *elf, const struct build_id *build_id,
		    const uint32_t *checksum)
{
	uint8_t id[SS_ELF_BUILD_ID_MAX];

	if (build_id->size)
		return ss_elf_build_id(elf, id) == build_id->size &&
		       memcmp(id, build_id->bytes, build_id->size) == 0;
	return checksum && has_checksum(elf, *checksum);
}

static void to_hex(const struct build_id *id, char ret[2 * SS_ELF_BUILD_ID_MAX + 1])
{
	ret[0] = '\0';
	for (size_t i = 0; i < id->size; i++)
		(void)sprintf(ret + 2 * i, "%02x", id->bytes[i]); /* has room */
}

/* "b" and the build-id, or "c" and the checksum. Returns ret, or NULL. */
static const char *make_proof(const struct build_id *build_id, const uint32_t *checksum,
			      char ret[PROOF_SIZE])
{
	ret[0] = 'b';
	if (build_id->size >= PROOF_ID_MIN)
		to_hex(build_id, ret + 1);
	else if (!build_id->size && checksum)
		(void)snprintf(ret, PROOF_SIZE, "c%08x", *checksum); /* has room */
	else
		return NULL;
	return ret;
}

/*
 * Go writes a GNU build-id since 1.24 only, but always one of its own, which is a hash of all
 * that went into the program: a note ("Go", type 4) in the first page, which a core file has.
 */
static bool has_go_build_id(const uint8_t page[FIRST_PAGE])
{
	static const char note[] = "\4\0\0\0Go\0";

	return memmem(page, FIRST_PAGE, note, sizeof(note));
}

/* "g" and a hash of the first page. */
static const char *make_go_proof(const uint8_t page[FIRST_PAGE], char ret[PROOF_SIZE])
{
	const XXH128_hash_t hash = XXH3_128bits(page, FIRST_PAGE);

	(void)snprintf(ret, PROOF_SIZE, "g%016" PRIx64 "%016" PRIx64, hash.high64,
		       hash.low64); /* has room */
	return ret;
}

bool ss_file_matches(int fd, const char *proof)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = ss_elf_from_fd(fd);
	struct build_id build_id = {};
	char expected[PROOF_SIZE];
	uint8_t page[FIRST_PAGE];

	if (!elf)
		return false;
	if (proof[0] == 'c')
		return strlen(proof) == 9 &&
		       proof[strspn(proof + 1, "0123456789abcdef") + 1] == 0 &&
		       has_checksum(elf, (uint32_t)strtoul(proof + 1, NULL, 16));
	if (proof[0] == 'g')
		return ss_elf_read(elf, 0, page, sizeof(page)) && has_go_build_id(page) &&
		       strcmp(proof, make_go_proof(page, expected)) == 0;
	build_id.size = ss_elf_build_id(elf, build_id.bytes);
	return make_proof(&build_id, NULL, expected) && strcmp(proof, expected) == 0;
}

static struct ss_elf *try_root(const struct ss_session *session, int root,
			       const char *path, const struct build_id *build_id,
			       const uint32_t *checksum)
{
	char proof[PROOF_SIZE];
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf =
		open_elf(session, root, path, make_proof(build_id, checksum, proof));

	return elf && matches(elf, build_id, checksum) ? take_ptr(elf) : NULL;
}

/* Tries the sysroot first, then the root directory. */
static struct ss_elf *try_path(const struct ss_session *session, const char *path,
			       const struct build_id *build_id, const uint32_t *checksum)
{
	struct ss_elf *elf = NULL;

	if (session->sysroot >= 0)
		elf = try_root(session, session->sysroot, path, build_id, checksum);
	return elf ? elf : try_root(session, -1, path, build_id, checksum);
}

/* From the session's file finder (debuginfod). */
static struct ss_elf *find_elsewhere(const struct ss_session *session,
				     const struct build_id *build_id, bool debug)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = NULL;
	char hex[2 * SS_ELF_BUILD_ID_MAX + 1];

	if (!session->files.find || build_id->size < 2)
		return NULL;
	to_hex(build_id, hex);
	_cleanup_close_ int fd = session->files.find(session->files.data, hex, debug);
	elf = fd >= 0 ? ss_elf_from_fd(fd) : NULL;
	if (!elf)
		return NULL;
	elf->owns_fd = true;
	(void)take_fd(fd); /* elf owns it */
	return matches(elf, build_id, NULL) ? take_ptr(elf) : NULL;
}

/* suffix: ".debug" for a debug file, "" for the module itself. */
static struct ss_elf *try_build_id(const struct ss_session *session, const char *below,
				   const char *suffix, const struct build_id *build_id)
{
	char hex[2 * SS_ELF_BUILD_ID_MAX + 1];
	char path[PATH_MAX];

	if (build_id->size < 2)
		return NULL;
	to_hex(build_id, hex);
	int size = snprintf(path, sizeof(path), "%s%s/.build-id/%.2s/%s%s",
			    session->debug_dir, below, hex, hex + 2, suffix);
	return size < (int)sizeof(path) ? try_path(session, path, build_id, NULL) : NULL;
}

/* Tries the directory of path, its subdirectory .debug, and the same directory below
   debug_dir. */
static struct ss_elf *try_link(const struct ss_session *session, const char *path,
			       const char *name, const struct build_id *build_id,
			       uint32_t checksum)
{
	const char *const places[][2] = {
		{ "", "" },
		{ "", "/.debug" },
		{ session->debug_dir, "" },
	};
	const char *slash = strrchr(path, '/');
	struct ss_elf *elf = NULL;
	char candidate[PATH_MAX];

	if (path[0] != '/' || slash - path >= PATH_MAX)
		return NULL;
	for (size_t i = 0; i < SS_ARRAY_SIZE(places) && !elf; i++) {
		int size = snprintf(candidate, sizeof(candidate), "%s%.*s%s/%s",
				    places[i][0], (int)(slash - path), path, places[i][1],
				    name);
		if (size < (int)sizeof(candidate))
			elf = try_path(session, candidate, build_id, &checksum);
	}
	return elf;
}

static struct ss_elf *find_by_link(const struct ss_session *session, const char *path,
				   const struct ss_elf *elf,
				   const struct build_id *build_id)
{
	const Elf64_Shdr *section = ss_elf_find_section(elf, ".gnu_debuglink");
	_cleanup_free_ char *link = section && section->sh_size < PATH_MAX ?
					    ss_elf_copy_section(elf, section) :
					    NULL;
	uint32_t checksum;

	if (!link)
		return NULL;
	/* The section has the name with its NUL, padding to four bytes, and the
	   checksum. */
	size_t checksum_at = (strlen(link) + 4) & ~(size_t)3;
	if (!*link || strchr(link, '/') ||
	    checksum_at + sizeof(checksum) > section->sh_size)
		return NULL;
	memcpy(&checksum, link + checksum_at, sizeof(checksum));
	return try_link(session, path, link, build_id, checksum);
}

struct ss_elf *ss_debugfile_find(const struct ss_session *session,
				 const struct ss_module_impl *module,
				 const struct ss_elf *elf)
{
	struct build_id build_id = { .size = SS_MIN(module->build_id_size,
						    (size_t)SS_ELF_BUILD_ID_MAX) };
	struct ss_elf *found;

	memcpy(build_id.bytes, module->build_id, build_id.size);
	if (!build_id.size && elf)
		build_id.size = ss_elf_build_id(elf, build_id.bytes);
	found = try_build_id(session, "", ".debug", &build_id);
	if (!found && elf)
		found = find_by_link(session, module->pub.path, elf, &build_id);
	return found ? found : find_elsewhere(session, &build_id, true);
}

static struct ss_elf *try_file(struct ss_session *session, int root, bool copy,
			       const struct ss_module *module, const char **why)
{
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf =
		open_elf(session, root, module->path, NULL);

	if (!elf)
		return NULL;
	*why = file_identity_check(&module->file, elf, copy, &session->file_bytes);
	return *why ? NULL : take_ptr(elf);
}

/* Without a build-id. What the user has put below the sysroot is a copy. */
static struct ss_elf *find_by_file(struct ss_session *session,
				   const struct ss_module *module, const char **why)
{
	struct ss_elf *elf = NULL;

	*why = "it has no build-id, and there is no ELF file at its path now";
	if (module->path[0] != '/')
		return NULL;
	if (session->sysroot >= 0)
		elf = try_file(session, session->sysroot, true, module, why);
	return elf ? elf : try_file(session, -1, false, module, why);
}

/* Without a build-id: the file whose first page, with Go's build-id, is that of the module. */
static struct ss_elf *try_go(const struct ss_session *session, int root, const char *path,
			     const struct ss_module_impl *module)
{
	uint8_t page[FIRST_PAGE];
	char proof[PROOF_SIZE];
	_cleanup_(ss_elf_cleanup) struct ss_elf *elf = NULL;

	if ((path[0] != '/' && root >= 0) || !module->bytes ||
	    module->size < FIRST_PAGE || !has_go_build_id(module->bytes))
		return NULL;
	elf = open_elf(session, root, path, make_go_proof(module->bytes, proof));
	return elf && ss_elf_read(elf, 0, page, sizeof(page)) &&
			       memcmp(page, module->bytes, sizeof(page)) == 0 ?
		       take_ptr(elf) :
		       NULL;
}

static struct ss_elf *find_go(const struct ss_session *session,
			      const struct ss_module_impl *module)
{
	const char *path = module->pub.path;
	struct ss_elf *elf = NULL;

	if (path[0] != '/')
		return NULL;
	if (session->sysroot >= 0)
		elf = try_go(session, session->sysroot, path, module);
	return elf ? elf : try_go(session, -1, path, module);
}

struct ss_elf *ss_debugfile_find_module(struct ss_session *session,
					const struct ss_module_impl *module,
					const char **why)
{
	struct build_id build_id = { .size = SS_MIN(module->build_id_size,
						    (size_t)SS_ELF_BUILD_ID_MAX) };
	struct ss_elf *found = NULL;

	*why = NULL;
	if (!build_id.size)
		return module->pub.file.hash ? find_by_file(session, &module->pub, why) :
					       find_go(session, module);
	memcpy(build_id.bytes, module->build_id, build_id.size);
	if (module->pub.path[0] == '/')
		found = try_path(session, module->pub.path, &build_id, NULL);
	return found ? found : try_build_id(session, "", "", &build_id);
}

struct ss_elf *ss_debugfile_open_module(const struct ss_session *session,
					const struct ss_module_impl *module,
					const char *path)
{
	struct build_id build_id = { .size = SS_MIN(module->build_id_size,
						    (size_t)SS_ELF_BUILD_ID_MAX) };

	if (!build_id.size)
		return try_go(session, -1, path, module);
	memcpy(build_id.bytes, module->build_id, build_id.size);
	return try_root(session, -1, path, &build_id, NULL);
}

struct ss_elf *ss_debugfile_fetch_module(const struct ss_session *session,
					 const struct ss_module_impl *module)
{
	struct build_id build_id = { .size = SS_MIN(module->build_id_size,
						    (size_t)SS_ELF_BUILD_ID_MAX) };

	memcpy(build_id.bytes, module->build_id, build_id.size);
	return find_elsewhere(session, &build_id, false);
}

/* A relative name is relative to the directory of the file that contains it. */
static struct ss_elf *try_alternate_name(const struct ss_session *session,
					 const struct ss_elf *elf, const char *name,
					 const struct build_id *build_id)
{
	const char *slash = elf->path ? strrchr(elf->path, '/') : NULL;
	char path[PATH_MAX];

	if (name[0] == '/')
		return try_path(session, name, build_id, NULL);
	if (!slash || slash - elf->path >= PATH_MAX)
		return NULL;
	int size = snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - elf->path),
			    elf->path, name);
	return size < (int)sizeof(path) ? try_path(session, path, build_id, NULL) : NULL;
}

struct ss_elf *ss_debugfile_find_alternate(const struct ss_session *session,
					   const struct ss_elf *elf)
{
	const Elf64_Shdr *section = ss_elf_find_section(elf, ".gnu_debugaltlink");
	_cleanup_free_ char *link = section && section->sh_size < PATH_MAX ?
					    ss_elf_copy_section(elf, section) :
					    NULL;
	struct build_id build_id = {};
	struct ss_elf *found;

	/* The section has the name with its NUL, and the build-id. */
	if (!link || strlen(link) + 1 >= section->sh_size)
		return NULL;
	build_id.size = SS_MIN((size_t)(section->sh_size - strlen(link) - 1),
			       (size_t)SS_ELF_BUILD_ID_MAX);
	memcpy(build_id.bytes, link + strlen(link) + 1, build_id.size);
	found = try_build_id(session, "/.dwz", ".debug", &build_id);
	if (!found)
		found = try_build_id(session, "", ".debug", &build_id);
	if (!found && *link)
		found = try_alternate_name(session, elf, link, &build_id);
	return found;
}

/* Decompresses into a growing buffer, because the format does not give the size in
   advance. */
static uint8_t *decompress(lzma_stream *stream, size_t *ret_size)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t capacity = 0;
	lzma_ret state = LZMA_OK;

	while (state == LZMA_OK) {
		size_t used = (size_t)stream->total_out;
		if (used == capacity) {
			capacity = capacity ? capacity * 2 : (size_t)1 << 18;
			uint8_t *grown = capacity <= EMBEDDED_MAX ?
						 realloc(bytes, capacity) :
						 NULL;
			if (!grown)
				return NULL;
			bytes = grown;
		}
		stream->next_out = bytes + used;
		stream->avail_out = capacity - used;
		state = lzma_code(stream, LZMA_FINISH);
	}
	*ret_size = (size_t)stream->total_out;
	return state == LZMA_STREAM_END ? take_ptr(bytes) : NULL;
}

struct ss_elf *ss_debugfile_embedded(const struct ss_elf *elf)
{
	const Elf64_Shdr *section = ss_elf_find_section(elf, ".gnu_debugdata");
	_cleanup_free_ uint8_t *compressed = section ? ss_elf_copy_section(elf, section) :
						       NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	lzma_stream stream = LZMA_STREAM_INIT;
	size_t size = 0;

	if (!compressed ||
	    lzma_stream_decoder(&stream, EMBEDDED_MEMORY_MAX, 0) != LZMA_OK)
		return NULL;
	stream.next_in = compressed;
	stream.avail_in = section->sh_size;
	bytes = decompress(&stream, &size);
	lzma_end(&stream);
	struct ss_elf *embedded = ss_elf_from_memory(bytes, size);
	if (embedded)
		embedded->owned_bytes = take_ptr(bytes);
	return embedded;
}
