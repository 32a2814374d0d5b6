#include "recording/frame_record.h"

#include "recording/format.h"

uint32_t ss_frame_record_flags(const struct ss_frame *frame)
{
	uint64_t offset = frame->module ? frame->offset : frame->area_offset;
	uint32_t flags = (uint32_t)frame->source << SS_FRAME_SOURCE_SHIFT;

	if (frame->signal_frame)
		flags |= SS_FRAME_SIGNAL;
	if (frame->lookup_offset != offset)
		flags |= SS_FRAME_CALL;
	if (frame->replaced)
		flags |= SS_FRAME_REPLACED;
	return flags;
}

enum ss_frame_kind ss_frame_record_kind(const struct ss_frame *frame)
{
	bool stub = frame->kind == SS_FRAME_NATIVE && !frame->module && frame->symbol;

	return stub ? SS_FRAME_JIT : frame->kind;
}

struct ss_frame_record ss_frame_record_make(const struct ss_frame *frame,
					    uint32_t process, const uint32_t *modules)
{
	bool placed = frame->module && frame->module_index >= 0;

	const enum ss_frame_kind kind = ss_frame_record_kind(frame);

	if (kind != SS_FRAME_NATIVE)
		return (struct ss_frame_record){
			.module = SS_ID_NONE,
			.flags = SS_FROM_RUNTIME << SS_FRAME_SOURCE_SHIFT,
			.kind = kind,
			.function = frame->symbol,
			.file = frame->file,
			.line = frame->line,
		};
	return (struct ss_frame_record){
		.module = placed ? modules[frame->module_index] : SS_ID_NONE,
		.flags = ss_frame_record_flags(frame),
		.value = placed ? frame->offset : frame->pc,
		.area = placed ? NULL : frame->area,
		.process = process,
	};
}
