/*
 * A module: one ELF file (or the vDSO) as it is mapped in a process, with the bytes of
 * its file. Reference-counted. It knows where bytes are, not what they mean: whoever
 * interprets modules calls ss_module_identify() of elf/ first, which finds the build-id.
 * That happens once; otherwise a module is immutable once a capture refers to it.
 */
#ifndef SS_DATA_MODULE_H
#define SS_DATA_MODULE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "stacksnap.h"

enum { SS_BUILD_ID_MAX = 64, SS_FILE_HASH_SIZE = 16 };

struct ss_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* in the file */
	unsigned prot;	 /* PROT_READ | PROT_WRITE | PROT_EXEC */
};

struct ss_module_impl {
	struct ss_module pub; /* its strings are in the next three members */
	char *path;
	char *build_id_text;
	char *problem;
	atomic_uint references;
	struct ss_mapping *mappings; /* sorted by start, file-backed ones only */
	size_t mapping_count;
	uint64_t device;
	uint64_t inode;
	int fd;	     /* an owned descriptor of the regular file; -1: none */
	bool copied; /* fd is a copy in memory of a file on a remote file system, */
	uint64_t file_inode;  /* which has this inode */
	uint64_t modified_ns; /* and was modified then */
	/* fd was opened by its path, and its device or inode differs from the mapping.
	   On some file systems (btrfs, overlayfs) they differ for the same file: the
	   build-id decides. */
	bool unverified;
	/* The first bytes as they are mapped, if fd is unverified; owned. */
	uint8_t *header;
	size_t header_size;
	/* The mapped parts of the file at their file offsets, if no file is known to be
	   the right one (holes are zero; section headers are usually missing). For the
	   vDSO, the whole ELF image. Owned. */
	uint8_t *bytes;
	size_t size; /* of bytes */
	/* Set by a cache (data/cache.h) before anything is interpreted. cached: what an
	   earlier run found in this file, to be read from the start, owned; or -1. */
	int cached;
	int32_t cache_id; /* names the file to that cache; -1: it is not cached */
	pthread_mutex_t identify_lock;
	bool identified; /* set by ss_module_identify() */
	uint8_t build_id[SS_BUILD_ID_MAX];
	size_t build_id_size;		      /* 0: it has none */
	uint8_t file_hash[SS_FILE_HASH_SIZE]; /* of pub.file */
	char file_hash_text[2 * SS_FILE_HASH_SIZE + 1];
};

/* A module with one reference, fd -1 and a copy of path. NULL without memory. */
struct ss_module_impl *ss_module_new(const char *path, uint64_t base, uint64_t end);
struct ss_module_impl *ss_module_ref(struct ss_module_impl *module);
void ss_module_unref(struct ss_module_impl *module);

/* Appends a mapping. False without memory. */
bool ss_module_add_mapping(struct ss_module_impl *module, const struct ss_mapping *m);

/* Sets the build-id, binary and hexadecimal (cut to SS_BUILD_ID_MAX bytes). False
   without memory. */
bool ss_module_set_build_id(struct ss_module_impl *module, const void *id, size_t size);

/* Sets pub.file; its hash is that of the last argument. */
void ss_module_set_file(struct ss_module_impl *module,
			const struct ss_file_identity *identity,
			const uint8_t hash[SS_FILE_HASH_SIZE]);

/* Writes a hash in hexadecimal. */
void ss_file_hash_text(const uint8_t hash[SS_FILE_HASH_SIZE],
		       char ret[2 * SS_FILE_HASH_SIZE + 1]);

/* Removes the build-id. */
void ss_module_clear_build_id(struct ss_module_impl *module);

void ss_module_clear_problem(struct ss_module_impl *module);
/* Sets pub.problem to a formatted text, unless it is set already. */
void ss_module_set_problem(struct ss_module_impl *module, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The load bias of a module without readable ELF headers: file offsets are then used as
 * ELF addresses. has_bytes: there are bytes, but without headers. A module without bytes
 * below 4 GiB is assumed to be linked to a fixed address, with bias 0.
 */
uint64_t ss_module_guess_bias(const struct ss_module_impl *module, bool has_bytes);

/* Reads bytes of the module's file at a file offset, from fd or bytes. Returns the
   number of bytes read (short at the end), or a negative errno; -ENODATA: there is no
   file. */
ssize_t ss_module_read(const struct ss_module_impl *module, uint64_t offset, void *bytes,
		       size_t size);

/* Whether the file at this path is the library of SQLite, or its shell, which contains it. */
bool ss_path_is_sqlite(const char *path);

/* Whether it may be a file of Python or Java. */
bool ss_path_is_of_runtime(const char *path);

SS_DEFINE_CLEANUP(struct ss_module_impl, ss_module, ss_module_unref)

#endif
