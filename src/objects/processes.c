#include "objects/processes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/scan.h"
#include "model/call.h"
#include "objects/holders.h"
#include "proc/locks.h"

enum {
	RECORD_MAX = 8 * 1024,
	LOCKS_TEXT_MAX = 4 << 20,
	LOCKS_SEEN_MAX =
		64
		/* bytes parsed for all threads that wait for a lock: about 0.3 s */
		<< 20,
	CHILDREN_MAX = 64,
	PARENTS_MAX = 256, /* threads whose children are read */
};

bool ss_processes_read(struct ss_facts *facts, const struct ss_target *target, pid_t pid,
		       struct ss_buffer *text, struct ss_process_fact *ret)
{
	struct ss_stat stat;
	struct ss_status status;
	char path[48];

	(void)snprintf(path, sizeof(path), "%d/stat", pid); /* fits */
	if (ss_io_read_record(target->procfs_fd, path, RECORD_MAX, text) != 0 ||
	    !ss_stat_parse(text->bytes, text->size, &stat))
		return false;
	*ret = (struct ss_process_fact){ .pid = pid,
					 .state = stat.state,
					 .name = ss_intern_string(facts->strings,
								  stat.comm) };
	(void)snprintf(path, sizeof(path), "%d/status", pid); /* fits */
	if (ss_io_read_record(target->procfs_fd, path, RECORD_MAX, text) == 0 &&
	    ss_status_parse(text->bytes, text->size, &status))
		ret->inner_pid = status.inner_id;
	return true;
}

static bool waits_for_child(const struct ss_thread_facts *thread)
{
	const struct ss_call *call = ss_call_find(thread->call.id);

	return call && call->kind == SS_WAIT_CHILD;
}

/* Parses the children that this thread has created or adopted: "4711 4712 ". */
static void add_children(struct ss_facts *facts, const struct ss_target *target,
			 pid_t tid)
{
	_cleanup_buffer_ struct ss_buffer list = {};
	_cleanup_buffer_ struct ss_buffer text = {};

	if (!ss_target_read_task(target, tid, "children", &list))
		return;
	facts->children_known = true;
	struct ss_scan scan = { .at = list.bytes, .end = list.bytes + list.size };
	for (pid_t pid;
	     facts->children.count < CHILDREN_MAX && ss_scan_next_pid(&scan, &pid);) {
		struct ss_process_fact child;
		if (!ss_processes_read(facts, target, pid, &text, &child))
			continue;
		child.parent_tid = tid;
		struct ss_process_fact *slot = ss_vector_push(&facts->children);
		if (slot)
			*slot = child;
	}
}

static void follow_children(struct ss_facts *facts, const struct ss_target *target)
{
	bool has_waiter = false;

	for (size_t i = 0; i < facts->threads.count; i++)
		has_waiter |= waits_for_child(&facts->threads.items[i]);
	for (size_t i = 0; has_waiter && i < facts->threads.count && i < PARENTS_MAX; i++)
		add_children(facts, target, facts->threads.items[i].tid);
}

void ss_processes_find(struct ss_facts *facts, const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	follow_children(facts, target);
	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		struct ss_status status;
		if (thread->state != 't' ||
		    !ss_target_read_status(target, thread->tid, &text, &status) ||
		    status.tracer == 0)
			continue;
		thread->tracer = (struct ss_process_fact){ .pid = status.tracer };
		(void)ss_processes_read(facts, target, status.tracer, &text,
					&thread->tracer);
	}
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

void ss_processes_find_lock_owners(struct ss_facts *facts, const struct ss_target *target)
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
