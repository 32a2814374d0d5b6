#include "objects/file_locks.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "model/call.h"
#include "objects/holders.h"
#include "objects/processes.h"
#include "proc/locks.h"

enum {
	LOCKS_TEXT_MAX = 4 << 20,
	/* bytes parsed for all threads that wait for a lock: about 0.3 s */
	LOCKS_SEEN_MAX = 64 << 20,
};

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
			uint64_t *spent)
{
	_cleanup_buffer_ struct ss_buffer text = {};
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
		lock.pid = fd->name ? ss_holders_find_flock(target, fd, lock.pid, spent) :
				      0;
	if (lock.pid > 0 &&
	    !ss_processes_read(facts, target, lock.pid, &text, &thread->holder))
		thread->holder = (struct ss_process_fact){ .pid = lock.pid };
}

void ss_file_locks_find_owners(struct ss_facts *facts, const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer locks = {};
	uint64_t spent = 0;
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
		follow_lock(facts, target, &locks, thread, &spent);
	}
}
