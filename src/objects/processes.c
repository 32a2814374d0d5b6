#include "objects/processes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/scan.h"
#include "model/call.h"

enum {
	RECORD_MAX = 8 * 1024,
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
