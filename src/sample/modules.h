/*
 * The modules of a process, and which were loaded and unloaded between two captures.
 */
#ifndef SS_SAMPLE_MODULES_H
#define SS_SAMPLE_MODULES_H

#include <sys/types.h>

#include "base/vector.h"
#include "data/capture.h"
#include "data/module.h"
#include "process/perf.h"
#include "process/target.h"
#include "sandbox/worker.h"

enum ss_module_state { SS_MODULE_MAPPED, SS_MODULE_LOADED, SS_MODULE_UNLOADED };

struct ss_module_entry {
	struct ss_module_impl *module; /* one reference */
	uint32_t id;		       /* the owner's */
	enum ss_module_state state;
};

struct ss_module_set {
	SS_VECTOR(struct ss_module_entry) items;
	size_t sorted; /* the first ones, sorted by the addresses of their objects */
};

/* Compares with the modules of a capture, each of which is in it once; NULL: all are
   unloaded. A module that is the same object has not changed. Unloaded modules are before
   loaded ones in items. ss_module_set_settle() must follow. False without memory. */
bool ss_module_set_update(struct ss_module_set *set, const struct ss_capture *capture);

/* Forgets unloaded modules; loaded ones can be found from now on. */
void ss_module_set_settle(struct ss_module_set *set);

/* The entry of a module, or NULL. */
const struct ss_module_entry *ss_module_set_find(const struct ss_module_set *set,
						 const struct ss_module_impl *module);

void ss_module_set_deinit(struct ss_module_set *set);

/*
 * Finds the build-ids that the kernel did not report: it lacks PROCMAP_QUERY (before Linux
 * 6.11), or the id is longer than 20 bytes. They are in the ELF notes of the modules'
 * files, which are untrusted input, so a confined child reads them. One child does so for
 * all modules that were loaded since the last one: processes load modules in batches.
 *
 * This is a part of sample/, the lowest room that may use both a process's modules
 * and a child (sandbox/).
 */

/* Finds missing build-ids of the modules of a capture. Each module is tried once. If the
   child cannot be created, or fails because of a module, pub.problem of the module says
   so. The child runs as the owner of the target, if that is permitted. Errors: NO_MEMORY. */
struct ss_error *ss_build_ids_find(const struct ss_capture *capture,
				   const struct ss_target *target);

/*
 * The side that runs in a confined child (build_ids_child.c): it reads ELF files.
 */

struct ss_build_id_batch {
	struct ss_module_impl *const *modules;
	size_t count;
};

/* What the child writes for each module of the batch that is not identified. */
struct ss_build_id_answer {
	uint32_t module; /* its index in the batch */
	uint32_t size;	 /* 0: it has no build-id */
	uint8_t build_id[SS_BUILD_ID_MAX];
};

/* An ss_job_work; data is a struct ss_build_id_batch. */
struct ss_error *ss_build_ids_read(void *data, struct ss_worker_page *page, int output);

/*
 * When modules were loaded, by the kernel's records, and those that were loaded and unloaded between
 * two looks at the address space.
 */

struct ss_capture;

enum { SS_MMAP_BUILD_ID_MAX = 20, SS_MMAP_PATH_MAX = 4096 };

/* What a process mapped with the right to execute it, or got that right to later. */
struct ss_mmap_event {
	pid_t pid;
	bool anonymous;	  /* not of a file, or of one whose path is not known */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t start;
	uint64_t size;
	uint64_t offset; /* in the file */
	uint8_t build_id[SS_MMAP_BUILD_ID_MAX];
	uint8_t build_id_size; /* 0: none is known (before Linux 5.12) */
	char path[SS_MMAP_PATH_MAX];
};

/* Of a hostile process; further ones are dropped. */
enum { SS_MODULE_LOADS_MAX = 1 << 14 };

/* Mappings whose places are kept: more than are made until a sample is looked at, which is after some
   20 ms, by a process that loads 1,000 libraries per second. */
