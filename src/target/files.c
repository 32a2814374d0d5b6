#include "target/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "target/mapped.h"
#include "target/references.h"

enum {
	IMAGE_MAX = 64 << 20,	/* limit of bytes of one module without a file */
	IMAGES_MAX = 256 << 20, /* limit for all of them */
	HEADER_MAX = 4096, /* linkers put the build-id there; the kernel reads no more */
	/* Descriptors reserved for after the capture: a sandbox needs four, and its
	   child needs some for the debug files of a module. */
	SPARE_FILES = 16,
};

/* Returns fd; but -1 and EMFILE if it is one of the reserved descriptors. */
static int leave_spare_files(int fd)
{
	struct rlimit limit;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    (rlim_t)fd + SPARE_FILES < limit.rlim_cur)
		return fd;
	(void)close(fd); /* nothing was written */
	errno = EMFILE;
	return -1;
}

/* Reopens an O_PATH descriptor for reading if it is a regular file: opening a device or a
   FIFO could block or have side effects. */
static int reopen_regular(int path_fd, struct stat *st)
{
	char path[40];

	if (fstat(path_fd, st) != 0 || !S_ISREG(st->st_mode))
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd); /* fits */
	return leave_spare_files(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
}

/* Opens the mapped file itself, even if it is deleted or in another mount namespace.
   Needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. */
static int open_map_file(const struct ss_module_impl *module,
			 const struct ss_target *target, struct stat *st)
{
	char path[64];
	const struct ss_mapping *m = &module->mappings[0];

	(void)snprintf(path, sizeof(path), "map_files/%lx-%lx", m->start, m->end);
	_cleanup_close_ int path_fd = openat(target->proc_fd, path, O_PATH | O_CLOEXEC);
	return path_fd < 0 ? -1 : reopen_regular(path_fd, st);
}

int ss_files_open_below_root(const struct ss_target *target, const char *path, int flags,
			     struct stat *st)
{
	struct open_how how = { .flags = (unsigned)(O_PATH | O_CLOEXEC | flags),
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	if (target->root_fd < 0 || path[0] != '/')
		return -1;
	long fd = syscall(SYS_openat2, target->root_fd, path, &how, sizeof(how));
	_cleanup_close_ int path_fd = (int)fd;

