#include "runtime/v8/v8.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"

const char *const ss_v8_symbols[SS_V8_SYMBOLS] = {
	[SS_V8_MAJOR] = "_ZN2v88internal7Version6major_E",
	[SS_V8_MINOR] = "_ZN2v88internal7Version6minor_E",
	[SS_V8_BUILD] = "_ZN2v88internal7Version6build_E",
	[SS_V8_PATCH] = "_ZN2v88internal7Version6patch_E",
	[SS_V8_SIZES] = "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE",
	[SS_V8_TAGGED_SIZE] = "v8dbg_TaggedSize",
	[SS_V8_SMI_SHIFT] = "v8dbg_SmiShiftSize",
	[SS_V8_FIELDS] = "v8dbg_off_fp_context",
	"v8dbg_off_fp_function",
	"v8dbg_off_fp_bytecode_array",
	"v8dbg_off_fp_bytecode_offset",
	"v8dbg_class_JSFunction__shared__SharedFunctionInfo",
	"v8dbg_class_Script__source__Object",
	"v8dbg_class_Script__name__Object",
	"v8dbg_class_String__length__int32_t",
	"v8dbg_class_SeqOneByteString__chars__char",
	"v8dbg_class_SeqTwoByteString__chars__char",
	"v8dbg_class_ThinString__actual__String",
	"v8dbg_class_ConsString__first__String",
	"v8dbg_class_ConsString__second__String",
	"v8dbg_class_SlicedString__parent__String",
	"v8dbg_class_SlicedString__offset__SMI",
	"v8dbg_class_BytecodeArray__data__uintptr_t",
	"v8dbg_FirstNonstringType",
	"v8dbg_FirstContextType",
	"v8dbg_LastContextType",
	"v8dbg_type_JSFunction__JS_FUNCTION_TYPE",
	"v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
	"v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE",
	"v8dbg_type_Script__SCRIPT_TYPE",
	"v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE",
	"v8dbg_type_Code__CODE_TYPE",
	"v8dbg_CodeKindBaseline",
	"v8dbg_frametype_WasmFrame",
	"v8dbg_frametype_WasmToJsFrame",
	"v8dbg_scopeinfo_idx_first_vars",
	[SS_V8_CHECKED] = "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
	"v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
	"v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
	"v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
	"v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_",
	"v8dbg_class_SharedFunctionInfo__function_data__Object",
	"v8dbg_class_BytecodeArray__length__SMI",
	"v8dbg_class_Code__flags__uint32_t",
	"v8dbg_class_Code__instruction_size__int",
	"v8dbg_class_Code__instruction_start__Address",
	"v8dbg_class_InstructionStream__instruction_start__uintptr_t",
	"v8dbg_DeoptimizationDataLiteralArrayIndex",
	"v8dbg_DeoptimizationDataSharedFunctionInfoIndex",
	"v8dbg_DeoptimizationDataWrappedSharedFunctionInfoIndex",
	"v8dbg_DeoptimizationDataInliningPositionsIndex",
	"v8dbg_type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE",
};

/* The fields that these symbols have. */
static const size_t checked[] = {
	offsetof(struct ss_v8_layout, shared_name),
	offsetof(struct ss_v8_layout, shared_name),
	offsetof(struct ss_v8_layout, shared_name),
	offsetof(struct ss_v8_layout, shared_script),
	offsetof(struct ss_v8_layout, shared_script),
	offsetof(struct ss_v8_layout, shared_data),
	offsetof(struct ss_v8_layout, bytecode_length),
	offsetof(struct ss_v8_layout, code_flags),
	offsetof(struct ss_v8_layout, code_size),
	offsetof(struct ss_v8_layout, code_start),
	offsetof(struct ss_v8_layout, stream_header),
	offsetof(struct ss_v8_layout, deopt_literals),
	offsetof(struct ss_v8_layout, deopt_function),
	offsetof(struct ss_v8_layout, deopt_function),
	offsetof(struct ss_v8_layout, deopt_inlining),
	offsetof(struct ss_v8_layout, type_wrapper),
};

