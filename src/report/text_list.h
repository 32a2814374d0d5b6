/*
 * Tasks that a document lists in parts, such as "stuck" or "moved". Those of a part that do the same are
 * one row.
 */
#ifndef SS_REPORT_TEXT_LIST_H
#define SS_REPORT_TEXT_LIST_H

#include "report/text.h"

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

#endif