enum { SS_RECENT_LOADS = 256 };

struct ss_recent_load {
	uint64_t time_ns;
	uint64_t start;
	uint64_t end;
};

/* Zeroed, it has none: nothing is dated. */
struct ss_module_loads {
	uint64_t last_ns;      /* the time of the last one, pending or not; 0: none */
	uint64_t last_code_ns; /* likewise, or of anonymous memory with code */
	SS_VECTOR(struct ss_mmap_event *) pending; /* owned; in the order of time */
	struct ss_recent_load *recent; /* a ring, owned; NULL: nothing was loaded yet */
	size_t recent_count;	       /* of all, also overwritten ones */
	uint64_t unknown_ns; /* others may have been mapped until then, anywhere */
};

void ss_module_loads_close(struct ss_module_loads *loads);

/* Adds one. Only the time counts of anonymous memory.
   False without memory. */
bool ss_module_loads_add(struct ss_module_loads *loads,
			 const struct ss_mmap_event *event);

/* Whether a file may have been mapped over an address since a time. */
bool ss_module_loads_covered(const struct ss_module_loads *loads, uint64_t address,
			     uint64_t since_ns);

/* When a module was loaded, which is no longer pending then: the last time before the memory map
   that shows it was read; later loads are not of this one. 0: not known. */
uint64_t ss_module_loads_date(struct ss_module_loads *loads,
			      const struct ss_module *module, uint64_t before_ns);

/* The time of the first pending load in the place of a module; 0: there is none. */
uint64_t ss_module_loads_first(const struct ss_module_loads *loads,
			       const struct ss_module *module);

/* The oldest pending load before a time: that of a module that is not mapped any more, or that was
   mapped again. The caller frees it. NULL: none. */
struct ss_mmap_event *ss_module_loads_take(struct ss_module_loads *loads,
					   uint64_t before_ns);

/* The module of a capture that such a load is of, or NULL. */
const struct ss_module_impl *ss_module_loads_find(const struct ss_mmap_event *event,
						  const struct ss_capture *capture);

/* The module of such a load. NULL without memory. */
struct ss_module_impl *ss_module_loads_make(const struct ss_mmap_event *event);

/*
 * What processes map to execute it: records of perf_event_open(2) (PERF_RECORD_MMAP2), dated by the
 * kernel. There is one event for each CPU, not for each thread. It needs CAP_PERFMON (or
 * CAP_SYS_ADMIN), or a perf_event_paranoid of 0 or less. The kernel reports no unmapping and no
 * mremap(2), and for processes that share their memory only the one that maps. For one thread at a
 * time.
 */

struct ss_load_reader {
	pid_t pid;
	struct ss_module_loads *loads; /* borrowed */
};

/* Zeroed, it is closed: nothing is reported. */
struct ss_load_feed {
	SS_VECTOR(struct ss_perf_ring) rings;
	uint64_t lost;	     /* records for which there was no room */
	uint64_t known_lost; /* of them, as of the last read */
	SS_VECTOR(struct ss_load_reader) readers;
};

/* Returns 0 or an error number: EACCES, EPERM or ENOSYS if this is not allowed; EMFILE if there are
   too few descriptors. */
int ss_load_feed_open(struct ss_load_feed *feed);
void ss_load_feed_close(struct ss_load_feed *feed);

static inline bool ss_load_feed_is_open(const struct ss_load_feed *feed)
{
	return feed->rings.count > 0;
}

/* What the process has mapped before is not reported, so it may have mapped anything until now.
   False: no memory. */
bool ss_load_feed_add(struct ss_load_feed *feed, pid_t pid,
		      struct ss_module_loads *loads);
void ss_load_feed_remove(struct ss_load_feed *feed, const struct ss_module_loads *loads);

/* Hands over what was mapped since the last call. False without memory. */
bool ss_load_feed_read(struct ss_load_feed *feed);

#endif
