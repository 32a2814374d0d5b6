/*
 * The parts of the format "text" that its documents share.
 */
#ifndef SS_REPORT_TEXT_H
#define SS_REPORT_TEXT_H

#include "report/diff.h"
#include "report/format.h"
#include "report/group.h"
#include "report/profile_condense.h"
#include "report/profile_waits.h"

/* How many lines of a kind to write. */
static inline size_t ss_text_most(const struct ss_format_options *options, size_t most)
{
	return options->verbose ? SIZE_MAX : most;
}

/* The other documents. */
ss_format_write_hang ss_text_write_hang;
ss_format_write_profile ss_text_write_profile;
ss_format_write_profile ss_text_write_profile_diff;
ss_format_write_diff ss_text_write_diff;
ss_format_write_heap ss_text_write_heap;

/* Writes the first line: name, pid, program and time. */
void ss_text_write_process(const struct ss_process *process, bool color, FILE *out);

/* Writes ": worker-* 4711-4722" and the end of the line; of goroutines their ids. Without memory they
   are not sorted. */
void ss_text_write_list(const struct ss_task *const *tasks, size_t count,
			const struct ss_format_options *options, FILE *out);

/* Writes "4711 (worker)". */
void ss_text_write_thread(pid_t tid, const char *name,
			  const struct ss_format_options *options, FILE *out);

/* Writes a line for each distinct wait of the threads; nothing if none is known. */
struct ss_error *ss_text_write_waits(const struct ss_task *const *threads, size_t count,
				     const char *indent,
				     const struct ss_format_options *options, FILE *out);

/* The same for any waits, some of which may be NULL. */
struct ss_error *ss_text_write_waits_of(const struct ss_wait *const *waits, size_t count,
					const char *indent,
					const struct ss_format_options *options,
					FILE *out);

/* Writes the tasks of a kind that are merged from these snapshots: of a runtime those that have
   stacks of their own, or why there are none. With changes what became of those of the first one.
   goroutines: those that threads run; or NULL. */
struct ss_error *ss_text_write_groups(const struct ss_snapshots *snapshots,
				      const struct ss_merged *merged,
				      const struct ss_merged *goroutines, bool changes,
				      const struct ss_format_options *options, FILE *out);

/* Writes the goroutines (first those that made no progress), or the tasks of asyncio, if there are any. */
struct ss_error *ss_text_write_kind(const struct ss_snapshot *snapshot,
				    enum ss_task_kind kind,
				    const struct ss_format_options *options, FILE *out);
/* Writes all tasks in groups, those of the program first. threads: merged, as merge says. */
struct ss_error *ss_text_write_tasks(const struct ss_snapshots *snapshots,
				     const struct ss_merged *threads, bool merge,
				     const struct ss_format_options *options, FILE *out);

/* Writes which tasks of asyncio are unchanged, moved, new or gone in the second of two snapshots. */
struct ss_error *ss_text_write_task_diff(const struct ss_diff_input *input,
					 const struct ss_diff *threads,
					 const struct ss_format_options *options,
					 FILE *out);

/* Writes the cycles of tasks that wait for each other. */
void ss_text_write_task_cycles(const struct ss_snapshot *snapshot,
			       const struct ss_format_options *options, FILE *out);

/* Writes the last line: how to get what is missing, if anything is. */
void ss_text_write_advice(const struct ss_format_options *options, FILE *out);

/* Writes what went wrong in the analysis, if anything did. */
void ss_text_write_problem(const char *problem, bool color, FILE *out);

/* Writes which cgroup froze the process, if any. */
void ss_text_write_frozen(const struct ss_process *process, bool color, FILE *out);

/* Writes deadlocks, threads that others wait for, and the locks of applications that threads wait
   for. progress: of the process, whose last snapshot it is; or NULL. */
void ss_text_write_deadlocks(const struct ss_snapshot *snapshot,
			     const struct ss_progress *progress,
			     const struct ss_format_options *options, FILE *out);

/* Where the program is in its own language (Python, Java, JavaScript): returns the index of the
   function of the language's library that it called, and in ret_program that of the
   function that called it; the same index if there is no such call. frame_count if the
   thread has only native frames. */
size_t ss_text_find_call(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 size_t *ret_program);

/* The same for the call in which a thread waits; frame_count also if it waits in none: it is stopped,
   or in a page fault. */
size_t ss_text_find_wait(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 size_t *ret_program);

/* Writes the two innermost frames of the program itself, without those of the library
   that waits; in the language of the program if a runtime executes it, with the function
   of the language's library that it called. */
void ss_text_write_where(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			 const struct ss_format_options *options, FILE *out);

/* Writes the frames that only one of the two stacks of a task has, and the innermost one of both. */
void ss_text_write_move(const struct ss_diff_input *input,
			const struct ss_task_change *change,
			const struct ss_format_options *options, FILE *out);

/* The changes of a comparison as items of lists, in the parts that find_part() returns: changes from
   one group to one group have equal keys. To be freed; NULL without memory. */
struct ss_text_item;
struct ss_text_item *
ss_text_change_items(const struct ss_diff_input *input, const struct ss_diff *diff,
		     unsigned (*find_part)(const struct ss_task_change *));

/* "Queue.get, called at worker.py:41": the file and line are those of the caller of a function of a
   library. Otherwise "serve at worker.py:41". */
void ss_text_write_call(const char *function, bool of_library, const char *file,
			uint32_t line, bool verbose, FILE *out);

/* Writes a function, or with raw its module and offset, and the source; file may be NULL. */
void ss_text_write_function(const struct ss_frame *frame, const char *file, uint32_t line,
			    const struct ss_format_options *options, FILE *out);

