#include "sample/access.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/proc_process.h"

static struct ss_error *open_child(pid_t pid, struct ss_target **ret)
{
	struct ss_target *target = NULL;
	struct ss_error *error = ss_target_open(pid, &target);

	if (target && geteuid() != 0 && ss_target_will_execute(target))
		ss_target_close(target); /* a later search finds it again */
	else if (target)
		*ret = target;
	return error;
}

static bool set_scheduler(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	/* Without CAP_SYS_NICE this fails, and stops are longer. */
	return sched_setscheduler(0, policy, &param) == 0;
}

static bool is_to_be_stopped(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_CHOSEN ||
	       (task->phase == SS_TASK_SEEN && !task->watched && !task->limited);
}

static bool stop(struct ss_freeze *freeze, struct ss_look *look, ss_freeze_copier *copy,
		 void *data)
{
	const struct ss_task_list *tasks = freeze->tasks;
	bool any = false;

	ss_freeze_choose_again(freeze, false);
	for (size_t i = 0; i < tasks->items.count && !any; i++)
		any = is_to_be_stopped(&tasks->items.items[i]);
	if (!any || tasks->dumping_core)
		return false;
	ss_freeze_prepare(freeze);
	bool waits = !set_scheduler(SCHED_FIFO, 1);
	ss_look_at_running(look, freeze->tasks);
	ss_freeze_choose_running(freeze);
	ss_freeze_each(freeze, copy, data);
	ss_freeze_finish(freeze);
	(void)set_scheduler(SCHED_OTHER, 0); /* always allowed */
	return waits;
}

static uint64_t read_waited_ns(void)
{
	char text[128];
	struct ss_schedstat stat;
	_cleanup_close_ int fd =
		open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return n > 0 && ss_schedstat_parse(text, (size_t)n, &stat) ? stat.wait_ns : 0;
}

static bool read_name(const struct ss_target *target, pid_t tid, struct ss_buffer *text,
		      char *ret, size_t size)
{
	if (!ss_target_read_task(target, tid, "comm", text) || text->size == 0)
		return false;
	size_t length = SS_MIN(text->size - 1, size - 1); /* without the newline */
	memcpy(ret, text->bytes, length);
	ret[length] = '\0';
	return true;
}

const struct ss_process_access ss_process_access = {
	.open_child = open_child,
	.list_children = ss_target_list_children,
	.init_threads = ss_target_threads_init,
	.update = ss_address_space_update,
	.update_if_due = ss_address_space_update_if_due,
	.check = ss_address_space_query,
	.read = ss_task_read,
	.keep_files = ss_task_keep_files,
	.read_run_count = ss_task_read_run_count,
	.check_fragile = ss_task_check_fragile,
	.stop = stop,
	.read_waited_ns = read_waited_ns,
	.find_call = ss_look_find_call,
	.read_name = read_name,
	.release_late = ss_freeze_release_late,
	.copy = ss_arena_copy,
	.copy_watched = ss_observe_copy,
	.check_watched = ss_observe_check,
	.read_again = ss_task_read_again,
	.observe = ss_observe_tasks,
};
