#include "record/written.h"

#include "record/format.h"

struct ss_written_frame ss_written_frame_of(const struct ss_frame *frame,
					    uint32_t process, const uint32_t *modules)
{
	uint64_t offset = frame->module ? frame->offset : frame->area_offset;
	uint32_t flags = (uint32_t)frame->source << SS_FRAME_SOURCE_SHIFT;
	bool placed = frame->module && frame->module_index >= 0;

	if (frame->signal_frame)
		flags |= SS_FRAME_SIGNAL;
	if (frame->lookup_offset != offset)
		flags |= SS_FRAME_CALL;
	return (struct ss_written_frame){
		.module = placed ? modules[frame->module_index] : SS_ID_NONE,
		.flags = flags,
		.value = placed ? frame->offset : frame->pc,
		.area = placed ? NULL : frame->area,
		.process = process,
	};
}
