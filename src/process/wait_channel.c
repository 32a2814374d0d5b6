#include "process/objects.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/procfs.h"
#include "data/call.h"

enum {
	MOUNTS_MAX = 1 << 20,
	FDINFO_MAX = 4 * 1024,
	SEARCHES_MAX = 8, /* threads whose mount and server are searched for */
};

/* Kernel functions, the later of which wait if the earlier ones were inlined: fs/pipe.c and
   fs/fuse/dev.c. */
static const char *const fifo_functions[] = { "wait_for_partner", "fifo_open" };
static const char *const fuse_functions[] = { "request_wait_answer",
					      "__fuse_request_send",
					      "__fuse_simple_request",
					      "fuse_simple_request" };

/* The compiler may add a suffix. */
static bool is_one_of(const char *name, const char *const *functions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(functions[i]);
		if (strncmp(name, functions[i], size) == 0 &&
		    (name[size] == '\0' || name[size] == '.' || name[size] == '\n'))
			return true;
	}
	return false;
}

/* FUSE file systems ------------------------------------------------------------ */

struct search {
	struct ss_facts *facts;
	const struct ss_target *target;
	struct ss_buffer mounts; /* the text of mountinfo, once it has been read */
	bool mounts_read;
	unsigned
		count; /* searches so far: each takes milliseconds, and threads may be many */
};

/* A path as the process names it, without looking it up: from its root, if it is relative to a
   directory that is known. False: it is not known. */
static bool make_absolute(const struct search *search,
			  const struct ss_thread_facts *thread,
			  const struct ss_call *call, char path[PATH_MAX])
{
	const struct ss_memory_fact *given = &thread->memory[call->path - 1];
	char directory[32] = "cwd";
	size_t size = 0;

	if (given->size == 0)
		return false;
	if (given->bytes[0] != '/') {
		int fd = call->path == 1 ? AT_FDCWD : (int)(uint32_t)thread->call.args[0];
		if (fd != AT_FDCWD)
			(void)snprintf(directory, sizeof(directory), "fd/%d",
				       fd); /* fits */
		ssize_t read = readlinkat(search->target->proc_fd, directory, path,
					  PATH_MAX - 1);
		if (read <= 0)
			return false;
		size = (size_t)read;
		path[size++] = '/';
	}
	size_t length = strnlen((const char *)given->bytes, given->size);
	if (size + length >= PATH_MAX)
		return false;
	memcpy(path + size, given->bytes, length);
	path[size + length] = '\0';
	return true;
}

static bool is_below(const char *path, const char *directory)
{
	size_t size = strlen(directory);

	return strncmp(path, directory, size) == 0 &&
	       (path[size] == '\0' || path[size] == '/' || strcmp(directory, "/") == 0);
}

/* The FUSE mount of a device (0: not known), of a path (NULL: not known), or the only one. Later
   mounts cover earlier ones. *device: of the mount. False: it is not known which. */
static bool find_mount(const struct search *search, const char *path, uint64_t *device,
		       struct ss_mount *ret)
{
	const char *cursor = search->mounts.bytes;
	const char *end = cursor + search->mounts.size;
	struct ss_mount mount;
	struct ss_mount covers = {};
	size_t count = 0;

	while (ss_mounts_next(&cursor, end, &mount)) {
		if (path && is_below(path, mount.path) &&
		    strlen(mount.path) >= strlen(covers.path))
			covers = mount;
		if (!mount.is_fuse || (*device && mount.device != *device))
			continue;
		*ret = mount;
		count++;
	}
	if (*device == 0 && covers.is_fuse)
		*ret = covers;
	else if (count != 1)
		return false;
	*device = ret->device;
	return true;
}

/* Processes that have /dev/fuse open. */
struct servers {
	const struct search *search;
	uint64_t device; /* of the mount; 0: not known */
	pid_t pid;	 /* that has the connection of the mount, or is the only one */
	bool exact;	 /* the kernel has told the connection */
	bool several;
};

/* A device as the kernel has it: include/linux/kdev_t.h. */
static uint64_t kernel_device(uint64_t device)
{
	enum { MINOR_BITS = 20 };

	return device >> 32 << MINOR_BITS | (device & UINT32_MAX);
}

