#include "diagnose/others.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "diagnose/descriptor.h"
#include "diagnose/duration.h"
#include "diagnose/signals.h"

enum { CHILDREN_SHOWN = 4 };

static const char *state_word(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "in D";
	case 'T':
		return "stopped";
	case 't':
		return "traced";
	case 'Z':
		return "a zombie";
	default:
		return "in a state not known";
	}
}

static void write_child(struct ss_diagnosis *d, const struct ss_process_fact *child)
{
	ss_words_add(&d->text, "%d (%s, %s)", child->pid, child->name ? child->name : "?",
		     state_word(child->state));
}

/* By the id that the target gave: that of its own pid namespace. If that is ours, the
   child may be the first process of one of its own. */
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

static void write_one_child(struct ss_diagnosis *d, pid_t pid)
{
	const struct ss_process_fact *child = find_child(d->snapshot, pid);

	ss_words_add(&d->text, "child process ");
	if (!child) {
		ss_words_add(&d->text, "%d", pid);
		return;
	}
	write_child(d, child);
	d->wait->owner_pid = child->pid;
}

/* made_by: only those that this thread has made; 0: all. */
static void write_children(struct ss_diagnosis *d, pid_t made_by)
{
	const struct ss_facts *facts = d->snapshot->facts;
	size_t count = 0;

	for (size_t i = 0; i < facts->children.count; i++) {
		const struct ss_process_fact *child = &facts->children.items[i];
		if (made_by && child->parent_tid != made_by)
			continue;
		if (count < CHILDREN_SHOWN) {
			ss_words_add(&d->text, count ? ", " : ": ");
			write_child(d, child);
		}
		count++;
	}
	if (count > CHILDREN_SHOWN)
		ss_words_add(&d->text, " and %zu more", count - CHILDREN_SHOWN);
	if (count == 0 && facts->children_known)
		ss_words_add(&d->text, ", and there is none now");
}

static void describe_any(struct ss_diagnosis *d)
{
	ss_words_add(&d->text, "any child process");
	write_children(d, 0);
}

static void describe_wait4(struct ss_diagnosis *d)
{
	pid_t pid = (pid_t)(uint32_t)d->facts->call.args[0];

	if (pid > 0)
		write_one_child(d, pid);
	else if (pid == -1)
		describe_any(d);
	else if (pid == 0)
		ss_words_add(&d->text, "any child process of its own process group");
	else
		ss_words_add(&d->text, "any child process of process group %d", -pid);
}

static void describe_waitid(struct ss_diagnosis *d)
{
	unsigned type = (unsigned)d->facts->call.args[0];
	pid_t id = (pid_t)(uint32_t)d->facts->call.args[1];

	if (type == P_PID) {
		write_one_child(d, id);
	} else if (type == P_ALL) {
		describe_any(d);
	} else if (type == P_PGID) {
		ss_words_add(&d->text, "any child process of process group %d", id);
	} else {
		ss_words_add(&d->text, "the child process of ");
		ss_descriptor_describe(d, id);
	}
}

static bool is_vfork(const struct ss_thread_facts *facts)
{
	uint64_t flags = facts->call.args[0];

	if (facts->call.number == SYS_vfork)
		return true;
	if (facts->call.number == SYS_clone3) {
		if (facts->memory[0].size != sizeof(flags))
			return false;
		memcpy(&flags, facts->memory[0].bytes, sizeof(flags));
	}
	return flags & CLONE_VFORK;
}

void ss_others_describe_child(struct ss_diagnosis *d)
{
	if (d->facts->call.number == SYS_wait4) {
		describe_wait4(d);
	} else if (d->facts->call.number == SYS_waitid) {
		describe_waitid(d);
	} else if (is_vfork(d->facts)) {
		ss_words_add(&d->text, "its vfork child to end or begin another program");
		write_children(d, d->thread->tid);
	} else {
		d->wait->kind = SS_WAIT_OTHER;
		ss_words_add(&d->text, "a new process or thread to be made");
	}
}

