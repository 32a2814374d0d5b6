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
#ifndef SS_RUNTIME_HOTSPOT_LAYOUT_H
#define SS_RUNTIME_HOTSPOT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/memory.h"

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

#endif
