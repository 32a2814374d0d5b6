/*
 * What the tool needs of a trace besides stacksnap/trace.h.
 */
#ifndef SS_TRACE_TRACE_H
#define SS_TRACE_TRACE_H

#include "stacksnap/record.h"
#include "stacksnap/trace.h"

/* The number of bytes of a page. Whether the page with this address is in memory or in swap;
   false also if this cannot be read. */
size_t ss_trace_page_size(void);
bool ss_trace_is_resident(const struct ss_trace *trace, uint64_t address);

/* The file of the setting by which the process, or any if it has ended, gets transparent huge pages
   without asking for them; NULL: it does not. A huge page is one page fault, and its size is not in
   the sample. */
const char *ss_trace_huge_pages_file(const struct ss_trace *trace);

/*
 * Writes the events of a trace to a recording, for ss_recording_open(). Each hit and each entry
 * becomes a sample; without a stack, its stack is the scopes that the thread is in.
 */
struct ss_trace_recorder;

/* Begins a recording in the empty file fd, which it owns. Trace and target must outlive it.
   Errors: SYSTEM, NO_MEMORY. */
struct ss_error *ss_trace_recorder_new(const struct ss_trace *trace,
				       struct ss_target *target, int fd,
				       struct ss_trace_recorder **ret);
void ss_trace_recorder_free(struct ss_trace_recorder *recorder);
/* Adds an event; each is added once, in its order. Errors: SYSTEM (the disk is full),
   NO_MEMORY. */
struct ss_error *ss_trace_recorder_add(struct ss_trace_recorder *recorder,
				       const struct ss_trace_event *event);
/* Completes the file, after ss_trace_end(). Errors: as ss_trace_recorder_add(). */
struct ss_error *ss_trace_recorder_finish(struct ss_trace_recorder *recorder,
					  enum ss_recording_end end);
/* The size of the file so far. */
uint64_t ss_trace_recorder_size(const struct ss_trace_recorder *recorder);

#endif
