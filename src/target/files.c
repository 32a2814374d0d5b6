#include "target/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "target/references.h"
#include "model/build_id.h"

/* Of one module that has no file, from memory; and of all of them. */
enum { IMAGE_MAX = 64 << 20, IMAGES_MAX = 256 << 20 };

struct memory_reader {
	const struct ss_memory *memory;
	uint64_t base;
};

static ssize_t read_memory(void *data, uint64_t position, void *bytes, size_t size)
{
	const struct memory_reader *reader = data;
	struct ss_piece piece = { .address = reader->base + position,
				  .bytes = bytes,
				  .size = size };

	ss_memory_read(reader->memory, &piece, 1);
	return (ssize_t)piece.done;
}

static ssize_t read_file(void *data, uint64_t position, void *bytes, size_t size)
{
	return position > INT64_MAX ? -EINVAL :
				      ss_io_pread(*(int *)data, bytes, size, position);
}

/* Reopens an O_PATH descriptor for reading, if it is a regular file: opening a device
   or a FIFO could block or do something. */
static int reopen_regular(int path_fd, struct stat *st)
{
	char path[40];

	if (fstat(path_fd, st) != 0 || !S_ISREG(st->st_mode))
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd); /* fits */
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

/* The very file that is mapped, also deleted, also in another mount namespace. Needs
   CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. */
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

/*
 * Whether a file found by its path is the one that is mapped. Equal build-ids say so;
 * without one in memory device and inode must be the same. (They may differ for the
 * same file on overlayfs and btrfs.)
 */
static bool file_agrees(struct ss_module_impl *module, int fd, const struct stat *st)
{
	uint8_t id[SS_BUILD_ID_MAX];

	if (module->build_id_size == 0) {
		if (st->st_ino == module->inode && device_of(st) == module->device)
			return true;
		ss_module_set_problem(module, "another file is at its path now");
		return false;
	}
	size_t size = ss_build_id_find(read_file, &fd, SS_LAYOUT_FILE, id, sizeof(id));
	if (size == module->build_id_size && memcmp(id, module->build_id, size) == 0)
		return true;
	ss_module_set_problem(module, "another build is at its path now");
	return false;
}

/* errnum is why it could not be opened. */
static const char *problem_of(const struct ss_module_impl *module, int errnum)
{
	if (errnum == EMFILE || errnum == ENFILE)
		return "too many files are open (ulimit -n)";
	return module->pub.deleted ? "its file was deleted" : "its file cannot be opened";
}

static int open_file(struct ss_module_impl *module, const struct ss_target *target)
{
	struct stat st;
	int fd = open_map_file(module, target, &st);

	if (fd >= 0)
		return fd;
	int errnum = errno;
	fd = ss_files_open_below_root(target, module->pub.path, 0, &st);
	if (fd < 0)
		ss_module_set_problem(module, "%s", problem_of(module, errnum));
	if (fd >= 0 && !file_agrees(module, fd, &st)) {
		close_cleanup(&fd);
		return -1;
	}
	return fd;
}

/* Copies what is mapped of the file, each piece at its file offset. */
static void copy_image(struct ss_module_impl *module, const struct ss_memory *memory,
		       size_t *left)
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
		ss_memory_read(memory, &piece, 1);
		done += piece.done;
	}
	if (done == 0) /* the process has ended */
		return;
	module->bytes = take_ptr(bytes);
	module->size = size;
	*left -= size;
}

static void open_module(struct ss_module_impl *module, const struct ss_target *target,
			const struct ss_memory *memory, size_t *left)
{
	struct memory_reader reader = { .memory = memory, .base = module->pub.base };
	uint8_t id[SS_BUILD_ID_MAX];
	size_t id_size = 0;
	bool is_file = module->inode != 0;

	/* Only the mapping of offset 0 begins with the ELF header. */
	if (module->mapping_count > 0 && module->mappings[0].offset == 0)
		id_size = ss_build_id_find(read_memory, &reader, SS_LAYOUT_MEMORY, id,
					   sizeof(id));
	if (id_size)
		(void)ss_module_set_build_id(module, id, id_size); /* or none is known */
	if (is_file)
		module->fd = open_file(module, target);
	if (module->fd < 0)
		copy_image(module, memory, left);
	if (!id_size && module->fd >= 0)
		id_size = ss_build_id_find(read_file, &module->fd, SS_LAYOUT_FILE, id,
					   sizeof(id));
	if (id_size && module->build_id_size == 0)
		(void)ss_module_set_build_id(module, id, id_size);
}

/* Whether fd is the file that was mapped, whatever its contents may be by now. */
static bool is_that_file(const struct ss_module_impl *module, int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == module->inode &&
	       device_of(&st) == module->device;
}

/*
 * The process began another program, or ended, before the last file was opened. What was
 * opened, or read from memory, may be of that program: it lies at the same addresses, if
 * these are not random. The file that was mapped is right in any case.
 */
static void doubt_module(struct ss_module_impl *module, const struct ss_target *target)
{
	uint8_t id[SS_BUILD_ID_MAX];
	struct stat st;

	if (module->inode == 0) /* the vDSO: the kernel's, and the same everywhere */
		return;
	_cleanup_close_ int fd = take_fd(module->fd);
	free(take_ptr(module->bytes));
	module->size = 0;
	ss_module_clear_build_id(module);
	if (!is_that_file(module, fd)) {
		close_cleanup(&fd);
		fd = ss_files_open_below_root(target, module->pub.path, 0, &st);
	}
	if (!is_that_file(module, fd)) {
		ss_module_set_problem(module, "the process was another program, or had "
					      "ended, before its file was opened");
		return;
	}
	size_t size = ss_build_id_find(read_file, &fd, SS_LAYOUT_FILE, id, sizeof(id));
	if (size)
		(void)ss_module_set_build_id(module, id, size); /* or none is known */
	module->fd = take_fd(fd);
}

void ss_files_open_module(struct ss_module_impl *module, const struct ss_target *target,
			  const struct ss_memory *memory, int maps_fd)
{
	size_t left = IMAGE_MAX;

	if (module->fd >= 0 || module->bytes)
		return;
	open_module(module, target, memory, &left);
	if (!ss_memory_is_mapped(memory, target, maps_fd))
		doubt_module(module, target);
}

void ss_files_open(struct ss_capture *capture, const struct ss_target *target,
		   const struct ss_memory *memory, int maps_fd)
{
	_cleanup_free_ bool *wanted = calloc(capture->modules.count + 1, sizeof(*wanted));
	size_t left = IMAGES_MAX;

	if (!wanted)
		return;
	ss_references_mark(capture, wanted);
	for (size_t i = 0; i < capture->modules.count; i++) {
		struct ss_module_impl *module = capture->modules.items[i];
		wanted[i] &= module->fd < 0 && !module->bytes;
		if (wanted[i])
			open_module(module, target, memory, &left);
	}
	if (ss_memory_is_mapped(memory, target, maps_fd))
		return;
	for (size_t i = 0; i < capture->modules.count; i++)
		if (wanted[i])
			doubt_module(capture->modules.items[i], target);
}
