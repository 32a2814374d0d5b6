/*
 * What of HotSpot is read: where its structures have their fields, objects of the heap, compiled code.
 */
#ifndef SS_RUNTIME_HOTSPOT_HOTSPOT_H
#define SS_RUNTIME_HOTSPOT_HOTSPOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/intern.h"
#include "base/vector.h"
#include "data/memory.h"

/*
 * Where HotSpot keeps what describes its code and its threads. libjvm.so exports tables of its
 * structures for debuggers (gHotSpotVMStructs and others, src/hotspot/share/runtime/vmStructs.cpp
 * of OpenJDK), so that most offsets are data of the process. What the tables do not have is a
 * constant of the version.
 *
 * To add a version: compare frame_x86.hpp, nmethod.hpp, debugInfoRec.cpp and
 * compressedStream.hpp with those of the version before; add it to the table of versions in
 * layout.c, and to tests/e2e/test_java.py.
 */

/* Offsets of fields, sizes of types; of static fields (_AT) the address. */
enum ss_hotspot_value {
	SS_HOTSPOT_MAJOR_AT,
	SS_HOTSPOT_MINOR_AT,
	SS_HOTSPOT_SECURITY_AT,
	SS_HOTSPOT_HEAPS_AT,	    /* from 9 on */
	SS_HOTSPOT_HEAP_AT,	    /* up to 8 */
	SS_HOTSPOT_THREADS_AT,	    /* from 17 on */
	SS_HOTSPOT_FIRST_THREAD_AT, /* up to 11 */
	SS_HOTSPOT_THREAD_NEXT,	    /* up to 11 */
	SS_HOTSPOT_CALL_STUB_AT,
	SS_HOTSPOT_ARRAY_LENGTH, /* GrowableArray */
	SS_HOTSPOT_ARRAY_DATA,
	SS_HOTSPOT_HEAP_MEMORY,
	SS_HOTSPOT_HEAP_SEGMENTS,
	SS_HOTSPOT_HEAP_SHIFT,
	SS_HOTSPOT_SPACE_LOW,
	SS_HOTSPOT_SPACE_HIGH,
	SS_HOTSPOT_BLOCK_LENGTH,
	SS_HOTSPOT_BLOCK_USED,
	SS_HOTSPOT_BLOCK_SIZE,
	SS_HOTSPOT_BLOB_NAME,
	SS_HOTSPOT_BLOB_BYTES,
	SS_HOTSPOT_BLOB_FRAME_COMPLETE,
	SS_HOTSPOT_BLOB_FRAME_SIZE,
	SS_HOTSPOT_BLOB_CODE_BEGIN, /* from 9 to 22: pointers */
	SS_HOTSPOT_BLOB_CODE_END,
	SS_HOTSPOT_BLOB_CODE_OFFSET, /* 8, and from 23 on */
	SS_HOTSPOT_BLOB_DATA_OFFSET,
	SS_HOTSPOT_BLOB_MUTABLE,
	SS_HOTSPOT_BLOB_MUTABLE_BYTES,
	SS_HOTSPOT_BLOB_RELOCATIONS,
	SS_HOTSPOT_NMETHOD_METHOD,
	SS_HOTSPOT_NMETHOD_COMPILE_ID,
	SS_HOTSPOT_NMETHOD_ORIGINAL_PC,
	SS_HOTSPOT_NMETHOD_PCS,
	SS_HOTSPOT_NMETHOD_PCS_END,   /* up to 22 */
	SS_HOTSPOT_NMETHOD_SCOPES,    /* pointer; in 8 and from 23 on offset */
	SS_HOTSPOT_NMETHOD_METADATA,  /* up to 22 */
	SS_HOTSPOT_NMETHOD_DEOPT,     /* likewise */
	SS_HOTSPOT_NMETHOD_IMMUTABLE, /* from 23 on */
	SS_HOTSPOT_NMETHOD_IMMUTABLE_BYTES,
	SS_HOTSPOT_PC_OFFSET,
	SS_HOTSPOT_PC_SCOPE,
	SS_HOTSPOT_PC_SIZE,
	SS_HOTSPOT_METHOD_CONST,
	SS_HOTSPOT_CONST_CONSTANTS,
	SS_HOTSPOT_CONST_WORDS,
	SS_HOTSPOT_CONST_FLAGS,
	SS_HOTSPOT_CONST_CODE_BYTES,
	SS_HOTSPOT_CONST_NAME,
	SS_HOTSPOT_CONST_IDNUM,
	SS_HOTSPOT_CONST_SIZE,
	SS_HOTSPOT_POOL_HOLDER,
	SS_HOTSPOT_POOL_LENGTH,
	SS_HOTSPOT_POOL_FILE,  /* from 17 on */
	SS_HOTSPOT_CLASS_FILE, /* up to 11 */
	SS_HOTSPOT_POOL_SIZE,
	SS_HOTSPOT_CLASS_NAME,
	SS_HOTSPOT_CLASS_METHODS,
	/* Classes of a loader; may be missing */
	SS_HOTSPOT_CLASS_LOADER,
	SS_HOTSPOT_CLASS_NEXT,
	SS_HOTSPOT_LOADER_CLASSES,
	SS_HOTSPOT_CLASS_CONSTANTS,
	SS_HOTSPOT_METHODS_DATA,
	SS_HOTSPOT_SYMBOL_LENGTH,
	SS_HOTSPOT_SYMBOL_BODY,
	SS_HOTSPOT_LIST_LENGTH, /* ThreadsList */
	SS_HOTSPOT_LIST_THREADS,
	SS_HOTSPOT_THREAD_OS,
	SS_HOTSPOT_THREAD_ANCHOR,
	SS_HOTSPOT_THREAD_PENDING_MONITOR,
	SS_HOTSPOT_THREAD_WAITING_MONITOR, /* in whose Object.wait() it is; may be missing */
	SS_HOTSPOT_THREAD_STACK_BASE,	   /* the highest address */
	SS_HOTSPOT_THREAD_STACK_SIZE,
	SS_HOTSPOT_THREAD_MONITOR_ID, /* from 24 on */
	SS_HOTSPOT_THREAD_LOCKS,      /* from 21 on: the objects that it has locked */
	SS_HOTSPOT_LOCKS_TOP,
	SS_HOTSPOT_LOCKS_BASE,
	SS_HOTSPOT_OS_ID,
	SS_HOTSPOT_ANCHOR_SP,
	SS_HOTSPOT_ANCHOR_FP,
	SS_HOTSPOT_MONITOR_OWNER,
	SS_HOTSPOT_MONITOR_OBJECT,
	SS_HOTSPOT_MONITOR_STACK_LOCKER, /* 24 and 25 */
	SS_HOTSPOT_THREAD_BYTES,
	SS_HOTSPOT_THREAD_BASE_BYTES, /* of Thread, from which JavaThread is derived */
	SS_HOTSPOT_THREAD_OBJECT,     /* handle; up to 11 the object */
	SS_HOTSPOT_THREAD_VIRTUAL,    /* from 21 on: handle */
	SS_HOTSPOT_OBJECT_CLASS,
	SS_HOTSPOT_OOP_BASE_AT, /* of compressed pointers */
	SS_HOTSPOT_OOP_SHIFT_AT,
	SS_HOTSPOT_CLASS_BASE_AT,
	SS_HOTSPOT_CLASS_SHIFT_AT,
	SS_HOTSPOT_CLASS_SUPER,
	SS_HOTSPOT_CLASS_FIELDS,
	SS_HOTSPOT_FIELDS_DATA,
	SS_HOTSPOT_STREAM_DATA,
	SS_HOTSPOT_FLAGS_AT,
	SS_HOTSPOT_FLAG_COUNT_AT,
	SS_HOTSPOT_FLAG_NAME,
	SS_HOTSPOT_FLAG_ADDRESS,
	SS_HOTSPOT_FLAG_SIZE,
	/* Of the generational ZGC, which few VMs have; 0: not in the tables */
	SS_HOTSPOT_ZGC_AT, /* pointer to pointers to its values */
	SS_HOTSPOT_ZGC_OFFSET_MASK,
	SS_HOTSPOT_ZGC_GOOD_MASK,
	SS_HOTSPOT_ZGC_SHIFT,
	SS_HOTSPOT_GC_AT,
	SS_HOTSPOT_ZGC_HEAP, /* in the object of the collector */
	SS_HOTSPOT_ZGC_HEAP_BYTES,
	SS_HOTSPOT_ZGC_PAGES, /* of ZHeap */
	SS_HOTSPOT_ZGC_GRANULES,
	SS_HOTSPOT_ZGC_FORWARDING_BYTES,
	SS_HOTSPOT_ZGC_FORWARDING_START,
	SS_HOTSPOT_ZGC_FORWARDING_SHIFT,
	SS_HOTSPOT_ZGC_FORWARDING_LENGTH,
	SS_HOTSPOT_VALUES,
};

