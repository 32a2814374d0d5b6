#include "runtime/hotspot/hotspot.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"

enum {
	ENTRIES_MAX = 16384, /* JDK 17 has 1,955 fields and 780 types */
	NAME_MAX_SIZE = 96,
	STRIDE_MAX = 128,
	OFFSET_MAX = 1 << 20, /* of a field, or size of a type */
	VM_OF_8 = 25,
};

const char *const ss_hotspot_symbols[SS_HOTSPOT_SYMBOLS] = {
	[SS_HOTSPOT_STRUCTS] = "gHotSpotVMStructs",
	[SS_HOTSPOT_STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[SS_HOTSPOT_STRUCT_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[SS_HOTSPOT_STRUCT_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[SS_HOTSPOT_STRUCT_STATIC] = "gHotSpotVMStructEntryIsStaticOffset",
	[SS_HOTSPOT_STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[SS_HOTSPOT_STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[SS_HOTSPOT_TYPES] = "gHotSpotVMTypes",
	[SS_HOTSPOT_TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
	[SS_HOTSPOT_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[SS_HOTSPOT_TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
};

/* The versions that were tested. */
static const uint8_t versions[] = { 8, 11, 17, 21, 25, 26 };

#define ALWAYS 0, UINT8_MAX
#define SINCE(version) version, UINT8_MAX
#define UNTIL(version) 0, version
#define BETWEEN(first, last) first, last
#define NEVER UINT8_MAX, 0

/* Several rows may give the same value, where versions name it differently. Without a field:
   the size of the type. The versions are those that need the value; NEVER: it may be missing,
   and is 0 then. */
static const struct row {
	const char *type;
	const char *field;
	uint8_t value;
	uint8_t since;
	uint8_t until;
} rows[] = {
	{ "Abstract_VM_Version", "_vm_major_version", SS_HOTSPOT_MAJOR_AT, ALWAYS },
	{ "Abstract_VM_Version", "_vm_minor_version", SS_HOTSPOT_MINOR_AT, ALWAYS },
	{ "Abstract_VM_Version", "_vm_security_version", SS_HOTSPOT_SECURITY_AT,
	  SINCE(9) },
	{ "CodeCache", "_heaps", SS_HOTSPOT_HEAPS_AT, SINCE(9) },
	{ "CodeCache", "_heap", SS_HOTSPOT_HEAP_AT, UNTIL(8) },
	{ "ThreadsSMRSupport", "_java_thread_list", SS_HOTSPOT_THREADS_AT, SINCE(17) },
	{ "Threads", "_thread_list", SS_HOTSPOT_FIRST_THREAD_AT, UNTIL(11) },
	{ "JavaThread", "_next", SS_HOTSPOT_THREAD_NEXT, UNTIL(11) },
	{ "StubRoutines", "_call_stub_return_address", SS_HOTSPOT_CALL_STUB_AT, ALWAYS },
	{ "GrowableArrayBase", "_len", SS_HOTSPOT_ARRAY_LENGTH, ALWAYS },
	{ "GenericGrowableArray", "_len", SS_HOTSPOT_ARRAY_LENGTH, ALWAYS },
	{ "GrowableArray<int>", "_data", SS_HOTSPOT_ARRAY_DATA, ALWAYS },
	{ "CodeHeap", "_memory", SS_HOTSPOT_HEAP_MEMORY, ALWAYS },
	{ "CodeHeap", "_segmap", SS_HOTSPOT_HEAP_SEGMENTS, ALWAYS },
	{ "CodeHeap", "_log2_segment_size", SS_HOTSPOT_HEAP_SHIFT, ALWAYS },
	{ "VirtualSpace", "_low", SS_HOTSPOT_SPACE_LOW, ALWAYS },
	{ "VirtualSpace", "_high", SS_HOTSPOT_SPACE_HIGH, ALWAYS },
	{ "HeapBlock::Header", "_length", SS_HOTSPOT_BLOCK_LENGTH, ALWAYS },
	{ "HeapBlock::Header", "_used", SS_HOTSPOT_BLOCK_USED, ALWAYS },
	{ "HeapBlock", NULL, SS_HOTSPOT_BLOCK_SIZE, ALWAYS },
	{ "CodeBlob", "_name", SS_HOTSPOT_BLOB_NAME, ALWAYS },
	{ "CodeBlob", "_size", SS_HOTSPOT_BLOB_BYTES, ALWAYS },
	{ "CodeBlob", "_frame_complete_offset", SS_HOTSPOT_BLOB_FRAME_COMPLETE, ALWAYS },
	{ "CodeBlob", "_frame_size", SS_HOTSPOT_BLOB_FRAME_SIZE, ALWAYS },
	{ "CodeBlob", "_code_begin", SS_HOTSPOT_BLOB_CODE_BEGIN, BETWEEN(9, 22) },
	{ "CodeBlob", "_code_end", SS_HOTSPOT_BLOB_CODE_END, BETWEEN(9, 22) },
	{ "CodeBlob", "_code_offset", SS_HOTSPOT_BLOB_CODE_OFFSET, UNTIL(8) },
	{ "CodeBlob", "_code_offset", SS_HOTSPOT_BLOB_CODE_OFFSET, SINCE(23) },
	{ "CodeBlob", "_data_offset", SS_HOTSPOT_BLOB_DATA_OFFSET, ALWAYS },
	{ "CodeBlob", "_mutable_data", SS_HOTSPOT_BLOB_MUTABLE, SINCE(23) },
	{ "CodeBlob", "_mutable_data_size", SS_HOTSPOT_BLOB_MUTABLE_BYTES, SINCE(23) },
	{ "CodeBlob", "_relocation_size", SS_HOTSPOT_BLOB_RELOCATIONS, SINCE(23) },
	{ "CompiledMethod", "_method", SS_HOTSPOT_NMETHOD_METHOD, ALWAYS },
	{ "nmethod", "_method", SS_HOTSPOT_NMETHOD_METHOD, ALWAYS },
	{ "nmethod", "_compile_id", SS_HOTSPOT_NMETHOD_COMPILE_ID, ALWAYS },
	{ "nmethod", "_orig_pc_offset", SS_HOTSPOT_NMETHOD_ORIGINAL_PC, ALWAYS },
	{ "nmethod", "_scopes_pcs_offset", SS_HOTSPOT_NMETHOD_PCS, ALWAYS },
	{ "nmethod", "_dependencies_offset", SS_HOTSPOT_NMETHOD_PCS_END, UNTIL(22) },
	{ "CompiledMethod", "_scopes_data_begin", SS_HOTSPOT_NMETHOD_SCOPES, ALWAYS },
	{ "nmethod", "_scopes_data_offset", SS_HOTSPOT_NMETHOD_SCOPES, ALWAYS },
	{ "nmethod", "_metadata_offset", SS_HOTSPOT_NMETHOD_METADATA, UNTIL(22) },
	{ "CompiledMethod", "_deopt_handler_begin", SS_HOTSPOT_NMETHOD_DEOPT, ALWAYS },
	{ "nmethod", "_deopt_handler_offset", SS_HOTSPOT_NMETHOD_DEOPT, ALWAYS },
	{ "nmethod", "_deoptimize_offset", SS_HOTSPOT_NMETHOD_DEOPT, ALWAYS },
	{ "nmethod", "_deopt_handler_entry_offset", SS_HOTSPOT_NMETHOD_DEOPT, ALWAYS },
	{ "nmethod", "_immutable_data", SS_HOTSPOT_NMETHOD_IMMUTABLE, SINCE(23) },
	{ "nmethod", "_immutable_data_size", SS_HOTSPOT_NMETHOD_IMMUTABLE_BYTES,
	  SINCE(23) },
	{ "PcDesc", "_pc_offset", SS_HOTSPOT_PC_OFFSET, ALWAYS },
	{ "PcDesc", "_scope_decode_offset", SS_HOTSPOT_PC_SCOPE, ALWAYS },
	{ "PcDesc", NULL, SS_HOTSPOT_PC_SIZE, ALWAYS },
	{ "Method", "_constMethod", SS_HOTSPOT_METHOD_CONST, ALWAYS },
	{ "ConstMethod", "_constants", SS_HOTSPOT_CONST_CONSTANTS, ALWAYS },
	{ "ConstMethod", "_constMethod_size", SS_HOTSPOT_CONST_WORDS, ALWAYS },
	{ "ConstMethod", "_flags", SS_HOTSPOT_CONST_FLAGS, ALWAYS },
	{ "ConstMethod", "_flags._flags", SS_HOTSPOT_CONST_FLAGS, ALWAYS },
	{ "ConstMethod", "_code_size", SS_HOTSPOT_CONST_CODE_BYTES, ALWAYS },
	{ "ConstMethod", "_name_index", SS_HOTSPOT_CONST_NAME, ALWAYS },
	{ "ConstMethod", "_method_idnum", SS_HOTSPOT_CONST_IDNUM, ALWAYS },
	{ "ConstMethod", NULL, SS_HOTSPOT_CONST_SIZE, ALWAYS },
	{ "ConstantPool", "_pool_holder", SS_HOTSPOT_POOL_HOLDER, ALWAYS },
	{ "ConstantPool", "_length", SS_HOTSPOT_POOL_LENGTH, ALWAYS },
	{ "ConstantPool", "_source_file_name_index", SS_HOTSPOT_POOL_FILE, SINCE(17) },
	{ "InstanceKlass", "_source_file_name_index", SS_HOTSPOT_CLASS_FILE, UNTIL(11) },
	{ "ConstantPool", NULL, SS_HOTSPOT_POOL_SIZE, ALWAYS },
	{ "Klass", "_name", SS_HOTSPOT_CLASS_NAME, ALWAYS },
	{ "InstanceKlass", "_methods", SS_HOTSPOT_CLASS_METHODS, ALWAYS },
	{ "Klass", "_class_loader_data", SS_HOTSPOT_CLASS_LOADER, NEVER },
	{ "Klass", "_next_link", SS_HOTSPOT_CLASS_NEXT, NEVER },
	{ "ClassLoaderData", "_klasses", SS_HOTSPOT_LOADER_CLASSES, NEVER },
	{ "InstanceKlass", "_constants", SS_HOTSPOT_CLASS_CONSTANTS, ALWAYS },
	{ "Array<Method*>", "_data", SS_HOTSPOT_METHODS_DATA, ALWAYS },
	{ "Symbol", "_length", SS_HOTSPOT_SYMBOL_LENGTH, ALWAYS },
	{ "Symbol", "_body[0]", SS_HOTSPOT_SYMBOL_BODY, ALWAYS },
	{ "Symbol", "_body", SS_HOTSPOT_SYMBOL_BODY, ALWAYS },
	{ "ThreadsList", "_length", SS_HOTSPOT_LIST_LENGTH, SINCE(17) },
	{ "ThreadsList", "_threads", SS_HOTSPOT_LIST_THREADS, SINCE(17) },
	{ "JavaThread", "_osthread", SS_HOTSPOT_THREAD_OS, ALWAYS },
	{ "Thread", "_osthread", SS_HOTSPOT_THREAD_OS, ALWAYS },
	{ "JavaThread", "_anchor", SS_HOTSPOT_THREAD_ANCHOR, ALWAYS },
	{ "JavaThread", "_current_pending_monitor", SS_HOTSPOT_THREAD_PENDING_MONITOR,
	  ALWAYS },
	{ "Thread", "_current_pending_monitor", SS_HOTSPOT_THREAD_PENDING_MONITOR,
	  ALWAYS },
	{ "JavaThread", "_current_waiting_monitor", SS_HOTSPOT_THREAD_WAITING_MONITOR,
	  NEVER },
	{ "Thread", "_current_waiting_monitor", SS_HOTSPOT_THREAD_WAITING_MONITOR,
	  NEVER },
	{ "JavaThread", "_monitor_owner_id", SS_HOTSPOT_THREAD_MONITOR_ID, SINCE(24) },
	{ "JavaThread", "_stack_base", SS_HOTSPOT_THREAD_STACK_BASE, ALWAYS },
	{ "JavaThread", "_stack_size", SS_HOTSPOT_THREAD_STACK_SIZE, ALWAYS },
	{ "JavaThread", "_lock_stack", SS_HOTSPOT_THREAD_LOCKS, SINCE(21) },
	{ "LockStack", "_top", SS_HOTSPOT_LOCKS_TOP, SINCE(21) },
	{ "LockStack", "_base[0]", SS_HOTSPOT_LOCKS_BASE, SINCE(21) },
	{ "ObjectMonitor", "_object", SS_HOTSPOT_MONITOR_OBJECT, ALWAYS },
	{ "OSThread", "_thread_id", SS_HOTSPOT_OS_ID, ALWAYS },
	{ "JavaFrameAnchor", "_last_Java_sp", SS_HOTSPOT_ANCHOR_SP, ALWAYS },
	{ "JavaFrameAnchor", "_last_Java_fp", SS_HOTSPOT_ANCHOR_FP, ALWAYS },
	{ "ObjectMonitor", "_owner", SS_HOTSPOT_MONITOR_OWNER, ALWAYS },
	{ "ObjectMonitor", "_stack_locker", SS_HOTSPOT_MONITOR_STACK_LOCKER,
	  BETWEEN(24, 25) },
	{ "JavaThread", NULL, SS_HOTSPOT_THREAD_BYTES, ALWAYS },
	{ "Thread", NULL, SS_HOTSPOT_THREAD_BASE_BYTES, UNTIL(11) },
	{ "JavaThread", "_threadObj", SS_HOTSPOT_THREAD_OBJECT, ALWAYS },
	{ "JavaThread", "_vthread", SS_HOTSPOT_THREAD_VIRTUAL, SINCE(21) },
	{ "oopDesc", "_metadata._klass", SS_HOTSPOT_OBJECT_CLASS, ALWAYS },
	{ "CompressedOops", "_narrow_oop._base", SS_HOTSPOT_OOP_BASE_AT, ALWAYS },
	{ "CompressedOops", "_base", SS_HOTSPOT_OOP_BASE_AT, ALWAYS },
	{ "Universe", "_narrow_oop._base", SS_HOTSPOT_OOP_BASE_AT, ALWAYS },
	{ "CompressedOops", "_narrow_oop._shift", SS_HOTSPOT_OOP_SHIFT_AT, ALWAYS },
	{ "CompressedOops", "_shift", SS_HOTSPOT_OOP_SHIFT_AT, ALWAYS },
	{ "Universe", "_narrow_oop._shift", SS_HOTSPOT_OOP_SHIFT_AT, ALWAYS },
	{ "CompressedKlassPointers", "_narrow_klass._base", SS_HOTSPOT_CLASS_BASE_AT,
	  ALWAYS },
	{ "CompressedKlassPointers", "_base", SS_HOTSPOT_CLASS_BASE_AT, ALWAYS },
	{ "Universe", "_narrow_klass._base", SS_HOTSPOT_CLASS_BASE_AT, ALWAYS },
	{ "CompressedKlassPointers", "_narrow_klass._shift", SS_HOTSPOT_CLASS_SHIFT_AT,
	  ALWAYS },
	{ "CompressedKlassPointers", "_shift", SS_HOTSPOT_CLASS_SHIFT_AT, ALWAYS },
	{ "Universe", "_narrow_klass._shift", SS_HOTSPOT_CLASS_SHIFT_AT, ALWAYS },
	{ "Klass", "_super", SS_HOTSPOT_CLASS_SUPER, ALWAYS },
	{ "InstanceKlass", "_fields", SS_HOTSPOT_CLASS_FIELDS, ALWAYS },
	{ "InstanceKlass", "_fieldinfo_stream", SS_HOTSPOT_CLASS_FIELDS, ALWAYS },
	{ "Array<u2>", "_data", SS_HOTSPOT_FIELDS_DATA, ALWAYS },
	{ "Array<u1>", "_data", SS_HOTSPOT_STREAM_DATA, ALWAYS },
	{ "JVMFlag", "flags", SS_HOTSPOT_FLAGS_AT, ALWAYS },
	{ "Flag", "flags", SS_HOTSPOT_FLAGS_AT, ALWAYS },
	{ "JVMFlag", "numFlags", SS_HOTSPOT_FLAG_COUNT_AT, ALWAYS },
	{ "Flag", "numFlags", SS_HOTSPOT_FLAG_COUNT_AT, ALWAYS },
	{ "JVMFlag", "_name", SS_HOTSPOT_FLAG_NAME, ALWAYS },
	{ "Flag", "_name", SS_HOTSPOT_FLAG_NAME, ALWAYS },
	{ "JVMFlag", "_addr", SS_HOTSPOT_FLAG_ADDRESS, ALWAYS },
	{ "Flag", "_addr", SS_HOTSPOT_FLAG_ADDRESS, ALWAYS },
	{ "JVMFlag", NULL, SS_HOTSPOT_FLAG_SIZE, ALWAYS },
	{ "Flag", NULL, SS_HOTSPOT_FLAG_SIZE, ALWAYS },
	{ "ZGlobalsForVMStructs", "_instance_p", SS_HOTSPOT_ZGC_AT, NEVER },
	{ "ZGlobalsForVMStructs", "_ZAddressOffsetMask", SS_HOTSPOT_ZGC_OFFSET_MASK,
	  NEVER },
	{ "ZGlobalsForVMStructs", "_ZPointerLoadGoodMask", SS_HOTSPOT_ZGC_GOOD_MASK,
	  NEVER },
	{ "ZGlobalsForVMStructs", "_ZPointerLoadShift", SS_HOTSPOT_ZGC_SHIFT, NEVER },
	{ "Universe", "_collectedHeap", SS_HOTSPOT_GC_AT, NEVER },
	{ "ZCollectedHeap", "_heap", SS_HOTSPOT_ZGC_HEAP, NEVER },
	{ "ZHeap", NULL, SS_HOTSPOT_ZGC_HEAP_BYTES, NEVER },
	{ "ZHeap", "_page_table", SS_HOTSPOT_ZGC_PAGES, NEVER },
	{ "ZGranuleMapForForwarding", "_map", SS_HOTSPOT_ZGC_GRANULES, NEVER },
	{ "ZForwarding", NULL, SS_HOTSPOT_ZGC_FORWARDING_BYTES, NEVER },
	{ "ZForwarding", "_virtual", SS_HOTSPOT_ZGC_FORWARDING_START, NEVER },
	{ "ZForwarding", "_object_alignment_shift", SS_HOTSPOT_ZGC_FORWARDING_SHIFT,
	  NEVER },
	{ "ZForwarding", "_entries", SS_HOTSPOT_ZGC_FORWARDING_LENGTH, NEVER },
};

struct reader {
	const struct ss_memory *memory;
	const uint64_t *symbols;
	struct ss_hotspot_layout *layout;
	bool found[SS_HOTSPOT_VALUES];
	uint64_t words[SS_HOTSPOT_SYMBOLS]; /* what is at the symbols */
};

static bool read_words(struct reader *reader)
{
	for (size_t i = 0; i < SS_HOTSPOT_SYMBOLS; i++) {
		if (!reader->symbols[i] ||
		    !ss_memory_read_u64(reader->memory, reader->symbols[i],
					&reader->words[i]))
			return false;
		bool table = i == SS_HOTSPOT_STRUCTS || i == SS_HOTSPOT_TYPES;
		if (!table && reader->words[i] > STRIDE_MAX)
			return false;
	}
	return reader->words[SS_HOTSPOT_STRUCT_STRIDE] > 0 &&
	       reader->words[SS_HOTSPOT_TYPE_STRIDE] > 0;
}

static bool read_name(const struct reader *reader, uint64_t address, char *ret)
{
	return address &&
	       ss_memory_read_string(reader->memory, address, ret, NAME_MAX_SIZE);
}

/* The fields of one entry. */
static void add_field(struct reader *reader, uint64_t entry, const char *type,
		      const char *field)
{
	const uint64_t *words = reader->words;

	for (size_t i = 0; i < SS_ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		uint32_t is_static;
		uint64_t value;
		if (!row->field || strcmp(row->type, type) != 0 ||
		    strcmp(row->field, field) != 0 ||
		    !ss_memory_read_u32(reader->memory,
					entry + words[SS_HOTSPOT_STRUCT_STATIC],
					&is_static) ||
		    !ss_memory_read_u64(
			    reader->memory,
			    entry + words[is_static ? SS_HOTSPOT_STRUCT_ADDRESS :
						      SS_HOTSPOT_STRUCT_OFFSET],
			    &value) ||
		    (!is_static && value > OFFSET_MAX))
			continue;
		reader->layout->at[row->value] = value;
		reader->found[row->value] = true;
	}
}

static bool is_wanted(const char *type, bool size)
{
	return ss_any(SS_ARRAY_SIZE(rows), i,
		      !rows[i].field == size && strcmp(rows[i].type, type) == 0);
}

static void read_fields(struct reader *reader)
{
	const uint64_t *words = reader->words;
	uint64_t entry = words[SS_HOTSPOT_STRUCTS];

	for (int i = 0; i < ENTRIES_MAX; i++) {
		char type[NAME_MAX_SIZE];
		char field[NAME_MAX_SIZE];
		uint64_t name;
		if (!ss_memory_read_u64(reader->memory,
					entry + words[SS_HOTSPOT_STRUCT_TYPE], &name) ||
		    !name)
			return;
		if (read_name(reader, name, type) && is_wanted(type, false) &&
		    ss_memory_read_u64(reader->memory,
				       entry + words[SS_HOTSPOT_STRUCT_FIELD], &name) &&
		    read_name(reader, name, field))
			add_field(reader, entry, type, field);
		entry += words[SS_HOTSPOT_STRUCT_STRIDE];
	}
}

static void add_size(struct reader *reader, const char *type, uint64_t size)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(rows); i++) {
		if (rows[i].field || strcmp(rows[i].type, type) != 0 || size > OFFSET_MAX)
			continue;
		reader->layout->at[rows[i].value] = size;
		reader->found[rows[i].value] = true;
	}
}

static void read_types(struct reader *reader)
{
	const uint64_t *words = reader->words;
	uint64_t entry = words[SS_HOTSPOT_TYPES];

	for (int i = 0; i < ENTRIES_MAX; i++) {
		char type[NAME_MAX_SIZE];
		uint64_t name;
		uint64_t size;
		if (!ss_memory_read_u64(reader->memory,
					entry + words[SS_HOTSPOT_TYPE_NAME], &name) ||
		    !name)
			return;
		if (read_name(reader, name, type) && is_wanted(type, true) &&
		    ss_memory_read_u64(reader->memory,
				       entry + words[SS_HOTSPOT_TYPE_SIZE], &size))
			add_size(reader, type, size);
		entry += words[SS_HOTSPOT_TYPE_STRIDE];
	}
}

static unsigned read_number(const struct reader *reader, enum ss_hotspot_value value)
{
	uint32_t number;

	return reader->found[value] &&
			       ss_memory_read_u32(reader->memory,
						  reader->layout->at[value], &number) &&
			       number < 1000 ?
		       number :
		       0;
}

/* Up to 8 the VM has a version of its own, without a third number: 25.504 is that of
   8u504. */
static void read_version(const struct reader *reader, struct ss_hotspot_layout *ret)
{
	ret->major = read_number(reader, SS_HOTSPOT_MAJOR_AT);
	ret->minor = read_number(reader, SS_HOTSPOT_MINOR_AT);
	ret->security = read_number(reader, SS_HOTSPOT_SECURITY_AT);
	if (reader->found[SS_HOTSPOT_SECURITY_AT])
		return;
	ret->major = ret->major == VM_OF_8 ? 8 : 0;
	ret->security = ret->minor;
	ret->minor = 0;
}

static bool is_known(unsigned major)
{
	return ss_any(SS_ARRAY_SIZE(versions), i, versions[i] == major);
}

static bool is_complete(const struct reader *reader, unsigned major)
{
	return !ss_any(SS_ARRAY_SIZE(rows), i,
		       major >= rows[i].since && major <= rows[i].until &&
			       !reader->found[rows[i].value]);
}

bool ss_hotspot_layout_read(const struct ss_memory *memory,
			    const uint64_t symbols[SS_HOTSPOT_SYMBOLS],
			    struct ss_hotspot_layout *ret, const char **ret_problem)
{
	struct reader reader = { .memory = memory, .symbols = symbols, .layout = ret };

	*ret = (struct ss_hotspot_layout){};
	if (!read_words(&reader)) {
		*ret_problem = "its tables of structures could not be read";
		return false;
	}
	read_fields(&reader);
	read_types(&reader);
	read_version(&reader, ret);
	if (!is_known(ret->major)) {
		*ret_problem = ret->major ? "this version is not known" :
					    "its version is not known";
		return false;
	}
	if (!is_complete(&reader, ret->major)) {
		*ret_problem = "its tables lack a structure that is needed";
		return false;
	}
	ret->one_heap = ret->major <= 8;
	ret->code_offsets = ret->major <= 8 || ret->major >= 23;
	ret->separate_data = ret->major >= 23;
	ret->no_zeros = ret->major >= 20;
	ret->thread_list = ret->major < 17;
	ret->direct_objects = ret->major < 17;
	ret->separate_parker = ret->major < 17;
	ret->class_has_file = ret->major < 17;
	ret->field_stream = ret->major >= 21;
	ret->lock_stacks = ret->major >= 21;
	ret->virtual_threads = ret->major >= 21;
	ret->owner_ids = ret->major >= 24;
	ret->stack_lockers = ret->major == 24 || ret->major == 25;
	return true;
}
