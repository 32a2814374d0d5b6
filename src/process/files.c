#include "process/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/types.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

enum {
	IMAGE_MAX = 64 << 20,	/* limit of bytes of one module without a file */
	IMAGES_MAX = 256 << 20, /* limit for all of them */
	RETRY_S = 60,		/* a file system, or a file, that did not respond */
};

/* Limit for copies of files whose file system may not respond. */
#define COPIES_MAX ((uint64_t)1 << 30)

/* Modules that are to be opened. */
struct batch {
	struct ss_module_impl *const *modules;
	struct ss_target *target;
	const struct ss_process_memory *memory;
	bool by_path; /* the process has ended or executed another program */
	/* What may still be copied. */
	uint64_t images;
	uint64_t copies;
	/* The last device that was looked up. */
	uint64_t device;
	bool local;
};

/* Without a child ------------------------------------------------------- */

/* Whether a file system of the kernel is on this block device. That of a FUSE server, or of
   another machine, has no such directory. */
static bool is_local_device(uint64_t device)
{
	static const char *const types[] = { "ext4", "xfs", "f2fs" };
	char path[64];
	char target[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u",
		       (unsigned)(device >> 32), (unsigned)device); /* fits */
	ssize_t size = readlink(path, target, sizeof(target) - 1);
	if (size <= 0)
		return false;
	target[size] = '\0';
	const char *slash = strrchr(target, '/');
	for (size_t i = 0; slash && i < SS_ARRAY_SIZE(types); i++) {
		int length =
			snprintf(path, sizeof(path), "/sys/fs/%s%s", types[i], slash);
		if (length < (int)sizeof(path) && access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/* Whether the mapping is still that of the file, by what the kernel has in memory. */
static bool is_mapped_file(int path_fd, const struct ss_module_impl *module)
{
	struct statx st;

	return statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		     STATX_TYPE | STATX_INO, &st) == 0 &&
	       st.stx_ino == module->inode &&
	       ((uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor) == module->device;
}

/* Opens the mapped file itself, even if it is deleted or in another mount namespace.
   Needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. */
static int open_map_file(const struct ss_module_impl *module,
			 const struct ss_target *target)
{
	char path[64];
	const struct ss_mapping *m = &module->mappings[0];

	(void)snprintf(path, sizeof(path), "map_files/%lx-%lx", m->start, m->end);
	return openat(target->proc_fd, path, O_PATH | O_CLOEXEC);
}

static bool is_on_disk(struct batch *batch, const struct ss_module_impl *module)
{
	if (module->device >> 32 == 0)
		return false;
	if (batch->device != module->device)
		batch->local = is_local_device(module->device);
	batch->device = module->device;
	return batch->local;
}

/* The inode of a local file that is mapped is in memory, so opening it does not wait for the
   disk. */
static int find_on_disk(const struct ss_opener *opener, size_t item)
{
	struct batch *batch = opener->data;
	const struct ss_module_impl *module = batch->modules[item];

	if (batch->by_path || !is_on_disk(batch, module))
		return -1;
	_cleanup_close_ int mapped = open_map_file(module, batch->target);
	return mapped >= 0 && is_mapped_file(mapped, module) ? take_fd(mapped) : -1;
}

/* In the child of an opener -------------------------------------------- */

/* Opens by the path below the root of the target (as it was when ss_target_open_root() was
   called); links cannot lead out of it. flags: such as O_NOFOLLOW. */
static int open_below_root(const struct ss_target *target, const char *path, int flags)
{
	struct open_how how = { .flags = (unsigned)(O_PATH | O_CLOEXEC | flags),
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	if (path[0] != '/') {
		errno = ENOENT;
		return -1;
	}
	return (int)syscall(SYS_openat2, target->root_fd, path, &how, sizeof(how));
}

static uint64_t device_of(const struct stat *st)
{
	return (uint64_t)major(st->st_dev) << 32 | minor(st->st_dev);
}

/* Whether a file was opened, and it is the mapped one. Its contents may have changed. */
static bool is_that_file(const struct ss_module_impl *module,
			 const struct ss_opened *opened)
{
	return opened->file >= 0 && opened->status.st_ino == module->inode &&
	       device_of(&opened->status) == module->device;
}

__attribute__((format(printf, 2, 3))) static void set_problem(struct ss_opened *opened,
							      const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(opened->problem, sizeof(opened->problem), format, ap);
	va_end(ap);
}

/* errnum: why it could not be opened. */
static const char *problem_of(const struct ss_module_impl *module, int errnum)
{
	if (errnum == EMFILE || errnum == ENFILE)
		return "too many open files (ulimit -n)";
	if (errnum == EFBIG)
		return "too large to be copied from its file system";
	return module->pub.deleted ? "its file was deleted" : "its file cannot be opened";
}

/* Copies the first mapped bytes; nothing is parsed here. */
static void copy_header(const struct ss_module_impl *module,
			const struct ss_process_memory *memory, struct ss_opened *opened)
{
	const struct ss_mapping *m = module->mappings;

	if (module->mapping_count == 0 || m->offset != 0)
		return;
	struct ss_piece piece = {
		.address = m->start,
		.bytes = opened->header,
		.size = SS_MIN(m->end - m->start, sizeof(opened->header)),
	};
	ss_process_memory_read(memory, &piece, 1);
	opened->header_size = (uint32_t)piece.done;
}

/*
 * Opens the file of a module. A file that is found by its path is verified by device and
 * inode. If they differ it may still be the same file (overlayfs, btrfs):
 * ss_module_identify() decides by build-id.
 */
static void open_file(const struct ss_opener *opener, const struct ss_module_impl *module,
		      struct ss_opened *opened)
{
	struct batch *batch = opener->data;
	_cleanup_close_ int mapped =
		batch->by_path ? -1 : open_map_file(module, batch->target);
	int errnum = mapped < 0 ? errno :
				  ss_opener_open(opener, mapped, &batch->copies, opened);

	if (opened->file >= 0 || errnum == EFBIG) {
		set_problem(opened, "%s",
			    opened->file < 0 ? problem_of(module, errnum) : "");
		return;
	}
	_cleanup_close_ int below = open_below_root(batch->target, module->pub.path, 0);
	int path_errnum =
		below < 0 ? errno : ss_opener_open(opener, below, &batch->copies, opened);
	if (opened->file < 0) {
		set_problem(opened, "%s",
			    problem_of(module, path_errnum == EFBIG ? EFBIG : errnum));
		return;
	}
	opened->unverified = !is_that_file(module, opened);
	if (opened->unverified && !batch->by_path)
		copy_header(module, batch->memory, opened);
}

/* A file with a different inode is probably a different file: copy the mapped bytes,
   too. */
static bool needs_image(const struct ss_module_impl *module,
			const struct ss_opened *opened)
{
	return opened->file < 0 ||
	       (opened->unverified && opened->status.st_ino != module->inode);
}

/* Copies the mapped parts of the file, each to its file offset. NULL: nothing was copied,
   which may be a problem. */
static uint8_t *copy_image(const struct ss_module_impl *module,
			   const struct ss_process_memory *memory, uint64_t left,
			   size_t *ret_size, bool *ret_too_large)
{
	uint64_t size = 0;

	for (size_t i = 0; i < module->mapping_count; i++) {
		const struct ss_mapping *m = &module->mappings[i];
		uint64_t end;
		if (!__builtin_add_overflow(m->offset, m->end - m->start, &end))
			size = SS_MAX(size, end);
	}
	*ret_too_large = size == 0 || size > IMAGE_MAX || size > left;
	if (*ret_too_large)
		return NULL;
	_cleanup_free_ uint8_t *bytes = calloc(1, size);
	if (!bytes)
		return NULL;
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
	*ret_size = size;
	return done ? take_ptr(bytes) : NULL; /* 0: the process has ended */
}

static void put_image(const struct ss_module_impl *module, struct batch *batch,
		      struct ss_opened *opened)
{
	bool too_large = false;
	size_t size = 0;
	_cleanup_free_ uint8_t *bytes =
		copy_image(module, batch->memory, batch->images, &size, &too_large);

	if (too_large && !*opened->problem)
		set_problem(opened, "too large to be read from memory");
	if (!bytes)
		return;
	opened->image = ss_opener_put(bytes, size);
	opened->image_size = opened->image >= 0 ? size : 0;
	batch->images -= opened->image_size;
}

static void work(const struct ss_opener *opener, size_t item, struct ss_opened *ret)
{
	struct batch *batch = opener->data;
	const struct ss_module_impl *module = batch->modules[item];

	open_file(opener, module, ret);
	if (!batch->by_path) {
		if (needs_image(module, ret))
			put_image(module, batch, ret);
	} else if (!is_that_file(module, ret)) {
		close_cleanup(&ret->file);
		ret->file = -1;
	}
}

/* In the caller --------------------------------------------------------- */

static void set_build_id(struct ss_module_impl *module, int maps_fd)
{
	uint8_t id[SS_MAPPED_BUILD_ID_MAX];
	size_t size = module->mapping_count > 0 ?
			      ss_mapped_build_id(maps_fd, module->mappings[0].start,
						 module->device, module->inode, id) :
			      0;

	if (size)
		(void)ss_module_set_build_id(module, id, size); /* or none is known */
}

static void take_image(struct ss_module_impl *module, const struct ss_opened *opened)
{
	size_t size = (size_t)opened->image_size;
	_cleanup_free_ uint8_t *bytes =
		opened->image >= 0 && size <= IMAGE_MAX ? malloc(size) : NULL;

	if (!bytes || ss_io_pread(opened->image, bytes, size, 0) != (ssize_t)size)
		return;
	module->bytes = take_ptr(bytes);
	module->size = size;
}

static void take_header(struct ss_module_impl *module, const struct ss_opened *opened)
{
	size_t size = SS_MIN((size_t)opened->header_size, sizeof(opened->header));

	module->header = size ? malloc(size) : NULL;
	if (!module->header)
		return;
	memcpy(module->header, opened->header, size);
	module->header_size = size;
}

static const char unresponsive[] = "its file system does not respond";

/* NULL: it is to be opened. */
static const struct ss_unresponsive *
find_unresponsive(const struct ss_target *target, const struct ss_module_impl *module)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(target->unresponsive); i++) {
		const struct ss_unresponsive *known = &target->unresponsive[i];
		if (known->device == module->device &&
		    (known->inode == 0 || known->inode == module->inode) &&
		    known->since_ns > 0 &&
		    ss_now_ns() - known->since_ns < RETRY_S * SS_NS_PER_SECOND)
			return known;
	}
	return NULL;
}

static void add_unresponsive(struct ss_target *target, uint64_t device, uint64_t inode)
{
	target->unresponsive[target->unresponsive_count++ % SS_UNRESPONSIVE_MAX] =
		(struct ss_unresponsive){ .device = device,
					  .inode = inode,
					  .since_ns = ss_now_ns() };
}

/* Of a module without a file, such as the vDSO. */
static void keep_image(struct ss_module_impl *module, struct batch *batch)
{
	bool too_large = false;

	module->bytes = copy_image(module, batch->memory, batch->images, &module->size,
				   &too_large);
	if (!module->bytes)
		module->size = 0;
	batch->images -= SS_MIN(batch->images, (uint64_t)module->size);
}

/* Other files of the disk may be opened; what is mapped of this one is in memory. */
static void keep_unanswered(struct ss_module_impl *module, struct batch *batch)
{
	ss_module_set_problem(module, "a program that decides whether it may be opened "
				      "(fanotify) does not answer");
	keep_image(module, batch);
}

/* The same server has the other modules of that device. */
static void give_up(const struct ss_opener *opener, size_t item)
{
	const struct batch *batch = opener->data;
	uint64_t device = batch->modules[item]->device;

	add_unresponsive(batch->target, device, 0);
	for (size_t i = 0; i < opener->count; i++) {
		if (i != item &&
		    (!opener->wanted[i] || batch->modules[i]->device != device))
			continue;
		opener->wanted[i] = false;
		ss_module_set_problem(batch->modules[i], unresponsive);
	}
}

static void take(const struct ss_opener *opener, size_t item, struct ss_opened *opened)
{
	struct batch *batch = opener->data;
	struct ss_module_impl *module = batch->modules[item];

	if (!opened && is_on_disk(batch, module)) {
		add_unresponsive(batch->target, module->device, module->inode);
		keep_unanswered(module, batch);
		return;
	}
	if (!opened) {
		give_up(opener, item);
		return;
	}
	if (batch->by_path && opened->file < 0)
		ss_module_set_problem(module, "the process ended or executed another "
					      "program before the file was opened");
	else if (*opened->problem)
		ss_module_set_problem(module, "%s", opened->problem);
	if (opened->copied)
		batch->copies -= SS_MIN(batch->copies, (uint64_t)opened->status.st_size);
	module->copied = opened->copied;
	module->file_inode = opened->status.st_ino;
	module->modified_ns = ss_timespec_ns(&opened->status.st_mtim);
	module->unverified = opened->unverified && !batch->by_path;
	module->fd = take_fd(opened->file);
	take_header(module, opened);
	take_image(module, opened);
	batch->images -= SS_MIN(batch->images, (uint64_t)module->size);
}

static void run(struct batch *batch, bool *wanted, size_t count)
{
	struct ss_opener opener = {
		.work = work,
		.find_on_disk = find_on_disk,
		.take = take,
		.data = batch,
		.wanted = wanted,
		.count = count,
		.keep = { batch->target->proc_fd, batch->target->root_fd,
			  batch->memory->mem_fd, batch->memory->pagemap_fd, -1, -1, -1,
			  -1 },
	};

	ss_opener_run(&opener);
}

/*
 * The process executed another program or ended before the last file was opened. Bytes
 * that were opened, or read from memory, may belong to that program, which uses the same
 * addresses if they are not randomized. Keep only files with the mapped device and inode.
 */
static void doubt(struct ss_module_impl *module)
{
	close_cleanup(&module->fd);
	module->fd = -1;
	free(take_ptr(module->bytes));
	module->size = 0;
	free(take_ptr(module->header));
	module->header_size = 0;
	module->unverified = module->copied = false;
	ss_module_clear_build_id(module);
}

/* Whether what was opened or read from memory is of another file, which is mapped there by now: the
   process has unloaded the module. Not known before Linux 6.11. */
static bool is_replaced(const struct ss_module_impl *module, int maps_fd)
{
	bool other = module->fd >= 0 && module->file_inode != module->inode;
	struct ss_mapped mapped;

	return (module->bytes || other) && module->inode && module->mapping_count > 0 &&
	       ss_mapped_query(maps_fd, module->mappings[0].start, &mapped) == 0 &&
	       (mapped.inode != module->inode || mapped.device != module->device);
}

bool ss_files_open_modules(struct ss_module_impl *const *modules, const bool *wanted,
			   size_t count, struct ss_target *target,
			   const struct ss_process_memory *memory, int maps_fd)
{
	struct batch batch = { .modules = modules,
			       .target = target,
			       .memory = memory,
			       .images = IMAGES_MAX,
			       .copies = COPIES_MAX };
	_cleanup_free_ bool *left = calloc(count + 1, sizeof(*left));
	_cleanup_free_ bool *opened = calloc(count + 1, sizeof(*opened));
	bool any = false;

	if (!left || !opened)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!wanted[i] || modules[i]->fd >= 0 || modules[i]->bytes)
			continue;
		any = true;
		ss_module_clear_problem(modules[i]); /* of an earlier capture */
		const struct ss_unresponsive *known =
			find_unresponsive(target, modules[i]);
		if (modules[i]->inode == 0)
			keep_image(modules[i], &batch);
		else if (!known)
			left[i] = opened[i] = true;
		else if (known->inode == 0)
			ss_module_set_problem(modules[i], unresponsive);
		else {
			keep_unanswered(modules[i], &batch);
			opened[i] = modules[i]->bytes != NULL;
		}
	}
	run(&batch, left, count);
	for (size_t i = 0; i < count; i++) {
		if (!opened[i] || !is_replaced(modules[i], maps_fd))
			continue;
		doubt(modules[i]);
		ss_module_set_problem(modules[i], "it was unloaded before it was read");
	}
	/* The kernel reads the first page of the file, while it holds a lock of the process:
	   not of a file whose server may not respond. That of an image is in memory. */
	for (size_t i = 0; i < count; i++) {
		const struct ss_module_impl *module = modules[i];
		if (opened[i] && (module->bytes || (module->fd >= 0 && !module->copied)))
			set_build_id(modules[i], maps_fd);
	}
	if (!any || ss_target_has_memory(target, memory->program, maps_fd))
		return any;
	for (size_t i = 0; i < count; i++) {
		if (opened[i])
			doubt(modules[i]);
	}
	batch.by_path = true;
	run(&batch, opened, count);
	return true;
}

