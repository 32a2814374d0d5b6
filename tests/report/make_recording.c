/*
 * make_recording FILE < DESCRIPTION: writes a recording. Each line of the description is a
 * keyword and its arguments. Objects of a kind are numbered from 0 in the order of their
 * lines. In text, %XX is a byte, and "-" means none. The first line, with times in
 * nanoseconds:
 *
 * begin MONOTONIC WALL PERIOD SCOPE HOST MACHINE BOOT-ID (SCOPE a number of enum ss_recording_scope)
 *
 * process PID NAME EXECUTABLE BEGIN
 *
 * thread PROCESS TID NAME
 *
 * module PROCESS PATH BUILD-ID BASE SIZE BIAS LOADED
 *
 * unload MODULE TIME
 *
 * stack END FRAME... (innermost first, MODULE:OFFSET or -:ADDRESS; all but the first are
 * return addresses; python:FUNCTION:FILE:LINE is the call of a runtime, and the frame after
 * such calls the one for which they stand)
 *
 * wait THREAD OWNER DEADLOCK KIND TEXT (OWNER a number or -1, DEADLOCK 0 or 1)
 *
 * tick MONOTONIC WALL MISSED
 *
 * sample THREAD STACK STATE CPU-US CALL ARGUMENT OWNER (of the last tick; CALL a number or -1;
 * OWNER the id of a thread of the process, or -1: not known)
 *
 * cut (at the end: no summary is written)
 *
 * end REASON (of the summary, a number of enum ss_recording_end)
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "data/recording_format.h"
#include "data/recording_writer.h"
#include "stacksnap/record.h"

struct maker {
	int fd;
	struct ss_writer *writer;
	SS_VECTOR(uint32_t) processes;
	SS_VECTOR(uint32_t) threads;
	SS_VECTOR(uint32_t) modules;
	SS_VECTOR(uint32_t) stacks;
	SS_VECTOR(struct ss_frame_record) frames;
	SS_VECTOR(struct ss_sample_record) samples;
	struct ss_tick_record tick;
	bool has_tick;
	bool cut;
	enum ss_recording_end end;
};

static void die(const char *why)
{
	(void)fprintf(stderr, "make_recording: %s\n", why);
	exit(1);
}

static void check(struct ss_error *error)
{
	if (error)
		die(ss_error_message(error));
}

#define ADD(list, value)                                                                 \
	do {                                                                             \
		__typeof__((list)->items) slot_ = ss_vector_push(list);                  \
		if (!slot_)                                                              \
			die("no memory");                                                \
		*slot_ = (value);                                                        \
	} while (0)

static char *word(char **line)
{
	char *found = strsep(line, " \n");

	if (!found)
		die("an argument is missing");
	return found;
}

static uint64_t number(char **line)
{
	return strtoull(word(line), NULL, 0);
}

/* In place. */
static const char *text(char **line)
{
	char *bytes = word(line);
	char *to = bytes;

	if (strcmp(bytes, "-") == 0)
		return NULL;
	for (const char *from = bytes; *from; from++) {
		const char hex[] = { from[0] == '%' ? from[1] : '0',
				     from[0] == '%' ? from[2] : '0', '\0' };
		if (*from == '%')
			from += 2;
		*to++ = hex[0] != '0' || hex[1] != '0' ? (char)strtoul(hex, NULL, 16) :
							 *from;
	}
	*to = '\0';
	return bytes;
}

static uint32_t handle(const uint32_t *items, size_t count, uint64_t index)
{
	if (index >= count)
		die("no object has this number");
	return items[index];
}

#define HANDLE(list, index) handle((list).items, (list).count, index)

static void begin(struct maker *maker, char *line)
{
	struct ss_writer_options options = {
		.monotonic_ns = number(&line),
		.wall_ns = number(&line),
		.period_ns = number(&line),
		.scope = number(&line),
	};

	options.host = text(&line);
	options.machine = text(&line);
	const struct ss_recording_about about = { .boot_id = text(&line) };
	options.about = &about;
	check(ss_writer_new(maker->fd, &options, &maker->writer));
}

static void add_process(struct maker *maker, char *line)
{
	pid_t pid = (pid_t)number(&line);
	const char *name = text(&line);
	const char *executable = text(&line);

	ADD(&maker->processes, ss_writer_add_process(maker->writer, pid, 1, name,
						     executable, number(&line)));
}

static void add_thread(struct maker *maker, char *line)
{
	uint32_t process = HANDLE(maker->processes, number(&line));
	pid_t tid = (pid_t)number(&line);

	ADD(&maker->threads,
	    ss_writer_add_thread(maker->writer, process, tid, text(&line), 0));
}

static void add_module(struct maker *maker, char *line)
{
	uint32_t process = HANDLE(maker->processes, number(&line));
	struct ss_module module = { .path = text(&line) };

	module.build_id = text(&line);
	module.base = number(&line);
	module.size = number(&line);
	uint64_t bias = number(&line);
	ADD(&maker->modules,
	    ss_writer_add_module(maker->writer, process, &module, bias, number(&line)));
}

/* The call of a runtime, without its kind. */
static struct ss_frame_record call_of(char *frame)
{
	struct ss_frame_record call = { .module = SS_ID_NONE,
					.flags = SS_FROM_RUNTIME << SS_FRAME_SOURCE_SHIFT,
					.kind = SS_FRAME_PYTHON };
	char *function = strsep(&frame, ":");
	char *file = strsep(&frame, ":");

