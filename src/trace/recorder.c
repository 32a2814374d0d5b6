/*
 * Writes the events of a trace to a recording.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/vector.h"
#include "sample/modules.h"
#include "data/recording_format.h"
#include "data/recording_writer.h"
#include "trace/trace.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"

enum { NAME_MAX_SIZE = 64 };

/* A scope that a thread is in. */
struct open_scope {
	size_t probe;
	unsigned depth;
	uint64_t sequence; /* of its entry in the trace, */
	uint64_t sample;   /* and in the recording */
};

struct traced_thread {
	uint32_t handle;
	char name[NAME_MAX_SIZE];
	SS_VECTOR(struct open_scope) scopes; /* outermost first */
};

/* Keys of tables: no padding. */
struct thread_key {
	int32_t pid;
	int32_t tid;
};

struct ss_trace_recorder {
	const struct ss_trace *trace;
	struct ss_target *target;
	struct ss_writer *writer;
	uint64_t begin_ns;
	struct ss_idtable pids;
	SS_VECTOR(uint32_t) processes; /* handles, by id in pids */
	struct ss_idtable tids;	       /* of struct thread_key */
	SS_VECTOR(struct traced_thread) threads;
	SS_VECTOR(uint32_t) probes; /* numbers in the segment, by probe of the trace */
	SS_VECTOR(uint32_t) stacks; /* likewise, + 1, by stack of the trace - 1 */
	SS_VECTOR(struct ss_frame_record) frames; /* scratch */
};

void ss_trace_recorder_free(struct ss_trace_recorder *recorder)
{
	if (!recorder)
		return;
	ss_writer_free(recorder->writer);
	for (size_t i = 0; i < recorder->threads.count; i++)
		ss_vector_free(&recorder->threads.items[i].scopes);
	ss_idtable_deinit(&recorder->pids);
	ss_idtable_deinit(&recorder->tids);
	ss_vector_free(&recorder->processes);
	ss_vector_free(&recorder->threads);
	ss_vector_free(&recorder->probes);
	ss_vector_free(&recorder->stacks);
	ss_vector_free(&recorder->frames);
	free(recorder);
}

/* Each of the following returns SS_ID_NONE without memory. */

static uint32_t find_process(struct ss_trace_recorder *recorder, pid_t pid)
{
	const int32_t key = pid;
	bool added = false;
	uint32_t id = ss_idtable_add(&recorder->pids, &key, sizeof(key), &added);
	_cleanup_buffer_ struct ss_buffer name = {};
	char executable[PATH_MAX] = "";
	char path[64];

	if (id == SS_ID_NONE || !added)
		return id == SS_ID_NONE ? id : recorder->processes.items[id];
	uint32_t *slot = ss_vector_push(&recorder->processes);
	if (!slot)
		return SS_ID_NONE;
	(void)snprintf(path, sizeof(path), "%d/comm", (int)pid); /* it fits */
	if (ss_io_read_path(recorder->target->procfs_fd, path, NAME_MAX_SIZE, &name) < 0)
		name.size = 0; /* it has ended */
	while (name.size && name.bytes[name.size - 1] == '\n')
		ss_buffer_truncate(&name, name.size - 1);
	(void)snprintf(path, sizeof(path), "%d/exe", (int)pid); /* likewise */
	ssize_t size = readlinkat(recorder->target->procfs_fd, path, executable,
				  sizeof(executable) - 1);
	executable[size > 0 ? size : 0] = '\0';
	*slot = ss_writer_add_process(
		recorder->writer, pid,
		pid == recorder->target->pid ? recorder->target->start_time : 0,
		name.size ? name.bytes : "", *executable ? executable : NULL,
		recorder->begin_ns);
	return *slot;
}

static struct traced_thread *find_thread(struct ss_trace_recorder *recorder,
					 const struct ss_trace_event *event)
{
	const struct thread_key key = { event->pid, event->tid };
	bool added = false;
	uint32_t id = ss_idtable_add(&recorder->tids, &key, sizeof(key), &added);
	struct traced_thread *thread;

	if (id == SS_ID_NONE || (added && !ss_vector_push(&recorder->threads)))
		return NULL;
	thread = &recorder->threads.items[id];
	if (added) {
		uint32_t process = find_process(recorder, event->pid);
		if (process == SS_ID_NONE)
			return NULL;
		thread->handle = ss_writer_add_thread(recorder->writer, process,
						      event->tid, event->name,
						      event->monotonic_ns);
	} else if (strcmp(thread->name, event->name) != 0) {
		ss_writer_name_thread(recorder->writer, thread->handle, event->name,
				      event->monotonic_ns);
	}
	(void)snprintf(thread->name, sizeof(thread->name), "%s", event->name);
	return thread->handle == SS_ID_NONE ? NULL : thread;
}

