/*
 * Writes JSON piece by piece, so that memory does not grow with the document. The
 * output is ASCII only, without control characters that a terminal could interpret.
 *
 *	struct ss_json json = { .out = out };
 *
 *	ss_json_open(&json, NULL, '{');
 *	ss_json_text(&json, "name", thread->name);
 *	ss_json_open(&json, "frames", '[');
 *	ss_json_unsigned(&json, NULL, 7);
 *	ss_json_close(&json, ']');
 *	ss_json_close(&json, '}');
 *
 * key is NULL for the elements of an array. Keys are written as they are. Write errors are
 * left in ferror() of out. There is no library for this: jansson builds the whole document
 * in memory.
 */
#ifndef SS_REPORT_JSON_H
#define SS_REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "data/snapshot_fields.h"
#include "report/format.h"
#include "stacksnap.h"
#include "stacksnap/trace.h"

struct ss_json {
	FILE *out;
	bool has_previous; /* the next value follows another one */
	bool on_new_line;  /* the next value begins a line */
	/* For writers that shorten long documents: bytes, 0: no limit; and what was left out. */
	uint64_t max_size;
	uint64_t left_out;
	const struct ss_snapshot *snapshot; /* whose threads indexes refer to */
};

/* Begins an object ('{') or array ('['), and ends it ('}' or ']'). */
void ss_json_open(struct ss_json *json, const char *key, char bracket);
void ss_json_close(struct ss_json *json, char bracket);

/* Begins a new line for the next value, for tools that work on lines. */
void ss_json_new_line(struct ss_json *json);

/* text may contain any bytes: an invalid byte becomes the four characters \xNN. NULL: null. */
void ss_json_text(struct ss_json *json, const char *key, const char *text);
void ss_json_signed(struct ss_json *json, const char *key, int64_t value);
void ss_json_unsigned(struct ss_json *json, const char *key, uint64_t value);
void ss_json_bool(struct ss_json *json, const char *key, bool value);
void ss_json_null(struct ss_json *json, const char *key);

/* A string such as "0x7f00": numbers of JSON are exact only up to 2^53. */
void ss_json_hex(struct ss_json *json, const char *key, uint64_t value);

/* The value if it is known, else null. */
void ss_json_signed_if(struct ss_json *json, const char *key, bool known, int64_t value);
void ss_json_hex_if(struct ss_json *json, const char *key, bool known, uint64_t value);

/*
 * The parts that documents of the format "json" share. stacksnap-json(5) and
 * stacksnap-report-json(5) specify their members.
 */

/* Writes the members of a struct that are shown in these cases (enum ss_show_case); as an object
   with those that are derived from them, or null. */
void ss_json_members(struct ss_json *json, const struct ss_schema *schema,
		     const void *structure, uint64_t cases);
void ss_json_struct(struct ss_json *json, const char *key, const struct ss_schema *schema,
		    const void *structure, uint64_t cases);

/* The other documents. */
ss_format_write_snapshot ss_json_write_snapshot;    /* stacksnap-snapshot/1 */
ss_format_write_profile ss_json_write_profile;	    /* stacksnap-report/1 */
ss_format_write_profile ss_json_write_profile_diff; /* stacksnap-report-diff/1 */
ss_format_write_heap ss_json_write_heap;	    /* stacksnap-heap/1 */

/* Writes the member "process" of a document on a process. */
void ss_json_process(struct ss_json *json, const struct ss_process *process);

/* Writes where the program waits, in its own language; null: it does not, or has none. */
void ss_json_waits_in(struct ss_json *json, const struct ss_snapshot *snapshot,
		      const struct ss_task *thread);

/* Writes the members about goroutines and tasks of asyncio. blocked: only those goroutines that
   made no progress. False without memory. */
bool ss_json_tasks(struct ss_json *json, const struct ss_snapshot *snapshot,
		   bool blocked);

/* Writes the members about the tasks of a runtime of several snapshots of a process, see
   ss_text_write_groups(); null if none are known. False without memory. */
bool ss_json_merged(struct ss_json *json, const struct ss_snapshots *snapshots,
		    enum ss_task_kind kind, bool changes,
		    const struct ss_format_options *options);

/* Writes the changes of tasks of asyncio, see ss_diff_new(). False without memory. */
struct ss_diff;
bool ss_json_task_diff(struct ss_json *json, const struct ss_diff_input *input,
		       const struct ss_diff *threads,
		       const struct ss_format_options *options);

/* Writes what tasks of a runtime do that do the same, and why their stacks end. */
void ss_json_doing(struct ss_json *json, const struct ss_task *const *tasks,
		   size_t count);

/* Writes a frame, see ss_json_frames(). */
void ss_json_frame(struct ss_json *json, const struct ss_frame *frame, bool numbered);

/* Writes the frames of a task: numbered, with the index of their module; or with its path and
   build-id, for documents with frames of several snapshots, which number their modules
   differently. Null if there is no task. */
void ss_json_frames(struct ss_json *json, const char *key,
		    const struct ss_snapshot *snapshot, const struct ss_task *task,
		    bool numbered);

/* Writes the rows of these tables, which the HTML page has as well. */
void ss_json_processes(struct ss_json *json, const struct ss_profile *profile);
void ss_json_threads(struct ss_json *json, const struct ss_profile *profile);
void ss_json_modules(struct ss_json *json, const struct ss_profile *profile);

/* Writes the member "duration": percentiles of scopes. */
struct ss_durations;
void ss_json_durations(struct ss_json *json, const struct ss_durations *durations);

/* Writes what a thread waits for, as text; or null. */
void ss_json_wait_text(struct ss_json *json, const char *key, const struct ss_wait *wait);

/* Writes what a thread waits for, as an object; or null. */
void ss_json_wait(struct ss_json *json, const char *key, const struct ss_wait *wait);

/* Writes the members "deadlocks", "cycles", "blockers" and
   "application_locks" of a snapshot. */
void ss_json_deadlocks(struct ss_json *json, const struct ss_snapshot *snapshot);

#endif
