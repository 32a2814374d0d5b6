/*
 * The memory areas of a thread's frames whose mapping has been verified. Modules are loaded
 * and unloaded while a process is sampled, so an address may belong to different modules
 * over time. Therefore mappings are verified while the thread is stopped or blocked. The
 * areas to verify are those of the thread's previous frames.
 */
#ifndef SS_SAMPLE_AREA_CHECK_H
#define SS_SAMPLE_AREA_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SS_AREA_CHECK_MAX = 8 };

struct ss_area_check {
	uint64_t starts[SS_AREA_CHECK_MAX]; /* of the areas of recent frames */
	unsigned count;
	unsigned verified; /* one bit for each area */
	uint64_t leaf;	 /* start of the area of the program counter if verified, or 0 */
	bool incomplete; /* an unverified area could be verified at another attempt */
};

/* Marks all areas as unverified. */
void ss_area_check_clear(struct ss_area_check *areas);

/* Whether the mapping at an address is that of the captured address space. */
typedef bool ss_area_check_verify(void *data, uint64_t address);

/* Verifies all areas and the one of the program counter, while the thread cannot run.
   leaf: start of the area of pc; 0: none. */
void ss_area_check_run(struct ss_area_check *areas, uint64_t pc, uint64_t leaf,
		       ss_area_check_verify *verify, void *data);

bool ss_area_check_contains(const struct ss_area_check *areas, uint64_t start);

/* Sets the areas to verify from now on, in descending priority. */
void ss_area_check_remember(struct ss_area_check *areas, const uint64_t *starts,
			    size_t count);

#endif