	if (!frame)
		die("a call of a runtime is FUNCTION:FILE:LINE");
	call.function = text(&function);
	call.file = text(&file);
	call.line = (uint32_t)strtoul(frame, NULL, 0);
	return call;
}

static void add_stack(struct maker *maker, char *line)
{
	uint64_t end = number(&line);
	bool after_call = false;

	maker->frames.count = 0;
	while (line && *line) {
		char *frame = word(&line);
		const char *module = strsep(&frame, ":");
		if (!frame)
			break;
		if (strcmp(module, "python") == 0) {
			ADD(&maker->frames, call_of(frame));
			after_call = true;
			continue;
		}
		struct ss_frame_record written = {
			.module = SS_ID_NONE,
			.flags = (maker->frames.count ? SS_FRAME_CALL : 0) |
				 (after_call ? SS_FRAME_REPLACED : 0),
			.value = strtoull(frame, NULL, 0),
		};
		after_call = false;
		if (strcmp(module, "-") != 0)
			written.module =
				HANDLE(maker->modules, strtoull(module, NULL, 0));
		ADD(&maker->frames, written);
	}
	ADD(&maker->stacks, ss_writer_stack(maker->writer, maker->frames.items,
					    maker->frames.count, (enum ss_end)end, NULL));
}

static const struct ss_wait mutex = { .kind = SS_WAIT_MUTEX,
				      .lock = SS_LOCK_MUTEX,
				      .address = 0x10,
				      .syscall_number = -1,
				      .timeout_ns = -1,
				      .left_ns = -1,
				      .fd = -1,
				      .ipc_id = -1,
				      .command = -1 };

static void add_wait(struct maker *maker, char *line)
{
	struct ss_recorded_wait wait = { .owner = SS_ID_NONE, .wait = mutex };

	wait.thread = HANDLE(maker->threads, number(&line));
	long owner = strtol(word(&line), NULL, 0);
	if (owner >= 0)
		wait.owner = HANDLE(maker->threads, (uint64_t)owner);
	wait.in_cycle = number(&line);
	wait.wait.symbol = text(&line);
	ss_writer_wait(maker->writer, &wait);
}

static void end_tick(struct maker *maker)
{
	if (maker->has_tick)
		check(ss_writer_tick(maker->writer, &maker->tick, maker->samples.items,
				     maker->samples.count));
	maker->has_tick = false;
	maker->samples.count = 0;
}

static uint32_t add_call(struct maker *maker, long call, char *line)
{
	uint64_t argument = number(&line);
	struct ss_wait wait = mutex;

	const char *owner = line ? word(&line) : NULL;

	wait.owner_tid = owner && *owner ? (pid_t)strtol(owner, NULL, 0) : -1;
	wait.owner_name = "owner";
	return ss_writer_call(maker->writer, call, argument,
			      wait.owner_tid < 0 ? NULL : &wait);
}

static void add_sample(struct maker *maker, char *line)
{
	struct ss_sample_record sample = { .call = SS_ID_NONE };

	sample.thread = HANDLE(maker->threads, number(&line));
	sample.stack = HANDLE(maker->stacks, number(&line));
	sample.state = word(&line)[0];
	sample.cpu_us = number(&line);
	long call = strtol(word(&line), NULL, 0);
	if (call >= 0)
		sample.call = add_call(maker, call, line);
	ADD(&maker->samples, sample);
}

static void take_line(struct maker *maker, char *line)
{
	const char *what = word(&line);

	if (strcmp(what, "begin") == 0) {
		begin(maker, line);
	} else if (strcmp(what, "process") == 0) {
		add_process(maker, line);
	} else if (strcmp(what, "thread") == 0) {
		add_thread(maker, line);
	} else if (strcmp(what, "module") == 0) {
		add_module(maker, line);
	} else if (strcmp(what, "unload") == 0) {
		uint32_t module = HANDLE(maker->modules, number(&line));
		ss_writer_end_module(maker->writer, module, number(&line));
	} else if (strcmp(what, "stack") == 0) {
		add_stack(maker, line);
	} else if (strcmp(what, "wait") == 0) {
		add_wait(maker, line);
	} else if (strcmp(what, "sample") == 0) {
		add_sample(maker, line);
	} else if (strcmp(what, "tick") == 0) {
		end_tick(maker);
		maker->tick.monotonic_ns = number(&line);
		maker->tick.wall_ns = number(&line);
		maker->tick.missed = number(&line);
		maker->has_tick = true;
	} else if (strcmp(what, "cut") == 0) {
		maker->cut = true;
	} else if (strcmp(what, "end") == 0) {
		maker->end = (enum ss_recording_end)number(&line);
	} else {
		die("unknown keyword");
	}
}

int main(int argc, char **argv)
{
	struct maker maker = { .end = SS_RECORDING_STOPPED };
	char *line = NULL;
	size_t size = 0;

	if (argc != 2)
		die("usage: make_recording FILE");
	maker.fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (maker.fd < 0)
		die("cannot create the file");
	while (getline(&line, &size, stdin) > 0)
		take_line(&maker, line);
	end_tick(&maker);
	struct ss_summary summary = { .reason = maker.end };
	if (!maker.cut)
		check(ss_writer_finish(maker.writer, &summary));
	ss_writer_free(maker.writer);
	ss_vector_free(&maker.processes);
	ss_vector_free(&maker.threads);
	ss_vector_free(&maker.modules);
	ss_vector_free(&maker.stacks);
	ss_vector_free(&maker.frames);
	ss_vector_free(&maker.samples);
	free(line);
	return 0;
}
