#define XXH_INLINE_ALL
#include <xxhash.h>

#include "report/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/intern.h"
#include "base/search.h"
#include "report/format.h"
#include "report/wait_text.h"
#include "report/profile.h"
#include "diagnose/progress.h"

enum { HASH_SIZE = 33 };

/* What is written about one process. */
struct rows {
	FILE *out;
	const struct ss_row_options *options;
	const struct ss_process *process;
	char *id; /* of the snapshot; owned */
	bool raw;
	struct ss_idtable frames; /* those that were written */
	struct ss_idtable stacks;
	size_t threads;
	bool failed; /* no memory */
};

static void rows_deinit(struct rows *rows)
{
	ss_idtable_deinit(&rows->frames);
	ss_idtable_deinit(&rows->stacks);
	free(rows->id);
}

static const struct ss_row_options no_options = { .batch = "", .boot_id = "" };

/* Database columns are simpler without NULL. */
static void write_text(struct ss_json *json, const char *key, const char *text)
{
	ss_json_text(json, key, text ? text : "");
}

/* Begins a row with the columns that most tables have. */
static void begin(struct ss_json *json, const char *table)
{
	ss_json_open(json, NULL, '{');
	ss_json_text(json, "table", table);
}

static void end(struct ss_json *json)
{
	ss_json_close(json, '}');
	(void)fputc_unlocked('\n', json->out);
	json->has_previous = false;
}

static void begin_of_snapshot(struct ss_json *json, const char *table, const char *id,
			      const char *batch, const char *host, pid_t pid)
{
	begin(json, table);
	write_text(json, "snapshot", id);
	write_text(json, "batch", batch);
	write_text(json, "host", host);
	ss_json_signed(json, "pid", pid);
}

static char *new_id(const struct ss_row_options *options, pid_t pid, uint64_t time_ns)
{
	char *id = NULL;

	return asprintf(&id, "%s/%d/%" PRIu64, options->boot_id, pid, time_ns) < 0 ?
		       NULL :
		       id;
}

/* Frames ------------------------------------------------------------------ */

/* "BUILD-ID+0xOFFSET" in the file of a build; with the path instead if it has no build-id. Other
   code is the same wherever its name and file are. */
static void add_frame_id(struct ss_buffer *text, const struct ss_frame *frame)
{
	const struct ss_module *module = frame->module;
	char offset[32];

	if (module) {
		const char *file = module->build_id ? module->build_id : module->path;
		(void)snprintf(offset, sizeof(offset), "+0x%" PRIx64,
			       frame->lookup_offset); /* it fits */
		ss_buffer_add(text, file, strlen(file));
		ss_buffer_add(text, offset, strlen(offset));
		return;
	}
	const char *name = frame->symbol ? frame->symbol :
			   frame->area	 ? frame->area :
					   "[unmapped]";
	ss_buffer_add(text, name, strlen(name));
	if (frame->symbol && frame->file) {
		ss_buffer_add(text, "@", 1);
		ss_buffer_add(text, frame->file, strlen(frame->file));
	}
}

/* Adds the id of a frame to those of a stack, and ends it. Names in runtimes may have newlines. */
static void finish_frame_id(struct ss_buffer *id, struct ss_buffer *stack)
{
	for (size_t i = 0; i < id->size; i++) {
		if (id->bytes[i] == '\n')
			id->bytes[i] = ' ';
	}
	ss_buffer_add(stack, id->bytes, id->size);
	ss_buffer_add(stack, "\n", 1);
	ss_buffer_add(id, "", 1);
}

static void write_source(struct ss_json *json, const struct ss_frame *frame)
{
	_cleanup_free_ char *text = NULL;

	if (frame->file && frame->line) {
		if (asprintf(&text, "%s:%u", frame->file, frame->line) < 0)
			text = NULL;
	} else if (frame->file) {
		text = strdup(frame->file);
	}
	write_text(json, NULL, text);
}

/* The calls at one place: the last one is the function itself, and what is inlined into it
   comes before it. */
