/*
 * Errors: a code for decisions, a message that names the cause, and a remedy if one is known.
 * NULL is success.
 */
#ifndef SS_BASE_ERROR_H
#define SS_BASE_ERROR_H

#include "stacksnap.h"

#include "base/cleanup.h"

/* A new error with a formatted message. Without memory it is a constant error, which
   ss_error_free() accepts; never NULL. */
struct ss_error *ss_error_new(enum ss_error_code code, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

/* The message is "MESSAGE: strerror(errnum)". The code follows from errnum: NO_MEMORY,
   NO_PROCESS, DENIED or else SYSTEM. */
struct ss_error *ss_error_new_errno(int errnum, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

struct ss_error *ss_error_no_memory(void)
	__attribute__((returns_nonnull, warn_unused_result));

/* Adds a remedy to a new error and returns that error. */
struct ss_error *ss_error_with_remedy(struct ss_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

SS_DEFINE_CLEANUP(struct ss_error, ss_error, ss_error_free)
#define _cleanup_error_ _cleanup_(ss_error_cleanup)

#endif
