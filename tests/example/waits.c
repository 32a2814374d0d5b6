/*
 * What each thread of a process waits for, and who holds what it needs:
 *
 *	cc waits.c $(pkg-config --cflags --libs stacksnap)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <stacksnap.h>

static void print_wait(const struct ss_wait *wait)
{
	printf("  waits: %s", ss_wait_kind_name(wait->kind));
	if (wait->lock)
		printf(", %s at %#" PRIx64, ss_lock_type_name(wait->lock), wait->address);
	if (wait->owner_tid)
		printf(", held by thread %d", (int)wait->owner_tid);
	else if (wait->owner_unknown)
		printf(", owner: %s", ss_owner_unknown_name(wait->owner_unknown));
	if (wait->descriptor)
		printf(", fd %d, a %s", wait->fd,
		       ss_fd_kind_name(wait->descriptor->kind));
	printf(" (%s)\n", ss_wait_purpose_name(wait->purpose));
}

static void print_task(const struct ss_snapshot *snapshot, const struct ss_task *task)
{
	char signature[SS_SIGNATURE_SIZE] = "";

	printf("%s %" PRIu64 " %s", ss_task_kind_name(task->kind), task->id, task->name);
	if (task->kind == SS_TASK_THREAD) {
		/* Without memory it stays empty. */
		ss_error_free(ss_snapshot_signature(snapshot, task, signature));
		printf(" %c %s\n", task->state, signature);
	} else {
		printf(" %s\n", ss_task_status_name(task->status));
	}
	if (task->wait)
		print_wait(task->wait);
	for (size_t i = 0; i < task->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, task, i);

		printf("  #%zu %s (%s)\n", i, frame->symbol ? frame->symbol : "?",
		       ss_frame_kind_name(frame->kind));
	}
	if (task->end != SS_END_ROOT)
		printf("  the stack ends here: %s\n", ss_end_name(task->end));
}

static void print_tasks(const struct ss_snapshot *snapshot, enum ss_task_kind kind)
{
	const struct ss_task_coverage *coverage =
		ss_snapshot_task_coverage(snapshot, kind);

	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, kind); i++)
		print_task(snapshot, ss_snapshot_task(snapshot, kind, i));
	if (coverage->problem)
		printf("%s: %s\n", ss_task_kind_name(kind), coverage->problem);
}

/* Threads that wait for each other, and those that others wait for. */
static void print_findings(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < ss_snapshot_deadlock_count(snapshot); i++) {
		const struct ss_deadlock *deadlock = ss_snapshot_deadlock(snapshot, i);

		printf("deadlock of %zu threads\n", deadlock->count);
	}
	for (size_t i = 0; i < ss_snapshot_cycle_count(snapshot); i++)
		printf("cycle through %zu threads of several processes\n",
		       ss_snapshot_cycle(snapshot, i)->count);
	for (size_t i = 0; i < ss_snapshot_blocker_count(snapshot); i++) {
		const struct ss_blocker *blocker = ss_snapshot_blocker(snapshot, i);
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, blocker->thread);

		printf("%zu threads wait for thread %d\n", blocker->waiting,
		       (int)thread->tid);
	}
	for (size_t i = 0; i < ss_snapshot_application_lock_count(snapshot); i++)
		printf("%zu threads wait in %s\n",
		       ss_snapshot_application_lock(snapshot, i)->waiting,
		       ss_snapshot_application_lock(snapshot, i)->function);
}

static void print(const struct ss_snapshot *snapshot)
{
	const struct ss_process *process = ss_snapshot_process(snapshot);
	const struct ss_task *main_thread =
		ss_snapshot_find_thread(snapshot, process->pid);
	struct ss_register value;

	printf("%s, main thread %s\n", process->name,
	       main_thread ? "is there" : "has ended");
	for (size_t i = 0; i < ss_snapshot_runtime_count(snapshot); i++)
		printf("runtime %s\n", ss_snapshot_runtime(snapshot, i)->version);
	for (size_t i = 0; i < ss_snapshot_module_count(snapshot); i++)
		printf("module %s\n", ss_snapshot_module(snapshot, i)->path);
	print_findings(snapshot);
	print_tasks(snapshot, SS_TASK_THREAD);
	print_tasks(snapshot, SS_TASK_GOROUTINE);
	print_tasks(snapshot, SS_TASK_ASYNCIO);
	/* Of a process that a signal is about to end. */
	for (size_t i = 0; ss_snapshot_crash_register(snapshot, i, &value); i++)
		printf("%s %#" PRIx64 "\n", value.name, value.value);
}

int main(int argc, char **argv)
{
	struct ss_snapshot *snapshot = NULL;
	struct ss_error *error =
		ss_snapshot_take(argc > 1 ? atoi(argv[1]) : 0, NULL, &snapshot);

	if (error)
		fprintf(stderr, "%s (error %d)\n", ss_error_message(error),
			(int)ss_error_code(error));
	else
		print(snapshot);
	ss_snapshot_free(snapshot);
	int status = error ? EXIT_FAILURE : EXIT_SUCCESS;
	ss_error_free(error);
	return status;
}