static void write_frame(struct rows *rows, const struct ss_frame *calls, size_t count,
			const char *id)
{
	struct ss_json json = { .out = rows->out };
	const struct ss_frame *frame = &calls[count - 1];
	bool named = frame->symbol && !rows->raw;

	if (!named && !frame->module)
		return; /* the id is all that is known */
	begin(&json, "frames");
	ss_json_text(&json, "frame", id);
	ss_json_open(&json, "names", '[');
	for (size_t i = count; named && i-- > 0;)
		write_text(&json, NULL, calls[i].symbol);
	ss_json_close(&json, ']');
	ss_json_open(&json, "sources", '[');
	for (size_t i = count; named && i-- > 0;)
		write_source(&json, &calls[i]);
	ss_json_close(&json, ']');
	write_text(&json, "module", frame->module ? frame->module->path : NULL);
	end(&json);
}

/* Stacks ------------------------------------------------------------------ */

/* The ids of the frames, outermost first, each followed by a newline. Writes those frames that
   were not written yet. */
static void make_stack(struct rows *rows, const struct ss_frame *frames, size_t count,
		       struct ss_buffer *ret)
{
	_cleanup_buffer_ struct ss_buffer id = {};

	for (size_t last = count; last-- > 0;) {
		size_t first = last;
		bool added = false;
		while (first > 0 && frames[first - 1].inlined)
			first--;
		id.size = 0;
		add_frame_id(&id, &frames[last]);
		finish_frame_id(&id, ret);
		if (id.failed || ss_idtable_add(&rows->frames, id.bytes, id.size,
						&added) == SS_ID_NONE)
			rows->failed = true;
		else if (added)
			write_frame(rows, &frames[first], last - first + 1, id.bytes);
		last = first;
	}
}

static void write_stack(struct rows *rows, const char *hash, char *frames)
{
	struct ss_json json = { .out = rows->out };

	begin(&json, "stacks");
	ss_json_text(&json, "stack", hash);
	ss_json_open(&json, "frames", '[');
	for (char *rest = frames, *line; (line = strsep(&rest, "\n")) && rest;)
		ss_json_text(&json, NULL, line);
	ss_json_close(&json, ']');
	end(&json);
}

/* Writes the stack of these lines unless it was written, and its hash to ret: "" for no
   frames. */
static void finish_stack(struct rows *rows, struct ss_buffer *text,
			 char ret[static HASH_SIZE])
{
	bool added = false;

	*ret = '\0';
	if (text->size == 0)
		return;
	XXH128_hash_t hash = XXH3_128bits(text->bytes, text->size);
	(void)snprintf(ret, HASH_SIZE, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
		       (uint64_t)hash.low64); /* it fits */
	if (ss_idtable_add(&rows->stacks, ret, HASH_SIZE, &added) == SS_ID_NONE)
		rows->failed = true;
	ss_buffer_add(text, "", 1);
	if (text->failed)
		rows->failed = true;
	else if (added)
		write_stack(rows, ret, text->bytes);
}

static void add_stack(struct rows *rows, const struct ss_frame *frames, size_t count,
		      char ret[static HASH_SIZE])
{
	_cleanup_buffer_ struct ss_buffer text = {};

	make_stack(rows, frames, count, &text);
	finish_stack(rows, &text, ret);
}

/* Threads ----------------------------------------------------------------- */

static bool is_in_deadlock(const struct ss_snapshot *snapshot,
			   const struct ss_task *thread)
{
	for (size_t i = 0; i < ss_snapshot_deadlock_count(snapshot); i++) {
		const struct ss_deadlock *deadlock = ss_snapshot_deadlock(snapshot, i);
		for (size_t j = 0; j < deadlock->count; j++) {
			if (ss_snapshot_task(snapshot, SS_TASK_THREAD,
					     deadlock->threads[j]) == thread)
				return true;
		}
	}
	for (size_t i = 0; i < ss_snapshot_cycle_count(snapshot); i++) {
		const struct ss_cycle *cycle = ss_snapshot_cycle(snapshot, i);
		for (size_t j = 0; j < cycle->count; j++) {
			if (cycle->members[j].thread == thread)
				return true;
		}
	}
	return false;
}