bool ss_files_open(struct ss_capture *capture, const struct ss_capture *previous,
		   struct ss_target *target, const struct ss_process_memory *memory,
		   int maps_fd)
{
	_cleanup_free_ bool *referenced =
		calloc(capture->modules.count + 1, sizeof(*referenced));

	if (!referenced)
		return false;
	ss_references_mark(capture, previous, referenced);
	return ss_files_open_modules(capture->modules.items, referenced,
				     capture->modules.count, target, memory, maps_fd);
}

/* One other file -------------------------------------------------------- */

struct other {
	const struct ss_target *target;
	const char *path;
	int file;
	struct stat *status;
};

static void work_on_other(const struct ss_opener *opener, size_t item,
			  struct ss_opened *ret)
{
	const struct other *other = opener->data;
	_cleanup_close_ int fd = open_below_root(other->target, other->path, O_NOFOLLOW);
	uint64_t copies = 0; /* a copy would not grow with the file */

	(void)item;
	if (fd >= 0)
		(void)ss_opener_open(opener, fd, &copies, ret); /* or there is none */
}

static void take_other(const struct ss_opener *opener, size_t item,
		       struct ss_opened *opened)
{
	struct other *other = opener->data;

	(void)item;
	if (!opened || opened->copied) /* an empty file is copied */
		return;
	other->file = take_fd(opened->file);
	*other->status = opened->status;
}

