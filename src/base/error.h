/*
 * The error object: a code for decisions, a message that names the cause and,
 * where known, a remedy. NULL is success.
 */
#ifndef SS_BASE_ERROR_H
#define SS_BASE_ERROR_H

#include "stacksnap.h"

#include "base/cleanup.h"

/* A new error with a formatted message. Never NULL: without memory it is a
   constant that says so, which ss_error_free() accepts. */
struct ss_error *ss_error_new(enum ss_error_code code, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

/* SYSTEM (or NO_MEMORY, NO_PROCESS, DENIED by what errnum says):
   "MESSAGE: strerror(errnum)". */
struct ss_error *ss_error_new_errno(int errnum, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

struct ss_error *ss_error_no_memory(void)
	__attribute__((returns_nonnull, warn_unused_result));

/* Adds a remedy to an error that was just made, and returns that error. */
struct ss_error *ss_error_with_remedy(struct ss_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull, warn_unused_result));

SS_DEFINE_CLEANUP(struct ss_error, ss_error, ss_error_free)
#define _cleanup_error_ _cleanup_(ss_error_cleanup)

#endif