/* The process that a thread waits for, if there is only one: the owner of a lock, the other end
   of a pipe or UNIX socket, a child. 0: none, or not known. */
static pid_t owner_of(const struct ss_wait *wait, pid_t pid)
{
	const struct ss_descriptor *d = wait->descriptor;

	if (wait->owner_pid || wait->owner_tid)
		return wait->owner_pid ? wait->owner_pid : pid;
	if (wait->kind == SS_WAIT_CHILD && wait->children_known &&
	    wait->children_total == 1 && wait->child_count == 1)
		return wait->children[0].pid;
	if (d && d->peer_count == 1 && d->peers_searched && !d->peers_incomplete &&
	    !d->peers[0].same)
		return d->peers[0].pid;
	return 0;
}

static void write_wait(struct ss_json *json, const struct rows *rows,
		       const struct ss_task *thread)
{
	const struct ss_wait *wait = thread->wait;
	_cleanup_free_ char *text = wait ? ss_wait_text_new(wait) : NULL;
	_cleanup_free_ char *key =
		ss_wait_key_new(wait, rows->process->pid, rows->options->boot_id);

	write_text(json, "wait", wait ? ss_wait_kind_name(wait->kind) : NULL);
	write_text(json, "wait_text", text);
	write_text(json, "wait_key", key);
	ss_json_signed(json, "owner_pid", wait ? owner_of(wait, rows->process->pid) : 0);
	ss_json_signed(json, "owner_tid", wait ? wait->owner_tid : 0);
}

/* What a row of a thread has besides what struct ss_task says. */
struct thread_values {
	const char *stack;
	uint64_t samples;
	bool deadlock;
	bool stuck;
};

static void write_thread(struct rows *rows, const struct ss_task *thread,
			 const struct thread_values *values)
{
	struct ss_json json = { .out = rows->out };
	const char state[] = { thread->state, '\0' };

	begin_of_snapshot(&json, "threads", rows->id, rows->options->batch,
			  rows->process->host, rows->process->pid);
	ss_json_signed(&json, "tid", thread->tid);
	write_text(&json, "thread", thread->name);
	write_text(&json, "state", state);
	write_text(&json, "end", ss_end_name(thread->end));
	ss_json_text(&json, "stack", values->stack);
	ss_json_unsigned(&json, "samples", values->samples);
	write_wait(&json, rows, thread);
	ss_json_unsigned(&json, "deadlock", values->deadlock);
	ss_json_unsigned(&json, "stuck", values->stuck);
	end(&json);
	rows->threads++;
}

/* Snapshots --------------------------------------------------------------- */

static void write_labels(struct ss_json *json, const struct ss_row_options *options)
{
	ss_json_open(json, "labels", '[');
	for (size_t i = 0; i < options->label_count; i++)
		ss_json_text(json, NULL, options->labels[i]);
	ss_json_close(json, ']');
}

static void write_snapshot_row(const struct rows *rows, const char *verdict,
			       const char *problem)
{
	const struct ss_process *process = rows->process;
	struct ss_json json = { .out = rows->out };

	begin_of_snapshot(&json, "snapshots", rows->id, rows->options->batch,
			  process->host, process->pid);
	ss_json_unsigned(&json, "time_ns", process->time_ns);
	write_text(&json, "boot_id", rows->options->boot_id);
	ss_json_unsigned(&json, "start", process->start_time);
	write_text(&json, "process", process->name);
	write_text(&json, "exe", process->executable);
	write_labels(&json, rows->options);
	ss_json_unsigned(&json, "consistent", process->consistent);
	ss_json_unsigned(&json, "stopped_ns", process->stopped_ns);
	ss_json_unsigned(&json, "threads", rows->threads);
	write_text(&json, "verdict", verdict);
	write_text(&json, "problem", problem);
	end(&json);
}

