/*
 * The parts of the text format: the line that names the threads of a group, and
 * the lines of its frames.
 */
#ifndef SS_VIEW_TEXT_H
#define SS_VIEW_TEXT_H

#include "view/group.h"
#include "view/render.h"

/* One line such as
   12 threads, sleeping, stopped 0.31 ms at most: worker-* 4711-4722 */
struct ss_error *ss_text_write_threads(const struct ss_snapshot *snapshot,
				       const struct ss_group *group,
				       const struct ss_render_options *options,
				       FILE *out);

/* What they wait for, a line for each different thing; none where nothing is known. */
struct ss_error *ss_text_write_waits(const struct ss_snapshot *snapshot,
				     const struct ss_group *group,
				     const struct ss_render_options *options, FILE *out);

/* A line that says who froze it, if anybody did. */
void ss_text_write_frozen(const struct ss_process *process, bool color, FILE *out);

/* Circles of threads that wait for each other, and threads for which others wait. */
void ss_text_write_deadlocks(const struct ss_snapshot *snapshot,
			     const struct ss_render_options *options, FILE *out);

/* The two frames of the program itself, outside of the library that waits. */
void ss_text_write_where(const struct ss_snapshot *snapshot,
			 const struct ss_thread *thread,
			 const struct ss_render_options *options, FILE *out);

/* " at FILE:LINE"; a long path by its last two parts. file may be NULL: nothing. */
void ss_text_write_source(const char *file, uint32_t line, bool verbose, FILE *out);

/* The frames of a thread, and why they end if they are not whole. */
void ss_text_write_frames(const struct ss_snapshot *snapshot,
			  const struct ss_thread *thread,
			  const struct ss_render_options *options, FILE *out);

/* What a thread waits for, with a colour for who holds the lock, which comes last. */
void ss_text_write_wait(const struct ss_wait *wait, bool color, FILE *out);

#endif