enum { FIELDS = SS_V8_CHECKED - SS_V8_FIELDS };

_Static_assert(offsetof(struct ss_v8_layout, scope_first) -
			       offsetof(struct ss_v8_layout, frame_context) ==
		       (FIELDS - 1) * sizeof(uint32_t),
	       "a symbol for each field");
_Static_assert(SS_ARRAY_SIZE(checked) == SS_V8_SYMBOLS - SS_V8_CHECKED,
	       "a field for each symbol");

/* src/objects/{code,shared-function-info,script,string,bytecode-array,instruction-stream}.* of
   each version, checked in live processes; x86-64 without pointer compression. */
static const struct ss_v8_layout layouts[] = {
	{
		/* node 18 */
		.major = 10,
		.minor = 2,
		.map_type = 12,
		.shared_data = 8,
		.shared_name = 16,
		.shared_script = 32,
		.script_line_offset = 24,
		.script_eval_from = 72,
		.string_external = 24,
		.bytecode_length = 8,
		.bytecode_positions = 32,
		.code_data = 16,
		.code_positions = 24,
		.code_flags = 48,
		.code_size = 40,
		.stream_header = 128,
		.scope_names_max = 75,
		.deopt_literals = 2,
		.deopt_function = 6,
		.deopt_inlining = 7,
	},
	{
		/* node 20 */
		.major = 11,
		.minor = 3,
		.map_type = 12,
		.shared_data = 8,
		.shared_name = 16,
		.shared_script = 32,
		.script_line_offset = 24,
		.script_eval_from = 72,
		.string_external = 24,
		.bytecode_length = 8,
		.bytecode_positions = 32,
		.code_data = 16,
		.code_positions = 24,
		.code_flags = 48,
		.code_start = 40,
		.code_size = 56,
		.stream_header = 16,
		.stream_code = 8,
		.scope_names_max = 75,
		.deopt_literals = 2,
		.deopt_function = 6,
		.deopt_inlining = 7,
	},
	{
		/* node 22 */
		.major = 12,
		.minor = 4,
		.map_type = 12,
		.shared_data = 8,
		.shared_name = 16,
		.shared_script = 32,
		.script_line_offset = 24,
		.script_eval_from = 72,
		.string_external = 24,
		.bytecode_length = 8,
		.bytecode_positions = 24,
		.code_data = 8,
		.code_positions = 16,
		.code_flags = 48,
		.code_start = 40,
		.code_size = 52,
		.stream_header = 32,
		.stream_code = 8,
		.scope_names_max = 75,
		.deopt_literals = 2,
		.deopt_function = 6,
		.deopt_inlining = 7,
		.translation_operands = "5333213432103311111111111111111101111121",
		.translation_begin = 12,
	},
	{
		/* node 24 */
		.major = 13,
		.minor = 6,
		.map_type = 12,
		.shared_data = 8,
		.shared_name = 24,
		.shared_script = 40,
		.script_line_offset = 24,
		.script_eval_from = 72,
		.string_external = 24,
		.bytecode_length = 8,
		.bytecode_positions = 24,
		.code_data = 8,
		.code_positions = 16,
		.code_flags = 52,
		.code_start = 40,
		.code_size = 56,
		.stream_header = 32,
		.stream_code = 8,
		.scope_names_max = 75,
		.scope_flags_raw = true,
		.deopt_literals = 3,
		.deopt_function = 7,
		.deopt_inlining = 8,
		.type_wrapper = 195,
		.operands = "000000000010203040223210001000000000001030303010101010201010"
			    "100000000120202030103010103030301030303011303020402020303030"
			    "313031202020202020202020202020202020202020202020202020101010"
			    "100000101010103040403040504020304040223221214040202020202020"
			    "202020001010100000222100102100212021102020202000000030101010"
			    "101010101010103010101010101010101010101030301020401000000000"
			    "10000010304030300010100000000000000000000000000000000000",
		.translation_operands = "643321343331003311101111111111111111101111121",
		.translation_begin = 14,
		.safepoints_count = 4,
	},
	{
		/* node 25 */
		.major = 14,
		.minor = 1,
		.map_type = 12,
		.shared_data = 8,
		.shared_name = 24,
		.shared_script = 40,
		.script_line_offset = 24,
		.script_eval_from = 72,
		.string_external = 24,
		.bytecode_length = 8,
		.bytecode_positions = 24,
		.code_data = 8,
		.code_positions = 16,
		.code_flags = 52,
		.code_start = 40,
		.code_size = 56,
		.stream_header = 32,
		.stream_code = 8,
		.scope_names_max = 75,
		.position_flags = 2,
		.scope_flags_raw = true,
		.deopt_literals = 3,
		.deopt_function = 7,
		.deopt_inlining = 8,
		.type_wrapper = 194,
		.operands = "000000000010203040223210001000000000001030303010101010201010"
			    "100000000120202030103010103030301030303011303020402020303030"
			    "313031102020202020202020202020202120202020202020202020202010"
			    "101010000010101010304040304050402030404022322121404020202020"
			    "202020202000101010000022210010210021202110202020202000000030"
			    "101010101010101010103010101010101010101010101030301020401030"
			    "000000001000001030403030001010000000000000000000000000000000"
			    "0000",
		.translation_operands = "643321343331003311101111111111111111101111121",
		.translation_begin = 14,
		.safepoints_count = 4,
	},
	{
		/* node 26 */
		.major = 14,
		.minor = 6,
		.map_type = 12,
		.shared_data = 8,
		.shared_name = 24,
		.shared_script = 40,
		.script_line_offset = 24,
		.script_eval_from = 72,
		.string_external = 24,
		.bytecode_length = 8,
		.bytecode_positions = 24,
		.code_data = 8,
		.code_positions = 16,
		.code_flags = 52,
		.code_start = 40,
		.code_size = 56,
		.stream_header = 32,
		.stream_code = 8,
		.scope_names_max = 75,
		.position_flags = 2,
		.scope_flags_raw = true,
		.deopt_literals = 3,
		.deopt_function = 7,
		.deopt_inlining = 8,
		.type_wrapper = 195,
		.operands = "000000000010203040223210001000000000001030303010101010201010"
			    "100000000120202030103010103030301030303011303020402020303030"
			    "313031202020202020202020202020202120202020202020202020202010"
			    "101010000010101010304040304050402030404022322121404020121212"
			    "121212202000101010000022210010210021202110202020202000000030"
			    "101010101010101010103010101010101010101010101030301020401040"
			    "000000001000001030403030001001000000000000000000000000000000"
			    "0000",
		.translation_operands = "643321343331003311101111111111111111101111121",
		.translation_begin = 14,
		.safepoints_count = 4,
	},
};