struct ss_hotspot_layout {
	uint64_t at[SS_HOTSPOT_VALUES];
	unsigned major; /* 0: not known */
	unsigned minor;
	unsigned security;
	bool one_heap;	      /* up to 8 */
	bool code_offsets;    /* code is found by offsets, not pointers: 8, from 23 on */
	bool separate_data;   /* compiled methods have their data elsewhere: from 23 on */
	bool thread_list;     /* threads are linked: up to 11 */
	bool direct_objects;  /* a thread has its object, not a handle: up to 11 */
	bool separate_parker; /* a thread has a pointer to its Parker: up to 11 */
	bool class_has_file;  /* and not its constants: up to 11 */
	bool lock_stacks;     /* threads may note what they have locked: from 21 on */
	bool virtual_threads; /* from 21 on */
	bool stack_lockers;   /* 24 and 25 */
	bool no_zeros;	      /* compressed numbers have no zero byte: from 20 on */
	bool field_stream;    /* fields of a class are a stream of numbers: from 21 on */
	bool owner_ids; /* monitors have the id of their owner, not its address: from 24 on */
};

/* Symbols of libjvm.so: addresses in the process. */
enum ss_hotspot_symbol {
	SS_HOTSPOT_STRUCTS,
	SS_HOTSPOT_STRUCT_STRIDE,
	SS_HOTSPOT_STRUCT_TYPE,
	SS_HOTSPOT_STRUCT_FIELD,
	SS_HOTSPOT_STRUCT_STATIC,
	SS_HOTSPOT_STRUCT_OFFSET,
	SS_HOTSPOT_STRUCT_ADDRESS,
	SS_HOTSPOT_TYPES,
	SS_HOTSPOT_TYPE_STRIDE,
	SS_HOTSPOT_TYPE_NAME,
	SS_HOTSPOT_TYPE_SIZE,
	SS_HOTSPOT_SYMBOLS,
};

