/*
 * The steps of a snapshot, one by one, for programs that do something else in between. Starts a
 * child, takes a snapshot of it and prints its stack:
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

/* Threads that sleep were not stopped, so some of their registers may be missing: stops the first
   thread whose stack ends therefore, and unwinds again. */
static struct ss_error *complete(struct ss_capture *capture, struct ss_target *target,
				 struct ss_session *session,
				 struct ss_snapshot **snapshot)
{
	for (size_t i = 0; i < ss_snapshot_task_count(*snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(*snapshot, SS_TASK_THREAD, i);
		pid_t tid = thread->tid;

		if (thread->end != SS_END_REGISTER)
			continue;
		struct ss_error *error =
			ss_capture_complete(capture, target, NULL, &tid, 1);
		if (error)
			return error;
		ss_snapshot_free(*snapshot);
		*snapshot = NULL;
		return ss_capture_unwind(capture, session, NULL, snapshot);
	}
	return NULL;
}

/* Everything that is acquired here is released here, whatever fails. */
static int snapshot(pid_t pid)
{
	struct ss_target *target = NULL;
	struct ss_capture *capture = NULL;
	struct ss_session *session = NULL;
	struct ss_snapshot *result = NULL;
	uid_t uid = 0;
	gid_t gid = 0;
	struct ss_error *error = ss_target_open(pid, &target);

	if (!error)
		error = ss_capture_take(target, NULL, &capture);
	/* The child runs on from here: what follows works on the copy. */
	if (!error)
		error = ss_session_new(NULL, &session);
	if (!error)
		error = ss_capture_unwind(capture, session, NULL, &result);
	if (!error)
		error = complete(capture, target, session, &result);
	if (!error)
		error = ss_snapshot_symbolize(result, session, 0);
	if (!error)
		error = ss_snapshot_diagnose(result, NULL);
	if (!error)
		error = ss_target_owner(target, &uid, &gid);
	if (!error)
		printf("a process of user %u, group %u\n", (unsigned)uid, (unsigned)gid);
	if (!error)
		for (size_t i = 0; i < ss_snapshot_task_count(result, SS_TASK_THREAD);
		     i++)
			print_thread(result, ss_snapshot_task(result, SS_TASK_THREAD, i));

	ss_snapshot_free(result);
	ss_session_free(session);
	ss_capture_free(capture);
	ss_target_close(target);
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