/* Opens a regular file of a local file system for reading by its path below the root of
   the target (as it was when ss_target_open_root() was called); no link is followed in the
   last component, and none leads out of the root. Returns a descriptor, or -1. */
static int open_file_below_root(const struct ss_target *target, const char *path,
				struct stat *ret_status)
{
	struct other other = {
		.target = target, .path = path, .file = -1, .status = ret_status
	};
	bool wanted = true;
	struct ss_opener opener = { .work = work_on_other,
				    .take = take_other,
				    .data = &other,
				    .wanted = &wanted,
				    .count = 1,
				    .keep = { target->root_fd, -1, -1, -1, -1, -1, -1,
					      -1 } };

	if (target->root_fd >= 0)
		ss_opener_run(&opener);
	return other.file;
}

/* PROCMAP_QUERY of <linux/fs.h>, since Linux 6.11, in the kernel's layout. */
struct procmap_query {
	__u64 size;
	__u64 query_flags; /* 0: the mapping that covers query_addr */
	__u64 query_addr;
	__u64 start;
	__u64 end;
	__u64 flags;
	__u64 page_size;
	__u64 offset;
	__u64 inode;
	__u32 dev_major;
	__u32 dev_minor;
	__u32 name_size;     /* 0: no name is requested */
	__u32 build_id_size; /* 0: no build-id is requested; otherwise at least 20 */
	__u64 name_addr;
	__u64 build_id_addr;
};