/* Kernels before Linux 6.11 do not tell build-ids. */
static void find_build_id(const struct ss_trace_recorder *recorder,
			  const struct ss_module *module)
{
	struct ss_module_impl *impl = ss_drop_const(module);
	struct ss_capture capture = {};

	if (module->build_id || impl->identified)
		return;
	capture.modules.items = &impl;
	capture.modules.count = 1;
	ss_error_free(ss_build_ids_find(&capture, recorder->target));
}

static uint32_t find_module(struct ss_trace_recorder *recorder,
			    const struct ss_module *module, uint64_t bias)
{
	const uint32_t process = find_process(recorder, recorder->target->pid);

	find_build_id(recorder, module);
	return process == SS_ID_NONE ?
		       SS_ID_NONE :
		       ss_writer_find_module(recorder->writer, process, module, bias,
					     recorder->begin_ns);
}

static uint32_t find_module_of(struct ss_trace_recorder *recorder,
			       const struct ss_trace_probe *probe)
{
	const struct ss_module_impl *impl = ss_drop_const(probe->module);

	if (!impl)
		return SS_ID_NONE; /* no code: page faults */
	return find_module(recorder, probe->module,
			   ss_module_guess_bias(impl, impl->fd >= 0));
}

static bool add_frames(struct ss_trace_recorder *recorder,
		       const struct ss_trace_stack *stack)
{
	const uint32_t process = find_process(recorder, recorder->target->pid);

	recorder->frames.count = 0;
	for (size_t i = 0; i < stack->count; i++) {
		struct ss_frame frame = stack->frames[i];
		uint32_t module = SS_ID_NONE;
		/* A report finds inlined calls by itself. */
		if (frame.inlined)
			continue;
		if (frame.module)
			module = find_module(recorder, frame.module,
					     frame.pc - frame.offset);
		struct ss_frame_record *slot = ss_vector_push(&recorder->frames);
		if (!slot || process == SS_ID_NONE ||
		    (frame.module && module == SS_ID_NONE))
			return false;
		frame.module_index = 0; /* of the one handle */
		*slot = ss_frame_record_make(&frame, process, &module);
	}
	return true;
}

static uint32_t find_stack(struct ss_trace_recorder *recorder, uint32_t number)
{
	const struct ss_trace_stack *stack = ss_trace_stack(recorder->trace, number);

	while (recorder->stacks.count < number) {
		if (!ss_vector_push(&recorder->stacks))
			return SS_ID_NONE;
	}
	uint32_t *known = &recorder->stacks.items[number - 1];
	if (*known)
		return *known - 1;
	if (!add_frames(recorder, stack))
		return SS_ID_NONE;
	uint32_t id = ss_writer_stack(recorder->writer, recorder->frames.items,
				      recorder->frames.count, stack->end, NULL);
	*known = id == SS_ID_NONE ? 0 : id + 1;
	return id;
}

static bool add_function(struct ss_trace_recorder *recorder, size_t probe)
{
	const struct ss_trace_probe *p = ss_trace_probe(recorder->trace, probe);
	struct ss_frame_record *frame = NULL;

	if (!p->module)
		return true;
	frame = ss_vector_push(&recorder->frames);
	if (!frame)
		return false;
	*frame = (struct ss_frame_record){ .module = find_module_of(recorder, p),
					   .value = p->offset };
	return frame->module != SS_ID_NONE;
}

/* The functions of the scopes that the thread is in; no other is known. Of a page fault there is
   none. */
static uint32_t make_stack(struct ss_trace_recorder *recorder,
			   const struct traced_thread *thread,
			   const struct ss_trace_event *event)
{
	recorder->frames.count = 0;
	bool added = add_function(recorder, event->probe);
	for (size_t i = thread->scopes.count; added && i-- > 0;)
		added = add_function(recorder, thread->scopes.items[i].probe);
	return added ? ss_writer_stack(recorder->writer, recorder->frames.items,
				       recorder->frames.count,
				       recorder->frames.count ? SS_END_ROOT :
								SS_END_UNREADABLE,
				       NULL) :
		       SS_ID_NONE;
}

static bool keep_entry(struct ss_trace_recorder *recorder, struct traced_thread *thread,
		       const struct ss_trace_event *event)
{
	struct open_scope *scope = ss_vector_push(&thread->scopes);

	if (scope)
		*scope = (struct open_scope){
			.probe = event->probe,
			.depth = event->depth,
			.sequence = event->sequence,
			.sample = ss_writer_samples(recorder->writer),
		};
	return scope;
}

