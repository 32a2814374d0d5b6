/*
 * Reads memory of a process after its capture.
 */
#ifndef SS_CAPTURE_LATE_READER_H
#define SS_CAPTURE_LATE_READER_H

#include "stacksnap.h"

struct ss_capture;

/*
 * Reads memory of the target after the capture, without stopping a thread: what unwinding
 * needs for the frames of runtimes. Its functions have the types that struct ss_unwind_options
 * wants, with the reader as data. Memory that is not present is not read, and the total is
 * limited. Capture and target must outlive the reader. Errors: NO_PROCESS, NO_MEMORY.
 */
struct ss_late_reader;
struct ss_error *ss_late_reader_new(const struct ss_capture *capture,
				    struct ss_target *target,
				    struct ss_late_reader **ret);
void ss_late_reader_free(struct ss_late_reader *reader);
size_t ss_late_reader_read(void *data, uint64_t address, void *bytes, size_t size);
bool ss_late_reader_check(void *data, pid_t tid);
/* Replaces the limits of what is read in all: bytes, and time from now. no_swap: pages in swap
   are not read, which would bring them back into memory. */
void ss_late_reader_set_limits(struct ss_late_reader *reader, uint64_t max_bytes,
			       unsigned timeout_ms, bool no_swap);

#endif