/* progress and verdict are NULL if threads were not observed. */
static struct ss_error *write_all(const struct ss_snapshot *snapshot,
				  const struct ss_progress *progress, const char *verdict,
				  const struct ss_format_options *options, FILE *out)
{
	__attribute__((cleanup(rows_deinit))) struct rows rows = {
		.out = out,
		.options = options->row_options ? options->row_options : &no_options,
		.process = ss_snapshot_process(snapshot),
		.raw = options->raw,
	};

	rows.id = new_id(rows.options, rows.process->pid, rows.process->time_ns);
	rows.failed = !rows.id;
	for (size_t i = 0;
	     i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD) && !rows.failed; i++) {
		const struct ss_thread_progress *moved =
			progress ? ss_progress_thread(progress, i) : NULL;
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		char stack[HASH_SIZE];
		add_stack(&rows,
			  thread->frame_count ? ss_snapshot_frame(snapshot, thread, 0) :
						NULL,
			  thread->frame_count, stack);
		const struct thread_values values = {
			.stack = stack,
			.samples = 1,
			.deadlock = is_in_deadlock(snapshot, thread),
			.stuck = moved && (moved->stuck || moved->blocked),
		};
		write_thread(&rows, thread, &values);
	}
	if (rows.failed)
		return ss_error_no_memory();
	write_snapshot_row(&rows, verdict, options->problem);
	return NULL;
}

static struct ss_error *write_snapshot(const struct ss_snapshot *snapshot,
				       const struct ss_format_options *options, FILE *out)
{
	return write_all(snapshot, NULL, NULL, options, out);
}

static struct ss_error *write_hang(const struct ss_snapshot *snapshot,
				   const struct ss_progress *progress,
				   const struct ss_format_options *options, FILE *out)
{
	return write_all(snapshot, progress, ss_verdict_name(progress->verdict), options,
			 out);
}

/* Recordings -------------------------------------------------------------- */

/* Samples of a thread with one stack and state. */
struct thread_row {
	uint32_t thread;
	uint32_t state;
	char stack[HASH_SIZE + 7];
};

struct row_wait {
	uint32_t row;
	uint32_t detail;
};

struct thread_rows {
	struct rows rows;
	const struct ss_profile *profile;
	const uint32_t *order;	 /* numbers of threads: those of a process together */
	struct ss_idtable table; /* of struct thread_row */
	SS_VECTOR(struct thread_count {
		uint64_t samples;
		enum ss_end end;
		const struct ss_profile_run *run; /* the last one */
		uint64_t wait_samples;
		uint32_t detail; /* the most frequent one: index + 1; or 0 */
	})
	counts;
	struct ss_idtable waits; /* struct row_wait */
	SS_VECTOR(uint64_t) wait_samples;
	SS_VECTOR(struct ss_frame) frames; /* scratch: of a stack, innermost first */
};

static void thread_rows_deinit(struct thread_rows *t)
{
	rows_deinit(&t->rows);
	ss_idtable_deinit(&t->table);
	ss_vector_free(&t->counts);
	ss_idtable_deinit(&t->waits);
	ss_vector_free(&t->wait_samples);
	ss_vector_free(&t->frames);
}

/* Finds the frames of a call, and why the stack ends there. */
static enum ss_end find_frames(struct thread_rows *t, uint32_t call)
{
	enum ss_end end = SS_END_ROOT;

	t->frames.count = 0;
	for (; call != 0; call = ss_profile_call_at(t->profile, call)->parent) {
		const struct ss_profile_frame *frame = ss_profile_frame_at(
			t->profile, ss_profile_call_at(t->profile, call)->frame);
		const struct ss_profile_function *function =
			ss_profile_function_at(t->profile, frame->function);
		if (function->is_end || function->is_origin) {
			if (function->is_end)
				end = (enum ss_end)(function->is_end - 1);
			continue;
		}
		struct ss_frame *slot = ss_vector_push(&t->frames);
		if (slot)
			*slot = ss_profile_frame_model(t->profile, frame);
		else
			t->rows.failed = true;
	}
	return end;
}

