#include "trace/stacks.h"

#include <string.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "data/session.h"
#include "data/snapshot_fields.h"

struct ss_stack_server {
	struct ss_capture *capture;
	unsigned max_frames;
	unsigned flags;
	const char *debug_dir;
	struct ss_session *session;
	struct ss_words_read words; /* of the current request */
	struct ss_buffer answer;
};

struct ss_stack_server *ss_stack_server_new(struct ss_capture *capture,
					    unsigned max_frames, unsigned flags,
					    const char *debug_dir)
{
	struct ss_stack_server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	*server = (struct ss_stack_server){ .capture = capture,
					    .max_frames = max_frames,
					    .flags = flags,
					    .debug_dir = debug_dir };
	return server;
}

void ss_stack_server_free(struct ss_stack_server *server)
{
	if (!server)
		return;
	ss_session_free(server->session);
	ss_vector_free(&server->words.addresses);
	ss_buffer_deinit(&server->answer);
	free(server);
}

void ss_stack_server_set_capture(struct ss_stack_server *server,
				 struct ss_capture *capture)
{
	server->capture = capture;
}

/* Whether frames depend on more than the words that were read: names in a perf map may change, and
   return addresses may have been searched for. */
static bool has_guesses(const struct ss_capture *capture,
			const struct ss_snapshot *snapshot, const struct ss_task *thread)
{
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if ((!frame->module && capture->perf_map) ||
		    frame->source == SS_FROM_RETURN_ADDRESS)
			return true;
	}
	return false;
}

static void put_words(struct ss_stack_server *server, const struct ss_snapshot *snapshot,
		      uint64_t stack)
{
	const struct ss_words_read *words = &server->words;
	const struct ss_task *thread = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0);
	const struct ss_stack_words head = {
		.word_count = (uint32_t)words->addresses.count,
		.complete = !words->others && !words->failed &&
			    words->addresses.count <= SS_STACK_WORDS_MAX &&
			    !has_guesses(server->capture, snapshot, thread),
	};
	const struct ss_stack_words none = {};

	ss_buffer_add(&server->answer, head.complete ? &head : &none, sizeof(head));
	for (size_t i = 0; head.complete && i < words->addresses.count; i++) {
		uint32_t offset = (uint32_t)(words->addresses.items[i] - stack);
		ss_buffer_add(&server->answer, &offset, sizeof(offset));
	}
}

static void put_stack(struct ss_buffer *answer, const struct ss_snapshot *snapshot)
{
	const struct ss_schema_writer writer = { .out = answer,
						 .list_max = SS_STACK_FRAMES_MAX };
	const struct ss_task *thread = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0);

	ss_schema_write(&writer, &ss_stack_schema,
			&snapshot->stacks.items[thread->stack_id]);
}

static bool begin(struct ss_stack_server *server)
{
	const struct ss_session_options options = { .size = sizeof(options),
						    .debug_dir = server->debug_dir };

	if (!server->session)
		ss_error_free(ss_session_new(&options, &server->session));
	return server->session;
}

bool ss_stack_server_serve(void *data, const struct ss_worker_request *request,
			   volatile int32_t *module_at, const uint8_t **answer,
			   size_t *answer_size)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	struct ss_stack_server *server = data;
	struct ss_stack_question question;

	if (!begin(server) || request->size < sizeof(question))
		return false;
	memcpy(&question, request->bytes, sizeof(question));
	struct ss_capture *capture = server->capture;
	capture->threads.count = 0;
	struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
	if (!thread)
		return false;
	thread->tid = 1;
	thread->state = 'R';
	thread->consistent = true;
	thread->regs = question.regs;
	thread->syscall.number = -1;
	thread->stacks[0] = (struct ss_stack_copy){
		.address = question.address,
		.size = SS_MIN((size_t)question.size, request->size - sizeof(question)),
		.bytes = ss_drop_const(request->bytes + sizeof(question)),
		.truncated = question.truncated,
	};
	const struct ss_unwind_options options = { .size = sizeof(options),
						   .max_frames = server->max_frames,
						   .no_runtimes = true };
	server->words.addresses.count = 0;
	server->words.others = server->words.failed = false;
	server->session->words = &server->words;
	server->session->module_at = module_at;
	struct ss_error *error =
		ss_capture_unwind(capture, server->session, &options, &snapshot);
	if (!error)
		error = ss_snapshot_symbolize(snapshot, server->session, server->flags);
	capture->threads.count = 0;
	if (error || ss_snapshot_task_count(snapshot, SS_TASK_THREAD) == 0) {
		ss_error_free(error);
		return false;
	}
	ss_buffer_clear(&server->answer);
	put_words(server, snapshot, question.address);
	put_stack(&server->answer, snapshot);
	if (server->answer.failed)
		return false;
	*answer = (const uint8_t *)server->answer.bytes;
	*answer_size = server->answer.size;
	return true;
}
