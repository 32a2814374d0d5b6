/* A recording: opens it, reads all of it and converts it to snapshots. */
#include "fuzz_file.h"
#include "data/recording.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"

enum { SAMPLES_MAX = 20000, TICKS_MAX = 4 };

static void check_tasks(const struct ss_snapshot *snapshot)
{
	const size_t count = ss_snapshot_task_count(snapshot, SS_TASK_ASYNCIO);

	for (size_t i = 0; i < count; i++) {
		const struct ss_task *task =
			ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, i);
		(void)fuzz_touch(task->name, strlen(task->name));
		for (size_t k = 0; k < task->awaited_count; k++)
			FUZZ_REQUIRE(task->awaited[k] < count);
		if (!task->in_cycle)
			continue;
		/* It comes back. */
		size_t at = task->cycle_next;
		for (size_t k = 0; at != i; k++) {
			FUZZ_REQUIRE(at < count && k < count);
			FUZZ_REQUIRE(ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, at)
					     ->in_cycle);
			at = ss_snapshot_task(snapshot, SS_TASK_ASYNCIO, at)->cycle_next;
		}
	}
}

static void walk(struct ss_recording *recording)
{
	const struct ss_recording_info *info = ss_recording_info(recording);
	struct ss_sample sample;
	uint64_t sequence = info->first_sequence;

	for (unsigned i = 0; i < SAMPLES_MAX && ss_recording_next(recording, &sample);
	     i++) {
		FUZZ_REQUIRE(sample.sequence == sequence++);
		FUZZ_REQUIRE(sample.thread < ss_recording_thread_count(recording));
		FUZZ_REQUIRE(sample.stack < ss_recording_stack_count(recording));
		FUZZ_REQUIRE(sample.process < ss_recording_process_count(recording));
		const struct ss_recorded_event *event =
			ss_recording_event(recording, &sample);
		if (event) {
			FUZZ_REQUIRE(event->probe < recording->probes.count);
			FUZZ_REQUIRE(event->arg_count <= SS_TRACE_ARGS);
			FUZZ_REQUIRE(event->kind <= SS_TRACE_OPEN);
		}
	}
	for (size_t i = 0; i < ss_recording_stack_count(recording); i++) {
		const struct ss_recorded_stack *stack = ss_recording_stack(recording, i);
		for (size_t f = 0; f < stack->count; f++)
			FUZZ_REQUIRE(stack->places[f] <
				     ss_recording_place_count(recording));
	}
	for (size_t i = 0; i < recording->probes.count; i++) {
		const struct ss_recorded_probe *probe = &recording->probes.items[i];
		(void)fuzz_touch(probe->name, strlen(probe->name));
		FUZZ_REQUIRE(probe->module == UINT32_MAX ||
			     probe->module < ss_recording_module_count(recording));
	}
	for (uint64_t tick = 0; tick < info->ticks && tick < TICKS_MAX; tick++) {
		struct ss_snapshot *snapshot = NULL;
		ss_error_free(ss_recording_snapshot(recording, tick, 0, &snapshot));
		if (snapshot)
			check_tasks(snapshot);
		ss_snapshot_free(snapshot);
	}
}

/* Names come from perf maps only: without modules no files are searched for. */
static void look_up(struct ss_recording *recording)
{
	struct ss_session *session = NULL;

	if (ss_recording_module_count(recording) > 0)
		return;
	ss_error_free(ss_session_new(NULL, &session));
	if (session)
		ss_error_free(ss_recording_symbolize(recording, session, 0));
	for (size_t i = 0; i < ss_recording_place_count(recording); i++) {
		size_t count = 0;
		const struct ss_frame *frame = ss_recording_place(recording, i, &count);
		FUZZ_REQUIRE(count == 1);
		if (frame->symbol)
			(void)fuzz_touch(frame->symbol, strlen(frame->symbol));
	}
	ss_session_free(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_recording *recording = fuzz_file_open(data, size);

	if (recording) {
		walk(recording);
		look_up(recording);
	}
	ss_recording_close(recording);
	return 0;
}
