#include "diagnose/process.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "diagnose/descriptor.h"

enum { CHILDREN_MAX = 16 }; /* that are listed */

/* Finds a child by the id that the target used, in the target's pid namespace. If that
   is ours, the child may be the first process of a new namespace. */
static const struct ss_process_fact *find_child(const struct ss_snapshot *snapshot,
						pid_t pid)
{
	const struct ss_process *parent = &snapshot->process;
	const struct ss_facts *facts = snapshot->facts;
	bool ours = parent->inner_pid == parent->pid;

	for (size_t i = 0; i < facts->children.count; i++) {
		const struct ss_process_fact *child = &facts->children.items[i];
		if ((child->inner_pid && !ours ? child->inner_pid : child->pid) == pid)
			return child;
	}
	return NULL;
}

static void list_child(struct ss_diagnosis *d, struct ss_related_process *list,
		       const struct ss_process_fact *child)
{
	if (d->wait->child_count < CHILDREN_MAX)
		list[d->wait->child_count++] =
			ss_related_process(d->snapshot->facts, child);
	d->wait->children_total++;
}

/* parent_tid: only children created by this thread; 0: all. */
static void list_children(struct ss_diagnosis *d, pid_t parent_tid)
{
	const struct ss_facts *facts = d->snapshot->facts;
	size_t most = SS_MIN(facts->children.count, (size_t)CHILDREN_MAX);
	struct ss_related_process *list = ss_diagnosis_alloc(d, most, sizeof(*list));

	d->wait->children = list;
	d->wait->children_known = facts->children_known;
	for (size_t i = 0; list && i < facts->children.count; i++) {
		const struct ss_process_fact *child = &facts->children.items[i];
		if (!parent_tid || child->parent_tid == parent_tid)
			list_child(d, list, child);
	}
}

static void fill_one(struct ss_diagnosis *d, pid_t pid)
{
	const struct ss_process_fact *child = find_child(d->snapshot, pid);
	struct ss_related_process *list =
		child ? ss_diagnosis_alloc(d, 1, sizeof(*list)) : NULL;

	d->wait->child_scope = SS_CHILD_PID;
	d->wait->child_id = pid;
	d->wait->children = list;
	if (!list)
		return;
	list_child(d, list, child);
	d->wait->children_known = true;
	d->wait->owner_pid = child->pid;
	d->wait->owner_process = child->name;
}

static void fill_any(struct ss_diagnosis *d)
{
	d->wait->child_scope = SS_CHILD_ANY;
	list_children(d, 0);
}

static void fill_group(struct ss_diagnosis *d, pid_t group)
{
	d->wait->child_scope = group ? SS_CHILD_GROUP : SS_CHILD_OWN_GROUP;
	d->wait->child_id = group;
}

static void fill_wait4(struct ss_diagnosis *d)
{
	pid_t pid = (pid_t)(uint32_t)d->facts->call.args[0];

	if (pid > 0)
		fill_one(d, pid);
	else if (pid == -1)
		fill_any(d);
	else
		fill_group(d, pid == INT32_MIN ? 0 : -pid);
}

static void fill_waitid(struct ss_diagnosis *d)
{
	unsigned type = (unsigned)d->facts->call.args[0];
	pid_t id = (pid_t)(uint32_t)d->facts->call.args[1];

	if (type == P_PID) {
		fill_one(d, id);
	} else if (type == P_ALL) {
		fill_any(d);
	} else if (type == P_PGID) {
		fill_group(d, id);
	} else {
		d->wait->child_scope = SS_CHILD_PIDFD;
		ss_descriptor_fill(d, id);
	}
}

static bool is_vfork(const struct ss_thread_facts *facts)
{
	uint64_t flags = facts->call.args[0];

	if (facts->call.id == SS_SYS_VFORK)
		return true;
	if (facts->call.id == SS_SYS_CLONE3) {
		if (facts->memory[0].size != sizeof(flags))
			return false;
		memcpy(&flags, facts->memory[0].bytes, sizeof(flags));
	}
	return flags & CLONE_VFORK;
}

void ss_process_fill_child(struct ss_diagnosis *d)
{
	if (d->facts->call.id == SS_SYS_WAIT4) {
		fill_wait4(d);
	} else if (d->facts->call.id == SS_SYS_WAITID) {
		fill_waitid(d);
	} else if (is_vfork(d->facts)) {
		d->wait->child_scope = SS_CHILD_VFORK;
		list_children(d, d->thread->tid);
	} else {
		d->wait->kind = SS_WAIT_OTHER;
	}
}

static void fill_holder(struct ss_diagnosis *d)
{
	const struct ss_process_fact *holder = &d->facts->holder;

	if (holder->pid > 0) {
		d->wait->owner_pid = holder->pid;
		d->wait->owner_process = holder->name;
		d->wait->self_owned = holder->pid == d->snapshot->facts->pid;
		return;
	}
	d->wait->owner_unknown = d->facts->holder_known ? SS_OWNER_NOT_VISIBLE :
							  SS_OWNER_NOT_LISTED;
}

static void fill_range(struct ss_diagnosis *d)
{
	struct ss_wait *wait = d->wait;
	struct flock lock;

	if (d->facts->memory[2].size != sizeof(lock))
		return;
	memcpy(&lock, d->facts->memory[2].bytes, sizeof(lock));
	wait->access = lock.l_type == F_RDLCK ? SS_ACCESS_SHARED : SS_ACCESS_EXCLUSIVE;
	if (lock.l_whence != SEEK_SET || lock.l_start < 0 || lock.l_len < 0) {
		wait->range = SS_RANGE_PART;
	} else if (lock.l_start || lock.l_len) {
		uint64_t first = (uint64_t)lock.l_start;
		wait->range = SS_RANGE_BYTES;
		wait->range_first = first;
		wait->range_last = lock.l_len ? first + (uint64_t)lock.l_len - 1 :
						UINT64_MAX;
	}
}

void ss_process_fill_file_lock(struct ss_diagnosis *d)
{
	const struct ss_syscall *call = &d->facts->call;
	int command = (int)(uint32_t)call->args[1];

	if (call->id == SS_SYS_FLOCK) {
		d->wait->access = (command & LOCK_SH) ? SS_ACCESS_SHARED :
							SS_ACCESS_EXCLUSIVE;
	} else if (command == F_SETLKW || command == F_OFD_SETLKW) {
		fill_range(d);
	} else {
		d->wait->kind = SS_WAIT_OTHER;
		d->wait->command = command;
		return;
	}
	fill_holder(d);
}