enum { DEVICE_MAJOR_SHIFT = 32 };

static int run_query(int maps_fd, struct procmap_query *query)
{
	query->size = sizeof(*query);
	return ioctl(maps_fd, _IOWR('f', 17, struct procmap_query), query);
}

static uint64_t query_device(const struct procmap_query *query)
{
	return (uint64_t)query->dev_major << DEVICE_MAJOR_SHIFT | query->dev_minor;
}

int ss_mapped_query(int maps_fd, uint64_t address, struct ss_mapped *ret)
{
	struct procmap_query query = { .query_addr = address };

	if (run_query(maps_fd, &query) != 0)
		return errno;
	*ret = (struct ss_mapped){
		.start = query.start,
		.end = query.end,
		.offset = query.offset,
		.inode = query.inode,
		.device = query_device(&query),
	};
	return 0;
}

size_t ss_mapped_build_id(int maps_fd, uint64_t address, uint64_t device, uint64_t inode,
			  uint8_t ret[SS_MAPPED_BUILD_ID_MAX])
{
	uint8_t id[SS_MAPPED_BUILD_ID_MAX] = {};
	struct procmap_query query = {
		.query_addr = address,
		.build_id_size = sizeof(id),
		.build_id_addr = (uintptr_t)id,
	};

	if (run_query(maps_fd, &query) != 0 || query.build_id_size > sizeof(id) ||
	    query_device(&query) != device || query.inode != inode)
		return 0;
	memcpy(ret, id, query.build_id_size);
	return query.build_id_size;
}