static bool read_symbol(const struct ss_memory *memory, const struct ss_v8_symbol *symbol,
			uint32_t *ret)
{
	return symbol->address && ss_memory_read_u32(memory, symbol->address, ret);
}

bool ss_v8_version_read(const struct ss_memory *memory,
			const struct ss_v8_symbol *symbols, struct ss_v8_layout *ret)
{
	return read_symbol(memory, &symbols[SS_V8_MAJOR], &ret->major) &&
	       read_symbol(memory, &symbols[SS_V8_MINOR], &ret->minor) &&
	       read_symbol(memory, &symbols[SS_V8_BUILD], &ret->build) &&
	       read_symbol(memory, &symbols[SS_V8_PATCH], &ret->patch);
}

static const struct ss_v8_layout *find_layout(uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(layouts); i++) {
		if (layouts[i].major == major && layouts[i].minor == minor)
			return &layouts[i];
	}
	return NULL;
}

/* The operands of a bytecode, of which some have the size of the scale, follow a byte. */
static void expand_sizes(const char *operands, struct ss_v8_layout *ret)
{
	const size_t count = strlen(operands) / 2;

	for (size_t i = 0; i < count; i++) {
		int scaled = operands[2 * i] - '0';
		int fixed = operands[2 * i + 1] - '0';
		for (size_t k = 0; k < SS_V8_SCALES; k++)
			ret->sizes[k][i] = (uint8_t)(1 + (scaled << k) + fixed);
	}
	ret->bytecodes = (uint32_t)count;
}

