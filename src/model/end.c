#include "base/cleanup.h"
#include "stacksnap.h"

static const char *const names[] = {
	[SS_END_ROOT] = "root",
	[SS_END_FRAMES] = "frames",
	[SS_END_LIMIT] = "limit",
	[SS_END_NO_UNWIND_INFO] = "no-unwind-info",
	[SS_END_BAD_UNWIND_INFO] = "bad-unwind-info",
	[SS_END_UNREADABLE] = "unreadable",
	[SS_END_LOOP] = "loop",
	[SS_END_REGISTER] = "register",
	[SS_END_GONE] = "gone",
	[SS_END_RUNNING] = "running",
	[SS_END_NOT_STOPPED] = "not-stopped",
	[SS_END_TRACED] = "traced",
	[SS_END_DENIED] = "denied",
	[SS_END_RUNNABLE] = "runnable",
};

const char *ss_end_name(enum ss_end end)
{
	return (size_t)end < SS_ARRAY_SIZE(names) && names[end] ? names[end] : "unknown";
}

static const char *const kinds[] = {
	[SS_FRAME_NATIVE] = "native",
	[SS_FRAME_PYTHON] = "python",
	[SS_FRAME_JAVASCRIPT] = "javascript",
	[SS_FRAME_JAVA] = "java",
	[SS_FRAME_JIT] = "jit",
};

const char *ss_frame_kind_name(enum ss_frame_kind kind)
{
	return (size_t)kind < SS_ARRAY_SIZE(kinds) ? kinds[kind] : "unknown";
}

#define SS_STRINGIFY(x) #x
#define SS_STRING(x) SS_STRINGIFY(x)

const char *ss_version(void)
{
	return SS_STRING(SS_VERSION_MAJOR) "." SS_STRING(SS_VERSION_MINOR) "." SS_STRING(
		SS_VERSION_PATCH);
}
