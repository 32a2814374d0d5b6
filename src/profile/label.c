#include "profile/label.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

const char *ss_label_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

bool ss_label_is_of_library(const char *symbol)
{
	static const char *const starts[] = {
		"std::",     "<std::",	  "core::",  "<core::",	  "__gthread",
		"__glibcxx", "__cxa_",	  "__GI_",   "__pthread", "___pthread",
		"pthread_",  "__lll_",	  "__futex", "futex_",	  "__timedwait",
		"__wait",    "__syscall", "sem_",    "__new_sem",
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(starts); i++) {
		if (strncmp(symbol, starts[i], strlen(starts[i])) == 0)
			return true;
	}
	return false;
}

/* The name of the module or area, to be put between brackets if it has none. */
static const char *module_name(const struct ss_frame *frame, bool *ret_brackets)
{
	const char *area = frame->area && frame->area[0] ? frame->area : "[unmapped]";

	*ret_brackets = !frame->module && area[0] != '[';
	if (frame->module)
		return ss_label_base(frame->module->path);
	return *ret_brackets ? ss_label_base(area) : area;
}

static char *format(const struct ss_frame *frame, const char *rest)
{
	bool brackets = false;
	const char *name = module_name(frame, &brackets);
	char *text = NULL;
	int size = asprintf(&text, "%s%s%s%s", brackets ? "[" : "", name,
			    brackets ? "]" : "", rest);

	return size < 0 ? NULL : text;
}

char *ss_label_new_module(const struct ss_frame *frame)
{
	if (frame->kind == SS_FRAME_JIT)
		return strdup("[jit]");
	if (frame->kind != SS_FRAME_NATIVE)
		return strdup(ss_frame_kind_name(frame->kind));
	return format(frame, "");
}

char *ss_label_new_place(const struct ss_frame *frame)
{
	uint64_t offset = frame->module ? frame->offset :
			  frame->area	? frame->area_offset :
					  frame->pc;
	char rest[sizeof("+0x0123456789abcdef")];

	(void)snprintf(rest, sizeof(rest), "+0x%" PRIx64, offset); /* it fits */
	return format(frame, rest);
}

char *ss_label_new_raw(const struct ss_frame *frame)
{
	_cleanup_free_ char *rest = NULL;

	if (!frame->module)
		return ss_label_new_place(frame);
	int size = asprintf(&rest, "+0x%" PRIx64 " [%s]", frame->lookup_offset,
			    frame->module->build_id ? frame->module->build_id :
						      "no build-id");
	if (size < 0)
		rest = NULL; /* undefined after a failure */
	return rest ? format(frame, rest) : NULL;
}

char *ss_label_new(const struct ss_frame *frame, bool raw)
{
	if (raw && frame->kind == SS_FRAME_NATIVE)
		return ss_label_new_raw(frame);
	if (!frame->symbol)
		return ss_label_new_place(frame);
	return strdup(frame->symbol);
}
