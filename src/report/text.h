/*
 * The parts of the format "text" that its documents share.
 */
#ifndef SS_REPORT_TEXT_H
#define SS_REPORT_TEXT_H

#include "report/diff.h"
#include "report/format.h"
#include "report/group.h"
#include "report/merged.h"

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

/* Writes the goroutines, if there are any: first those that made no progress. */
struct ss_error *ss_text_write_goroutines(const struct ss_snapshot *snapshot,
					  const struct ss_format_options *options,
					  FILE *out);
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
   for. lasting: the cycles are none that pass, as far as is known. */
void ss_text_write_deadlocks(const struct ss_snapshot *snapshot, bool lasting,
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

/* Writes a symbol, truncated unless verbose. symbol is freed; NULL: "?". */
void ss_text_write_symbol(char *symbol, bool verbose, FILE *out);

/* Writes " at FILE:LINE", unless verbose with only the last components of a long path.
   Nothing if file is NULL. */
void ss_text_write_source(const char *file, uint32_t line, bool verbose, FILE *out);
/* "Queue.get, called at worker.py:41": the file and line are those of the caller of a function of a
   library. Otherwise "serve at worker.py:41". */
void ss_text_write_call(const char *function, bool of_library, const char *file,
			uint32_t line, bool verbose, FILE *out);

/* Writes a function, or with raw its module and offset, and the source; file may be NULL. */
void ss_text_write_function(const struct ss_frame *frame, const char *file, uint32_t line,
			    const struct ss_format_options *options, FILE *out);

/* Writes the frames of a thread, and why they end if they are incomplete. */
void ss_text_write_frames(const struct ss_snapshot *snapshot,
			  const struct ss_task *thread,
			  const struct ss_format_options *options, FILE *out);

#endif
