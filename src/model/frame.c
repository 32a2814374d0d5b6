#include <string.h>

#include "base/cleanup.h"
#include "stacksnap.h"

static bool begins_with_any(const char *text, const char *const *starts, size_t count)
{
	for (size_t i = 0; text && i < count; i++) {
		if (strncmp(text, starts[i], strlen(starts[i])) == 0)
			return true;
	}
	return false;
}

/* Classes of the JDK. */
static bool is_of_java(const char *symbol)
{
	static const char *const starts[] = { "java.", "javax.", "jdk.", "sun.",
					      "com.sun." };

	return begins_with_any(symbol, starts, SS_ARRAY_SIZE(starts));
}

/* ".../lib/python3.11/queue.py": where CPython installs its library. Below it, packages
   of others are in a directory of their own. */
static bool is_of_python(const char *file)
{
	static const char *const starts[] = { "<frozen " };
	const char *found = file ? strstr(file, "/python3.") : NULL;

	if (begins_with_any(file, starts, SS_ARRAY_SIZE(starts)))
		return true;
	if (!found)
		return false;
	const char *rest = found + strlen("/python3.");
	rest += strspn(rest, "0123456789");
	return rest[0] == '/' && !strstr(rest, "/site-packages/") &&
	       !strstr(rest, "/dist-packages/");
}

/* "node:internal/timers"; without a file, what V8 itself defines, such as Array.map. */
static bool is_of_javascript(const char *file)
{
	static const char *const starts[] = { "node:" };

	return !file || begins_with_any(file, starts, SS_ARRAY_SIZE(starts));
}

bool ss_frame_is_of_library(const struct ss_frame *frame)
{
	switch (frame->kind) {
	case SS_FRAME_PYTHON:
		return is_of_python(frame->file);
	case SS_FRAME_JAVA:
		return is_of_java(frame->symbol);
	case SS_FRAME_JAVASCRIPT:
		return is_of_javascript(frame->file);
	default:
		return false;
	}
}