/* Recent kernels tell the connection, whose number is that of the device. */
static bool visit_server(void *data, pid_t pid, const char *fd)
{
	struct servers *servers = data;
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_fdinfo info;
	char path[64];

	/* The kernel's names are not longer. */
	if (snprintf(path, sizeof(path), "%d/fdinfo/%s", pid, fd) < (int)sizeof(path) &&
	    ss_io_read_path(servers->search->target->procfs_fd, path, FDINFO_MAX,
			    &text) == 0 &&
	    ss_fdinfo_parse(text.bytes, text.size, &info) && info.has_connection) {
		if (info.connection != kernel_device(servers->device))
			return true;
		servers->pid = pid;
		servers->exact = true;
		return false;
	}
	servers->several |= servers->pid && servers->pid != pid;
	servers->pid = pid;
	return true;
}

static void set_server(struct search *search, struct ss_thread_facts *thread,
		       uint64_t device)
{
	struct servers servers = { .search = search, .device = device };
	uint64_t spent_ns = 0;
	bool complete = ss_holders_visit(search->target, "/dev/fuse", 0, &spent_ns,
					 visit_server, &servers);

	if (servers.pid && (servers.exact || (complete && !servers.several)))
		(void)ss_process_fact_read(search->facts, search->target, servers.pid,
					   &thread->holder); /* or it is not known */
}

static void set_mount(struct search *search, struct ss_thread_facts *thread,
		      const struct ss_call *call)
{
	const struct ss_fd_fact *fd =
		call->fd ?
			ss_facts_find_fd(search->facts,
					 (int)(uint32_t)thread->call.args[call->fd - 1]) :
			NULL;
	char path[PATH_MAX];
	bool has_path = call->path && make_absolute(search, thread, call, path);
	uint64_t device = fd ? fd->device : 0;
	struct ss_mount mount;

	/* Of the others is known that it is such a file system. */
	if (search->count++ >= SEARCHES_MAX) {
		thread->mount = ss_intern_string(search->facts->strings, "");
		return;
	}
	if (!search->mounts_read)
		(void)ss_io_read_path(search->target->proc_fd, "mountinfo", MOUNTS_MAX,
				      &search->mounts); /* or none is known */
	search->mounts_read = true;
	bool known = find_mount(search, has_path ? path : NULL, &device, &mount);
	thread->mount = ss_intern_string(search->facts->strings, known ? mount.path : "");
	set_server(search, thread, device);
}

/* FIFOs ------------------------------------------------------------------------ */

/* The flags of open(2), openat(2), and creat(2), which writes. */
static enum ss_access access_of(const struct ss_syscall *call)
{
	uint64_t flags = call->id == SS_SYS_OPEN   ? call->args[1] :
			 call->id == SS_SYS_OPENAT ? call->args[2] :
						     O_WRONLY;

	if (call->id == SS_SYS_OPENAT2)
		return SS_ACCESS_NONE;
	return (flags & O_ACCMODE) == O_RDONLY ? SS_ACCESS_SHARED : SS_ACCESS_EXCLUSIVE;
}

static bool opens(enum ss_syscall_id id)
{
	return id == SS_SYS_OPEN || id == SS_SYS_OPENAT || id == SS_SYS_OPENAT2 ||
	       id == SS_SYS_CREAT;
}

void ss_wait_channels_read(struct ss_facts *facts, const struct ss_target *target)
{
	struct search search = { .facts = facts, .target = target };
	_cleanup_buffer_ struct ss_buffer text = {};

	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		const struct ss_call *call = ss_call_find(thread->call.id);
		const struct ss_fd_fact *fd =
			call && call->fd ?
				ss_facts_find_fd(
					facts,
					(int)(uint32_t)thread->call.args[call->fd - 1]) :
				NULL;
		if (!call || (thread->state != 'S' && thread->state != 'D') ||
		    !(call->path || (fd && fd->kind == SS_FD_FILE)) ||
		    !ss_target_read_task(target, thread->tid, "wchan", &text) ||
		    text.size == 0)
			continue;
		if (opens(thread->call.id) && is_one_of(text.bytes, fifo_functions,
							SS_ARRAY_SIZE(fifo_functions))) {
			thread->opens_fifo = true;
			thread->fifo_access = access_of(&thread->call);
		} else if (is_one_of(text.bytes, fuse_functions,
				     SS_ARRAY_SIZE(fuse_functions))) {
			set_mount(&search, thread, call);
		}
	}
	ss_buffer_deinit(&search.mounts);
}
