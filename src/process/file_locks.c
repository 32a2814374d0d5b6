/*
 * Who holds the file locks that threads wait for, and the databases of SQLite that its library looks
 * at again and again.
 */
#include "process/objects.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/procfs.h"
#include "base/search.h"
#include "data/call.h"
#include "data/module.h"

enum {
	FDINFO_MAX = 64 * 1024,
	LOCKS_TEXT_MAX = 4 << 20,
	/* bytes parsed for all threads that wait for a lock: about 0.3 s */
	LOCKS_SEEN_MAX = 64 << 20,
};

/* A process that has a file open with a flock(2) lock. */
struct flock_search {
	const struct ss_target *target;
	const struct ss_fd_fact *file;
	struct ss_buffer text;
	pid_t found; /* 0: none yet */
};

/* Whether fdinfo, which lists the locks of this open file, has such a lock. */
static bool has_flock(struct flock_search *s, pid_t pid, const char *name)
{
	static const char word[] = "lock:";
	struct ss_file_lock lock;
	char path[64];

	/* The kernel's names are not longer. */
	if (snprintf(path, sizeof(path), "%d/fdinfo/%s", pid, name) >=
		    (int)sizeof(path) ||
	    ss_io_read_path(s->target->procfs_fd, path, FDINFO_MAX, &s->text) != 0)
		return false;
	for (const char *at = s->text.bytes; (at = strstr(at, word));) {
		at += strlen(word);
		const char *end = at + strcspn(at, "\n");
		at += strspn(at, " \t");
		if (ss_locks_next(&at, end, &lock) && lock.type == SS_FILE_LOCK_FLOCK &&
		    lock.inode == s->file->inode && lock.device == s->file->device)
			return true;
	}
	return false;
}

static bool visit_flock(void *data, pid_t pid, const char *fd)
{
	struct flock_search *s = data;

	if (has_flock(s, pid, fd))
		s->found = pid;
	return s->found == 0;
}

/*
 * Returns a process that has the file open under that name with a flock(2) lock: the
 * process `named`, which took the lock according to the kernel, or another one that
 * inherited the open file. 0 if none was found. Adds the CPU time in nanoseconds to
 * *spent_ns, which limits all searches for a capture.
 */
static pid_t find_flock(const struct ss_target *target, const struct ss_fd_fact *file,
			pid_t named, uint64_t *spent_ns)
{
	struct flock_search s = { .target = target, .file = file };

	(void)ss_holders_visit(target, file->name, named, spent_ns, visit_flock,
			       &s); /* the first one is enough */
	ss_buffer_deinit(&s.text);
	return s.found;
}

static struct ss_lock_request describe_request(pid_t pid, const struct ss_fd_fact *fd,
					       const struct ss_thread_facts *thread)
{
	struct ss_lock_request ret = {
		.pid = pid, .inode = fd->inode, .device = fd->device, .last = UINT64_MAX
	};
	struct flock flock;

	if (thread->call.id == SS_SYS_FLOCK) {
		ret.type = SS_FILE_LOCK_FLOCK;
		ret.write = (thread->call.args[1] & LOCK_EX) != 0;
		ret.ranged = true;
		return ret;
	}
	ret.type = (int)thread->call.args[1] == F_OFD_SETLKW ? SS_FILE_LOCK_OFD :
							       SS_FILE_LOCK_POSIX;
	if (thread->memory[2].size != sizeof(struct flock))
		return ret;
	memcpy(&flock, thread->memory[2].bytes, sizeof(flock));
	ret.write = flock.l_type == F_WRLCK;
	ret.ranged = flock.l_whence == SEEK_SET && flock.l_start >= 0 && flock.l_len >= 0;
	if (!ret.ranged)
		return ret;
	ret.first = (uint64_t)flock.l_start;
	if (flock.l_len)
		ret.last = ret.first + (uint64_t)flock.l_len - 1;
	/* the kernel represents an open range by its largest offset */
	if (ret.last > INT64_MAX)
		ret.last = UINT64_MAX;
	return ret;
}

static void follow_lock(struct ss_facts *facts, const struct ss_target *target,
			const struct ss_buffer *locks, struct ss_thread_facts *thread,
			uint64_t *spent_ns)
{
	const struct ss_fd_fact *fd =
		ss_facts_find_fd(facts, (int)(uint32_t)thread->call.args[0]);
	struct ss_file_lock lock;

	if (!fd)
		return;
	const struct ss_lock_request request = describe_request(target->pid, fd, thread);
	if (!ss_locks_find(locks->bytes, locks->size, &request, &lock))
		return;
	thread->holder_known = true;
	if (lock.type == SS_FILE_LOCK_FLOCK && lock.pid > 0)
		lock.pid = fd->name ? find_flock(target, fd, lock.pid, spent_ns) : 0;
	if (lock.pid > 0 &&
	    !ss_process_fact_read(facts, target, lock.pid, &thread->holder))
		thread->holder = (struct ss_process_fact){ .pid = lock.pid };
}

