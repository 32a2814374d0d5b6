/*
 * The modules of a process from one look to the next: which were loaded, which unloaded.
 */
#ifndef SS_RECORD_TRACKED_H
#define SS_RECORD_TRACKED_H

#include "base/vector.h"
#include "model/capture.h"

struct ss_tracked {
	struct ss_module_impl *module; /* one reference */
	uint32_t note;		       /* the owner's */
	bool seen;
};

struct ss_tracked_list {
	SS_VECTOR(struct ss_tracked) items;
	size_t sorted; /* so many are in the order of their objects' addresses */
};

/* Told of each module that came (to set its note) or went. */
typedef void ss_tracked_watcher(void *data, struct ss_tracked *module, bool loaded);

/* Compares with the modules of a capture; NULL: none is left. Unloads are told first. A
   module that is still the same object has not changed; in a capture each is there once.
   False without memory. */
bool ss_tracked_update(struct ss_tracked_list *list, const struct ss_capture *capture,
		       ss_tracked_watcher *watcher, void *data);

/* The entry of a module, or NULL. */
const struct ss_tracked *ss_tracked_find(const struct ss_tracked_list *list,
					 const struct ss_module_impl *module);

void ss_tracked_deinit(struct ss_tracked_list *list);

/* Address minus offset of a module; as the unwinder has it. */
uint64_t ss_tracked_bias(struct ss_module_impl *module);

#endif
