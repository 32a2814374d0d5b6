/*
 * Records a process for half a second, and prints how often each function was on top of a stack;
 * then its modules, and a snapshot as a file of relative frames:
 *
 *	cc record.c $(pkg-config --cflags --libs stacksnap)
 *	./a.out PID RECORDING SNAPSHOT
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <stacksnap/record.h>

/* Called once a second by the thread that records. */
static void end_at_once(void *data, const struct ss_recorder_summary *summary)
{
	struct ss_recorder **recorder = data;

	if (summary->samples > 1000000)
		ss_recorder_stop(*recorder);
}

static struct ss_error *record(struct ss_target *target, int fd)
{
	struct ss_recorder *recorder = NULL;
	const struct ss_recorder_options options = {
		.size = sizeof(options),
		.duration_ns = 500000000,
		.progress = end_at_once,
		.progress_data = &recorder,
	};
	struct ss_error *error = ss_recorder_new(target, fd, &options, &recorder);

	if (!error)
		error = ss_recorder_run(recorder);
	if (!error)
		printf("%" PRIu64 " samples\n", ss_recorder_summary(recorder)->samples);
	ss_recorder_free(recorder);
	return error;
}

static const char *top_of(const struct ss_recording *recording, uint32_t stack)
{
	const struct ss_recorded_stack *found = ss_recording_stack(recording, stack);
	size_t count = 0;

	if (found->count == 0)
		return NULL;
	const struct ss_frame *frames =
		ss_recording_place(recording, found->places[0], &count);
	return count ? frames[0].symbol : NULL;
}

static void print_samples(struct ss_recording *recording)
{
	size_t count = ss_recording_stack_count(recording);
	size_t *hits = calloc(count ? count : 1, sizeof(*hits));
	struct ss_sample sample;

	ss_recording_rewind(recording);
	while (hits && ss_recording_next(recording, &sample))
		hits[sample.stack]++;
	for (size_t i = 0; hits && i < count; i++) {
		const char *top = top_of(recording, (uint32_t)i);

		printf("%zu in %s\n", hits[i], top ? top : "?");
	}
	free(hits);
}

static struct ss_error *print_recording(const char *path)
{
	struct ss_recording *recording = NULL;
	struct ss_session *session = NULL;
	struct ss_snapshot *snapshot = NULL;
	struct ss_error *error = ss_recording_open(path, &recording);

	if (!error)
		error = ss_session_new(NULL, &session);
	if (!error)
		error = ss_recording_symbolize(recording, session, 0);
	if (!error) {
		const struct ss_recording_info *info = ss_recording_info(recording);

		printf("of %s: %zu processes, %zu threads, %zu modules, %zu places\n",
		       info->host, ss_recording_process_count(recording),
		       ss_recording_thread_count(recording),
		       ss_recording_module_count(recording),
		       ss_recording_place_count(recording));
		for (size_t i = 0; i < ss_recording_process_count(recording); i++)
			printf("process %s\n", ss_recording_process(recording, i)->name);
		for (size_t i = 0; i < ss_recording_thread_count(recording); i++)
			printf("thread %s\n", ss_recording_thread(recording, i)->name);
		for (size_t i = 0; i < ss_recording_module_count(recording); i++)
			printf("in %s\n",
			       ss_recording_module(recording, i)->module->path);
		print_samples(recording);
		error = ss_recording_snapshot(recording, 0, 0, &snapshot);
	}
	if (!error)
		error = ss_snapshot_write(snapshot, "folded", 0, stdout);
	ss_snapshot_free(snapshot);
	ss_session_free(session);
	ss_recording_close(recording);
	return error;
}

static void print_module(void *data, const struct ss_module_event *event)
{
	(void)data;
	printf("%s %s\n", event->loaded ? "loaded" : "unloaded", event->module->path);
}

static struct ss_error *print_modules(struct ss_target *target)
{
	struct ss_tracker *tracker = NULL;
	struct ss_error *error = ss_tracker_new(target, print_module, NULL, &tracker);

	if (!error)
		error = ss_tracker_poll(tracker); /* the first time: all of them */
	ss_tracker_free(tracker);
	return error;
}

/* Without names: whoever reads the file looks them up, perhaps on another machine. */
static struct ss_error *write_snapshot(pid_t pid, int fd)
{
	const struct ss_snapshot_options options = { .size = sizeof(options),
						     .raw = true };
	struct ss_snapshot *snapshot = NULL;
	struct ss_error *error = ss_snapshot_take(pid, &options, &snapshot);

	if (!error)
		error = ss_snapshot_record(snapshot, NULL, fd);
	ss_snapshot_free(snapshot);
	return error;
}

int main(int argc, char **argv)
{
	struct ss_target *target = NULL;

	if (argc < 4)
		return EXIT_FAILURE;
	/* For reading, too: tables are written again at its end. */
	int recording = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int snapshot = open(argv[3], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (recording < 0 || snapshot < 0)
		return EXIT_FAILURE;
	struct ss_error *error = ss_target_open(atoi(argv[1]), &target);
	if (!error)
		error = record(target, recording);
	if (!error)
		error = print_recording(argv[2]);
	if (!error)
		error = print_modules(target);
	if (!error)
		error = write_snapshot(atoi(argv[1]), snapshot);
	if (error)
		fprintf(stderr, "%s\n", ss_error_message(error));
	ss_target_close(target);
	int status = error ? EXIT_FAILURE : EXIT_SUCCESS;
	ss_error_free(error);
	return status;
}
