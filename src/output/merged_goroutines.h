/*
 * Merges the goroutines of several snapshots of a Go program: how many of them did what, and in
 * how many of the snapshots. Two snapshots are compared in this way.
 */
#ifndef SS_OUTPUT_MERGED_GOROUTINES_H
#define SS_OUTPUT_MERGED_GOROUTINES_H

#include "output/format.h"
#include "output/goroutine_group.h"
#include "output/presence.h"

/* Goroutines with the same functions on their stacks that do the same, in Go's words; of one
   runtime of Go, if a process has several. */
struct ss_merged_goroutine {
	struct ss_presence presence; /* in the snapshots that were read */
	/* Those of the last snapshot, ascending by id */
	SS_VECTOR(const struct ss_goroutine *) members;
	SS_VECTOR(uint64_t) first; /* the ids in the first snapshot, ascending */
	size_t same; /* how many goroutines are in the first and the last one */
};

struct ss_merged_goroutines {
	struct ss_merged_goroutine *items; /* the largest first */
	size_t count;
	size_t own_count; /* without those on a thread, which are behind the others */
	/* Snapshots in which goroutines were read: a Go program always has one. Others do not
	   count. */
	size_t read;
	size_t first_read; /* the first of these, */
	size_t last_read;  /* and the last one */
	size_t unread; /* goroutines: the most that could not be read in one of them */
	bool several;  /* a snapshot has goroutines of several runtimes of Go */
	const char *problem; /* of the last snapshot that has one; or NULL */
};

/* NULL without memory. */
struct ss_merged_goroutines *
ss_merged_goroutines_new(const struct ss_snapshots *snapshots);
void ss_merged_goroutines_free(struct ss_merged_goroutines *merged);

/* Why two snapshots are not compared: goroutines were read in one of them only; or NULL. */
const char *ss_merged_goroutines_denial(const struct ss_merged_goroutines *merged);

SS_DEFINE_CLEANUP(struct ss_merged_goroutines, ss_merged_goroutines,
		  ss_merged_goroutines_free)

/* What changed from the first to the last snapshot: "unchanged", "grown", "shrunk", "new" or
   "gone"; of a group that was there only in between "passing". */
const char *ss_merged_goroutine_change(const struct ss_merged_goroutine *group);

#endif
