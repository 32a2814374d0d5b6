/*
 * Errors: a code for decisions, a message that names the cause, and a remedy if one is known.
 * NULL is success.
 */
#ifndef SS_BASE_ERROR_H
#define SS_BASE_ERROR_H

#include "stacksnap.h"

#include "base/cleanup.h"

/* The analyzers of clang 14 and gcc 12 ignore returns_nonnull, and would report what happens after
   an error that is NULL; gcc's optimizer would remove the check because of it. */
#if defined(__clang_analyzer__) || defined(SS_ANALYZE)
#define SS_NEW_ERROR warn_unused_result
#else
#define SS_NEW_ERROR returns_nonnull, warn_unused_result
#endif

/* A new error with a formatted message. Without memory it is a constant error, which
   ss_error_free() accepts; never NULL. */
struct ss_error *ss_error_new(enum ss_error_code code, const char *format, ...)
	__attribute__((format(printf, 2, 3), SS_NEW_ERROR));

/* The message is "MESSAGE: strerror(errnum)". The code follows from errnum: NO_MEMORY,
   NO_PROCESS, DENIED or else SYSTEM. */
struct ss_error *ss_error_new_errno(int errnum, const char *format, ...)
	__attribute__((format(printf, 2, 3), SS_NEW_ERROR));

struct ss_error *ss_error_no_memory(void) __attribute__((SS_NEW_ERROR));

/* Whether the threads of a process may be listed at most. NULL: false. */
static inline bool ss_error_is_refusal(const struct ss_error *error)
{
	return error && (ss_error_code(error) == SS_ERROR_DENIED ||
			 ss_error_code(error) == SS_ERROR_TRACED);
}

/* Adds a remedy to a new error and returns that error. */
struct ss_error *ss_error_with_remedy(struct ss_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3), SS_NEW_ERROR));

#if defined(__clang_analyzer__) || defined(SS_ANALYZE)
static inline struct ss_error *ss_error_known(struct ss_error *error)
{
	if (!error)
		abort();
	return error;
}
#define ss_error_new(...) ss_error_known(ss_error_new(__VA_ARGS__))
#define ss_error_new_errno(...) ss_error_known(ss_error_new_errno(__VA_ARGS__))
#define ss_error_no_memory() ss_error_known(ss_error_no_memory())
#define ss_error_with_remedy(...) ss_error_known(ss_error_with_remedy(__VA_ARGS__))
#endif

SS_DEFINE_CLEANUP(struct ss_error, ss_error, ss_error_free)
#define _cleanup_error_ _cleanup_(ss_error_cleanup)

#endif
