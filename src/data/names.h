/*
 * The names of the values of enums, as JSON and the public functions have them.
 */
#ifndef SS_DATA_NAMES_H
#define SS_DATA_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "stacksnap.h"

struct ss_names {
	const char *const *names; /* by value; NULL: none, for the value 0 only */
	size_t count;
};

/* "unknown" for values that the table does not name. NULL: the value 0 if it has no name. */
const char *ss_names_at(const struct ss_names *names, uint64_t value);

extern const struct ss_names ss_names_end;
extern const struct ss_names ss_names_frame_kind;
extern const struct ss_names ss_names_task_kind;
extern const struct ss_names ss_names_task_status;
extern const struct ss_names ss_names_endless;
extern const struct ss_names ss_names_wait_kind;
extern const struct ss_names ss_names_wait_purpose;
extern const struct ss_names ss_names_lock_type;
extern const struct ss_names ss_names_owner_unknown;
extern const struct ss_names ss_names_fd_kind;
extern const struct ss_names ss_names_mode;
extern const struct ss_names ss_names_frame_source;
extern const struct ss_names ss_names_access;
extern const struct ss_names ss_names_child_scope;
extern const struct ss_names ss_names_ipc;

/* "stop", "live", "no-stop", "auto". Never NULL. */
const char *ss_mode_name(enum ss_mode value);

#endif
