/*
 * An example of the library's sandbox: starts a child, captures it, and lets a second
 * process without privileges unwind and symbolize the capture.
 *
 *	cc sandboxed_child.c $(pkg-config --cflags --libs stacksnap)
 */
#include <inttypes.h>
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

static void print_stacks(const struct ss_snapshot *snapshot, int fd)
{
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);

		dprintf(fd, "thread %d\n", (int)thread->tid);
		for (size_t k = 0; k < thread->frame_count; k++) {
			const struct ss_frame *frame =
				ss_snapshot_frame(snapshot, thread, k);

			dprintf(fd, "  #%zu %s\n", k,
				frame->symbol ? frame->symbol : "?");
		}
	}
}

/* Runs in the sandbox. What it allocates goes away with its process. */
static struct ss_error *interpret(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct ss_capture *capture = data;
	struct ss_snapshot *snapshot = NULL;
	struct ss_unwind_options options = { .size = sizeof(options) };

	if (attempt->level == SS_SANDBOX_PLACES) {
		options.max_frames = 1;
		options.frames_reason = "unwinding failed";
	}
	ss_sandbox_enter(attempt, SS_SANDBOX_UNWIND);
	struct ss_error *error =
		ss_capture_unwind(capture, attempt->session, &options, &snapshot);
	if (!error && attempt->level == SS_SANDBOX_NAMES) {
		ss_sandbox_enter(attempt, SS_SANDBOX_SYMBOLIZE);
		error = ss_snapshot_symbolize(snapshot, attempt->session, 0);
	}
	if (error)
		return error;
	ss_sandbox_enter(attempt, SS_SANDBOX_OUTPUT);
	print_stacks(snapshot, attempt->output);
	ss_sandbox_set_value(attempt, ss_snapshot_task_count(snapshot, SS_TASK_THREAD));
	ss_snapshot_free(snapshot);
	return NULL;
}

/* A program with a terminal would escape control characters here. */
static void copy(int fd)
{
	char bytes[4096];
	ssize_t size;

	for (off_t at = 0; (size = pread(fd, bytes, sizeof(bytes), at)) > 0; at += size)
		fwrite(bytes, 1, (size_t)size, stdout);
}

static struct ss_error *snapshot(pid_t pid)
{
	struct ss_sandbox_options options = { .size = sizeof(options) };
	const struct ss_capture_options capture_options = {
		.size = sizeof(capture_options),
		.mode = SS_MODE_STOP,
	};
	struct ss_target *target = NULL;
	struct ss_capture *capture = NULL;
	struct ss_sandbox_result *result = NULL;
	struct ss_error *error = ss_target_open(pid, &target);

	if (!error)
		error = ss_target_owner(target, &options.uid, &options.gid);
	if (!error) {
		options.change_ids = true;
		error = ss_capture_take(target, &capture_options, &capture);
	}
	if (!error)
		error = ss_sandbox_run(&options, interpret, capture, &result);
	for (size_t i = 0; result && i < result->failure_count; i++) {
		char text[128];

		ss_sandbox_failure_describe(&result->failures[i], text, sizeof(text));
		fprintf(stderr, "the analysis %s\n", text);
	}
	if (result) {
		printf("%" PRIu64 " thread(s)\n", result->value);
		copy(result->output);
	}
	ss_sandbox_result_free(result);
	ss_capture_free(capture);
	ss_target_close(target);
	return error;
}

int main(void)
{
	int ready[2], end[2];
	struct ss_error *error = NULL;
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
	if (read(ready[0], &byte, 1) == 1)
		error = snapshot(child);
	if (error)
		fprintf(stderr, "%s\n", ss_error_message(error));
	close(end[1]);
	waitpid(child, NULL, 0);
	int status = error ? 1 : 0;
	ss_error_free(error);
	return status;
}
