/*
 * Reads memory after a capture: see struct ss_late_reader in stacksnap.h.
 */
#include <unistd.h>

#include "base/clock.h"
#include "base/search.h"
#include "data/pipeline.h"
#include "capture/tasks.h"

/* A stack of 10,000 Python functions is 2 MiB, with 16 KiB read for each call. */
enum { CALLS_MAX = 200000 };
static const size_t bytes_max = (size_t)256 << 20;

enum { TIMEOUT_MS = 10000 };

struct ss_late_reader {
	const struct ss_capture *capture;
	struct ss_target *target;
	struct ss_process_memory memory;
	struct ss_buffer text;
	size_t bytes_left;
	size_t calls_left;
	unsigned waits_left;
};

struct ss_error *ss_late_reader_new(const struct ss_capture *capture,
				    struct ss_target *target, struct ss_late_reader **ret)
{
	pid_t live = ss_target_find_live(target);
	struct ss_error *error = ss_target_check(target);

	if (error)
		return error;
	if (live == 0 || target->listing)
		return ss_target_missing(target);
	struct ss_late_reader *reader = calloc(1, sizeof(*reader));
	if (!reader)
		return ss_error_no_memory();
	*reader = (struct ss_late_reader){
		.capture = capture,
		.target = target,
		.memory = { .tid = live,
			    .mem_fd = ss_target_open_task(target, live, "mem"),
			    .pagemap_fd = ss_target_open_task(target, live, "pagemap"),
			    .deadline_ns =
				    ss_now_ns() + (uint64_t)TIMEOUT_MS * SS_NS_PER_MS },
		.bytes_left = bytes_max,
		.calls_left = CALLS_MAX,
		.waits_left = SS_STILL_WAITS,
	};
	*ret = reader;
	return NULL;
}

void ss_late_reader_free(struct ss_late_reader *reader)
{
	if (!reader)
		return;
	close_cleanup(&reader->memory.mem_fd);
	close_cleanup(&reader->memory.pagemap_fd);
	ss_buffer_deinit(&reader->text);
	free(reader);
}

void ss_late_reader_read_all(struct ss_late_reader *reader, unsigned timeout_ms)
{
	reader->bytes_left = reader->calls_left = SIZE_MAX;
	reader->memory.deadline_ns = ss_now_ns() + timeout_ms * SS_NS_PER_MS;
	reader->memory.no_swap = true;
}

size_t ss_late_reader_read(void *data, uint64_t address, void *bytes, size_t size)
{
	struct ss_late_reader *reader = data;
	struct ss_piece piece = { .address = address, .bytes = bytes, .size = size };

	if (size > reader->bytes_left || reader->calls_left == 0)
		return 0;
	reader->bytes_left -= size;
	reader->calls_left--;
	ss_process_memory_read_present(&reader->memory, &piece, 1);
	return piece.done;
}

bool ss_late_reader_check(void *data, pid_t tid)
{
	struct ss_late_reader *reader = data;
	const struct ss_capture *capture = reader->capture;
	const struct ss_capture_thread *thread = ss_capture_find_thread(capture, tid);

	if (!thread || reader->calls_left == 0)
		return false;
	reader->calls_left--;
	return ss_still_check(&(struct ss_still){ .capture = capture,
						  .target = reader->target,
						  .memory = &reader->memory,
						  .text = &reader->text,
						  .waits_left = &reader->waits_left },
			      thread);
}
