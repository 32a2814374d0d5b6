#include "view/label.h"

#include <inttypes.h>
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

void ss_label_write_module(const struct ss_frame *frame,
			   const struct ss_substitution *substitution, FILE *out)
{
	const char *area = frame->area && frame->area[0] ? frame->area : "[unmapped]";

	if (frame->module) {
		ss_escape_write(ss_label_base(frame->module->path), substitution, out);
	} else if (area[0] == '[') {
		ss_escape_write(area, substitution, out);
	} else {
		(void)fputc_unlocked('[', out);
		ss_escape_write(ss_label_base(area), substitution, out);
		(void)fputc_unlocked(']', out);
	}
}

void ss_label_write_place(const struct ss_frame *frame,
			  const struct ss_substitution *substitution, FILE *out)
{
	uint64_t offset = frame->module ? frame->offset :
			  frame->area	? frame->area_offset :
					  frame->pc;

	ss_label_write_module(frame, substitution, out);
	(void)fprintf(out, "+0x%" PRIx64, offset);
}

void ss_label_write_raw(const struct ss_frame *frame,
			const struct ss_substitution *substitution, FILE *out)
{
	if (!frame->module) {
		ss_label_write_place(frame, substitution, out);
		return;
	}
	ss_label_write_module(frame, substitution, out);
	(void)fprintf(out, "+0x%" PRIx64 " [%s]", frame->lookup_offset,
		      frame->module->build_id ? frame->module->build_id : "no build-id");
}

void ss_label_write(const struct ss_frame *frame, bool raw,
		    const struct ss_substitution *substitution, FILE *out)
{
	if (raw)
		ss_label_write_raw(frame, substitution, out);
	else if (frame->symbol)
		ss_escape_write(frame->symbol, substitution, out);
	else
		ss_label_write_place(frame, substitution, out);
}
