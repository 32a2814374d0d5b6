/*
 * Objects of the Java heap: which thread owns the java.util.concurrent lock for which a thread is
 * parked. From untrusted memory; the garbage collector moves objects at any time. So an owner
 * counts only if it is the object of a thread of the VM, and if everything that leads to it is the
 * same when it is read again.
 *
 * Where fields are follows src/hotspot/share/oops/fieldInfo.hpp of OpenJDK.
 */
#ifndef SS_RUNTIME_HOTSPOT_OBJECT_H
#define SS_RUNTIME_HOTSPOT_OBJECT_H

#include "runtime/hotspot/layout.h"

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

/* Fields of classes, whose offsets are found once. */
enum ss_hotspot_field {
	SS_HOTSPOT_FIELD_NAME, /* of Thread */
	SS_HOTSPOT_FIELD_ID,
	SS_HOTSPOT_FIELD_HOLDER, /* from 19 on: it has the next two */
	SS_HOTSPOT_FIELD_PRIORITY,
	SS_HOTSPOT_FIELD_DAEMON,
	SS_HOTSPOT_FIELD_CHARACTERS, /* of String */
	SS_HOTSPOT_FIELD_CODER,	     /* from 9 on: 0: of one byte each */
	SS_HOTSPOT_FIELDS,
};

struct ss_hotspot_objects {
	const struct ss_hotspot_layout *layout;
	const struct ss_memory *memory; /* for what does not change */
	const struct ss_memory *fresh;	/* read again each time */
	bool tried;
	bool usable;
	struct ss_hotspot_zgc zgc;
	bool compact; /* the class of an object is in its mark */
	/* Compressed pointers, to objects and to their classes; shift -1: they are not
	   compressed */
	uint64_t base;
	uint64_t class_base;
	int32_t shift;
	int32_t class_shift;
	uint32_t blocker; /* offset of Thread.parkBlocker; 0: not known yet */
	uint32_t owner;	  /* of AbstractOwnableSynchronizer.exclusiveOwnerThread */
	uint32_t fields[SS_HOTSPOT_FIELDS]; /* offsets; 0: not known yet */
};

/* The object that a handle of the VM refers to. */
bool ss_hotspot_handle_read(struct ss_hotspot_objects *objects, uint64_t handle,
			    uint64_t *ret);

/* Whether an address that a thread has noted, in which pointers have no colours, is that of an
   object. Not certain if the collector moves objects while threads run: then several threads may
   have such an address. */
bool ss_hotspot_is_object(const struct ss_hotspot_objects *objects, uint64_t address,
			  uint64_t object);

/* The objects of a JavaThread: its Thread, and the virtual one that it executes. 0: none. */
void ss_hotspot_thread_objects(struct ss_hotspot_objects *objects, uint64_t thread,
			       uint64_t ret[2]);

enum { SS_HOTSPOT_NAME_MAX = 255 }; /* UTF-16 code units; the others are left out */

/* What a Thread object says. Its bytes can be compared. */
struct ss_hotspot_thread_object {
	uint64_t id; /* Thread.threadId() */
	uint32_t priority;
	uint32_t daemon;
	char name[3 * SS_HOTSPOT_NAME_MAX + 1]; /* UTF-8 */
};

/* The Thread object of a JavaThread, read from objects->fresh once. False: it has none, or it
   cannot be read. */
bool ss_hotspot_thread_object_read(struct ss_hotspot_objects *objects, uint64_t thread,
				   struct ss_hotspot_thread_object *ret);

/* The lock for which a JavaThread is parked, and the Thread object that owns it. False: it is
   parked for something else, or not known. */
bool ss_hotspot_parked_for(struct ss_hotspot_objects *objects, uint64_t thread,
			   uint64_t *ret_lock, uint64_t *ret_owner);

/* Whether the loader of java.lang.Thread, the class of a JavaThread's object, has loaded none of these
   classes. False, too, if it is not known. */
bool ss_hotspot_lacks_classes(struct ss_hotspot_objects *objects, uint64_t thread,
			      const char *const *names, size_t count);

#endif
