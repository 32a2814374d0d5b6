/*
 * Pointers of the generational ZGC. In objects, and in handles of the VM, they are coloured: low
 * bits tell which phase of the collector has last seen to them, and by how much the address is
 * shifted. A colour that is not the current one may belong to an object that has been moved since;
 * the tables of what a collection moves tell where it is. On stacks of threads, addresses have no
 * colours.
 *
 * The layout follows src/hotspot/share/gc/z of OpenJDK: zAddress.hpp, zBarrier.inline.hpp,
 * zForwarding.hpp, zForwardingEntry.hpp, zGranuleMap.hpp, zHash.inline.hpp, zHeap.hpp.
 */
#ifndef SS_RUNTIME_HOTSPOT_ZGC_H
#define SS_RUNTIME_HOTSPOT_ZGC_H

#include "runtime/hotspot/layout.h"

/* A table of a generation: for each 2 MiB of the heap, what is moved from there. */
struct ss_hotspot_moves {
	uint64_t count;
	uint64_t entries; /* address */
};

struct ss_hotspot_zgc {
	const struct ss_hotspot_layout *layout;
	const struct ss_memory *fresh; /* read again each time */
	bool used;		       /* the VM has this collector */
	/* Addresses of the current values */
	uint64_t good_mask_at;
	uint64_t shift_at;
	uint64_t offset_mask; /* of an address, without the bit of the heap */
	struct ss_hotspot_moves old;
	struct ss_hotspot_moves young;
};

/* False: the VM has this collector, but its tables are not as they should be. */
bool ss_hotspot_zgc_init(struct ss_hotspot_zgc *zgc,
			 const struct ss_hotspot_layout *layout,
			 const struct ss_memory *fresh);

/* The address that a coloured pointer stands for. False: not known, or not valid. */
bool ss_hotspot_zgc_find(const struct ss_hotspot_zgc *zgc, uint64_t pointer,
			 uint64_t *ret);

/* Whether an address without a colour, which may be that of before the last collection of a
   generation, is that of an object. */
bool ss_hotspot_zgc_is_same(const struct ss_hotspot_zgc *zgc, uint64_t address,
			    uint64_t object);

#endif