	return path_fd < 0 ? -1 : reopen_regular(path_fd, st);
}

static uint64_t device_of(const struct stat *st)
{
	return (uint64_t)major(st->st_dev) << 32 | minor(st->st_dev);
}

/* Whether fd is the mapped file. Its contents may have changed. */
static bool is_that_file(const struct ss_module_impl *module, int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == module->inode &&
	       device_of(&st) == module->device;
}

/* errnum: why it could not be opened. */
static const char *problem_of(const struct ss_module_impl *module, int errnum)
{
	if (errnum == EMFILE || errnum == ENFILE)
		return "too many open files (ulimit -n)";
	return module->pub.deleted ? "its file was deleted" : "its file cannot be opened";
}

/* Copies the first mapped bytes; nothing is parsed here. */
static void copy_header(struct ss_module_impl *module,
			const struct ss_process_memory *memory)
{
	const struct ss_mapping *m = module->mappings;

	if (module->mapping_count == 0 || m->offset != 0)
		return;
	struct ss_piece piece = { .address = m->start,
				  .bytes = malloc(HEADER_MAX),
				  .size = SS_MIN(m->end - m->start, (size_t)HEADER_MAX) };
	if (!piece.bytes)
		return;
	ss_process_memory_read(memory, &piece, 1);
	module->header = piece.bytes;
	module->header_size = piece.done;
}

/*
 * Opens the file of a module. A file that is found by its path is verified by device and
 * inode. If they differ it may still be the same file (overlayfs, btrfs):
 * ss_module_identify() decides by build-id.
 */
static void open_file(struct ss_module_impl *module, const struct ss_target *target,
		      const struct ss_process_memory *memory)
{
	struct stat st;

	module->fd = open_map_file(module, target, &st);
	if (module->fd >= 0)
		return;
	int errnum = errno;
	module->fd = ss_files_open_below_root(target, module->pub.path, 0, &st);
	if (module->fd < 0) {
		ss_module_set_problem(module, "%s", problem_of(module, errnum));
		return;
	}
	module->unverified = !is_that_file(module, module->fd);
	if (module->unverified)
		copy_header(module, memory);
}

/* A file with a different inode is probably a different file: copy the mapped bytes,
   too. */
static bool needs_image(const struct ss_module_impl *module)
{
	struct stat st;

	return module->fd < 0 || (module->unverified && (fstat(module->fd, &st) != 0 ||
							 st.st_ino != module->inode));
}

/* Copies the mapped parts of the file, each to its file offset. */
static void copy_image(struct ss_module_impl *module,
		       const struct ss_process_memory *memory, size_t *left)
{
	uint64_t size = 0;

	for (size_t i = 0; i < module->mapping_count; i++) {
		const struct ss_mapping *m = &module->mappings[i];
		uint64_t end;
		if (!__builtin_add_overflow(m->offset, m->end - m->start, &end))
			size = SS_MAX(size, end);
	}
	if (size == 0 || size > IMAGE_MAX || size > *left) {
		ss_module_set_problem(module, "too large to be read from memory");
		return;
	}
	_cleanup_free_ uint8_t *bytes = calloc(1, size);
	if (!bytes)
		return;
	size_t done = 0;
	for (size_t i = 0; i < module->mapping_count; i++) {
		const struct ss_mapping *m = &module->mappings[i];
		if (m->offset >= size || m->end - m->start > size - m->offset)
			continue;
		struct ss_piece piece = { .address = m->start,
					  .bytes = bytes + m->offset,
					  .size = m->end - m->start };
		ss_process_memory_read(memory, &piece, 1);
		done += piece.done;
	}
	if (done == 0) /* the process has ended */
		return;
	module->bytes = take_ptr(bytes);
	module->size = size;
	*left -= size;
}

static void set_build_id(struct ss_module_impl *module, int maps_fd)
{
	uint8_t id[SS_MAPPED_BUILD_ID_MAX];
	size_t size = module->inode != 0 && module->mapping_count > 0 ?
			      ss_mapped_build_id(maps_fd, module->mappings[0].start, id) :
			      0;

	if (size)
		(void)ss_module_set_build_id(module, id, size); /* or none is known */
}

static void open_module(struct ss_module_impl *module, const struct ss_target *target,
			const struct ss_process_memory *memory, int maps_fd, size_t *left)
{
	set_build_id(module, maps_fd);
	if (module->inode != 0)
		open_file(module, target, memory);
	if (needs_image(module))
		copy_image(module, memory, left);
}

/*
 * The process executed another program or ended before the last file was opened. Bytes
 * that were opened, or read from memory, may belong to that program, which uses the same
 * addresses if they are not randomized. Keep only files with the mapped device and inode.
 */
static void doubt_module(struct ss_module_impl *module, const struct ss_target *target)
{
	struct stat st;

	if (module->inode == 0) /* the vDSO is the same in all processes */
		return;
	_cleanup_close_ int fd = take_fd(module->fd);
	free(take_ptr(module->bytes));
	module->size = 0;
	free(take_ptr(module->header));
	module->header_size = 0;
	module->unverified = false;
	ss_module_clear_build_id(module);
	if (!is_that_file(module, fd)) {
		close_cleanup(&fd);
		fd = ss_files_open_below_root(target, module->pub.path, 0, &st);
	}
	if (!is_that_file(module, fd)) {
		ss_module_set_problem(module, "the process ended or executed another "
					      "program before the file was opened");
		return;
	}
	module->fd = take_fd(fd);
}

void ss_files_open_module(struct ss_module_impl *module, const struct ss_target *target,
			  const struct ss_process_memory *memory, int maps_fd)
{
	size_t left = IMAGE_MAX;

	if (module->fd >= 0 || module->bytes)
		return;
	open_module(module, target, memory, maps_fd, &left);
	if (!ss_process_memory_is_mapped(memory, target, maps_fd))
		doubt_module(module, target);
}

void ss_files_open(struct ss_capture *capture, const struct ss_target *target,
		   const struct ss_process_memory *memory, int maps_fd)
{
	_cleanup_free_ bool *referenced =
		calloc(capture->modules.count + 1, sizeof(*referenced));
	size_t left = IMAGES_MAX;

	if (!referenced)
		return;
	ss_references_mark(capture, referenced);
	for (size_t i = 0; i < capture->modules.count; i++) {
		struct ss_module_impl *module = capture->modules.items[i];
		referenced[i] &= module->fd < 0 && !module->bytes;
		if (referenced[i])
			open_module(module, target, memory, maps_fd, &left);
	}
	if (ss_process_memory_is_mapped(memory, target, maps_fd))
		return;
	for (size_t i = 0; i < capture->modules.count; i++)
		if (referenced[i])
			doubt_module(capture->modules.items[i], target);
}
