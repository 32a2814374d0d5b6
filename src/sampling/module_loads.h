/*
 * When modules were loaded, by the kernel's records, and those that were loaded and unloaded between
 * two looks at the address space.
 */
#ifndef SS_SAMPLING_MODULE_LOADS_H
#define SS_SAMPLING_MODULE_LOADS_H

#include "model/module.h"
#include "target/mmap_events.h"

/* Of a hostile process; further ones are dropped. */
enum { SS_MODULE_LOADS_MAX = 1 << 14 };

/* Zeroed, it is closed: nothing is dated. */
struct ss_module_loads {
	struct ss_mmap_events events;
	SS_VECTOR(struct ss_mmap_event *) pending; /* owned; in the order of time */
};

/* Returns 0 or an error number, as ss_mmap_events_open(). */
int ss_module_loads_open(struct ss_module_loads *loads);
void ss_module_loads_close(struct ss_module_loads *loads);

/* Reads what a process has mapped since the last call. Call it after the address space was
   read. False without memory. */
bool ss_module_loads_read(struct ss_module_loads *loads, pid_t pid);

/* The last time at which a module was loaded, which is no longer pending then. 0: not known. */
uint64_t ss_module_loads_date(struct ss_module_loads *loads,
			      const struct ss_module *module);

/* The oldest pending load before a time: that of a module that is not mapped any more, or that was
   mapped again. The caller frees it. NULL: none. */
struct ss_mmap_event *ss_module_loads_take(struct ss_module_loads *loads,
					   uint64_t before_ns);

/* The module of such a load. NULL without memory. */
struct ss_module_impl *ss_module_loads_make(const struct ss_mmap_event *event);

#endif
