#include "objects/processes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "model/call.h"
#include "objects/holders.h"
#include "proc/locks.h"

enum {
	RECORD_MAX = 8 * 1024,
	LOCKS_TEXT_MAX = 4 << 20,
	LOCKS_SEEN_MAX = 64 << 20, /* of all threads that wait for one: some 0.3 s */
	CHILDREN_MAX = 64,
	PARENTS_MAX = 256, /* threads that are asked for their children */
};

bool ss_processes_read(struct ss_facts *facts, pid_t pid, struct ss_text *text,
		       struct ss_process_fact *ret)
{
	struct ss_stat stat;
	struct ss_status status;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid); /* fits */
	if (ss_io_read_record(AT_FDCWD, path, RECORD_MAX, text) != 0 ||
	    !ss_stat_parse(text->bytes, text->size, &stat))
		return false;
	*ret = (struct ss_process_fact){ .pid = pid,
					 .state = stat.state,
					 .name = ss_intern_string(facts->strings,
								  stat.comm) };
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid); /* fits */
	if (ss_io_read_record(AT_FDCWD, path, RECORD_MAX, text) == 0 &&
	    ss_status_parse(text->bytes, text->size, &status))
		ret->inner_pid = status.inner_id;
	return true;
}

static bool waits_for_child(const struct ss_thread_facts *thread)
{
	const struct ss_call *call = ss_call_find(thread->call.number);

	return call && call->kind == SS_WAIT_CHILD;
}

/* "4711 4712 ": the children that this thread has made, and those it adopted. */
static void add_children(struct ss_facts *facts, const struct ss_target *target,
			 pid_t tid)
{
	_cleanup_text_ struct ss_text list = {};
	_cleanup_text_ struct ss_text text = {};

	if (!ss_target_read_task(target, tid, "children", &list))
		return;
	facts->children_known = true;
	for (char *at = list.bytes, *end;; at = end) {
		struct ss_process_fact child;
		pid_t pid = (pid_t)strtol(at, &end, 10);
		if (end == at || facts->children.count == CHILDREN_MAX)
			return;
		if (!ss_processes_read(facts, pid, &text, &child))
			continue;
		child.parent_tid = tid;
		struct ss_process_fact *slot = ss_vector_push(&facts->children);
		if (slot)
			*slot = child;
	}
}

static void follow_children(struct ss_facts *facts, const struct ss_target *target)
{
	bool wanted = false;

	for (size_t i = 0; i < facts->threads.count; i++)
		wanted |= waits_for_child(&facts->threads.items[i]);
	for (size_t i = 0; wanted && i < facts->threads.count && i < PARENTS_MAX; i++)
		add_children(facts, target, facts->threads.items[i].tid);
}

void ss_processes_follow(struct ss_facts *facts, const struct ss_target *target)
{
	_cleanup_text_ struct ss_text text = {};

	follow_children(facts, target);
	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		struct ss_status status;
		if (thread->state != 't' ||
		    !ss_target_read_status(target, thread->tid, &text, &status) ||
		    status.tracer == 0)
			continue;
		thread->tracer = (struct ss_process_fact){ .pid = status.tracer };
		(void)ss_processes_read(facts, status.tracer, &text, &thread->tracer);
	}
}

static struct ss_wanted_lock describe_wanted(pid_t pid, const struct ss_fd_fact *fd,
					     const struct ss_thread_facts *thread)
{
	struct ss_wanted_lock ret = {
		.pid = pid, .inode = fd->inode, .device = fd->device, .last = UINT64_MAX
	};
	struct flock wanted;

	if (thread->call.number == SYS_flock) {
		ret.type = SS_FILE_LOCK_FLOCK;
		ret.write = (thread->call.args[1] & LOCK_EX) != 0;
		ret.ranged = true;
		return ret;
	}
	ret.type = (int)thread->call.args[1] == F_OFD_SETLKW ? SS_FILE_LOCK_OFD :
							       SS_FILE_LOCK_POSIX;
	if (thread->memory[2].size != sizeof(struct flock))
		return ret;
	memcpy(&wanted, thread->memory[2].bytes, sizeof(wanted));
	ret.write = wanted.l_type == F_WRLCK;
	ret.ranged = wanted.l_whence == SEEK_SET && wanted.l_start >= 0 &&
		     wanted.l_len >= 0;
	if (!ret.ranged)
		return ret;
	ret.first = (uint64_t)wanted.l_start;
	if (wanted.l_len)
		ret.last = ret.first + (uint64_t)wanted.l_len - 1;
	/* the kernel's end of a range without one is that of its numbers */
	if (ret.last > INT64_MAX)
		ret.last = UINT64_MAX;
	return ret;
}

static void follow_lock(struct ss_facts *facts, const struct ss_target *target,
			const struct ss_text *locks, struct ss_thread_facts *thread,
			uint64_t *spent)
{
	_cleanup_text_ struct ss_text text = {};
	const struct ss_fd_fact *fd =
		ss_facts_find_fd(facts, (int)(uint32_t)thread->call.args[0]);
	struct ss_file_lock lock;

	if (!fd)
		return;
	const struct ss_wanted_lock wanted = describe_wanted(target->pid, fd, thread);
	if (!ss_locks_find(locks->bytes, locks->size, &wanted, &lock))
		return;
	thread->holder_known = true;
	if (lock.type == SS_FILE_LOCK_FLOCK && lock.pid > 0)
		lock.pid = fd->name ? ss_holders_find_flock(target, fd, lock.pid, spent) :
				      0;
	if (lock.pid > 0 && !ss_processes_read(facts, lock.pid, &text, &thread->holder))
		thread->holder = (struct ss_process_fact){ .pid = lock.pid };
}

void ss_processes_follow_locks(struct ss_facts *facts, const struct ss_target *target)
{
	_cleanup_text_ struct ss_text locks = {};
	uint64_t spent = 0;
	size_t seen = 0;

	for (size_t i = 0; i < facts->threads.count; i++) {
		struct ss_thread_facts *thread = &facts->threads.items[i];
		const struct ss_call *call = ss_call_find(thread->call.number);
		if (!call || call->kind != SS_WAIT_FILE_LOCK || thread->state == 'R')
			continue;
		if (locks.size == 0 &&
		    ss_io_read_path(AT_FDCWD, "/proc/locks", LOCKS_TEXT_MAX, &locks) != 0)
			return;
		seen += locks.size;
		if (seen > LOCKS_SEEN_MAX)
			return;
		follow_lock(facts, target, &locks, thread, &spent);
	}
}
