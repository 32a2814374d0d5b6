/*
 * Frames one by one, instead of the text of the tool. Starts a child, takes a snapshot of its main
 * thread and prints the stack:
 *
 *	cc snapshot_child.c $(pkg-config --cflags --libs stacksnap)
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stacksnap.h>

/* The child: reports that it is ready and waits until the pipe is closed. */
__attribute__((noinline)) int wait_for_parent(int ready, int end)
{
	char byte = '!';

	if (write(ready, &byte, 1) != 1)
		return 1;
	return read(end, &byte, 1) != 0;
}

__attribute__((noinline)) void child_main(int ready, int end)
{
	int status = wait_for_parent(ready, end);

	_exit(status);
}

static int report(struct ss_error *error)
{
	const char *remedy = ss_error_remedy(error);

	fprintf(stderr, "%s\n", ss_error_message(error));
	if (remedy)
		fprintf(stderr, "%s\n", remedy);
	ss_error_free(error);
	return 1;
}

static void print_thread(const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	printf("thread %d, stopped for %" PRIu64 " us, ends at: %s\n", (int)thread->tid,
	       thread->stopped_ns / 1000, ss_end_name(thread->end));
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);

		printf("  #%zu %s+0x%" PRIx64 " in %s\n", i,
		       frame->symbol ? frame->symbol : "?", frame->symbol_offset,
		       frame->module ? frame->module->path : "no file");
	}
}

static bool is_main(void *data, pid_t tid, const char *name, char state)
{
	(void)name;
	(void)state;
	return tid == *(const pid_t *)data;
}

static int snapshot(pid_t pid)
{
	const struct ss_snapshot_options options = { .size = sizeof(options),
						     .filter = is_main,
						     .filter_data = &pid };
	struct ss_snapshot *result = NULL;
	struct ss_error *error = ss_snapshot_take(pid, &options, &result);

	/* The child runs on: this is a copy. */
	for (size_t i = 0; !error && i < ss_snapshot_task_count(result, SS_TASK_THREAD);
	     i++)
		print_thread(result, ss_snapshot_task(result, SS_TASK_THREAD, i));
	ss_snapshot_free(result);
	return error ? report(error) : 0;
}

int main(void)
{
	int ready[2], end[2], status = 1;
	char byte;

	if (pipe(ready) || pipe(end))
		return 1;

	pid_t child = fork();

	if (child < 0)
		return 1;
	if (child == 0) {
		close(end[1]);
		child_main(ready[1], end[0]);
	}
	printf("libstacksnap %s\n", ss_version());
	if (read(ready[0], &byte, 1) == 1)
		status = snapshot(child);
	close(end[1]);
	waitpid(child, NULL, 0);
	return status;
}