void ss_file_locks_find_owners(struct ss_facts *facts, const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer locks = {};
	uint64_t spent_ns = 0;
	size_t seen = 0;

	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		const struct ss_call *call = ss_call_find(thread->call.id);
		if (!call || call->kind != SS_WAIT_FILE_LOCK || thread->state == 'R')
			continue;
		if (locks.size == 0 && ss_io_read_path(target->procfs_fd, "locks",
						       LOCKS_TEXT_MAX, &locks) != 0)
			return;
		seen += locks.size;
		if (seen > LOCKS_SEEN_MAX)
			return;
		follow_lock(facts, target, &locks, thread, &spent_ns);
	}
}

/* Databases of SQLite -------------------------------------------------------- */

enum {
	FILES_MAX = 256, /* of the process, that are compared */
	/* os.h: PENDING_BYTE, RESERVED_BYTE, and SHARED_SIZE from SHARED_FIRST on; in the index of
	   a write-ahead log: WALINDEX_LOCK_OFFSET */
	DATABASE_FIRST = 0x40000000,
	DATABASE_LAST = DATABASE_FIRST + 511,
	LOG_FIRST = 120,
	LOG_LAST = 127,
};

static bool is_of_database(const struct ss_file_lock *lock)
{
	return lock->type == SS_FILE_LOCK_POSIX &&
	       ((lock->first >= DATABASE_FIRST && lock->last <= DATABASE_LAST) ||
		(lock->first >= LOG_FIRST && lock->last <= LOG_LAST));
}

static bool maps_sqlite(const struct ss_capture *capture)
{
	return ss_any(capture->modules.count, i,
		      ss_path_is_sqlite(capture->modules.items[i]->pub.path));
}

/* The files that the process has open: device and inode. Returns their number. */
static size_t list_files(const struct ss_target *target, uint64_t (*files)[2])
{
	DIR *dir = ss_io_open_directory(target->proc_fd, "fd");
	size_t count = 0;

	for (const struct dirent *entry;
	     dir && count < FILES_MAX && (entry = readdir(dir));) {
		struct statx st;
		if (entry->d_name[0] == '.' ||
		    statx(dirfd(dir), entry->d_name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
			  STATX_TYPE | STATX_INO, &st) != 0 ||
		    (st.stx_mode & S_IFMT) != S_IFREG)
			continue;
		files[count][0] = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
		files[count++][1] = st.stx_ino;
	}
	if (dir)
		(void)closedir(dir); /* only read from */
	return count;
}

/* Another process that has locked one of the files; one that writes, if there is any. */
static pid_t find_database_owner(const struct ss_target *target,
				 const struct ss_buffer *locks)
{
	uint64_t files[FILES_MAX][2];
	size_t count = list_files(target, files);
	const char *cursor = locks->bytes;
	const char *end = cursor + locks->size;
	struct ss_file_lock lock;
	pid_t found = 0;

	while (ss_locks_next(&cursor, end, &lock)) {
		if (lock.waits || lock.pid <= 0 || lock.pid == target->pid ||
		    !is_of_database(&lock) || (found && !lock.write))
			continue;
		for (size_t i = 0; i < count; i++) {
			if (files[i][0] == lock.device && files[i][1] == lock.inode)
				found = lock.pid;
		}
	}
	return found;
}

void ss_databases_find_owners(struct ss_facts *facts, const struct ss_capture *capture,
			      const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer locks = {};
	struct ss_process_fact owner = {};
	bool searched = false;

	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		const struct ss_call *call = ss_call_find(thread->call.id);
		if (!call || call->kind != SS_WAIT_SLEEP || thread->state != 'S')
			continue;
		if (!searched && (!maps_sqlite(capture) ||
				  ss_io_read_path(target->procfs_fd, "locks",
						  LOCKS_TEXT_MAX, &locks) != 0))
			return;
		pid_t pid = searched ? 0 : find_database_owner(target, &locks);
		if (pid)
			(void)ss_process_fact_read(facts, target, pid,
						   &owner); /* or it has ended */
		searched = true;
		thread->holder = owner;
	}
}
