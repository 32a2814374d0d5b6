/*
 * What the sandboxed child requests to complete stacks of threads that were not stopped: their
 * registers, for which ss_capture_complete() stops them.
 */
#ifndef SS_CLI_REGISTERS_H
#define SS_CLI_REGISTERS_H

#include <stdbool.h>

#include "stacksnap.h"

/* Whether unwinding needs registers that were not read. A thread in state D would not
   stop, so it does not count. */
bool ss_registers_are_needed(const struct ss_snapshot *snapshot,
			     const struct ss_thread *thread);

/* Requests the registers of the threads whose stacks cannot be unwound without; *ret says
   whether there are any. Errors: NO_MEMORY, SYSTEM. */
struct ss_error *ss_registers_request(const struct ss_sandbox_attempt *attempt,
				      const struct ss_snapshot *snapshot, bool *ret);

/* Whether these are the bytes of such a request, and not one of cli/file_requests.h. */
bool ss_registers_is_request(const void *bytes, size_t size);

/* The threads of a request, whose bytes are untrusted, to be freed. NULL: no memory. */
pid_t *ss_registers_read_request(const void *bytes, size_t size, size_t *ret_count);

#endif
