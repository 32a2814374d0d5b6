/*
 * The modules of a process: reports which were loaded and unloaded between two captures.
 */
#ifndef SS_SAMPLE_MODULE_SET_H
#define SS_SAMPLE_MODULE_SET_H

#include "base/vector.h"
#include "data/capture.h"

struct ss_module_entry {
	struct ss_module_impl *module; /* one reference */
	uint32_t id;		       /* the owner's */
	bool mapped;
};

struct ss_module_set {
	SS_VECTOR(struct ss_module_entry) items;
	size_t sorted; /* the first ones, sorted by the addresses of their objects */
};

/* Called for each module that was loaded or unloaded. It may set the id of a loaded
   one. */
typedef void ss_module_change(void *data, struct ss_module_entry *entry, bool loaded);

/* Compares with the modules of a capture, each of which is in it once; NULL: all are
   unloaded. Unloaded modules are reported first. A module that is the same object has not
   changed. False without memory. */
bool ss_module_set_update(struct ss_module_set *set, const struct ss_capture *capture,
			  ss_module_change *change, void *data);

/* The entry of a module, or NULL. */
const struct ss_module_entry *ss_module_set_find(const struct ss_module_set *set,
						 const struct ss_module_impl *module);

void ss_module_set_deinit(struct ss_module_set *set);

#endif