/* Without them, frames of baseline code have no line. */
static void read_sizes(const struct ss_memory *memory, const struct ss_v8_symbol *symbol,
		       struct ss_v8_layout *ret)
{
	const uint64_t count = symbol->size / SS_V8_SCALES;

	if (ret->operands) {
		expand_sizes(ret->operands, ret);
		return;
	}

	ret->bytecodes = 0;
	if (!symbol->address || count > SS_V8_BYTECODES_MAX ||
	    symbol->size % SS_V8_SCALES != 0)
		return;
	for (size_t i = 0; i < SS_V8_SCALES; i++) {
		if (!ss_memory_read(memory, symbol->address + i * count, ret->sizes[i],
				    count))
			return;
	}
	ret->bytecodes = (uint32_t)count;
}

/* Offsets in objects are small, and those in frames too. */
static bool is_plausible(uint32_t value)
{
	return value < 1 << 12 || value > UINT32_MAX - (1 << 12);
}

/* Whether the members of a frame lie in what is read of it. */
static bool has_valid_frame(const struct ss_v8_layout *layout)
{
	const int32_t offsets[] = { layout->frame_context, layout->frame_function,
				    layout->frame_bytecode, layout->frame_offset };

	return !ss_any(SS_ARRAY_SIZE(offsets), i,
		       offsets[i] < -SS_V8_FRAME_BYTES ||
			       offsets[i] > -(int)sizeof(uint64_t));
}

/* Whether the program agrees with the table of its version. */
static bool agrees(const struct ss_memory *memory, const struct ss_v8_symbol *symbols,
		   const struct ss_v8_layout *layout)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(checked); i++) {
		const struct ss_v8_symbol *symbol = &symbols[SS_V8_CHECKED + i];
		uint32_t known;
		uint32_t value;
		memcpy(&known, (const uint8_t *)layout + checked[i], sizeof(known));
		if (symbol->address &&
		    (!read_symbol(memory, symbol, &value) || value != known))
			return false;
	}
	return true;
}

bool ss_v8_layout_read(const struct ss_memory *memory, const struct ss_v8_symbol *symbols,
		       struct ss_v8_layout *ret, const char **ret_why)
{
	const struct ss_v8_layout *known = find_layout(ret->major, ret->minor);
	struct ss_v8_layout layout;
	uint32_t fields[FIELDS];
	uint32_t tagged_size;
	uint32_t smi_shift;

	*ret_why = "the layout of this version is not known";
	if (!known)
		return false;
	*ret_why = "it does not export what debuggers need (v8dbg_...)";
	if (!read_symbol(memory, &symbols[SS_V8_TAGGED_SIZE], &tagged_size) ||
	    !read_symbol(memory, &symbols[SS_V8_SMI_SHIFT], &smi_shift))
		return false;
	for (size_t i = 0; i < FIELDS; i++) {
		if (!read_symbol(memory, &symbols[SS_V8_FIELDS + i], &fields[i]) ||
		    !is_plausible(fields[i]))
			return false;
	}
	*ret_why = "it has compressed pointers";
	if (tagged_size != sizeof(uint64_t) || smi_shift != 31)
		return false;
	layout = *known;
	layout.build = ret->build;
	layout.patch = ret->patch;
	memcpy((uint8_t *)&layout + offsetof(struct ss_v8_layout, frame_context), fields,
	       sizeof(fields));
	*ret_why = "its offsets in frames (v8dbg_off_fp_...) are not valid";
	if (!has_valid_frame(&layout))
		return false;
	*ret_why = "its layout (v8dbg_...) differs from that of its version";
	if (!agrees(memory, symbols, &layout))
		return false;
	read_sizes(memory, &symbols[SS_V8_SIZES], &layout);
	*ret = layout;
	*ret_why = NULL;
	return true;
}