/* Tolerance for clocks that were adjusted since, and for the resolution of file systems
   (ext3: one second; FAT: two). */
enum { CLOCK_TOLERANCE_S = 3 };

/* The start of the process by the clock of file systems. */
static int64_t start_second(const struct ss_target *target)
{
	struct timespec now;
	struct timespec up;
	long ticks = sysconf(_SC_CLK_TCK);

	/* These cannot fail: Linux has both clocks. */
	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	return now.tv_sec - up.tv_sec +
	       (int64_t)(target->start_time / (uint64_t)SS_MAX(ticks, 1L));
}

/*
 * Whether the target wrote the file. A file that is older than the process comes from an
 * earlier process with this pid and has wrong names. A file of another user, or with
 * several links, may have been planted.
 */
static bool is_its_own(const struct ss_target *target, const struct ss_status *status,
		       const struct stat *st)
{
	return (st->st_uid == status->uid[1] || st->st_uid == 0) && st->st_nlink == 1 &&
	       st->st_mtim.tv_sec + CLOCK_TOLERANCE_S >= start_second(target);
}

struct ss_module_impl *ss_perfmap_of(const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;
	struct stat st;
	char path[48];

	/* Read from the leader: even a zombie has its ids. */
	if (!ss_target_read_status(target, target->pid, &text, &status))
		return NULL;
	pid_t pid = status.inner_id ? status.inner_id : target->pid;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid); /* fits */
	_cleanup_close_ int fd = open_file_below_root(target, path, &st);
	if (fd < 0 || !is_its_own(target, &status, &st))
		return NULL;
	struct ss_module_impl *file = ss_module_new(path, 0, 0);
	if (file)
		file->fd = take_fd(fd);
	return file;
}

void ss_perfmap_open(struct ss_capture *capture, const struct ss_target *target)
{
	if (ss_references_find_jit(capture))
		capture->perf_map = ss_perfmap_of(target);
}