extern const char *const ss_hotspot_symbols[SS_HOTSPOT_SYMBOLS];

/* Reads the tables. False: *ret_problem is why, a constant; the version in ret may be known. */
bool ss_hotspot_layout_read(const struct ss_memory *memory,
			    const uint64_t symbols[SS_HOTSPOT_SYMBOLS],
			    struct ss_hotspot_layout *ret, const char **ret_problem);

/*
 * Objects of the Java heap: which thread owns the java.util.concurrent lock for which a thread is
 * parked. From untrusted memory; the garbage collector moves objects at any time. So an owner
 * counts only if it is the object of a thread of the VM, and if everything that leads to it is the
 * same when it is read again.
 *
 * Where fields are follows src/hotspot/share/oops/fieldInfo.hpp of OpenJDK.
 */

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

/* The forwarding table of a generation: for each 2 MiB of the heap, where its objects have moved. */
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

/*
 * The code cache of HotSpot: which piece of code (CodeBlob) an address is in, and which
 * methods a compiled method executes there. Interprets untrusted memory.
 */

/*
 * Methods of HotSpot: the class, the name, the file and the line table, from untrusted memory.
 * Metadata of classes does not move.
 */

struct ss_hotspot_method {
	uint64_t address;
	const char *name; /* "java.lang.Thread.run"; in strings */
	const char *file; /* without directory, or NULL */
	uint64_t code;	  /* address of the bytecode */
	uint32_t code_size;
	uint8_t *lines; /* owned; NULL: no line table */
	size_t lines_size;
	bool valid;
};

