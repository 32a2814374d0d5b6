/*
 * The modules of a process, and which were loaded and unloaded between two captures.
 */
#ifndef SS_SAMPLE_MODULE_SET_H
#define SS_SAMPLE_MODULE_SET_H

#include "base/vector.h"
#include "data/capture.h"
#include "data/module.h"
#include "process/target.h"
#include "sandbox/job.h"

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

#endif