/* Writes a frame, with the end of the line. */
void ss_text_write_frame(const struct ss_frame *frame,
			 const struct ss_format_options *options, FILE *out);

/* Writes the frames of a thread, and why they end if they are incomplete. */
void ss_text_write_frames(const struct ss_snapshot *snapshot,
			  const struct ss_task *thread,
			  const struct ss_format_options *options, FILE *out);

/*
 * Tasks that a document lists in parts, such as "stuck" or "moved". Those of a part that do the same are
 * one row.
 */

struct ss_bundle_key {
	uint64_t stack; /* of what the tasks do */
	/* address of the lock that they wait for, if its owner is known; or 0 */
	uint64_t lock;
};

/* Items with equal keys. */
struct ss_bundle {
	const size_t *items; /* ascending */
	size_t count;	     /* at least 1 */
};

struct ss_bundles {
	struct ss_bundle *items; /* the largest first, then by their first item */
	size_t count;
	size_t item_count; /* of all */
	size_t *order;	   /* owned; the bundles point into it */
};

struct ss_text_item {
	unsigned part;
	struct ss_bundle_key key;
	const struct ss_task *task;
	const struct ss_wait *wait; /* which is written; or NULL */
};

/* The items of a part. NULL without memory. */
struct ss_bundles *ss_bundles_new(const struct ss_text_item *all, size_t count,
				  unsigned part);
void ss_bundles_free(struct ss_bundles *bundles);

SS_DEFINE_CLEANUP(struct ss_bundles, ss_bundles, ss_bundles_free)

/* Waits for locks with a known owner tell more one by one than by stack. wait may be NULL. */
static inline uint64_t ss_bundle_lock(const struct ss_wait *wait)
{
	return wait && wait->owner_tid ? wait->address : 0;
}

/* Threads. */
struct ss_text_list {
	const struct ss_text_item *items;
	size_t count;
	/* Writes the line above a part of so many threads. folded: they are not listed. */
	void (*write_title)(const void *data, unsigned part, size_t count, bool folded);
	/* Writes what the threads of a row do, in its line. */
	void (*write_activity)(const void *data, const struct ss_bundle *row);
	void (*write_place)(const void *data, size_t item);
	const void *data;
	size_t most; /* rows of a part, without -v */
	const struct ss_format_options *options;
	FILE *out;
};

/* Writes a part, if it has threads. Between two and fold_below of them are folded, unless the options
   ask for all. */
struct ss_error *ss_text_write_part(const struct ss_text_list *list, unsigned part,
				    size_t fold_below);

/*
 * The parts of the format "text" for a profile. Functions that return bool return false
 * without memory.
 */

/* Writes "name (module)"; a long name is truncated unless options are verbose. */
void ss_text_profile_name(const struct ss_profile *profile, uint64_t function,
			  const struct ss_format_options *options, FILE *out);

/* The same, or "libc.so.6 (no symbols: 214 addresses)" if places has several. */
void ss_text_profile_function(const struct ss_condensed *condensed, uint64_t function,
			      const struct ss_places *places,
			      const struct ss_format_options *options, FILE *out);

/* Writes an empty line and the heading. */
void ss_text_profile_heading(const char *text, const struct ss_format_options *options,
			     FILE *out);

/* " 12.3 %" */
void ss_text_profile_share(uint64_t part, uint64_t whole, FILE *out);

/* Writes the deadlocks of recorded snapshots, as ss_text_write_deadlocks(). */
bool ss_text_profile_deadlocks(const struct ss_profile *profile,
			       const struct ss_chain *chains,
			       const struct ss_format_options *options, FILE *out);

/* Writes what the other threads of recorded snapshots wait for. */
bool ss_text_profile_other_waits(const struct ss_profile *profile,
				 const struct ss_chain *chains,
				 const struct ss_format_options *options, FILE *out);

/* Writes the system calls in which threads slept, and the descriptor or futex of each. */
bool ss_text_profile_waits(const struct ss_profile *profile,
			   const struct ss_format_options *options, FILE *out);

/*
 * The screen of "stacksnap top": functions, threads and waits of the last seconds. It is made
 * in the sandbox, as lines that fit a terminal; strings of the target are escaped.
 */

enum ss_top_sort {
	SS_TOP_OWN = 0, /* functions: own share; threads: CPU time */
	SS_TOP_TOTAL,	/* functions: with what they call */
	SS_TOP_STATE,	/* threads: by state, then CPU time */
	SS_TOP_NAME,
};

/* The name for --sort; NULL after the last one. */
const char *ss_top_sort_name(size_t sort);

enum ss_top_part { SS_TOP_ALL = 0, SS_TOP_FUNCTIONS, SS_TOP_THREADS, SS_TOP_WAITS };

struct ss_top_view {
	unsigned lines;	  /* of the result; 0: no limit but rows */
	unsigned columns; /* 0: no limit */
	unsigned rows;	  /* of each part, without lines */
	enum ss_top_sort sort;
	enum ss_top_part part;
	bool idle;	    /* also samples and threads that sleep */
	const char *filter; /* part of a name, without regard to case; NULL: none */
	size_t skip;	    /* rows to leave out at the beginning of each part */
	bool color;
	/* What ss_format_top_waits wrote, or NULL: not known yet. Only shown, not read. */
	const char *waits;
	uint64_t waits_age_ns;
};

/* Writes the screen: a heading, and the parts. profile: the recordings of the last seconds;
   runs of threads that sleep are emptied. Errors: NO_MEMORY. */
struct ss_error *ss_top_write(struct ss_profile *profile, const struct ss_top_view *view,
			      FILE *out);

/* Writes one line for each wait of a snapshot, those for locks first. Not for users. */
extern const struct ss_format ss_format_top_waits;

#endif