struct ss_hotspot_methods {
	const struct ss_hotspot_layout *layout;
	const struct ss_memory *memory;
	const struct ss_memory *after; /* read after what was read of memory */
	struct ss_intern *strings;
	SS_VECTOR(struct ss_hotspot_method) items;
	struct ss_idtable ids; /* their addresses */
};

void ss_hotspot_methods_deinit(struct ss_hotspot_methods *methods);

/* The Method at an address, read once. *ret is NULL if there is none; valid until the next
   call. False without memory. */
bool ss_hotspot_methods_find(struct ss_hotspot_methods *methods, uint64_t address,
			     const struct ss_hotspot_method **ret);

/* The line of a bytecode; 0: none is known. */
uint32_t ss_hotspot_line(const struct ss_hotspot_layout *layout,
			 const struct ss_hotspot_method *method, int32_t wanted);

/* A compressed number (UNSIGNED5 of src/hotspot/share/code/compressedStream.cpp). */
uint32_t ss_hotspot_number(const struct ss_hotspot_layout *layout,
			   struct ss_cursor *cursor);

enum { SS_HOTSPOT_SCOPES_MAX = 256 };

enum ss_hotspot_blob_kind {
	SS_HOTSPOT_STUB, /* stubs, adapters, and whatever else there is */
	SS_HOTSPOT_INTERPRETER,
	SS_HOTSPOT_NMETHOD, /* a compiled method, or the wrapper of a native one */
};

struct ss_hotspot_range {
	uint64_t start;
	uint64_t end;
};

struct ss_hotspot_blob {
	uint64_t address;
	enum ss_hotspot_blob_kind kind;
	const char *name; /* in strings */
	struct ss_hotspot_range code;
	uint32_t frame_size;	 /* in bytes; 0: its code manages its frames itself */
	uint64_t frame_complete; /* before this address the frame is being made */
	/* Of a compiled method */
	uint64_t method;
	uint64_t deopt;	      /* return address of a frame to be deoptimised */
	uint32_t original_pc; /* where its stack frame has the real one then */
	struct ss_hotspot_range pcs;
	struct ss_hotspot_range scopes;
	struct ss_hotspot_range metadata;
	bool valid;
};

struct ss_hotspot_heap {
	struct ss_hotspot_range range;
	uint64_t segments; /* address of the map, one byte for each segment */
	unsigned shift;
};

struct ss_hotspot_codes {
	const struct ss_hotspot_layout *layout;
	const struct ss_memory *memory;
	struct ss_intern *strings;
	SS_VECTOR(struct ss_hotspot_heap) heaps;
	SS_VECTOR(struct ss_hotspot_blob) blobs;
	struct ss_idtable ids; /* their addresses */
};

/* Finds the heaps. False without memory. */
bool ss_hotspot_codes_init(struct ss_hotspot_codes *codes);
void ss_hotspot_codes_deinit(struct ss_hotspot_codes *codes);

/* Whether an address is in the code cache. */
bool ss_hotspot_is_code(const struct ss_hotspot_codes *codes, uint64_t pc);

/* The blob at an address. *ret is NULL if there is none; valid until the next call. False
   without memory. */
bool ss_hotspot_codes_find(struct ss_hotspot_codes *codes, uint64_t pc,
			   const struct ss_hotspot_blob **ret);

/* A method that is executed, and where in its bytecode; -1: not known, or before it. */
struct ss_hotspot_scope {
	uint64_t method;
	int32_t bci;
};

/*
 * Returns the methods that a compiled method executes at pc, innermost first, or 0 if they are
 * not valid. The debug information is about certain addresses only, such as those of calls.
 * Between two of them, methods and bytecodes count that both have, from the outermost on.
 */
size_t ss_hotspot_scopes(const struct ss_hotspot_codes *codes,
			 const struct ss_hotspot_blob *blob, uint64_t pc,
			 struct ss_hotspot_scope ret[SS_HOTSPOT_SCOPES_MAX]);

/* Whether the debug information of a compiled method is about exactly this address. */
bool ss_hotspot_is_exact(const struct ss_hotspot_codes *codes,
			 const struct ss_hotspot_blob *blob, uint64_t pc);

static inline bool ss_hotspot_contains(const struct ss_hotspot_range *range,
				       uint64_t address)
{
	return address >= range->start && address < range->end;
}

#endif
