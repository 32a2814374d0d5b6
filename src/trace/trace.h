/*
 * What the tool needs of a trace besides stacksnap/trace.h.
 */
#ifndef SS_TRACE_TRACE_H
#define SS_TRACE_TRACE_H

#include "stacksnap/trace.h"

/* The number of bytes of a page. Whether the page with this address is in memory or in swap;
   false also if this cannot be read. */
size_t ss_trace_page_size(void);
bool ss_trace_is_resident(const struct ss_trace *trace, uint64_t address);

#endif