/* A row has the wait of most of its samples. */
static void add_wait(struct thread_rows *t, uint32_t row,
		     const struct ss_profile_run *run)
{
	const struct row_wait key = { .row = row, .detail = run->detail };

	if (!run->detail)
		return;
	uint32_t number = ss_idtable_add(&t->waits, &key, sizeof(key), NULL);
	if (number == SS_ID_NONE ||
	    (number == t->wait_samples.count && !ss_vector_push(&t->wait_samples))) {
		t->rows.failed = true;
		return;
	}
	uint64_t *samples = &t->wait_samples.items[number];
	struct thread_count *count = &t->counts.items[row];
	*samples += run->count;
	if (*samples < count->wait_samples)
		return;
	count->wait_samples = *samples;
	count->detail = run->detail;
}

static void add_run(struct thread_rows *t, uint32_t thread,
		    const struct ss_profile_run *run)
{
	struct thread_row row = { .thread = thread, .state = (unsigned char)run->state };
	enum ss_end end = find_frames(t, run->call);

	add_stack(&t->rows, t->frames.items, t->frames.count, row.stack);
	uint32_t number = ss_idtable_add(&t->table, &row, sizeof(row), NULL);
	if (number == SS_ID_NONE ||
	    (number == t->counts.count && !ss_vector_push(&t->counts))) {
		t->rows.failed = true;
		return;
	}
	struct thread_count *count = &t->counts.items[number];
	count->samples += run->count;
	count->end = end;
	count->run = run;
	add_wait(t, number, run);
}

/* What most of the samples wait for, those whose wait was not looked up included. */
static const struct ss_wait *find_wait(const struct thread_rows *t,
				       const struct ss_profile_thread *thread,
				       const struct thread_count *count)
{
	if (!count->detail)
		return ss_profile_wait_of(t->profile, thread, count->run);
	return count->wait_samples > count->samples / 2 ?
		       t->profile->details.items[count->detail - 1] :
		       NULL;
}

static void write_recorded_thread(struct thread_rows *t, const struct thread_row *row,
				  const struct thread_count *count)
{
	const struct ss_profile_thread *recorded =
		&t->profile->threads.items[row->thread];
	const struct ss_wait *wait = find_wait(t, recorded, count);
	const struct ss_task thread = { .tid = recorded->tid,
					.name = recorded->name,
					.state = (char)row->state,
					.end = count->end,
					.wait = wait };
	const struct thread_values values = {
		.stack = row->stack,
		.samples = count->samples,
		.deadlock = wait && wait == recorded->wait && recorded->in_cycle,
	};

	write_thread(&t->rows, &thread, &values);
}

static void write_process(struct thread_rows *t, uint32_t process, uint32_t *at)
{
	const struct ss_profile *profile = t->profile;

	for (; *at < profile->threads.count; (*at)++) {
		uint32_t number = t->order[*at];
		const struct ss_profile_thread *thread = &profile->threads.items[number];
		if (thread->process != process)
			break;
		if (!ss_profile_is_thread(thread)) /* tables of threads have threads */
			continue;
		for (size_t r = 0; r < thread->runs.count && !t->rows.failed; r++)
			add_run(t, number, &thread->runs.items[r]);
	}
	for (size_t i = 0; i < t->counts.count && !t->rows.failed; i++)
		write_recorded_thread(t, ss_idtable_key(&t->table, (uint32_t)i, NULL),
				      &t->counts.items[i]);
	t->counts.count = 0;
	ss_idtable_deinit(&t->table);
	t->wait_samples.count = 0;
	ss_idtable_deinit(&t->waits);
}