static void write_holder(struct ss_diagnosis *d)
{
	const struct ss_process_fact *holder = &d->facts->holder;

	if (holder->pid > 0) {
		ss_words_add(&d->text, ", held by ");
		ss_descriptor_write_process(d->snapshot->facts, holder, &d->text);
		d->wait->owner_pid = holder->pid;
		return;
	}
	d->wait->owner_reason = d->facts->holder_known ?
					"it belongs to an open file, or to a process "
					"that cannot be seen from here" :
					"the lock was not found in /proc/locks";
	ss_words_add(&d->text, ", owner unknown: %s", d->wait->owner_reason);
}

static void write_range(struct ss_diagnosis *d)
{
	struct flock lock;

	if (d->facts->memory[2].size != sizeof(lock))
		return;
	memcpy(&lock, d->facts->memory[2].bytes, sizeof(lock));
	ss_words_add(&d->text, lock.l_type == F_RDLCK ? "a shared lock of " :
							"an exclusive lock of ");
	if (lock.l_whence != SEEK_SET || lock.l_start < 0 || lock.l_len < 0)
		ss_words_add(&d->text, "a part of ");
	else if (lock.l_len == 0 && lock.l_start > 0)
		ss_words_add(&d->text, "bytes %" PRId64 " to the end of ",
			     (int64_t)lock.l_start);
	else if (lock.l_len > 0)
		ss_words_add(&d->text, "bytes %" PRId64 " to %" PRIu64 " of ",
			     (int64_t)lock.l_start,
			     (uint64_t)lock.l_start + (uint64_t)lock.l_len - 1);
}

void ss_others_describe_file_lock(struct ss_diagnosis *d)
{
	const struct ss_syscall *call = &d->facts->call;
	int fd = (int)(uint32_t)call->args[0];
	int command = (int)(uint32_t)call->args[1];

	if (call->number == SYS_flock) {
		ss_words_add(&d->text, (command & LOCK_SH) ? "a shared lock of " :
							     "an exclusive lock of ");
	} else if (command == F_SETLKW || command == F_OFD_SETLKW) {
		write_range(d);
	} else {
		d->wait->kind = SS_WAIT_OTHER;
		ss_words_add(&d->text, "fcntl command %d of ", command);
		ss_descriptor_describe(d, fd);
		return;
	}
	ss_descriptor_describe(d, fd);
	write_holder(d);
}

void ss_others_describe_signal(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *memory = &d->facts->memory[0];
	uint64_t mask;

	if (d->facts->call.number != SYS_rt_sigtimedwait ||
	    memory->size != sizeof(mask)) {
		ss_words_add(&d->text, "a signal");
		return;
	}
	memcpy(&mask, memory->bytes, sizeof(mask));
	ss_words_add(&d->text, "one of the signals ");
	ss_signals_write(mask, &d->text);
	ss_duration_write_limit(d);
}

static void write_operation(struct ss_diagnosis *d)
{
	const struct ss_memory_fact *memory = &d->facts->memory[1];
	struct sembuf first;

	if (memory->size < sizeof(first))
		return;
	memcpy(&first, memory->bytes, sizeof(first));
	if (first.sem_op == 0)
		ss_words_add(&d->text, ": number %u is to become 0", first.sem_num);
	else if (first.sem_op < 0)
		ss_words_add(&d->text, ": number %u is to reach %d", first.sem_num,
			     -first.sem_op);
	if (memory->size >= 2 * sizeof(first))
		ss_words_add(&d->text, " (the first of %zu operations)",
			     memory->size / sizeof(first));
}

void ss_others_describe_ipc(struct ss_diagnosis *d)
{
	const struct ss_syscall *call = &d->facts->call;
	int id = (int)(uint32_t)call->args[0];

	switch (call->number) {
	case SYS_msgrcv:
		ss_words_add(&d->text, "a message in System V queue %d", id);
		break;
	case SYS_msgsnd:
		ss_words_add(&d->text, "room in System V queue %d", id);
		break;
	case SYS_mq_timedreceive:
		ss_words_add(&d->text, "a message in the queue of ");
		ss_descriptor_describe(d, id);
		break;
	case SYS_mq_timedsend:
		ss_words_add(&d->text, "room in the queue of ");
		ss_descriptor_describe(d, id);
		break;
	default:
		ss_words_add(&d->text, "System V semaphores %d", id);
		write_operation(d);
	}
	ss_duration_write_limit(d);
}