static struct ss_error *begin_segment(struct ss_trace_recorder *recorder)
{
	recorder->probes.count = 0;
	recorder->stacks.count = 0;
	for (size_t i = 0; i < ss_trace_probe_count(recorder->trace); i++) {
		const struct ss_trace_probe *probe = ss_trace_probe(recorder->trace, i);
		uint32_t *slot = ss_vector_push(&recorder->probes);
		if (!slot)
			return ss_error_no_memory();
		const struct ss_recorded_probe written = {
			.module = find_module_of(recorder, probe),
			.offset = probe->offset,
			.name = probe->name,
			.usdt = probe->usdt,
			.line = probe->line,
			.scope = probe->returns > 0,
		};
		*slot = ss_writer_probe(recorder->writer, &written);
	}
	return NULL;
}

static struct ss_error *add_begin(struct ss_trace_recorder *recorder,
				  struct traced_thread *thread,
				  const struct ss_trace_event *event)
{
	struct ss_trace_event written = *event;
	struct ss_sample_record sample = { .thread = thread->handle,
					   .call = SS_ID_NONE,
					   .state = 'R' };

	sample.stack = event->stack ? find_stack(recorder, event->stack) :
				      make_stack(recorder, thread, event);
	if (sample.stack == SS_ID_NONE ||
	    (event->kind == SS_TRACE_ENTER && !keep_entry(recorder, thread, event)))
		return ss_error_no_memory();
	written.probe = recorder->probes.items[event->probe];
	return ss_writer_event(recorder->writer, &written, &sample);
}

static struct ss_error *add_end(struct ss_trace_recorder *recorder,
				struct traced_thread *thread,
				const struct ss_trace_event *event)
{
	struct ss_trace_event written = *event;
	const struct open_scope *scope = NULL;

	if (thread->scopes.count)
		scope = &thread->scopes.items[--thread->scopes.count];
	if (!scope || scope->sequence != event->entry)
		return NULL;
	written.entry = scope->sample;
	return ss_writer_event(recorder->writer, &written, NULL);
}

/* Leaves the scopes that a thread is in no longer; the one that ends is still there. */
static void leave(struct traced_thread *thread, const struct ss_trace_event *event)
{
	unsigned depth = event->depth + (event->kind >= SS_TRACE_EXIT);

	while (event->kind != SS_TRACE_HIT && thread->scopes.count &&
	       thread->scopes.items[thread->scopes.count - 1].depth >= depth)
		thread->scopes.count--;
}

struct ss_error *ss_trace_recorder_add(struct ss_trace_recorder *recorder,
				       const struct ss_trace_event *event)
{
	struct traced_thread *thread = find_thread(recorder, event);
	struct ss_error *error = NULL;

	if (!thread)
		return ss_error_no_memory();
	leave(thread, event);
	if (event->kind >= SS_TRACE_EXIT)
		return add_end(recorder, thread, event);
	if (ss_writer_wants_roll(recorder->writer, event->monotonic_ns)) {
		error = ss_writer_roll(recorder->writer, event->monotonic_ns,
				       event->time_ns, NULL, 0);
		if (!error)
			error = begin_segment(recorder);
	}
	return error ? error : add_begin(recorder, thread, event);
}

struct ss_error *ss_trace_recorder_finish(struct ss_trace_recorder *recorder,
					  enum ss_recording_end end)
{
	struct ss_summary summary = { .duration_ns = ss_now_ns() - recorder->begin_ns,
				      .reason = end };

	ss_writer_trace(recorder->writer, ss_trace_summary(recorder->trace));
	return ss_writer_finish(recorder->writer, &summary);
}

uint64_t ss_trace_recorder_size(const struct ss_trace_recorder *recorder)
{
	return recorder->writer->ring.size;
}

struct ss_error *ss_trace_recorder_new(const struct ss_trace *trace,
				       struct ss_target *target, int fd,
				       struct ss_trace_recorder **ret)
{
	struct ss_trace_recorder *recorder = calloc(1, sizeof(*recorder));
	struct utsname system = {};

	if (!recorder) {
		close_cleanup(&fd);
		return ss_error_no_memory();
	}
	(void)uname(&system); /* or unknown */
	recorder->trace = trace;
	recorder->target = target;
	recorder->begin_ns = ss_now_ns();
	const struct ss_writer_options options = {
		.monotonic_ns = recorder->begin_ns,
		.wall_ns = ss_clock_ns(CLOCK_REALTIME),
		.scope = SS_SCOPE_EVENTS,
		.machine = system.machine,
		.host = system.nodename,
	};
	struct ss_error *error = ss_writer_new(fd, &options, &recorder->writer);
	if (!error)
		error = begin_segment(recorder);
	if (error)
		ss_trace_recorder_free(recorder);
	else
		*ret = recorder;
	return error;
}