/* The threads from *at on: each process of a recording has a row of its own. */
static struct ss_error *write_recorded_process(const struct ss_profile *profile,
					       const uint32_t *order,
					       const struct ss_format_options *options,
					       FILE *out, uint32_t *at)
{
	uint32_t index = profile->threads.items[order[*at]].process;
	const struct ss_profile_process *recorded = &profile->processes.items[index];
	const struct ss_profile_recording *recording =
		&profile->recordings.items[recorded->recording];
	const struct ss_row_options *given = options->row_options ? options->row_options :
								    &no_options;
	const struct ss_process process = {
		.pid = recorded->pid,
		.name = recorded->name,
		.executable = recorded->executable,
		.host = recording->host,
		.time_ns = recording->start_ns,
	};
	_cleanup_free_ const char **labels =
		calloc(recording->label_count + given->label_count + 1, sizeof(*labels));
	struct ss_row_options own = { .batch = given->batch,
				      .boot_id = recording->boot_id,
				      .labels = labels };
	__attribute__((cleanup(thread_rows_deinit))) struct thread_rows t = {
		.rows = { .out = out,
			  .options = &own,
			  .process = &process,
			  .raw = options->raw },
		.profile = profile,
		.order = order,
	};

	for (size_t i = 0; labels && i < recording->label_count; i++)
		labels[own.label_count++] = recording->labels[i];
	for (size_t i = 0; labels && i < given->label_count; i++)
		labels[own.label_count++] = given->labels[i];
	/* A program that was executed later has the same pid. */
	t.rows.id = new_id(&own, process.pid, process.time_ns + recorded->begin_ns);
	t.rows.failed = !labels || !t.rows.id;
	write_process(&t, index, at);
	if (t.rows.failed)
		return ss_error_no_memory();
	write_snapshot_row(&t.rows, NULL, recording->problem);
	return NULL;
}

static int compare_processes(const void *a, const void *b, void *data)
{
	const struct ss_profile *profile = data;
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;
	uint32_t p = profile->threads.items[x].process;
	uint32_t q = profile->threads.items[y].process;

	return SS_COMPARE(p, q) ?: SS_COMPARE(x, y);
}

/* A process may start threads after others of the profile did. */
static struct ss_error *write_profile(const struct ss_profile *profile,
				      const struct ss_format_options *options, FILE *out)
{
	uint32_t count = (uint32_t)profile->threads.count;
	_cleanup_free_ uint32_t *numbers = calloc(count + 1, sizeof(*numbers));
	struct ss_error *error = NULL;

	if (!numbers)
		return ss_error_no_memory();
	for (uint32_t i = 0; i < count; i++)
		numbers[i] = i;
	qsort_r(numbers, count, sizeof(*numbers), compare_processes,
		ss_drop_const(profile));
	for (uint32_t at = 0; at < count && !error;)
		error = write_recorded_process(profile, numbers, options, out, &at);
	return error;
}

void ss_rows_write_failure(const struct ss_row_options *options, const char *host,
			   pid_t pid, uint64_t time_ns, const char *problem, FILE *out)
{
	const struct ss_process process = { .pid = pid,
					    .host = host,
					    .time_ns = time_ns };
	__attribute__((cleanup(rows_deinit))) struct rows rows = {
		.out = out,
		.options = options,
		.process = &process,
	};

	rows.id = new_id(options, pid, time_ns);
	write_snapshot_row(&rows, NULL, problem);
}

bool ss_rows_write_names(const struct ss_snapshot *snapshot, size_t index, const char *id,
			 FILE *out)
{
	const struct ss_task *thread = ss_snapshot_task(snapshot, SS_TASK_THREAD, index);
	const struct ss_frame *frames = ss_snapshot_frame(snapshot, thread, 0);
	struct rows rows = { .out = out };

	if (!frames[thread->frame_count - 1].symbol)
		return false;
	write_frame(&rows, frames, thread->frame_count, id);
	return true;
}

const struct ss_format ss_format_rows = {
	.name = "rows",
	.description = "for databases, see stacksnap-rows(5)",
	.write_snapshot = write_snapshot,
	.write_hang = write_hang,
	.write_profile = write_profile,
	.unfolded = true,
};
